//! Owns the two tokens: how they are made, where they lie on the disk, and that no log ever shows one. `Plane::open`
//! makes them, the command line reads them. It must not know the database or the wire.

use std::{
    fmt,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

use crate::limits::{TOKEN_BODY_CHARS, TOKEN_FILE_MAX_BYTES};

/// A secret that opens one of the two APIs. It prints as `[redacted]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The secret itself, for the header that carries it and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the plane keeps and compares.
    pub(crate) fn digest(&self) -> TokenDigest {
        TokenDigest::of(self.0.as_bytes())
    }

    /// 256 bits of the operating system's randomness. Three version 4 UUIDs carry 366 random bits, and the hash
    /// spreads them evenly.
    fn random(kind: TokenKind) -> Self {
        let mut mixed = Sha256::new();
        for _ in 0..3 {
            mixed.update(Uuid::new_v4().as_bytes());
        }
        Self(format!("{}{}", kind.prefix(), hex(&mixed.finalize())))
    }

    fn parse(text: &str, kind: TokenKind) -> Option<Self> {
        let text = text.trim_end_matches(['\n', '\r']);
        let body = text.strip_prefix(kind.prefix())?;
        let plain = body
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        (plain && TOKEN_BODY_CHARS.contains(&body.len())).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}

/// Whose token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Opens the people's API: deciding.
    Approver,
    /// Opens the Sidecar API: filing, claiming, reading.
    Sidecar,
}

impl TokenKind {
    /// The name of its file in the data directory.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Approver => "approver-token",
            Self::Sidecar => "sidecar-token",
        }
    }

    /// What its row in the database is called.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Approver => "approver",
            Self::Sidecar => "sidecar",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Approver => "hap_",
            Self::Sidecar => "hsc_",
        }
    }
}

/// The SHA-256 of a token: all that the database knows of it.
#[derive(Clone)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of what a caller presented.
    pub(crate) fn of(presented: &[u8]) -> Self {
        Self(Sha256::digest(presented).into())
    }

    pub(crate) fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Compares in constant time. Even without that, a caller learns at most how far two digests agree, and cannot
    /// choose the digest of what it presents; a wrong yes would hand over the whole API.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        let different = self
            .0
            .iter()
            .zip(other.0.iter())
            .fold(0_u8, |seen, (a, b)| seen | (a ^ b));
        std::hint::black_box(different) == 0
    }
}

/// Reads a token that `Plane::open` left in the data directory.
///
/// # Errors
///
/// When the file is missing, cannot be read, is open to other users, or holds no token of this kind.
pub fn read(data_dir: &Path, kind: TokenKind) -> Result<Token, TokenError> {
    let path = data_dir.join(kind.file_name());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return Err(TokenError::Missing { path });
        }
        Err(cause) => return Err(TokenError::Read { path, cause }),
    };
    let mut text = String::new();
    let unread = |cause| TokenError::Read {
        path: path.clone(),
        cause,
    };
    // The opened file is asked, not its name, so that it cannot be exchanged between the two steps.
    let mode = file.metadata().map_err(unread)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(TokenError::OpenToOthers {
            path,
            mode: mode & 0o7777,
        });
    }
    let read = file.take(TOKEN_FILE_MAX_BYTES).read_to_string(&mut text);
    match read {
        Ok(_) => Token::parse(&text, kind).ok_or(TokenError::Malformed {
            path,
            prefix: kind.prefix(),
        }),
        Err(cause) if cause.kind() == io::ErrorKind::InvalidData => Err(TokenError::Malformed {
            path,
            prefix: kind.prefix(),
        }),
        Err(cause) => Err(TokenError::Read { path, cause }),
    }
}

