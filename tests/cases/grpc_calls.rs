//! gRPC calls with one message, by a real client to a real server: refused with a status and metadata, shown as text, run once.

use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::ledger::{
    LedgerScene, framed, holding, holding_with_descriptors, raw, with_metadata,
};
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::numbered;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use host_sim_ledger::proto::{Currency, GetBalanceRequest, PostResponse, WatchRequest};
use host_sim_ledger::tonic::codec::CompressionEncoding;
use host_sim_ledger::tonic::{Code, Request, Response, Status};
use host_sim_ledger::{Method, Script};
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};

on_both_hosts! {
    a_call_is_refused_in_trailers_shown_by_its_fields_and_runs_once_when_approved,
    with_descriptors_a_person_reads_json,
    a_call_that_no_rule_meets_passes_with_its_metadata,
    a_held_call_runs_once_it_is_approved,
    a_server_that_streams_is_held_until_its_one_message_is_approved,
    a_client_may_choose_how_it_waits_by_metadata,
    a_rejected_call_is_told_so,
    a_deadline_ends_the_hold_before_it,
    a_client_that_gives_up_runs_nothing,
    a_compressed_message_is_the_message_that_it_holds,
    a_message_that_nobody_could_read_is_refused_and_not_filed,
    a_deny_rule_refuses_as_grpc_reads_it,
    the_answer_of_the_service_spends_an_approval_or_gives_it_back,
    a_message_is_the_same_however_it_travels,
    a_thousand_calls_at_once_run_once_each,
}

async fn a_call_is_refused_in_trailers_shown_by_its_fields_and_runs_once_when_approved(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "return"));
    let world = LedgerScene::start(scene).await;
    let mut client = world.client().await;

    let refused = client.post(world.posting(-1200)).await.expect_err("held");

    let id = world.pending(&refused);
    assert_eq!(world.ledger.calls().len(), 0);
    let shown = world.statement(&id).await;
    let expected = format!(
        "/ledger.v1.Ledger/Post\n1: \"demo/cash\"\n2: 18446744073709550416 (-1200)\n3: 2\n4: \"{}\"",
        world.scene.marker
    );
    assert_eq!(shown, expected);
    world.scene.plane().approve(&id).await;
    let posted = client.post(world.posting(-1200)).await.expect("approved");
    assert_eq!(posted.into_inner().balance_minor, 998_800);
    let again = client.post(world.posting(-1200)).await.expect_err("spent");
    assert_ne!(world.pending(&again), id);
    let other = client.post(world.posting(-1201)).await.expect_err("other");
    assert_ne!(world.pending(&other), id);
    assert_eq!(world.ledger.call_count(Method::Post), 1);
    world.scene.finish(0).await;
}

async fn with_descriptors_a_person_reads_json(host: Host) {
    let policy = holding_with_descriptors(&["Post"], "return");
    let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
    let mut posting = world.posting(12_000);
    posting.labels.insert("team".to_owned(), "ops".to_owned());

    let refused = world.client().await.post(posting).await;

    let id = world.pending(&refused.expect_err("held"));
    let shown = world.statement(&id).await;
    let json = shown.strip_prefix("/ledger.v1.Ledger/Post\n");
    let json: serde_json::Value =
        serde_json::from_str(json.expect("the method's path")).expect("JSON");
    assert_eq!(
        json,
        json!({
            "account": "demo/cash",
            "amountMinor": "12000",
            "currency": "CURRENCY_EUR",
            "memo": world.scene.marker,
            "labels": {"team": "ops"},
        })
    );
    world.scene.finish(0).await;
}

async fn a_call_that_no_rule_meets_passes_with_its_metadata(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "return"));
    let world = LedgerScene::start(scene).await;
    let question = GetBalanceRequest {
        account: "demo/cash".to_owned(),
        currency: Currency::Eur.into(),
    };
    let question = with_metadata(question, &[("x-agent", "seven"), ("x-hoop-denied", "no")]);

    let balance = world.client().await.get_balance(question).await;

    assert_eq!(balance.expect("free").into_inner().balance_minor, 1_000_000);
    let calls = world.ledger.calls();
    assert_eq!(calls[0].header("x-agent"), Some("seven"));
    assert_eq!(calls[0].header("x-hoop-denied"), None);
    assert_eq!(world.scene.plane().rows().await.len(), 0);
    world.scene.finish(0).await;
}

