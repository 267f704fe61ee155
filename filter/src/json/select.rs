//! Looks up many pointers in one pass over a strict JSON text (RFC 8259), keeping numbers exact. Nothing is built of
//! what no pointer asks for, so that a hostile body costs little more memory than its own.
//!
//! Strict means: one value, UTF-8, each key once in its object, no nesting beyond [`limits::JSON_DEPTH`], no half of a
//! surrogate pair, no member named `__proto__` (which JavaScript may give to every object). Two readers of any other text may see two different things.

use std::borrow::Cow;
use std::collections::BinaryHeap;

use super::decimal::{self, Decimal};
use super::pointer::{Pointers, ROOT, folded};
use crate::limits;
use crate::table::Table;

/// What a pointer found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'t> {
    /// Nothing.
    Absent,
    /// Readers may differ: a name on the way is there in another letter case or with a NUL in it, alone or beside the one asked
    /// for, a list of objects stands where the pointer names a member, or one value where it names the first of a list.
    Ambiguous,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Decimal),
    /// A string, its escapes undone.
    Text(Cow<'t, str>),
    /// An array or an object.
    Composite,
}

/// A text that is no strict JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no strict JSON")]
pub struct NotStrict;

/// Finds the values of all pointers, in the order of their numbers.
///
/// # Errors
///
/// When the text is no strict JSON, also in a part that no pointer asks for.
pub fn select<'t>(text: &'t [u8], pointers: &Pointers) -> Result<Vec<Found<'t>>, NotStrict> {
    let mut reader = Reader {
        text: std::str::from_utf8(text).map_err(|_| NotStrict)?,
        at: 0,
        pointers,
        found: vec![Found::Absent; pointers.len()],
    };
    reader.skip_space();
    reader.value(Some(ROOT), limits::JSON_DEPTH)?;
    reader.skip_space();
    if reader.at == reader.text.len() {
        Ok(reader.found)
    } else {
        Err(NotStrict)
    }
}

/// The members of an object, each value in the letters in which it came.
pub(super) fn members(text: &str) -> Result<Vec<(String, &str)>, NotStrict> {
    let mut reader = Reader {
        text,
        at: 0,
        pointers: &Pointers::default(),
        found: Vec::new(),
    };
    let mut members: Vec<(String, &str)> = Vec::new();
    reader.skip_space();
    reader.take(b'{')?;
    reader.skip_space();
    if reader.peek() != Some(b'}') {
        loop {
            reader.skip_space();
            let name = reader.string()?.into_owned();
            reader.skip_space();
            reader.take(b':')?;
            reader.skip_space();
            let start = reader.at;
            reader.value(None, limits::JSON_DEPTH)?;
            let stands_twice = members.iter().any(|(found, _)| *found == name);
            if stands_twice || name == "__proto__" || members.len() >= limits::JSON_MEMBERS {
                return Err(NotStrict);
            }
            members.push((name, reader.since(start)));
            reader.skip_space();
            if reader.peek() != Some(b',') {
                break;
            }
            reader.step();
        }
    }
    reader.take(b'}')?;
    reader.skip_space();
    (reader.at == text.len())
        .then_some(members)
        .ok_or(NotStrict)
}

struct Reader<'t, 'p> {
    text: &'t str,
    at: usize,
    pointers: &'p Pointers,
    found: Vec<Found<'t>>,
}

/// The names of one object that a pointer may mean: how often one stood there, and how it was spelled.
type Met = Table<String, (usize, String)>;

