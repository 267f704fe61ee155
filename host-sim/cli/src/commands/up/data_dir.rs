//! The claim of one `up` on its data directory: Envoy's files in it have one name each, so a second `up` would overwrite the
//! first one's and ask the first one's Envoy to stop.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::failure::Failure;

/// Holds the claim until it is dropped, or until the system ends this process in whatever way.
#[derive(Debug)]
pub(super) struct InUse {
    /// The system's lock lives as long as the opened file.
    _lock: File,
}

impl InUse {
    /// Claims `data_dir`, which is made when missing. Fails at once when another `up` has it.
    ///
    /// The lock file stays behind: deleting it would let a third `up` claim a new one beside the second.
    pub(super) fn claim(data_dir: &Path) -> Result<InUse, Failure> {
        let path = data_dir.join(LOCK);
        let opened = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)
            .and_then(|()| {
                OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .mode(0o600)
                    .open(&path)
            });
        let unusable = |error| {
            Failure::user(
                format_args!("cannot lock {}: {error}", path.display()),
                "give a directory that you may write to with `--data-dir`",
            )
        };
        let file = opened.map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(InUse { _lock: file }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
            Err(TryLockError::WouldBlock) => Err(Failure::user(
                format_args!(
                    "the data directory {} is in use by another `host-sim up`",
                    data_dir.display()
                ),
                "stop that one, or give this one its own `--data-dir`, `--listen`, `--plane-listen`, `--upstream-listen`, \
                 `--admin-listen`, `--grpc-listen`, `--ledger-listen`, `--grpc-admin-listen`, `--mcp-listen` and \
                 `--mcp-admin-listen`",
            )),
        }
    }
}

const LOCK: &str = "up.lock";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::TestDir;

    #[test]
    fn a_data_directory_has_one_up_at_a_time() {
        let dir = TestDir::new("up-lock");
        let first = InUse::claim(dir.path()).expect("claimed");
        assert_eq!(
            InUse::claim(dir.path()).expect_err("refused").to_string(),
            format!(
                "the data directory {} is in use by another `host-sim up`; hint: stop that one, or give this one its own \
                 `--data-dir`, `--listen`, `--plane-listen`, `--upstream-listen`, `--admin-listen`, `--grpc-listen`, \
                 `--ledger-listen`, `--grpc-admin-listen`, `--mcp-listen` and `--mcp-admin-listen`",
                dir.path().display()
            )
        );
        drop(first);
        InUse::claim(dir.path()).expect("claimed again");
    }

    #[test]
    fn err_no_directory_can_be_made() {
        let failure = InUse::claim(Path::new("/dev/null/data"))
            .expect_err("refused")
            .to_string();
        assert!(
            failure.starts_with("cannot lock /dev/null/data/up.lock: ")
                && failure.ends_with("with `--data-dir`"),
            "{failure}"
        );
    }
}