/// Waits for the only row of the plane and gives its id.
async fn filed(world: &LedgerScene) -> String {
    wait::until("a call is filed", async || {
        let rows = world.scene.plane().rows().await;
        Some(rows.first()?["id"].as_str()?.to_owned())
    })
    .await
}

/// A posting that waits for its approval.
async fn held(world: &LedgerScene, amount: i64) -> Posted {
    let mut client = world.client().await;
    let posting = world.posting(amount);
    let held = tokio::spawn(async move { client.post(posting).await });
    world.scene.until_held(1).await;
    held
}

type Posted = JoinHandle<Result<Response<PostResponse>, Status>>;

async fn a_held_call_runs_once_it_is_approved(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene).await;
    let held = held(&world, 5).await;
    assert_eq!(world.ledger.calls().len(), 0);

    world.scene.plane().approve(&filed(&world).await).await;

    let posted = held.await.expect("a task that ends").expect("approved");
    assert_eq!(posted.into_inner().balance_minor, 1_000_005);
    assert_eq!(world.ledger.call_count(Method::Post), 1);
    world.scene.finish(0).await;
}

async fn a_server_that_streams_is_held_until_its_one_message_is_approved(host: Host) {
    for policy in [
        holding(&["Watch"], "return"),
        holding_with_descriptors(&["Watch"], "return"),
    ] {
        let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
        let mut client = world.client().await;
        let question = WatchRequest {
            account: "demo/cash".to_owned(),
            count: 1,
        };
        let refused = client.watch(question.clone()).await.expect_err("held");
        let id = world.pending(&refused);
        assert_eq!(world.ledger.calls().len(), 0);
        world.scene.plane().approve(&id).await;

        let stream = client.watch(question).await.expect("approved");

        let mut stream = stream.into_inner();
        let posting = stream.message().await.expect("a stream that goes well");
        assert_eq!(posting.expect("a posting").account, "demo/cash");
        assert_eq!(stream.message().await.expect("its end"), None);
        world.scene.finish(0).await;
    }
}

async fn a_client_may_choose_how_it_waits_by_metadata(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene).await;
    let wish = [("x-hoop-approval-mode", "Return")];
    let posting = with_metadata(world.posting(5), &wish);

    let refused = world.client().await.post(posting).await;

    world.pending(&refused.expect_err("not held"));
    world.scene.finish(0).await;
}

async fn a_rejected_call_is_told_so(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene).await;
    let held = held(&world, 5).await;

    let id = filed(&world).await;
    world.scene.plane().reject(&id, "not today").await;

    let refused = held.await.expect("a task that ends").expect_err("rejected");
    let reason = "the approval request was rejected";
    assert_eq!(world.refused(&refused, "REJECTED", reason), id);
    assert_eq!(refused.metadata().get("retry-after"), None);
    world.scene.finish(0).await;
}

async fn a_deadline_ends_the_hold_before_it(host: Host) {
    let scene = Scene::lying(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene).await;
    let id = numbered::id(1);
    let lies = world.scene.lies();
    lies.undecided(&id);
    lies.on(Kind::Claim, Reply::review(200, false, &id, "PENDING"));
    let mut posting = Request::new(world.posting(5));
    // The header alone: the client's own clock would end the call at the deadline.
    let deadline = "3S".parse().expect("ASCII");
    posting.metadata_mut().insert("grpc-timeout", deadline);

    let refused = world.client().await.post(posting).await;

    let reason =
        "still waiting for approval after 2.7s; run the statement again once it is approved";
    assert_eq!(
        world.refused(&refused.expect_err("over"), "PENDING", reason),
        id
    );
    world.scene.finish(0).await;
}

