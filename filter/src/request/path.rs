//! What a path may mean to whoever serves it. Rules match one canonical form; a path that servers could read in more
//! than one way is said to be ambiguous, with the letters that any reading of it can be made of, so that no spelling
//! slips past a rule.
//!
//! Readings are not enumerated: servers decode, merge, resolve and cut in orders of their own, and a list of those is
//! never complete. What all of them share is that they do not make up letters.

mod finder;
mod fold;

pub use finder::Finder;

use crate::limits;

/// What a path may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathReading {
    /// Servers may differ.
    Ambiguous(Letters),
    /// Everybody reads it alike; this is its canonical form.
    Plain(Vec<u8>),
    /// It could be any path: there is none, or it is ambiguous and too long, nested too deeply, or of
    /// pieces that some servers cut out.
    Unknown,
}

/// Everything that a reading of an ambiguous path can consist of: the path decoded until nothing is left to decode,
/// folded into the plainest letters that some server may make of it. A word that does not stand in it stands in no
/// reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letters {
    text: Vec<u8>,
}

/// Stands in [`Letters`] for a byte that is no UTF-8, or an escape that is none. Some decoders make a letter or two of it,
/// or one of several.
pub(super) const JOKER: u8 = 0xff;

impl Letters {
    /// Whether some reading could hold this word, letter case apart.
    #[must_use]
    pub fn may_hold(&self, word: &[u8]) -> bool {
        if word.is_empty() {
            return true;
        }
        if !self.text.contains(&JOKER) {
            return self
                .text
                .windows(word.len())
                .any(|window| window.eq_ignore_ascii_case(word));
        }
        // `ended[n]`: the first `n + 1` letters of the word may end at the byte before. Filled from the back, so that each
        // entry still sees its neighbour of the byte before.
        let mut ended = vec![false; word.len()];
        for byte in &self.text {
            let is_joker = *byte == JOKER;
            for (at, wanted) in word.iter().enumerate().rev() {
                let ended_before = |letters: usize| match at.checked_sub(letters) {
                    Some(before) => ended.get(before) == Some(&true),
                    None => at.checked_add(1) == Some(letters),
                };
                // A joker may stand for two letters: some fold into two.
                let begun = ended_before(1) || (is_joker && ended_before(2));
                let fits = is_joker || wanted.eq_ignore_ascii_case(byte);
                if let Some(entry) = ended.get_mut(at) {
                    *entry = (begun && fits) || (is_joker && *entry);
                }
            }
            if ended.last() == Some(&true) {
                return true;
            }
        }
        false
    }
}

/// Reads a path (no query).
#[must_use]
pub fn read(raw: &[u8]) -> PathReading {
    if !raw.contains(&b'%') && has_one_structure(raw) {
        return PathReading::Plain(raw.to_vec());
    }
    if let Some(decoded) = decode(raw)
        && only_harmless_escapes(raw, &decoded)
    {
        return PathReading::Plain(decoded);
    }
    if raw.len() > limits::AMBIGUOUS_PATH_BYTES {
        return PathReading::Unknown;
    }
    letters(raw).map_or(PathReading::Unknown, PathReading::Ambiguous)
}

