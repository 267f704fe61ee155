//! The conditions of a rule beyond method, host and path: on headers, query parameters, values of a JSON body and the
//! metadata of the Envoy route. All conditions of a rule must hold.

use serde_json::{Map, Value};

use super::check::{child, is_token, items_of, objects_of, text_of, texts_of};
use super::error::ConfigError;
use super::numbers::Numbers;
use crate::glob::{Case, Steps, WordGlob};
use crate::json::decimal::Decimal;
use crate::json::pointer::Pointer;
use crate::request::query::ParameterName;

/// What else must hold for a rule to meet a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// On headers.
    pub headers: Vec<HeaderCondition>,
    /// On query parameters.
    pub query: Vec<QueryCondition>,
    /// On values of a JSON body.
    pub json: Vec<JsonCondition>,
    /// On the metadata of the Envoy route.
    pub route_metadata: Vec<MetadataCondition>,
}

/// A condition on a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderCondition {
    /// Its name in lower case.
    pub name: String,
    /// What its values are held against.
    pub test: TextTest,
}

/// A condition on a query parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryCondition {
    /// Its decoded name.
    pub name: ParameterName,
    /// What its value is held against.
    pub test: TextTest,
}

/// A condition on the metadata of the Envoy route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataCondition {
    /// The namespace.
    pub namespace: String,
    /// The key within it.
    pub key: String,
    /// What its value is held against.
    pub test: TextTest,
}

/// A condition on a value of a JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonCondition {
    /// Where the value stands.
    pub pointer: Pointer,
    /// What it is held against.
    pub test: JsonTest,
}

/// What a text is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTest {
    /// Whether it is there.
    Exists(bool),
    /// A glob over all of it.
    Glob(WordGlob),
    /// One of these, whole.
    OneOf(Vec<Vec<u8>>),
}

impl TextTest {
    /// Whether a value that is there passes; `None` where the steps do not suffice to tell.
    #[must_use]
    pub fn passes(&self, value: &[u8], case: Case, steps: &Steps) -> Option<bool> {
        match self {
            Self::Exists(wanted) => Some(*wanted),
            Self::Glob(glob) => glob.matches_within(value, case, steps),
            Self::OneOf(values) => steps.take(values.len()).then(|| {
                values.iter().any(|wanted| match case {
                    Case::Insensitive => wanted.eq_ignore_ascii_case(value),
                    Case::Sensitive => wanted == value,
                })
            }),
        }
    }
}

/// What a JSON value is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonTest {
    /// A number in this relation.
    Compared(Relation, Decimal),
    /// Whether it is there.
    Exists(bool),
    /// One of these, all of one type.
    OneOf(Vec<Scalar>),
}

/// How a number stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same or above.
    AtLeast,
    /// The same or below.
    AtMost,
    /// Above.
    GreaterThan,
    /// Below.
    LessThan,
}

/// A JSON value without parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// A number.
    Number(Decimal),
    /// A string.
    Text(String),
}

/// Reads the conditions of a checked `match`.
pub(super) fn conditions(
    entries: &Map<String, Value>,
    numbers: &Numbers,
    place: &str,
) -> Result<Conditions, ConfigError> {
    Ok(Conditions {
        headers: each(entries, "headers", place, header)?,
        query: each(entries, "query", place, parameter)?,
        json: each(entries, "json", place, |condition, place| {
            json(condition, numbers, place)
        })?,
        route_metadata: each(entries, "route_metadata", place, |condition, _| {
            Ok(MetadataCondition {
                namespace: text_of(condition, "namespace")
                    .unwrap_or(ROUTE_NAMESPACE)
                    .to_owned(),
                key: text_of(condition, "key").unwrap_or_default().to_owned(),
                test: text_test(condition),
            })
        })?,
    })
}

/// Namespace of a route's metadata that is this filter's own.
pub const ROUTE_NAMESPACE: &str = "hoop";

fn each<T>(
    entries: &Map<String, Value>,
    key: &str,
    place: &str,
    read: impl Fn(&Map<String, Value>, &str) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    let place = child(place, key);
    let mut conditions = Vec::new();
    for (at, condition) in objects_of(entries, key) {
        conditions.push(read(condition, &format!("{place}/{at}"))?);
    }
    Ok(conditions)
}

fn text_test(condition: &Map<String, Value>) -> TextTest {
    let whole = text_of(condition, "equals").map(|text| vec![text.as_bytes().to_vec()]);
    if let Some(values) = whole {
        return TextTest::OneOf(values);
    }
    if let Some(glob) = text_of(condition, "glob") {
        return TextTest::Glob(WordGlob::parse(glob));
    }
    if let Some(wanted) = condition.get("exists").and_then(Value::as_bool) {
        return TextTest::Exists(wanted);
    }
    let values = texts_of(condition, "in").into_iter();
    TextTest::OneOf(values.map(|text| text.as_bytes().to_vec()).collect())
}

