//! gRPC calls in which the client sends more than one message, by a real client to a real server: each message waits for an
//! approval of its own, and nothing goes on out of turn.

use hoop_tests::host::Host;
use hoop_tests::ledger::{
    LedgerScene, framed, holding, holding_with_descriptors, raw, with_metadata,
};
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::numbered;
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use host_sim_ledger::proto::{PostRequest, ReconcileRequest};
use host_sim_ledger::tonic::codec::CompressionEncoding;
use host_sim_ledger::tonic::{Code, Request};
use host_sim_ledger::{GREET, Method};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

on_both_hosts! {
    each_message_waits_for_its_approval_while_the_answers_come_in_between,
    a_server_that_speaks_first_is_heard_before_anything_is_approved,
    the_messages_of_an_import_go_on_together_once_each_is_approved,
    messages_are_the_same_however_they_are_put_into_frames,
    in_return_mode_an_import_runs_once_the_last_of_its_messages_is_approved,
    a_rejected_message_gives_back_the_approvals_of_those_before_it,
    the_same_message_twice_is_refused_with_the_reason,
    a_refusal_is_read_although_the_server_has_sent_its_head,
    a_refusal_after_the_first_answer_breaks_the_stream_off,
    a_client_that_leaves_between_two_messages_runs_no_more,
    a_compressed_stream_is_held_message_by_message,
    a_listener_that_takes_no_streams_refuses_them,
}

fn entry(posting: &str) -> ReconcileRequest {
    ReconcileRequest {
        posting_id: posting.to_owned(),
        ..ReconcileRequest::default()
    }
}

/// A stream that the case feeds.
fn fed<T: Send + 'static>() -> (mpsc::Sender<T>, ReceiverStream<T>) {
    let (sender, receiver) = mpsc::channel(8);
    (sender, ReceiverStream::new(receiver))
}

async fn each_message_waits_for_its_approval_while_the_answers_come_in_between(host: Host) {
    for policy in [
        holding(&["Reconcile"], "hold"),
        holding_with_descriptors(&["Reconcile"], "hold"),
    ] {
        let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
        let (sender, stream) = fed();
        let mut client = world.client().await;
        let call = tokio::spawn(async move { client.reconcile(stream).await });
        let mut answers = None;
        let mut call = Some(call);
        for number in 1..=3_u64 {
            let line = entry(&format!("p-{number}"));
            sender.send(line).await.expect("a call that goes on");
            let id = world
                .next_pending(usize::try_from(number).expect("small"))
                .await;
            assert_eq!(world.ledger.message_count(Method::Reconcile), number - 1);
            world.scene.plane().approve(&id).await;
            if let Some(call) = call.take() {
                let response = call.await.expect("a task that ends").expect("approved");
                answers = Some(response.into_inner());
            }
            let answers = answers.as_mut().expect("a stream of answers");
            let answer = answers.message().await.expect("a stream that goes well");
            assert_eq!(answer.expect("an answer").posting_id, format!("p-{number}"));
        }
        drop(sender);
        let mut answers = answers.expect("a stream of answers");
        assert_eq!(answers.message().await.expect("its end"), None);
        assert_eq!(world.scene.counter("requests_released").await, 3);
        world.scene.finish(0).await;
    }
}

/// Its head goes on at once, where the descriptors say that the client streams.
async fn a_server_that_speaks_first_is_heard_before_anything_is_approved(host: Host) {
    let policy = holding_with_descriptors(&["Reconcile"], "hold");
    let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
    let (sender, stream) = fed::<ReconcileRequest>();
    let request = with_metadata(stream, &[(GREET, "ledger")]);

    let response = world.client().await.reconcile(request).await;

    let mut answers = response.expect("a head").into_inner();
    let greeting = answers.message().await.expect("a stream that goes well");
    assert_eq!(greeting.expect("a greeting").note, "hello, ledger");
    sender
        .send(entry("p-1"))
        .await
        .expect("a call that goes on");
    let id = world.next_pending(1).await;
    assert_eq!(world.ledger.message_count(Method::Reconcile), 0);
    world.scene.plane().approve(&id).await;
    let answer = answers.message().await.expect("a stream that goes well");
    assert_eq!(answer.expect("an answer").posting_id, "p-1");
    drop(sender);
    assert_eq!(answers.message().await.expect("its end"), None);
    world.scene.finish(0).await;
}

fn import(world: &LedgerScene, amounts: &[i64]) -> Vec<PostRequest> {
    let postings = amounts.iter().map(|amount| world.posting(*amount));
    postings.collect()
}

async fn the_messages_of_an_import_go_on_together_once_each_is_approved(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Import"], "hold"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;
    let postings = import(&world, &[1, 2, 3]);
    let held = tokio::spawn(async move { client.import(tokio_stream::iter(postings)).await });

    for count in 1..=3 {
        let id = world.next_pending(count).await;
        assert_eq!(world.ledger.message_count(Method::Import), 0);
        world.scene.plane().approve(&id).await;
    }

    let summary = held.await.expect("a task that ends").expect("approved");
    assert_eq!(summary.into_inner().booked, 3);
    assert_eq!(world.amounts(Method::Import), [1, 2, 3]);
    assert_eq!(world.ledger.call_count(Method::Import), 1);
    world.scene.finish(0).await;
}