async fn a_client_that_gives_up_runs_nothing(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene).await;
    let held = held(&world, 5).await;

    held.abort();

    world.scene.until_held(0).await;
    world.scene.until_counter("requests_abandoned", 1).await;
    let id = filed(&world).await;
    assert_eq!(world.scene.plane().row(&id).await["status"], "PENDING");
    assert_eq!(world.ledger.calls().len(), 0);
    world.scene.finish(0).await;
}

async fn a_compressed_message_is_the_message_that_it_holds(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "return"));
    let world = LedgerScene::start(scene).await;
    let plain = world.client().await.post(world.posting(7)).await;
    let id = world.pending(&plain.expect_err("held"));
    for encoding in [CompressionEncoding::Gzip, CompressionEncoding::Deflate] {
        let mut client = world.client().await.send_compressed(encoding);
        let refused = client.post(world.posting(7)).await.expect_err("held");
        assert_eq!(world.pending(&refused), id, "{encoding:?}");
    }
    world.scene.plane().approve(&id).await;

    let gzip = CompressionEncoding::Gzip;
    let mut client = world.client().await.send_compressed(gzip);
    let posted = client.post(world.posting(7)).await;

    assert_eq!(
        posted.expect("approved").into_inner().balance_minor,
        1_000_007
    );
    world.scene.finish(0).await;
}

async fn a_message_that_nobody_could_read_is_refused_and_not_filed(host: Host) {
    let scene = Scene::lying(host).policy(holding(&["Post"], "return"));
    let world = LedgerScene::start(scene).await;
    let mut long = world.posting(1);
    long.memo = "x".repeat(70_000);
    let refused = world.client().await.post(long.clone()).await;
    let too_large = "larger than grpc.max_payload_bytes, so an approver could not read all of it";
    world.refused_by_policy(&refused.expect_err("too large"), too_large);
    // It is small on the wire only.
    let gzip = CompressionEncoding::Gzip;
    let mut client = world.client().await.send_compressed(gzip);
    let refused = client.post(long).await.expect_err("too large");
    world.refused_by_policy(&refused, too_large);

    let h2 = world.scene.connect_h2().await;
    for (what, frames, headers) in [
        ("a flag", framed(2, b"\x08\x01"), &[][..]),
        ("no encoding", framed(1, b"\x08\x01"), &[]),
        (
            "no gzip",
            framed(1, b"\x08\x01"),
            &[("grpc-encoding", "gzip")],
        ),
        ("brotli", framed(0, b"\x08\x01"), &[("grpc-encoding", "br")]),
        ("half a message", framed(0, b"\x08\x01")[..6].to_vec(), &[]),
    ] {
        let answer = h2.send(&raw("Post", vec![frames], headers)).await;
        assert_eq!(answer.status, 200, "{what}: {answer}");
        assert_eq!(
            answer.header("grpc-status").as_deref(),
            Some("7"),
            "{what}: {answer}"
        );
        let message = answer.header("grpc-message").unwrap_or_default();
        assert!(message.contains("cannot be read"), "{what}: {answer}");
    }
    assert_eq!(world.scene.lies().call_count(), 0);
    assert_eq!(world.ledger.calls().len(), 0);
    world.scene.finish(0).await;
}

async fn a_deny_rule_refuses_as_grpc_reads_it(host: Host) {
    let mut policy = policy::with_rules(json!([
        {"match": {"grpc": ["ledger.*/Po*"]}, "action": "deny", "message": "no postings, 100% sure: ü"},
    ]));
    policy
        .as_object_mut()
        .expect("an object")
        .remove("approval_mode");
    let world = LedgerScene::start(Scene::lying(host).policy(policy)).await;

    let refused = world.client().await.post(world.posting(1)).await;

    let refused = refused.expect_err("denied");
    world.refused_by_policy(&refused, "no postings, 100% sure: ü");
    let odd = H2Request {
        target: "/ledger.v1.Ledger//Post".to_owned(),
        ..raw("Post", vec![framed(0, b"")], &[])
    };
    let answer = world.scene.connect_h2().await.send(&odd).await;
    assert_eq!(
        answer.header("grpc-status").as_deref(),
        Some("7"),
        "{answer}"
    );
    world.scene.finish(0).await;
}

