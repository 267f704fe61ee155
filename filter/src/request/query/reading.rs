//! What the parameters of a query may mean to whoever reads them. A parameter is plain when every server reads the same
//! name and value; a rule on any other cannot tell.

use super::names::{Key, Names};
use super::parameters;
use crate::limits;
use crate::places::{Place, Places};
use crate::request::RequestHead;
use crate::request::path::{JOKER, decode, decode_leniently, plainest};

/// A parameter's name as a rule writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterName {
    written: Vec<u8>,
    keys: Vec<Key>,
    holders: Vec<Key>,
}

impl ParameterName {
    /// Takes a name; `None` for one that no query could spell plainly.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"%+&=;#?".contains(&byte);
        let names = Names::of(name.as_bytes());
        (!name.is_empty() && name.bytes().all(fits)).then(|| Self {
            written: name.as_bytes().to_vec(),
            keys: names.own,
            holders: names.holders,
        })
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.written).unwrap_or_default()
    }
}

/// What a query says of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'q> {
    /// No reader finds it.
    Absent,
    /// Readers may differ.
    Doubtful {
        /// Whether each of them finds at least one parameter of the name.
        surely_there: bool,
    },
    /// Every reader finds this value, and no other.
    Plain(&'q [u8]),
}

/// The parameters of a request's query, read once for all rules.
///
/// What stands in a value names nothing, even where it is a query of its own: `next=%2Fitems%3Fmode%3Dlive%26a%3D1` says nothing of
/// `mode`. Only a server that decodes a query before it cuts it would read it so, and such a server breaks each address that its
/// honest clients send in a parameter; those would all be refused here. A name holds such signs in no honest request.
#[derive(Debug, Default)]
pub struct QueryReading {
    /// The value of each parameter, where everybody reads the same.
    values: Vec<Option<Vec<u8>>>,
    /// By their own names as some reader may give them.
    own: Places,
    /// By the names that hold theirs.
    held: Places,
    /// By their names as spelled, where nobody would cut them off in another way.
    spelled: Places,
    /// Whether some reader could find any parameter at all.
    could_hold_any: bool,
}

/// A reading that is being made: the same, with names as they come.
#[derive(Debug, Default)]
struct Collected {
    values: Vec<Option<Vec<u8>>>,
    own: Vec<Place>,
    held: Vec<Place>,
    spelled: Vec<Place>,
    could_hold_any: bool,
}

impl QueryReading {
    /// Reads the query of a request.
    #[must_use]
    pub fn of(head: &RequestHead) -> Self {
        // `%3F` may begin a query for a server that decodes first.
        let path = head.path().unwrap_or_default();
        let path_may_end_early = path.contains(&b'%')
            && plainest(path).is_none_or(|path| path.contains(&b'?') || path.contains(&JOKER));
        let query = head.query().unwrap_or_default();
        let mut reading = Collected {
            could_hold_any: path_may_end_early,
            ..Collected::default()
        };
        let is_cut = query.contains(&b'#');
        let mut before = None;
        for (parameter, behind) in parameters(query) {
            if reading.values.len() == limits::QUERY_PARAMETERS {
                reading.could_hold_any = true;
                break;
            }
            let value = parameter.value.unwrap_or_default();
            let is_alone =
                !is_cut && before != Some(b';') && behind != Some(b';') && !is_cut_later(value);
            before = behind;
            reading.add(parameter.name, is_alone, plain_value(value));
        }
        // To servers of today a `;` is a letter of the name.
        let pieces = query
            .split(|byte| *byte == b'&')
            .take(limits::QUERY_PARAMETERS);
        for piece in pieces.filter(|piece| piece.contains(&b';')) {
            let name = piece.split(|byte| *byte == b'=').next();
            reading.add(name.unwrap_or_default(), false, None);
        }
        Self {
            values: reading.values,
            own: Places::of(reading.own),
            held: Places::of(reading.held),
            spelled: Places::of(reading.spelled),
            could_hold_any: reading.could_hold_any,
        }
    }

    /// What the query says of a parameter. Takes no longer with many parameters of the name.
    #[must_use]
    pub fn said(&self, name: &ParameterName) -> Said<'_> {
        // All places are the same one, or there are several.
        let mut only: Option<Option<usize>> = None;
        for key in &name.keys {
            for places in [self.own.get(key), self.held.get(key)] {
                let place = match (places, only) {
                    ([], _) => continue,
                    ([(_, place)], None) => Some(*place),
                    ([(_, place)], Some(known)) if known == Some(*place) => known,
                    _ => None,
                };
                only = Some(place);
            }
        }
        if only.is_none() && !self.could_hold_any {
            return Said::Absent;
        }
        // `user=2` beside `user[id]=1` replaces it for some.
        let is_replaced = name.holders.iter().any(|key| self.own.contains(key));
        let is_spelled = self.spelled.contains(&name.written);
        let value = only
            .flatten()
            .filter(|_| is_spelled && !is_replaced && !self.could_hold_any)
            .and_then(|place| self.values.get(place)?.as_deref());
        match value {
            Some(value) => Said::Plain(value),
            None => Said::Doubtful {
                surely_there: !is_replaced && is_spelled,
            },
        }
    }
}

impl Collected {
    fn add(&mut self, spelled: &[u8], is_alone: bool, value: Option<Vec<u8>>) {
        let names = Names::of(spelled);
        let place = self.values.len();
        self.values.push(value);
        self.could_hold_any |= names.could_be_any;
        self.own
            .extend(names.own.into_iter().map(|key| (key, place)));
        self.held
            .extend(names.holders.into_iter().map(|key| (key, place)));
        if is_alone {
            self.spelled.push((spelled.to_vec(), place));
        }
    }
}

/// Whether qs ends the name within what others take for the value: it looks for `]=` before it looks for `=`.
fn is_cut_later(value: &[u8]) -> bool {
    let before = |equals: usize| value.get(..equals).unwrap_or_default();
    value
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'=')
        .any(|(at, _)| {
            let before = before(at);
            before.ends_with(b"]") || before.ends_with(b"%5D") || before.ends_with(b"%5d")
        })
}

/// The value decoded once, `+` as a space; `None` where an escape is malformed, a second decoding would give something else, or
/// a reader in C would end it at a NUL.
fn plain_value(spelled: &[u8]) -> Option<Vec<u8>> {
    let spaced: Vec<u8> = spelled
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    let value = decode(&spaced)?;
    (decode_leniently(&value) == value && !value.contains(&0)).then_some(value)
}

#[cfg(test)]
mod tests;