/// Two in one frame, one in two frames, and a frame that ends in the prefix of the next message.
async fn messages_are_the_same_however_they_are_put_into_frames(host: Host) {
    let scene = Scene::lying(host).policy(holding(&["Import"], "return"));
    let world = LedgerScene::start(scene).await;
    let lies = world.scene.lies();
    let released = Reply::review(200, true, &numbered::id(1), "EXECUTED");
    lies.on(Kind::Filing, released);
    let messages: [&[u8]; 2] = [b"\x0a\x01a\x10\x05\x18\x02", b"\x0a\x01b\x10\x06\x18\x02"];
    let bytes = messages.map(|message| framed(0, message)).concat();
    let h2 = world.scene.connect_h2().await;
    let cuts = [
        vec![],
        vec![12],
        vec![3, 9],
        vec![14],
        vec![12, 12],
        vec![1, 2, 3, 13, 23],
    ];
    for cut in cuts {
        let mut frames = Vec::new();
        let mut from = 0;
        for to in cut.iter().copied().chain([bytes.len()]) {
            frames.push(bytes[from..to].to_vec());
            from = to;
        }
        let before = lies.filed().len();

        let answer = h2.send(&raw("Import", frames, &[])).await;

        assert_eq!(answer.status, 200, "{answer}");
        assert_eq!(answer.header("x-hoop-denied"), None, "{cut:?}: {answer}");
        let filed = lies.filed().split_off(before);
        let statements = [
            "/ledger.v1.Ledger/Import\n1: \"a\"\n2: 5\n3: 2",
            "/ledger.v1.Ledger/Import\n1: \"b\"\n2: 6\n3: 2",
        ];
        assert_eq!(
            filed,
            statements.map(|text| text.as_bytes().to_vec()),
            "{cut:?}"
        );
    }
    assert_eq!(world.amounts(Method::Import), [5, 6].repeat(6));
    world.scene.finish(0).await;
}

async fn in_return_mode_an_import_runs_once_the_last_of_its_messages_is_approved(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Import"], "return"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;
    for _ in 0..2 {
        let postings = tokio_stream::iter(import(&world, &[1, 2]));
        let refused = client.import(postings).await.expect_err("held");
        let id = world.pending(&refused);
        world.scene.plane().approve(&id).await;
        assert_eq!(world.ledger.message_count(Method::Import), 0);
    }

    let postings = tokio_stream::iter(import(&world, &[1, 2]));
    let summary = client.import(postings).await.expect("approved");

    assert_eq!(summary.into_inner().booked, 2);
    assert_eq!(world.amounts(Method::Import), [1, 2]);
    let rows = world.scene.plane().rows().await;
    wait::until("both approvals are spent", async || {
        let rows = world.scene.plane().rows().await;
        rows.iter()
            .all(|row| row["status"] == "EXECUTED")
            .then_some(())
    })
    .await;
    assert_eq!(rows.len(), 2);
    world.scene.finish(0).await;
}

async fn a_rejected_message_gives_back_the_approvals_of_those_before_it(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Import"], "hold"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;
    let postings = tokio_stream::iter(import(&world, &[1, 2]));
    let held = tokio::spawn(async move { client.import(postings).await });
    let first = world.next_pending(1).await;
    world.scene.plane().approve(&first).await;
    let second = world.next_pending(2).await;

    world.scene.plane().reject(&second, "not today").await;

    let refused = held.await.expect("a task that ends").expect_err("rejected");
    let reason = "the approval request was rejected";
    assert_eq!(world.refused(&refused, "REJECTED", reason), second);
    wait::until("the first approval is there again", async || {
        (world.scene.plane().row(&first).await["status"] == "APPROVED").then_some(())
    })
    .await;
    assert_eq!(world.ledger.message_count(Method::Import), 0);
    world.scene.finish(0).await;
}

async fn the_same_message_twice_is_refused_with_the_reason(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Import"], "return"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;
    let twice = || tokio_stream::iter(import(&world, &[1, 1]));
    let refused = client.import(twice()).await.expect_err("held");
    let id = world.pending(&refused);
    world.scene.plane().approve(&id).await;

    let refused = client.import(twice()).await.expect_err("twice");

    world.refused_by_policy(&refused, "the same message comes again");
    wait::until("the approval is there again", async || {
        (world.scene.plane().row(&id).await["status"] == "APPROVED").then_some(())
    })
    .await;
    assert_eq!(world.ledger.message_count(Method::Import), 0);
    world.scene.finish(0).await;
}

