//! Owns who asked, as far as it is shown: reading it leniently and cleaning it (contract 1.4), and whom a filing counts
//! against. The Sidecar API reads it once when a statement is filed. Nothing may release or match by it: it is the
//! caller's own word.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::{
    limits::{REQUESTER_METHOD_MAX_BYTES, REQUESTER_VALUE_MAX_BYTES},
    render,
};

/// Who asked, for display and for the count of what waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Requester {
    pub(crate) subject: String,
    pub(crate) email: String,
    pub(crate) peer_addr: String,
    pub(crate) method: String,
}

impl Requester {
    /// Reads the `requester` of a filing's body. A malformed or an empty one is none at all: it never refuses a filing.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Filing {
            requester: Option<Wire>,
        }
        #[derive(Deserialize)]
        struct Wire {
            subject: Option<String>,
            email: Option<String>,
            peer_addr: Option<String>,
            method: Option<String>,
        }
        let wire = serde_json::from_slice::<Filing>(body).ok()?.requester?;
        let subject = bounded(wire.subject);
        let email = bounded(wire.email);
        let peer_addr = bounded(wire.peer_addr);
        let named = !(subject.is_empty() && email.is_empty());
        if !named && peer_addr.is_empty() {
            return None;
        }
        let method = if named {
            method(&wire.method.unwrap_or_default())
        } else {
            "peer_address".to_owned()
        };
        Some(Self {
            subject,
            email,
            peer_addr,
            method,
        })
    }

    /// One text for each caller: the name it goes by with how that was known, or else the address it comes from. The port
    /// of an address is another one for each connection.
    fn caller(&self) -> String {
        let Self {
            subject,
            email,
            peer_addr,
            method,
        } = self;
        if !subject.is_empty() {
            format!("subject:{method}:{subject}")
        } else if !email.is_empty() {
            format!("email:{method}:{email}")
        } else if let Ok(socket) = peer_addr.parse::<SocketAddr>() {
            format!("peer:{}", socket.ip())
        } else if let Ok(ip) = peer_addr.parse::<IpAddr>() {
            format!("peer:{ip}")
        } else {
            format!("peer:{peer_addr}")
        }
    }

    /// The same, safe to look at.
    pub(crate) fn shown(&self) -> Self {
        Self {
            subject: render::line(&self.subject),
            email: render::line(&self.email),
            peer_addr: render::line(&self.peer_addr),
            method: self.method.clone(),
        }
    }
}

/// Whom a filing counts against. Those that name nobody are one caller together.
pub(crate) fn caller(requester: Option<&Requester>) -> String {
    requester.map_or_else(|| "anonymous".to_owned(), Requester::caller)
}

fn bounded(value: Option<String>) -> String {
    let mut value = value.unwrap_or_default();
    value.truncate(value.floor_char_boundary(REQUESTER_VALUE_MAX_BYTES));
    value
}

/// How a caller that has a name was known.
fn method(found: &str) -> String {
    if found.is_empty() {
        return "unspecified".to_owned();
    }
    let lower = found.to_lowercase();
    let known_form = lower.len() <= REQUESTER_METHOD_MAX_BYTES
        && lower
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if known_form {
        lower
    } else {
        "unrecognized".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(requester: &str) -> Option<Requester> {
        Requester::read(format!("{{\"payload\":\"x\",\"requester\":{requester}}}").as_bytes())
    }

    fn method_of(requester: &str) -> Option<String> {
        read(requester).map(|requester| requester.method)
    }

    #[test]
    fn a_whole_requester_is_read_and_its_method_lower_cased() {
        let found = read(
            r#"{"subject":"ann","email":"a@x","peer_addr":"10.0.0.1:5","method":"Identity_Header","groups":["x"]}"#,
        );
        assert_eq!(
            found,
            Some(Requester {
                subject: "ann".into(),
                email: "a@x".into(),
                peer_addr: "10.0.0.1:5".into(),
                method: "identity_header".into()
            })
        );
    }

    #[test]
    fn a_malformed_or_empty_requester_is_none() {
        for requester in [
            "null",
            "1",
            "\"ann\"",
            "[]",
            "{}",
            r#"{"subject":1}"#,
            r#"{"subject":"\ud800"}"#,
            r#"{"method":"x"}"#,
        ] {
            assert_eq!(read(requester), None, "{requester}");
        }
    }

    #[test]
    fn a_method_follows_the_contract() {
        assert_eq!(
            method_of(r#"{"peer_addr":"p"}"#).as_deref(),
            Some("peer_address")
        );
        assert_eq!(
            method_of(r#"{"peer_addr":"p","method":"google_identity"}"#).as_deref(),
            Some("peer_address")
        );
        assert_eq!(
            method_of(r#"{"subject":"s"}"#).as_deref(),
            Some("unspecified")
        );
        assert_eq!(
            method_of(r#"{"email":"e","method":""}"#).as_deref(),
            Some("unspecified")
        );
        assert_eq!(
            method_of(r#"{"email":"e","method":"a b"}"#).as_deref(),
            Some("unrecognized")
        );
        let long = "a".repeat(65);
        assert_eq!(
            method_of(&format!(r#"{{"email":"e","method":"{long}"}}"#)).as_deref(),
            Some("unrecognized")
        );
    }

    #[test]
    fn a_caller_is_its_name_with_the_method_or_its_address_without_the_port() {
        let table = [
            (
                r#"{"subject":"ann","email":"a@x","peer_addr":"10.0.0.1:5","method":"m"}"#,
                "subject:m:ann",
            ),
            (r#"{"subject":"m:ann","method":"x"}"#, "subject:x:m:ann"),
            (
                r#"{"email":"a@x","peer_addr":"10.0.0.1:5"}"#,
                "email:unspecified:a@x",
            ),
            (r#"{"peer_addr":"10.0.0.1:5"}"#, "peer:10.0.0.1"),
            (r#"{"peer_addr":"10.0.0.1"}"#, "peer:10.0.0.1"),
            (r#"{"peer_addr":"[2001:db8::1]:65535"}"#, "peer:2001:db8::1"),
            (r#"{"peer_addr":"2001:db8::1"}"#, "peer:2001:db8::1"),
            (r#"{"peer_addr":"/run/agent.sock"}"#, "peer:/run/agent.sock"),
            (
                r#"{"subject":"10.0.0.1","method":"peer_address"}"#,
                "subject:peer_address:10.0.0.1",
            ),
            ("{}", "anonymous"),
            ("1", "anonymous"),
        ];
        for (requester, expected) in table {
            assert_eq!(caller(read(requester).as_ref()), expected, "{requester}");
        }
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let found = read(&format!(r#"{{"subject":"{}"}}"#, "é".repeat(200))).expect("read");
        assert_eq!(found.subject, "é".repeat(127));
    }

    #[test]
    fn what_is_shown_has_no_hidden_characters() {
        let found = read(r#"{"subject":"ann\u202e\n"}"#).expect("read");
        assert_eq!(found.shown().subject, "ann\\xe2\\x80\\xae\\x0a");
    }
}
