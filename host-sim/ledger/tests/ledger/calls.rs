//! Owns the four kinds of calls as they go well, and what is recorded of them.

use host_sim_ledger::{
    Ending, Message, Method,
    proto::{
        Currency, EntryState, GetBalanceRequest, PostRequest, ReconcileRequest, Total, WatchRequest,
    },
    tonic::{Code, Request},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::served::{Served, rent, soon};

#[tokio::test]
async fn a_posting_is_booked_and_read_back() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let posting = PostRequest {
        labels: [("team".to_owned(), "ops".to_owned())].into(),
        value_date: Some(prost_types::Timestamp {
            seconds: 1_767_225_600,
            nanos: 0,
        }),
        ..rent()
    };
    let answer = client
        .post(posting.clone())
        .await
        .expect("booked")
        .into_inner();
    let booked = answer.posting.expect("a posting");
    assert_eq!(booked.id, "p-2");
    assert_eq!(booked.labels, posting.labels);
    assert_eq!(booked.value_date, posting.value_date);
    assert_eq!(answer.balance_minor, 1250);

    let balance = client
        .get_balance(GetBalanceRequest {
            account: "demo/rent".to_owned(),
            currency: Currency::Eur.into(),
        })
        .await
        .expect("an account")
        .into_inner();
    assert_eq!((balance.balance_minor, balance.postings), (1250, 1));

    let calls = served.ledger.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].messages, [Message::Post(posting)]);
    assert_eq!(calls[0].ending, Ending::Answered(Code::Ok));
    assert_eq!(calls[1].method, Some(Method::GetBalance));
}

#[tokio::test]
async fn all_metadata_of_a_call_is_recorded() {
    let served = Served::new().await;
    let mut request = Request::new(rent());
    let metadata = request.metadata_mut();
    metadata.append("x-case", "one".parse().expect("ascii"));
    metadata.append("x-case", "two".parse().expect("ascii"));
    metadata.insert_bin("x-raw-bin", [0, 255].as_slice().try_into().expect("bytes"));
    served.client().await.post(request).await.expect("booked");

    let call = served.ledger.calls().remove(0);
    let both: Vec<_> = call.metadata.get_all("x-case").iter().collect();
    assert_eq!(both, ["one", "two"]);
    assert_eq!(call.header("x-raw-bin"), Some("AP8"));
    assert_eq!(call.header("te"), Some("trailers"));
    assert_eq!(call.header("content-type"), Some("application/grpc"));
}

#[tokio::test]
async fn a_watch_sends_what_is_there_and_then_what_follows() {
    let served = Served::new().await;
    let mut client = served.client().await;
    client.post(rent()).await.expect("booked");
    let watch = WatchRequest {
        account: "demo/rent".to_owned(),
        count: 2,
    };
    let mut postings = client.watch(watch).await.expect("a stream").into_inner();
    let first = soon(postings.message()).await.expect("no status");
    assert_eq!(first.expect("the first").id, "p-2");

    let elsewhere = PostRequest {
        account: "demo/other".to_owned(),
        ..rent()
    };
    client.post(elsewhere).await.expect("booked");
    client.post(rent()).await.expect("booked");
    let second = soon(postings.message()).await.expect("no status");
    assert_eq!(second.expect("the second").id, "p-4");
    assert_eq!(soon(postings.message()).await.expect("OK"), None);
}

#[tokio::test]
async fn a_watch_without_a_count_does_not_wait() {
    let served = Served::new().await;
    let watch = WatchRequest {
        account: "demo/cash".to_owned(),
        count: 0,
    };
    let answer = served.client().await.watch(watch).await.expect("a stream");
    let mut postings = answer.into_inner();
    let opening = soon(postings.message()).await.expect("no status");
    assert_eq!(opening.expect("a posting").memo, "opening balance");
    assert_eq!(soon(postings.message()).await.expect("OK"), None);
}

