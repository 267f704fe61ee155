//! The text of a message whose type is known: canonical protojson, byte for byte the same in every build.
//!
//! Two spaces an indent; fields in the order of their numbers under their lowerCamelCase names; map entries in the order of
//! their keys (numbers as numbers); numbers of 64 bits in quotes; floats in the fewest digits that read back; bytes in
//! base64; enums by name. A field without presence that is zero is left out. What does not plainly show in a string is
//! escaped.
//!
//! A text is exact if the one canonical encoding of what it says is the message: fields and map keys ascending, each
//! once, keys and values of map entries both written, lists packed as declared, every varint as short as can be, no zero
//! that could be left out. What JSON has no place for stands behind it under `not shown above`, as a field tree.
//!
//! Source: protobuf.dev, ProtoJSON Format and Encoding.

mod scalar;
mod time;
mod well_known;

use std::borrow::Cow;

use super::descriptors::{Descriptors, Field, Kind, Message, MessageDescriptor, Shape};
use super::field_tree;
use super::order::order;
use super::output::Output;
use super::wire::{self, Value};
use crate::limits;

/// A message that has no protojson: malformed, not of its type, no UTF-8, nested too deeply, or with two fields of which
/// readers keep one or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit;

/// A field that the wire has, beside what the type says of it.
type Record<'d, 'b> = (&'d Field, wire::Field<'b>);

/// Writes a message, and tells whether its bytes follow from the text.
pub(super) fn write(
    message: &[u8],
    descriptor: MessageDescriptor<'_>,
    max_text_bytes: usize,
) -> Result<(Output, bool), Unfit> {
    let mut renderer = Renderer {
        descriptors: descriptor.descriptors,
        out: Output::new(max_text_bytes),
        left_out: Output::new(max_text_bytes),
        left_out_at: None,
        path: String::new(),
        level: 0,
        is_exact: true,
    };
    renderer.message(descriptor.message, message, limits::GRPC_DEPTH)?;
    let Renderer {
        mut out,
        left_out,
        is_exact,
        ..
    } = renderer;
    if !left_out.is_empty() {
        out.line(0);
        match left_out.finish() {
            Ok(text) => out.push(&text),
            Err(_) => out.fill(),
        }
    }
    Ok((out, is_exact))
}

struct Renderer<'d> {
    descriptors: &'d Descriptors,
    out: Output,
    /// What JSON has no place for.
    left_out: Output,
    /// The place that `left_out` named last.
    left_out_at: Option<String>,
    /// Where in the JSON this is, such as `.items[0].name`.
    path: String,
    level: usize,
    is_exact: bool,
}

impl<'d> Renderer<'d> {
    fn message(&mut self, message: &'d Message, bytes: &[u8], depth: usize) -> Result<(), Unfit> {
        let depth = depth.checked_sub(1).ok_or(Unfit)?;
        let records = self.gather(message, bytes)?;
        match message.well_known {
            Some(well_known) => self.well_known(well_known, message, &records, depth),
            None => self.object(&records, depth),
        }
    }

