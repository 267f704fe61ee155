//! Sorting for lists of any type with one copy of the code. The standard library's sorts and trees are compiled for each
//! type anew, which made 40 KB of the module.

/// The places `0..count` in ascending order of what stands there; what is equal stays in its order. A merge sort from the
/// bottom up.
pub(super) fn order(count: usize, is_less: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut width = 1_usize;
    while width < count {
        let twice = width.saturating_mul(2);
        let mut merged = Vec::with_capacity(count);
        for pair in order.chunks(twice) {
            let (mut left, mut right) = pair.split_at_checked(width).unwrap_or((pair, &[]));
            while let ([first, lefts @ ..], [second, rights @ ..]) = (left, right) {
                if is_less(*second, *first) {
                    merged.push(*second);
                    right = rights;
                } else {
                    merged.push(*first);
                    left = lefts;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        order = merged;
        width = twice;
    }
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(items in proptest::collection::vec((0_u8..9, any::<u8>()), 0..99)) {
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);

            let order = order(items.len(), &|left, right| items[left].0 < items[right].0);

            let sorted: Vec<_> = order.into_iter().map(|at| items[at]).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
