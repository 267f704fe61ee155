//! Owns what is booked and what may be: pure, without a clock. `service` drives it. It must not know calls, metadata or
//! statuses beyond the code that each refusal has.

use std::collections::BTreeMap;

use thiserror::Error;
use tonic::Code;

use crate::{
    currency::amount,
    limits::{ACCOUNT_LETTERS, LABELS, MEMO_LETTERS, NAME_BYTES, POSTINGS},
    proto::{
        Currency, EntryState, GetBalanceRequest, GetBalanceResponse, PostRequest, PostResponse,
        Posting, ReconcileRequest, ReconcileResponse,
    },
};

/// All postings since the start, the opening one first.
pub(crate) struct Books {
    postings: Vec<Posting>,
    balances: BTreeMap<(String, i32), Balance>,
    by_key: BTreeMap<String, (PostRequest, usize)>,
}

/// Why the books do not do what was asked. All of it is the caller's to mend, save [`Refusal::Full`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error(
        "account is {found:?}; allowed: 1 to {ACCOUNT_LETTERS} letters, digits, '-', '_', '.' or '/'; name one such as demo/cash"
    )]
    Account { found: String },
    #[error(
        "amount_minor is 0; a posting moves money: send the amount in the currency's minor unit"
    )]
    AmountZero,
    #[error("the balance of {account} would leave the range of 64 bits; post a smaller amount")]
    BalanceRange { account: String },
    #[error(
        "currency is {found}, which is none of the ledger; send one of CHF, EUR, GBP, JPY, USD"
    )]
    CurrencyMissing { found: i32 },
    #[error("the ledger holds {POSTINGS} postings and takes no more; start it again")]
    Full,
    #[error(
        "idempotency_key is {found} bytes long; allowed: 1 to {NAME_BYTES}; leave it out, or take a uuid"
    )]
    KeyLength { found: usize },
    #[error(
        "idempotency_key {key:?} stands for another posting, {id}; send the same fields again, or take a new key"
    )]
    KeyTaken { key: String, id: String },
    #[error(
        "the labels are more than {LABELS}, or one has no name or over {NAME_BYTES} bytes; send fewer and shorter ones"
    )]
    Labels,
    #[error("memo has {found} letters; allowed: up to {MEMO_LETTERS}; shorten it")]
    MemoLength { found: usize },
    #[error(
        "there is no account {account:?} with {currency}; an account exists from its first posting"
    )]
    NoSuchAccount { account: String, currency: String },
    #[error(
        "value_date is no point of time between the years 1 and 9999; send seconds since 1970 and nanos below a billion"
    )]
    ValueDate,
}

impl Books {
    /// The books of a new ledger: one account, so that a first look finds something.
    pub(crate) fn new() -> Self {
        let mut books = Self {
            postings: Vec::new(),
            balances: BTreeMap::new(),
            by_key: BTreeMap::new(),
        };
        books.book(
            PostRequest {
                account: "demo/cash".to_owned(),
                amount_minor: 1_000_000,
                currency: Currency::Eur.into(),
                memo: "opening balance".to_owned(),
                ..PostRequest::default()
            },
            Balance {
                minor: 1_000_000,
                postings: 1,
            },
        );
        books
    }

    /// Books it, or finds that it was booked before.
    pub(crate) fn post(&mut self, request: PostRequest) -> Result<PostResponse, Refusal> {
        check(&request)?;
        if let Some(answer) = self.repeated(&request)? {
            return Ok(answer);
        }
        if self.postings.len() >= POSTINGS {
            return Err(Refusal::Full);
        }
        let before = self.balance_of(&request.account, request.currency);
        let Some(minor) = before.minor.checked_add(request.amount_minor) else {
            return Err(Refusal::BalanceRange {
                account: request.account,
            });
        };
        let after = Balance {
            minor,
            postings: before.postings + 1,
        };
        let posting = self.book(request, after);
        Ok(PostResponse {
            posting: Some(posting),
            balance_minor: minor,
            repeated_key: false,
        })
    }

    pub(crate) fn balance(
        &self,
        request: GetBalanceRequest,
    ) -> Result<GetBalanceResponse, Refusal> {
        check_account(&request.account)?;
        check_currency(request.currency)?;
        let balance = self.balance_of(&request.account, request.currency);
        if balance.postings == 0 {
            let currency = Currency::try_from(request.currency).unwrap_or_default();
            return Err(Refusal::NoSuchAccount {
                account: request.account,
                currency: currency.as_str_name().replace("CURRENCY_", ""),
            });
        }
        Ok(GetBalanceResponse {
            account: request.account,
            balance_minor: balance.minor,
            currency: request.currency,
            postings: balance.postings,
        })
    }

    /// The first posting of this account at or behind this place, and the place behind it.
    pub(crate) fn next_of(&self, account: &str, place: usize) -> Option<(Posting, usize)> {
        let rest = self.postings.get(place..)?;
        let skipped = rest.iter().position(|posting| posting.account == account)?;
        let posting = rest.get(skipped)?;
        Some((posting.clone(), place + skipped + 1))
    }

