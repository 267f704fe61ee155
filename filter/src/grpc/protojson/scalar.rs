//! Values that are neither messages nor lists: how the wire holds them, and how JSON shows them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::descriptors::{Enum, Field, Kind};
use super::super::wire::{self, Value};
use super::{Record, Renderer, Unfit};

/// A value.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'d, 'b> {
    Bool(bool),
    Bytes(&'b [u8]),
    Double(f64),
    Enum(&'d Enum, i32),
    Float(f32),
    /// A whole number, and whether JSON has it in quotes, since not every reader keeps 64 bits.
    Signed(i64, Quoted),
    Text(&'b str),
    Unsigned(u64, Quoted),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Yes,
}

/// The key of a map entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key<'b> {
    Bool(bool),
    Signed(i64),
    Text(&'b str),
    Unsigned(u64),
}

impl Key<'_> {
    pub fn name(&self) -> String {
        match self {
            Self::Bool(true) => "true".to_owned(),
            Self::Bool(false) => "false".to_owned(),
            Self::Signed(value) => value.to_string(),
            Self::Text(text) => (*text).to_owned(),
            Self::Unsigned(value) => value.to_string(),
        }
    }
}

impl<'b> Scalar<'_, 'b> {
    /// Whether a field without presence leaves this value out. The negative zero of floats is another value.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Bool(value) => !value,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Double(value) => value.to_bits() == 0,
            Self::Enum(_, value) => *value == 0,
            Self::Float(value) => value.to_bits() == 0,
            Self::Signed(value, _) => *value == 0,
            Self::Text(text) => text.is_empty(),
            Self::Unsigned(value, _) => *value == 0,
        }
    }

    pub const fn into_key(self) -> Option<Key<'b>> {
        match self {
            Self::Bool(value) => Some(Key::Bool(value)),
            Self::Signed(value, _) => Some(Key::Signed(value)),
            Self::Text(text) => Some(Key::Text(text)),
            Self::Unsigned(value, _) => Some(Key::Unsigned(value)),
            Self::Bytes(_) | Self::Double(_) | Self::Enum(..) | Self::Float(_) => None,
        }
    }
}

