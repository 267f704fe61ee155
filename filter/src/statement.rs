//! The statement: the exact bytes that a person approves and that must come again to be released.
//!
//! HTTP (contract 2.1): the upper-cased method, a space, the target as sent; then, where the body is not empty, two
//! line feeds and the body's bytes. No header and no host takes part. gRPC (contract 2.2): the method's path, a line feed and the
//! message as text. Takes what it needs as arguments.

mod redact;

use std::fmt;

use sha2::{Digest, Sha256};

pub use redact::{RedactionKeyMissing, redacted_target};

/// The bytes that are filed. They never print: a statement may hold anything that a client sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Statement(Vec<u8>);

impl Statement {
    /// The statement of an HTTP request, from its method, its target (query credentials already redacted) and the
    /// bytes of its body.
    #[must_use]
    pub fn http(method: &[u8], target: &[u8], body: &[u8]) -> Self {
        let mut bytes = method.to_ascii_uppercase();
        bytes.push(b' ');
        bytes.extend_from_slice(target);
        if !body.is_empty() {
            bytes.extend_from_slice(b"\n\n");
            bytes.extend_from_slice(body);
        }
        Self(bytes)
    }

    /// The statement of one message of a gRPC call (contract 2.2), from the method's path and the message as text; without a
    /// message, the path alone. A message that is no protobuf has its content type in between: the same text may mean another
    /// message there.
    #[must_use]
    pub fn grpc(path: &str, content_type: Option<&str>, text: Option<&str>) -> Self {
        let mut bytes = path.as_bytes().to_vec();
        if let Some(content_type) = content_type {
            bytes.extend_from_slice(b"\ncontent-type: ");
            bytes.extend_from_slice(content_type.as_bytes());
        }
        if let Some(text) = text {
            bytes.push(b'\n');
            bytes.extend_from_slice(text.as_bytes());
        }
        Self(bytes)
    }

    /// What tells statements apart in less room than they take.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }

    /// The bytes to file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[redacted statement of {} bytes]", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_statement_is_the_request_line_and_the_body() {
        let table: [(&str, &str, &[u8], &[u8]); 5] = [
            ("DELETE", "/users/1", b"", b"DELETE /users/1"),
            (
                "POST",
                "/transfers",
                b"{\"amount\":100}",
                b"POST /transfers\n\n{\"amount\":100}",
            ),
            (
                "post",
                "/a?b=%zz&",
                b"\x00\xff\r\n",
                b"POST /a?b=%zz&\n\n\x00\xff\r\n",
            ),
            ("OPTIONS", "*", b"", b"OPTIONS *"),
            ("PUT", "/a?", b"\n", b"PUT /a?\n\n\n"),
        ];
        for (method, target, body, bytes) in table {
            assert_eq!(
                Statement::http(method.as_bytes(), target.as_bytes(), body).bytes(),
                bytes
            );
        }
    }

    #[test]
    fn a_statement_never_prints() {
        let statement = Statement::http(b"POST", b"/secret", b"body");

        assert_eq!(format!("{statement:?}"), "[redacted statement of 18 bytes]");
    }

    proptest! {
        /// The target holds no line feed (Envoy refuses one), so the first two end it: no two requests share bytes.
        #[test]
        fn different_requests_have_different_statements(
            left in ("[A-Z]{1,5}", "/[ -~]{0,8}", proptest::collection::vec(any::<u8>(), 0..8)),
            right in ("[A-Z]{1,5}", "/[!-~]{0,8}", proptest::collection::vec(any::<u8>(), 0..8)),
        ) {
            let of = |(method, target, body): &(String, String, Vec<u8>)| {
                Statement::http(method.as_bytes(), target.as_bytes(), body)
            };
            prop_assert_eq!(of(&left) == of(&right), left == right);
        }
    }
}
