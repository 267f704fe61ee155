//! A map for few entries: a sorted list. The standard library's trees cost the module eight kilobytes for each pair of types, and most
//! maps of the gate hold a handful of entries. Looking up takes the logarithm of their number, and adding or removing moves those
//! behind; where keys come by the thousand, they stand in `Places`.

use std::borrow::Borrow;

/// Entries by ascending key, each key once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<K, V>(Vec<(K, V)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Table<K, V> {
    /// No entry.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// All entries by ascending key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// All entries by ascending key, to change their values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// All keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    /// All values by ascending key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Keeps the entries that are wanted.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(key, value)| is_wanted(key, value));
    }
}

impl<K: Ord, V> Table<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// The value of a key, to change it.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Whether the key is there.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Ok(place) => {
                if let Some(entry) = self.0.get_mut(place) {
                    entry.1 = value;
                }
            }
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    /// Takes an entry out, and gives its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        Some(self.0.remove(place).1)
    }

    /// Changes the value of a key, which is made where it is not there.
    pub fn change<R>(
        &mut self,
        key: K,
        make: impl FnOnce() -> V,
        change: impl FnOnce(&mut V) -> R,
    ) -> Option<R> {
        let place = match self.place(&key) {
            Ok(place) => place,
            Err(place) => {
                self.0.insert(place, (key, make()));
                place
            }
        };
        self.0.get_mut(place).map(|(_, value)| change(value))
    }

    /// Where a key is, or would be.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0
            .binary_search_by(|(other, _)| other.borrow().cmp(key))
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut table = Self::new();
        for (key, value) in entries {
            table.insert(key, value);
        }
        table
    }
}

impl<K, V> IntoIterator for Table<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_map_of_the_standard_library(
            steps in proptest::collection::vec((0_u8..5, 0_u8..12, any::<u16>()), 0..60),
        ) {
            let (mut ours, mut theirs) = (Table::new(), BTreeMap::new());
            for (kind, key, value) in steps {
                match kind {
                    0 => {
                        ours.insert(key, value);
                        theirs.insert(key, value);
                    }
                    1 => prop_assert_eq!(ours.remove(&key), theirs.remove(&key)),
                    2 => {
                        let add = |found: &mut u16| *found = found.wrapping_add(value);
                        ours.change(key, || 7, add);
                        add(theirs.entry(key).or_insert(7));
                    }
                    3 => {
                        ours.retain(|key, value| u16::from(*key) < *value);
                        theirs.retain(|key, value| u16::from(*key) < *value);
                    }
                    _ => {
                        if let Some(found) = ours.get_mut(&key) {
                            *found = value;
                        }
                        theirs.entry(key).and_modify(|found| *found = value);
                    }
                }
                prop_assert_eq!(ours.get(&key), theirs.get(&key));
                prop_assert_eq!(ours.contains(&key), theirs.contains_key(&key));
                prop_assert_eq!(ours.len(), theirs.len());
            }
            prop_assert!(ours.iter().eq(theirs.iter()));
            prop_assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
            prop_assert_eq!(&ours, &theirs.clone().into_iter().rev().collect());
            prop_assert!(ours.into_iter().eq(theirs));
        }
    }
}
