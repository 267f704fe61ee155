//! Owns what a person reads: the words for answers and for what went wrong.

use std::error::Error;

use host_sim_ledger::{
    Method, Script,
    client::{self, CallError, Target},
    proto::{Currency, GetBalanceRequest, PostRequest, ReconcileRequest, WatchRequest},
    tonic::{Code, Status, metadata::MetadataMap},
};
use tokio::net::TcpListener;

use crate::served::{Served, rent, soon};

#[tokio::test]
async fn answers_are_lines_of_text() {
    let served = Served::new().await;
    let target = served.target();
    let posting = PostRequest {
        idempotency_key: Some("k".to_owned()),
        labels: [("team".to_owned(), "ops".to_owned())].into(),
        value_date: Some(prost_types::Timestamp {
            seconds: 1_767_225_600,
            nanos: 0,
        }),
        ..rent()
    };
    let said = client::post(&target, posting.clone())
        .await
        .expect("booked");
    let line = "p-2  12.50 EUR to demo/rent, value date 2026-01-01T00:00:00Z, rent [team=ops]";
    assert_eq!(
        said,
        [
            &format!("booked: {line}"),
            "balance of demo/rent: 12.50 EUR"
        ]
    );
    let again = client::post(&target, posting.clone())
        .await
        .expect("booked before");
    assert_eq!(again[0], format!("already booked under this key: {line}"));

    let balance = GetBalanceRequest {
        account: "demo/rent".to_owned(),
        currency: Currency::Eur.into(),
    };
    let said = client::balance(&target, balance).await.expect("an account");
    assert_eq!(said, ["demo/rent: 12.50 EUR in 1 posting"]);

    let said = client::import(&target, vec![rent(), posting])
        .await
        .expect("imported");
    assert_eq!(
        said,
        ["booked 1 posting, 1 booked before", "total: 12.50 EUR"]
    );

    let watch = WatchRequest {
        account: "demo/rent".to_owned(),
        count: 2,
    };
    let mut said = Vec::new();
    let outcome = client::watch(&target, watch, |line| said.push(line)).await;
    outcome.expect("watched");
    assert_eq!(said, [line, "p-3  12.50 EUR to demo/rent, rent"]);
}

#[tokio::test]
async fn a_statement_is_answered_line_by_line_after_the_greeting() {
    let served = Served::new().await;
    let mut target = served.target();
    target.metadata = vec![("X-Demo-Greet".to_owned(), "agent".to_owned())];
    target.gzip = true;
    let line = ReconcileRequest {
        posting_id: "p-1".to_owned(),
        account: "demo/cash".to_owned(),
        amount_minor: 1_000_000,
        currency: Currency::Eur.into(),
    };
    let other = ReconcileRequest {
        amount_minor: 1,
        ..line.clone()
    };
    let unknown = ReconcileRequest {
        posting_id: "p-7\u{7}".to_owned(),
        ..line.clone()
    };
    let mut said = Vec::new();
    let lines = vec![line, other, unknown];
    let outcome = client::reconcile(&target, lines, |line| said.push(line)).await;
    outcome.expect("reconciled");
    assert_eq!(
        said,
        [
            "hello, agent",
            "1  p-1 matched",
            "2  p-1 differs: the ledger has 10000.00 EUR on demo/cash",
            "3  p-7\\u{7} missing: the ledger has no posting of this id",
        ]
    );
    let call = served.ledger.calls().remove(0);
    assert_eq!(call.header("grpc-encoding"), Some("gzip"));
}

#[tokio::test]
async fn a_refusal_reads_as_code_message_and_sorted_pairs() {
    let served = Served::new().await;
    let mut metadata = MetadataMap::new();
    for (name, value) in [("x-second", "2"), ("x-first", "1")] {
        metadata.insert(name, value.parse().expect("ascii"));
    }
    let status = Status::with_metadata(Code::PermissionDenied, "held: see x-first", metadata);
    for script in [
        Script::Refuse(status.clone()),
        Script::RefuseAfterAnswer(status),
    ] {
        served.ledger.script_next(Method::Post, script);
        let outcome = client::post(&served.target(), rent()).await;
        let Err(CallError::Refused(refused)) = outcome else {
            panic!("not refused: {outcome:?}");
        };
        assert_eq!(
            refused.to_string(),
            "PERMISSION_DENIED (7): held: see x-first\nx-first: 1\nx-second: 2"
        );
        assert_eq!((refused.name(), refused.number()), ("PERMISSION_DENIED", 7));
        assert_eq!(refused.metadata("x-second"), Some("2"));
    }
}

#[tokio::test]
async fn lines_before_a_refusal_are_said() {
    let served = Served::new().await;
    let script = Script::RefuseAfterAnswer(Status::aborted("enough"));
    served.ledger.script_next(Method::Watch, script);
    let watch = WatchRequest {
        account: "demo/cash".to_owned(),
        count: 1,
    };
    let mut said = Vec::new();
    let outcome = client::watch(&served.target(), watch, |line| said.push(line)).await;
    assert_eq!(said.len(), 1);
    let error = outcome.expect_err("refused");
    assert_eq!(error.to_string(), "ABORTED (10): enough");
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    drop(listener);
    let outcome = soon(client::post(&Target::new(address.to_string()), rent())).await;
    let error = outcome.expect_err("nobody");
    assert_eq!(
        error.to_string(),
        format!("cannot connect to {address}\nhint: is the stack running, and is this its port?")
    );
    assert!(error.source().is_some());
}

#[tokio::test]
async fn an_address_that_cannot_be_called_is_refused_before_anything_is_sent() {
    for (address, problem) in [
        ("https://127.0.0.1:1", "the scheme is not http"),
        ("127.0.0.1", "the port is missing"),
        ("127.0.0.1:1/path", "there is a path behind the port"),
        ("", "empty string"),
        ("a b:1", "invalid uri character"),
    ] {
        let outcome = client::post(&Target::new(address), rent()).await;
        let error = outcome.expect_err(address).to_string();
        assert_eq!(
            error,
            format!(
                "{address:?} is no address of a gRPC server without TLS: {problem}\nhint: write host:port, such as 127.0.0.1:10000"
            )
        );
    }
}

#[tokio::test]
async fn metadata_that_cannot_be_sent_is_refused_without_its_value() {
    let served = Served::new().await;
    for (name, problem) in [
        ("x y", "the name has characters that no name has"),
        ("grpc-status", "the name is gRPC's or HTTP's own"),
        ("Content-Type", "the name is gRPC's or HTTP's own"),
        ("x-case", "the value is not visible ASCII"),
    ] {
        let mut target = served.target();
        target.metadata = vec![(name.to_owned(), "secret\n".to_owned())];
        let error = client::post(&target, rent())
            .await
            .expect_err(name)
            .to_string();
        let said = format!("{name:?} with this value is no metadata of a caller's: {problem}\n");
        assert!(error.starts_with(&said), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    assert!(served.ledger.calls().is_empty());
}
