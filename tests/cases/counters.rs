//! Each counter where it should move, and nowhere else.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;

on_both_hosts! {
    every_metric_shows_from_the_start_with_zero,
    each_kind_of_failure_of_the_plane_has_its_counter,
    each_way_an_approval_stands_has_its_counter,
    every_call_to_the_plane_is_counted,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const FAILURES: [&str; 5] = [
    "plane_bad_answers",
    "plane_credential_failures",
    "plane_refusals",
    "plane_timeouts",
    "plane_unreachable",
];
const REFUSALS: [&str; 12] = [
    "refused_ambiguous_path",
    "refused_body_too_large",
    "refused_deny_rule",
    "refused_expired",
    "refused_hold_timeout",
    "refused_malformed",
    "refused_not_released",
    "refused_pending",
    "refused_plane_fault",
    "refused_redaction_key",
    "refused_rejected",
    "refused_used",
];
const OTHERS: [&str; 12] = [
    "approvals_filed",
    "approvals_returned",
    "approvals_spent_not_run",
    "internal",
    "observed_holds",
    "observed_refusals",
    "plane_calls",
    "plane_failures",
    "requests_abandoned",
    "requests_passed",
    "requests_released",
    "reserved_path_answered",
];

async fn every_metric_shows_from_the_start_with_zero(host: Host) {
    let scene = Scene::lying(host).workers(2).start().await;
    let shown = scene.proxy.admin("/stats?filter=hoop_filter").await;
    for name in FAILURES.iter().chain(&REFUSALS).chain(&OTHERS) {
        let line = format!("wasmcustom.hoop_filter_{name}_total: 0\n");
        assert!(shown.contains(&line), "{name} in {shown}");
    }
    let gauge = "wasmcustom.hoop_filter_requests_held: 0";
    assert!(shown.contains(gauge), "{shown}");
    scene.finish(0).await;
}

async fn each_kind_of_failure_of_the_plane_has_its_counter(host: Host) {
    let mut policy = policy::shipped();
    policy["control_plane"]["timeout_ms"] = 300.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    let lies = scene.lies();
    let json = |status| Reply::json(status, &serde_json::json!({"message": "no"}));
    let cases = [
        ("plane_bad_answers", Reply::typed(200, "text/html", "<p>")),
        (
            "plane_bad_answers",
            Reply::typed(200, "application/json", "[]"),
        ),
        (
            "plane_bad_answers",
            Reply::review(200, true, "42", "EXECUTED"),
        ),
        ("plane_credential_failures", json(401)),
        ("plane_credential_failures", json(403)),
        ("plane_refusals", json(422)),
        ("plane_refusals", json(500)),
        ("plane_timeouts", Reply::Hang),
        ("plane_unreachable", Reply::Truncated(Vec::new())),
    ];
    for (index, (name, reply)) in cases.into_iter().enumerate() {
        let before = scene.counter(name).await;
        lies.on(Kind::Filing, reply);
        answer::not_filed(&scene.post("/payments/42", b"x").await);
        assert_eq!(scene.counter(name).await, before + 1, "{name}");
        let mut sum = 0;
        for failure in FAILURES {
            sum += scene.counter(failure).await;
        }
        let count = index as u64 + 1;
        assert_eq!((sum, scene.counter("plane_failures").await), (count, count));
        assert_eq!(scene.counter("refused_plane_fault").await, count);
    }
    lies.stop().await;
    let before = scene.counter("plane_unreachable").await;
    answer::not_filed(&scene.post("/payments/42", b"x").await);
    assert_eq!(scene.counter("plane_unreachable").await, before + 1);
    scene.finish(0).await;
}

async fn each_way_an_approval_stands_has_its_counter(host: Host) {
    let scene = Scene::lying(host).start().await;
    for (status, name) in [
        ("PENDING", "refused_pending"),
        ("REJECTED", "refused_rejected"),
        ("REVOKED", "refused_rejected"),
        ("EXECUTED", "refused_used"),
        ("EXPIRED", "refused_expired"),
        ("APPROVED", "refused_not_released"),
        ("PROCESSING", "refused_not_released"),
        ("FOO", "refused_not_released"),
    ] {
        let before = scene.counter(name).await;
        let stands = Reply::review(200, false, ID, status);
        scene.lies().on(Kind::Filing, stands);
        let answer = scene.post("/payments/42", b"x").await;
        assert_eq!(answer.status, 403, "{answer}");
        assert_eq!(scene.counter(name).await, before + 1, "{status}");
    }
    let mut sum = 0;
    for name in REFUSALS {
        sum += scene.counter(name).await;
    }
    assert_eq!(sum, 8);
    // None of them was new, and none is a failure.
    assert_eq!(scene.counter("approvals_filed").await, 0);
    assert_eq!(scene.counter("plane_failures").await, 0);
    scene.finish(0).await;
}

async fn every_call_to_the_plane_is_counted(host: Host) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    lies.undecided(ID);
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::Other, Reply::read(ID, "PENDING", policy::LISTENER));
    let mut held = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::List, 3).await;
    let status = format!("/.well-known/hoop/approvals/{ID}");
    answer::reserved(&scene.get(&status).await, 200);
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    answer::passed(&held.answer("the held call").await);
    scene.until_held(0).await;
    // Nobody waits any more, so the last call has come or is on its way.
    hoop_tests::wait::until("the plane got what was counted", async || {
        let counted = scene.counter("plane_calls").await;
        (counted == lies.call_count() as u64).then_some(())
    })
    .await;
    assert_eq!(scene.counter("reserved_path_answered").await, 1);
    scene.finish(1).await;
}
