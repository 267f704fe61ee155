//! The query of a target: its pairs, and which of them carry a credential. Knows nothing of what is done with them.

use std::collections::BTreeSet;

use super::path::decode_leniently;

/// Names of query parameters whose values are credentials, compared without letter case and with `-` as `_`.
///
/// A wrong no here shows a secret to whoever approves and stores it in the Control Plane; a wrong yes only hides a
/// harmless value, which still takes part in the match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveNames(BTreeSet<String>);

/// Parameters that carry a credential in common APIs; the first five are named by the contract (2.1).
const BUILT_IN: &[&str] = &[
    "access_token",
    "api_key",
    "key",
    "sig",
    "x_amz_signature",
    "access_key",
    "apikey",
    "api_token",
    "assertion",
    "auth",
    "auth_token",
    "authorization",
    "client_assertion",
    "client_secret",
    "code_verifier",
    "credential",
    "credentials",
    "hmac",
    "id_token",
    "jwt",
    "otp",
    "passwd",
    "password",
    "private_key",
    "pwd",
    "refresh_token",
    "secret",
    "secret_key",
    "session",
    "session_id",
    "sessionid",
    "signature",
    "subscription_key",
    "token",
    "x_amz_credential",
    "x_amz_security_token",
    "x_api_key",
    "x_goog_credential",
    "x_goog_signature",
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

    /// Whether a parameter of this name, as spelled in the query, carries a credential.
    #[must_use]
    pub fn contains(&self, spelled: &[u8]) -> bool {
        let once = decode_leniently(spelled);
        let twice = decode_leniently(&once);
        [&once, &twice]
            .into_iter()
            .any(|name| self.0.contains(&folded(name)))
    }
}

/// One form for the many spellings of a name: `X-Amz-Signature`, `x_amz_signature`, ` key `, `key[]`.
fn folded(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .replace('+', " ")
        .trim()
        .trim_end_matches("[]")
        .chars()
        .map(|character| {
            if matches!(character, '-' | '.') {
                '_'
            } else {
                character.to_ascii_lowercase()
            }
        })
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
        let names = SensitiveNames::with(&["Tenant-Pass".to_owned()]);
        for spelled in [
            "access_token",
            "ACCESS_TOKEN",
            "access-token",
            "acc%65ss_token",
            "access%5Ftoken",
            "access%255Ftoken",
            "X-Amz-Signature",
            "key",
            "key[]",
            "sig",
            "tenant_pass",
            "+key",
        ] {
            assert!(names.contains(spelled.as_bytes()), "{spelled}");
        }
        for spelled in ["monkey", "keys", "page", "", "signal"] {
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
