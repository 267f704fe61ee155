//! The numbers that conditions compare with, as the operator spelled them: the JSON values of the rest of the
//! configuration hold doubles, and a rule on 9007199254740993 must not become one on 9007199254740992.

use serde_json::Value;

use super::check::child;
use super::error::ConfigError;
use crate::json::decimal::Decimal;
use crate::json::pointer::{Pointer, Pointers};
use crate::json::{Found, select};
use crate::table::Table;

/// Exact numbers by the place where they stand.
#[derive(Debug)]
pub(super) struct Numbers(Table<String, Decimal>);

impl Numbers {
    /// Finds the numbers of all JSON conditions of a checked document.
    pub fn of(document: &Value, text: &[u8]) -> Result<Self, ConfigError> {
        let mut places = Vec::new();
        for (at, rule) in items(document.get("rules")) {
            let conditions = rule
                .get("match")
                .and_then(|conditions| conditions.get("json"));
            for (nth, condition) in items(conditions) {
                let place = format!("/rules/{at}/match/json/{nth}");
                for (key, value) in condition.as_object().into_iter().flatten() {
                    collect(value, child(&place, key), &mut places);
                }
            }
        }
        if places.is_empty() {
            return Ok(Self(Table::new()));
        }
        let mut pointers = Pointers::default();
        for place in &places {
            if let Ok(pointer) = Pointer::parse(place) {
                pointers.add(&pointer);
            }
        }
        let found = select(text, &pointers).map_err(|_| {
            ConfigError::new(
                "",
                "this is not JSON that can be trusted",
                "correct the JSON, each key once",
            )
        })?;
        let mut exact = Table::new();
        for (place, found) in places.into_iter().zip(found) {
            if let Found::Number(number) = found {
                exact.insert(place, number);
            }
        }
        Ok(Self(exact))
    }

    /// The number that stands at a place.
    pub fn at(&self, place: &str) -> Result<Decimal, ConfigError> {
        match self.0.get(place) {
            Some(number) if !number.is_extreme() => Ok(number.clone()),
            Some(_) | None => Err(ConfigError::new(
                place,
                "found a number with an exponent that no reader of JSON takes",
                "write a number that can occur in a body",
            )),
        }
    }
}

fn items(list: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    if value.is_number() {
        places.push(place);
        return;
    }
    for (nth, item) in items(Some(value)) {
        if item.is_number() {
            places.push(format!("{place}/{nth}"));
        }
    }
}
