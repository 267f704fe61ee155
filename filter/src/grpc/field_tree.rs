//! The text of a message whose type nobody told: its fields by number, in the order of the wire, one to a line.
//!
//! | line | wire |
//! | --- | --- |
//! | `1: 150` | varint; behind one that may be negative stands `(-1)` |
//! | `2: "text"` | bytes that are UTF-8; what does not show is escaped as in JSON |
//! | `3 {` … `}` | bytes that are themselves a message |
//! | `4: hex:00ff` | other bytes |
//! | `5: 0x0000002a (42)` | 32 bits; `(float 1.5)` where that is likelier |
//! | `6: 0x000000000000002a (42)` | 64 bits; `(double 1.5)` where that is likelier |
//! | `7 group {` … `}` | group |
//!
//! What stands in brackets is a reading of what stands before it. Bytes are a guess as well: text if no control
//! character is in it, else a message if it reads as one, else text if its only control characters are those of lines.
//! Each form says what it is, so that the bytes can be told from the text, but for varints that are longer than they
//! need to be.

use super::output::Output;
use super::wire::{self, Field, Value};
use crate::limits;

/// Stands for no bytes at all, so that no text is empty.
pub(super) const EMPTY: &str = "empty message";

/// Writes a message, and tells whether its bytes follow from the text. Bytes that are no message are written as
/// `hex:` and their digits.
pub(super) fn write(message: &[u8], out: &mut Output) -> bool {
    if message.is_empty() {
        out.push(EMPTY);
        true
    } else if wire::is_message(message) {
        write_fields(message, 0, out)
    } else {
        out.push("hex:");
        out.hex(message);
        true
    }
}

/// Writes the fields of a message, each on lines of its own.
pub(super) fn write_fields(message: &[u8], level: usize, out: &mut Output) -> bool {
    let mut is_minimal = true;
    for field in wire::fields(message).flatten() {
        if out.is_full() {
            break;
        }
        is_minimal &= write_field(&field, level, out);
    }
    is_minimal
}

/// Writes one field on lines of its own.
pub(super) fn write_field(field: &Field<'_>, level: usize, out: &mut Output) -> bool {
    out.line(level);
    out.unsigned(field.number.into());
    let inside = match field.value {
        Value::Group(inside) => {
            out.push(" group {");
            Some(inside)
        }
        Value::Bytes(bytes) if is_shown_as_message(bytes, level) => {
            out.push(" {");
            Some(bytes)
        }
        Value::Bytes(_) | Value::Fixed32(_) | Value::Fixed64(_) | Value::Varint(_) => {
            out.push(": ");
            None
        }
    };
    let Some(inside) = inside else {
        write_value(&field.value, out);
        return field.is_minimal;
    };
    // Groups that nest too deeply are no message, and bytes at that depth are shown as such.
    let is_minimal = write_fields(inside, level.saturating_add(1), out);
    out.line(level);
    out.push("}");
    is_minimal && field.is_minimal
}

fn write_value(value: &Value<'_>, out: &mut Output) {
    match *value {
        Value::Varint(value) => {
            out.unsigned(value);
            let signed = value.cast_signed();
            if signed < 0 {
                out.push(" (");
                out.signed(signed);
                out.push(")");
            }
        }
        Value::Fixed32(bits) => {
            out.push("0x");
            out.hex(&bits.to_be_bytes());
            let float = f32::from_bits(bits);
            if is_likely(float.into()) {
                out.push(" (float ");
                out.single(float);
            } else {
                out.push(" (");
                out.signed(bits.cast_signed().into());
            }
            out.push(")");
        }
        Value::Fixed64(bits) => {
            out.push("0x");
            out.hex(&bits.to_be_bytes());
            let double = f64::from_bits(bits);
            if is_likely(double) {
                out.push(" (double ");
                out.double(double);
            } else {
                out.push(" (");
                out.signed(bits.cast_signed());
            }
            out.push(")");
        }
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(is_binary) => out.quoted(text),
            Ok(_) | Err(_) => {
                out.push("hex:");
                out.hex(bytes);
            }
        },
        Value::Group(_) => {}
    }
}

fn is_shown_as_message(bytes: &[u8], level: usize) -> bool {
    let is_plain = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(char::is_control));
    !is_plain && level.saturating_add(1) < limits::GRPC_DEPTH && wire::is_message(bytes)
}

/// A control character that texts do not have.
fn is_binary(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\r' | '\t')
}

/// Whether a number is more likely one with a fraction than the whole number of the same bits: those that people write
/// have neither very large nor very small exponents.
fn is_likely(number: f64) -> bool {
    (1e-6..1e15).contains(&number.abs())
}

#[cfg(test)]
mod tests;
