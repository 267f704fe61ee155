//! Takes comments out of a descriptor set on the wire. Decoded and encoded again, a set would lose what this program's version of
//! descriptor.proto does not know, such as the features of later editions, and messages would then be misread.
//!
//! Source: descriptor.proto (`FileDescriptorSet.file`, `FileDescriptorProto.source_code_info`); protobuf.dev, Encoding.

/// The set without the `source_code_info` of its files; all else stays as it is. `None` where the bytes are no message.
pub(super) fn without_sources(set: &[u8]) -> Option<Vec<u8>> {
    let mut bare = Vec::with_capacity(set.len());
    let mut rest = set;
    while !rest.is_empty() {
        let field = take_field(&mut rest)?;
        match field.content {
            Some(file) if field.number == FILE => {
                let file = without_field(file, SOURCE_CODE_INFO)?;
                push_varint(&mut bare, FILE << 3 | LENGTH_DELIMITED);
                push_varint(&mut bare, u64::try_from(file.len()).ok()?);
                bare.extend_from_slice(&file);
            }
            Some(_) | None => bare.extend_from_slice(field.bytes),
        }
    }
    Some(bare)
}

fn without_field(message: &[u8], number: u64) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(message.len());
    let mut rest = message;
    while !rest.is_empty() {
        let field = take_field(&mut rest)?;
        if field.number != number {
            kept.extend_from_slice(field.bytes);
        }
    }
    Some(kept)
}

struct Field<'b> {
    number: u64,
    /// Tag and all.
    bytes: &'b [u8],
    /// What a length stands before.
    content: Option<&'b [u8]>,
}

fn take_field<'b>(rest: &mut &'b [u8]) -> Option<Field<'b>> {
    let start = *rest;
    let tag = take_varint(rest)?;
    let mut content = None;
    match tag & 7 {
        VARINT => {
            take_varint(rest)?;
        }
        FIXED64 => {
            take(rest, 8)?;
        }
        LENGTH_DELIMITED => {
            let length = usize::try_from(take_varint(rest)?).ok()?;
            content = Some(take(rest, length)?);
        }
        FIXED32 => {
            take(rest, 4)?;
        }
        // Groups, which descriptor.proto has never had.
        _ => return None,
    }
    Some(Field {
        number: tag >> 3,
        bytes: &start[..start.len() - rest.len()],
        content,
    })
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

const FILE: u64 = 1;
const SOURCE_CODE_INFO: u64 = 9;
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sources_go_and_what_is_not_known_stays() {
        let mut file = vec![0x0a, 1, b'a'];
        file.extend([SOURCE_CODE_INFO as u8 * 8 + 2, 2, 0x0a, 0]);
        // `edition` (14), a field of 32 bits and one of 64 that nobody knows.
        file.extend([0x70, 0xe8, 0x07, 0xf5, 0x07, 1, 2, 3, 4, 0xf1, 0x07]);
        file.extend([0; 8]);
        let mut set = vec![0x0a, u8::try_from(file.len()).expect("short")];
        set.extend(&file);
        set.extend([0x50, 1]);

        let bare = without_sources(&set).expect("a message");

        file.drain(3..7);
        let mut expected = vec![0x0a, u8::try_from(file.len()).expect("short")];
        expected.extend(&file);
        expected.extend([0x50, 1]);
        assert_eq!(bare, expected);
    }

    #[test]
    fn err_no_message() {
        for bytes in [
            [0x0a, 2, 0].as_slice(),
            &[0x0a],
            &[0x0b, 0x0c],
            &[0x80; 11],
            &[0x0a, 1, 0x0b],
        ] {
            assert_eq!(without_sources(bytes), None, "{bytes:?}");
        }
    }
}
