//! Under which names readers may find a parameter. Servers decode names, cut them and take their brackets apart in ways of their
//! own (PHP, Rack, qs); each of those names has one key here. Knows no values.

use crate::limits;
use crate::request::path::{JOKER, decode, plainest, plainest_with_nuls};

/// The levels of a name (`user[id]` has two) without letter case, each with the signs that PHP makes an underscore of as one, joined
/// by a sign that stands in none.
pub(super) type Key = Vec<u8>;

/// What a spelled name may be taken for.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The names that hold it: `user` of `user[id]`.
    pub holders: Vec<Key>,
    /// Its own names.
    pub own: Vec<Key>,
    /// Whether it could be any other as well: some of its letters cannot be told, or it reaches into what all objects of JavaScript
    /// have in common.
    pub could_be_any: bool,
}

impl Names {
    /// Reads a name as spelled.
    pub fn of(spelled: &[u8]) -> Self {
        let mut names = Self::default();
        if is_plain(spelled) {
            names.read(&spelled.to_ascii_lowercase());
            return names;
        }
        names.could_be_any = decode(spelled).is_none();
        let Some(text) = plainest_with_nuls(spelled) else {
            names.could_be_any = true;
            return names;
        };
        match text.iter().position(|byte| *byte == 0) {
            None => names.read(&text),
            // PHP ends a name at a NUL, others drop it.
            Some(end) => {
                names.read(text.get(..end).unwrap_or_default());
                names.read(&plainest(spelled).unwrap_or_default());
            }
        }
        names
    }

    /// Reads a name in its plainest letters.
    fn read(&mut self, text: &[u8]) {
        self.could_be_any |=
            text.contains(&JOKER) || text.windows(PROTOTYPE.len()).any(|part| part == PROTOTYPE);
        let text: Vec<u8> = text
            .iter()
            .filter(|byte| **byte != JOKER)
            .map(|byte| if *byte == b'+' { b' ' } else { *byte })
            .collect();
        self.read_piece(&text);
        // `x%26amount`, `?amount` and `amount%3D1` are `amount` to whoever decodes first or cuts at each `?`.
        if text.iter().any(is_separator) {
            let mut pieces = text.rsplit(is_separator);
            pieces
                .by_ref()
                .take(limits::NAME_PIECES)
                .for_each(|piece| self.read_piece(piece));
            self.could_be_any |= pieces.next().is_some();
        }
    }

    fn read_piece(&mut self, piece: &[u8]) {
        // Rack drops brackets at either end, and all take `mode[]` and `mode[x]` for `mode` or what it holds.
        self.add(&mut piece.split(|byte| matches!(byte, b'[' | b']')), 1);
        if piece.contains(&b']') {
            // PHP and qs drop what stands between the brackets.
            let mut levels = piece.split(|byte| *byte == b'[');
            let base = levels.next();
            let closed = levels.filter(|level| level.contains(&b']'));
            let levels = base.into_iter().chain(closed);
            self.add(
                &mut levels.filter_map(|level| level.split(|byte| *byte == b']').next()),
                1,
            );
        } else if piece.contains(&b'[') {
            // PHP makes an underscore of a bracket that is never closed.
            self.add(&mut std::iter::once(underscored(piece, b'[').as_slice()), 1);
        }
        if piece.contains(&b'.') {
            // ASP.NET, and qs where it is told to.
            self.add(
                &mut piece.split(|byte| matches!(byte, b'[' | b']' | b'.')),
                2,
            );
        }
    }

    /// Adds a name by its levels, and its holders of at least so many.
    fn add(&mut self, levels: &mut dyn Iterator<Item = &[u8]>, fewest: usize) {
        let mut key = Key::new();
        let mut count = 0_usize;
        for level in levels.map(<[u8]>::trim_ascii) {
            if level.is_empty() {
                continue;
            }
            if count == limits::NAME_LEVELS {
                break;
            }
            if count > 0 {
                if count >= fewest && !self.holders.contains(&key) {
                    self.holders.push(key.clone());
                }
                key.push(b'[');
            }
            key.extend(underscored(level, b'.'));
            count = count.saturating_add(1);
        }
        if !self.own.contains(&key) {
            self.own.push(key);
        }
    }
}

/// The member of an object in JavaScript through which all of them can be given a value.
const PROTOTYPE: &[u8] = b"__proto__";

/// Whether nothing of a name can be decoded, folded or dropped.
fn is_plain(name: &[u8]) -> bool {
    name.iter()
        .all(|byte| byte.is_ascii_graphic() && *byte != b'%')
}

fn underscored(text: &[u8], also: u8) -> Vec<u8> {
    let sign = |byte: &u8| match *byte {
        b'.' | b' ' => b'_',
        byte if byte == also => b'_',
        byte => byte,
    };
    text.iter().map(sign).collect()
}

/// What separates parameters from each other, from their values or from the path.
fn is_separator(byte: &u8) -> bool {
    matches!(byte, b'&' | b';' | b'=' | b'?' | b'#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_one_spelled_name_are_bounded() {
        for separator in [";", "%26", "[", "].", "%00", "%3B["] {
            let spelled: String = (0..10_000)
                .map(|part| format!("{part}{separator}"))
                .collect();
            let names = Names::of(spelled.as_bytes());

            assert!(
                names.own.len() <= 4 * (limits::NAME_PIECES + 1),
                "{separator}"
            );
            assert!(
                names.holders.len() <= 3 * limits::NAME_LEVELS * (limits::NAME_PIECES + 1),
                "{separator}"
            );
        }
        assert!(Names::of("a;".repeat(100).as_bytes()).could_be_any);
        assert!(!Names::of(b"a;b").could_be_any);
    }
}
