//! Random messages of any type, made from random bytes, so that proptest can shrink them.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, Kind, MapKey, MessageDescriptor, Value};

use crate::canonical::canonical;

/// Where randomness comes from; once it is used up, everything is zero.
pub struct Choices {
    bytes: std::vec::IntoIter<u8>,
}

impl Choices {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into_iter(),
        }
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().unwrap_or_default()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// Small numbers, large ones, and those at the ends.
    fn bits(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => self.byte().into(),
            1 => u64::from_le_bytes(self.array()),
            2 => !u64::from(self.byte() % 3),
            _ => (1 << 31) | u64::from(self.byte() % 2),
        }
    }

    fn low_bits(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.bits().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn text(&mut self) -> String {
        const LETTERS: [char; 12] = [
            'a',
            'B',
            '_',
            '"',
            '\\',
            '\n',
            '/',
            '\u{e9}',
            '\u{202e}',
            '\u{200b}',
            '\u{1f600}',
            '\u{e0041}',
        ];
        let length = self.byte() % 5;
        (0..length)
            .map(|_| LETTERS[usize::from(self.byte() % 12)])
            .collect()
    }
}

/// A message with some of its fields.
pub fn message(descriptor: &MessageDescriptor, choices: &mut Choices, depth: u8) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    if let Some(ready) = well_known(descriptor, choices, depth) {
        return ready;
    }
    for field in descriptor.fields() {
        let is_required = field.cardinality() == prost_reflect::Cardinality::Required;
        if !is_required && choices.byte() % 4 != 1 {
            continue;
        }
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                panic!("a map without entries");
            };
            let mut entries = HashMap::new();
            for _ in 0..choices.byte() % 4 {
                let key = value(&entry.map_entry_key_field().kind(), choices, depth);
                let value = key.zip(value(&entry.map_entry_value_field().kind(), choices, depth));
                if let Some((key, value)) = value {
                    entries.insert(map_key(key), value);
                }
            }
            message.set_field(&field, Value::Map(entries));
        } else if field.is_list() {
            let items =
                (0..choices.byte() % 4).filter_map(|_| value(&field.kind(), choices, depth));
            message.set_field(&field, Value::List(items.collect()));
        } else if let Some(value) = value(&field.kind(), choices, depth) {
            message.set_field(&field, value);
        }
    }
    for extension in descriptor.extensions() {
        if choices.byte() % 4 == 1
            && let Some(item) = value(&extension.kind(), choices, depth)
        {
            let value = if extension.is_list() {
                Value::List(vec![item])
            } else {
                item
            };
            message.set_extension(&extension, value);
        }
    }
    message
}

/// A value of a type; none of a message that would nest too deeply.
fn value(kind: &Kind, choices: &mut Choices, depth: u8) -> Option<Value> {
    Some(match kind {
        Kind::Bool => Value::Bool(choices.byte() % 2 == 1),
        Kind::Bytes => {
            let length = usize::from(choices.byte() % 5);
            Value::Bytes((0..length).map(|_| choices.byte()).collect())
        }
        Kind::Double => Value::F64(double(choices)),
        Kind::Float => {
            let float = f32::from_bits(choices.low_bits());
            Value::F32(if float.is_nan() { f32::NAN } else { float })
        }
        // Null is zero; other numbers of it have no JSON.
        Kind::Enum(descriptor) if descriptor.full_name() == "google.protobuf.NullValue" => {
            Value::EnumNumber(0)
        }
        Kind::Enum(descriptor) => {
            let known = descriptor.values().nth(usize::from(choices.byte() % 6));
            match known {
                Some(value) => Value::EnumNumber(value.number()),
                // Closed enums are those of proto2 here.
                None if descriptor.parent_file().syntax() == prost_reflect::Syntax::Proto2 => {
                    Value::EnumNumber(descriptor.default_value().number())
                }
                None => Value::EnumNumber(choices.low_bits().cast_signed()),
            }
        }
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(choices.low_bits().cast_signed()),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(choices.bits().cast_signed()),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(choices.low_bits()),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(choices.bits()),
        Kind::String => Value::String(choices.text()),
        Kind::Message(descriptor) => {
            Value::Message(message(descriptor, choices, depth.checked_sub(1)?))
        }
    })
}

