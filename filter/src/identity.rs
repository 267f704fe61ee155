//! Who asks, for the person who decides to read: a trusted header, else the client's certificate, and always the peer's
//! address. Display only: nothing is matched or allowed by it. Source: contract 1.4.

use std::fmt::Debug;

use crate::json::Object;
use crate::limits;

/// Where to find who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentitySource {
    /// A header, in lower case, that whatever stands in front sets and strips from clients' requests.
    pub header: Option<String>,
    /// Whether the client's certificate names it, where the header does not.
    pub certificate: bool,
}

/// What the host knows of the other end of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Its address, with the port.
    pub address: Option<Vec<u8>>,
    /// The first URI in its certificate's subject alternative names.
    pub uri_san: Option<Vec<u8>>,
    /// The subject of its certificate.
    pub subject: Option<Vec<u8>>,
}

/// Headers in order, one entry for each time that one stands there.
pub type Headers = Vec<(String, Vec<u8>)>;

/// Every value of a header, in order.
fn values<'h>(headers: &'h [(String, Vec<u8>)], name: &str) -> Vec<&'h [u8]> {
    let found = headers.iter().filter(|(found, _)| found == name);
    found.map(|(_, value)| value.as_slice()).collect()
}

/// What can be asked about a request beyond its head; asked only where a rule needs it, since each answer costs a call of the
/// host.
pub trait Surroundings: Debug {
    /// The request's headers, names in lower case.
    fn headers(&self) -> Headers;
    /// The other end of the connection.
    fn peer(&self) -> Peer;
    /// The address, with the port, at which the connection arrived.
    fn local_address(&self) -> Option<Vec<u8>>;
    /// Nanoseconds of a clock that moves on between two requests.
    fn moment_ns(&self) -> u64;
    /// What the metadata of the request's route say under a key of a namespace.
    fn route_metadata(&self, namespace: &str, key: &str) -> Option<Vec<u8>>;
}

/// Surroundings of which nothing is known, for drivers without a connection: tests, fuzzers.
#[derive(Clone, Copy, Debug)]
pub struct NothingKnown;

impl Surroundings for NothingKnown {
    fn headers(&self) -> Headers {
        Headers::new()
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        None
    }

    fn moment_ns(&self) -> u64 {
        0
    }

    fn route_metadata(&self, _namespace: &str, _key: &str) -> Option<Vec<u8>> {
        None
    }
}

/// Who asks, as it is filed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// Empty where it is not known.
    subject: String,
    /// Empty where it is not known.
    peer_addr: String,
    method: &'static str,
}

impl Requester {
    /// Finds who asks; `None` where not even an address is known.
    #[must_use]
    pub fn find(
        source: &IdentitySource,
        headers: &[(String, Vec<u8>)],
        peer: &Peer,
    ) -> Option<Self> {
        let peer_addr = peer.address.as_deref().map(clean).unwrap_or_default();
        let from_header = || {
            // A header that stands twice names two people.
            match values(headers, source.header.as_deref()?).as_slice() {
                [value] => named(value),
                _ => None,
            }
        };
        let from_certificate = || {
            let names = [&peer.uri_san, &peer.subject];
            let mut names = names.into_iter().flatten().filter(|_| source.certificate);
            names.find_map(|name| named(name))
        };
        let (subject, method) = if let Some(subject) = from_header() {
            (subject, "identity_header")
        } else if let Some(subject) = from_certificate() {
            (subject, "tls_client_certificate")
        } else {
            (String::new(), "peer_address")
        };
        let known = !subject.is_empty() || !peer_addr.is_empty();
        known.then_some(Self {
            subject,
            peer_addr,
            method,
        })
    }

    /// Who asks, as JSON; what is not known is left out.
    #[must_use]
    pub fn json(&self) -> String {
        let mut object = Object::new();
        object.text("method", self.method);
        for (name, value) in [("peer_addr", &self.peer_addr), ("subject", &self.subject)] {
            if !value.is_empty() {
                object.text(name, value);
            }
        }
        object.written()
    }
}

fn named(value: &[u8]) -> Option<String> {
    Some(clean(value)).filter(|name| !name.is_empty())
}

/// Text that is safe to look at: valid, without control and direction marks, at most [`limits::IDENTITY_BYTES`].
fn clean(value: &[u8]) -> String {
    let mut text = String::new();
    for letter in String::from_utf8_lossy(value).trim().chars() {
        if text.len().saturating_add(letter.len_utf8()) > limits::IDENTITY_BYTES {
            break;
        }
        if !letter.is_control() && !is_invisible(letter) {
            text.push(letter);
        }
    }
    text
}

