//! Owns the tests of what an approver sees; the test runner drives it. It must not know the API.

use proptest::prelude::*;

use super::*;

fn escaped(len: usize, text: &str) -> String {
    format!(
        "[binary statement, {len} bytes: a byte that is not printable shows as \\xNN, a backslash as \\\\]\n{text}"
    )
}

#[test]
fn printable_text_is_shown_as_it_is() {
    for text in [
        "",
        "DELETE /users/1",
        "POST /transfers\n\n{\"amount\":100,\"note\":\"a\\\\b\"}",
        "POST /x\r\n\tindented",
        "POST /x\n\nÜberweisung 振替 перевод नमस्ते e\u{301} 🚀",
    ] {
        assert_eq!(statement(text.as_bytes()), text);
    }
}

#[test]
fn what_cannot_be_seen_makes_a_statement_binary() {
    for hidden in [
        '\0',
        '\u{7}',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{a0}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{180e}',
        '\u{200b}',
        '\u{200d}',
        '\u{200f}',
        '\u{2028}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{2800}',
        '\u{3000}',
        '\u{3164}',
        '\u{e000}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fffe}',
        '\u{e0041}',
    ] {
        let raw = format!("a{hidden}b");
        let shown = statement(raw.as_bytes());
        let hex: String = hidden
            .to_string()
            .bytes()
            .map(|b| format!("\\x{b:02x}"))
            .collect();
        assert_eq!(shown, escaped(raw.len(), &format!("a{hex}b")), "{hidden:?}");
    }
}

#[test]
fn a_lone_carriage_return_is_binary_and_one_before_a_line_feed_is_not() {
    assert_eq!(
        statement(b"GET /a\rGET /b"),
        escaped(13, "GET /a\\x0dGET /b")
    );
    assert_eq!(statement(b"x\r"), escaped(2, "x\\x0d"));
    assert_eq!(statement(b"x\r\n"), "x\r\n");
}

#[test]
fn bytes_that_are_no_text_show_one_by_one_and_a_backslash_doubles() {
    assert_eq!(
        statement(b"a\\b\xff\xc3\n\x00"),
        escaped(7, "a\\\\b\\xff\\xc3\n\\x00")
    );
}

#[test]
fn a_text_that_plays_the_escaped_form_is_escaped_itself() {
    let forged = statement(b"\xff");
    assert_ne!(statement(forged.as_bytes()), forged);
}

#[test]
fn a_name_stays_on_its_line() {
    assert_eq!(line("ann\n\u{202e}bob\\"), "ann\\x0a\\xe2\\x80\\xaebob\\\\");
    assert_eq!(line("Ann Bé"), "Ann Bé");
}

/// Reads a shown statement back. `None` where it is not a shown statement.
fn read_back(shown: &str) -> Option<Vec<u8>> {
    let Some(rest) = shown.strip_prefix(BANNER) else {
        return Some(shown.as_bytes().to_vec());
    };
    let (_, body) = rest.split_once('\n')?;
    let mut out = Vec::new();
    let mut bytes = body.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next()? {
            b'\\' => out.push(b'\\'),
            _ => {
                let pair = [bytes.next()?, bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
            }
        }
    }
    Some(out)
}

proptest! {
    #[test]
    fn what_is_shown_says_every_byte(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(read_back(&statement(&bytes)), Some(bytes));
    }

    #[test]
    fn what_is_shown_says_every_character(text in any::<String>()) {
        let shown = statement(text.as_bytes());
        prop_assert_eq!(read_back(&shown), Some(text.into_bytes()));
        let hidden = shown.contains(['\u{202e}', '\u{200b}', '\0', '\u{1b}']);
        prop_assert!(!hidden);
    }
}
