//! Just enough of protobuf to read the few messages that guests hand to a host, and to write those that they read.

/// A length-delimited field of a message.
pub(crate) fn delimited(number: u8, part: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut size = part.len();
    while size > 0x7f {
        field.push(size.to_le_bytes()[0] | 0x80);
        size >>= 7;
    }
    field.push(size.to_le_bytes()[0]);
    field.extend_from_slice(part);
    field
}

/// Whether `bytes` are a message at all.
pub(crate) fn is_message(bytes: &[u8]) -> bool {
    fields(bytes).is_some()
}

/// The bytes of a length-delimited field, the last one where there are several. `None` where it is not there or the bytes are no
/// message.
pub(crate) fn field(message: &[u8], number: u64) -> Option<&[u8]> {
    let found = fields(message)?
        .into_iter()
        .rev()
        .find(|(found, _)| *found == number);
    found.map(|(_, part)| part)
}

/// All length-delimited fields.
fn fields(message: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut rest = message;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (key, after) = varint(rest)?;
        rest = after;
        match key & 7 {
            0 => rest = varint(rest)?.1,
            1 => rest = rest.get(8..)?,
            2 => {
                let (size, after) = varint(rest)?;
                let (part, after) = after.split_at_checked(usize::try_from(size).ok()?)?;
                found.push((key >> 3, part));
                rest = after;
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(index).ok()? * 7)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}
