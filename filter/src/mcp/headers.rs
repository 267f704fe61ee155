//! Headers of an MCP request: those that repeat what the body says (`Mcp-Method`, `Mcp-Name`), and what a client takes for an
//! answer. The body decides; a header that does not agree is a fault. Source: contract `mcp.md`, C.3.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Headers in order, one entry for each time that one stands there.
type Headers = [(String, Vec<u8>)];

/// What one header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is not there.
    Absent,
    /// It stands there more than once, or is no text.
    Unreadable,
    /// Its value, decoded.
    Text(String),
}

/// Reads one header that is to stand there once.
#[must_use]
pub fn sent(headers: &Headers, name: &str) -> Sent {
    let mut found = headers.iter().filter(|(found, _)| found == name);
    match (found.next(), found.next()) {
        (None, _) => Sent::Absent,
        (Some((_, value)), None) => {
            decoded(value).map_or(Sent::Unreadable, |text| Sent::Text(text.into_owned()))
        }
        (Some(_), Some(_)) => Sent::Unreadable,
    }
}

/// A value as it is meant: what is no visible ASCII travels as `=?base64?…?=`.
#[must_use]
pub fn decoded(value: &[u8]) -> Option<Cow<'_, str>> {
    let value = value.trim_ascii();
    let wrapped = value
        .strip_prefix(b"=?base64?")
        .and_then(|rest| rest.strip_suffix(b"?="));
    match wrapped {
        Some(base64) => {
            let text = String::from_utf8(STANDARD.decode(base64).ok()?).ok()?;
            Some(Cow::Owned(text))
        }
        None => {
            let is_visible = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
            is_visible
                .then(|| std::str::from_utf8(value).ok().map(Cow::Borrowed))
                .flatten()
        }
    }
}

/// Whether a client takes an answer of this type. One that says nothing takes all.
#[must_use]
pub fn accepts(headers: &Headers, kind: &str, subtype: &str) -> bool {
    let mut said = headers
        .iter()
        .filter(|(name, _)| name == "accept")
        .peekable();
    if said.peek().is_none() {
        return true;
    }
    said.flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .any(|range| {
            let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
            let is_meant = [
                format!("{kind}/{subtype}"),
                format!("{kind}/*"),
                "*/*".to_owned(),
            ]
            .iter()
            .any(|meant| meant.as_bytes() == essence);
            is_meant && !parts.any(is_weight_of_nothing)
        })
}

/// `q=0` in any of its spellings.
fn is_weight_of_nothing(parameter: &[u8]) -> bool {
    let weight = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="));
    weight.is_some_and(|weight| weight.iter().all(|byte| matches!(byte, b'0' | b'.')))
}

/// Whether the body is said to be JSON.
#[must_use]
pub fn is_json(headers: &Headers) -> bool {
    let mut kinds = headers.iter().filter(|(name, _)| name == "content-type");
    let (Some((_, value)), None) = (kinds.next(), kinds.next()) else {
        return false;
    };
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(headers: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        headers.iter().map(owned).collect()
    }

    #[test]
    fn a_value_is_read_as_it_is_meant() {
        let table = [
            ("tools/call", Some("tools/call")),
            (" approval_wait ", Some("approval_wait")),
            ("=?base64?ZGVsZXRlX3VzZdGA?=", Some("delete_use\u{440}")),
            ("=?BASE64?eA==?=", Some("=?BASE64?eA==?=")),
            ("=?base64?eA=?=", None),
            ("=?base64?e A==?=", None),
            ("=?base64?/w==?=", None),
            ("na\u{ef}ve", None),
        ];
        for (value, meant) in table {
            assert_eq!(decoded(value.as_bytes()).as_deref(), meant, "{value}");
        }
    }

    #[test]
    fn a_header_that_stands_twice_says_nothing() {
        let twice = headers(&[("mcp-name", "a"), ("mcp-name", "a")]);

        assert_eq!(sent(&twice, "mcp-name"), Sent::Unreadable);
        assert_eq!(sent(&twice, "mcp-method"), Sent::Absent);
    }

    #[test]
    fn a_client_takes_what_its_accept_says() {
        type Pairs<'h> = &'h [(&'h str, &'h str)];
        let table: [(Pairs<'_>, bool, bool); 8] = [
            (&[], true, true),
            (
                &[("accept", "application/json, text/event-stream")],
                true,
                true,
            ),
            (&[("accept", "APPLICATION/JSON")], true, false),
            (&[("accept", "text/*;q=0.5")], false, true),
            (&[("accept", "*/*")], true, true),
            (
                &[
                    ("accept", "application/json"),
                    ("accept", "text/event-stream"),
                ],
                true,
                true,
            ),
            (&[("accept", "text/event-stream;q=0.0")], false, false),
            (&[("accept", "application/jsonx")], false, false),
        ];
        for (sent, json, events) in table {
            let sent = headers(sent);

            let takes = (
                accepts(&sent, "application", "json"),
                accepts(&sent, "text", "event-stream"),
            );
            assert_eq!(takes, (json, events), "{sent:?}");
        }
    }

    #[test]
    fn json_is_said_in_one_way() {
        let table: [(&[(&str, &str)], bool); 5] = [
            (
                &[("content-type", "Application/json ; charset=utf-8")],
                true,
            ),
            (&[("content-type", "application/json-rpc")], false),
            (&[("content-type", "text/plain")], false),
            (&[], false),
            (
                &[
                    ("content-type", "application/json"),
                    ("content-type", "text/plain"),
                ],
                false,
            ),
        ];
        for (sent, is) in table {
            assert_eq!(is_json(&headers(sent)), is, "{sent:?}");
        }
    }
}
