//! What the plane can do wrong while calls are held. Each fault refuses with the approval's id and no status, and a plane without
//! a list costs time only.

use hoop_tests::answer;
use hoop_tests::client::Connection;
use hoop_tests::host::Host;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::{numbered, wait};
use serde_json::json;

on_both_hosts! {
    a_list_that_is_none_refuses_whoever_waits,
    a_plane_that_does_not_answer_in_time_refuses_whoever_waits,
    a_claim_that_is_no_clear_answer_refuses_whoever_waits,
    a_plane_that_goes_away_refuses_whoever_waits_and_works_again_when_it_is_back,
    a_plane_that_is_killed_during_a_hold_still_has_the_request_afterwards,
    entries_of_a_list_that_make_no_sense_are_passed_over,
    a_plane_without_a_list_is_asked_by_claims,
    a_list_that_the_plane_forbids_is_replaced_by_claims,
    a_list_that_the_token_may_not_read_is_replaced_by_claims,
    approvals_beyond_the_list_are_claimed_in_turn,
    decisions_beyond_the_list_are_found_by_their_status,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const OTHER: &str = "11111111-4b5a-4697-8897-a6b5c4d3e2f1";
const JSON: &str = "application/json";

/// Answers that are no answer to a list or a claim, whatever was asked.
fn broken() -> Vec<(&'static str, Reply)> {
    let mut cases =
        vec![
        ("garbage", Reply::typed(200, JSON, "}{")),
        ("HTML", Reply::typed(200, "text/html", "<html>[]</html>")),
        ("nothing", Reply::typed(200, JSON, "")),
        ("null", Reply::typed(200, JSON, "null")),
        ("a number", Reply::typed(200, JSON, "7")),
        ("2 MiB", {
            let padding = " ".repeat(2 * 1024 * 1024);
            Reply::typed(200, JSON, format!("[]{padding}"))
        }),
        (
            "a body that ends early",
            Reply::Truncated(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n[]"
                    .to_vec(),
            ),
        ),
        ("a closed connection", Reply::Truncated(Vec::new())),
        ("no HTTP", Reply::Truncated(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
    ];
    for status in [
        201, 202, 204, 302, 400, 409, 412, 422, 429, 500, 502, 503, 504,
    ] {
        let body = if status == 204 { "" } else { "[]" };
        cases.push(("another status", Reply::typed(status, JSON, body)));
    }
    cases
}

async fn a_list_that_is_none_refuses_whoever_waits(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let mut count = 0;
    for (what, reply) in broken() {
        scene.lies().on(Kind::List, reply);
        let answer = scene.post("/payments/42", &scene.body()).await;
        assert_eq!(answer::not_checked(&answer), ID, "{what}");
        count += 1;
    }
    let release = json!({"forward": true, "review": {"id": ID, "status": "EXECUTED"}});
    let list_in_object = json!({"reviews": [{"id": ID, "status": "APPROVED"}]});
    for reply in [release, list_in_object] {
        scene.lies().on(Kind::List, Reply::json(200, &reply));
        let answer = scene.post("/payments/42", &scene.body()).await;
        assert_eq!(answer::not_checked(&answer), ID, "{reply}");
        count += 1;
    }
    assert_eq!(scene.lies().count(Kind::Claim), 0);
    assert_eq!(scene.counter("refused_plane_fault").await, count);
    assert_eq!(scene.counter("plane_failures").await, count);
    scene.until_held(0).await;
    scene
        .until_logged(&["poll=list_failed", "status 500"])
        .await;

    // After all that it holds and releases as ever.
    let lies = scene.lies();
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    answer::passed(&scene.post("/payments/42", &scene.body()).await);
    scene.finish(1).await;
}

async fn a_plane_that_does_not_answer_in_time_refuses_whoever_waits(host: Host) {
    let mut policy = policy::holding();
    policy["control_plane"]["timeout_ms"] = 300.into();
    let scene = Scene::undecided(host, policy, ID).await;
    let lies = scene.lies();
    lies.on(Kind::List, Reply::Hang);
    let answer = scene.post("/payments/42", &scene.body()).await;
    assert_eq!(answer::not_checked(&answer), ID);
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    lies.on(Kind::Claim, Reply::Hang);
    let answer = scene.post("/payments/42", &scene.body()).await;
    assert_eq!(answer::not_checked(&answer), ID);
    assert_eq!(scene.counter("plane_timeouts").await, 2);
    scene.finish(0).await;
}

async fn a_claim_that_is_no_clear_answer_refuses_whoever_waits(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    let mut cases = broken();
    for status in [401, 403, 404] {
        cases.push((
            "another status",
            Reply::review(status, true, ID, "EXECUTED"),
        ));
    }
    cases.extend([
        (
            "a release of another",
            Reply::review(200, true, OTHER, "EXECUTED"),
        ),
        (
            "the state of another",
            Reply::review(200, false, OTHER, "PENDING"),
        ),
        (
            "a release without an id",
            Reply::json(200, &json!({"forward": true})),
        ),
        (
            "an id in capitals",
            Reply::review(200, true, &ID.to_uppercase(), "EXECUTED"),
        ),
        (
            "forward as text",
            Reply::json(
                200,
                &json!({"forward": "true", "review": {"id": ID, "status": "EXECUTED"}}),
            ),
        ),
        // A claim never files, so a status that says so is not the plane's word.
        ("filed", Reply::review(201, true, ID, "EXECUTED")),
        ("a list", Reply::list(&[(ID, "APPROVED")])),
    ]);
    for (what, reply) in cases {
        lies.on(Kind::Claim, reply);
        let answer = scene.post("/payments/42", &scene.body()).await;
        assert_eq!(answer::not_checked(&answer), ID, "{what}");
    }
    scene
        .until_logged(&["poll=claim_failed", "another approval"])
        .await;
    scene.until_held(0).await;
    scene.finish(0).await;
}

async fn a_plane_that_goes_away_refuses_whoever_waits_and_works_again_when_it_is_back(host: Host) {
    let policy = policy::holding();
    let scene = Scene::lying(host).policy(policy).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::List, numbered::list(0..3, "PENDING"));
    let mut held = Vec::new();
    for number in 0..3 {
        held.push(scene.begin(&numbered::target(number), &scene.body()).await);
    }
    scene.until_held(3).await;

    lies.stop().await;

    for (number, connection) in held.iter_mut().enumerate() {
        let answer = connection.answer("a held call").await;
        assert_eq!(answer::not_checked(&answer), numbered::id(number));
    }
    scene.until_held(0).await;
    // What no rule holds needs no plane.
    answer::passed(&scene.get("/invoices/1").await);
    lies.on(Kind::Claim, numbered::released_claim());
    lies.on(Kind::List, numbered::list(0..3, "APPROVED"));
    lies.resume().await;
    let back = wait::until("the gate reaches the plane again", async || {
        let answer = scene.post(&numbered::target(0), &scene.body()).await;
        (answer.status == 200).then_some(answer)
    });
    answer::passed(&back.await);
    scene.finish(2).await;
}

async fn a_plane_that_is_killed_during_a_hold_still_has_the_request_afterwards(host: Host) {
    let mut scene = Scene::real(host).policy(policy::holding()).start().await;
    let body = scene.body();
    let mut held = scene.begin("/payments/42", &body).await;
    scene.until_held(1).await;

    scene.plane_mut().kill().await;

    let id = answer::not_checked(&held.answer("the held call").await);
    scene.plane_mut().restart().await;
    assert_eq!(scene.plane().row(&id).await["status"], "PENDING");
    scene.plane().approve(&id).await;
    let back = wait::until("the gate reaches the plane again", async || {
        let answer = scene.post("/payments/42", &body).await;
        (answer.status == 200).then_some(answer)
    });
    answer::passed(&back.await);
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    scene.finish(1).await;
}

async fn entries_of_a_list_that_make_no_sense_are_passed_over(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let nonsense = json!([
        null, 7, [], {}, {"id": ID}, {"id": 7, "status": "APPROVED"}, {"status": "APPROVED"},
        {"id": ID.to_uppercase(), "status": "REJECTED"}, {"id": OTHER, "status": "REJECTED"},
        {"id": ID, "status": 7},
    ]);
    lies.on(Kind::List, Reply::json(200, &nonsense));
    let mut held = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::List, 3).await;
    assert!(held.is_silent().await);
    assert_eq!(lies.count(Kind::Claim), 0);

    let mut sense = nonsense.as_array().expect("a list").clone();
    sense.push(json!({"id": ID, "status": "EXPIRED"}));
    lies.on(Kind::List, Reply::json(200, &sense.into()));

    let answer = held.answer("the held call").await;
    assert_eq!(
        answer.header("x-hoop-approval-status").as_deref(),
        Some("EXPIRED")
    );
    scene.finish(0).await;
}

async fn a_plane_without_a_list_is_asked_by_claims(host: Host) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::List, numbered::no_list());
    lies.on(Kind::Claim, numbered::released_claim());
    lies.next(Kind::Claim, numbered::undecided_claim());
    let mut held = Vec::new();
    for number in 0..3 {
        held.push(scene.begin(&numbered::target(number), &scene.body()).await);
    }
    scene.until_held(3).await;

    for connection in &mut held {
        answer::passed(&connection.answer("a held call").await);
    }

    assert_eq!(lies.count(Kind::Claim), 4);
    assert_eq!(lies.count(Kind::Filing), 3);
    // It is not asked for its list again and again.
    assert_eq!(lies.count(Kind::List), 1);
    scene.until_logged(&["poll=claims"]).await;
    scene.finish(3).await;
}

