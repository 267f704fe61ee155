//! One value of an Envoy configuration together with its place: how protobuf messages are read from JSON.
//!
//! A message counts the fields that somebody asked for. [`Message::end`] refuses all others, so what nobody reads cannot be
//! dropped in silence. The rules are those of protobuf's JSON mapping, as far as configurations are written by hand: names in
//! snake_case or lowerCamelCase, `null` is a field that is not set, durations are texts such as `0.5s`.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use host_sim::MetadataValue;
use serde_json::{Map, Value};

use super::refusal::{LEAVE_OUT, Refusal, listed, shown};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node<'d> {
    pointer: String,
    value: &'d Value,
}

/// An object of which each field must be asked for.
#[derive(Debug)]
pub(super) struct Message<'d> {
    pointer: String,
    members: &'d Map<String, Value>,
    /// The fields that were asked for, set or not.
    known: Vec<&'static str>,
    /// The keys of those that are set.
    read: Vec<&'d str>,
}

impl<'d> Node<'d> {
    pub(super) fn root(document: &'d Value) -> Node<'d> {
        let pointer = String::new();
        Node {
            pointer,
            value: document,
        }
    }

    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// A refusal of this value.
    pub(super) fn refuse(&self, understood: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal::new(&self.pointer, shown(self.value), understood, hint)
    }

    pub(super) fn message(&self) -> Result<Message<'d>, Refusal> {
        let Value::Object(members) = self.value else {
            return Err(self.refuse("an object", SEE_ENVOY));
        };
        Ok(Message {
            pointer: self.pointer.clone(),
            members,
            known: Vec::new(),
            read: Vec::new(),
        })
    }

    pub(super) fn list(&self) -> Result<Vec<Node<'d>>, Refusal> {
        let Value::Array(items) = self.value else {
            return Err(self.refuse("a list", SEE_ENVOY));
        };
        let item = |(index, value)| Node {
            pointer: format!("{}/{index}", self.pointer),
            value,
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// The one item of a list.
    pub(super) fn only(&self, what: &str) -> Result<Node<'d>, Refusal> {
        let mut items = self.list()?;
        match (items.pop(), items.len()) {
            (Some(item), 0) => Ok(item),
            (Some(_), more) => Err(Refusal::new(
                &self.pointer,
                format!("{} items", more + 1),
                format!("one {what}"),
                LEAVE_OUT,
            )),
            (None, _) => Err(self.refuse(format!("one {what}"), SEE_ENVOY)),
        }
    }

