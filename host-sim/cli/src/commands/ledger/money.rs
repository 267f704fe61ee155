//! Amounts as people write them, in the currency's minor unit. Pure.

use host_sim_ledger::proto::Currency;

/// A text that is no amount of its currency.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{found:?} is no amount in {}", .currency.as_str_name().trim_start_matches("CURRENCY_"))]
pub(super) struct NoAmount {
    found: String,
    currency: Currency,
}

impl NoAmount {
    /// What to write instead.
    pub(super) fn hint(&self) -> &'static str {
        match decimals(self.currency) {
            0 => "write a whole number such as 120 or -120, without a thousands separator",
            _ => "write it as 120, 120.00 or -120.00, without a thousands separator",
        }
    }
}

/// `120.00` of euros is 12000. Never rounded: an amount that has no place in the minor unit is none.
pub(super) fn minor(text: &str, currency: Currency) -> Result<i64, NoAmount> {
    read(text, decimals(currency)).ok_or_else(|| NoAmount {
        found: text.to_owned(),
        currency,
    })
}

fn read(text: &str, decimals: usize) -> Option<i64> {
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => ("-", size),
        None => ("", text),
    };
    let (whole, part) = size.split_once('.').unwrap_or((size, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let complete = if size.contains('.') {
        part.len() == decimals && decimals > 0
    } else {
        true
    };
    if whole.is_empty() || !complete || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    format!("{sign}{whole}{part:0<decimals$}").parse().ok()
}

fn decimals(currency: Currency) -> usize {
    match currency {
        Currency::Jpy => 0,
        Currency::Chf | Currency::Eur | Currency::Gbp | Currency::Unspecified | Currency::Usd => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_amounts() {
        for (text, currency, expected) in [
            ("120", Currency::Eur, 12_000),
            ("120.00", Currency::Eur, 12_000),
            ("0.05", Currency::Usd, 5),
            ("-5.00", Currency::Chf, -500),
            ("-0.01", Currency::Gbp, -1),
            ("120", Currency::Jpy, 120),
            ("-92233720368547758.08", Currency::Eur, i64::MIN),
        ] {
            assert_eq!(minor(text, currency), Ok(expected), "{text}");
        }
    }

    #[test]
    fn err_amounts() {
        for text in [
            "",
            "-",
            ".50",
            "1.",
            "1.5",
            "1.505",
            "1,50",
            "1 000",
            "+1",
            "--1",
            "1e3",
            "1.-5",
            "²",
            "92233720368547758.08",
        ] {
            assert!(minor(text, Currency::Eur).is_err(), "{text}");
        }
        let yen = minor("1.00", Currency::Jpy).expect_err("refused");
        assert_eq!(yen.to_string(), "\"1.00\" is no amount in JPY");
        assert!(yen.hint().starts_with("write a whole number"));
    }
}