/// The head of the call goes on at once here, and a server answers it with one of its own.
async fn a_refusal_is_read_although_the_server_has_sent_its_head(host: Host) {
    for mode in ["return", "hold"] {
        let policy = holding_with_descriptors(&["Reconcile"], mode);
        let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
        let mut client = world.client().await;
        let (sender, stream) = fed();
        let call = tokio::spawn(async move { client.reconcile(stream).await });
        let reached = world
            .ledger
            .wait_for(|call| call.method == Some(Method::Reconcile));
        wait::within("the head of the call reaches the ledger", reached).await;
        let first = sender.send(entry("p-1")).await;
        first.expect("a call that goes on");
        let id = world.next_pending(1).await;
        if mode == "hold" {
            world.scene.until_held(1).await;
            world.scene.plane().reject(&id, "not today").await;
        }

        let refused = call.await.expect("a task that ends").expect_err("refused");

        if mode == "hold" {
            let reason = "the approval request was rejected";
            assert_eq!(world.refused(&refused, "REJECTED", reason), id);
        } else {
            assert_eq!(world.pending(&refused), id);
        }
        assert_eq!(world.ledger.message_count(Method::Reconcile), 0);
        world.scene.finish(0).await;
    }
}

async fn a_refusal_after_the_first_answer_breaks_the_stream_off(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Reconcile"], "return"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;
    let first = tokio_stream::iter([entry("p-1")]);
    let refused = client.reconcile(first).await.expect_err("held");
    let id = world.pending(&refused);
    world.scene.plane().approve(&id).await;
    let (sender, stream) = fed();
    sender
        .send(entry("p-1"))
        .await
        .expect("a call that goes on");
    let mut answers = client
        .reconcile(stream)
        .await
        .expect("approved")
        .into_inner();
    let answer = answers.message().await.expect("a stream that goes well");
    assert_eq!(answer.expect("an answer").posting_id, "p-1");

    sender
        .send(entry("p-2"))
        .await
        .expect("a call that goes on");

    let broken = answers.message().await.expect_err("broken off");
    assert_ne!(broken.code(), Code::Ok);
    let reason = ["decision=refused", "reason=pending"];
    world.scene.until_logged(&reason).await;
    world.scene.until_counter("refused_pending", 2).await;
    assert_eq!(world.ledger.message_count(Method::Reconcile), 1);
    world.scene.finish(0).await;
}

async fn a_client_that_leaves_between_two_messages_runs_no_more(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Reconcile"], "hold"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;
    let (sender, stream) = fed();
    sender
        .send(entry("p-1"))
        .await
        .expect("a call that goes on");
    let call = tokio::spawn(async move { client.reconcile(stream).await });
    let id = world.next_pending(1).await;
    world.scene.plane().approve(&id).await;
    let answers = call.await.expect("a task that ends").expect("approved");
    sender
        .send(entry("p-2"))
        .await
        .expect("a call that goes on");
    let second = world.next_pending(2).await;

    drop((answers, sender));

    world.scene.until_counter("requests_abandoned", 1).await;
    world.scene.until_held(0).await;
    assert_eq!(world.scene.plane().row(&second).await["status"], "PENDING");
    assert_eq!(world.ledger.message_count(Method::Reconcile), 1);
    world.scene.finish(0).await;
}

async fn a_compressed_stream_is_held_message_by_message(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Import"], "return"));
    let world = LedgerScene::start(scene).await;
    let mut plain = world.client().await;
    let mut small = plain.clone().send_compressed(CompressionEncoding::Gzip);
    for number in 0..2 {
        let client = if number == 0 { &mut plain } else { &mut small };
        let postings = tokio_stream::iter(import(&world, &[1, 2]));
        let refused = client.import(postings).await.expect_err("held");
        world.scene.plane().approve(&world.pending(&refused)).await;
    }

    let postings = Request::new(tokio_stream::iter(import(&world, &[1, 2])));
    let summary = small.import(postings).await.expect("approved");

    assert_eq!(summary.into_inner().booked, 2);
    assert_eq!(world.amounts(Method::Import), [1, 2]);
    world.scene.finish(0).await;
}

async fn a_listener_that_takes_no_streams_refuses_them(host: Host) {
    for with_descriptors in [false, true] {
        let methods = ["Import", "Post"];
        let mut policy = if with_descriptors {
            holding_with_descriptors(&methods, "return")
        } else {
            holding(&methods, "return")
        };
        policy["grpc"]["streaming"] = "deny".into();
        let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
        let mut client = world.client().await;

        let postings = tokio_stream::iter(import(&world, &[1, 2]));
        let refused = client.import(postings).await.expect_err("a stream");

        let words = "a call with more than one request message is not taken here";
        world.refused_by_policy(&refused, words);
        assert_eq!(world.scene.plane().rows().await.len(), 0);
        let refused = client.post(world.posting(1)).await.expect_err("held");
        let id = world.pending(&refused);
        world.scene.plane().approve(&id).await;
        client.post(world.posting(1)).await.expect("approved");
        world.scene.finish(0).await;
    }
}