    pub(super) fn text(&self) -> Result<&'d str, Refusal> {
        self.value
            .as_str()
            .ok_or_else(|| self.refuse("a text", "put it in quotation marks"))
    }

    pub(super) fn texts(&self) -> Result<Vec<String>, Refusal> {
        let items = self.list()?;
        items
            .iter()
            .map(|item| item.text().map(str::to_owned))
            .collect()
    }

    pub(super) fn boolean(&self) -> Result<bool, Refusal> {
        self.value
            .as_bool()
            .ok_or_else(|| self.refuse("`true` or `false`", SEE_ENVOY))
    }

    /// An unsigned number from `least` to `most`. Protobuf reads it from a text too.
    pub(super) fn number(&self, least: u32, most: u32) -> Result<u32, Refusal> {
        let number = match self.value.as_str() {
            Some(text) => text.parse().ok(),
            None => self.value.as_u64(),
        };
        number
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                let understood = format!("a whole number from {least} to {most}");
                self.refuse(understood, SEE_ENVOY)
            })
    }

    /// Any value, as a `google.protobuf.Value`.
    pub(super) fn metadata(&self) -> MetadataValue {
        metadata(self.value)
    }

    /// Bytes, which protobuf writes in base64.
    pub(super) fn base64(&self) -> Result<Vec<u8>, Refusal> {
        let bytes = self
            .value
            .as_str()
            .and_then(|text| BASE64.decode(text).ok());
        bytes.ok_or_else(|| self.refuse("bytes in base64", SEE_ENVOY))
    }

    /// A message of which nothing may be set.
    pub(super) fn empty_message(&self, hint: &str) -> Result<(), Refusal> {
        if self.value.as_object().is_some_and(Map::is_empty) {
            return Ok(());
        }
        Err(self.refuse("only `{}`", hint))
    }

    /// A duration as protobuf writes it: seconds with up to nine decimals and the letter `s`.
    pub(super) fn duration(&self) -> Result<Duration, Refusal> {
        self.value.as_str().and_then(seconds).ok_or_else(|| {
            self.refuse(
                "a duration in seconds such as \"60s\" or \"0.5s\"",
                "write seconds, with up to nine decimals, and the letter s",
            )
        })
    }

    /// A duration of which zero means that there is no limit.
    pub(super) fn limit(&self) -> Result<Option<Duration>, Refusal> {
        Ok(Some(self.duration()?).filter(|limit| !limit.is_zero()))
    }

    /// One of the words of an enumeration.
    pub(super) fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Refusal> {
        let found = self
            .value
            .as_str()
            .and_then(|found| words.iter().find(|(word, _)| *word == found));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let understood = listed(words.iter().map(|(word, _)| *word));
            self.refuse(understood, LEAVE_OUT)
        })
    }

    /// A switch that stands as Envoy would have it anyway, in words of the enumeration or as a boolean.
    pub(super) fn must_be(&self, value: &Value, hint: &str) -> Result<(), Refusal> {
        if self.value == value {
            return Ok(());
        }
        Err(self.refuse(format!("only {value}"), hint))
    }

    /// A `google.protobuf.Any` of one of `types`, given without the `type.googleapis.com/` in front of them.
    pub(super) fn any(
        &self,
        types: &[&'static str],
    ) -> Result<(&'static str, Message<'d>), Refusal> {
        let mut message = self.message()?;
        let name = message.required("@type")?;
        let found = name.text()?;
        let short = found.rsplit_once('/').map_or(found, |(_, short)| short);
        match types.iter().find(|known| **known == short) {
            Some(known) => Ok((known, message)),
            None => Err(name.refuse(listed(types.iter().copied()), LEAVE_OUT)),
        }
    }
}

