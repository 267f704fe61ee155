//! The head of a gRPC call: its method, its content type and its deadline. Exact: a spelling that only some servers would
//! take is no method, and the caller refuses it.
//!
//! Source: gRPC over HTTP/2 (PROTOCOL-HTTP2), Requests.

use core::time::Duration;

/// A method, as `/package.Service/Method` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    path: String,
    slash: usize,
}

impl Method {
    /// Reads `:path`: two segments, the first a dotted name and the second a name, without a query or an escape.
    #[must_use]
    pub fn parse(path: &[u8]) -> Option<Self> {
        let path = std::str::from_utf8(path).ok()?;
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        (service.split('.').all(is_name) && is_name(name)).then(|| Self {
            path: path.to_owned(),
            slash: service.len().saturating_add(1),
        })
    }

    /// The path as it was: `/package.Service/Method`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The service's full name: `package.Service`.
    #[must_use]
    pub fn service(&self) -> &str {
        self.path.get(1..self.slash).unwrap_or_default()
    }

    /// The method's name in its service.
    #[must_use]
    pub fn name(&self) -> &str {
        let start = self.slash.saturating_add(1);
        self.path.get(start..).unwrap_or_default()
    }
}

/// A name of the protobuf language: letters, digits and underscores, no digit first.
fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What a request says it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// `application/grpc+json`: messages are JSON.
    Json,
    /// No gRPC.
    NotGrpc,
    /// gRPC whose messages are in a format of the application's own, such as `application/grpc+thrift`.
    Other,
    /// `application/grpc` or `application/grpc+proto`: messages are protobuf.
    Proto,
    /// Begins like gRPC and is not spelled as the specification has it. Some servers take it for gRPC all the same,
    /// so a caller that cannot rule those out refuses it.
    Unclear,
    /// gRPC-Web, in any of its forms: framed alike, but perhaps in base64, and trailers are in the body.
    Web,
}

impl ContentType {
    /// Reads the `content-type` header, letter case and parameters apart.
    #[must_use]
    pub fn parse(header: &[u8]) -> Self {
        const GRPC: &[u8] = b"application/grpc";
        let mut parts = header.split(|byte| *byte == b';');
        let name = parts.next().unwrap_or_default();
        let name = name.trim_ascii().to_ascii_lowercase();
        // Some servers take what follows a `;` for the name of a codec, as in `application/grpc;json`.
        let names_a_codec = parts.any(|part| !part.contains(&b'='));
        if names_a_codec && name.starts_with(GRPC) && !name.starts_with(b"application/grpc-web") {
            return Self::Unclear;
        }
        match name.strip_prefix(GRPC) {
            None => Self::NotGrpc,
            Some(b"" | b"+proto") => Self::Proto,
            Some(b"+json") => Self::Json,
            Some(b"-web" | b"-web-text") => Self::Web,
            Some(rest) if rest.starts_with(b"-web+") || rest.starts_with(b"-web-text+") => {
                Self::Web
            }
            Some([b'+', subtype @ ..]) if !subtype.is_empty() && subtype.iter().all(is_token) => {
                Self::Other
            }
            Some(_) => Self::Unclear,
        }
    }
}

/// A character of a token (RFC 9110, 5.6.2).
fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Reads the `grpc-timeout` header: one to eight digits and a unit. `None` for anything else.
#[must_use]
pub fn timeout(header: &[u8]) -> Option<Duration> {
    let (unit, digits) = header.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let amount: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(amount.saturating_mul(3_600))),
        b'M' => Some(Duration::from_secs(amount.saturating_mul(60))),
        b'S' => Some(Duration::from_secs(amount)),
        b'm' => Some(Duration::from_millis(amount)),
        b'u' => Some(Duration::from_micros(amount)),
        b'n' => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ok_methods() {
        for (path, service, name) in [
            ("/pay.v1.Payments/Transfer", "pay.v1.Payments", "Transfer"),
            ("/Greeter/say_hello2", "Greeter", "say_hello2"),
            ("/_a._b/_c", "_a._b", "_c"),
        ] {
            let method = Method::parse(path.as_bytes()).expect(path);

            assert_eq!(method.path(), path);
            assert_eq!(method.service(), service);
            assert_eq!(method.name(), name);
        }
    }

    #[test]
    fn err_what_is_no_method() {
        for path in [
            "",
            "/",
            "//",
            "/a",
            "/a/",
            "a/b",
            "//b",
            "/a/b/",
            "/a/b/c",
            "/a//b",
            "/a/b?",
            "/a/b?c=d",
            "/a/b#c",
            "/a/%62",
            "/a/b;c",
            "/.a/b",
            "/a./b",
            "/a..c/b",
            "/a/b.c",
            "/1a/b",
            "/a/1b",
            "/a.1/b",
            "/a/b ",
            " /a/b",
            "/a/b\n",
            "/a-b/c",
            "/\u{e4}/b",
            "/a\\b/c",
            "http://h/a/b",
            "*",
        ] {
            assert_eq!(Method::parse(path.as_bytes()), None, "{path:?}");
        }
        assert_eq!(Method::parse(b"/a/\xff"), None);
    }

    #[test]
    fn content_types() {
        let table = [
            ("application/grpc", ContentType::Proto),
            ("Application/GRPC", ContentType::Proto),
            ("application/grpc+proto", ContentType::Proto),
            ("application/grpc+PROTO; charset=utf-8", ContentType::Proto),
            (" application/grpc ;x=y", ContentType::Proto),
            ("application/grpc;json", ContentType::Unclear),
            ("application/grpc+json", ContentType::Json),
            ("application/grpc+json;charset=utf-8", ContentType::Json),
            ("application/grpc+thrift", ContentType::Other),
            ("application/grpc+json+x", ContentType::Other),
            ("application/grpc-web", ContentType::Web),
            ("application/grpc-web+proto", ContentType::Web),
            ("application/grpc-web-text", ContentType::Web),
            ("application/GRPC-Web-Text+proto;a=b", ContentType::Web),
            ("application/grpc+", ContentType::Unclear),
            ("application/grpc+a b", ContentType::Unclear),
            ("application/grpcx", ContentType::Unclear),
            ("application/grpc-webx", ContentType::Unclear),
            ("application/grpc, application/json", ContentType::Unclear),
            ("application/grpc+json, text/plain", ContentType::Unclear),
            ("application/grpc proto", ContentType::Unclear),
            ("application/json", ContentType::NotGrpc),
            ("application/x-grpc", ContentType::NotGrpc),
            ("text/plain; application/grpc", ContentType::NotGrpc),
            ("", ContentType::NotGrpc),
        ];
        for (header, content_type) in table {
            assert_eq!(
                ContentType::parse(header.as_bytes()),
                content_type,
                "{header:?}"
            );
        }
    }

    #[test]
    fn timeouts() {
        for (header, expected) in [
            ("1H", Duration::from_secs(3_600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("6n", Duration::from_nanos(6)),
            ("0S", Duration::ZERO),
            ("00000001S", Duration::from_secs(1)),
            ("99999999H", Duration::from_secs(99_999_999 * 3_600)),
        ] {
            assert_eq!(timeout(header.as_bytes()), Some(expected), "{header}");
        }
        for header in [
            "",
            "S",
            "1",
            "1s",
            "1h",
            "123456789S",
            "-1S",
            "+1S",
            "1.5S",
            " 1S",
            "1S ",
            "1 S",
            "0x1S",
        ] {
            assert_eq!(timeout(header.as_bytes()), None, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..32)) {
            let _ = (Method::parse(&bytes), ContentType::parse(&bytes), timeout(&bytes));
        }
    }
}
