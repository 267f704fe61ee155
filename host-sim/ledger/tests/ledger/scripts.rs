//! Owns the answers that a test puts in the ledger's mouth.

use host_sim_ledger::{
    Ending, Method, Script,
    proto::{PostRequest, WatchRequest},
    tonic::{Code, Status, metadata::MetadataMap},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::served::{Served, rent, soon};

#[tokio::test]
async fn a_refusal_comes_alone_books_nothing_and_is_for_one_call() {
    let served = Served::new().await;
    served
        .ledger
        .script_next(Method::Post, Script::Refuse(refusal()));
    let mut client = served.client().await;
    let status = client.post(rent()).await.expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.message(), "not today: 50% ärger");
    assert_eq!(status.metadata().get("x-case").expect("sent"), "42");
    // In one head with the status: the client knows the content type from the same block.
    assert!(status.metadata().get("content-type").is_some());
    assert_eq!(served.ledger.message_count(Method::Post), 1);

    let answer = client.post(rent()).await.expect("the next is booked");
    assert_eq!(answer.into_inner().posting.expect("a posting").id, "p-2");
    let endings: Vec<_> = served
        .ledger
        .calls()
        .iter()
        .map(|call| call.ending)
        .collect();
    assert_eq!(
        endings,
        [
            Ending::Answered(Code::FailedPrecondition),
            Ending::Answered(Code::Ok)
        ]
    );
}

#[tokio::test]
async fn a_refusal_can_follow_a_whole_answer() {
    let served = Served::new().await;
    let script = Script::RefuseAfterAnswer(refusal());
    served.ledger.script_next(Method::Watch, script);
    let watch = WatchRequest {
        account: "demo/cash".to_owned(),
        count: 1,
    };
    let mut client = served.client().await;
    let mut postings = client.watch(watch).await.expect("a head").into_inner();
    let first = soon(postings.message()).await.expect("a message");
    assert_eq!(first.expect("a posting").id, "p-1");
    let status = soon(postings.message()).await.expect_err("the trailers");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.metadata().get("x-case").expect("sent"), "42");
    assert!(status.metadata().get("content-type").is_none());
}

#[tokio::test]
async fn a_posting_can_be_booked_and_refused_all_the_same() {
    let served = Served::new().await;
    let script = Script::RefuseAfterAnswer(refusal());
    served.ledger.script_next(Method::Post, script);
    let mut client = served.client().await;
    let status = client.post(rent()).await.expect_err("the trailers");
    assert_eq!(status.code(), Code::FailedPrecondition);
    let answer = client.post(rent()).await.expect("booked").into_inner();
    assert_eq!(answer.balance_minor, 2500);
}

#[tokio::test]
async fn an_import_can_be_refused_before_it_has_sent_anything() {
    let served = Served::new().await;
    served
        .ledger
        .script_next(Method::Import, Script::Refuse(refusal()));
    let (_postings, receiver) = mpsc::channel::<PostRequest>(1);
    let mut client = served.client().await;
    let status = soon(client.import(ReceiverStream::new(receiver)))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(served.ledger.message_count(Method::Import), 0);
}

#[tokio::test]
async fn a_head_can_come_without_anything_after_it() {
    let served = Served::new().await;
    served
        .ledger
        .script_next(Method::Watch, Script::HangAfterHead);
    let watch = WatchRequest {
        account: "demo/cash".to_owned(),
        count: 1,
    };
    let mut client = served.client().await;
    let mut postings = soon(client.watch(watch))
        .await
        .expect("a head")
        .into_inner();
    // The whole server works while that call hangs, and shows that nothing came.
    client.post(rent()).await.expect("another call");
    let message = tokio::select! {
        biased;
        message = postings.message() => Some(message),
        () = std::future::ready(()) => None,
    };
    assert!(message.is_none());
    assert_eq!(served.ledger.calls()[0].ending, Ending::Open);
    drop(postings);
    soon(
        served
            .ledger
            .wait_for(|call| call.ending == Ending::Cancelled),
    )
    .await;
}

fn refusal() -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("x-case", "42".parse().expect("ascii"));
    Status::with_metadata(Code::FailedPrecondition, "not today: 50% ärger", metadata)
}