impl<'t> Reader<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn take(&mut self, wanted: u8) -> Result<(), NotStrict> {
        if self.peek() == Some(wanted) {
            self.step();
            Ok(())
        } else {
            Err(NotStrict)
        }
    }

    fn skip_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&belongs) {
            self.step();
        }
    }

    fn skip_space(&mut self) {
        self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Reads a value that stands at a node of the tree, or at none.
    fn value(&mut self, node: Option<usize>, depth: usize) -> Result<(), NotStrict> {
        let ends = node.and_then(|at| self.pointers.node(at)?.ends);
        let value = match self.peek() {
            Some(b'{') => {
                self.object(node, depth.checked_sub(1).ok_or(NotStrict)?)?;
                Found::Composite
            }
            Some(b'[') => {
                self.array(node, depth.checked_sub(1).ok_or(NotStrict)?)?;
                Found::Composite
            }
            Some(b'"') => Found::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                self.skip_while(|byte| {
                    matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
                });
                let token = self.since(start);
                if ends.is_some() {
                    Found::Number(Decimal::parse(token).ok_or(NotStrict)?)
                } else if decimal::is_number(token) {
                    // Nobody asks for it.
                    Found::Absent
                } else {
                    return Err(NotStrict);
                }
            }
            _ => {
                let start = self.at;
                self.skip_while(|byte| byte.is_ascii_lowercase());
                match self.since(start) {
                    "null" => Found::Null,
                    "true" => Found::Bool(true),
                    "false" => Found::Bool(false),
                    _ => return Err(NotStrict),
                }
            }
        };
        if !matches!(value, Found::Composite | Found::Null) {
            self.mark_first_doubtful(node);
        }
        if let Some(place) = ends.and_then(|number| self.found.get_mut(number)) {
            *place = value;
        }
        Ok(())
    }

    fn array(&mut self, node: Option<usize>, depth: usize) -> Result<(), NotStrict> {
        let below = node.and_then(|at| self.pointers.node(at));
        let mut wanted: Table<usize, usize> = Table::new();
        let mut named = Vec::new();
        if let Some(node) = below {
            for (name, child) in node.children() {
                if let Some(index) = index_of(name) {
                    wanted.insert(index, *child);
                }
                if !is_for_lists(name) {
                    named.push(*child);
                }
            }
        }
        self.take(b'[')?;
        self.skip_space();
        if self.peek() == Some(b']') {
            return self.take(b']');
        }
        let mut holds_composites = false;
        let mut index = 0_usize;
        loop {
            self.skip_space();
            holds_composites |= matches!(self.peek(), Some(b'{' | b'['));
            self.value(wanted.get(&index).copied(), depth)?;
            self.skip_space();
            if self.peek() != Some(b',') {
                break;
            }
            self.step();
            index = index.saturating_add(1);
        }
        if holds_composites {
            // A pointer names a member where a list stands: a server that takes many for one reads it in each of them.
            self.mark_all_doubtful(named);
        }
        self.take(b']')
    }

    fn object(&mut self, node: Option<usize>, depth: usize) -> Result<(), NotStrict> {
        let mut keys: Vec<Cow<'t, str>> = Vec::new();
        let mut met = Met::new();
        self.take(b'{')?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            return self.take(b'}');
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            if key == "__proto__" {
                return Err(NotStrict);
            }
            self.skip_space();
            self.take(b':')?;
            self.skip_space();
            let child = self.child_named(node, &key, &mut met);
            self.value(child, depth)?;
            keys.push(key);
            self.skip_space();
            if self.peek() != Some(b',') {
                break;
            }
            self.step();
        }
        self.take(b'}')?;
        let keys = BinaryHeap::from(keys).into_sorted_vec();
        if keys
            .windows(2)
            .any(|pair| matches!(pair, [left, right] if left == right))
        {
            return Err(NotStrict);
        }
        if !met.contains("0") {
            self.mark_first_doubtful(node);
        }
        for (name, (times, spelled)) in met {
            self.mark_doubtful(node, &name, (times == 1).then_some(&*spelled));
        }
        Ok(())
    }

    /// The node that a key leads to, remembering keys that some pointer may mean.
    fn child_named(&self, node: Option<usize>, key: &str, met: &mut Met) -> Option<usize> {
        let below = &self.pointers.node(node?)?.below;
        if below.is_empty() {
            return None;
        }
        let name = folded(key);
        let alike = below.get(&name)?;
        met.change(
            name,
            || (0, key.to_owned()),
            |(times, _)| *times = times.saturating_add(1),
        );
        alike
            .iter()
            .find(|(spelled, _)| spelled == key)
            .map(|(_, child)| *child)
    }

    /// Everything below a name is doubtful unless the object has the name once, spelled as the pointer has it.
    fn mark_doubtful(&mut self, node: Option<usize>, name: &str, plainly: Option<&str>) {
        let Some(alike) = node.and_then(|at| self.pointers.node(at)?.below.get(name)) else {
            return;
        };
        let mut doubtful = Vec::new();
        for (spelled, child) in alike {
            if plainly != Some(spelled) {
                doubtful.push(*child);
            }
        }
        self.mark_all_doubtful(doubtful);
    }

    /// A pointer names the first of a list where one value stands: a server that takes one for many reads it there.
    fn mark_first_doubtful(&mut self, node: Option<usize>) {
        self.mark_doubtful(node, "0", None);
    }

    /// Marks these nodes and everything below them.
    fn mark_all_doubtful(&mut self, mut doubtful: Vec<usize>) {
        while let Some(node) = doubtful.pop().and_then(|at| self.pointers.node(at)) {
            if let Some(place) = node.ends.and_then(|number| self.found.get_mut(number)) {
                *place = Found::Ambiguous;
            }
            for (_, child) in node.children() {
                doubtful.push(*child);
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, NotStrict> {
        self.take(b'"')?;
        let mut decoded: Option<String> = None;
        loop {
            let start = self.at;
            self.skip_while(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
            let piece = self.since(start);
            match self.peek() {
                Some(b'"') => {
                    self.step();
                    return Ok(match decoded {
                        None => Cow::Borrowed(piece),
                        Some(text) => Cow::Owned(text + piece),
                    });
                }
                Some(b'\\') => {
                    self.step();
                    let letter = self.escape()?;
                    let text = decoded.get_or_insert_default();
                    text.push_str(piece);
                    text.push(letter);
                }
                _ => return Err(NotStrict),
            }
        }
    }

    fn escape(&mut self) -> Result<char, NotStrict> {
        let kind = self.peek().ok_or(NotStrict)?;
        self.step();
        Ok(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex_unit()?;
                let is_high_half = (0xd800..0xdc00).contains(&first);
                let second = if is_high_half {
                    self.take(b'\\')?;
                    self.take(b'u')?;
                    Some(self.hex_unit()?)
                } else {
                    None
                };
                let mut letters = char::decode_utf16(std::iter::once(first).chain(second));
                match (letters.next(), letters.next()) {
                    (Some(Ok(letter)), None) => letter,
                    _ => return Err(NotStrict),
                }
            }
            _ => return Err(NotStrict),
        })
    }

    fn hex_unit(&mut self) -> Result<u16, NotStrict> {
        let start = self.at;
        self.at = self.at.saturating_add(4);
        let digits = self.text.get(start..self.at).ok_or(NotStrict)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotStrict);
        }
        u16::from_str_radix(digits, 16).map_err(|_| NotStrict)
    }
}

/// An index as RFC 6901 spells it: no leading zero, and no sign.
/// Whether a reference token can only mean an element, be it there or not (RFC 6901, section 4).
fn is_for_lists(token: &str) -> bool {
    token == "-" || (!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()))
}

fn index_of(name: &str) -> Option<usize> {
    let canonical = name == "0" || !name.starts_with('0');
    (canonical && name.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| name.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests;
