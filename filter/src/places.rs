//! Where keys stand among numbered things: made once, then only looked up. A sorted list, because a tree of the standard library costs
//! the module five kilobytes, and because a `Table` is slow to fill with keys by the thousand.

use std::collections::BinaryHeap;

/// A key and a place at which it stands.
pub type Place = (Vec<u8>, usize);

/// Keys with their places.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<Place>);

impl Places {
    /// Takes keys in any order. One may stand at many places.
    #[must_use]
    pub fn of(keys: Vec<Place>) -> Self {
        Self(BinaryHeap::from(keys).into_sorted_vec())
    }

    /// Whether there is no key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key is there.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        !self.get(key).is_empty()
    }

    /// Every place of a key, ascending.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> &[Place] {
        let start = self.0.partition_point(|(other, _)| other.as_slice() < key);
        let from_here = self.0.get(start..).unwrap_or_default();
        let end = from_here.partition_point(|(other, _)| other == key);
        from_here.get(..end).unwrap_or_default()
    }

    /// How many keys there are.
    #[cfg(test)]
    pub fn keys(&self) -> usize {
        self.0
            .chunk_by(|(left, _), (right, _)| left == right)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_is_found_at_all_of_its_places(
            keys in proptest::collection::vec((proptest::collection::vec(0_u8..3, 0..3), 0_usize..9), 0..40),
            wanted in proptest::collection::vec(0_u8..3, 0..3),
        ) {
            let mut found: Vec<Place> = keys.iter().filter(|(key, _)| *key == wanted).cloned().collect();
            found.sort();
            let places = Places::of(keys);

            prop_assert_eq!(places.get(&wanted), found.as_slice());
            prop_assert_eq!(places.contains(&wanted), !found.is_empty());
        }
    }
}
