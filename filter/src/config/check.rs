//! Checks a JSON value against the table of keys: unknown keys, missing keys, types, bounds. Knows no meaning beyond
//! that table.

use serde_json::{Map, Value};

use super::error::{ConfigError, nearest};
use super::keys::{KeySpec, Kind, ObjectSpec};
use crate::limits;

/// Checks an object and everything in it.
pub(super) fn object(value: &Value, spec: &ObjectSpec, pointer: &str) -> Result<(), ConfigError> {
    let Value::Object(entries) = value else {
        return Err(wrong_type(pointer, value, "an object"));
    };
    for (name, entry) in entries {
        let place = child(pointer, name);
        match spec.keys.iter().find(|key| key.name == name) {
            Some(key) => check(entry, key, &place)?,
            None => return Err(unknown_key(name, spec, &place)),
        }
    }
    for key in spec.keys.iter().filter(|key| key.required) {
        if !entries.contains_key(key.name) {
            return Err(ConfigError::new(
                &child(pointer, key.name),
                "this key is required and missing",
                format!("add it: {}", key.meaning),
            ));
        }
    }
    Ok(())
}

fn check(value: &Value, key: &KeySpec, pointer: &str) -> Result<(), ConfigError> {
    match &key.kind {
        Kind::Text { longest } => text(value, *longest, pointer),
        Kind::Word(words) => word(value, words, pointer),
        Kind::Whole { lowest, highest } => whole(value, *lowest, *highest, pointer),
        Kind::Texts { longest } => each(value, limits::LIST_ENTRIES, pointer, &|item, place| {
            text(item, *longest, place)
        }),
        Kind::Object(spec) => object(value, spec, pointer),
        Kind::Objects { of, most } => {
            if value.as_array().is_some_and(Vec::is_empty) {
                return Ok(());
            }
            each(value, *most, pointer, &|item, place| {
                object(item, of, place)
            })
        }
        Kind::Bool => match value {
            Value::Bool(_) => Ok(()),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => Err(wrong_type(pointer, value, "true or false")),
        },
        Kind::Number => match value {
            Value::Number(_) => Ok(()),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => Err(wrong_type(pointer, value, "a number")),
        },
        Kind::Scalar { longest } => scalar(value, *longest, pointer),
        Kind::Scalars { longest } => each(value, limits::LIST_ENTRIES, pointer, &|item, place| {
            scalar(item, *longest, place)
        }),
        Kind::Conditions { of, comparisons } => {
            each(value, limits::LIST_ENTRIES, pointer, &|item, place| {
                object(item, of, place)?;
                one_comparison(item, comparisons, place)
            })
        }
    }
}

fn text(value: &Value, longest: usize, pointer: &str) -> Result<(), ConfigError> {
    let Value::String(text) = value else {
        return Err(wrong_type(pointer, value, "a text"));
    };
    if text.trim().is_empty() {
        return Err(ConfigError::new(
            pointer,
            "found a blank text",
            "name something, or leave the key out",
        ));
    }
    if text.len() > longest {
        let problem = format!("found {} bytes, at most {longest} are allowed", text.len());
        return Err(ConfigError::new(pointer, problem, "shorten it"));
    }
    if text.chars().any(char::is_control) {
        return Err(ConfigError::new(
            pointer,
            "found a control character",
            "remove line breaks and other control characters",
        ));
    }
    Ok(())
}

fn word(value: &Value, words: &[&str], pointer: &str) -> Result<(), ConfigError> {
    let Value::String(found) = value else {
        return Err(wrong_type(
            pointer,
            value,
            &format!("one of {}", listed(words)),
        ));
    };
    if words.contains(&found.as_str()) {
        return Ok(());
    }
    let problem = format!("found {:?}, allowed is {}", shown(found), listed(words));
    let hint = meant(found, words);
    Err(ConfigError::new(pointer, problem, hint))
}

fn whole(value: &Value, lowest: u64, highest: u64, pointer: &str) -> Result<(), ConfigError> {
    let allowed = format!("a whole number from {lowest} to {highest}");
    let Value::Number(number) = value else {
        return Err(wrong_type(pointer, value, &allowed));
    };
    match whole_number(number) {
        Some(found) if (lowest..=highest).contains(&found) => Ok(()),
        _ => Err(ConfigError::new(
            pointer,
            format!("found {number}, allowed is {allowed}"),
            "choose a number within these bounds",
        )),
    }
}

fn scalar(value: &Value, longest: usize, pointer: &str) -> Result<(), ConfigError> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.len() <= longest => Ok(()),
        Value::String(text) => Err(ConfigError::new(
            pointer,
            format!("found {} bytes, at most {longest} are allowed", text.len()),
            "shorten it",
        )),
        Value::Array(_) | Value::Object(_) => Err(wrong_type(
            pointer,
            value,
            "a text, a number, true, false or null",
        )),
    }
}