    /// How a statement's line and the books agree.
    pub(crate) fn compare(&self, line: u32, request: ReconcileRequest) -> ReconcileResponse {
        let booked = self
            .postings
            .iter()
            .find(|posting| posting.id == request.posting_id);
        let (state, note) = match booked {
            None => (
                EntryState::Missing,
                "the ledger has no posting of this id".to_owned(),
            ),
            Some(booked)
                if booked.account == request.account
                    && booked.amount_minor == request.amount_minor
                    && booked.currency == request.currency =>
            {
                (EntryState::Matched, String::new())
            }
            Some(booked) => (
                EntryState::Differs,
                format!(
                    "the ledger has {} on {}",
                    amount(booked.amount_minor, booked.currency),
                    booked.account
                ),
            ),
        };
        ReconcileResponse {
            line,
            posting_id: request.posting_id,
            state: state.into(),
            note,
        }
    }

    fn repeated(&self, request: &PostRequest) -> Result<Option<PostResponse>, Refusal> {
        let Some(key) = &request.idempotency_key else {
            return Ok(None);
        };
        let Some((earlier, place)) = self.by_key.get(key) else {
            return Ok(None);
        };
        let posting = self.postings.get(*place).cloned();
        if earlier != request {
            return Err(Refusal::KeyTaken {
                key: key.clone(),
                id: posting.unwrap_or_default().id,
            });
        }
        let balance = self.balance_of(&request.account, request.currency);
        Ok(Some(PostResponse {
            posting,
            balance_minor: balance.minor,
            repeated_key: true,
        }))
    }

    fn book(&mut self, request: PostRequest, after: Balance) -> Posting {
        let place = self.postings.len();
        let posting = Posting {
            id: format!("p-{}", place + 1),
            account: request.account.clone(),
            amount_minor: request.amount_minor,
            currency: request.currency,
            memo: request.memo.clone(),
            labels: request.labels.clone(),
            value_date: request.value_date,
        };
        self.postings.push(posting.clone());
        self.balances
            .insert((request.account.clone(), request.currency), after);
        if let Some(key) = request.idempotency_key.clone() {
            self.by_key.insert(key, (request, place));
        }
        posting
    }

    fn balance_of(&self, account: &str, currency: i32) -> Balance {
        self.balances
            .get(&(account.to_owned(), currency))
            .copied()
            .unwrap_or_default()
    }
}

impl Refusal {
    /// As gRPC sorts it. Without a wildcard, so that a new refusal must be sorted too.
    pub(crate) const fn code(&self) -> Code {
        match self {
            Self::Account { .. }
            | Self::AmountZero
            | Self::CurrencyMissing { .. }
            | Self::KeyLength { .. }
            | Self::Labels
            | Self::MemoLength { .. }
            | Self::ValueDate => Code::InvalidArgument,
            Self::BalanceRange { .. } => Code::OutOfRange,
            Self::Full => Code::ResourceExhausted,
            Self::KeyTaken { .. } => Code::AlreadyExists,
            Self::NoSuchAccount { .. } => Code::NotFound,
        }
    }
}

/// Says whether this may be an account's name.
pub(crate) fn check_account(name: &str) -> Result<(), Refusal> {
    let fine = (1..=ACCOUNT_LETTERS).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    if fine {
        return Ok(());
    }
    Err(Refusal::Account {
        // Refused names can be of any length, and a status travels in a header.
        found: name.chars().take(ACCOUNT_LETTERS).collect(),
    })
}

fn check(request: &PostRequest) -> Result<(), Refusal> {
    check_account(&request.account)?;
    check_currency(request.currency)?;
    if request.amount_minor == 0 {
        return Err(Refusal::AmountZero);
    }
    let letters = request.memo.chars().count();
    if letters > MEMO_LETTERS {
        return Err(Refusal::MemoLength { found: letters });
    }
    if let Some(key) = &request.idempotency_key
        && !(1..=NAME_BYTES).contains(&key.len())
    {
        return Err(Refusal::KeyLength { found: key.len() });
    }
    let short = |(name, value): (&String, &String)| {
        !name.is_empty() && name.len() <= NAME_BYTES && value.len() <= NAME_BYTES
    };
    if request.labels.len() > LABELS || !request.labels.iter().all(short) {
        return Err(Refusal::Labels);
    }
    let sensible = |date: &prost_types::Timestamp| {
        (FIRST_SECOND..=LAST_SECOND).contains(&date.seconds)
            && (0..1_000_000_000).contains(&date.nanos)
    };
    if !request.value_date.as_ref().is_none_or(sensible) {
        return Err(Refusal::ValueDate);
    }
    Ok(())
}

fn check_currency(number: i32) -> Result<(), Refusal> {
    match Currency::try_from(number) {
        Ok(Currency::Unspecified) | Err(_) => Err(Refusal::CurrencyMissing { found: number }),
        Ok(Currency::Chf | Currency::Eur | Currency::Gbp | Currency::Jpy | Currency::Usd) => Ok(()),
    }
}

/// What postings of one account in one currency come to.
#[derive(Clone, Copy, Default)]
struct Balance {
    minor: i64,
    postings: u32,
}

/// What `google/protobuf/timestamp.proto` allows: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

#[cfg(test)]
mod tests;
