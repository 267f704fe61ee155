//! The access log: what a line holds, as Envoy's format texts say it, and the line of a stream that is over.
//!
//! Pure: a text in, a stream in, a line out. An operator that is not understood is refused when the text is read, so that no line is
//! written with a hole. Source: `SubstitutionFormatParser` in Envoy's `source/common/formatter/substitution_formatter.cc`.

mod line;

use std::fmt;

pub(super) use line::Ended;

/// A format text that was read, such as `%START_TIME% %REQ(:METHOD)% %RESPONSE_CODE%\n`.
///
/// These operators are understood. What a request does not have is printed as `-`.
///
/// | operator | what it prints |
/// | --- | --- |
/// | `%START_TIME%` | when the request came in, as `2026-11-30T15:44:12.123Z` |
/// | `%DOWNSTREAM_REMOTE_ADDRESS%`, `%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%` | the client's address |
/// | `%PROTOCOL%` | `HTTP/1.1`, `HTTP/2` |
/// | `%REQ(NAME?ALTERNATIVE):LENGTH%` | a header of the request, or else the other one; at most so many bytes. Alternative and length may be left out |
/// | `%RESP(NAME?ALTERNATIVE):LENGTH%` | a header of the answer |
/// | `%PATH(WQ:PATH):LENGTH%` | the path. `NQ` leaves its query out; `ORIG` or `ORIG_OR_PATH`, the default, takes `x-envoy-original-path` |
/// | `%RESPONSE_CODE%`, `%RESPONSE_CODE_DETAILS%` | the status, 0 where there was no answer; who gave it and why |
/// | `%UPSTREAM_REQUEST_ATTEMPT_COUNT%` | how often the request went to an upstream |
/// | `%BYTES_RECEIVED%`, `%BYTES_SENT%` | sizes of the bodies |
/// | `%DURATION%` | milliseconds from the first byte of the request to the end |
/// | `%FILTER_STATE(wasm.NAME:PLAIN):LENGTH%` | what the filter has set as the property `NAME` |
/// | `%%` | a per cent sign |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogFormat(Vec<Piece>);

/// Why a format text is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatFault {
    /// What stands between the brackets, or behind the colon, is not what the operator takes.
    #[error("`%{operator}` at byte {at} with something that it does not take")]
    Arguments {
        /// The operator with all that belongs to it.
        operator: String,
        /// Where it starts.
        at: usize,
        /// How it is written.
        form: &'static str,
    },
    /// A per cent sign starts no operator.
    #[error("`%` at byte {at}, which starts no operator")]
    NoOperator {
        /// Where it stands.
        at: usize,
    },
    /// An operator that is not among those above.
    #[error("the operator `{operator}` at byte {at}")]
    UnknownOperator {
        /// Its name.
        operator: String,
        /// Where it starts.
        at: usize,
    },
}

impl FormatFault {
    /// What may stand there instead.
    pub fn understood(&self) -> String {
        match self {
            FormatFault::Arguments { form, .. } => format!("`%{form}%`"),
            FormatFault::NoOperator { .. } => {
                "`%NAME%`, `%NAME(ARGUMENTS)%` or `%NAME(ARGUMENTS):LENGTH%`, and `%%` for the sign itself".to_owned()
            }
            FormatFault::UnknownOperator { .. } => {
                let names = OPERATORS.iter().map(|(name, _)| format!("`{name}`"));
                names.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value {
        operator: Operator,
        /// More bytes of it are cut off.
        length: Option<usize>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    BytesReceived,
    BytesSent,
    Duration,
    /// The name of a property that the filter has set.
    FilterState(String),
    Path {
        query: bool,
        source: PathSource,
    },
    Protocol,
    RemoteAddress,
    RemoteAddressWithoutPort,
    RequestHeader(Names),
    ResponseCode,
    ResponseCodeDetails,
    ResponseHeader(Names),
    StartTime,
    UpstreamRequestAttemptCount,
}

/// Which path is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathSource {
    Original,
    OriginalOrPath,
    Path,
}

/// A header, and the one that is taken where it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Names {
    name: String,
    alternative: Option<String>,
}

/// An operator as it is written, without its per cent signs.
struct Written<'t> {
    name: &'t str,
    arguments: Option<&'t str>,
    length: Option<usize>,
    whole: &'t str,
}

impl AccessLogFormat {
    /// Reads a format text.
    pub fn parse(text: &str) -> Result<AccessLogFormat, FormatFault> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(sign) = rest.find('%') {
            let (before, operator) = rest.split_at(sign);
            literal.push_str(before);
            let at = text.len() - operator.len();
            if let Some(behind) = operator.strip_prefix("%%") {
                literal.push('%');
                rest = behind;
                continue;
            }
            let written = Written::read(&operator[1..]).ok_or(FormatFault::NoOperator { at })?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Value {
                operator: written.operator(at)?,
                length: written.length,
            });
            rest = &operator[written.whole.len() + 2..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(AccessLogFormat(pieces))
    }

