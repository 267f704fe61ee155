//! Hold mode: a held call is silent until somebody has decided, and its one answer is the upstream's or a refusal.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::{Kind, Latch, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::{numbered, wait};

on_both_hosts! {
    a_held_call_is_silent_until_it_is_approved_and_runs_once_byte_for_byte,
    a_rejection_ends_the_hold,
    an_approval_that_is_over_ends_the_hold_in_its_own_words_and_is_not_claimed,
    what_a_claim_says_of_an_approval_that_is_over_ends_the_hold,
    a_hold_that_nobody_decides_says_how_long_it_was_and_the_next_send_finds_the_decision,
    the_first_answer_of_the_plane_may_end_a_hold_before_it_begins,
    a_claim_has_no_body_and_nothing_is_filed_twice,
    an_approval_that_is_not_ready_at_once_is_claimed_again,
    only_a_claim_releases_and_a_state_that_may_still_change_is_waited_for,
    a_decision_in_the_last_claim_is_honoured,
    a_claim_that_is_under_way_when_the_time_is_over_is_honoured,
    of_two_that_wait_for_the_same_approval_one_runs_and_the_other_learns_that_it_was_used,
    over_two_envoys_one_runs_and_the_other_learns_that_it_was_used,
    every_method_is_held,
    a_body_at_the_limit_is_held_and_a_larger_one_is_refused_without_a_wait,
    a_connection_goes_on_after_a_hold_of_either_end,
    a_rule_may_return_where_the_listener_holds,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// The id of the only approval of a real plane.
async fn only_id(scene: &Scene) -> String {
    let rows = scene.plane().rows().await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0]["id"].as_str().expect("an id").to_owned()
}

async fn a_held_call_is_silent_until_it_is_approved_and_runs_once_byte_for_byte(host: Host) {
    let scene = Scene::real(host).policy(policy::holding()).start().await;
    let body = scene.body();
    let headers = [("content-type", "application/json"), ("x-Agent", "seven")];
    let call = request("POST", "/payments/42?note=a%20b", &headers, Some(&body));
    let mut held = scene.connect().await;
    held.write(&call).await;
    scene.until_held(1).await;
    wait::until("the plane was looked at a few times", async || {
        (scene.counter("plane_calls").await > 4).then_some(())
    })
    .await;
    assert!(held.is_silent().await);
    assert_eq!(scene.upstream.connections(), 0);
    let id = only_id(&scene).await;

    scene.plane().approve(&id).await;

    answer::passed(&held.answer("the held call").await);
    let seen = scene.upstream.last();
    assert_eq!(seen.start, b"POST /payments/42?note=a%20b HTTP/1.1");
    assert_eq!(seen.body, body);
    assert_eq!(seen.header("x-agent").as_deref(), Some("seven"));
    assert_eq!(seen.header("content-length"), Some(body.len().to_string()));
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    assert_eq!(scene.plane().rows().await.len(), 1);
    scene.until_held(0).await;
    assert_eq!(scene.counter("requests_released").await, 1);
    assert_eq!(scene.counter("approvals_filed").await, 1);
    scene.finish(1).await;
}

async fn a_rejection_ends_the_hold(host: Host) {
    let scene = Scene::real(host).policy(policy::holding()).start().await;
    let mut held = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    let id = only_id(&scene).await;

    scene.plane().reject(&id, "the amount is wrong").await;

    let answer = held.answer("the held call").await;
    let reason = "the approval request was rejected";
    assert_eq!(answer::settled(&answer, "REJECTED", reason), id);
    scene.until_held(0).await;
    scene.finish(0).await;
}

/// How the plane may say that an approval is over, the words for it, and the counter.
const OVER: [(&str, &str, &str); 5] = [
    ("REJECTED", "the approval request was rejected", "rejected"),
    ("REVOKED", "the approval was revoked", "rejected"),
    ("EXECUTED", "the approval was already used", "used"),
    (
        "EXPIRED",
        "the approval request expired; running the statement again files a new approval request",
        "expired",
    ),
    ("FOO", "the statement was not released", "not_released"),
];

