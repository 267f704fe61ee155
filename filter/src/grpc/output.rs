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

    /// Says that something did not fit.
    pub const fn fill(&mut self) {
        self.is_full = true;
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

    /// A number of 64 bits, if it is finite.
    pub fn double(&mut self, value: f64) {
        // The writer of serde_json is in the module already; that of the standard library takes 18 KB more.
        self.float(&serde_json::to_string(&value).unwrap_or_default());
    }

    /// A number of 32 bits, if it is finite.
    pub fn single(&mut self, value: f32) {
        self.float(&serde_json::to_string(&value).unwrap_or_default());
    }

    /// A finite number in the fewest digits that read back as it, as ECMAScript lays them out: plain from 1e-6 up to 1e21,
    /// with an exponent beyond. `-0` keeps its sign. Takes any spelling of those digits.
    fn float(&mut self, shortest: &str) {
        let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", mantissa),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut all = whole.to_owned();
        all.push_str(fraction);
        let behind_zeros = all.trim_start_matches('0');
        let digits = behind_zeros.trim_end_matches('0');
        // The number is 0.DIGITS times ten to this power.
        let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX);
        let power = exponent
            .parse::<i32>()
            .unwrap_or_default()
            .saturating_add(length(whole))
            .saturating_sub(length(&all).saturating_sub(length(behind_zeros)));
        let point = usize::try_from(power).unwrap_or_default();
        self.push(sign);
        if digits.is_empty() {
            self.push("0");
        } else if !(-5..=21).contains(&power) {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
            self.push(first);
            if !rest.is_empty() {
                self.push(".");
                self.push(rest);
            }
            self.push("e");
            self.signed(power.saturating_sub(1).into());
        } else if power <= 0 {
            self.push("0.");
            self.zeros(power.unsigned_abs());
            self.push(digits);
        } else if let Some((whole, fraction)) = digits.split_at_checked(point) {
            self.push(whole);
            if !fraction.is_empty() {
                self.push(".");
                self.push(fraction);
            }
        } else {
            self.push(digits);
            self.zeros(power.saturating_sub(length(digits)).unsigned_abs());
        }
    }

    fn zeros(&mut self, count: u32) {
        for _ in 0..count {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn double(value: f64) -> String {
        let mut out = Output::new(99);
        out.double(value);
        out.finish().unwrap()
    }

    fn single(value: f32) -> String {
        let mut out = Output::new(99);
        out.single(value);
        out.finish().unwrap()
    }

    /// The texts are those of ECMAScript (Number::toString), but for the plus sign in front of an exponent.
    #[test]
    fn floats_have_one_spelling() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-150.0, "-150"),
            (1.5, "1.5"),
            (12.25, "12.25"),
            (0.1, "0.1"),
            (100.0, "100"),
            (1e-6, "0.000001"),
            (1.25e-6, "0.00000125"),
            (1e-7, "1e-7"),
            (-1.5e-7, "-1.5e-7"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e21"),
            (1.5e300, "1.5e300"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5e-324"),
            (9_007_199_254_740_993.0, "9007199254740992"),
        ] {
            assert_eq!(double(value), text);
        }
        for (value, text) in [
            (0.1, "0.1"),
            (16_777_216.0, "16777216"),
            (f32::MAX, "3.4028235e38"),
            (1e-45, "1e-45"),
            (-0.0, "-0"),
        ] {
            assert_eq!(single(value), text);
        }
    }

    proptest! {
        #[test]
        fn floats_read_back_and_are_no_longer_than_those_of_the_standard_library(bits in any::<u64>(), half in any::<u32>()) {
            let digits = |text: &str| {
                let mantissa = text.split('e').next().unwrap_or_default();
                let all: String = mantissa.chars().filter(char::is_ascii_digit).collect();
                all.trim_matches('0').len()
            };
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = double(value);
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
                prop_assert_eq!(digits(&text), digits(&format!("{value:e}")));
            }
            let value = f32::from_bits(half);
            if value.is_finite() {
                let text = single(value);
                prop_assert_eq!(text.parse::<f32>().unwrap().to_bits(), half);
                prop_assert_eq!(digits(&text), digits(&format!("{value:e}")));
            }
        }
    }
}
