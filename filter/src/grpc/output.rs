//! A text that grows to a bound, and how values stand in it: numbers, hex, and strings in which nothing is invisible.

use super::TextTooLarge;

/// A text under construction. Once it is full nothing more is added; writers ask [`Output::is_full`] in their loops, so
/// that a hostile message costs no more than the bound.
pub(super) struct Output {
    text: String,
    max_bytes: usize,
    is_full: bool,
}

impl Output {
    pub const fn new(max_bytes: usize) -> Self {
        Self {
            text: String::new(),
            max_bytes,
            is_full: false,
        }
    }

    /// Whether something did not fit. What is here is then of no use.
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn finish(self) -> Result<String, TextTooLarge> {
        if self.is_full {
            Err(TextTooLarge(self.max_bytes))
        } else {
            Ok(self.text)
        }
    }

    pub fn push(&mut self, piece: &str) {
        let left = self.max_bytes.saturating_sub(self.text.len());
        if piece.len() > left {
            self.is_full = true;
        } else if !self.is_full {
            self.text.push_str(piece);
        }
    }

    /// Begins a line, two spaces further in for each level.
    pub fn line(&mut self, level: usize) {
        if !self.is_empty() {
            self.push("\n");
        }
        for _ in 0..level {
            self.push("  ");
        }
    }

    pub fn letter(&mut self, letter: char) {
        self.push(letter.encode_utf8(&mut [0; 4]));
    }

    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.push("-");
        }
        self.unsigned(value.unsigned_abs());
    }

    pub fn unsigned(&mut self, value: u64) {
        self.push(&value.to_string());
    }

    /// Two lower-case digits a byte.
    pub fn hex(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_full {
                return;
            }
            for nibble in [byte >> 4, byte & 0x0f] {
                self.letter(char::from_digit(nibble.into(), 16).unwrap_or_default());
            }
        }
    }

    /// A finite number in the fewest digits that read back as it (of its own width), as ECMAScript lays them out: plain
    /// from 1e-6 up to 1e21, with an exponent beyond. `-0` keeps its sign.
    pub fn float(&mut self, shortest: &str) {
        let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
        let Ok(exponent) = exponent.parse::<i32>() else {
            return self.push(shortest);
        };
        if !(-6..=20).contains(&exponent) {
            return self.push(shortest);
        }
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", mantissa),
        };
        self.push(sign);
        let zeros = exponent.unsigned_abs();
        if exponent < 0 {
            self.push("0.");
            for _ in 1..zeros {
                self.push("0");
            }
        }
        let mut whole = (exponent >= 0).then_some(zeros);
        for digit in mantissa.chars().filter(char::is_ascii_digit) {
            self.letter(digit);
            // One digit stands in front of the point anyway; `whole` counts how many more do.
            match whole {
                Some(0) => {
                    whole = None;
                    if digits_behind(mantissa) > usize::try_from(zeros).unwrap_or(usize::MAX) {
                        self.push(".");
                    }
                }
                Some(left) => whole = left.checked_sub(1),
                None => {}
            }
        }
        for _ in 0..whole.map_or(0, |left| left.saturating_add(1)) {
            self.push("0");
        }
    }

    /// A string as JSON has it (RFC 8259, section 7), with every character escaped that does not plainly show.
    pub fn quoted(&mut self, text: &str) {
        self.push("\"");
        let mut plain = text;
        while let Some(at) =
            plain.find(|letter| is_doubtful(letter) || matches!(letter, '"' | '\\'))
        {
            let (before, rest) = plain.split_at_checked(at).unwrap_or((plain, ""));
            self.push(before);
            let mut letters = rest.chars();
            if let Some(letter) = letters.next() {
                self.escaped(letter);
            }
            plain = letters.as_str();
            if self.is_full {
                return;
            }
        }
        self.push(plain);
        self.push("\"");
    }

    /// A character as an escape of JSON; beyond U+FFFF that takes two.
    pub fn escaped(&mut self, letter: char) {
        match letter {
            '"' => self.push("\\\""),
            '\\' => self.push("\\\\"),
            '\n' => self.push("\\n"),
            '\r' => self.push("\\r"),
            '\t' => self.push("\\t"),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    self.push("\\u");
                    self.hex(&unit.to_be_bytes());
                }
            }
        }
    }
}

fn digits_behind(mantissa: &str) -> usize {
    mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len())
}

/// Whether a character could deceive who reads a text: it does not show, looks like a space, changes the order or the
/// look of its neighbours, or means nothing without an agreement. Letters of scripts that are written from right to left
/// stay, and so do the vowel signs of those that need them; accents that combine with any letter do not.
///
/// A list of our own, since that of the standard library changes with its release of Unicode, and with it would the text.
pub(super) fn is_doubtful(letter: char) -> bool {
    let code = u32::from(letter);
    if (0x20..0x7f).contains(&code) {
        return false;
    }
    // The last two of each plane are no characters.
    code & 0xfffe == 0xfffe
        || DOUBTFUL
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&code))
}

const DOUBTFUL: [(u32, u32); 36] = [
    (0x0000, 0x001f),      // control characters
    (0x007f, 0x00a0),      // control characters, no-break space
    (0x00ad, 0x00ad),      // soft hyphen
    (0x0300, 0x036f),      // combining accents
    (0x0600, 0x0605),      // signs that stretch over numbers
    (0x061c, 0x061c),      // Arabic letter mark
    (0x06dd, 0x06dd),      // end of ayah
    (0x070f, 0x070f),      // Syriac abbreviation mark
    (0x0890, 0x0891),      // signs that stretch over numbers
    (0x08e2, 0x08e2),      // disputed end of ayah
    (0x115f, 0x1160),      // Hangul fillers
    (0x1680, 0x1680),      // Ogham space
    (0x17b4, 0x17b5),      // Khmer inherent vowels
    (0x180b, 0x180f),      // Mongolian selectors and separator
    (0x1ab0, 0x1aff),      // combining accents
    (0x1dc0, 0x1dff),      // combining accents
    (0x2000, 0x200f),      // spaces, joiners, direction marks
    (0x2028, 0x202f),      // separators, direction overrides, narrow space
    (0x205f, 0x206f),      // space, invisible operators, direction isolates
    (0x20d0, 0x20ff),      // combining marks for symbols
    (0x2800, 0x2800),      // blank Braille pattern
    (0x3000, 0x3000),      // ideographic space
    (0x3164, 0x3164),      // Hangul filler
    (0xe000, 0xf8ff),      // private use
    (0xfdd0, 0xfdef),      // no characters
    (0xfe00, 0xfe0f),      // variation selectors
    (0xfe20, 0xfe2f),      // combining half marks
    (0xfeff, 0xfeff),      // byte order mark
    (0xffa0, 0xffa0),      // Hangul filler
    (0xfff0, 0xffff),      // specials
    (0x1_10bd, 0x1_10bd),  // Kaithi number sign
    (0x1_10cd, 0x1_10cd),  // Kaithi number sign above
    (0x1_3430, 0x1_343f),  // hieroglyph format controls
    (0x1_bca0, 0x1_bca3),  // shorthand format controls
    (0x1_d173, 0x1_d17a),  // musical format controls
    (0xe_0000, 0x10_ffff), // tags, selectors, private use
];