    /// Reads the fields of a message into the order of their numbers, without those that its type does not have.
    fn gather<'b>(
        &mut self,
        message: &'d Message,
        bytes: &'b [u8],
    ) -> Result<Vec<Record<'d, 'b>>, Unfit> {
        let mut records = Vec::new();
        let mut highest = 0;
        let mut is_ascending = true;
        self.is_exact &= !message.has_shared_names;
        for record in wire::fields(bytes) {
            let record = record.map_err(|_| Unfit)?;
            self.is_exact &= record.is_minimal;
            is_ascending &= record.number >= highest;
            highest = record.number;
            match message.field(record.number) {
                Some(field) => records.push((field, record)),
                None => self.leave_out(record.number, record.value),
            }
        }
        if !is_ascending {
            self.is_exact = false;
            let number = |at: usize| records.get(at).map(|(field, _)| field.number);
            let places = order(records.len(), &|left, right| number(left) < number(right));
            let mut ordered = Vec::with_capacity(records.len());
            for at in places {
                ordered.extend(records.get(at).copied());
            }
            records = ordered;
        }
        let mut oneofs = Vec::new();
        for (field, _) in of_each_field(&records).filter_map(<[_]>::first) {
            if let Some(oneof) = field.oneof {
                if oneofs.contains(&oneof) {
                    return Err(Unfit);
                }
                oneofs.push(oneof);
            }
        }
        Ok(records)
    }

    /// Tells of something that the JSON does not show, or shows cut down.
    fn leave_out(&mut self, number: u32, value: Value<'_>) {
        self.is_exact = false;
        if self.left_out_at.as_deref() != Some(&self.path) {
            self.left_out_at = Some(self.path.clone());
            self.left_out.line(0);
            self.left_out.push("not shown above, in ");
            let path = self.path.trim_start_matches('.');
            self.left_out.push(if path.is_empty() {
                "the message itself"
            } else {
                path
            });
            self.left_out.push(":");
        }
        let record = wire::Field {
            number,
            value,
            is_minimal: true,
        };
        field_tree::write_field(&record, 1, &mut self.left_out);
    }

    fn object(&mut self, records: &[Record<'d, '_>], depth: usize) -> Result<(), Unfit> {
        self.open("{");
        let has_members = self.members(records, depth, false)?;
        self.close("}", has_members);
        Ok(())
    }

    /// Writes the members of an object, and tells whether it has any.
    fn members(
        &mut self,
        records: &[Record<'d, '_>],
        depth: usize,
        mut has_members: bool,
    ) -> Result<bool, Unfit> {
        for records in of_each_field(records) {
            let Some((field, _)) = records.first() else {
                continue;
            };
            if self.is_full() {
                break;
            }
            let length = self.path.len();
            self.path.push('.');
            self.path.push_str(&field.json_name);
            let is_message = matches!(field.kind, Kind::Group(_) | Kind::Message(_));
            let is_zero = match field.shape {
                Shape::Explicit | Shape::Implicit if !is_message => {
                    let scalar = self.singular(field, records)?;
                    let is_zero = field.shape == Shape::Implicit && scalar.is_zero();
                    if !is_zero {
                        self.name(&field.json_name, has_members);
                        self.scalar(&scalar);
                    }
                    is_zero
                }
                Shape::List { .. } if is_empty_list(field, records) => true,
                Shape::Explicit | Shape::Implicit | Shape::List { .. } | Shape::Map => {
                    self.name(&field.json_name, has_members);
                    self.composite(field, records, depth)?;
                    false
                }
            };
            self.path.truncate(length);
            self.is_exact &= !is_zero;
            has_members |= !is_zero;
        }
        Ok(has_members)
    }

    /// Writes a list, a map or a message.
    fn composite(
        &mut self,
        field: &'d Field,
        records: &[Record<'d, '_>],
        depth: usize,
    ) -> Result<(), Unfit> {
        match field.shape {
            Shape::List { is_packed } => self.list(field, is_packed, records, depth),
            Shape::Map => self.map(field, records, depth),
            Shape::Explicit | Shape::Implicit => {
                let bytes = self.merged(field.kind, records)?;
                self.message(self.type_of(field)?, &bytes, depth)
            }
        }
    }

    /// The bytes of a message that stands here once or, merged as parsers do it, several times.
    fn merged<'b>(
        &mut self,
        kind: Kind,
        records: &[Record<'d, 'b>],
    ) -> Result<Cow<'b, [u8]>, Unfit> {
        if let [(_, record)] = records {
            return message_bytes(kind, record.value).map(Cow::Borrowed);
        }
        self.is_exact = false;
        let mut merged = Vec::new();
        for (_, record) in records {
            merged.extend_from_slice(message_bytes(kind, record.value)?);
        }
        Ok(Cow::Owned(merged))
    }

    /// The type of a field that holds messages.
    fn type_of(&self, field: &Field) -> Result<&'d Message, Unfit> {
        match field.kind {
            Kind::Group(at) | Kind::Message(at) => {
                let found = self.descriptors.at(at).ok_or(Unfit)?;
                Ok(found.message)
            }
            Kind::Bool
            | Kind::Bytes
            | Kind::Double
            | Kind::Enum(_)
            | Kind::Fixed32
            | Kind::Fixed64
            | Kind::Float
            | Kind::Int32
            | Kind::Int64
            | Kind::Sfixed32
            | Kind::Sfixed64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::String
            | Kind::Uint32
            | Kind::Uint64 => Err(Unfit),
        }
    }

    fn list(
        &mut self,
        field: &'d Field,
        is_packed: bool,
        records: &[Record<'d, '_>],
        depth: usize,
    ) -> Result<(), Unfit> {
        self.open("[");
        let message = self.type_of(field).ok();
        let mut count = 0_usize;
        for (_, record) in records {
            if self.is_full() {
                break;
            }
            if let Some(message) = message {
                self.item(count > 0);
                let length = self.path.len();
                self.path.push_str(&format!("[{count}]"));
                self.message(message, message_bytes(field.kind, record.value)?, depth)?;
                self.path.truncate(length);
                count = count.saturating_add(1);
                continue;
            }
            if let Value::Bytes(mut rest) = record.value
                && scalar::is_packable(field.kind)
            {
                self.is_exact &= is_packed && records.len() == 1;
                while !rest.is_empty() && !self.is_full() {
                    let (value, behind) = self.packed(field.kind, rest)?;
                    rest = behind;
                    self.element(field, value, count > 0)?;
                    count = count.saturating_add(1);
                }
            } else {
                self.is_exact &= !is_packed;
                self.element(field, record.value, count > 0)?;
                count = count.saturating_add(1);
            }
        }
        self.close("]", count > 0);
        Ok(())
    }

    fn element(
        &mut self,
        field: &'d Field,
        value: Value<'_>,
        has_items: bool,
    ) -> Result<(), Unfit> {
        self.item(has_items);
        let scalar = self.read(field, value)?;
        self.scalar(&scalar);
        Ok(())
    }

    fn map(
        &mut self,
        field: &'d Field,
        records: &[Record<'d, '_>],
        depth: usize,
    ) -> Result<(), Unfit> {
        let entry = self.type_of(field)?;
        let key_field = entry.field(1).ok_or(Unfit)?;
        let mut entries = Vec::new();
        for (_, record) in records {
            let bytes = message_bytes(field.kind, record.value)?;
            let parts = self.gather(entry, bytes)?;
            let values = parts.partition_point(|(part, _)| part.number == 1);
            let (keys, values) = parts.split_at_checked(values).ok_or(Unfit)?;
            let key = match keys {
                [] => self.zero(key_field)?,
                keys => self.singular(key_field, keys)?,
            };
            entries.push((key.into_key().ok_or(Unfit)?, record.value, values.to_vec()));
        }
        for pair in entries.windows(2) {
            self.is_exact &= matches!(pair, [(left, ..), (right, ..)] if left < right);
        }
        let key = |at: usize| entries.get(at).map(|(key, ..)| *key);
        let mut places = order(entries.len(), &|left, right| key(left) < key(right))
            .into_iter()
            .peekable();
        self.open("{");
        let mut has_members = false;
        while let Some(at) = places.next() {
            let Some((key, value, values)) = entries.get(at) else {
                continue;
            };
            let next = places.peek().and_then(|next| entries.get(*next));
            if next.is_some_and(|(next, ..)| next == key) {
                self.leave_out(field.number, *value);
                continue;
            }
            if self.is_full() {
                break;
            }
            self.item(has_members);
            has_members = true;
            let length = self.path.len();
            let name = key.name();
            self.out.quoted(&name);
            self.out.push(": ");
            let mut quoted = Output::new(limits::NAME_BYTES);
            quoted.quoted(&name);
            self.path.push('[');
            self.path.push_str(&quoted.finish().unwrap_or_default());
            self.path.push(']');
            self.map_value(entry, values, depth)?;
            self.path.truncate(length);
        }
        self.close("}", has_members);
        Ok(())
    }

    fn map_value(
        &mut self,
        entry: &'d Message,
        values: &[Record<'d, '_>],
        depth: usize,
    ) -> Result<(), Unfit> {
        let field = entry.field(2).ok_or(Unfit)?;
        if let Ok(message) = self.type_of(field) {
            let bytes = self.merged(field.kind, values)?;
            return self.message(message, &bytes, depth);
        }
        let scalar = match values {
            [] => self.zero(field)?,
            values => self.singular(field, values)?,
        };
        self.scalar(&scalar);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.out.is_full() || self.left_out.is_full()
    }

    fn open(&mut self, bracket: &str) {
        self.out.push(bracket);
        self.level = self.level.saturating_add(1);
    }

    fn close(&mut self, bracket: &str, has_items: bool) {
        self.level = self.level.saturating_sub(1);
        if has_items {
            self.out.line(self.level);
        }
        self.out.push(bracket);
    }

    fn item(&mut self, has_items: bool) {
        if has_items {
            self.out.push(",");
        }
        self.out.line(self.level);
    }

    fn name(&mut self, name: &str, has_members: bool) {
        self.item(has_members);
        self.out.quoted(name);
        self.out.push(": ");
    }
}

/// The records of one field after the other.
fn of_each_field<'r, 'd, 'b>(
    records: &'r [Record<'d, 'b>],
) -> impl Iterator<Item = &'r [Record<'d, 'b>]> {
    records.chunk_by(|(left, _), (right, _)| left.number == right.number)
}

/// Whether records of a list hold no element: packed records may be empty.
fn is_empty_list(field: &Field, records: &[Record<'_, '_>]) -> bool {
    scalar::is_packable(field.kind)
        && records
            .iter()
            .all(|(_, record)| record.value == Value::Bytes(&[]))
}

fn message_bytes(kind: Kind, value: Value<'_>) -> Result<&[u8], Unfit> {
    match (kind, value) {
        (Kind::Message(_), Value::Bytes(bytes)) | (Kind::Group(_), Value::Group(bytes)) => {
            Ok(bytes)
        }
        _ => Err(Unfit),
    }
}

#[cfg(test)]
mod tests;