fn double(choices: &mut Choices) -> f64 {
    let double = match choices.byte() % 3 {
        0 => f64::from(choices.low_bits()) / 100.0,
        1 => f64::from_bits(choices.bits()),
        _ => f64::from_bits(u64::from_le_bytes(choices.array())),
    };
    if double.is_nan() { f64::NAN } else { double }
}

fn finite(choices: &mut Choices) -> f64 {
    let double = double(choices);
    if double.is_finite() { double } else { 0.5 }
}

fn map_key(value: Value) -> MapKey {
    match value {
        Value::Bool(value) => MapKey::Bool(value),
        Value::I32(value) => MapKey::I32(value),
        Value::I64(value) => MapKey::I64(value),
        Value::U32(value) => MapKey::U32(value),
        Value::U64(value) => MapKey::U64(value),
        Value::String(value) => MapKey::String(value),
        other => panic!("no key: {other:?}"),
    }
}

/// A message of a type with rules of its own, mostly within them.
fn well_known(
    descriptor: &MessageDescriptor,
    choices: &mut Choices,
    depth: u8,
) -> Option<DynamicMessage> {
    let mut message = DynamicMessage::new(descriptor.clone());
    match descriptor.full_name() {
        "google.protobuf.Timestamp" => {
            let seconds = i64::from(choices.low_bits()).wrapping_mul(100);
            message.set_field_by_number(1, Value::I64(seconds));
            message.set_field_by_number(2, Value::I32(nanos(choices)));
        }
        "google.protobuf.Duration" => {
            let sign = if choices.byte() % 2 == 1 { -1 } else { 1 };
            let seconds = i64::from(choices.low_bits()).wrapping_mul(sign.into());
            message.set_field_by_number(1, Value::I64(seconds));
            message.set_field_by_number(2, Value::I32(nanos(choices).wrapping_mul(sign)));
        }
        "google.protobuf.FieldMask" => {
            const PATHS: [&str; 4] = ["a", "a_b.c", "long_name2", "x.y_z"];
            let paths = (0..choices.byte() % 3)
                .map(|_| Value::String(PATHS[usize::from(choices.byte()) % 4].to_owned()));
            message.set_field_by_number(1, Value::List(paths.collect()));
        }
        "google.protobuf.FloatValue" => {
            let float = f32::from_bits(choices.low_bits());
            message.set_field_by_number(1, Value::F32(if float.is_finite() { float } else { 0.5 }));
        }
        "google.protobuf.DoubleValue" => {
            message.set_field_by_number(1, Value::F64(finite(choices)));
        }
        "google.protobuf.Value" => {
            let number = u32::from(choices.byte() % 6).wrapping_add(1);
            let field = descriptor.get_field(number).expect("six kinds");
            let kind = match number {
                1 => Value::EnumNumber(0),
                2 => Value::F64(finite(choices)),
                _ => value(&field.kind(), choices, depth)
                    .unwrap_or_else(|| Value::default_value_for_field(&field)),
            };
            message.set_field(&field, kind);
        }
        "google.protobuf.Any" => {
            let types = [
                "test.v3.Scalars",
                "test.v3.Maps",
                "google.protobuf.Duration",
                "google.protobuf.Empty",
            ];
            let name = types[usize::from(choices.byte() % 4)];
            let pool = descriptor.parent_pool();
            let inside = pool.get_message_by_name(name).expect(name);
            let inside = self::message(&inside, choices, depth.saturating_sub(1));
            message.set_field_by_number(1, Value::String(format!("type.googleapis.com/{name}")));
            message.set_field_by_number(2, Value::Bytes(canonical(&inside).into()));
        }
        _ => return None,
    }
    Some(message)
}

fn nanos(choices: &mut Choices) -> i32 {
    match choices.byte() % 5 {
        0 => 0,
        1 => 5_000_000,
        2 => 7_000,
        3 => 999_999_999,
        _ => 1,
    }
}
