//! JSON pointers (RFC 6901), and a set of them that is looked up in one pass over a text.

use crate::table::Table;
use std::fmt;

/// A pointer to one value of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer {
    names: Vec<String>,
}

/// A text that is no pointer: it does not begin with `/`, or has a `~` that is neither `~0` nor `~1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no JSON pointer")]
pub struct NoPointer;

impl Pointer {
    /// The name of a member of the document itself; `None` where the whole document is meant.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// Reads a pointer; the empty text points to the whole document.
    ///
    /// # Errors
    ///
    /// When the text is no pointer.
    pub fn parse(text: &str) -> Result<Self, NoPointer> {
        let mut pieces = text.split('/');
        if pieces.next() != Some("") {
            return Err(NoPointer);
        }
        let mut names = Vec::new();
        for piece in pieces {
            names.push(unescaped(piece).ok_or(NoPointer)?);
        }
        Ok(Self { names })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.iter().try_for_each(|name| {
            write!(formatter, "/{}", name.replace('~', "~0").replace('/', "~1"))
        })
    }
}

fn unescaped(piece: &str) -> Option<String> {
    let mut parts = piece.split('~');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(rest) = part.strip_prefix('0') {
            name.push('~');
            name.push_str(rest);
        } else {
            name.push('/');
            name.push_str(part.strip_prefix('1')?);
        }
    }
    Some(name)
}

/// Pointers as a tree, each with a number, so that one pass over a document finds the values of all of them.
#[derive(Clone, Debug)]
pub struct Pointers {
    nodes: Vec<Node>,
    count: usize,
}

/// One level of the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The number of the pointer that ends here.
    pub ends: Option<usize>,
    /// What lies below, by folded name; each with its name as written and its place among the nodes.
    pub below: Table<String, Vec<(String, usize)>>,
}

impl Node {
    /// All that lies below, each with its name as written and its place among the nodes.
    pub fn children(&self) -> impl Iterator<Item = &(String, usize)> {
        self.below.values().flatten()
    }
}

impl Default for Pointers {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            count: 0,
        }
    }
}

impl Pointers {
    /// Adds a pointer; its number, the same each time.
    pub fn add(&mut self, pointer: &Pointer) -> usize {
        let mut at = ROOT;
        for name in &pointer.names {
            at = self.child(at, name);
        }
        let next = self.count;
        let Some(node) = self.nodes.get_mut(at) else {
            return next;
        };
        let number = *node.ends.get_or_insert(next);
        if number == next {
            self.count = next.saturating_add(1);
        }
        number
    }

    /// How many pointers there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    fn child(&mut self, at: usize, name: &str) -> usize {
        let next = self.nodes.len();
        let Some(node) = self.nodes.get_mut(at) else {
            return at;
        };
        let known = node.below.change(folded(name), Vec::new, |alike| {
            let known = alike.iter().find(|(spelled, _)| spelled == name);
            let known = known.map(|(_, child)| *child);
            if known.is_none() {
                alike.push((name.to_owned(), next));
            }
            known
        });
        known.flatten().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            next
        })
    }
}

/// The place of the whole document among the nodes.
pub(super) const ROOT: usize = 0;

/// One form for all names that a reader without letter case may take for one. U+017F is an `s` to such readers and the
/// Kelvin sign a `k`; any other letter beyond ASCII may be another's capital, so all of them read alike here: a table of
/// all of Unicode would cost the module 25 KB and spare only odd names a refusal. Readers in C end a name at a NUL.
pub(super) fn folded(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '\0' => break,
            letter if letter.is_ascii() => folded.push(letter.to_ascii_lowercase()),
            '\u{131}' | '\u{130}' => folded.push('i'),
            '\u{17f}' => folded.push('s'),
            '\u{212a}' => folded.push('k'),
            '\u{df}' | '\u{1e9e}' => folded.push_str("ss"),
            '\u{fb00}' => folded.push_str("ff"),
            '\u{fb01}' => folded.push_str("fi"),
            '\u{fb02}' => folded.push_str("fl"),
            '\u{fb03}' => folded.push_str("ffi"),
            '\u{fb04}' => folded.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => folded.push_str("st"),
            _ => folded.push(char::REPLACEMENT_CHARACTER),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_pointers() {
        for (text, names) in [
            ("", &[][..]),
            ("/", &[""]),
            ("/a/b", &["a", "b"]),
            ("/a~1b/m~0n/~01", &["a/b", "m~n", "~1"]),
            ("/0/é", &["0", "é"]),
        ] {
            let pointer = Pointer::parse(text).expect(text);

            assert_eq!(pointer.names, names);
            assert_eq!(pointer.to_string(), text);
        }
    }

    #[test]
    fn err_no_pointers() {
        for text in ["a", "a/b", "/~", "/a~2b", "#/a", " /a"] {
            assert_eq!(Pointer::parse(text), Err(NoPointer), "{text}");
        }
    }

    #[test]
    fn a_pointer_has_one_number() {
        let mut pointers = Pointers::default();
        let numbers = ["/a", "/b", "/a", "/A", "/a/b", ""]
            .map(|text| pointers.add(&Pointer::parse(text).expect(text)));

        assert_eq!(numbers, [0, 1, 0, 2, 3, 4]);
        assert_eq!(pointers.len(), 5);
    }

    #[test]
    fn names_without_letter_case() {
        for (left, right) in [
            ("Amount", "aMOUNT"),
            ("pa\u{17f}s", "pass"),
            ("\u{212a}ey", "key"),
            ("GRÖSSE", "größe"),
            ("amount\0x", "amount"),
        ] {
            assert_eq!(folded(left), folded(right));
        }
        assert_ne!(
            folded("\u{430}"),
            folded("a"),
            "a Cyrillic letter is another"
        );
    }
}
