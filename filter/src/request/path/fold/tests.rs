//! The table is the one that Unicode gives.

use std::fmt::Write;
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

use super::*;

/// Compatibility form (NFKC), then lower, upper and lower case: `ﬁ` is `fi`, `ß` is `ss`, the Kelvin sign is `k`.
fn fold(character: char) -> String {
    let compatible = std::iter::once(character).nfkc();
    let lower = compatible.flat_map(char::to_lowercase);
    lower
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

fn table_of_unicode() -> String {
    let mut text = String::from(
        "//! Every character that some server may read as ASCII, with what it folds into, in order. Made from Unicode by the test\n\
         //! beside it (`UPDATE_FOLDS=1 cargo test -p hoop-filter --lib fold`), which also keeps it current.\n\n\
         #[rustfmt::skip]\npub(super) static FOLDS: &[(char, &str)] = &[",
    );
    let mut width = usize::MAX;
    for character in ('\u{80}'..=char::MAX).filter(|character| !is_ignorable(*character)) {
        let fold = fold(character);
        if fold.chars().any(|folded| folded.is_ascii()) {
            let entry = format!(
                "('\\u{{{:x}}}',\"{}\"),",
                u32::from(character),
                fold.escape_default()
            );
            if width.saturating_add(entry.len()) > 120 {
                text.push_str("\n    ");
                width = 4;
            }
            width = width.saturating_add(entry.len());
            write!(text, "{entry}").expect("a text takes more");
        }
    }
    text.push_str("\n];\n");
    text
}

#[test]
fn the_table_holds_what_unicode_folds_into_ascii() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/request/path/fold/table.rs");
    let current = table_of_unicode();
    if option_env!("UPDATE_FOLDS").is_some() {
        std::fs::write(&file, &current).expect("the table is written");
    }

    let committed = std::fs::read_to_string(&file).expect("the table is there");

    assert!(
        committed == current,
        "the table is stale: run UPDATE_FOLDS=1 cargo test -p hoop-filter --lib fold"
    );
}

#[test]
fn look_alikes_are_read_as_what_they_look_like() {
    let table = [
        ("\u{ff0f}pay", "/pay"),
        ("\u{fb01}x", "fix"),
        ("\u{130}", "i\u{307}"),
        ("\u{df}", "ss"),
        ("pa\u{ad}y", "pay"),
        ("é日", "é日"),
    ];
    for (text, plain) in table {
        assert_eq!(
            String::from_utf8_lossy(&folded(text.as_bytes(), b'?')),
            plain,
            "{text}"
        );
    }
    assert_eq!(folded(b"a\xffb", b'?'), b"a?b");
}
