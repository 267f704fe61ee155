//! Owns how a statement is shown to the person who decides, so that what they read is what would run (contract 1.10).
//! The people's API calls it. It must not know where the text is shown, nor change what is stored or hashed.

use std::fmt::Write;

/// The statement, safe to look at: as it is when all of it is printable text, else a first line that says so and the
/// text with every other byte as `\xNN`.
///
/// No two statements look alike: the escape is reversible, and a text that begins like the first line is escaped too.
/// A wrong "printable" would let a statement hide bytes from its approver; a wrong "binary" only makes it harder to
/// read.
pub(crate) fn statement(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.starts_with(BANNER)
        && is_plain_text(text)
    {
        return text.to_owned();
    }
    let mut out = format!(
        "{BANNER}, {} bytes: a byte that is not printable shows as \\xNN, a backslash as \\\\]\n",
        bytes.len()
    );
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' | '\t' => out.push(c),
                c if is_visible(c) => out.push(c),
                c => escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
            }
        }
        escape(chunk.invalid(), &mut out);
    }
    out
}

/// One short value on one line, such as a requester's name: what is not visible shows as `\xNN`.
pub(crate) fn line(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if is_visible(c) => out.push(c),
            c => escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
        }
    }
    out
}

/// Text that every page and terminal shows the same: visible characters, tabs, and line ends as LF or CR LF. A CR
/// alone would let a later part overwrite an earlier one on a terminal.
fn is_plain_text(text: &str) -> bool {
    let mut after = text.chars().peekable();
    while let Some(c) = after.next() {
        let plain = match c {
            '\n' | '\t' => true,
            '\r' => after.peek() == Some(&'\n'),
            c => is_visible(c),
        };
        if !plain {
            return false;
        }
    }
    true
}

/// Whether a character leaves ink, or is the space. Controls, zero-width and bidi characters, odd spaces, private and
/// unassigned code points do not.
fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    if UNSEEN
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
    {
        return false;
    }
    // The standard library's escape leaves alone what Unicode calls printable. A combining mark is escaped only at the
    // start of a text, where it would have nothing to combine with, so a letter goes first.
    let mut room = [b'a'; 5];
    let len = c.encode_utf8(&mut room[1..]).len();
    std::str::from_utf8(&room[..=len]).is_ok_and(|pair| pair.escape_debug().count() == 2)
}

fn escape(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// How the first line of an escaped statement begins.
const BANNER: &str = "[binary statement";

/// Characters that Unicode calls letters, marks or symbols, and that show nothing (its Default_Ignorable_Code_Point,
/// and the empty Braille cell).
const UNSEEN: [(char, char); 10] = [
    ('\u{034F}', '\u{034F}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFF0}', '\u{FFFB}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

#[cfg(test)]
mod tests;
