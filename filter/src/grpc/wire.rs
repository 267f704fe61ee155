//! Reads the wire format of protobuf, field by field, and says whether each stood there in the one shortest spelling.
//! Builds nothing: values are slices of the message.
//!
//! Source: protobuf.dev, Encoding.

use crate::limits;

/// Bytes that are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no protobuf message")]
pub(super) struct Malformed;

/// The value of a field, as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'b> {
    /// Wire type 2.
    Bytes(&'b [u8]),
    /// Wire type 5.
    Fixed32(u32),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire types 3 and 4: what stands between them.
    Group(&'b [u8]),
    /// Wire type 0.
    Varint(u64),
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'b> {
    pub number: u32,
    pub value: Value<'b>,
    /// Whether its tags, its length and its varint are all as short as they can be.
    pub is_minimal: bool,
}

/// The fields of a message, in the order of the wire; after an error there are no more.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

/// Reads a message.
pub(super) const fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

/// Whether the bytes are a message. Those of fields inside are not looked into.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    fields(bytes).all(|field| field.is_ok())
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<Field<'b>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// What a tag announces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WireType {
    Bytes,
    EndGroup,
    Fixed32,
    Fixed64,
    StartGroup,
    Varint,
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Result<Field<'b>, Malformed> {
        let mut is_minimal = true;
        let (number, wire_type) = self.tag(&mut is_minimal)?;
        let value = match wire_type {
            WireType::StartGroup => Value::Group(self.group(number, &mut is_minimal)?),
            WireType::EndGroup => return Err(Malformed),
            WireType::Bytes | WireType::Fixed32 | WireType::Fixed64 | WireType::Varint => {
                self.value(wire_type, &mut is_minimal)?
            }
        };
        Ok(Field {
            number,
            value,
            is_minimal,
        })
    }

    fn tag(&mut self, is_minimal: &mut bool) -> Result<(u32, WireType), Malformed> {
        const HIGHEST_NUMBER: u64 = (1 << 29) - 1;
        let tag = self.varint(is_minimal)?;
        let wire_type = match tag & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            3 => WireType::StartGroup,
            4 => WireType::EndGroup,
            5 => WireType::Fixed32,
            _ => return Err(Malformed),
        };
        match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 && u64::from(number) <= HIGHEST_NUMBER => {
                Ok((number, wire_type))
            }
            Ok(_) | Err(_) => Err(Malformed),
        }
    }

    fn value(
        &mut self,
        wire_type: WireType,
        is_minimal: &mut bool,
    ) -> Result<Value<'b>, Malformed> {
        Ok(match wire_type {
            WireType::Varint => Value::Varint(self.varint(is_minimal)?),
            WireType::Fixed64 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            WireType::Fixed32 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            WireType::Bytes => {
                let length = self.varint(is_minimal)?;
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            WireType::EndGroup | WireType::StartGroup => return Err(Malformed),
        })
    }

    /// Finds the end of a group whose start was read, past the groups inside it.
    fn group(&mut self, number: u32, is_minimal: &mut bool) -> Result<&'b [u8], Malformed> {
        let start = self.rest;
        let mut open = vec![number];
        // What stands inside is judged by whoever reads the group; only its end tag is spelled out here.
        let mut inside = true;
        loop {
            let before_tag = self.rest;
            let mut tag_is_minimal = true;
            let (number, wire_type) = self.tag(&mut tag_is_minimal)?;
            match wire_type {
                WireType::StartGroup if open.len() < limits::GRPC_GROUP_DEPTH => open.push(number),
                WireType::StartGroup => return Err(Malformed),
                WireType::EndGroup if open.pop() != Some(number) => return Err(Malformed),
                WireType::EndGroup if open.is_empty() => {
                    *is_minimal &= tag_is_minimal;
                    let length = start.len().checked_sub(before_tag.len()).ok_or(Malformed)?;
                    return start.get(..length).ok_or(Malformed);
                }
                WireType::EndGroup => {}
                WireType::Bytes | WireType::Fixed32 | WireType::Fixed64 | WireType::Varint => {
                    self.value(wire_type, &mut inside)?;
                }
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn varint(&mut self, is_minimal: &mut bool) -> Result<u64, Malformed> {
        let (value, rest, shortest) = varint(self.rest)?;
        *is_minimal &= shortest;
        self.rest = rest;
        Ok(value)
    }
}

/// Reads a varint of at most ten bytes and 64 bits: its value, what follows, and whether no shorter spelling has the
/// same value.
pub(super) fn varint(bytes: &[u8]) -> Result<(u64, &[u8], bool), Malformed> {
    let mut value = 0_u64;
    let mut shift = 0_u32;
    let mut rest = bytes;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        let bits = u64::from(byte & 0x7f);
        let shifted = bits.checked_shl(shift).ok_or(Malformed)?;
        if shifted >> shift != bits {
            return Err(Malformed);
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Ok((value, rest, bits != 0 || shift == 0));
        }
        shift = shift.saturating_add(7);
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Field<'_>>, Malformed> {
        fields(bytes).collect()
    }

    fn one(number: u32, value: Value<'_>, is_minimal: bool) -> Result<Vec<Field<'_>>, Malformed> {
        Ok(vec![Field {
            number,
            value,
            is_minimal,
        }])
    }

    #[test]
    fn ok_one_field_of_each_wire_type() {
        assert_eq!(read(b"\x08\x96\x01"), one(1, Value::Varint(150), true));
        assert_eq!(read(b"\x12\x02hi"), one(2, Value::Bytes(b"hi"), true));
        assert_eq!(read(b"\x1d\x2a\0\0\0"), one(3, Value::Fixed32(42), true));
        assert_eq!(
            read(b"\x21\x2a\0\0\0\0\0\0\0"),
            one(4, Value::Fixed64(42), true)
        );
        assert_eq!(
            read(b"\x2b\x08\x01\x2c"),
            one(5, Value::Group(b"\x08\x01"), true)
        );
        assert_eq!(
            read(b"\x2b\x2b\x2c\x2c"),
            one(5, Value::Group(b"\x2b\x2c"), true)
        );
        assert_eq!(read(b""), Ok(vec![]));
    }

    #[test]
    fn ok_the_highest_number_and_value() {
        assert_eq!(
            read(b"\xf8\xff\xff\xff\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            one((1 << 29) - 1, Value::Varint(u64::MAX), true)
        );
    }

    #[test]
    fn longer_spellings_are_told() {
        assert_eq!(read(b"\x88\x00\x01"), one(1, Value::Varint(1), false));
        assert_eq!(read(b"\x08\x81\x00"), one(1, Value::Varint(1), false));
        assert_eq!(
            read(b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"),
            one(1, Value::Varint(0), false)
        );
        assert_eq!(read(b"\x12\x81\x00a"), one(2, Value::Bytes(b"a"), false));
        assert_eq!(read(b"\x2b\xac\x00"), one(5, Value::Group(b""), false));
        assert_eq!(
            read(b"\x2b\x08\x81\x00\x2c"),
            one(5, Value::Group(b"\x08\x81\x00"), true)
        );
    }

    #[test]
    fn err_malformed() {
        let table: [&[u8]; 16] = [
            b"\x00\x01",                                         // field 0
            b"\x80\x80\x80\x80\x10\x01",                         // field 2^29
            b"\x0e\x01",                                         // wire type 6
            b"\x0f\x01",                                         // wire type 7
            b"\x08",                                             // no value
            b"\x08\x80",                                         // half a varint
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",     // 65 bits
            b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", // eleven bytes
            b"\x12\x03hi",                                       // too short
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",     // longer than memory
            b"\x1d\0\0\0",                                       // half a fixed32
            b"\x21\0\0\0\0\0\0\0",                               // half a fixed64
            b"\x2b\x08\x01",                                     // group without end
            b"\x2b\x34",                                         // end of another group
            b"\x2b\x33\x2c\x34",                                 // crossed groups
            b"\x2c",                                             // end without start
        ];
        for bytes in table {
            assert_eq!(read(bytes), Err(Malformed), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn err_groups_without_bound() {
        let nested = |depth| [[0x2b].repeat(depth), [0x2c].repeat(depth)].concat();

        assert!(is_message(&nested(limits::GRPC_GROUP_DEPTH)));
        assert!(!is_message(&nested(
            limits::GRPC_GROUP_DEPTH.saturating_add(1)
        )));
        assert!(!is_message(&[0x2b].repeat(1_000_000)));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let count = fields(&bytes).count();

            prop_assert!(count <= bytes.len());
        }
    }
}
