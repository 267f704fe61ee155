//! The types that JSON has forms of its own for. A value that the form cannot say is written as the plain object of its
//! fields, and is not exact.
//!
//! Source: protobuf.dev, ProtoJSON Format; the comments of google/protobuf/*.proto.

use super::super::descriptors::{Kind, Message, WellKnown};
use super::super::wire::Value;
use super::scalar::Scalar;
use super::{Record, Renderer, Shape, Unfit, of_each_field, time};

impl<'d> Renderer<'d> {
    pub(super) fn well_known(
        &mut self,
        well_known: WellKnown,
        message: &'d Message,
        records: &[Record<'d, '_>],
        depth: usize,
    ) -> Result<(), Unfit> {
        let form = match well_known {
            WellKnown::Any => return self.any(records, depth),
            WellKnown::Empty => None,
            WellKnown::Duration => time::duration(integer(records, 1), nanos(records)),
            WellKnown::FieldMask => field_mask(records),
            WellKnown::Timestamp => time::timestamp(integer(records, 1), nanos(records)),
            WellKnown::ListValue | WellKnown::Struct => {
                return self.only_field(message, records, depth);
            }
            WellKnown::Value => return self.value(records, depth),
            WellKnown::Wrapper => return self.wrapper(message, records),
        };
        match form {
            Some(text) => {
                // Paths need no judging: a list of strings has one encoding.
                if well_known != WellKnown::FieldMask {
                    self.judge(records)?;
                }
                self.out.quoted(&text);
                Ok(())
            }
            None => {
                self.is_exact &= well_known == WellKnown::Empty;
                self.object(records, depth)
            }
        }
    }

    /// Judges fields whose values are shown in another form than their own.
    fn judge(&mut self, records: &[Record<'d, '_>]) -> Result<(), Unfit> {
        for records in of_each_field(records) {
            let Some((field, _)) = records.first() else {
                continue;
            };
            if !matches!(field.shape, Shape::Explicit | Shape::Implicit) {
                return Err(Unfit);
            }
            let scalar = self.singular(field, records)?;
            self.is_exact &= field.shape != Shape::Implicit || !scalar.is_zero();
        }
        Ok(())
    }

    /// Writes the one field that a type consists of, a list or a map, in the place of its message.
    fn only_field(
        &mut self,
        message: &'d Message,
        records: &[Record<'d, '_>],
        depth: usize,
    ) -> Result<(), Unfit> {
        let field = message.field(1).ok_or(Unfit)?;
        if !matches!(field.shape, Shape::List { .. } | Shape::Map) {
            return Err(Unfit);
        }
        self.composite(field, records, depth)
    }

    fn wrapper(&mut self, message: &'d Message, records: &[Record<'d, '_>]) -> Result<(), Unfit> {
        let field = message.field(1).ok_or(Unfit)?;
        let was_exact = self.is_exact;
        let scalar = if records.is_empty() {
            let zero = self.zero(field)?;
            // Nothing is how a wrapper holds zero.
            self.is_exact = was_exact;
            zero
        } else {
            let scalar = self.singular(field, records)?;
            self.is_exact &= !scalar.is_zero();
            scalar
        };
        self.scalar(&scalar);
        Ok(())
    }

    fn value(&mut self, records: &[Record<'d, '_>], depth: usize) -> Result<(), Unfit> {
        let Some((field, _)) = records.first() else {
            self.is_exact = false;
            return self.object(records, depth);
        };
        if matches!(field.kind, Kind::Group(_) | Kind::Message(_)) {
            return self.composite(field, records, depth);
        }
        let scalar = self.singular(field, records)?;
        let has_form = match scalar {
            Scalar::Double(value) => value.is_finite(),
            Scalar::Enum(found, number) => found.is_null && number == 0,
            Scalar::Bool(_) | Scalar::Text(_) => true,
            Scalar::Bytes(_) | Scalar::Float(_) | Scalar::Signed(..) | Scalar::Unsigned(..) => {
                false
            }
        };
        if has_form {
            self.scalar(&scalar);
            Ok(())
        } else {
            self.is_exact = false;
            self.object(records, depth)
        }
    }

    /// Writes what an `Any` holds under its type's name; one of a type that the set does not have stays closed.
    fn any(&mut self, records: &[Record<'d, '_>], depth: usize) -> Result<(), Unfit> {
        let url = last_bytes(records, 1).and_then(|url| std::str::from_utf8(url).ok());
        let bytes = last_bytes(records, 2).unwrap_or_default();
        let inside = url
            .and_then(|url| self.descriptors.message(url.rsplit_once('/')?.1))
            .map(|found| found.message)
            .filter(|message| !message.has_json_name("@type"));
        let (Some(url), Some(message)) = (url, inside) else {
            self.is_exact &= records.is_empty();
            return self.object(records, depth);
        };
        self.judge(records)?;
        self.open("{");
        self.name("@type", false);
        self.out.quoted(url);
        let length = self.path.len();
        self.path.push_str(".value");
        if message.well_known.is_some() {
            self.name("value", true);
            self.message(message, bytes, depth)?;
        } else {
            let depth = depth.checked_sub(1).ok_or(Unfit)?;
            let records = self.gather(message, bytes)?;
            self.members(&records, depth, true)?;
        }
        self.path.truncate(length);
        self.close("}", true);
        Ok(())
    }
}

/// The value of a whole number, or zero.
fn integer(records: &[Record<'_, '_>], number: u32) -> i64 {
    let value = records.iter().rfind(|(field, _)| field.number == number);
    match value {
        Some((_, record)) => match record.value {
            Value::Varint(bits) => bits.cast_signed(),
            Value::Bytes(_) | Value::Fixed32(_) | Value::Fixed64(_) | Value::Group(_) => 0,
        },
        None => 0,
    }
}

/// The second field, of 32 bits.
fn nanos(records: &[Record<'_, '_>]) -> i64 {
    let [a, b, c, d, ..] = integer(records, 2).to_le_bytes();
    i32::from_le_bytes([a, b, c, d]).into()
}

fn last_bytes<'b>(records: &[Record<'_, 'b>], number: u32) -> Option<&'b [u8]> {
    let (_, record) = records.iter().rfind(|(field, _)| field.number == number)?;
    match record.value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Fixed32(_) | Value::Fixed64(_) | Value::Group(_) | Value::Varint(_) => None,
    }
}

/// Paths in lowerCamelCase with commas between them; `None` unless each can be read back.
fn field_mask(records: &[Record<'_, '_>]) -> Option<String> {
    let mut mask = String::new();
    for (at, (field, record)) in records.iter().enumerate() {
        let (1, Value::Bytes(path)) = (field.number, record.value) else {
            return None;
        };
        if at > 0 {
            mask.push(',');
        }
        if path.is_empty() {
            return None;
        }
        let mut letters = path.iter();
        while let Some(letter) = letters.next() {
            let letter = match letter {
                b'_' => letters
                    .next()
                    .filter(|next| next.is_ascii_lowercase())?
                    .to_ascii_uppercase(),
                b'a'..=b'z' | b'0'..=b'9' | b'.' => *letter,
                _ => return None,
            };
            mask.push(letter.into());
        }
    }
    Some(mask)
}
