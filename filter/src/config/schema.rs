//! The JSON Schema of the plugin configuration, made from the table of keys. It is published for editors and
//! validators of configurations; the filter itself does not read it.

use serde_json::{Map, Value, json};

use super::keys::{Kind, ObjectSpec, ROOT};
use crate::limits;

/// The schema as a JSON value (draft 2020-12).
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert(
        "title".to_owned(),
        json!("Plugin configuration of hoop_filter.wasm"),
    );
    schema.extend(object(&ROOT));
    Value::Object(schema)
}

fn object(spec: &ObjectSpec) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in spec.keys {
        let mut entry = kind(&key.kind);
        entry.insert("description".to_owned(), json!(key.meaning));
        properties.insert(key.name.to_owned(), Value::Object(entry));
    }
    let required: Vec<&str> = spec
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema
}

fn scalar(longest: usize) -> Value {
    json!({"type": ["string", "number", "boolean", "null"], "maxLength": longest})
}

fn kind(kind: &Kind) -> Map<String, Value> {
    let value = match kind {
        Kind::Text { longest } => json!({"type": "string", "minLength": 1, "maxLength": longest}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Whole { lowest, highest } => {
            json!({"type": "integer", "minimum": lowest, "maximum": highest})
        }
        Kind::Texts { longest } => json!({
            "type": "array", "minItems": 1, "maxItems": limits::LIST_ENTRIES,
            "items": {"type": "string", "minLength": 1, "maxLength": longest},
        }),
        Kind::Object(spec) => Value::Object(object(spec)),
        Kind::Objects { of, most } => {
            json!({"type": "array", "maxItems": most, "items": object(of)})
        }
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Number => json!({"type": "number"}),
        Kind::Scalar { longest } => scalar(*longest),
        Kind::Scalars { longest } => json!({
            "type": "array", "minItems": 1, "maxItems": limits::LIST_ENTRIES, "items": scalar(*longest),
        }),
        Kind::Conditions { of, comparisons } => {
            let mut condition = object(of);
            let each: Vec<Value> = comparisons
                .iter()
                .map(|name| json!({"required": [name]}))
                .collect();
            condition.insert("oneOf".to_owned(), Value::Array(each));
            json!({"type": "array", "minItems": 1, "maxItems": limits::LIST_ENTRIES, "items": condition})
        }
    };
    match value {
        Value::Object(entries) => entries,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
