//! `enforcement: observe`: nothing is filed and nothing refused; counters and log say what would have been.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    a_policy_that_only_observes_lets_everything_through_and_says_what_it_would_have_done,
    a_body_passes_unread_and_whole_where_the_policy_only_observes,
    a_policy_that_only_observes_needs_no_plane_that_answers,
    the_reserved_path_and_the_headers_of_the_gate_stay_its_own_while_it_observes,
}

async fn observing(host: Host) -> Scene {
    let rules = json!([
        {"name": "no-admin", "match": {"paths": ["/admin/**"]}, "action": "deny"},
        {"name": "payments", "match": {"paths": ["/payments/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let mut policy = policy::with_rules(rules);
    policy["enforcement"] = "observe".into();
    Scene::lying(host).policy(policy).start().await
}

async fn a_policy_that_only_observes_lets_everything_through_and_says_what_it_would_have_done(
    host: Host,
) {
    let scene = observing(host).await;
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
    let body = scene.body();
    let calls = [
        (
            "payments",
            "hold",
            request("POST", "/payments/1", &[], Some(&body)),
        ),
        (
            "payments",
            "hold",
            request("GET", "/payments/1?api_key=x", &[], None),
        ),
        (
            "no-admin",
            "deny_rule",
            request("GET", "/admin/users", &[], None),
        ),
        (
            "payments",
            "ambiguous_path",
            request("POST", "//payments/1", &[], Some(&body)),
        ),
        (
            "no-admin",
            "ambiguous_path",
            request("GET", "/x/..%2fadmin", &[], None),
        ),
    ];
    let count = calls.len();
    for (rule, would, call) in calls {
        answer::passed(&scene.send(&call).await);
        let rule = format!("rule={rule:?}");
        let would = format!("would={would}");
        scene
            .until_logged(&[
                "decision=observed",
                "listener=\"billing-api\"",
                &rule,
                &would,
            ])
            .await;
    }
    // Envoy refuses an upgrade that its configuration does not name; the gate only says that it would have.
    scene
        .send(&request("GET", "/payments/1", &upgrade, None))
        .await;
    answer::passed(&scene.get("/free").await);

    assert_eq!(scene.counter("observed_holds").await, 2);
    assert_eq!(scene.counter("requests_passed").await, 1);
    assert_eq!(scene.lies().call_count(), 0);
    for name in [
        "plane_calls",
        "approvals_filed",
        "requests_released",
        "refused_deny_rule",
        "refused_ambiguous_path",
        "refused_upgrade",
        "internal",
    ] {
        assert_eq!(scene.counter(name).await, 0, "{name}");
    }
    let refusals = scene.counter("observed_refusals").await;
    assert!(matches!(refusals, 3 | 4), "{refusals}");
    let log = scene.proxy.log();
    assert!(!log.contains("decision=refused"), "{log}");
    scene.finish(count + 1).await;
}

async fn a_body_passes_unread_and_whole_where_the_policy_only_observes(host: Host) {
    let scene = observing(host).await;
    let body = vec![b'x'; 300_000];
    answer::passed(&scene.post("/payments/1", &body).await);
    assert_eq!(scene.upstream.last().body, body);
    assert_eq!(scene.counter("observed_holds").await, 1);
    scene.finish(1).await;
}

async fn a_policy_that_only_observes_needs_no_plane_that_answers(host: Host) {
    let scene = observing(host).await;
    scene.lies().stop().await;
    answer::passed(&scene.post("/payments/1", &scene.body()).await);
    assert_eq!(scene.counter("plane_failures").await, 0);
    scene.finish(1).await;
}

async fn the_reserved_path_and_the_headers_of_the_gate_stay_its_own_while_it_observes(host: Host) {
    let scene = observing(host).await;
    let missing = scene.get("/.well-known/hoop/approvals/x").await;
    answer::reserved(&missing, 404);
    let claims = [("x-hoop-approval-mode", "hold"), ("X-Hoop-Denied", "no")];
    let call = request("POST", "/payments/1", &claims, Some(b"x"));
    answer::passed(&scene.send(&call).await);
    for (name, _) in claims {
        assert_eq!(scene.upstream.last().header(name), None, "{name}");
    }
    scene.finish(1).await;
}