async fn the_answer_of_the_service_spends_an_approval_or_gives_it_back(host: Host) {
    let mut policy = holding(&["Post"], "return");
    policy["spend_approval_on"] = "accepted".into();
    let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
    let mut client = world.client().await;
    let mut returned = 0;
    for (script, stands) in [
        (
            Some(Script::Refuse(closed(Code::FailedPrecondition))),
            "APPROVED",
        ),
        (
            Some(Script::Refuse(closed(Code::InvalidArgument))),
            "APPROVED",
        ),
        // It may have run: a deadline is the client's own choice, and an answer the word of a call that runs.
        (
            Some(Script::Refuse(closed(Code::DeadlineExceeded))),
            "EXECUTED",
        ),
        (Some(Script::Refuse(closed(Code::Unavailable))), "EXECUTED"),
        (
            Some(Script::RefuseAfterAnswer(closed(Code::FailedPrecondition))),
            "EXECUTED",
        ),
        (None, "EXECUTED"),
    ] {
        let amount = 1 + returned;
        let runs = script.is_none();
        let refused = client.post(world.posting(amount)).await.expect_err("held");
        let id = world.pending(&refused);
        world.scene.plane().approve(&id).await;
        if let Some(script) = script {
            world.ledger.script_next(Method::Post, script);
        }
        let posted = client.post(world.posting(amount)).await;
        assert_eq!(posted.is_ok(), runs, "{posted:?}");
        wait::until(&format!("the approval is {stands}"), async || {
            (world.scene.plane().row(&id).await["status"] == stands).then_some(())
        })
        .await;
        returned += i64::from(stands == "APPROVED");
    }
    assert_eq!(returned, 2);
    assert_eq!(world.scene.counter("approvals_returned").await, 2);
    world.scene.finish(0).await;
}

fn closed(code: Code) -> Status {
    Status::new(code, "closed")
}

async fn a_message_is_the_same_however_it_travels(host: Host) {
    let scene = Scene::lying(host).policy(holding(&["Post"], "return"));
    let world = LedgerScene::start(scene).await;
    let lies = world.scene.lies();
    let id = numbered::id(1);
    lies.on(Kind::Filing, Reply::review(201, false, &id, "PENDING"));
    let bytes = framed(0, b"\x0a\x04cash\x10\x05");
    let h2 = world.scene.connect_h2().await;
    let singly: Vec<Vec<u8>> = bytes.iter().map(|byte| vec![*byte]).collect();
    let mut ways = vec![vec![bytes.clone()], singly, vec![bytes.clone(), Vec::new()]];
    for cut in 1..bytes.len() {
        let (start, end) = bytes.split_at(cut);
        ways.push(vec![start.to_vec(), end.to_vec()]);
    }
    let count = ways.len();

    for frames in ways {
        let answer = h2.send(&raw("Post", frames, &[])).await;
        assert_eq!(
            answer.header("x-hoop-approval-id"),
            Some(id.clone()),
            "{answer}"
        );
    }

    let filed = lies.filed();
    let statement = b"/ledger.v1.Ledger/Post\n1: \"cash\"\n2: 5".to_vec();
    assert_eq!(filed, vec![statement; count]);
    world.scene.finish(0).await;
}

async fn a_thousand_calls_at_once_run_once_each(host: Host) {
    let scene = Scene::lying(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene.workers(2)).await;
    let id = numbered::id(1);
    world
        .scene
        .lies()
        .on(Kind::Filing, Reply::review(200, true, &id, "EXECUTED"));
    let mut calls = JoinSet::new();
    for connection in 0..4 {
        let client = world.client().await;
        for number in 0..250 {
            let mut client = client.clone();
            let posting = world.posting(connection * 250 + number + 1);
            calls.spawn(async move { client.post(posting).await });
        }
    }

    while let Some(posted) = calls.join_next().await {
        posted.expect("a task that ends").expect("released");
    }

    let mut amounts = world.amounts(Method::Post);
    amounts.sort_unstable();
    assert_eq!(amounts, (1..=1_000).collect::<Vec<i64>>());
    world.scene.finish(0).await;
}
