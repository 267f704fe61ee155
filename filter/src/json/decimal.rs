//! Numbers of JSON texts, compared exactly: no rounding, however long or large they are spelled. Only order and equality
//! are there, since a rule needs no arithmetic.

use std::cmp::Ordering;

/// A number. `1.0`, `1` and `10e-1` are equal; `9007199254740993` and `9007199254740992` are not.
///
/// Exponents beyond [`Decimal::is_extreme`] count as one: such a number is told from every other, and not from its like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Digits without zeros at either end; empty for zero.
    digits: Box<[u8]>,
    /// The number is 0.DIGITS times ten to this power.
    power: i64,
}

/// Exponents are cut here. The digits of a text move the power by no more than the text's length, which is far below.
const HIGHEST_EXPONENT: i64 = 1_000_000_000_000_000_000;

impl Decimal {
    /// Reads a number as JSON spells it (RFC 8259, section 6). Takes time and memory by the length of the token, never by
    /// the size of the number.
    #[must_use]
    pub fn parse(token: &str) -> Option<Self> {
        let parts = Parts::of(token)?;
        let digits: Vec<u8> = parts.whole.bytes().chain(parts.fraction.bytes()).collect();
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        let significant = digits.get(leading..).unwrap_or_default();
        let trailing = significant
            .iter()
            .rev()
            .take_while(|digit| **digit == b'0')
            .count();
        let kept = significant
            .get(..significant.len().saturating_sub(trailing))
            .unwrap_or_default();
        if kept.is_empty() {
            return Some(Self {
                negative: false,
                digits: Box::default(),
                power: 0,
            });
        }
        let count = |length: usize| i64::try_from(length).unwrap_or(HIGHEST_EXPONENT);
        Some(Self {
            negative: parts.negative,
            digits: kept.into(),
            power: parts
                .exponent
                .saturating_add(count(parts.whole.len()))
                .saturating_sub(count(leading)),
        })
    }

    /// Whether the exponent is so large that it was cut.
    #[must_use]
    pub const fn is_extreme(&self) -> bool {
        self.power.unsigned_abs() > HIGHEST_EXPONENT.unsigned_abs() / 2
    }

    fn size(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .power
                .cmp(&other.power)
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.size(other),
            (true, true) => other.size(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a token is a number of JSON.
pub(super) fn is_number(token: &str) -> bool {
    Parts::of(token).is_some()
}

struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    exponent: i64,
}

impl<'t> Parts<'t> {
    fn of(token: &'t str) -> Option<Self> {
        let (negative, rest) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        let whole_is_canonical = whole == "0" || !whole.starts_with('0');
        (is_digits(whole) && whole_is_canonical).then_some(Self {
            negative,
            whole,
            fraction,
            exponent,
        })
    }
}

fn exponent_of(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !is_digits(digits) {
        return None;
    }
    // More digits than an i64 holds are more than the bound.
    let size = match digits.trim_start_matches('0') {
        "" => 0,
        significant => significant
            .parse()
            .map_or(HIGHEST_EXPONENT, |size: i64| size.min(HIGHEST_EXPONENT)),
    };
    Some(if negative {
        size.saturating_neg()
    } else {
        size
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(token: &str) -> Decimal {
        Decimal::parse(token).expect(token)
    }

    #[test]
    fn ok_spellings_of_one_number() {
        for (left, right) in [
            ("1", "1.0"),
            ("1", "1.000e0"),
            ("1", "10e-1"),
            ("100", "1E+2"),
            ("0.1", "1e-1"),
            ("0.1", "0.10000000000000000000"),
            ("0", "-0"),
            ("0", "0.000e99999999999999999999999"),
            ("-5", "-0.5e1"),
            ("12", "12e-0000"),
            ("1e00000000000000000000000000001", "10"),
        ] {
            assert_eq!(number(left).cmp(&number(right)), Ordering::Equal);
            assert_eq!(number(left), number(right));
        }
    }

    #[test]
    fn ok_order_where_a_float_would_lose_it() {
        let ascending = [
            "-1e99999999999999999999999999",
            "-1e400",
            "-2",
            "-1.5",
            "-1e-400",
            "0",
            "1e-99999999999999999999999999",
            "1e-400",
            "0.09999999999999999999",
            "0.1",
            "0.1000000000000000055511151231257827",
            "1",
            "9007199254740992",
            "9007199254740992.5",
            "9007199254740993",
            "18446744073709551616",
            "1e308",
            "1e400",
            "1e99999999999999999999999999",
        ];
        for (at, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(
                    number(left).cmp(&number(right)),
                    at.cmp(&other),
                    "{left} {right}"
                );
            }
        }
    }

    #[test]
    fn err_what_json_does_not_spell_so() {
        for token in [
            "", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1e1.5", "0x1", "1 ", "Infinity",
            "NaN", "1_000", "１",
        ] {
            assert_eq!(Decimal::parse(token), None, "{token}");
        }
    }

    #[test]
    fn a_cut_exponent_is_known() {
        assert!(number("1e999999999999999999999").is_extreme());
        assert!(number("1e-999999999999999999999").is_extreme());
        assert!(!number("1e1000000").is_extreme());
        assert!(!number("0e999999999999999999999").is_extreme());
    }

    proptest! {
        /// Against whole numbers at a common scale, which no rounding touches.
        #[test]
        fn the_order_is_that_of_scaled_whole_numbers(
            left in (-9_999_999_i64..9_999_999, 0_u32..6),
            right in (-9_999_999_i64..9_999_999, 0_u32..6),
        ) {
            let scaled = |(digits, power): (i64, u32)| {
                let scale = 10_i128.pow(6_u32.saturating_sub(power));
                i128::from(digits).saturating_mul(scale)
            };
            let token = |(digits, power): (i64, u32)| format!("{digits}e-{power}");
            prop_assert_eq!(number(&token(left)).cmp(&number(&token(right))), scaled(left).cmp(&scaled(right)));
        }

        #[test]
        fn what_serde_json_reads_as_a_number_is_one(token in "-?[0-9]{1,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?") {
            let known = serde_json::from_str::<serde_json::Number>(&token).is_ok();
            prop_assert_eq!(Decimal::parse(&token).is_some(), known);
        }
    }
}
