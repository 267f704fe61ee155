//! The head of a request as the gate reads it: bytes, with what makes it unreadable named. Knows no rule.

pub mod mode;
pub mod path;
pub mod query;

use crate::table::Table;
use mode::ModeWish;
use path::PathReading;

/// Names of the headers that a decision may rest on, in lower case. Only these are kept of a request, so that a policy
/// without conditions on headers costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderNames(Table<String, ()>);

impl HeaderNames {
    /// Adds a name in lower case.
    pub fn insert(&mut self, name: &str) {
        self.0.insert(name.to_owned(), ());
    }

    fn contains(&self, name: &str) -> bool {
        !self.0.is_empty() && self.0.contains(name)
    }
}

/// The parts of a request's head that a decision may rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// `:method` as sent.
    pub method: Vec<u8>,
    /// `:path` as sent, path and query; `None` for a CONNECT, which has none.
    pub target: Option<Vec<u8>>,
    /// What the path may mean, worked out once; [`PathReading::Unknown`] where there is none.
    pub reading: PathReading,
    /// `:authority`, or `host`, as sent; empty where the request has none.
    pub authority: Vec<u8>,
    /// Whether the request asks to leave HTTP (`upgrade`, or CONNECT with or without `:protocol`): nothing that
    /// follows could be read.
    pub leaves_http: bool,
    /// The client's wish how a held request is answered.
    pub wish: ModeWish,
    /// Headers that are between the client and the gate, or that only the gate may set: they go no further.
    pub not_for_upstream: Vec<&'static str>,
    /// Values of the wanted headers that the request has, in their order.
    pub headers: Table<String, Vec<Vec<u8>>>,
}

/// Why a head cannot be read as one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// No `:method`. Envoy also gives no header at all where there are more than it can hand over.
    #[error("the request has no method")]
    NoMethod,
    /// No `:path` on a request that is no CONNECT.
    #[error("the request has no path")]
    NoPath,
    /// A pseudo-header that stands twice: two readers could see two requests.
    #[error("the request has a pseudo-header twice")]
    RepeatedPseudoHeader,
}

impl RequestHead {
    /// Reads a head from the whole header map, names in lower case as Envoy hands them over, and keeps the values of
    /// the wanted headers.
    ///
    /// # Errors
    ///
    /// When a pseudo-header that a decision rests on is missing or stands twice. Such a request must be refused.
    pub fn parse<'h>(
        headers: impl Iterator<Item = (&'h str, &'h [u8])>,
        wanted: &HeaderNames,
    ) -> Result<Self, HeadFault> {
        let (mut method, mut target, mut authority) = (None, None, None);
        let mut host: Option<&[u8]> = None;
        let mut upgrade = false;
        let mut wish = ModeWish::default();
        let mut not_for_upstream = Vec::new();
        let mut kept = Table::<String, Vec<Vec<u8>>>::new();
        for (name, value) in headers {
            if wanted.contains(name) {
                kept.change(name.to_owned(), Vec::new, |values| {
                    values.push(value.to_vec())
                });
            }
            let seen_before = match name {
                ":method" => method.replace(value).is_some(),
                ":path" => target.replace(value).is_some(),
                ":authority" => authority.replace(value).is_some(),
                "host" => {
                    host = Some(value);
                    false
                }
                "upgrade" | ":protocol" => {
                    upgrade = true;
                    false
                }
                _ if name.starts_with("x-hoop-") => {
                    if let Some(own) = OWN_HEADERS.into_iter().find(|own| *own == name) {
                        wish.add(name, value);
                        not_for_upstream.push(own);
                    }
                    false
                }
                _ => false,
            };
            if seen_before {
                return Err(HeadFault::RepeatedPseudoHeader);
            }
        }
        let method = method
            .filter(|method| !method.is_empty())
            .ok_or(HeadFault::NoMethod)?;
        let connect = method.eq_ignore_ascii_case(b"CONNECT");
        if target.is_none_or(<[u8]>::is_empty) && !connect {
            return Err(HeadFault::NoPath);
        }
        Ok(Self {
            method: method.to_vec(),
            target: target.map(<[u8]>::to_vec),
            reading: target.map_or(PathReading::Unknown, |target| path::read(path_of(target))),
            authority: authority.or(host).unwrap_or_default().to_vec(),
            leaves_http: upgrade || connect,
            wish,
            not_for_upstream,
            headers: kept,
        })
    }

    /// The values of a wanted header, one for each time that it stands in the request.
    #[must_use]
    pub fn header(&self, name: &str) -> &[Vec<u8>] {
        self.headers
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The query behind the first `?`; `None` without one.
    #[must_use]
    pub fn query(&self) -> Option<&[u8]> {
        let target = self.target.as_deref()?;
        let at = target.iter().position(|byte| *byte == b'?')?;
        target.get(at.saturating_add(1)..)
    }

    /// The path without its query; `None` for a CONNECT without one.
    #[must_use]
    pub fn path(&self) -> Option<&[u8]> {
        self.target.as_deref().map(path_of)
    }
}

/// The mode headers, and those that the gate's answers carry: a client's copy would look like the gate's word.
const OWN_HEADERS: [&str; 7] = [
    mode::HEADERS[0],
    mode::HEADERS[1],
    "x-hoop-approval-id",
    "x-hoop-approval-status",
    "x-hoop-denied",
    "x-hoop-review-id",
    "x-hoop-review-status",
];

