//! What is said to an operator whose configuration is refused: where, what was found, what is allowed, and the remedy.

use std::fmt;

/// A configuration that was refused. Nothing of it is used.
///
/// In a box, since what reads a configuration passes it on in hundreds of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(Box<Refusal>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Refusal {
    pointer: String,
    problem: String,
    hint: String,
}

impl ConfigError {
    pub(super) fn new(pointer: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self(Box::new(Refusal {
            pointer: pointer.to_owned(),
            problem: problem.into(),
            hint: hint.into(),
        }))
    }

    /// JSON pointer of the place (RFC 6901); empty for the whole document.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// What is wrong there, and what is allowed.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.0.problem
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.0.hint
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.pointer() {
            "" => "the whole document",
            pointer => pointer,
        };
        write!(
            formatter,
            "invalid plugin configuration at {place}: {}; hint: {}",
            self.problem(),
            self.hint()
        )
    }
}

impl std::error::Error for ConfigError {}

/// The known word that was probably meant, when one is near enough.
pub(super) fn nearest<'w>(found: &str, known: &[&'w str]) -> Option<&'w str> {
    known
        .iter()
        .copied()
        .map(|word| (distance(found, word), word))
        .filter(|(distance, word)| *distance <= word.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many letters must change to make one word of another (Levenshtein), letter case apart.
fn distance(left: &str, right: &str) -> usize {
    let left = left.to_ascii_lowercase();
    let right: Vec<char> = right.to_ascii_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.chars().take(64).enumerate() {
        let mut diagonal = above;
        let mut before = above.saturating_add(1);
        let mut next = vec![before];
        for (wanted, over) in right.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal.saturating_add(usize::from(letter != *wanted));
            diagonal = *over;
            before = replaced
                .min(over.saturating_add(1))
                .min(before.saturating_add(1));
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_recognised_and_a_far_one_is_not() {
        let known = ["listener_name", "rules", "message"];

        assert_eq!(nearest("listner_name", &known), Some("listener_name"));
        assert_eq!(nearest("Rule", &known), Some("rules"));
        assert_eq!(nearest("colour", &known), None);
    }
}
