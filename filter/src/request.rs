//! The head of a request as the gate reads it: bytes, with what makes it unreadable named. Knows no rule.

pub mod path;
pub mod query;

use path::PathReading;

/// The parts of a request's head that a decision may rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// `:method` as sent.
    pub method: Vec<u8>,
    /// `:path` as sent, path and query; `None` for a CONNECT, which has none.
    pub target: Option<Vec<u8>>,
    /// What the path may mean, worked out once; [`PathReading::Unbounded`] where there is none.
    pub reading: PathReading,
    /// `:authority`, or `host`, as sent; empty where the request has none.
    pub authority: Vec<u8>,
    /// Whether the request asks to leave HTTP (`upgrade`, or CONNECT with or without `:protocol`): nothing that
    /// follows could be read.
    pub leaves_http: bool,
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
    /// Reads a head from the whole header map, names in lower case as Envoy hands them over.
    ///
    /// # Errors
    ///
    /// When a pseudo-header that a decision rests on is missing or stands twice. Such a request must be refused.
    pub fn parse<'h>(
        headers: impl Iterator<Item = (&'h str, &'h [u8])>,
    ) -> Result<Self, HeadFault> {
        let (mut method, mut target, mut authority) = (None, None, None);
        let mut host: Option<&[u8]> = None;
        let mut upgrade = false;
        for (name, value) in headers {
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
            reading: target.map_or(PathReading::Unbounded, |target| path::read(path_of(target))),
            authority: authority.or(host).unwrap_or_default().to_vec(),
            leaves_http: upgrade || connect,
        })
    }

    /// The path without its query; `None` for a CONNECT without one.
    #[must_use]
    pub fn path(&self) -> Option<&[u8]> {
        self.target.as_deref().map(path_of)
    }
}

fn path_of(target: &[u8]) -> &[u8] {
    target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default()
}

/// The host of an authority for comparison: without user information, port and trailing dot.
#[must_use]
pub fn host_of(authority: &[u8]) -> &[u8] {
    let host = authority
        .rsplit(|byte| *byte == b'@')
        .next()
        .unwrap_or_default();
    let end_of_name = if host.first() == Some(&b'[') {
        host.iter()
            .position(|byte| *byte == b']')
            .map(|at| at.saturating_add(1))
    } else {
        host.iter().position(|byte| *byte == b':')
    };
    let name = end_of_name.and_then(|end| host.get(..end)).unwrap_or(host);
    name.strip_suffix(b".").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(headers: &[(&str, &str)]) -> Result<RequestHead, HeadFault> {
        RequestHead::parse(
            headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
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
        ])
        .expect("readable");

        assert_eq!(head.path(), Some(&b"/a"[..]));
        assert_eq!(head.authority, b"h:80");
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
    fn a_host_is_compared_without_port_user_and_trailing_dot() {
        let table = [
            ("a.com", "a.com"),
            ("a.com:8080", "a.com"),
            ("a.com.", "a.com"),
            ("a.com.:80", "a.com"),
            ("u:p@a.com:80", "a.com"),
            ("[::1]:80", "[::1]"),
            ("", ""),
        ];
        for (authority, host) in table {
            assert_eq!(
                host_of(authority.as_bytes()),
                host.as_bytes(),
                "{authority}"
            );
        }
    }
}
