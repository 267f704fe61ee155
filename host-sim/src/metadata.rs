//! The metadata of a route: what a filter reads under `xds.route_metadata`, and in which bytes. Knows no file and no stream.
//! Source: `envoy.config.core.v3.Metadata`, `google.protobuf.Struct`, and what Envoy 1.40 answered.

use std::collections::BTreeMap;

use crate::abi::{Status, pairs, protobuf};

/// `filter_metadata` of a route, by namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(pub BTreeMap<String, BTreeMap<String, MetadataValue>>);

/// One value of metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// `true` or `false`.
    Bool(bool),
    /// Values under names.
    Group(BTreeMap<String, MetadataValue>),
    /// Values in order.
    List(Vec<MetadataValue>),
    /// `null`.
    Null,
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Metadata {
    /// The bytes under `path`, the names behind `xds.route_metadata`.
    pub(crate) fn read(&self, path: &[&str]) -> Result<Vec<u8>, Status> {
        match path {
            [] => Ok(self.message()),
            ["filter_metadata"] => {
                let groups = self.0.iter();
                packed(groups.map(|(name, group)| (name.as_str(), pack_group(group))))
            }
            ["filter_metadata", namespace, names @ ..] => {
                let group = self.0.get(*namespace).ok_or(Status::NotFound)?;
                let [name, deeper @ ..] = names else {
                    return pack_group(group);
                };
                let value = group.get(*name).and_then(|value| value.below(deeper));
                value.ok_or(Status::NotFound)?.pack()
            }
            ["typed_filter_metadata"] => packed([].into_iter()),
            _ => Err(Status::NotFound),
        }
    }

    fn message(&self) -> Vec<u8> {
        let groups = self.0.iter();
        groups
            .flat_map(|(name, group)| entry(name, &struct_message(group)))
            .collect()
    }
}

impl MetadataValue {
    fn below(&self, path: &[&str]) -> Option<&MetadataValue> {
        let [name, deeper @ ..] = path else {
            return Some(self);
        };
        let value = match self {
            MetadataValue::Group(group) => group.get(*name),
            MetadataValue::List(list) => list.get(name.parse::<usize>().ok()?),
            MetadataValue::Bool(_)
            | MetadataValue::Null
            | MetadataValue::Number(_)
            | MetadataValue::Text(_) => None,
        };
        value?.below(deeper)
    }

    /// A list is packed as names without values. There are no bytes for `null`, nor for what holds it.
    fn pack(&self) -> Result<Vec<u8>, Status> {
        match self {
            MetadataValue::Bool(value) => Ok(vec![u8::from(*value)]),
            MetadataValue::Group(group) => pack_group(group),
            MetadataValue::List(list) => {
                let items: Result<Vec<_>, _> = list.iter().map(MetadataValue::pack).collect();
                let items = items?;
                let items: Vec<_> = items
                    .iter()
                    .map(|item| (item.as_slice(), &b""[..]))
                    .collect();
                Ok(pairs::encode(items.into_iter()))
            }
            MetadataValue::Null => Err(Status::SerializationFailure),
            MetadataValue::Number(value) => Ok(value.to_le_bytes().to_vec()),
            MetadataValue::Text(text) => Ok(text.as_bytes().to_vec()),
        }
    }

    /// `google.protobuf.Value`
    fn message(&self) -> Vec<u8> {
        match self {
            MetadataValue::Bool(value) => vec![0x20, u8::from(*value)],
            MetadataValue::Group(group) => protobuf::delimited(5, &struct_message(group)),
            MetadataValue::List(list) => {
                let items = list.iter();
                let items = items.flat_map(|item| protobuf::delimited(1, &item.message()));
                protobuf::delimited(6, &items.collect::<Vec<_>>())
            }
            MetadataValue::Null => vec![0x08, 0],
            MetadataValue::Number(value) => [&[0x11], &value.to_le_bytes()[..]].concat(),
            MetadataValue::Text(text) => protobuf::delimited(3, text.as_bytes()),
        }
    }
}

fn pack_group(group: &BTreeMap<String, MetadataValue>) -> Result<Vec<u8>, Status> {
    let values = group.iter();
    packed(values.map(|(name, value)| (name.as_str(), value.pack())))
}

fn packed<'a>(
    entries: impl Iterator<Item = (&'a str, Result<Vec<u8>, Status>)>,
) -> Result<Vec<u8>, Status> {
    let entries: Result<Vec<_>, _> = entries
        .map(|(name, value)| Ok((name.as_bytes(), value?)))
        .collect();
    let entries = entries?;
    let entries: Vec<_> = entries
        .iter()
        .map(|(name, value)| (*name, value.as_slice()))
        .collect();
    Ok(pairs::encode(entries.into_iter()))
}

/// `google.protobuf.Struct`
fn struct_message(group: &BTreeMap<String, MetadataValue>) -> Vec<u8> {
    let values = group.iter();
    values
        .flat_map(|(name, value)| entry(name, &value.message()))
        .collect()
}

/// One entry of a map that is field 1 of its message.
fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    let parts = [
        protobuf::delimited(1, name.as_bytes()),
        protobuf::delimited(2, value),
    ];
    protobuf::delimited(1, &parts.concat())
}
