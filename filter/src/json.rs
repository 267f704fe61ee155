//! Strict JSON: a repeated key or a nesting beyond [`limits::JSON_DEPTH`] is a fault, because two readers of such a
//! text may see two different things. Knows nothing of what the text means.
//!
//! Two readers: [`parse`] for the short texts of the operator and the Control Plane, and [`select()`] for what a client
//! sends: it keeps numbers exact and builds nothing that no pointer asks for. One writer: [`Object`].

pub mod decimal;
mod members;
pub mod pointer;
mod select;
mod write;

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use members::Members;
pub use select::{Found, NotStrict, select};
pub use write::{Object, quoted};

use crate::limits;

/// Why a text is not JSON that can be trusted; the text says line and column.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JsonFault(#[from] serde_json::Error);

/// Reads one JSON text.
///
/// # Errors
///
/// When the text is no JSON, has something behind its end, repeats a key of an object, or nests too deeply.
pub fn parse(text: &[u8]) -> Result<Value, JsonFault> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Strict {
        depth: limits::JSON_DEPTH,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth }),
            None => Err(E::custom(format_args!(
                "nested deeper than {} levels",
                limits::JSON_DEPTH
            ))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number without a finite value"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut entries = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(inner)?;
            if entries.contains_key(&key) {
                return Err(de::Error::custom(format_args!(
                    "the key {key:?} stands twice in one object"
                )));
            }
            entries.insert(key, value);
        }
        Ok(Value::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ok_plain_values() {
        for text in [
            "null",
            "true",
            "-1",
            "18446744073709551615",
            "1.5",
            r#""a\u00e9""#,
            "[]",
            "{}",
            r#"{"a":[{"b":1}]}"#,
        ] {
            let strict = parse(text.as_bytes()).expect(text);

            assert_eq!(
                strict,
                serde_json::from_str::<Value>(text).expect(text),
                "{text}"
            );
        }
    }

    #[test]
    fn err_a_key_that_stands_twice() {
        let fault = parse(br#"{"a":1,"b":{"c":1,"c":2}}"#).expect_err("refused");

        assert_eq!(
            fault.to_string(),
            "the key \"c\" stands twice in one object at line 1 column 24"
        );
    }

    #[test]
    fn err_something_behind_the_end() {
        assert!(parse(b"{} {}").is_err());
        assert!(parse(b"").is_err());
        assert!(parse(b"{").is_err());
        assert!(parse(b"\xff").is_err());
    }

    #[test]
    fn err_nesting_without_bound() {
        let text = "[".repeat(100_000);

        assert!(parse(text.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&bytes);
        }
    }
}
