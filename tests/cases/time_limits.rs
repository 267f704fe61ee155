//! The plane's time limits, as an agent behind the gate meets them: requests and approvals that expire, decisions at the last moment,
//! and a gate that died with a call under way.

use std::collections::BTreeSet;

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::upstream::Reaction;
use hoop_tests::wait;
use serde_json::{Value, json};

on_both_hosts! {
    an_approval_that_expires_before_the_call_comes_again_opens_a_new_request,
    a_request_that_expires_ends_its_hold_and_the_next_send_opens_a_new_one,
    a_decision_after_the_request_has_expired_lets_nothing_through,
    decisions_at_the_end_of_a_hold_run_now_or_with_the_next_send_and_never_twice,
    a_call_whose_gate_died_is_spent_after_its_time_and_needs_a_new_approval,
}

/// The limits of the tests' plane.yaml, in seconds.
const PENDING_TTL_SEC: u32 = 1_800;
const APPROVAL_TTL_SEC: u32 = 600;
/// The plane's default for a call that is under way.
const PROCESSING_TTL_SEC: u32 = 3_600;

async fn status(scene: &Scene, id: &str) -> Value {
    let target = format!("/.well-known/hoop/approvals/{id}");
    let answer = scene.get(&target).await;
    answer::reserved(&answer, 200);
    let document: Value = serde_json::from_str(&answer.text()).expect("JSON");
    document["status"].clone()
}

async fn an_approval_that_expires_before_the_call_comes_again_opens_a_new_request(host: Host) {
    let scene = Scene::clocked(host).start().await;
    let body = scene.body();
    let first = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&first).await;
    scene.plane().advance_sec(APPROVAL_TTL_SEC - 1);
    assert_eq!(status(&scene, &first).await, "APPROVED");

    scene.plane().advance_sec(1);
    let second = answer::pending(&scene.post("/payments/42", &body).await);

    assert_ne!(second, first);
    assert_eq!(status(&scene, &first).await, "EXPIRED");
    assert_eq!(scene.upstream.connections(), 0);
    scene.plane().approve(&second).await;
    answer::passed(&scene.post("/payments/42", &body).await);
    scene.finish(1).await;
}

async fn a_request_that_expires_ends_its_hold_and_the_next_send_opens_a_new_one(host: Host) {
    let scene = Scene::clocked(host).policy(policy::holding()).start().await;
    let mut held = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;

    scene.plane().advance_sec(PENDING_TTL_SEC);

    let answer = held.answer("the held call").await;
    let reason =
        "the approval request expired; running the statement again files a new approval request";
    let first = answer::settled(&answer, "EXPIRED", reason);
    let mut again = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    let rows = scene.plane().rows().await;
    let mut ids = rows.iter().filter_map(|row| row["id"].as_str());
    let second = ids.find(|id| *id != first).expect("a second request");
    scene.plane().approve(second).await;
    answer::passed(&again.answer("the call that came again").await);
    scene.finish(1).await;
}

async fn a_decision_after_the_request_has_expired_lets_nothing_through(host: Host) {
    let scene = Scene::clocked(host).start().await;
    let first = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    scene.plane().advance_sec(PENDING_TTL_SEC);

    let late = json!({"status": "APPROVED"});
    let code = scene.plane().decide_over_http(&first, &late).await;

    assert!((400..500).contains(&code), "{code}");
    assert_eq!(status(&scene, &first).await, "EXPIRED");
    let second = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    assert_ne!(second, first);
    scene.finish(0).await;
}

async fn decisions_at_the_end_of_a_hold_run_now_or_with_the_next_send_and_never_twice(host: Host) {
    let policy = policy::holding_for_a_second();
    let scene = Scene::real(host).policy(policy).workers(2).start().await;
    let targets: Vec<String> = (0..COUNT)
        .map(|number| format!("/payments/{number}"))
        .collect();
    let mut held = Vec::new();
    for target in &targets {
        held.push(scene.begin(target, target.as_bytes()).await);
    }
    let rows = wait::until("every call is filed", async || {
        let rows = scene.plane().rows().await;
        (rows.len() == COUNT).then_some(rows)
    })
    .await;
    // Once the first hold is over, the others are about to end while people still decide.
    let first = held.remove(0).answer("the first call").await;
    answer::hold_over(&first, "1s");
    let approve = json!({"status": "APPROVED"});
    for row in &rows {
        let id = row["id"].as_str().expect("an id");
        let code = scene.plane().decide_over_http(id, &approve).await;
        assert_eq!(code, 200);
    }

    let mut unspent = vec![&targets[0]];
    for (mut connection, target) in held.into_iter().zip(&targets[1..]) {
        let answer = connection.answer(target).await;
        if answer.status == 200 {
            answer::passed(&answer);
        } else {
            answer::hold_over(&answer, "1s");
            unspent.push(target);
        }
    }
    assert_eq!(scene.upstream.request_count(), COUNT - unspent.len());
    let rows = scene.plane().rows().await;
    let approved = rows.iter().filter(|row| row["status"] == "APPROVED");
    assert_eq!(approved.count(), unspent.len(), "{rows:?}");
    for target in unspent {
        answer::passed(&scene.post(target, target.as_bytes()).await);
    }

    let requests = scene.upstream.requests();
    let seen: BTreeSet<String> = requests.iter().map(|call| call.start_word(1)).collect();
    assert_eq!(seen, targets.into_iter().collect());
    scene.finish(COUNT).await;
}

/// How many calls end at about one time.
const COUNT: usize = 12;

async fn a_call_whose_gate_died_is_spent_after_its_time_and_needs_a_new_approval(host: Host) {
    let accepting = policy::with("spend_approval_on", json!("accepted"));
    let mut scene = Scene::clocked(host).policy(accepting).start().await;
    let first = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    scene.plane().approve(&first).await;
    scene.upstream.react(Reaction::Silence);
    let _under_way = scene.begin("/payments/42", &scene.body()).await;
    wait::until("the upstream has the call", async || {
        (scene.upstream.request_count() == 1).then_some(())
    })
    .await;

    scene.proxy.kill();

    let other = scene.replica().await;
    assert_eq!(scene.plane().row(&first).await["status"], "PROCESSING");
    scene.plane().advance_sec(PROCESSING_TTL_SEC);
    assert_eq!(scene.plane().row(&first).await["status"], "EXECUTED");
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let again = scene.connect_to(&other).await.send(&call).await;
    assert_ne!(answer::pending(&again), first);
    scene.finish(1).await;
}