fn header(condition: &Map<String, Value>, place: &str) -> Result<HeaderCondition, ConfigError> {
    let written = text_of(condition, "name").unwrap_or_default();
    let name = written.to_ascii_lowercase();
    let refuse = |problem: &str, hint: &str| {
        Err(ConfigError::new(
            &child(place, "name"),
            format!("found {written:?}, {problem}"),
            hint,
        ))
    };
    if name.starts_with(':') || name == "host" {
        return refuse(
            "which is no header but a part of the request line or the host",
            "use methods, hosts, paths or query",
        );
    }
    if !is_token(&name) {
        return refuse("which is no header name", "write a name such as \"x-env\"");
    }
    if ENVOY_OWNED.contains(&name.as_str()) {
        return refuse(
            "which belongs to the connection: Envoy takes it away or writes it anew, so it says nothing of the request",
            "choose a header that the client sends to the upstream",
        );
    }
    if name.starts_with("x-hoop-") {
        return refuse(
            "which is a header of this gate",
            "choose a header that the client sends to the upstream",
        );
    }
    Ok(HeaderCondition {
        name,
        test: text_test(condition),
    })
}

/// Headers of one connection (RFC 9110, 7.6.1) or of the framing, which differ between HTTP versions for the same request.
const ENVOY_OWNED: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn parameter(condition: &Map<String, Value>, place: &str) -> Result<QueryCondition, ConfigError> {
    let name = text_of(condition, "name").unwrap_or_default();
    let Some(name) = ParameterName::parse(name) else {
        return Err(ConfigError::new(
            &child(place, "name"),
            format!(
                "found {name:?}, which no query can spell without escapes, so that nobody could tell it"
            ),
            "write the decoded name, in ASCII and without spaces and any of % + & = ; # ?",
        ));
    };
    Ok(QueryCondition {
        name,
        test: text_test(condition),
    })
}

fn json(
    condition: &Map<String, Value>,
    numbers: &Numbers,
    place: &str,
) -> Result<JsonCondition, ConfigError> {
    let pointer = text_of(condition, "pointer").unwrap_or_default();
    let Ok(pointer) = Pointer::parse(pointer) else {
        return Err(ConfigError::new(
            &child(place, "pointer"),
            format!("found {pointer:?}, which is no JSON pointer (RFC 6901)"),
            "begin with \"/\" and write \"~0\" for ~ and \"~1\" for / within a name, such as \"/items/0/amount\"",
        ));
    };
    Ok(JsonCondition {
        pointer,
        test: json_test(condition, numbers, place)?,
    })
}

fn json_test(
    condition: &Map<String, Value>,
    numbers: &Numbers,
    place: &str,
) -> Result<JsonTest, ConfigError> {
    for (key, relation) in RELATIONS {
        if condition.contains_key(key) {
            return Ok(JsonTest::Compared(
                relation,
                numbers.at(&child(place, key))?,
            ));
        }
    }
    if let Some(wanted) = condition.get("exists").and_then(Value::as_bool) {
        return Ok(JsonTest::Exists(wanted));
    }
    if let Some(value) = condition.get("equals") {
        let value = scalar(value, numbers, &child(place, "equals"))?;
        return Ok(JsonTest::OneOf(vec![value]));
    }
    let place = child(place, "in");
    let mut values = Vec::new();
    for (at, value) in items_of(condition, "in").iter().enumerate() {
        values.push(scalar(value, numbers, &format!("{place}/{at}"))?);
    }
    if let [first, others @ ..] = values.as_slice() {
        let kind = std::mem::discriminant(first);
        if others
            .iter()
            .any(|other| std::mem::discriminant(other) != kind)
        {
            return Err(ConfigError::new(
                &place,
                "found values of different types, allowed are values of one type",
                "write a rule for each type; 1 and \"1\" are different values",
            ));
        }
    }
    Ok(JsonTest::OneOf(values))
}

const RELATIONS: [(&str, Relation); 4] = [
    ("greater_than", Relation::GreaterThan),
    ("at_least", Relation::AtLeast),
    ("less_than", Relation::LessThan),
    ("at_most", Relation::AtMost),
];

fn scalar(value: &Value, numbers: &Numbers, place: &str) -> Result<Scalar, ConfigError> {
    Ok(match value {
        Value::Bool(value) => Scalar::Bool(*value),
        Value::Number(_) => Scalar::Number(numbers.at(place)?),
        Value::String(text) => Scalar::Text(text.clone()),
        // The table of keys lets no list and no object come here.
        Value::Null | Value::Array(_) | Value::Object(_) => Scalar::Null,
    })
}

#[cfg(test)]
mod tests;
