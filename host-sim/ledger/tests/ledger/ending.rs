//! Owns how calls end early: by the client, by a deadline, by a connection that breaks, by a stop.

use std::time::Duration;

use host_sim_ledger::{
    Call, Ending, Method, Script,
    client::{self, CallError},
    proto::{PostRequest, WatchRequest},
    tonic::Code,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::served::{Served, rent, soon};

#[tokio::test]
async fn a_cancelled_posting_is_seen() {
    let served = Served::new().await;
    served.ledger.script_next(Method::Post, Script::Hang);
    let mut client = served.client().await;
    let call = tokio::spawn(async move { client.post(rent()).await });
    soon(served.ledger.wait_for(|call| call.message_count == 1)).await;
    assert_eq!(served.ledger.cancelled_count(), 0);
    call.abort();
    let seen = soon(
        served
            .ledger
            .wait_for(|call| call.ending == Ending::Cancelled),
    )
    .await;
    assert_eq!(seen.method, Some(Method::Post));
    assert_eq!(served.ledger.cancelled_count(), 1);
}

/// tonic tells a handler that a cancelled import has come to its end. The record must know better.
#[tokio::test]
async fn a_cancelled_import_is_no_import_that_ended() {
    let served = Served::new().await;
    let (postings, receiver) = mpsc::channel::<PostRequest>(1);
    let mut client = served.client().await;
    let call = tokio::spawn(async move { client.import(ReceiverStream::new(receiver)).await });
    postings.send(rent()).await.expect("an open call");
    soon(served.ledger.wait_for(|call| call.message_count == 1)).await;
    call.abort();
    soon(served.ledger.wait_for(|call| call.ending != Ending::Open)).await;
    assert_eq!(served.ledger.calls()[0].ending, Ending::Cancelled);
}

#[tokio::test]
async fn a_watch_is_cancelled_by_dropping_its_stream() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let postings = client.watch(patient()).await.expect("a stream");
    drop(postings);
    soon(
        served
            .ledger
            .wait_for(|call| call.ending == Ending::Cancelled),
    )
    .await;
}

/// An import reads the break as a fault of its request and answers that, to nobody.
#[tokio::test]
async fn a_connection_that_breaks_cancels_its_calls() {
    let served = Served::new().await;
    let mut other = served.client().await;
    let ledger = served.ledger.clone();
    let target = served.target();
    let breaking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let calls = runtime.block_on(async {
            let mut client = client::connect(&target).await.expect("a connection");
            let watching = client.watch(patient()).await.expect("a stream");
            let (postings, receiver) = mpsc::channel(1);
            tokio::spawn(async move { client.import(ReceiverStream::new(receiver)).await });
            postings.send(rent()).await.expect("an open call");
            soon(ledger.wait_for(|call| !call.messages.is_empty() && is_import(call))).await;
            (watching, postings)
        });
        // With its runtime goes the socket, before anything could be reset.
        drop(runtime);
        drop(calls);
    });
    for import in [true, false] {
        let over = |call: &Call| is_import(call) == import && call.ending != Ending::Open;
        let call = soon(served.ledger.wait_for(over)).await;
        assert_eq!(call.ending, Ending::Cancelled);
    }
    breaking.join().expect("no panic");
    other.post(rent()).await.expect("another connection lives");
}

#[tokio::test]
async fn a_deadline_ends_a_call_on_both_sides() {
    for script in [Script::Hang, Script::HangAfterHead] {
        let served = Served::new().await;
        served.ledger.script_next(Method::Post, script);
        let mut target = served.target();
        target.deadline = Some(Duration::from_secs(1));
        let outcome = soon(client::post(&target, rent())).await;
        let Err(CallError::Refused(refused)) = outcome else {
            panic!("not refused: {outcome:?}");
        };
        assert_eq!(
            refused.to_string(),
            "DEADLINE_EXCEEDED (4): no whole answer within 1s"
        );
        let call = soon(
            served
                .ledger
                .wait_for(|call| call.ending == Ending::Cancelled),
        )
        .await;
        assert!(call.header("grpc-timeout").is_some());
    }
}

#[tokio::test]
async fn a_deadline_ends_a_stream_that_has_begun() {
    let served = Served::new().await;
    let mut target = served.target();
    target.deadline = Some(Duration::from_secs(1));
    let watch = WatchRequest {
        account: "demo/cash".to_owned(),
        count: 2,
    };
    let mut said = Vec::new();
    let outcome = soon(client::watch(&target, watch, |line| said.push(line))).await;
    let Err(CallError::Refused(refused)) = outcome else {
        panic!("not refused: {outcome:?}");
    };
    assert_eq!(refused.code, Code::DeadlineExceeded);
    assert_eq!(said, ["p-1  10000.00 EUR to demo/cash, opening balance"]);
    soon(
        served
            .ledger
            .wait_for(|call| call.ending == Ending::Cancelled),
    )
    .await;
}

#[tokio::test]
async fn a_stop_ends_calls_of_every_kind_and_does_not_wait_for_them() {
    let served = Served::new().await;
    let ledger = served.ledger.clone();
    ledger.script_next(Method::Post, Script::Hang);
    let mut client = served.client().await;
    let mut watching = client
        .watch(patient())
        .await
        .expect("a stream")
        .into_inner();
    let (_postings, receiver) = mpsc::channel::<PostRequest>(1);
    let mut importer = client.clone();
    let import = tokio::spawn(async move { importer.import(ReceiverStream::new(receiver)).await });
    let post = tokio::spawn(async move { client.post(rent()).await });
    soon(ledger.wait_for(|call| call.method == Some(Method::Import))).await;
    soon(ledger.wait_for(|call| call.method == Some(Method::Post) && call.message_count == 1))
        .await;

    served.stop().await.expect("an orderly stop");
    let unavailable = "the ledger stops; call again when it runs";
    let watched = soon(watching.message()).await.expect_err("ended");
    assert_eq!(
        (watched.code(), watched.message()),
        (Code::Unavailable, unavailable)
    );
    let posted = soon(post).await.expect("no panic").expect_err("ended");
    assert_eq!(
        (posted.code(), posted.message()),
        (Code::Unavailable, unavailable)
    );
    let imported = soon(import).await.expect("no panic").expect_err("ended");
    assert_eq!(
        (imported.code(), imported.message()),
        (Code::Unavailable, unavailable)
    );
    let answered = Ending::Answered(Code::Unavailable);
    assert!(ledger.calls().iter().all(|call| call.ending == answered));
}

fn is_import(call: &Call) -> bool {
    call.method == Some(Method::Import)
}

/// Of an account that nobody posts to.
fn patient() -> WatchRequest {
    WatchRequest {
        account: "demo/nobody".to_owned(),
        count: 1,
    }
}
