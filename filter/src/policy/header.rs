//! The values of headers, taken apart once for all rules that stand against a request. Knows nothing of rules that allow: they look
//! at whole values.

use crate::config::conditions::TextTest;
use crate::glob::{Case, Steps};
use crate::limits;
use crate::request::RequestHead;

/// What a header may mean to somebody, each once: its values without the white space around them, which HTTP/2 carries and
/// upstreams drop, and the parts of those, since Envoy joins some repeated headers by commas (cookies by semicolons). In lower case
/// and sorted; `None` where there are more than [`limits::HEADER_PARTS`], so that a header could be anything.
#[derive(Debug)]
pub(super) struct HeaderParts(Option<Vec<Vec<u8>>>);

/// The parts of all headers that the head has kept, by name.
#[derive(Debug)]
pub(super) struct Headers<'h>(Vec<(&'h str, HeaderParts)>);

impl<'h> Headers<'h> {
    /// Takes the headers of a head apart.
    pub fn of(head: &'h RequestHead) -> Self {
        let headers = head.headers.iter();
        Self(
            headers
                .map(|(name, values)| (&**name, HeaderParts::of(values)))
                .collect(),
        )
    }

    /// The parts of one; `None` where the request does not have it.
    pub fn parts(&self, name: &str) -> Option<&HeaderParts> {
        // They stand in the order of their names, as the head has them.
        let place = self.0.binary_search_by(|(other, _)| (*other).cmp(name));
        self.0.get(place.ok()?).map(|(_, parts)| parts)
    }
}

impl HeaderParts {
    fn of(values: &[Vec<u8>]) -> Self {
        let mut parts = Vec::<Vec<u8>>::new();
        for value in values {
            let pieces = value.split(|byte| matches!(byte, b',' | b';'));
            for part in std::iter::once(value.as_slice()).chain(pieces) {
                let part = part.trim_ascii().to_ascii_lowercase();
                let Err(place) = parts.binary_search(&part) else {
                    continue;
                };
                if parts.len() == limits::HEADER_PARTS {
                    return Self(None);
                }
                parts.insert(place, part);
            }
        }
        Self(Some(parts))
    }

    /// Whether one of them passes a test whose texts are in lower case; `None` where that cannot be told.
    pub fn any_passes(&self, test: &TextTest, steps: &Steps) -> Option<bool> {
        let parts = self.0.as_ref()?;
        if let TextTest::OneOf(values) = test {
            let rounds = usize::BITS.saturating_sub(parts.len().leading_zeros());
            let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
            return steps.take(values.len().saturating_mul(rounds)).then(|| {
                values
                    .iter()
                    .any(|value| parts.binary_search(value).is_ok())
            });
        }
        for part in parts {
            if test.passes(part, Case::Insensitive, steps)? {
                return Some(true);
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(values: &[&str]) -> Option<Vec<String>> {
        let values: Vec<Vec<u8>> = values
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect();
        let parts = HeaderParts::of(&values).0?;
        Some(
            parts
                .into_iter()
                .map(|part| String::from_utf8(part).expect("ASCII"))
                .collect(),
        )
    }

    #[test]
    fn values_and_their_parts_stand_once_each() {
        let table: [(&[&str], &[&str]); 4] = [
            (&[], &[]),
            (&[" Prod "], &["prod"]),
            (&["b, A;c", "a"], &["a", "b", "b, a;c", "c"]),
            (&[",,"], &["", ",,"]),
        ];
        for (values, expected) in table {
            assert_eq!(parts(values).expect("few"), expected, "{values:?}");
        }
    }

    #[test]
    fn parts_are_bounded_and_repeated_ones_cost_nothing() {
        let many = |count: usize| {
            (0..count)
                .map(|part| format!("{part},"))
                .collect::<String>()
        };

        assert_eq!(parts(&[&",".repeat(57_000)]).expect("few").len(), 2);
        assert_eq!(parts(&[&"a,b;".repeat(14_000)]).expect("few").len(), 4);
        // The empty part behind the last comma, and the whole.
        let most = limits::HEADER_PARTS - 2;
        assert_eq!(
            parts(&[&many(most)]).expect("few").len(),
            limits::HEADER_PARTS
        );
        assert_eq!(parts(&[&many(most + 1)]), None);
    }
}