async fn an_approval_that_is_over_ends_the_hold_in_its_own_words_and_is_not_claimed(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    for (status, reason, counter) in OVER {
        let counter = format!("refused_{counter}");
        let before = scene.counter(&counter).await;
        scene.lies().on(Kind::List, Reply::list(&[(ID, "PENDING")]));
        let mut held = scene.begin("/payments/42", &scene.body()).await;
        scene.until_held(1).await;

        scene.lies().on(Kind::List, Reply::list(&[(ID, status)]));

        let answer = held.answer(status).await;
        assert_eq!(answer::settled(&answer, status, reason), ID);
        assert_eq!(scene.counter(&counter).await, before + 1, "{counter}");
    }
    assert_eq!(scene.lies().count(Kind::Claim), 0);
    scene.until_held(0).await;
    scene.finish(0).await;
}

async fn what_a_claim_says_of_an_approval_that_is_over_ends_the_hold(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    scene
        .lies()
        .on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    for (status, reason, _) in OVER {
        scene
            .lies()
            .on(Kind::Claim, Reply::review(200, false, ID, status));
        let answer = scene.post("/payments/42", &scene.body()).await;
        assert_eq!(answer::settled(&answer, status, reason), ID);
    }
    // A claim that says approved and does not forward releases nothing either.
    let claimed = Reply::review(200, false, ID, "APPROVED");
    scene.lies().on(Kind::Claim, claimed);
    let answer = scene.post("/payments/42", &scene.body()).await;
    answer::settled(&answer, "APPROVED", "the statement was not released");
    scene.finish(0).await;
}

async fn a_hold_that_nobody_decides_says_how_long_it_was_and_the_next_send_finds_the_decision(
    host: Host,
) {
    let scene = Scene::real(host).policy(policy::holding_for_a_second());
    let scene = scene.start().await;
    let body = scene.body();

    let answer = scene.post("/payments/42", &body).await;

    let id = answer::hold_over(&answer, "1s");
    assert_eq!(scene.plane().row(&id).await["status"], "PENDING");
    assert_eq!(scene.counter("refused_hold_timeout").await, 1);
    scene.until_held(0).await;
    scene.plane().approve(&id).await;
    answer::passed(&scene.post("/payments/42", &body).await);
    assert_eq!(scene.plane().rows().await.len(), 1);
    scene.finish(1).await;
}

async fn the_first_answer_of_the_plane_may_end_a_hold_before_it_begins(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.next(Kind::Filing, Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.post("/payments/42", &scene.body()).await);
    for (status, reason, _) in OVER {
        lies.next(Kind::Filing, Reply::review(200, false, ID, status));
        let answer = scene.post("/payments/42", &scene.body()).await;
        assert_eq!(answer::settled(&answer, status, reason), ID);
    }
    // Without an id that can be asked about there is nothing to wait for.
    lies.next(Kind::Filing, Reply::review(201, false, "42", "PENDING"));
    let answer = scene.post("/payments/42", &scene.body()).await;
    assert_eq!(answer::pending(&answer), "42");
    assert_eq!(lies.count(Kind::List) + lies.count(Kind::Claim), 0);
    scene.finish(1).await;
}

async fn a_claim_has_no_body_and_nothing_is_filed_twice(host: Host) {
    let mut policy = policy::holding();
    policy["hold_timeout_ms"] = 1_500.into();
    let scene = Scene::undecided(host, policy, ID).await;
    scene
        .lies()
        .on(Kind::Claim, Reply::review(200, false, ID, "PENDING"));

    let answer = scene.post("/payments/42", &scene.body()).await;

    assert_eq!(answer::hold_over(&answer, "1.5s"), ID);
    let lies = scene.lies();
    assert_eq!((lies.count(Kind::Filing), lies.count(Kind::Claim)), (1, 1));
    let claim = &lies.calls_of(Kind::Claim)[0];
    let line = format!("POST /api/sidecars/reviews/{ID}/claim HTTP/1.1");
    assert_eq!(String::from_utf8_lossy(&claim.start), line);
    assert_eq!(claim.body, b"");
    assert_eq!(claim.header("content-type"), None);
    assert!(claim.header("hoop-sidecar-token").is_some());
    let list = &lies.calls_of(Kind::List)[0];
    assert_eq!(list.start, b"GET /api/sidecars/reviews?limit=200 HTTP/1.1");
    assert!(list.header("hoop-sidecar-token").is_some());
    assert_eq!(list.body, b"");
    scene.finish(0).await;
}

