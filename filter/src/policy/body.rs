//! What a body says to the conditions that look into it. The route decides that a body is JSON, not its content-type: a
//! client spells that as it likes. So it may spell it for a reader of forms as well, and a body in which such a reader finds the name
//! that a pointer begins with is doubtful there.

use std::cmp::Ordering;

use super::Doubt;
use super::matcher::Meets;
use crate::config::conditions::{JsonTest, Relation, Scalar};
use crate::json::decimal::Decimal;
use crate::json::pointer::Pointers;
use crate::json::{Found, select};
use crate::request::RequestHead;
use crate::request::query::{FormNames, TooManyNames};

/// The headers that say whether the bytes of a body are what its readers see.
pub(super) const HEADERS: [&str; 2] = ["content-encoding", "content-type"];

/// A body, read once for all rules.
#[derive(Debug)]
pub(super) enum BodyReading<'b> {
    Empty,
    /// What each pointer found.
    Read(Vec<Found<'b>>),
    /// No strict JSON, or bytes that are not what a reader sees.
    Unreadable,
}

impl<'b> BodyReading<'b> {
    pub fn of(
        head: &RequestHead,
        body: &'b [u8],
        pointers: &Pointers,
        form_names: &FormNames,
    ) -> Self {
        if body.is_empty() {
            return Self::Empty;
        }
        let encodings = head.header("content-encoding");
        let types = head.header("content-type");
        if !encodings.iter().all(|value| is_identity(value))
            || !types.iter().all(|value| is_utf8(value) && !is_form(value))
        {
            return Self::Unreadable;
        }
        let Ok(mut found) = select(body, pointers) else {
            return Self::Unreadable;
        };
        let mut doubt = |pointer| {
            if let Some(found) = found.get_mut(pointer) {
                *found = Found::Ambiguous;
            }
        };
        match form_names.each_in(body, &mut doubt) {
            Ok(()) => Self::Read(found),
            Err(TooManyNames) => Self::Unreadable,
        }
    }

    /// Whether the value at a pointer passes.
    pub fn passes(&self, pointer: usize, test: &JsonTest) -> Meets {
        match self {
            Self::Empty => value_passes(&Found::Absent, test),
            Self::Read(found) => match found.get(pointer) {
                Some(found) => value_passes(found, test),
                None => Meets::Maybe(Doubt::Body),
            },
            Self::Unreadable => Meets::Maybe(Doubt::Body),
        }
    }
}

/// `content-encoding` without an encoding. Others are not undone: what cannot be read is refused.
fn is_identity(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').all(|coding| {
        let coding = coding.trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    })
}

/// Whether a `content-type` says that the body is a form. Such a reader finds other values in the very same bytes: a JSON text can
/// hold `&amount=5000&` in one of its own.
fn is_form(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    lower.windows(FORM.len()).any(|window| window == FORM)
}

const FORM: &[u8] = b"urlencoded";

/// Whether each charset that a `content-type` names is UTF-8 or a part of it. The parameter is looked for anywhere, because
/// servers differ in how they cut the value.
fn is_utf8(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut rest = lower.as_slice();
    while let Some(at) = rest.windows(NAME.len()).position(|window| window == NAME) {
        rest = rest
            .get(at.saturating_add(NAME.len())..)
            .unwrap_or_default();
        let is_around = |byte: &u8| matches!(byte, b'=' | b'"' | b'\'' | b' ' | b'\t' | b'*');
        let start = rest.iter().position(|byte| !is_around(byte));
        let charset = rest.get(start.unwrap_or(rest.len())..).unwrap_or_default();
        let end = charset
            .iter()
            .position(|byte| is_around(byte) || matches!(byte, b';' | b','));
        let charset = charset.get(..end.unwrap_or(charset.len()));
        if !charset.is_some_and(|charset| PLAIN.contains(&charset)) {
            return false;
        }
    }
    true
}

const NAME: &[u8] = b"charset";
const PLAIN: [&[u8]; 4] = [b"utf-8", b"utf8", b"us-ascii", b"ascii"];

fn value_passes(found: &Found<'_>, test: &JsonTest) -> Meets {
    match (test, found) {
        (_, Found::Ambiguous) => Meets::Maybe(Doubt::Body),
        (JsonTest::Exists(wanted), Found::Absent) => (!wanted).into(),
        (JsonTest::Exists(wanted), _) => (*wanted).into(),
        (_, Found::Absent) => Meets::No,
        (JsonTest::Compared(relation, other), found) => match found {
            Found::Number(number) => stands(number.cmp(other), *relation).into(),
            Found::Null => Meets::No,
            // Lenient readers make a number of `"5000"`, `true` and `[5000]`.
            Found::Absent
            | Found::Ambiguous
            | Found::Bool(_)
            | Found::Text(_)
            | Found::Composite => Meets::Maybe(Doubt::Body),
        },
        // Readers in C end a text at a NUL.
        (JsonTest::OneOf(_), Found::Text(text)) if text.contains('\0') => Meets::Maybe(Doubt::Body),
        (JsonTest::OneOf(values), found) => values
            .iter()
            .map(|value| equals(found, value))
            .max()
            .unwrap_or(Meets::No),
    }
}

fn stands(order: Ordering, relation: Relation) -> bool {
    match relation {
        Relation::AtLeast => order != Ordering::Less,
        Relation::AtMost => order != Ordering::Greater,
        Relation::GreaterThan => order == Ordering::Greater,
        Relation::LessThan => order == Ordering::Less,
    }
}

/// Whether a value is the wanted one. A value of another type may be: lenient readers take `"5000"` for 5000 and `["a"]` for
/// `"a"`. A number and a boolean are a text only by the spelling that such a reader would give them.
fn equals(found: &Found<'_>, wanted: &Scalar) -> Meets {
    let maybe = |doubtful: bool| {
        if doubtful {
            Meets::Maybe(Doubt::Body)
        } else {
            Meets::No
        }
    };
    match (found, wanted) {
        (Found::Null, Scalar::Null) => Meets::Yes,
        (Found::Null, _) | (_, Scalar::Null) => Meets::No,
        (Found::Bool(value), Scalar::Bool(wanted)) => (value == wanted).into(),
        (Found::Number(value), Scalar::Number(wanted)) => (value == wanted).into(),
        (Found::Text(value), Scalar::Text(wanted)) => (**value == **wanted).into(),
        (Found::Number(value), Scalar::Text(wanted)) => {
            maybe(Decimal::parse(wanted.trim()).is_some_and(|wanted| wanted == *value))
        }
        (Found::Bool(value), Scalar::Text(wanted)) => {
            let spellings = if *value {
                ["true", "1"]
            } else {
                ["false", "0"]
            };
            maybe(
                spellings
                    .iter()
                    .any(|spelling| wanted.trim().eq_ignore_ascii_case(spelling)),
            )
        }
        (
            Found::Absent
            | Found::Ambiguous
            | Found::Bool(_)
            | Found::Number(_)
            | Found::Text(_)
            | Found::Composite,
            _,
        ) => maybe(true),
    }
}

#[cfg(test)]
mod tests;