#[tokio::test]
async fn an_import_sums_up_by_currency_and_counts_repeated_keys() {
    let served = Served::new().await;
    let keyed = PostRequest {
        idempotency_key: Some("k".to_owned()),
        ..rent()
    };
    let yen = PostRequest {
        currency: Currency::Jpy.into(),
        ..rent()
    };
    let postings = vec![keyed.clone(), yen, keyed, rent()];
    let sum = served
        .client()
        .await
        .import(tokio_stream::iter(postings))
        .await
        .expect("imported")
        .into_inner();
    assert_eq!((sum.booked, sum.repeated_keys), (3, 1));
    let total = |currency: Currency, amount_minor| Total {
        currency: currency.into(),
        amount_minor,
    };
    assert_eq!(
        sum.totals,
        [total(Currency::Eur, 2500), total(Currency::Jpy, 1250)]
    );
    assert_eq!(served.ledger.call_count(Method::Import), 1);
    assert_eq!(served.ledger.message_count(Method::Import), 4);
}

#[tokio::test]
async fn an_import_ends_at_the_first_posting_that_cannot_be_booked() {
    let served = Served::new().await;
    let nothing = PostRequest {
        amount_minor: 0,
        ..rent()
    };
    let mut client = served.client().await;
    let postings = tokio_stream::iter(vec![rent(), nothing, rent()]);
    let status = client.import(postings).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "amount_minor is 0; a posting moves money: send the amount in the currency's minor unit"
    );
    let balance = GetBalanceRequest {
        account: "demo/rent".to_owned(),
        currency: Currency::Eur.into(),
    };
    let balance = client.get_balance(balance).await.expect("an account");
    assert_eq!(balance.into_inner().postings, 1);
}

#[tokio::test]
async fn each_line_is_answered_before_the_next_is_sent() {
    let served = Served::new().await;
    let (lines, receiver) = mpsc::channel(1);
    let mut client = served.client().await;
    let answer = client
        .reconcile(ReceiverStream::new(receiver))
        .await
        .expect("a stream");
    let mut states = answer.into_inner();
    for (id, expected) in [("p-1", EntryState::Matched), ("p-9", EntryState::Missing)] {
        let line = ReconcileRequest {
            posting_id: id.to_owned(),
            account: "demo/cash".to_owned(),
            amount_minor: 1_000_000,
            currency: Currency::Eur.into(),
        };
        lines.send(line).await.expect("an open call");
        let state = soon(states.message()).await.expect("no status");
        assert_eq!(state.expect("an answer").state(), expected);
    }
    drop(lines);
    assert_eq!(soon(states.message()).await.expect("OK"), None);
}

#[tokio::test]
async fn the_ledger_speaks_first_when_asked_to() {
    let served = Served::new().await;
    let (lines, receiver) = mpsc::channel::<ReconcileRequest>(1);
    let mut request = Request::new(ReceiverStream::new(receiver));
    request
        .metadata_mut()
        .insert("x-demo-greet", "agent".parse().expect("ascii"));
    let mut client = served.client().await;
    let mut states = client
        .reconcile(request)
        .await
        .expect("a stream")
        .into_inner();
    let greeting = soon(states.message()).await.expect("no status");
    let greeting = greeting.expect("a greeting");
    assert_eq!((greeting.line, greeting.note.as_str()), (0, "hello, agent"));
    assert_eq!(served.ledger.message_count(Method::Reconcile), 0);
    drop(lines);
    assert_eq!(soon(states.message()).await.expect("OK"), None);
}

#[tokio::test]
async fn the_same_calls_are_answered_the_same_on_every_ledger() {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let served = Served::new().await;
        let posting = PostRequest {
            labels: ["a", "b", "c", "d"]
                .map(|name| (name.to_owned(), name.to_owned()))
                .into(),
            ..rent()
        };
        let answer = served.client().await.post(posting).await.expect("booked");
        answers.push(prost::Message::encode_to_vec(&answer.into_inner()));
    }
    assert_eq!(answers[0], answers[1]);
}