async fn an_approval_that_is_not_ready_at_once_is_claimed_again(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    lies.next(Kind::Claim, Reply::review(200, false, ID, "PENDING"));
    lies.next(Kind::Claim, Reply::review(200, false, ID, "PROCESSING"));
    lies.next(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));

    answer::passed(&scene.post("/payments/42", &scene.body()).await);

    assert_eq!((lies.count(Kind::Filing), lies.count(Kind::Claim)), (1, 3));
    assert_eq!(scene.upstream.last().body, scene.body());
    scene.finish(1).await;
}

async fn only_a_claim_releases_and_a_state_that_may_still_change_is_waited_for(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.on(Kind::List, Reply::list(&[(ID, "PROCESSING")]));
    let mut held = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::List, 3).await;
    assert!(held.is_silent().await);
    lies.on(Kind::Claim, Reply::review(200, false, ID, "PENDING"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    lies.until_asked(Kind::Claim, 3).await;
    assert!(held.is_silent().await);
    assert_eq!(scene.upstream.connections(), 0);

    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));

    answer::passed(&held.answer("the held call").await);
    scene.finish(1).await;
}

async fn a_decision_in_the_last_claim_is_honoured(host: Host) {
    let scene = Scene::undecided(host, policy::holding_for_a_second(), ID).await;
    let lies = scene.lies();
    lies.next(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.post("/payments/42", &scene.body()).await);
    lies.next(Kind::Claim, Reply::review(200, false, ID, "REJECTED"));
    let answer = scene.post("/payments/42", &scene.body()).await;
    answer::settled(&answer, "REJECTED", "the approval request was rejected");
    assert_eq!(lies.count(Kind::Claim), 2);
    scene.finish(1).await;
}

async fn a_claim_that_is_under_way_when_the_time_is_over_is_honoured(host: Host) {
    let policy = policy::holding_for_a_second();
    let scene = Scene::lying(host).policy(policy).start().await;
    let lies = scene.lies();
    let latch = Latch::default();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::List, Reply::list(&[(&numbered::id(1), "APPROVED")]));
    lies.on(Kind::Claim, numbered::undecided_claim());
    lies.next(Kind::Claim, numbered::released_claim().behind(&latch));
    let mut first = scene.begin(&numbered::target(1), &scene.body()).await;
    lies.until_asked(Kind::Claim, 1).await;

    // The second was held after the first, so once its time is over, that of the first is, too.
    let second = scene.post(&numbered::target(2), &scene.body()).await;
    assert_eq!(answer::hold_over(&second, "1s"), numbered::id(2));
    assert!(first.is_silent().await);
    latch.open();

    answer::passed(&first.answer("the held call").await);
    scene.finish(1).await;
}

async fn of_two_that_wait_for_the_same_approval_one_runs_and_the_other_learns_that_it_was_used(
    host: Host,
) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let mut first = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    let mut second = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(2).await;

    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));

    answer::passed(&first.answer("the one that waited longest").await);
    let other = second.answer("the other").await;
    answer::settled(&other, "EXECUTED", "the approval was already used");
    assert_eq!(lies.count(Kind::Claim), 1);
    scene.until_held(0).await;
    scene.finish(1).await;
}

