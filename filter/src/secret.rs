//! What must never print: tokens, keys, and the statements that people approve. Knows nothing of what they are for.

use std::fmt;

/// A credential or key. Opened only for the credential header of a Control Plane call and for the keyed digest of a
/// redacted query value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential.
    #[must_use]
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The credential itself. Every call of this is a place where it could leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("hsc_top".to_owned());

        let printed = format!("{secret} {secret:?} {secret:#?}");

        assert_eq!(printed, "[redacted] [redacted] [redacted]");
    }
}
