//! The query of a target: its pairs, and which of them carry a credential. Knows nothing of what is done with them.

use std::collections::BTreeSet;

use super::path::decode_leniently;
use crate::limits;

/// Names of query parameters whose values are credentials, compared without letter case and separators.
///
/// A wrong no here shows a secret to whoever approves and stores it in the Control Plane; a wrong yes only hides a
/// harmless value, which still takes part in the match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveNames(BTreeSet<String>);

/// Parameters that carry a credential in common APIs, folded as [`folded`] does; the first five are named by the
/// contract (2.1).
const BUILT_IN: &[&str] = &[
    "accesstoken",
    "apikey",
    "key",
    "sig",
    "xamzsignature",
    "accesskeyid",
    "assertion",
    "auth",
    "authkey",
    "authorization",
    "awsaccesskeyid",
    "bearer",
    "clientassertion",
    "codeverifier",
    "hmac",
    "jsessionid",
    "jwt",
    "otp",
    "pass",
    "passphrase",
    "passwd",
    "phpsessid",
    "pin",
    "pwd",
    "session",
    "sessionid",
    "sid",
    "subscriptionkey",
];

/// Endings that make any name a credential's: `refresh_token`, `clientSecret`, `X-Goog-Signature`. A page token that
/// is hidden with them still takes part in the match.
const ENDINGS: &[&str] = &[
    "accesskey",
    "apikey",
    "credential",
    "credentials",
    "passphrase",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "securitytoken",
    "signature",
    "signingkey",
    "subscriptionkey",
    "token",
    "tokens",
];

impl SensitiveNames {
    /// The built-in names and the operator's own.
    #[must_use]
    pub fn with(more: &[String]) -> Self {
        let built_in = BUILT_IN.iter().map(|name| (*name).to_owned());
        Self(
            built_in
                .chain(more.iter().map(|name| folded(name.as_bytes())))
                .collect(),
        )
    }

    /// Whether a parameter of this name, as spelled in the query, carries a credential: by the name itself or by any part
    /// of it that brackets or encoded separators set apart (`user[password]`, `a%26token`).
    #[must_use]
    pub fn contains(&self, spelled: &[u8]) -> bool {
        let mut name = spelled.to_vec();
        for _ in 0..limits::DECODING_ROUNDS {
            let decoded = decode_leniently(&name);
            if decoded == name {
                break;
            }
            name = decoded;
        }
        let separates = |byte: &u8| matches!(byte, b'[' | b']' | b'&' | b';' | b'=' | b'?');
        self.is_sensitive(&folded(&name))
            || name
                .split(separates)
                .any(|part| self.is_sensitive(&folded(part)))
    }

    fn is_sensitive(&self, folded: &str) -> bool {
        self.0.contains(folded) || ENDINGS.iter().any(|ending| folded.ends_with(ending))
    }
}

/// One form for the many spellings of a name: `X-Amz-Signature`, `xAmzSignature`, `x_amz+signature`.
fn folded(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .chars()
        .filter(|character| {
            !character.is_control() && !matches!(character, '_' | '-' | '.' | '+' | ' ')
        })
        .map(|character| character.to_ascii_lowercase())
        .collect()
}

/// One parameter of a query, as spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'q> {
    /// What stands before the first `=`.
    pub name: &'q [u8],
    /// What stands behind it; `None` without a `=`.
    pub value: Option<&'q [u8]>,
}

/// The parameters of a query in order, with the separator that follows each. `;` separates too: old servers split
/// there, and a secret must not hide behind it.
pub fn parameters(query: &[u8]) -> impl Iterator<Item = (Parameter<'_>, Option<u8>)> {
    query
        .split_inclusive(|byte| matches!(byte, b'&' | b';'))
        .map(|piece| {
            let (text, separator) = match piece.split_last() {
                Some((last @ (b'&' | b';'), text)) => (text, Some(*last)),
                _ => (piece, None),
            };
            let equals = text.iter().position(|byte| *byte == b'=');
            let (name, value) = match equals.and_then(|at| text.split_at_checked(at)) {
                Some((name, rest)) => (name, rest.get(1..)),
                None => (text, None),
            };
            (Parameter { name, value }, separator)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_known_by_any_spelling_of_its_name() {
        let names = SensitiveNames::with(&["Tenant-Code".to_owned()]);
        for spelled in [
            "access_token",
            "ACCESS_TOKEN",
            "access-token",
            "accessToken",
            "access+token",
            "access%20token",
            "acc%65ss_token",
            "access%5Ftoken",
            "access%25255Ftoken",
            "access_token%00",
            "?access_token",
            "X-Amz-Signature",
            "X-Goog-Credential",
            "key",
            "key[]",
            "token[0]",
            "token%5b0%5d",
            "auth[token]",
            "user[password]",
            "access[token",
            "sig",
            "clientSecret",
            "oauth_token",
            "private_token",
            "PHPSESSID",
            "AWSAccessKeyId",
            "ocp-apim-subscription-key",
            "x%26access_token",
            "access_token%3Dx",
            "tenant_code",
            "tenantCode",
        ] {
            assert!(names.contains(spelled.as_bytes()), "{spelled}");
        }
        for spelled in [
            "monkey",
            "keys",
            "page",
            "",
            "signal",
            "passenger",
            "code",
            "amount[value]",
            "tokenizer",
        ] {
            assert!(!names.contains(spelled.as_bytes()), "{spelled}");
        }
    }

    #[test]
    fn parameters_are_cut_where_servers_cut_them() {
        let found: Vec<_> = parameters(b"a=1&b;c=x=y&")
            .map(|(parameter, separator)| (parameter.name, parameter.value, separator))
            .collect();

        assert_eq!(
            found,
            [
                (&b"a"[..], Some(&b"1"[..]), Some(b'&')),
                (b"b", None, Some(b';')),
                (b"c", Some(b"x=y"), Some(b'&')),
            ]
        );
    }
}