/// Reads the token, or makes one when its file is not there. `true` says that it was made just now.
pub(crate) fn read_or_create(
    data_dir: &Path,
    kind: TokenKind,
) -> Result<(Token, bool), TokenError> {
    match read(data_dir, kind) {
        Ok(token) => Ok((token, false)),
        Err(TokenError::Missing { path }) => {
            let token = Token::random(kind);
            write_whole(data_dir, &path, token.expose())
                .map_err(|cause| TokenError::Write { path, cause })?;
            Ok((token, true))
        }
        Err(
            other @ (TokenError::Malformed { .. }
            | TokenError::OpenToOthers { .. }
            | TokenError::Read { .. }
            | TokenError::Write { .. }),
        ) => Err(other),
    }
}

/// Creates the data directory, for its owner only. One that is there is left as it is: every file in it is private
/// by itself.
pub(crate) fn create_data_dir(data_dir: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
}

/// A file that is there whole or not at all, after a crash too: written aside, private from its first byte, synced,
/// then renamed, and the rename synced.
fn write_whole(data_dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    let aside = data_dir.join(format!(".token-{}", Uuid::new_v4().simple()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&aside, path))
        .and_then(|()| File::open(data_dir)?.sync_all());
    if written.is_err() {
        // The first failure is the one to report; a file left aside is private and harmless.
        let _ = std::fs::remove_file(&aside);
    }
    written
}

/// Why a token cannot be had. The operator mends it; no token was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Not a token of this kind.
    #[error(
        "{} holds no token; allowed: {prefix} and 32 to 256 letters, digits, - or _\nhint: delete the file, and the \
         next start of the plane makes a new token",
        .path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// How a token of this kind begins.
        prefix: &'static str,
    },
    /// The plane has not been started here, or the file was deleted.
    #[error(
        "{} does not exist\nhint: start the plane on this data directory once; it makes the token",
        .path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Group or others may read or write it.
    #[error(
        "{} has mode {mode:04o}, so other users could read or change the token; allowed: 0600\nhint: run `chmod 600 \
         {}`, or delete the file to get a new token if someone may have read it",
        .path.display(), .path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system did not let us read it.
    #[error("cannot read {}\nhint: run as the user who started the plane", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The system did not let us write it.
    #[error("cannot write {}\nhint: check the directory's owner, its permissions and the free space", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The permission bits of everyone but the owner.
pub(crate) const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_prints_nothing_of_itself() {
        let token = Token::random(TokenKind::Sidecar);
        assert_eq!(format!("{token} {token:?}"), "[redacted] [redacted]");
    }

    #[test]
    fn two_tokens_differ_and_name_their_kind() {
        let sidecar = Token::random(TokenKind::Sidecar);
        let approver = Token::random(TokenKind::Approver);
        assert!(sidecar.expose().starts_with("hsc_") && sidecar.expose().len() == 68);
        assert!(approver.expose().starts_with("hap_") && approver.expose().len() == 68);
        assert!(!sidecar.digest().matches(&approver.digest()));
        assert!(
            sidecar
                .digest()
                .matches(&TokenDigest::of(sidecar.expose().as_bytes()))
        );
    }

    #[test]
    fn digests_that_differ_in_any_one_bit_do_not_match() {
        let digest = TokenDigest::of(b"token");
        for bit in 0..256_usize {
            let mut other = digest.clone();
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!digest.matches(&other), "bit {bit}");
        }
    }

    #[test]
    fn what_is_no_token_is_not_read_as_one() {
        let body = "a".repeat(32);
        assert!(Token::parse(&format!("hsc_{body}\n"), TokenKind::Sidecar).is_some());
        for text in [
            String::new(),
            "hsc_".to_owned(),
            format!("hap_{body}"),
            format!("hsc_{}", "a".repeat(31)),
            format!("hsc_{}", "a".repeat(257)),
            format!("hsc_{body} {body}"),
            format!(" hsc_{body}"),
        ] {
            assert!(
                Token::parse(&text, TokenKind::Sidecar).is_none(),
                "{text:?}"
            );
        }
    }
}
