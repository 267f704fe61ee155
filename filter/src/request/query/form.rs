//! Whether a text that is no form could be read as one. Some readers go by the content-type too late, or take a request without one
//! (Rack) or with any (Bottle) for a form; a JSON text may hold `&amount=5000&` in one of its own. Knows nothing of JSON.

use super::names::Names;
use super::parameters;
use crate::limits;
use crate::places::Places;

/// Names that matter, each with the numbers of those who ask for it.
#[derive(Clone, Debug, Default)]
pub struct FormNames(Places);

/// A text with more odd names than anybody should have to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many odd names")]
pub struct TooManyNames;

impl FormNames {
    /// Takes names, each with the number of one who asks for it.
    #[must_use]
    pub fn of(names: &[(String, usize)]) -> Self {
        let mut keys = Vec::new();
        for (name, number) in names {
            for key in Names::of(name.as_bytes()).own {
                keys.push((key, *number));
            }
        }
        Self(Places::of(keys))
    }

    /// Gives the number of each name that a reader of forms could find in a text, in any spelling.
    ///
    /// What stands before the first separator begins as the text itself does, so that it names nothing. A piece without `=` counts
    /// only where there is no space in it: `a; amount; b` is prose.
    ///
    /// # Errors
    ///
    /// When there are more than [`limits::FORM_NAMES`] names to decode; whoever asks must then take the text for any form.
    pub fn each_in(&self, text: &[u8], found: &mut dyn FnMut(usize)) -> Result<(), TooManyNames> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut left = limits::FORM_NAMES;
        for (parameter, _) in parameters(text).skip(1) {
            let name = parameter.name;
            if parameter.value.is_none() && name.iter().any(u8::is_ascii_whitespace) {
                continue;
            }
            if name.iter().any(|byte| *byte == b'%' || !byte.is_ascii()) {
                left = left.checked_sub(1).ok_or(TooManyNames)?;
            }
            let names = Names::of(name);
            for key in names.own.iter().chain(&names.holders) {
                for (_, number) in self.0.get(key) {
                    found(*number);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str) -> Result<Vec<usize>, TooManyNames> {
        let names = FormNames::of(&[("amount".to_owned(), 0), ("user id".to_owned(), 1)]);
        let mut found = Vec::new();
        names.each_in(text.as_bytes(), &mut |number| found.push(number))?;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    #[test]
    fn a_form_in_a_text_is_found_in_any_spelling() {
        for text in [
            r#"{"amount":1,"x":"&amount=5000&y="}"#,
            r#"{"amount":1,"x":";amount=5000"}"#,
            r#"{"x":"&am%6Funt=5000&"}"#,
            r#"{"x":"&AMOUNT=5000&"}"#,
            r#"{"x":"& amount=5000&"}"#,
            r#"{"x":"&amount[]=5000&"}"#,
            r#"{"x":"&[amount]=5000&"}"#,
            r#"{"x":"&amount[","y":"]=5000&"}"#,
            r#"{"x":"&amount%00","y":"=5000&"}"#,
            r#"{"x":"&amount&"}"#,
            "{\"x\":\"&\u{ff41}mount=5000&\"}",
        ] {
            assert_eq!(found_in(text), Ok(vec![0]), "{text}");
        }
        assert_eq!(found_in(r#"{"x":"&user+id=1"}"#), Ok(vec![1]));
        assert_eq!(found_in(r#"{"x":"&user_id=1"}"#), Ok(vec![1]));
    }

    #[test]
    fn an_ordinary_text_is_no_form() {
        for text in [
            "{}",
            r#"{"amount":5000}"#,
            r#"{"x":"amount=5000"}"#,
            r#"{"x":"a & b; amount; c"}"#,
            r#"{"x":"salt&amount"}"#,
            r#"{"x":"R&D","amount":1,"y":"a=b"}"#,
            r#"{"x":"profit & 10% = 5"}"#,
            r#"{"next":"https://x/?a=1&b=%ff&c=3","amount":5}"#,
            r#"{"page":"<p style='a:b;c:d' class=x>&nbsp;</p>","amount":5}"#,
        ] {
            assert_eq!(found_in(text), Ok(vec![]), "{text}");
        }
    }

    #[test]
    fn names_to_decode_are_bounded_and_others_are_not() {
        assert_eq!(found_in(&"&%=".repeat(5_000)), Err(TooManyNames));
        assert_eq!(found_in(&";a.b=1;c[0]=2".repeat(5_000)), Ok(vec![]));
    }
}
