//! Owns how currencies and amounts are written for people. The books and the client use it. It must not know any message.

use std::str::FromStr;

use thiserror::Error;

use crate::proto::Currency;

/// No currency of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{found:?} is no currency of the ledger; allowed: CHF, EUR, GBP, JPY, USD\nhint: write the three letters, such as EUR"
)]
pub struct UnknownCurrency {
    /// What was written.
    pub found: String,
}

impl FromStr for Currency {
    type Err = UnknownCurrency;

    /// Reads the three letters, in either case.
    fn from_str(text: &str) -> Result<Self, UnknownCurrency> {
        ALL.into_iter()
            .find(|(letters, _)| letters.eq_ignore_ascii_case(text))
            .map(|(_, currency)| currency)
            .ok_or_else(|| UnknownCurrency {
                found: text.to_owned(),
            })
    }
}

/// `12.50 EUR` for 1250 of the number that stands for euro. A number without a currency is written as it is.
pub(crate) fn amount(minor: i64, currency: i32) -> String {
    let known = Currency::try_from(currency).ok();
    let letters = ALL
        .into_iter()
        .find(|(_, each)| Some(*each) == known)
        .map(|(letters, _)| letters);
    match letters {
        Some("JPY") => format!("{minor} JPY"),
        Some(letters) => {
            let sign = if minor < 0 { "-" } else { "" };
            let size = minor.unsigned_abs();
            format!("{sign}{}.{:02} {letters}", size / 100, size % 100)
        }
        None => format!("{minor} of currency {currency}"),
    }
}

const ALL: [(&str, Currency); 5] = [
    ("CHF", Currency::Chf),
    ("EUR", Currency::Eur),
    ("GBP", Currency::Gbp),
    ("JPY", Currency::Jpy),
    ("USD", Currency::Usd),
];

#[cfg(test)]
mod tests {
    use super::{Currency, amount};

    #[test]
    fn amounts_are_written_with_the_digits_of_their_currency() {
        assert_eq!(amount(1250, 2), "12.50 EUR");
        assert_eq!(amount(-5, 1), "-0.05 CHF");
        assert_eq!(amount(1250, 4), "1250 JPY");
        assert_eq!(amount(i64::MIN, 5), "-92233720368547758.08 USD");
        assert_eq!(amount(7, 99), "7 of currency 99");
    }

    #[test]
    fn a_currency_is_read_by_its_letters() {
        assert_eq!("eur".parse(), Ok(Currency::Eur));
        let refused = "euro"
            .parse::<Currency>()
            .map_err(|error| error.to_string());
        assert_eq!(
            refused,
            Err("\"euro\" is no currency of the ledger; allowed: CHF, EUR, GBP, JPY, USD\nhint: write the three letters, such as EUR".to_owned())
        );
    }
}