/// Percent-decodes once, as Go's `URL.Path` does; `None` where an escape is malformed.
#[must_use]
pub fn decode(raw: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    loop {
        match rest {
            [] => return Some(decoded),
            [b'%', high, low, after @ ..] => {
                decoded.push(hex_pair(*high, *low)?);
                rest = after;
            }
            [b'%', ..] => return None,
            [byte, after @ ..] => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
}

/// Decodes what can be decoded and leaves malformed escapes as they are, as lenient servers do.
pub(crate) fn decode_leniently(raw: &[u8]) -> Vec<u8> {
    rewritten(raw, |rest, out| {
        let [b'%', high, low, behind @ ..] = rest else {
            return None;
        };
        out.push(hex_pair(*high, *low)?);
        Some(behind)
    })
}

/// Goes through a path and lets `rewrite` take a piece off its front: it writes what the piece becomes and gives what
/// lies behind it, or leaves the byte as it is.
fn rewritten<'p>(
    path: &'p [u8],
    rewrite: impl Fn(&'p [u8], &mut Vec<u8>) -> Option<&'p [u8]>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        rest = rewrite(rest, &mut out).unwrap_or_else(|| {
            out.push(*first);
            after
        });
    }
    out
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    digit(high)?.checked_mul(16)?.checked_add(digit(low)?)
}

/// Whether the path's segments are the same to everybody: no empty or dot segment inside, none that some server would
/// trim, no `\`, no `;`, nothing that does not belong in a path.
fn has_one_structure(path: &[u8]) -> bool {
    let strange = |byte: &u8| matches!(byte, b'\\' | b';' | b'?' | b'#') || byte.is_ascii_control();
    if path.iter().any(strange) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(path) else {
        return false;
    };
    if fold::turns_into_ascii(text) || holds_cookieless_token(path) {
        return false;
    }
    let is_trimmed = |character: char| character.is_whitespace() || character == '+';
    let Some(inner) = text.strip_prefix('/') else {
        return text == "*";
    };
    let segments = inner.strip_suffix('/').unwrap_or(inner);
    inner.is_empty()
        || segments.split('/').all(|segment| {
            !segment.is_empty()
                && !segment.ends_with('.')
                && segment.trim_matches(is_trimmed) == segment
        })
}

/// Escapes are harmless when undoing them changes no structure and leaves nothing to undo again.
fn only_harmless_escapes(raw: &[u8], decoded: &[u8]) -> bool {
    let slashes = |path: &[u8]| path.iter().filter(|byte| **byte == b'/').count();
    let decodes_again = decoded.windows(2).any(|window| match window {
        [b'%', next] => next.is_ascii_hexdigit() || matches!(next, b'u' | b'U'),
        _ => false,
    });
    has_one_structure(decoded) && slashes(raw) == slashes(decoded) && !decodes_again
}

/// The letters of an ambiguous path; `None` where it is nested deeper than anybody decodes.
fn letters(raw: &[u8]) -> Option<Letters> {
    let text = plainest(raw)?;
    (!holds_cookieless_token(&text)).then_some(Letters { text })
}

/// A text decoded until nothing is left to decode, in the plainest letters that some server may make of it; `None` where
/// it is nested deeper than anybody decodes.
pub(super) fn plainest(raw: &[u8]) -> Option<Vec<u8>> {
    plainest_but(raw, None)
}

/// The same with the NULs left in, for whom a text ends there.
pub(super) fn plainest_with_nuls(raw: &[u8]) -> Option<Vec<u8>> {
    plainest_but(raw, Some(0))
}

fn plainest_but(raw: &[u8], kept: Option<u8>) -> Option<Vec<u8>> {
    // Some readers drop tabs, line breaks and NUL, so that they may stand within a word or an escape.
    let visible = |text: &[u8]| {
        text.iter()
            .copied()
            .filter(|byte| !byte.is_ascii_control() || Some(*byte) == kept)
            .collect::<Vec<_>>()
    };
    let mut text = visible(raw);
    for _ in 0..limits::DECODING_ROUNDS {
        let decoded = visible(&fold::folded(
            &with_wide_escapes_decoded(&decode_leniently(&text)),
            JOKER,
        ));
        if decoded == text {
            return Some(with_broken_escapes_as_jokers(&text));
        }
        text = decoded;
    }
    None
}

/// `%u0070`, which some decoders read as a letter, becomes that letter; two halves of a pair become one, and a half
/// alone could be anything.
fn with_wide_escapes_decoded(path: &[u8]) -> Vec<u8> {
    rewritten(path, |rest, out| {
        let (unit, behind) = wide_escape(rest)?;
        let next = wide_escape(behind);
        let units = [unit, next.map_or(0, |(unit, _)| unit)];
        let Some(Ok(letter)) = char::decode_utf16(units).next() else {
            out.push(JOKER);
            return Some(behind);
        };
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        let is_pair = letter.len_utf16() == 2;
        Some(
            next.filter(|_| is_pair)
                .map_or(behind, |(_, behind_both)| behind_both),
        )
    })
}

fn wide_escape(path: &[u8]) -> Option<(u16, &[u8])> {
    let [b'%', b'u' | b'U', a, b, c, d, behind @ ..] = path else {
        return None;
    };
    Some((
        u16::from_be_bytes([hex_pair(*a, *b)?, hex_pair(*c, *d)?]),
        behind,
    ))
}

/// Escapes that are none (`%N0`), of which decoders that do not check make letters of their own.
fn with_broken_escapes_as_jokers(path: &[u8]) -> Vec<u8> {
    rewritten(path, |rest, out| match rest {
        [b'%', high, low, behind @ ..]
            if high.is_ascii_alphanumeric() && low.is_ascii_alphanumeric() =>
        {
            out.push(JOKER);
            Some(behind)
        }
        _ => None,
    })
}

/// `/(S(x))/`, which one family of servers cuts out of a path wherever it stands.
fn holds_cookieless_token(path: &[u8]) -> bool {
    path.windows(4)
        .any(|window| matches!(window, [b'/', b'(', letter, b'('] if letter.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests;