    /// Whether the text asks for nothing but what the filter has set, which is the same at any time of a stream.
    pub fn reads_properties_only(&self) -> bool {
        self.0.iter().all(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Value { operator, .. } => matches!(operator, Operator::FilterState(_)),
        })
    }
}

/// As a text that reads as the same format.
impl fmt::Display for AccessLogFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => formatter.write_str(&text.replace('%', "%%"))?,
                Piece::Value { operator, length } => {
                    write!(formatter, "%{operator}")?;
                    if let Some(length) = length {
                        write!(formatter, ":{length}")?;
                    }
                    formatter.write_str("%")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Operator::BytesReceived => "BYTES_RECEIVED",
            Operator::BytesSent => "BYTES_SENT",
            Operator::Duration => "DURATION",
            Operator::FilterState(name) => {
                return write!(formatter, "FILTER_STATE(wasm.{name}:PLAIN)");
            }
            Operator::Path { query, source } => {
                let query = if *query { "WQ" } else { "NQ" };
                let known = PATH_SOURCES.iter().find(|(_, known)| known == source);
                let source = known.map(|(word, _)| *word).unwrap_or_default();
                return write!(formatter, "PATH({query}:{source})");
            }
            Operator::Protocol => "PROTOCOL",
            Operator::RemoteAddress => "DOWNSTREAM_REMOTE_ADDRESS",
            Operator::RemoteAddressWithoutPort => "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
            Operator::RequestHeader(names) => return write!(formatter, "REQ({names})"),
            Operator::ResponseCode => "RESPONSE_CODE",
            Operator::ResponseCodeDetails => "RESPONSE_CODE_DETAILS",
            Operator::ResponseHeader(names) => return write!(formatter, "RESP({names})"),
            Operator::StartTime => "START_TIME",
            Operator::UpstreamRequestAttemptCount => "UPSTREAM_REQUEST_ATTEMPT_COUNT",
        };
        formatter.write_str(name)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match &self.alternative {
            Some(alternative) => write!(formatter, "?{alternative}"),
            None => Ok(()),
        }
    }
}

