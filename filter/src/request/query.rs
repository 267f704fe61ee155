//! The query of a target: its pairs, and which of them carry a credential. Knows nothing of what is done with them.

mod form;
mod names;
mod reading;

pub use form::{FormNames, TooManyNames};
pub use reading::{ParameterName, QueryReading, Said};

use super::path::decode_leniently;
use crate::limits;
use crate::table::Table;

/// Names of query parameters whose values are credentials, compared without letter case and separators.
///
/// A wrong no here shows a secret to whoever approves and stores it in the Control Plane; a wrong yes only hides a
/// harmless value, which still takes part in the match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveNames(Table<String, ()>);

/// Parameters that carry a credential in common APIs, folded as [`folded`] does; the first five are named by the
/// contract (2.1).
const BUILT_IN: &[&str] = &[
    "accesstoken",
    "apikey",
    "key",
    "sig",
    "xamzsignature",
    "accesskeyid",
    "appkey",
    "assertion",
    "auth",
    "authkey",
    "authorization",
    "awsaccesskeyid",
    "bearer",
    "clientassertion",
    "codeverifier",
    "connectsid",
    "cookie",
    "cvv",
    "encryptionkey",
    "hmac",
    "jsessionid",
    "jwt",
    "mac",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "pat",
    "phpsessid",
    "pin",
    "pw",
    "pwd",
    "samlrequest",
    "samlresponse",
    "sas",
    "session",
    "sessionid",
    "sessionkey",
    "sid",
    "sign",
    "subscriptionkey",
    "ticket",
];

/// Words that make any name a credential's, wherever they stand in it: `refresh_token`, `clientSecret2`,
/// `password_confirmation`. A page token that is hidden with them still takes part in the match.
const WORDS: &[&str] = &[
    "accesskey",
    "apikey",
    "credential",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signature",
    "signingkey",
    "subscriptionkey",
    "token",
];

impl SensitiveNames {
    /// The built-in names and the operator's own.
    #[must_use]
    pub fn with(more: &[&str]) -> Self {
        let mut names = Table::new();
        for name in BUILT_IN {
            names.insert((*name).to_owned(), ());
        }
        for name in more {
            names.insert(folded(name.as_bytes()), ());
        }
        Self(names)
    }

    /// Whether a parameter carries a credential: by its name, or by any part of it that brackets or other signs set apart
    /// (`user[password]`, `a%26token`).
    #[must_use]
    pub fn contains(&self, spelled: &[u8]) -> bool {
        let name = decoded(spelled);
        let is_letter = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b' ' | b'+')
        };
        self.is_sensitive(&folded(&name))
            || name
                .split(|byte| !is_letter(byte))
                .any(|part| self.is_sensitive(&folded(part)))
    }

    /// Whether a value itself holds a named credential, as a nested URL or JSON text does.
    #[must_use]
    pub fn value_names_one(&self, spelled: &[u8]) -> bool {
        let value = decoded(spelled);
        let mut names = value.split(|byte| matches!(byte, b'=' | b':'));
        // What stands behind the last sign is a value and names nothing.
        let last = names.next_back();
        last.is_some()
            && names.any(|before| {
                let name = before
                    .rsplit(|byte| matches!(byte, b'&' | b';' | b'?' | b'#' | b',' | b'{'))
                    .next();
                name.is_some_and(|name| self.contains(name))
            })
    }

    fn is_sensitive(&self, folded: &str) -> bool {
        let without_number = folded.trim_end_matches(|character: char| character.is_ascii_digit());
        self.0.contains(folded)
            || self.0.contains(without_number)
            || WORDS.iter().any(|word| {
                let mut parts = folded.as_bytes().windows(word.len());
                parts.any(|part| part == word.as_bytes())
            })
    }
}

fn decoded(spelled: &[u8]) -> Vec<u8> {
    let mut text = spelled.to_vec();
    for _ in 0..limits::DECODING_ROUNDS {
        let next = decode_leniently(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// One form for the many spellings of a name: `X-Amz-Signature`, `xAmzSignature`, `x_amz+signature`.
fn folded(name: &[u8]) -> String {
    name.iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(|byte| char::from(byte.to_ascii_lowercase()))
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
        let names = SensitiveNames::with(&["Tenant-Code"]);
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
            "password1",
            "password_confirmation",
            "id_token_hint",
            "SAMLResponse",
            "api_key_2",
            "(token)",
            "%22token%22",
            "token%E2%80%8B",
            "access_token%3Ax",
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
        ] {
            assert!(!names.contains(spelled.as_bytes()), "{spelled}");
        }
    }

    #[test]
    fn a_value_that_names_a_credential_is_one() {
        let names = SensitiveNames::with(&[]);
        for value in [
            "https://x/cb?access_token=S",
            "a%26access_token%3DS",
            "{\"password\":\"S\"}",
            "x;sig=S",
        ] {
            assert!(names.value_names_one(value.as_bytes()), "{value}");
        }
        for value in ["", "S", "https://x/y", "a=b", "12:30", "token"] {
            assert!(!names.value_names_one(value.as_bytes()), "{value}");
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
