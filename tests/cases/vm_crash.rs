//! A gate that crashes while calls wait for it. Nothing that was held runs, no decision is lost, and the plane keeps what was filed.

use hoop_tests::answer;
use hoop_tests::client::{Answer, Connection};
use hoop_tests::host::Host;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::{Scene, SceneBuilder};
use hoop_tests::wait;
use serde_json::Value;

on_both_hosts! {
    a_crash_during_a_hold_runs_nothing_and_a_new_vm_finds_the_decision,
    a_crash_while_an_approval_is_claimed_runs_nothing,
    a_crash_while_a_call_is_filed_runs_nothing,
    the_host_ends_a_held_call_whose_gate_has_crashed,
    a_gate_that_stays_down_lets_nothing_through,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
/// How long the answers are at which the gate of these cases crashes.
const FATAL: usize = 4_242;

fn fatal() -> Reply {
    Reply::typed(200, "application/json", " ".repeat(FATAL))
}

fn crashing(host: Host) -> SceneBuilder {
    let length = u32::try_from(FATAL).expect("a small number");
    let scene = Scene::lying(host).policy(policy::holding());
    scene.crashing_on_answers_of(length)
}

/// One call, held, whose gate crashes at its next look at the plane.
async fn held_until_the_crash(scene: &Scene) -> Connection {
    scene.lies().undecided(ID);
    let held = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    scene.lies().on(Kind::List, fatal());
    scene.until_logged(&["unreachable"]).await;
    held
}

/// The host answers 503 by itself until it has started a new VM.
async fn first_answer_of_a_new_vm(scene: &Scene) -> Answer {
    wait::until("a new VM answers", async || {
        let answer = scene.post("/payments/42", &scene.body()).await;
        (answer.status != 503).then_some(answer)
    })
    .await
}

async fn a_crash_during_a_hold_runs_nothing_and_a_new_vm_finds_the_decision(host: Host) {
    let scene = crashing(host).start().await;
    let held = held_until_the_crash(&scene).await;
    assert_eq!(scene.upstream.connections(), 0);
    drop(held);
    scene.idle().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, Reply::review(200, true, ID, "EXECUTED"));

    answer::passed(&first_answer_of_a_new_vm(&scene).await);

    assert_eq!(lies.count(Kind::Claim), 0);
    scene.finish(1).await;
}

async fn a_crash_while_an_approval_is_claimed_runs_nothing(host: Host) {
    let scene = crashing(host).start().await;
    let lies = scene.lies();
    lies.undecided(ID);
    let held = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    lies.on(Kind::Claim, fatal());
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    scene.until_logged(&["unreachable"]).await;
    drop(held);
    scene.idle().await;
    // The approval is spent: the plane knows of the claim, whoever did not.
    let used = Reply::review(200, false, ID, "EXECUTED");
    lies.on(Kind::Filing, used);

    let next = first_answer_of_a_new_vm(&scene).await;

    let reason = "the approval was already used";
    assert_eq!(answer::settled(&next, "EXECUTED", reason), ID);
    assert_eq!(lies.count(Kind::Claim), 1);
    scene.finish(0).await;
}

async fn a_crash_while_a_call_is_filed_runs_nothing(host: Host) {
    let scene = crashing(host).start().await;
    scene.lies().on(Kind::Filing, fatal());
    let filing = scene.begin("/payments/42", &scene.body()).await;
    scene.until_logged(&["unreachable"]).await;
    drop(filing);
    scene.idle().await;
    scene.finish(0).await;
}

async fn the_host_ends_a_held_call_whose_gate_has_crashed(host: Host) {
    let idle = |manager: &mut Value| manager["stream_idle_timeout"] = "5s".into();
    let scene = crashing(host).edit_manager(idle).start().await;
    let mut held = held_until_the_crash(&scene).await;

    let answer = held.answer("the held call").await;

    assert_eq!(answer.status, 503, "{answer}");
    assert_eq!(answer.header("x-hoop-denied"), None, "{answer}");
    scene.finish(0).await;
}

async fn a_gate_that_stays_down_lets_nothing_through(host: Host) {
    let closed = |manager: &mut Value| {
        let gate = "/http_filters/0/typed_config/config/failure_policy";
        let gate = manager.pointer_mut(gate);
        *gate.expect("the gate of envoy/envoy.yaml") = "FAIL_CLOSED".into();
    };
    let scene = crashing(host).edit_manager(closed).start().await;
    let held = held_until_the_crash(&scene).await;
    let lies = scene.lies();
    lies.on(Kind::Filing, Reply::review(200, true, ID, "EXECUTED"));
    let asked = lies.call_count();

    for target in ["/payments/42", "/invoices/1"] {
        let answer = scene.post(target, &scene.body()).await;
        assert_eq!(answer.status, 503, "{target}: {answer}");
    }

    assert_eq!(lies.call_count(), asked);
    drop(held);
    scene.finish(0).await;
}
