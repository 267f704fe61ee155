//! An approval as the Control Plane tells of it: its id, its status, and what an agent does next. One table each, used
//! by denials, the status path and the approval tools alike. Source: contract 1.10, 4.

use std::fmt;

use crate::limits;

/// The canonical id of an approval: 36 characters, 8-4-4-4-12, lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Reads an id that a client named. Upper-case hex is accepted and lowered; every other spelling (braces, `urn:`,
    /// no dashes) is no id, so that nothing but a canonical id ever becomes part of a Control Plane path.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let canonical = text.len() == 36
            && text.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        if !canonical {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        Some(Self(text.to_ascii_lowercase()))
    }

    /// Reads an id that the Control Plane answered: canonical as it stands, or not an id.
    #[must_use]
    pub fn parse_canonical(text: &str) -> Option<Self> {
        Self::parse(text.as_bytes()).filter(|id| id.0 == text)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A text of the Control Plane that is safe in a header, a log line and a message: `[A-Za-z0-9_-]`, bounded.
///
/// Envoy writes header values as they are, so a value with a line break would become a second header. A wrong yes
/// here is header injection; a wrong no only leaves a field out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeToken(String);

impl SafeToken {
    /// Reads a token; anything else is left out by its user.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let safe = !text.is_empty()
            && text.len() <= limits::TOKEN_BYTES
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        safe.then(|| Self(text.to_owned()))
    }

    /// The token as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&ApprovalId> for SafeToken {
    fn from(id: &ApprovalId) -> Self {
        Self(id.0.clone())
    }
}

/// When an approval is spent. Source: design 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpendOn {
    /// Once the upstream has accepted the request; a refusal gives the approval back.
    Accepted,
    /// As soon as the request goes on.
    #[default]
    Release,
}

/// Where an approval stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nobody has decided yet.
    Pending,
    /// A person said yes; it was not used yet.
    Approved,
    /// A person said no.
    Rejected,
    /// A person took a yes back before it was used.
    Revoked,
    /// Another request is using it; the upstream's answer spends it or gives it back.
    Processing,
    /// It was used.
    Executed,
    /// Its time ran out.
    Expired,
    /// A status that this version does not know; it never releases anything. `None` where its text is not fit to be
    /// repeated.
    Unknown(Option<SafeToken>),
}

impl Status {
    /// Reads a status word; an unknown one is kept when it is safe to repeat.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "PENDING" => Self::Pending,
            "APPROVED" => Self::Approved,
            "REJECTED" => Self::Rejected,
            "REVOKED" => Self::Revoked,
            "PROCESSING" => Self::Processing,
            "EXECUTED" => Self::Executed,
            "EXPIRED" => Self::Expired,
            other => Self::Unknown(SafeToken::parse(other)),
        }
    }

    /// The word for a client; `None` where the Control Plane's own word is not fit to be repeated.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        Some(match self {
            Self::Pending => "PENDING",
            Self::Approved => "APPROVED",
            Self::Rejected => "REJECTED",
            Self::Revoked => "REVOKED",
            Self::Processing => "PROCESSING",
            Self::Executed => "EXECUTED",
            Self::Expired => "EXPIRED",
            Self::Unknown(token) => token.as_ref()?.as_str(),
        })
    }

    /// What the agent does next, so that it never interprets a status on its own.
    #[must_use]
    pub const fn next(&self) -> Next {
        match self {
            Self::Pending | Self::Processing => Next::Wait,
            Self::Approved => Next::ResendIdenticalStatement,
            Self::Rejected | Self::Revoked | Self::Executed | Self::Expired | Self::Unknown(_) => {
                Next::Stop
            }
        }
    }
}

/// What an agent does after it has read a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask again later; do not resend.
    Wait,
    /// Send the same bytes once more; they run once.
    ResendIdenticalStatement,
    /// Do nothing unless a person asks again.
    Stop,
}

impl Next {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::ResendIdenticalStatement => "resend_identical_statement",
            Self::Stop => "stop",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";

    #[test]
    fn an_id_is_canonical_and_lower_case() {
        assert_eq!(
            ApprovalId::parse(ID.as_bytes()).expect("an id").as_str(),
            ID
        );
        assert_eq!(
            ApprovalId::parse(ID.to_uppercase().as_bytes())
                .expect("an id")
                .as_str(),
            ID
        );
        assert_eq!(ApprovalId::parse_canonical(&ID.to_uppercase()), None);
    }

    #[test]
    fn every_other_spelling_is_no_id() {
        let braces = format!("{{{ID}}}");
        let urn = format!("urn:uuid:{ID}");
        let short = ID.split_at(35).0;
        let long = format!("{ID}0");
        let no_dashes = ID.replace('-', "");
        let dashes_moved = "9f97a1b20-c3d-4e5f-8a9b-0c1d2e3f4a5b";
        for text in [
            "",
            "..",
            "a/b",
            &braces,
            &urn,
            short,
            &long,
            &no_dashes,
            dashes_moved,
        ] {
            assert_eq!(ApprovalId::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_status_says_what_to_do_next() {
        let table = [
            ("PENDING", "wait"),
            ("APPROVED", "resend_identical_statement"),
            ("PROCESSING", "wait"),
            ("REJECTED", "stop"),
            ("REVOKED", "stop"),
            ("EXECUTED", "stop"),
            ("EXPIRED", "stop"),
            ("FOO", "stop"),
            ("pending", "stop"),
        ];
        for (word, next) in table {
            let status = Status::parse(word);

            assert_eq!((status.word(), status.next().word()), (Some(word), next));
        }
    }

    #[test]
    fn a_status_that_would_break_a_header_is_not_repeated() {
        assert_eq!(Status::parse("A\r\nX: y").word(), None);
        assert_eq!(Status::parse("").word(), None);
        assert_eq!(Status::parse(&"A".repeat(65)).word(), None);
    }
}
