//! What an operator sees: a counter and a log line for every decision, and nothing that a client sent in either.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::json;

on_both_hosts! {
    every_outcome_adds_to_its_own_counter,
    a_decision_is_one_line_with_the_approval_and_without_the_statement,
    a_plane_at_fault_is_named_in_the_log_and_not_to_the_client,
    without_a_token_a_query_secret_needs_a_key_of_its_own,
    with_envoys_own_path_normalisation_on_the_gate_stays_closed,
    a_client_that_leaves_while_the_plane_is_asked_is_counted_and_explained,
    an_envoy_that_keeps_the_body_back_is_named_in_the_log,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

async fn counter(scene: &Scene, name: &str) -> u64 {
    scene
        .proxy
        .stat(&format!("wasmcustom.hoop_filter_{name}_total"))
        .await
}

async fn every_outcome_adds_to_its_own_counter(host: Host) {
    let rules = json!([
        {"match": {"paths": ["/admin/**"]}, "action": "deny"},
        {"match": {"paths": ["/payments/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    let lies = scene.lies();

    lies.once(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&scene.post("/payments/1", &scene.body()).await);
    lies.once(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.post("/payments/1", &scene.body()).await);
    lies.once(Reply::review(200, false, ID, "REJECTED"));
    scene.post("/payments/1", b"x").await;
    lies.once(Reply::typed(500, "text/plain", "no"));
    answer::not_filed(&scene.post("/payments/1", b"x").await);
    scene.post("/payments/1", &[b'x'; 70_000]).await;
    scene.post("//payments/1", b"x").await;
    answer::policy_with_status(&scene.get("/admin").await, 403);
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
    scene
        .send(&request("GET", "/payments/1", &upgrade, None))
        .await;
    answer::passed(&scene.get("/free").await);
    lies.once(Reply::read(ID, "PENDING", "billing-api"));
    scene
        .get(&format!("/.well-known/hoop/approvals/{ID}"))
        .await;

    for (name, value) in [
        ("approvals_filed", 1),
        ("requests_released", 1),
        ("requests_passed", 1),
        ("refused_pending", 1),
        ("refused_rejected", 1),
        ("refused_plane_fault", 1),
        ("refused_body_too_large", 1),
        ("refused_ambiguous_path", 1),
        ("refused_deny_rule", 1),
        ("reserved_path_answered", 1),
        ("plane_calls", 5),
        ("plane_failures", 1),
        ("plane_refusals", 1),
        ("plane_unreachable", 0),
        ("internal", 0),
    ] {
        assert_eq!(counter(&scene, name).await, value, "{name}");
    }
    let prometheus = scene.proxy.admin("/stats/prometheus").await;
    assert!(prometheus.contains("hoop_filter_approvals_filed_total{} 1"));
    scene.finish(2).await;
}

async fn a_decision_is_one_line_with_the_approval_and_without_the_statement(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene.lies().once(Reply::review(201, false, ID, "PENDING"));
    scene.lies().once(Reply::review(200, true, ID, "EXECUTED"));
    let target = format!("/payments/1?memo={}", scene.marker);

    answer::pending(&scene.post(&target, &scene.body()).await);
    answer::passed(&scene.post(&target, &scene.body()).await);

    let log = scene.proxy.log();
    let decisions: Vec<_> = log
        .lines()
        .filter_map(|line| line.split_once("decision=").map(|(_, rest)| rest))
        .collect();
    let refused = format!(
        "refused listener=\"billing-api\" rule=\"payments-need-a-person\" reason=pending approval_id={ID} status=PENDING"
    );
    let released = format!(
        "released listener=\"billing-api\" rule=\"payments-need-a-person\" approval_rule=\"billing-approvers\" approval_id={ID}"
    );
    assert_eq!(decisions, [refused, released]);
    scene.finish(1).await;
}

async fn a_plane_at_fault_is_named_in_the_log_and_not_to_the_client(host: Host) {
    let scene = Scene::lying(host).start().await;
    let words = r#"listener "x" is not configured to use approval rule "y""#;
    let refusal = Reply::json(422, &json!({ "message": words }));
    scene.lies().once(refusal);

    let answer = scene.post("/payments/1", b"x").await;

    answer::not_filed(&answer);
    assert!(!answer.text().contains("configured"), "{answer}");
    let log = scene.proxy.log();
    assert!(log.contains("answered with status 422"), "{log}");
    assert!(log.contains("is not configured to use"), "{log}");
    scene.finish(0).await;
}

async fn without_a_token_a_query_secret_needs_a_key_of_its_own(host: Host) {
    let mut keyless = policy::shipped();
    keyless["control_plane"]["credential"] = "none".into();
    let scene = Scene::lying(host).policy(keyless.clone()).start().await;
    let refused = scene.post("/payments/1?api_key=first", b"x").await;
    answer::policy_with_status(&refused, 403);
    assert!(!refused.text().contains("first"), "{refused}");
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;

    keyless["redaction_key_env"] = "HOOP_SIDECAR_TOKEN".into();
    let scene = Scene::lying(host).policy(keyless).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&scene.post("/payments/1?api_key=first", b"x").await);
    answer::pending(&scene.post("/payments/1?api_key=second", b"x").await);
    let filed = scene.lies().filed();
    assert_ne!(filed[0], filed[1]);
    assert_eq!(scene.lies().calls()[0].header("hoop-sidecar-token"), None);
    scene.finish(0).await;
}

async fn with_envoys_own_path_normalisation_on_the_gate_stays_closed(host: Host) {
    let scene = Scene::lying(host)
        .edit_manager(|manager| {
            manager["normalize_path"] = true.into();
            manager["merge_slashes"] = true.into();
            manager["path_with_escaped_slashes_action"] = "UNESCAPE_AND_FORWARD".into();
        })
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));

    for target in [
        "/payments/42",
        "//payments/42",
        "/x/../payments/42",
        "/%70ayments/42",
        "/payments%2F42",
        "/payments%5c42",
        "/%2570ayments/42",
        "/payments;v/42",
        "/x/..;/payments/42",
        "/.well-known/hoop/../../payments/42",
    ] {
        let answer = scene.post(target, &scene.body()).await;
        assert!(matches!(answer.status, 400 | 403), "{target}: {answer}");
    }
    for target in [
        "//.well-known/hoop/approvals/x",
        "/x/../.well-known/hoop/approvals/x",
    ] {
        let answer = scene.get(target).await;
        assert!(matches!(answer.status, 400 | 404), "{target}: {answer}");
    }
    scene.finish(0).await;
}

async fn a_client_that_leaves_while_the_plane_is_asked_is_counted_and_explained(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene.lies().always(Reply::Hang);
    let mut leaving = scene.connect().await;
    leaving
        .write(&request("POST", "/payments/1", &[], Some(&scene.body())))
        .await;
    wait::until("the filing is out", async || {
        (scene.lies().calls().len() == 1).then_some(())
    })
    .await;

    drop(leaving);

    wait::until("the gate has counted it", async || {
        (counter(&scene, "requests_abandoned").await == 1).then_some(())
    })
    .await;
    let log = scene.proxy.log();
    assert!(
        log.contains("decision=abandoned") && log.contains("while the control plane was asked"),
        "{log}"
    );
    scene.finish(0).await;
}

async fn an_envoy_that_keeps_the_body_back_is_named_in_the_log(host: Host) {
    let scene = Scene::lying(host)
        .edit_manager(|manager| {
            manager["http_filters"][0]["typed_config"]["config"]["allow_on_headers_stop_iteration"] =
                false.into();
            manager["request_timeout"] = "1s".into();
        })
        .start()
        .await;

    let answer = scene.post("/payments/1", &scene.body()).await;

    assert_eq!(answer.status, 504, "{answer}");
    let line = wait::until("the gate has said why", async || {
        let log = scene.proxy.log();
        let line = log
            .lines()
            .find(|line| line.contains("decision=abandoned"))?;
        Some(line.to_owned())
    })
    .await;
    assert!(
        line.contains("hint:") && line.contains("allow_on_headers_stop_iteration: true"),
        "{line}"
    );
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}