/// Characters that change how the text around them looks, or that nobody sees.
#[must_use]
pub const fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Headers that tie the calls of one request together: its trace context and its id. They go along on the calls to the
/// Control Plane, which Envoy does not do by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Correlation(Vec<(&'static str, String)>);

impl Correlation {
    /// Takes what a request carries; a value that stands twice or is no visible text is left out.
    #[must_use]
    pub fn of(headers: &[(String, Vec<u8>)]) -> Self {
        let mut usable = Vec::new();
        for name in CORRELATING {
            if let [value] = values(headers, name).as_slice()
                && let Ok(text) = std::str::from_utf8(value)
                && (1..=limits::CORRELATION_BYTES).contains(&text.len())
                && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            {
                usable.push((name, text.to_owned()));
            }
        }
        Self(usable)
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.0
    }
}

/// W3C Trace Context, B3 in both of its forms, and Envoy's request id.
const CORRELATING: [&str; 9] = [
    "traceparent",
    "tracestate",
    "b3",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-b3-parentspanid",
    "x-b3-sampled",
    "x-b3-flags",
    "x-request-id",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(headers: &[(&str, &[u8])]) -> Headers {
        let owned = |(name, value): &(&str, &[u8])| ((*name).to_owned(), value.to_vec());
        headers.iter().map(owned).collect()
    }

    fn peer() -> Peer {
        Peer {
            address: Some(b"10.0.0.7:4711".to_vec()),
            uri_san: Some(b"spiffe://a/b".to_vec()),
            subject: Some(b"CN=agent".to_vec()),
        }
    }

    fn everything() -> IdentitySource {
        IdentitySource {
            header: Some("x-user".to_owned()),
            certificate: true,
        }
    }

    fn found(source: &IdentitySource, sent: &[(&str, &[u8])], peer: &Peer) -> String {
        let requester = Requester::find(source, &headers(sent), peer);
        requester.expect("somebody").json()
    }

    #[test]
    fn the_header_names_who_asks() {
        assert_eq!(
            found(&everything(), &[("x-user", b" ann\n")], &peer()),
            r#"{"method":"identity_header","peer_addr":"10.0.0.7:4711","subject":"ann"}"#
        );
    }

    #[test]
    fn without_a_usable_header_the_certificate_does() {
        let tables: [&[(&str, &[u8])]; 4] = [
            &[],
            &[("x-user", b"")],
            &[("x-user", b" \t")],
            &[("x-user", b"a"), ("x-user", b"b")],
        ];
        for headers in tables {
            assert_eq!(
                found(&everything(), headers, &peer()),
                r#"{"method":"tls_client_certificate","peer_addr":"10.0.0.7:4711","subject":"spiffe://a/b"}"#
            );
        }
        let mut no_san = peer();
        no_san.uri_san = None;
        assert!(found(&everything(), &[], &no_san).contains(r#""subject":"CN=agent""#));
    }

    #[test]
    fn a_source_that_is_not_configured_is_not_believed() {
        assert_eq!(
            found(&IdentitySource::default(), &[("x-user", b"root")], &peer()),
            r#"{"method":"peer_address","peer_addr":"10.0.0.7:4711"}"#
        );
    }

    #[test]
    fn nobody_is_nobody() {
        assert_eq!(Requester::find(&everything(), &[], &Peer::default()), None);
    }

    #[test]
    fn a_name_is_cut_on_a_letter_and_cleaned() {
        let long: &'static [u8] = Box::leak("ä".repeat(200).into_bytes().into_boxed_slice());
        let text = found(&everything(), &[("x-user", long)], &peer());
        assert!(text.contains(&format!("\"{}\"", "ä".repeat(127))), "{text}");

        let text = found(
            &everything(),
            &[("x-user", "a\u{202e}b\u{200b}c\u{7}\r\nd".as_bytes())],
            &peer(),
        );
        assert!(text.contains("\"abcd\""), "{text}");
    }

    #[test]
    fn correlation_takes_what_is_unambiguous_and_visible() {
        let sent = headers(&[
            ("traceparent", b"00-a-b-01"),
            ("x-request-id", b"r"),
            ("b3", b"1"),
            ("b3", b"2"),
            ("tracestate", b"a\r\nx: y"),
            ("authorization", b"secret"),
        ]);

        assert_eq!(
            Correlation::of(&sent).headers(),
            [
                ("traceparent", "00-a-b-01".to_owned()),
                ("x-request-id", "r".to_owned())
            ]
        );
    }
}