fn path_of(target: &[u8]) -> &[u8] {
    target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default()
}

/// The host of an authority for comparison: without port and trailing dot.
///
/// `None` where it is no plain host and port: absent, with user information or escapes, or two joined by a comma (as
/// Envoy hands over a repeated Host). Servers may read another host in it, so a rule about hosts cannot tell.
#[must_use]
pub fn host_of(authority: &[u8]) -> Option<&[u8]> {
    let end_of_name = if authority.starts_with(b"[") {
        authority
            .iter()
            .position(|byte| *byte == b']')
            .map(|at| at.saturating_add(1))
    } else {
        authority.iter().position(|byte| *byte == b':')
    };
    let (name, port) = authority.split_at_checked(end_of_name.unwrap_or(authority.len()))?;
    let port_is_plain = match port.strip_prefix(b":") {
        Some(digits) => digits.iter().all(u8::is_ascii_digit),
        None => port.is_empty(),
    };
    let name = name.strip_suffix(b".").unwrap_or(name);
    let name_is_plain = match name
        .strip_prefix(b"[")
        .and_then(|inner| inner.strip_suffix(b"]"))
    {
        Some(address) => is_canonical_ipv6(address),
        None => is_plain_name(name),
    };
    (port_is_plain && name_is_plain).then_some(name)
}

/// A name of plain labels, or an IPv4 address of four plain numbers. `127.1`, `0x7f.1` and `2130706433` are spellings of an
/// address that servers read in different ways.
fn is_plain_name(name: &[u8]) -> bool {
    let labels = || name.split(|byte| *byte == b'.');
    let in_label = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let all_plain = labels().all(|label| !label.is_empty() && label.iter().all(in_label));
    let looks_numeric = labels()
        .next_back()
        .is_some_and(|label| label.first().is_some_and(u8::is_ascii_digit));
    let is_canonical_ipv4 = || {
        let text = std::str::from_utf8(name).unwrap_or_default();
        text.parse::<core::net::Ipv4Addr>().is_ok()
    };
    all_plain && (!looks_numeric || is_canonical_ipv4())
}

fn is_canonical_ipv6(address: &[u8]) -> bool {
    let text = std::str::from_utf8(address).unwrap_or_default();
    let parsed = text.parse::<core::net::Ipv6Addr>();
    parsed.is_ok_and(|parsed| parsed.to_ipv4_mapped().is_none() && parsed.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(headers: &[(&str, &str)]) -> Result<RequestHead, HeadFault> {
        RequestHead::parse(
            headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
            &HeaderNames(Table::from_iter([("x".to_owned(), ())])),
        )
    }

    #[test]
    fn ok_a_plain_request() {
        let head = parse(&[
            (":authority", "h:80"),
            (":path", "/a?b=/c"),
            (":method", "GET"),
            ("x", "1"),
            ("x", "2"),
            ("y", "3"),
        ])
        .expect("readable");

        assert_eq!(head.path(), Some(&b"/a"[..]));
        assert_eq!(head.query(), Some(&b"b=/c"[..]));
        assert_eq!(head.authority, b"h:80");
        assert_eq!(head.header("x"), [b"1", b"2"]);
        assert_eq!(head.header("y"), [b""; 0]);
        assert!(!head.leaves_http);
    }

    #[test]
    fn ok_a_connect_without_a_path_leaves_http() {
        let head = parse(&[(":authority", "h:443"), (":method", "CONNECT")]).expect("readable");

        assert!(head.leaves_http);
        assert_eq!(head.path(), None);
    }

    #[test]
    fn err_what_cannot_be_one_request() {
        assert_eq!(parse(&[]), Err(HeadFault::NoMethod));
        assert_eq!(
            parse(&[(":method", ""), (":path", "/")]),
            Err(HeadFault::NoMethod)
        );
        assert_eq!(parse(&[(":method", "GET")]), Err(HeadFault::NoPath));
        assert_eq!(
            parse(&[(":method", "GET"), (":path", "")]),
            Err(HeadFault::NoPath)
        );
        assert_eq!(
            parse(&[(":method", "GET"), (":path", "/a"), (":path", "/b")]),
            Err(HeadFault::RepeatedPseudoHeader)
        );
    }

    #[test]
    fn a_host_is_compared_without_port_and_trailing_dot() {
        let table = [
            ("a.com", "a.com"),
            ("A-b_c.com:8080", "A-b_c.com"),
            ("a.com.", "a.com"),
            ("a.com.:80", "a.com"),
            ("a.com:", "a.com"),
            ("[::1]:80", "[::1]"),
            ("127.0.0.1", "127.0.0.1"),
        ];
        for (authority, host) in table {
            assert_eq!(
                host_of(authority.as_bytes()),
                Some(host.as_bytes()),
                "{authority}"
            );
        }
    }

    #[test]
    fn a_host_that_servers_may_read_in_two_ways_is_none() {
        for authority in [
            "",
            ".",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "127.0.0.01",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "a.com..",
            ".a.com",
            "a..com",
            "u@a.com",
            "a.com:@x",
            "a.com:80:90",
            "a.com:x",
            "a%2ecom",
            "a.com%00",
            "a.com;",
            "h,a.com",
            "a.com, h",
            "a.com/",
            "a com",
            "[::1",
            "[::1]x",
            "caf\u{e9}.com",
        ] {
            assert_eq!(host_of(authority.as_bytes()), None, "{authority}");
        }
    }
}
