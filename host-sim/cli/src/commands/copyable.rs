//! Command lines that a person copies from what this program prints. Pure: flags in, text out.

use std::path::Path;

use crate::args::{DATA_DIR, PLANE};

/// The flags with which `host-sim approvals` finds this plane and its token, each with a space in front; empty with the
/// defaults. A hint without them would lead to another plane.
pub(super) fn approvals_flags(plane: &str, data_dir: &Path) -> String {
    let mut flags = String::new();
    if plane.trim_end_matches('/') != PLANE {
        flags.push_str(&format!(" --plane {}", word(plane)));
    }
    if data_dir != Path::new(DATA_DIR) {
        let data_dir = data_dir.display().to_string();
        flags.push_str(&format!(" --data-dir {}", word(&data_dir)));
    }
    flags
}

/// `text` as one word of a shell.
pub(super) fn word(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:@%+,".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_the_defaults_is_repeated() {
        for (plane, data_dir, flags) in [
            (PLANE, DATA_DIR, ""),
            ("http://127.0.0.1:8009/", ".host-sim/", ""),
            ("http://h:1", DATA_DIR, " --plane http://h:1"),
            (PLANE, "/my data", " --data-dir '/my data'"),
            ("http://h:1", "/d", " --plane http://h:1 --data-dir /d"),
        ] {
            assert_eq!(approvals_flags(plane, Path::new(data_dir)), flags);
        }
    }

    #[test]
    fn a_shell_reads_a_word_as_it_was() {
        for (text, quoted) in [
            ("a/b-1.txt", "a/b-1.txt"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(a);`b`", "'$(a);`b`'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(word(text), quoted);
        }
    }
}
