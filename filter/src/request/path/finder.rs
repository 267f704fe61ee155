//! Looks for the words of many rules in one ambiguous path, within a bound. Knows nothing of rules.

use std::cell::Cell;

use super::{JOKER, Letters};
use crate::limits;

/// A search in the letters of a path.
#[derive(Debug)]
pub struct Finder<'l> {
    letters: &'l Letters,
    /// Which pairs of neighbouring bytes the letters hold, one bit each; `None` where jokers may stand for any.
    pairs: Option<Vec<u64>>,
    steps_left: Cell<usize>,
}

impl<'l> Finder<'l> {
    /// A search with all its steps before it.
    #[must_use]
    pub fn new(letters: &'l Letters) -> Self {
        let pairs = (!letters.text.contains(&JOKER)).then(|| {
            let mut pairs = vec![0_u64; 1 << 10];
            for (word, bit) in pairs_of(&letters.text) {
                if let Some(bits) = pairs.get_mut(word) {
                    *bits |= bit;
                }
            }
            pairs
        });
        Self {
            letters,
            pairs,
            steps_left: Cell::new(limits::LETTER_STEPS),
        }
    }

    /// Whether some reading could hold this word, letter case apart. Says yes once the steps are used up: a wrong yes
    /// refuses an odd path, a wrong no would let it pass.
    #[must_use]
    pub fn may_hold(&self, word: &[u8]) -> bool {
        if let Some(pairs) = &self.pairs {
            let holds = |(at, bit): (usize, u64)| pairs.get(at).is_some_and(|bits| bits & bit != 0);
            if !pairs_of(word).all(holds) {
                return false;
            }
        }
        let rounds = if self.pairs.is_some() { 1 } else { word.len() };
        let cost = self.letters.text.len().saturating_mul(rounds);
        match self.steps_left.get().checked_sub(cost) {
            Some(left) => {
                self.steps_left.set(left);
                self.letters.may_hold(word)
            }
            None => true,
        }
    }
}

/// The place and the bit of each pair of neighbours, letter case apart.
fn pairs_of(text: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    text.windows(2).filter_map(|pair| match pair {
        [left, right] => {
            let number =
                u16::from_be_bytes([left.to_ascii_lowercase(), right.to_ascii_lowercase()]);
            Some((usize::from(number >> 6), 1_u64 << (number & 63)))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{PathReading, read};
    use super::*;

    fn letters(path: &[u8]) -> Option<Letters> {
        match read(path) {
            PathReading::Ambiguous(letters) => Some(letters),
            PathReading::Plain(_) | PathReading::Unknown => None,
        }
    }

    #[test]
    fn a_search_ends_in_a_yes_when_its_steps_are_used_up() {
        let letters = letters(format!("/%ff;{}", "a".repeat(3_000)).as_bytes()).expect("ambiguous");
        let finder = Finder::new(&letters);

        assert!(!finder.may_hold(b"payments"));
        let asked = (0..1_000)
            .take_while(|_| !finder.may_hold(b"payments"))
            .count();
        assert!((10..1_000).contains(&asked), "{asked}");
    }

    proptest! {
        #[test]
        fn the_search_says_what_the_letters_say(path in "/[a-cA-C;/%ff\u{e9}]{0,12}", words in proptest::collection::vec("[a-cA-C]{0,3}", 1..6)) {
            if let Some(letters) = letters(path.as_bytes()) {
                let finder = Finder::new(&letters);
                for word in words {
                    prop_assert_eq!(finder.may_hold(word.as_bytes()), letters.may_hold(word.as_bytes()));
                }
            }
        }
    }
}