impl<'d> Message<'d> {
    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The field, when it is set.
    pub(super) fn optional(&mut self, field: &'static str) -> Option<Node<'d>> {
        self.known.push(field);
        let (key, value) = self
            .members
            .get_key_value(field)
            .or_else(|| self.members.get_key_value(&camel_case(field)))?;
        self.read.push(key);
        let pointer = format!("{}/{}", self.pointer, escaped(key));
        (!value.is_null()).then_some(Node { pointer, value })
    }

    pub(super) fn required(&mut self, field: &'static str) -> Result<Node<'d>, Refusal> {
        self.optional(field).ok_or_else(|| {
            let pointer = format!("{}/{field}", self.pointer);
            Refusal::new(
                &pointer,
                "nothing",
                "a value, which Envoy needs too",
                SEE_ENVOY,
            )
        })
    }

    /// The field as `read` reads it, when it is set.
    pub(super) fn read<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&Node<'d>) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        self.optional(field).map(|node| read(&node)).transpose()
    }

    /// The text of a field; empty when it is not set, as in protobuf.
    pub(super) fn text(&mut self, field: &'static str) -> Result<String, Refusal> {
        let text = self.read(field, Node::text)?;
        Ok(text.unwrap_or_default().to_owned())
    }

    /// The boolean of a field; false when it is not set.
    pub(super) fn flag(&mut self, field: &'static str) -> Result<bool, Refusal> {
        Ok(self.read(field, Node::boolean)?.unwrap_or_default())
    }

    /// The one field of `fields` that is set. Protobuf calls it a oneof.
    pub(super) fn one_of(
        &mut self,
        fields: &[&'static str],
    ) -> Result<(&'static str, Node<'d>), Refusal> {
        let mut set = Vec::new();
        for field in fields {
            set.extend(self.optional(field).map(|node| (*field, node)));
        }
        let count = set.len();
        match (set.pop(), count) {
            (Some(found), 1) => Ok(found),
            _ => {
                // A field of the oneof that is not understood says more than that none of ours is there.
                self.check_unknown()?;
                let found = match count {
                    0 => "none of the fields".to_owned(),
                    _ => format!("{count} of the fields"),
                };
                let understood = format!("one of {}", listed(fields.iter().copied()));
                Err(Refusal::new(&self.pointer, found, understood, SEE_ENVOY))
            }
        }
    }

    /// Every key with its node, for maps.
    pub(super) fn entries(&mut self) -> Vec<(&'d str, Node<'d>)> {
        let entries = self.members.iter().map(|(key, value)| {
            let pointer = format!("{}/{}", self.pointer, escaped(key));
            (key.as_str(), Node { pointer, value })
        });
        let entries: Vec<_> = entries.collect();
        self.read.extend(entries.iter().map(|(key, _)| *key));
        entries
    }

    /// Refuses every field that nobody has asked for.
    pub(super) fn end(self) -> Result<(), Refusal> {
        self.check_unknown()
    }

    fn check_unknown(&self) -> Result<(), Refusal> {
        let unknown = self
            .members
            .iter()
            .find(|(key, _)| !self.read.contains(&key.as_str()));
        let Some((key, value)) = unknown else {
            return Ok(());
        };
        let understood = match self.known.as_slice() {
            [] => "no field here".to_owned(),
            known => listed(known.iter().copied().filter(|field| *field != "@type")),
        };
        let pointer = format!("{}/{}", self.pointer, escaped(key));
        Err(Refusal::new(&pointer, shown(value), understood, LEAVE_OUT))
    }
}

fn metadata(value: &Value) -> MetadataValue {
    match value {
        Value::Null => MetadataValue::Null,
        Value::Bool(value) => MetadataValue::Bool(*value),
        Value::Number(number) => MetadataValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => MetadataValue::Text(text.clone()),
        Value::Array(items) => MetadataValue::List(items.iter().map(metadata).collect()),
        Value::Object(members) => {
            let values = members.iter();
            let values = values.map(|(name, value)| (name.clone(), metadata(value)));
            MetadataValue::Group(values.collect())
        }
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > NANOSECOND_DIGITS {
        return None;
    }
    let nanoseconds = format!("{decimals:0<NANOSECOND_DIGITS$}").parse().ok()?;
    let whole = whole
        .parse()
        .ok()
        .filter(|whole| *whole <= DURATION_MAX_SECONDS)?;
    Some(Duration::new(whole, nanoseconds))
}

/// `stat_prefix` as `statPrefix`.
fn camel_case(field: &str) -> String {
    let mut camel = String::with_capacity(field.len());
    let mut upper = false;
    for character in field.chars() {
        if character == '_' {
            upper = true;
        } else if std::mem::take(&mut upper) {
            camel.extend(character.to_uppercase());
        } else {
            camel.push(character);
        }
    }
    camel
}

/// A key within a JSON pointer (RFC 6901, section 4).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

pub(super) const SEE_ENVOY: &str =
    "check the file with `envoy --mode validate`, or compare it with envoy/envoy.yaml";
const NANOSECOND_DIGITS: usize = 9;
/// The bound of `google.protobuf.Duration`.
const DURATION_MAX_SECONDS: u64 = 315_576_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_durations() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("1860s", 1_860_000),
            ("0.5s", 500),
            ("1.25s", 1250),
        ] {
            assert_eq!(
                seconds(text),
                Some(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        assert_eq!(seconds("0.000000001s"), Some(Duration::from_nanos(1)));
    }

    #[test]
    fn err_durations() {
        for text in [
            "",
            "s",
            "1",
            "1m",
            "-1s",
            ".5s",
            "1.s",
            "1.0000000001s",
            "1e3s",
            " 1s",
            "99999999999999s",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn fields_are_known_in_both_spellings() {
        for (field, camel) in [
            ("stat_prefix", "statPrefix"),
            ("name", "name"),
            ("@type", "@type"),
        ] {
            assert_eq!(camel_case(field), camel);
        }
    }
}
