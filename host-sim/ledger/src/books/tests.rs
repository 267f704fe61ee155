//! Owns what the books promise, without a socket.

use tonic::Code;

use super::{Books, Refusal};
use crate::proto::{Currency, EntryState, GetBalanceRequest, PostRequest, ReconcileRequest};

#[test]
fn a_second_posting_under_a_key_books_nothing() {
    let mut books = Books::new();
    let request = PostRequest {
        idempotency_key: Some("k-1".to_owned()),
        ..rent()
    };
    let first = books.post(request.clone()).expect("a fine posting");
    let second = books.post(request).expect("the same again");
    assert!(!first.repeated_key);
    assert!(second.repeated_key);
    assert_eq!(first.posting, second.posting);
    assert_eq!(second.balance_minor, 1250);
}

#[test]
fn a_key_that_stands_for_another_posting_is_refused() {
    let mut books = Books::new();
    let request = PostRequest {
        idempotency_key: Some("k-1".to_owned()),
        ..rent()
    };
    books.post(request.clone()).expect("a fine posting");
    let other = PostRequest {
        amount_minor: 9,
        ..request
    };
    let refusal = books.post(other).expect_err("another amount");
    assert_eq!(refusal.code(), Code::AlreadyExists);
    assert_eq!(
        refusal.to_string(),
        "idempotency_key \"k-1\" stands for another posting, p-2; send the same fields again, or take a new key"
    );
}

#[test]
fn what_cannot_be_booked_changes_nothing() {
    let refused = [
        (
            PostRequest {
                account: "a b".to_owned(),
                ..rent()
            },
            Refusal::Account {
                found: "a b".to_owned(),
            },
        ),
        (
            PostRequest {
                amount_minor: 0,
                ..rent()
            },
            Refusal::AmountZero,
        ),
        (
            PostRequest {
                currency: 77,
                ..rent()
            },
            Refusal::CurrencyMissing { found: 77 },
        ),
        (
            PostRequest {
                idempotency_key: Some(String::new()),
                ..rent()
            },
            Refusal::KeyLength { found: 0 },
        ),
        (
            PostRequest {
                labels: [(String::new(), "x".to_owned())].into(),
                ..rent()
            },
            Refusal::Labels,
        ),
        (
            PostRequest {
                memo: "m".repeat(201),
                ..rent()
            },
            Refusal::MemoLength { found: 201 },
        ),
        (
            PostRequest {
                value_date: Some(prost_types::Timestamp {
                    seconds: 0,
                    nanos: -1,
                }),
                ..rent()
            },
            Refusal::ValueDate,
        ),
    ];
    let mut books = Books::new();
    for (request, expected) in refused {
        assert_eq!(books.post(request), Err(expected));
    }
    assert_eq!(books.next_of("demo/rent", 0), None);
}

#[test]
fn a_balance_that_leaves_its_range_is_refused_and_stays() {
    let mut books = Books::new();
    let most = PostRequest {
        amount_minor: i64::MAX,
        ..rent()
    };
    books.post(most).expect("the largest amount");
    let refusal = books.post(rent()).expect_err("one more");
    assert_eq!(refusal.code(), Code::OutOfRange);
    let balance = books
        .balance(GetBalanceRequest {
            account: "demo/rent".to_owned(),
            currency: Currency::Eur.into(),
        })
        .expect("an account");
    assert_eq!((balance.balance_minor, balance.postings), (i64::MAX, 1));
}

#[test]
fn a_line_matches_only_with_account_amount_and_currency() {
    let books = Books::new();
    let line = ReconcileRequest {
        posting_id: "p-1".to_owned(),
        account: "demo/cash".to_owned(),
        amount_minor: 1_000_000,
        currency: Currency::Eur.into(),
    };
    assert_eq!(books.compare(1, line.clone()).state(), EntryState::Matched);
    let other = ReconcileRequest {
        currency: Currency::Usd.into(),
        ..line.clone()
    };
    let answer = books.compare(2, other);
    assert_eq!(answer.state(), EntryState::Differs);
    assert_eq!(answer.note, "the ledger has 10000.00 EUR on demo/cash");
    let unknown = ReconcileRequest {
        posting_id: "p-2".to_owned(),
        ..line
    };
    assert_eq!(books.compare(3, unknown).state(), EntryState::Missing);
}

fn rent() -> PostRequest {
    PostRequest {
        account: "demo/rent".to_owned(),
        amount_minor: 1250,
        currency: Currency::Eur.into(),
        memo: "rent".to_owned(),
        ..PostRequest::default()
    }
}
