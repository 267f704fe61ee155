//! The one encoding that an exact text stands for: fields ascending, map entries by their keys with both parts written.
//! (`prost` leaves zeros of entries out and orders them at random.)

use prost::encoding::{self, WireType};
use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage, Value};

/// Encodes a message.
pub fn canonical(message: &DynamicMessage) -> Vec<u8> {
    let mut message = message.clone();
    if message.descriptor().full_name() == "google.protobuf.Any" {
        encode_inside(&mut message);
    }
    let mut fields: Vec<(u32, Vec<u8>)> = Vec::new();
    for (field, value) in message.fields() {
        let bytes = encode(
            field.number(),
            &field.kind(),
            field.is_packed(),
            field.is_group(),
            value,
        );
        fields.push((field.number(), bytes));
    }
    for (extension, value) in message.extensions() {
        let bytes = encode(
            extension.number(),
            &extension.kind(),
            extension.is_packed(),
            extension.is_group(),
            value,
        );
        fields.push((extension.number(), bytes));
    }
    fields.sort_by_key(|(number, _)| *number);
    fields.into_iter().flat_map(|(_, bytes)| bytes).collect()
}

/// Encodes anew what an `Any` holds, if its type is known.
fn encode_inside(any: &mut DynamicMessage) {
    let url = any.get_field_by_number(1).expect("a url").into_owned();
    let bytes = any.get_field_by_number(2).expect("bytes").into_owned();
    let name = url.as_str().and_then(|url| url.rsplit('/').next());
    let pool = any.descriptor().parent_pool().clone();
    let descriptor = name.and_then(|name| pool.get_message_by_name(name));
    if let (Some(descriptor), Value::Bytes(bytes)) = (descriptor, bytes)
        && let Ok(inside) = DynamicMessage::decode(descriptor, bytes)
    {
        any.set_field_by_number(2, Value::Bytes(canonical(&inside).into()));
    }
}

fn encode(number: u32, kind: &Kind, is_packed: bool, is_group: bool, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value {
        Value::List(items) if is_packed => {
            let record: Vec<u8> = items
                .iter()
                .flat_map(|item| {
                    let field = encode(1, kind, false, false, item);
                    // The tag of field 1 is one byte.
                    field.into_iter().skip(1)
                })
                .collect();
            if !items.is_empty() {
                encoding::bytes::encode(number, &record, &mut bytes);
            }
        }
        Value::List(items) => {
            for item in items {
                bytes.extend(encode(number, kind, false, is_group, item));
            }
        }
        Value::Map(entries) => {
            let Kind::Message(entry) = kind else {
                panic!("a map of {kind:?}");
            };
            let mut sorted: Vec<(&MapKey, &Value)> = entries.iter().collect();
            sorted.sort_by_key(|(key, _)| order(key));
            for (key, value) in sorted {
                let key = Value::from(key.clone());
                let parts = [
                    encode(1, &entry.map_entry_key_field().kind(), false, false, &key),
                    encode(
                        2,
                        &entry.map_entry_value_field().kind(),
                        false,
                        false,
                        value,
                    ),
                ]
                .concat();
                encoding::bytes::encode(number, &parts, &mut bytes);
            }
        }
        Value::Message(message) if is_group => {
            encoding::encode_key(number, WireType::StartGroup, &mut bytes);
            bytes.extend(canonical(message));
            encoding::encode_key(number, WireType::EndGroup, &mut bytes);
        }
        Value::Message(message) => {
            encoding::bytes::encode(number, &canonical(message), &mut bytes);
        }
        Value::Bool(value) => encoding::bool::encode(number, value, &mut bytes),
        Value::EnumNumber(value) => encoding::int32::encode(number, value, &mut bytes),
        Value::F32(value) => encoding::float::encode(number, value, &mut bytes),
        Value::F64(value) => encoding::double::encode(number, value, &mut bytes),
        Value::String(value) => encoding::string::encode(number, value, &mut bytes),
        Value::Bytes(value) => encoding::bytes::encode(number, value, &mut bytes),
        Value::I32(value) => match kind {
            Kind::Sint32 => encoding::sint32::encode(number, value, &mut bytes),
            Kind::Sfixed32 => encoding::sfixed32::encode(number, value, &mut bytes),
            _ => encoding::int32::encode(number, value, &mut bytes),
        },
        Value::I64(value) => match kind {
            Kind::Sint64 => encoding::sint64::encode(number, value, &mut bytes),
            Kind::Sfixed64 => encoding::sfixed64::encode(number, value, &mut bytes),
            _ => encoding::int64::encode(number, value, &mut bytes),
        },
        Value::U32(value) => match kind {
            Kind::Fixed32 => encoding::fixed32::encode(number, value, &mut bytes),
            _ => encoding::uint32::encode(number, value, &mut bytes),
        },
        Value::U64(value) => match kind {
            Kind::Fixed64 => encoding::fixed64::encode(number, value, &mut bytes),
            _ => encoding::uint64::encode(number, value, &mut bytes),
        },
    }
    bytes
}

/// Numbers by their size, texts by their bytes.
fn order(key: &MapKey) -> (i128, &[u8]) {
    match key {
        MapKey::Bool(value) => ((*value).into(), b""),
        MapKey::I32(value) => ((*value).into(), b""),
        MapKey::I64(value) => ((*value).into(), b""),
        MapKey::U32(value) => ((*value).into(), b""),
        MapKey::U64(value) => ((*value).into(), b""),
        MapKey::String(value) => (0, value.as_bytes()),
    }
}