/// A condition with two comparisons could mean either or both, and one with none would mean nothing.
fn one_comparison(value: &Value, comparisons: &[&str], pointer: &str) -> Result<(), ConfigError> {
    let found: Vec<&str> = comparisons
        .iter()
        .copied()
        .filter(|name| value.get(name).is_some())
        .collect();
    let hint = match found.as_slice() {
        [_] => return Ok(()),
        [] => "add one, such as \"exists\": true",
        [_, ..] => "write a condition of its own for each; all conditions of a rule must hold",
    };
    let allowed = listed(comparisons);
    let found = if found.is_empty() {
        "no comparison".to_owned()
    } else {
        listed(&found)
    };
    Err(ConfigError::new(
        pointer,
        format!("found {found}, allowed is exactly one of {allowed}"),
        hint,
    ))
}

/// Whether a text is a token of RFC 9110, 5.6.2, as methods and header names are. (The `http` crate's own type for header
/// names brings 12 KB of known names along.)
pub(super) fn is_token(text: &str) -> bool {
    http::Method::from_bytes(text.as_bytes()).is_ok()
}

/// A number without a fraction. Envoy writes every number of a Struct as a double, so `65536` may arrive as `65536.0`.
pub(super) fn whole_number(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let text = number.to_string();
        text.strip_suffix(".0")?.parse().ok()
    })
}

fn each(
    value: &Value,
    most: usize,
    pointer: &str,
    check_item: &dyn Fn(&Value, &str) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    let Value::Array(items) = value else {
        return Err(wrong_type(pointer, value, "a list"));
    };
    if items.is_empty() {
        return Err(ConfigError::new(
            pointer,
            "found an empty list, which nothing could ever match",
            "name at least one entry, or leave the key out to match everything",
        ));
    }
    if items.len() > most {
        return Err(ConfigError::new(
            pointer,
            format!("found {} entries, at most {most} are allowed", items.len()),
            "merge entries with globs",
        ));
    }
    items
        .iter()
        .enumerate()
        .try_for_each(|(at, item)| check_item(item, &format!("{pointer}/{at}")))
}

fn unknown_key(name: &str, spec: &ObjectSpec, pointer: &str) -> ConfigError {
    let known: Vec<&str> = spec.keys.iter().map(|key| key.name).collect();
    let problem = format!(
        "the key {:?} is unknown, allowed are {}",
        shown(name),
        listed(&known)
    );
    ConfigError::new(pointer, problem, meant(name, &known))
}

fn meant(found: &str, known: &[&str]) -> String {
    match nearest(found, known) {
        Some(word) => format!("did you mean {word:?}?"),
        None => "remove it, or use one of the allowed ones".to_owned(),
    }
}

fn wrong_type(pointer: &str, value: &Value, allowed: &str) -> ConfigError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    ConfigError::new(
        pointer,
        format!("found {found}, allowed is {allowed}"),
        "correct the type of this value",
    )
}

fn listed(words: &[&str]) -> String {
    let mut listed = String::new();
    for word in words {
        if !listed.is_empty() {
            listed.push_str(", ");
        }
        listed.push_str(&format!("{word:?}"));
    }
    listed
}

/// What was found, short enough for one log line. The operator may have pasted anything there.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The pointer of a member (RFC 6901: `~` and `/` are escaped).
pub(super) fn child(pointer: &str, name: &str) -> String {
    format!(
        "{pointer}/{}",
        shown(name).replace('~', "~0").replace('/', "~1")
    )
}

/// A text of a checked object.
pub(super) fn text_of<'v>(entries: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    entries.get(name).and_then(Value::as_str)
}

/// A whole number of a checked object.
pub(super) fn whole_of(entries: &Map<String, Value>, name: &str) -> Option<u64> {
    match entries.get(name)? {
        Value::Number(number) => whole_number(number),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// The items of a list of a checked object; none where the key is absent.
pub(super) fn items_of<'v>(entries: &'v Map<String, Value>, name: &str) -> &'v [Value] {
    let items = entries.get(name).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a list of a checked object; none where the key is absent.
pub(super) fn texts_of<'v>(entries: &'v Map<String, Value>, name: &str) -> Vec<&'v str> {
    let texts = items_of(entries, name).iter();
    texts.filter_map(Value::as_str).collect()
}

/// The objects of a list of a checked object, each with its place in the list; none where the key is absent.
pub(super) fn objects_of<'v>(
    entries: &'v Map<String, Value>,
    name: &str,
) -> Vec<(usize, &'v Map<String, Value>)> {
    let objects = items_of(entries, name).iter();
    objects.filter_map(Value::as_object).enumerate().collect()
}