async fn a_list_that_the_plane_forbids_is_replaced_by_claims(host: Host) {
    claims_replace(host, Reply::json(403, &json!({"message": "forbidden"}))).await;
}

async fn a_list_that_the_token_may_not_read_is_replaced_by_claims(host: Host) {
    claims_replace(host, Reply::typed(401, "text/plain", "access denied")).await;
}

async fn claims_replace(host: Host, list: Reply) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.on(Kind::List, list);
    lies.on(Kind::Claim, Reply::review(200, false, ID, "REJECTED"));
    let answer = scene.post("/payments/42", &scene.body()).await;
    answer::settled(&answer, "REJECTED", "the approval request was rejected");
    assert_eq!((lies.count(Kind::List), lies.count(Kind::Claim)), (1, 1));
    scene.finish(0).await;
}

/// A scene whose plane has more approvals than its list shows, and in which two calls are held.
async fn beyond_the_list(host: Host, list: Reply) -> (Scene, [Connection; 2]) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::List, list);
    lies.on(Kind::Claim, numbered::released_claim());
    let first = scene.begin(&numbered::target(0), &scene.body()).await;
    let second = scene.begin(&numbered::target(1), &scene.body()).await;
    scene.until_held(2).await;
    (scene, [first, second])
}

async fn approvals_beyond_the_list_are_claimed_in_turn(host: Host) {
    let (scene, held) = beyond_the_list(host, numbered::list(100..300, "PENDING")).await;

    for mut connection in held {
        answer::passed(&connection.answer("a held call").await);
    }

    assert_eq!(scene.lies().count(Kind::Claim), 2);
    scene.finish(2).await;
}

async fn decisions_beyond_the_list_are_found_by_their_status(host: Host) {
    let by_status = Reply::Made(|call| {
        let target = call.start_word(1);
        if target.contains("status=APPROVED") {
            numbered::list(0..1, "APPROVED")
        } else if target.contains("status=REJECTED") {
            numbered::list(1..2, "REJECTED")
        } else if target.contains("status=") {
            Reply::list(&[])
        } else {
            numbered::list(100..300, "PENDING")
        }
    });
    let (scene, [mut approved, mut rejected]) = beyond_the_list(host, by_status).await;

    answer::passed(&approved.answer("the approved call").await);
    let refused = rejected.answer("the rejected call").await;
    let reason = "the approval request was rejected";
    let id = answer::settled(&refused, "REJECTED", reason);
    assert_eq!(id, numbered::id(1));
    assert_eq!(scene.lies().count(Kind::Claim), 1);
    scene.finish(1).await;
}
