//! Query credentials: shown to nobody, bound all the same. The value of a credential-looking parameter becomes
//! `[redacted:<16 hex>]`, the hex being a keyed digest of the value, so that two secrets never share an approval and
//! nobody can guess a short secret from its digest without the key.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::request::query::{SensitiveNames, parameters};
use crate::secret::Secret;

/// A credential stands in the query and there is no key to bind it with. Such a request must be refused: without the
/// digest one approval would release every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a query parameter carries a credential, and there is no key to bind it to the approval")]
pub struct RedactionKeyMissing;

/// The target with every credential in its query replaced; everything else byte for byte as sent.
///
/// # Errors
///
/// When there is something to redact and no key.
pub fn redacted_target(
    target: &[u8],
    sensitive: &SensitiveNames,
    key: Option<&Secret>,
) -> Result<Vec<u8>, RedactionKeyMissing> {
    let Some(question_mark) = target.iter().position(|byte| *byte == b'?') else {
        return Ok(target.to_vec());
    };
    // Keyed once: setting the key up costs more than the digest of a short value.
    let keyed = key.and_then(|key| Keyed::new_from_slice(key.expose().as_bytes()).ok());
    let (path, query) = target.split_at(question_mark.saturating_add(1));
    let mut redacted = path.to_vec();
    for (parameter, separator) in parameters(query) {
        // An encoded `=` may stand in the name, and the credential behind it.
        if sensitive.value_names_one(parameter.name) || is_forged(parameter.name) {
            redacted.extend(placeholder(parameter.name, keyed.as_ref())?);
        } else {
            redacted.extend_from_slice(parameter.name);
        }
        if let Some(value) = parameter.value {
            redacted.push(b'=');
            let hides_one = || {
                sensitive.contains(parameter.name)
                    || sensitive.value_names_one(value)
                    || is_forged(value)
            };
            if !value.is_empty() && hides_one() {
                redacted.extend(placeholder(value, keyed.as_ref())?);
            } else {
                redacted.extend_from_slice(value);
            }
        }
        redacted.extend(separator);
    }
    Ok(redacted)
}

/// What looks like a placeholder is replaced too: sent literally it would otherwise share the approval of the secret
/// whose digest it shows.
fn is_forged(piece: &[u8]) -> bool {
    piece
        .windows(PLACEHOLDER.len())
        .any(|window| window == PLACEHOLDER)
}

const PLACEHOLDER: &[u8] = b"[redacted:";

type Keyed = Hmac<Sha256>;

fn placeholder(value: &[u8], keyed: Option<&Keyed>) -> Result<Vec<u8>, RedactionKeyMissing> {
    let mut mac = keyed.ok_or(RedactionKeyMissing)?.clone();
    mac.update(value);
    let digest = mac.finalize().into_bytes();
    let hex: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(format!("[redacted:{hex}]").into_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redact(target: &str) -> String {
        let key = Secret::new("hsc_key".to_owned());
        let redacted = redacted_target(target.as_bytes(), &SensitiveNames::with(&[]), Some(&key))
            .expect("a key is there");
        String::from_utf8(redacted).expect("text")
    }

    #[test]
    fn a_credential_becomes_a_digest_and_the_rest_stays() {
        // The digest is HMAC-SHA-256("hsc_key", "A"), worked out with Python's hmac module.
        assert_eq!(
            redact("/a?x=1&access_token=A&y"),
            "/a?x=1&access_token=[redacted:0ef84808f8ed2f3b]&y"
        );
        assert_eq!(redact("/a?x=%zz&&y=&#;z"), "/a?x=%zz&&y=&#;z");
        assert_eq!(redact("/a?key="), "/a?key=");
        assert_eq!(redact("/a?"), "/a?");
        assert_eq!(redact("/key=1"), "/key=1");
    }

    #[test]
    fn a_credential_behind_an_encoded_equals_sign_is_hidden_with_its_name() {
        let redacted = redact("/a?b&access_token%3Dverysecret&c");

        assert!(
            redacted.starts_with("/a?b&[redacted:") && redacted.ends_with("]&c"),
            "{redacted}"
        );
    }

    #[test]
    fn a_placeholder_cannot_be_forged() {
        for target in [
            "/a?xtoken%3D",
            "/a?next=https://x/cb?access_token=S",
            "/a?token%3Dx=1",
            "/a?key=S",
        ] {
            let real = redact(target);

            assert_ne!(redact(&real), real, "{target}");
        }
    }

    #[test]
    fn a_credential_within_a_name_is_hidden() {
        for target in [
            "/a?access_token%3Dverysecret==",
            "/a?access_token%3Dverysecret=",
            "/a?x%26access_token%3Dverysecret=1",
            "/a?token:verysecret=1",
            "/a?{\"token\":\"verysecret\"}=",
        ] {
            assert!(!redact(target).contains("verysecret"), "{target}");
        }
    }

    #[test]
    fn a_credential_within_a_value_is_hidden() {
        assert!(!redact("/a?next=https://x/cb?access_token=verysecret").contains("verysecret"));
    }

    #[test]
    fn two_secrets_never_share_a_statement() {
        assert_ne!(redact("/a?sig=A"), redact("/a?sig=B"));
        assert_eq!(redact("/a?sig=A"), redact("/a?sig=A"));
    }

    #[test]
    fn without_a_key_a_credential_is_refused_and_anything_else_is_not() {
        let names = SensitiveNames::with(&[]);

        assert_eq!(
            redacted_target(b"/a?key=1", &names, None),
            Err(RedactionKeyMissing)
        );
        assert_eq!(
            redacted_target(b"/a?page=1", &names, None),
            Ok(b"/a?page=1".to_vec())
        );
    }

    proptest! {
        #[test]
        fn no_credential_survives(value in "[a-zA-Z0-9]{12,24}", before in "[a-z=&;?%]{0,12}", after in "[a-z=&;]{0,12}") {
            let redacted = redact(&format!("/p?{before}&token={value}&{after}"));

            prop_assert!(!redacted.contains(&value));
        }

        #[test]
        fn a_query_without_credentials_stays_byte_for_byte(query in "[b-jl-z0-9=&;%#?/+]{0,40}") {
            let target = format!("/p?{query}");
            let names = SensitiveNames::with(&[]);
            let mut all = parameters(query.as_bytes());
            let holds_one = all.any(|(parameter, _)| {
                let parts = [Some(parameter.name), parameter.value];
                names.contains(parameter.name)
                    || parts.into_iter().flatten().any(|part| names.value_names_one(part))
            });
            prop_assume!(!holds_one);

            prop_assert_eq!(redact(&target), target);
        }
    }
}