impl<'d> Renderer<'d> {
    /// The value of a field that may occur once: the last, as parsers have it.
    pub(super) fn singular<'b>(
        &mut self,
        field: &'d Field,
        records: &[Record<'d, 'b>],
    ) -> Result<Scalar<'d, 'b>, Unfit> {
        let ((_, last), overridden) = records.split_last().ok_or(Unfit)?;
        for (_, record) in overridden {
            self.leave_out(record.number, record.value);
        }
        let scalar = self.read(field, last.value)?;
        let is_negative_zero = match scalar {
            Scalar::Double(value) => value == 0.0 && value.is_sign_negative(),
            Scalar::Float(value) => value == 0.0 && value.is_sign_negative(),
            Scalar::Bool(_)
            | Scalar::Bytes(_)
            | Scalar::Enum(..)
            | Scalar::Signed(..)
            | Scalar::Text(_)
            | Scalar::Unsigned(..) => false,
        };
        // Some writers leave this zero out as well.
        self.is_exact &= !(is_negative_zero && field.shape == super::Shape::Implicit);
        Ok(scalar)
    }

    /// The value that a map entry means by leaving one out. Enums in maps have to begin with zero.
    pub(super) fn zero<'b>(&mut self, field: &'d Field) -> Result<Scalar<'d, 'b>, Unfit> {
        self.is_exact = false;
        let value = match field.kind {
            Kind::Bytes | Kind::String => Value::Bytes(&[]),
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Value::Fixed64(0),
            Kind::Fixed32 | Kind::Float | Kind::Sfixed32 => Value::Fixed32(0),
            Kind::Bool
            | Kind::Enum(_)
            | Kind::Int32
            | Kind::Int64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Uint32
            | Kind::Uint64 => Value::Varint(0),
            Kind::Group(_) | Kind::Message(_) => return Err(Unfit),
        };
        self.read(field, value)
    }

    /// Reads a value by the type of its field. Bits that the type has no room for are cut off, as parsers do it, and the
    /// whole is told of.
    pub(super) fn read<'b>(
        &mut self,
        field: &'d Field,
        value: Value<'b>,
    ) -> Result<Scalar<'d, 'b>, Unfit> {
        Ok(match (field.kind, value) {
            (Kind::Bool, Value::Varint(bits)) => {
                if bits > 1 {
                    self.leave_out(field.number, value);
                }
                Scalar::Bool(bits != 0)
            }
            (Kind::Int32, Value::Varint(bits)) => {
                Scalar::Signed(self.signed_32(field, bits).into(), Quoted::No)
            }
            (Kind::Enum(at), Value::Varint(bits)) => {
                let number = self.signed_32(field, bits);
                let found = self.descriptors.enum_at(at).ok_or(Unfit)?;
                // To some parsers of closed enums this is no field of the message at all; and null is always zero.
                let is_free = !found.is_closed && !found.is_null;
                self.is_exact &= is_free || found.name(number).is_some();
                Scalar::Enum(found, number)
            }
            (Kind::Uint32, Value::Varint(bits)) => {
                Scalar::Unsigned(self.unsigned_32(field, bits).into(), Quoted::No)
            }
            (Kind::Sint32, Value::Varint(bits)) => {
                let bits = self.unsigned_32(field, bits);
                Scalar::Signed(zigzag(bits.into()), Quoted::No)
            }
            (Kind::Int64, Value::Varint(bits)) => Scalar::Signed(bits.cast_signed(), Quoted::Yes),
            (Kind::Uint64, Value::Varint(bits)) => Scalar::Unsigned(bits, Quoted::Yes),
            (Kind::Sint64, Value::Varint(bits)) => Scalar::Signed(zigzag(bits), Quoted::Yes),
            (Kind::Fixed32, Value::Fixed32(bits)) => Scalar::Unsigned(bits.into(), Quoted::No),
            (Kind::Sfixed32, Value::Fixed32(bits)) => {
                Scalar::Signed(bits.cast_signed().into(), Quoted::No)
            }
            (Kind::Fixed64, Value::Fixed64(bits)) => Scalar::Unsigned(bits, Quoted::Yes),
            (Kind::Sfixed64, Value::Fixed64(bits)) => {
                Scalar::Signed(bits.cast_signed(), Quoted::Yes)
            }
            (Kind::Float, Value::Fixed32(bits)) => {
                let float = f32::from_bits(bits);
                self.is_exact &= !float.is_nan() || bits == 0x7fc0_0000;
                Scalar::Float(float)
            }
            (Kind::Double, Value::Fixed64(bits)) => {
                let double = f64::from_bits(bits);
                self.is_exact &= !double.is_nan() || bits == 0x7ff8_0000_0000_0000;
                Scalar::Double(double)
            }
            (Kind::Bytes, Value::Bytes(bytes)) => Scalar::Bytes(bytes),
            (Kind::String, Value::Bytes(bytes)) => {
                Scalar::Text(std::str::from_utf8(bytes).map_err(|_| Unfit)?)
            }
            _ => return Err(Unfit),
        })
    }

    fn signed_32(&mut self, field: &Field, bits: u64) -> i32 {
        let [low, _] = halves(bits);
        let value = low.cast_signed();
        if bits != i64::from(value).cast_unsigned() {
            self.leave_out(field.number, Value::Varint(bits));
        }
        value
    }

    fn unsigned_32(&mut self, field: &Field, bits: u64) -> u32 {
        let [low, high] = halves(bits);
        if high != 0 {
            self.leave_out(field.number, Value::Varint(bits));
        }
        low
    }

    /// The first value of a packed record, and the rest of it.
    pub(super) fn packed<'b>(
        &mut self,
        kind: Kind,
        record: &'b [u8],
    ) -> Result<(Value<'b>, &'b [u8]), Unfit> {
        match kind {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => {
                let (bytes, rest) = record.split_first_chunk().ok_or(Unfit)?;
                Ok((Value::Fixed64(u64::from_le_bytes(*bytes)), rest))
            }
            Kind::Fixed32 | Kind::Float | Kind::Sfixed32 => {
                let (bytes, rest) = record.split_first_chunk().ok_or(Unfit)?;
                Ok((Value::Fixed32(u32::from_le_bytes(*bytes)), rest))
            }
            Kind::Bool
            | Kind::Enum(_)
            | Kind::Int32
            | Kind::Int64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Uint32
            | Kind::Uint64 => {
                let (value, rest, is_minimal) = wire::varint(record).map_err(|_| Unfit)?;
                self.is_exact &= is_minimal;
                Ok((Value::Varint(value), rest))
            }
            Kind::Bytes | Kind::Group(_) | Kind::Message(_) | Kind::String => Err(Unfit),
        }
    }

    /// Writes a value.
    pub(super) fn scalar(&mut self, scalar: &Scalar<'_, '_>) {
        let quote = if matches!(
            scalar,
            Scalar::Signed(_, Quoted::Yes) | Scalar::Unsigned(_, Quoted::Yes) | Scalar::Bytes(_)
        ) {
            "\""
        } else {
            ""
        };
        self.out.push(quote);
        match *scalar {
            Scalar::Bool(true) => self.out.push("true"),
            Scalar::Bool(false) => self.out.push("false"),
            Scalar::Bytes(bytes) => self.out.push(&STANDARD.encode(bytes)),
            Scalar::Double(value) if value.is_finite() => self.out.double(value),
            Scalar::Double(value) => self.not_finite(value.is_nan(), value > 0.0),
            Scalar::Float(value) if value.is_finite() => self.out.single(value),
            Scalar::Float(value) => self.not_finite(value.is_nan(), value > 0.0),
            Scalar::Enum(found, 0) if found.is_null => self.out.push("null"),
            Scalar::Enum(found, number) => match found.name(number) {
                Some(name) => self.out.quoted(name),
                None => self.out.signed(number.into()),
            },
            Scalar::Signed(value, _) => self.out.signed(value),
            Scalar::Text(text) => self.out.quoted(text),
            Scalar::Unsigned(value, _) => self.out.unsigned(value),
        }
        self.out.push(quote);
    }

    fn not_finite(&mut self, is_nan: bool, is_positive: bool) {
        self.out.push(match (is_nan, is_positive) {
            (true, _) => "\"NaN\"",
            (false, true) => "\"Infinity\"",
            (false, false) => "\"-Infinity\"",
        });
    }
}

/// Whether lists of a type may stand in one record.
pub(super) const fn is_packable(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Bytes | Kind::Group(_) | Kind::Message(_) | Kind::String
    )
}

/// Numbers whose sign is the lowest bit.
const fn zigzag(bits: u64) -> i64 {
    let half = (bits >> 1).cast_signed();
    if bits & 1 == 0 { half } else { !half }
}

/// The low and the high half.
const fn halves(bits: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
    [
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    ]
}