async fn over_two_envoys_one_runs_and_the_other_learns_that_it_was_used(host: Host) {
    let scene = Scene::real(host).policy(policy::holding()).start().await;
    let mut replica = scene.replica().await;
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let mut here = scene.connect().await;
    here.write(&call).await;
    let mut there = scene.connect_to(&replica).await;
    there.write(&call).await;
    let gauge = "wasmcustom.hoop_filter_requests_held";
    wait::until("both hold", async || {
        let held = scene.proxy.stat(gauge).await + replica.stat(gauge).await;
        (held == 2).then_some(())
    })
    .await;
    let id = only_id(&scene).await;

    scene.plane().approve(&id).await;

    let answers = [here.answer("here").await, there.answer("there").await];
    let (passed, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((passed.len(), refused.len()), (1, 1));
    answer::passed(passed[0]);
    let used = answer::settled(refused[0], "EXECUTED", "the approval was already used");
    assert_eq!(used, id);
    replica.stop().await;
    scene.finish(1).await;
}

async fn every_method_is_held(host: Host) {
    let mut policy = policy::holding();
    policy["rules"] = policy::hold_everything();
    let scene = Scene::undecided(host, policy, ID).await;
    let lies = scene.lies();
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    for (method, body) in [
        ("GET", None),
        ("PUT", Some(&b"x"[..])),
        ("PATCH", Some(b"")),
        ("DELETE", None),
        ("OPTIONS", None),
        ("GET", Some(b"x")),
    ] {
        let answer = scene.send(&request(method, "/free", &[], body)).await;
        answer::passed(&answer);
        assert_eq!(scene.upstream.last().start_word(0), method);
        assert_eq!(scene.upstream.last().body, body.unwrap_or_default());
    }
    let mut connection = scene.connect().await;
    let call = request("HEAD", "/free", &[], None);
    assert_eq!(connection.send_head(&call).await.status, 200);
    assert_eq!(scene.upstream.last().start_word(0), "HEAD");
    lies.on(Kind::List, Reply::list(&[(ID, "REJECTED")]));
    let head = connection.send_head(&call).await;
    assert_eq!(head.status, 403, "{head}");
    assert_eq!(head.header("x-hoop-approval-id").as_deref(), Some(ID));
    assert_eq!(
        head.header("x-hoop-approval-status").as_deref(),
        Some("REJECTED")
    );
    scene.finish(7).await;
}

async fn a_body_at_the_limit_is_held_and_a_larger_one_is_refused_without_a_wait(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    let body = vec![b'x'; 65_536];
    let mut held = scene.begin("/payments/42", &body).await;
    scene.until_held(1).await;
    let larger = scene
        .post("/payments/42", &[&body[..], b"x"].concat())
        .await;
    answer::policy_with_status(&larger, 403);
    assert_eq!(lies.count(Kind::Filing), 1);

    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));

    answer::passed(&held.answer("the held call").await);
    assert_eq!(scene.upstream.last().body, body);
    scene.finish(1).await;
}

async fn a_connection_goes_on_after_a_hold_of_either_end(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let free = request("GET", "/invoices/1", &[], None);
    let mut connection = scene.connect().await;
    for _ in 0..2 {
        lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
        answer::passed(&connection.send(&call).await);
        answer::passed(&connection.send(&free).await);
        lies.on(Kind::List, Reply::list(&[(ID, "REJECTED")]));
        let refused = connection.send(&call).await;
        answer::settled(&refused, "REJECTED", "the approval request was rejected");
        answer::passed(&connection.send(&free).await);
    }
    scene.until_held(0).await;
    scene.finish(6).await;
}

async fn a_rule_may_return_where_the_listener_holds(host: Host) {
    let mut policy = policy::holding();
    policy["rules"][0]["approval_mode"] = "return".into();
    let scene = Scene::undecided(host, policy, ID).await;
    assert_eq!(
        answer::pending(&scene.post("/payments/42", &scene.body()).await),
        ID
    );
    assert_eq!(scene.lies().call_count(), 1);
    scene.finish(0).await;

    let mut policy = policy::shipped();
    policy["poll_interval_ms"] = 100.into();
    policy["rules"][0]["approval_mode"] = "hold".into();
    let scene = Scene::undecided(host, policy, ID).await;
    let mut held = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    scene.lies().on(Kind::List, Reply::list(&[(ID, "REVOKED")]));
    let answer = held.answer("the held call").await;
    answer::settled(&answer, "REVOKED", "the approval was revoked");
    scene.finish(0).await;
}