impl<'t> Written<'t> {
    /// Reads what follows the first per cent sign, up to the second.
    fn read(text: &'t str) -> Option<Written<'t>> {
        let is_name = |letter: char| matches!(letter, 'A'..='Z' | '0'..='9' | '_');
        let end = text.find(|letter| !is_name(letter))?;
        let (name, mut rest) = text.split_at(end);
        let mut arguments = None;
        if let Some(inside) = rest.strip_prefix('(') {
            let (within, behind) = inside.split_once(')')?;
            arguments = Some(within);
            rest = behind;
        }
        let mut length = None;
        if let Some(digits) = rest.strip_prefix(':') {
            let end = digits.find(|letter: char| !letter.is_ascii_digit())?;
            length = Some(digits[..end].parse().ok()?);
            rest = &digits[end..];
        }
        rest.strip_prefix('%').filter(|_| !name.is_empty())?;
        Some(Written {
            name,
            arguments,
            length,
            whole: &text[..text.len() - rest.len()],
        })
    }

    fn operator(&self, at: usize) -> Result<Operator, FormatFault> {
        let known = OPERATORS.iter().find(|(name, _)| *name == self.name);
        let Some((_, form)) = known else {
            return Err(FormatFault::UnknownOperator {
                operator: self.name.to_owned(),
                at,
            });
        };
        let operator = match self.arguments {
            None if self.name == "PATH" => self.with_arguments(""),
            None if self.length.is_none() => plain(self.name),
            None => None,
            Some(arguments) => self.with_arguments(arguments),
        };
        operator.ok_or_else(|| FormatFault::Arguments {
            operator: self.whole.to_owned(),
            at,
            form,
        })
    }

    fn with_arguments(&self, arguments: &str) -> Option<Operator> {
        match self.name {
            "FILTER_STATE" => {
                let name = arguments.strip_prefix("wasm.")?.strip_suffix(":PLAIN")?;
                // Behind another colon Envoy reads how to print it.
                let plain = !name.is_empty() && !name.contains(':');
                plain.then(|| Operator::FilterState(name.to_owned()))
            }
            "PATH" => {
                let (query, source) = arguments.split_once(':').unwrap_or((arguments, ""));
                let query = match query {
                    "" | "WQ" => true,
                    "NQ" => false,
                    _ => return None,
                };
                let source = match source {
                    "" => PathSource::OriginalOrPath,
                    word => PATH_SOURCES.iter().find(|(known, _)| *known == word)?.1,
                };
                Some(Operator::Path { query, source })
            }
            "REQ" => Some(Operator::RequestHeader(Names::read(arguments)?)),
            "RESP" => Some(Operator::ResponseHeader(Names::read(arguments)?)),
            _ => None,
        }
    }
}

impl Names {
    fn read(arguments: &str) -> Option<Names> {
        let is_name = |name: &str| {
            let bare = name.strip_prefix(':').unwrap_or(name);
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
            !bare.is_empty() && bare.bytes().all(token)
        };
        let (name, alternative) = match arguments.split_once('?') {
            Some((name, alternative)) => (name, Some(alternative)),
            None => (arguments, None),
        };
        let well = is_name(name) && alternative.is_none_or(is_name);
        well.then(|| Names {
            name: name.to_ascii_lowercase(),
            alternative: alternative.map(str::to_ascii_lowercase),
        })
    }
}

/// An operator that takes nothing.
fn plain(name: &str) -> Option<Operator> {
    Some(match name {
        "BYTES_RECEIVED" => Operator::BytesReceived,
        "BYTES_SENT" => Operator::BytesSent,
        "DOWNSTREAM_REMOTE_ADDRESS" => Operator::RemoteAddress,
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => Operator::RemoteAddressWithoutPort,
        "DURATION" => Operator::Duration,
        "PROTOCOL" => Operator::Protocol,
        "RESPONSE_CODE" => Operator::ResponseCode,
        "RESPONSE_CODE_DETAILS" => Operator::ResponseCodeDetails,
        "START_TIME" => Operator::StartTime,
        "UPSTREAM_REQUEST_ATTEMPT_COUNT" => Operator::UpstreamRequestAttemptCount,
        _ => return None,
    })
}

const PATH_SOURCES: [(&str, PathSource); 3] = [
    ("ORIG", PathSource::Original),
    ("ORIG_OR_PATH", PathSource::OriginalOrPath),
    ("PATH", PathSource::Path),
];

/// Every operator, and how it is written.
const OPERATORS: [(&str, &str); 14] = [
    ("BYTES_RECEIVED", "BYTES_RECEIVED"),
    ("BYTES_SENT", "BYTES_SENT"),
    ("DOWNSTREAM_REMOTE_ADDRESS", "DOWNSTREAM_REMOTE_ADDRESS"),
    (
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
    ),
    ("DURATION", "DURATION"),
    ("FILTER_STATE", "FILTER_STATE(wasm.NAME:PLAIN):LENGTH"),
    ("PATH", "PATH(WQ|NQ:PATH|ORIG|ORIG_OR_PATH):LENGTH"),
    ("PROTOCOL", "PROTOCOL"),
    ("REQ", "REQ(NAME?ALTERNATIVE):LENGTH"),
    ("RESP", "RESP(NAME?ALTERNATIVE):LENGTH"),
    ("RESPONSE_CODE", "RESPONSE_CODE"),
    ("RESPONSE_CODE_DETAILS", "RESPONSE_CODE_DETAILS"),
    ("START_TIME", "START_TIME"),
    (
        "UPSTREAM_REQUEST_ATTEMPT_COUNT",
        "UPSTREAM_REQUEST_ATTEMPT_COUNT",
    ),
];

#[cfg(test)]
mod tests;
