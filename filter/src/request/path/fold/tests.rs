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

/// What each character outside ASCII that some server may read as ASCII folds into, in order.
fn folds_into_ascii() -> impl Iterator<Item = (char, String)> {
    ('\u{80}'..=char::MAX)
        .filter(|character| !is_ignorable(*character))
        .map(|character| (character, fold(character)))
        .filter(|(_, fold)| fold.chars().any(|folded| folded.is_ascii()))
}

/// Small enough that a look-up reads few bytes, far enough that most characters need no entry of their own.
const LONGEST_RUN: u32 = 32;
/// Up to here a gap costs less than another entry.
const LONGEST_GAP: u32 = 8;

fn table_of_unicode() -> String {
    let mut runs: Vec<(char, u32, String)> = Vec::new();
    for (character, fold) in folds_into_ascii() {
        let code = u32::from(character);
        if let Some((first, next, folds)) = runs.last_mut()
            && code.saturating_sub(*next) <= LONGEST_GAP
            && code.saturating_sub(u32::from(*first)) < LONGEST_RUN
        {
            folds.extend((*next..=code).map(|_| '\n'));
            folds.push_str(&fold);
            *next = code.saturating_add(1);
        } else {
            runs.push((character, code.saturating_add(1), fold));
        }
    }
    let mut text = String::from(
        "//! Every character that some server may read as ASCII, with what it folds into: the first of each run and, a line each, the\n\
         //! folds of the run, an empty line where a character has none. Made from Unicode by the test beside it\n\
         //! (`UPDATE_FOLDS=1 cargo test -p hoop-filter --lib fold`), which also keeps it current.\n\n\
         #[rustfmt::skip]\npub(super) static FOLDS: &[(char, &str)] = &[\n",
    );
    for (first, _, folds) in runs {
        writeln!(
            text,
            "    ('\\u{{{:x}}}', \"{}\"),",
            u32::from(first),
            folds.escape_default()
        )
        .expect("a text takes more");
    }
    text.push_str("];\n");
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
fn every_character_folds_as_unicode_has_it() {
    let found = ('\u{80}'..=char::MAX)
        .filter_map(|character| Some((character, fold_of(character)?.to_owned())));

    assert!(found.eq(folds_into_ascii()));
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
