//! Owns how a refusal reads: the code by name and number, the message, the metadata. The client makes it, the command line
//! prints it. It must not know who refused.

use std::fmt;

use tonic::{Code, Status, metadata::KeyAndValueRef};

use super::text::printable;

/// A call that ended with another status than OK.
///
/// ```text
/// PERMISSION_DENIED (7): not yet
/// x-case: 42
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status.
    pub code: Code,
    /// What it says, as it was sent.
    pub message: String,
    /// The pairs that came with it, sorted by name, without those of HTTP and gRPC themselves. Values under names in `-bin`
    /// are base64.
    pub metadata: Vec<(String, String)>,
}

impl Refused {
    /// The code's name in gRPC's documents, such as `PERMISSION_DENIED`.
    pub const fn name(&self) -> &'static str {
        match self.code {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// The code's number.
    pub const fn number(&self) -> i32 {
        self.code as i32
    }

    /// The first value under this name, which is in lower case.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.metadata
            .iter()
            .find(|(each, _)| each == name)
            .map(|(_, value)| value.as_str())
    }
}

impl From<&Status> for Refused {
    fn from(status: &Status) -> Self {
        let pair = |pair: KeyAndValueRef<'_>| {
            let (name, value) = match pair {
                KeyAndValueRef::Ascii(name, value) => (name.as_str(), value.as_encoded_bytes()),
                KeyAndValueRef::Binary(name, value) => (name.as_str(), value.as_encoded_bytes()),
            };
            let own = name.starts_with("grpc-") || OF_THE_WAY.contains(&name);
            (!own).then(|| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
        };
        let mut metadata: Vec<_> = status.metadata().iter().filter_map(pair).collect();
        metadata.sort();
        Self {
            code: status.code(),
            message: status.message().to_owned(),
            metadata,
        }
    }
}

impl fmt::Display for Refused {
    /// The first line is the status, each further one a pair. A message of several lines is indented, so that none of its
    /// lines reads as a pair; control characters are written out, so that none reaches a terminal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.name(), self.number())?;
        let mut lines = self.message.lines();
        if let Some(first) = lines.next() {
            write!(formatter, ": {}", printable(first))?;
        }
        for line in lines {
            write!(formatter, "\n  {}", printable(line))?;
        }
        for (name, value) in &self.metadata {
            write!(formatter, "\n{name}: {}", printable(value))?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// Headers that say how the answer travelled, not what it says.
const OF_THE_WAY: [&str; 7] = [
    "content-length",
    "content-type",
    "date",
    "server",
    "vary",
    "via",
    "x-envoy-upstream-service-time",
];

#[cfg(test)]
mod tests {
    use super::{Code, Refused};

    #[test]
    fn no_line_of_a_message_reads_as_a_pair_or_reaches_the_terminal() {
        let refused = Refused {
            code: Code::Aborted,
            message: "first\nx-case: forged\u{1b}[2J".to_owned(),
            metadata: vec![("x-case".to_owned(), "42".to_owned())],
        };
        assert_eq!(
            refused.to_string(),
            "ABORTED (10): first\n  x-case: forged\\u{1b}[2J\nx-case: 42"
        );
    }

    #[test]
    fn a_status_without_a_message_is_its_code() {
        let refused = Refused {
            code: Code::Unavailable,
            message: String::new(),
            metadata: Vec::new(),
        };
        assert_eq!(refused.to_string(), "UNAVAILABLE (14)");
    }
}
