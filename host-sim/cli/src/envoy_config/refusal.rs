//! What is said to an operator whose Envoy configuration is refused: where, what was found, what is understood, and the remedy.

use std::fmt;

use serde_json::Value;

/// A place in the configuration that the simulator does not run as Envoy would. Nothing of the file is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// JSON pointer of the place (RFC 6901).
    pointer: String,
    /// What stands there.
    found: String,
    /// What may stand there.
    understood: String,
    /// What to do about it.
    hint: String,
}

impl Refusal {
    pub(super) fn new(
        pointer: &str,
        found: impl Into<String>,
        understood: impl Into<String>,
        hint: impl Into<String>,
    ) -> Refusal {
        Refusal {
            pointer: pointer.to_owned(),
            found: found.into(),
            understood: understood.into(),
            hint: hint.into(),
        }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.pointer.as_str() {
            "" => "the whole file",
            pointer => pointer,
        };
        let (found, understood) = (&self.found, &self.understood);
        write!(
            formatter,
            "{place}: found {found}, understood: {understood}"
        )
    }
}

/// `value` as a message shows it. A list or object says more by its place than by its text, which may be long.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.iter().all(is_scalar) => listed_values(items),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN_CHARACTERS => {
            let start: String = text.chars().take(SHOWN_CHARACTERS).collect();
            format!("a text that starts with {}", Value::from(start))
        }
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn listed_values(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().take(SHOWN_ITEMS + 1).map(shown).collect();
    match items.get(..SHOWN_ITEMS) {
        Some(first) if items.len() > SHOWN_ITEMS => format!("[{}, ...]", first.join(", ")),
        _ => format!("[{}]", items.join(", ")),
    }
}

/// `a`, `b` and `c`, each in backticks.
pub(super) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// The remedy for most places.
pub(super) const LEAVE_OUT: &str =
    "leave it out where your test does not depend on it, or run this file on Envoy";

const SHOWN_CHARACTERS: usize = 120;
const SHOWN_ITEMS: usize = 4;
