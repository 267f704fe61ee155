//! Header pairs as bytes: a count, the sizes of all names and values, then each of them with a zero byte behind it.

use crate::header_map::HeaderMap;

/// The most bytes that Envoy takes from a guest as pairs; more than that reads as an empty map.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The most pairs that Envoy takes from a guest; more than that read as an empty map.
pub const MAX_PAIRS: usize = 1024;

/// Packs `map`.
pub fn encode<'a>(entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Vec<u8> {
    let count = entries.len();
    let content: usize = entries
        .clone()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    let mut bytes = Vec::with_capacity(4 + count * 8 + content);
    bytes.extend_from_slice(&size(count));
    for (name, value) in entries.clone() {
        bytes.extend_from_slice(&size(name.len()));
        bytes.extend_from_slice(&size(value.len()));
    }
    for (name, value) in entries {
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(value);
        bytes.push(0);
    }
    bytes
}

/// Unpacks what a guest has packed. Bytes that are no pairs, or too many of them, read as an empty map, which is what Envoy makes
/// of them.
pub fn decode(bytes: &[u8]) -> HeaderMap {
    read(bytes).unwrap_or_default().into_iter().collect()
}

/// The pairs one by one, repeated names included; `None` for bytes that are no pairs.
pub fn read(bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let (count, mut sizes) = take_size(bytes)?;
    if count > MAX_PAIRS {
        return None;
    }
    let mut content = sizes.get(count.checked_mul(8)?..)?;
    let mut pairs = Vec::with_capacity(count);
    for _ in 0..count {
        let (name_size, rest) = take_size(sizes)?;
        let (value_size, rest) = take_size(rest)?;
        sizes = rest;
        let (name, rest) = take_terminated(content, name_size)?;
        let (value, rest) = take_terminated(rest, value_size)?;
        content = rest;
        pairs.push((name, value));
    }
    Some(pairs)
}

fn size(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes()
}

fn take_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*size)).ok()?, rest))
}

fn take_terminated(bytes: &[u8], size: usize) -> Option<(&[u8], &[u8])> {
    let (part, rest) = bytes.split_at_checked(size)?;
    let (zero, rest) = rest.split_first()?;
    (*zero == 0).then_some((part, rest))
}

#[cfg(test)]
mod tests {
    use super::{MAX_PAIRS, decode, encode};
    use crate::header_map::HeaderMap;

    #[test]
    fn pairs_survive_the_way_there_and_back() {
        let map = HeaderMap::new()
            .with(":path", "/")
            .with("x", [0xff, 0])
            .with("x", "");
        assert_eq!(
            decode(&encode(map.iter().collect::<Vec<_>>().into_iter())),
            map
        );
    }

    #[test]
    fn bytes_that_are_no_pairs_are_an_empty_map() {
        let map = HeaderMap::new().with("name", "value");
        let whole = encode(map.iter().collect::<Vec<_>>().into_iter());
        for end in 0..whole.len() {
            assert!(decode(&whole[..end]).is_empty(), "the first {end} bytes");
        }
        let mut unterminated = whole.clone();
        *unterminated.last_mut().expect("not empty") = 1;
        assert!(decode(&unterminated).is_empty());
    }

    #[test]
    fn more_pairs_than_the_limit_are_an_empty_map() {
        let entries = |count| vec![(b"x".as_slice(), b"y".as_slice()); count];
        let at_the_limit = encode(entries(MAX_PAIRS).into_iter());
        assert_eq!(decode(&at_the_limit).len(), MAX_PAIRS);
        let above = encode(entries(MAX_PAIRS + 1).into_iter());
        assert!(decode(&above).is_empty());
    }
}
