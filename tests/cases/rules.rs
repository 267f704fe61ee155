//! Which rule decides: the first that matches, on methods, hosts and paths; without one the call passes.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    the_first_rule_that_matches_decides,
    a_denied_call_says_policy_and_asks_nobody,
    a_rule_for_a_host_holds_in_any_letters_and_with_any_port,
    a_host_that_can_be_read_in_two_ways_is_refused_where_a_rule_names_hosts,
    a_rule_with_a_message_says_it_and_names_its_own_approval_rule,
    a_rule_the_plane_does_not_know_refuses,
    a_gate_without_a_plane_may_deny_and_answers_503_under_the_reserved_path,
    a_gate_without_rules_passes_everything_but_the_reserved_path,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

async fn the_first_rule_that_matches_decides(host: Host) {
    let rules = json!([
        {"name": "dry-runs", "match": {"paths": ["/payments/dry-run"]}, "action": "allow"},
        {"name": "no-refunds", "match": {"paths": ["/payments/*/refund"]}, "action": "deny"},
        {"name": "payments", "match": {"paths": ["/payments/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
        {"name": "never-reached", "match": {"paths": ["/payments/**"]}, "action": "allow"},
    ]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));

    answer::passed(&scene.post("/payments/dry-run", b"x").await);
    answer::policy_with_status(&scene.post("/payments/42/refund", b"x").await, 403);
    answer::pending(&scene.post("/payments/42", b"x").await);
    answer::pending(&scene.get("/payments/42").await);
    answer::pending(&scene.post("/payments/1/2/refund", b"x").await);
    answer::passed(&scene.post("/invoices/42", b"x").await);

    assert_eq!(scene.lies().calls().len(), 3);
    scene.finish(2).await;
}

async fn a_denied_call_says_policy_and_asks_nobody(host: Host) {
    let rules = json!([{"match": {"methods": ["DELETE"]}, "action": "deny"}]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;

    let answer = scene
        .send(&request("DELETE", "/users/1", &[], Some(&scene.body())))
        .await;
    answer::policy_with_status(&answer, 403);
    assert!(answer.text().contains("denied by policy"), "{answer}");
    answer::passed(&scene.get("/users/1").await);

    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(1).await;
}

async fn a_rule_for_a_host_holds_in_any_letters_and_with_any_port(host: Host) {
    let rules = json!([{"match": {"hosts": ["pay.example"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE}]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let call = |host: &str| format!("GET /a HTTP/1.1\r\nhost: {host}\r\n\r\n").into_bytes();

    for host in ["pay.example", "PAY.example", "pay.example:8080"] {
        answer::pending(&scene.send(&call(host)).await);
    }
    answer::passed(&scene.send(&call("billing.example")).await);
    scene.finish(1).await;
}

async fn a_host_that_can_be_read_in_two_ways_is_refused_where_a_rule_names_hosts(host: Host) {
    let rules = json!([{"match": {"hosts": ["pay.example"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE}]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    for hosts in [
        "host: pay.example..",
        "host: pay.example:@x",
        "host: u@pay.example",
        "host: pay%2eexample",
        "host: pay.example;",
        "host: other,pay.example",
        "host: other\r\nhost: pay.example",
        "host: pay.example\r\nhost: other",
    ] {
        let call = format!("GET /a HTTP/1.1\r\n{hosts}\r\n\r\n").into_bytes();
        let answer = scene.send(&call).await;
        assert_eq!(answer.status, 400, "{hosts}: {answer}");
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn a_rule_with_a_message_says_it_and_names_its_own_approval_rule(host: Host) {
    let rules = json!([{
        "match": {"paths": ["/wires/*"]}, "action": "require_approval", "approval_rule": "wire-approvers", "message": "a wire transfer",
    }]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));

    let answer = scene.post("/wires/7", b"x").await;

    let text = format!(
        "a wire transfer: waiting for approval; resend the identical statement once it is approved (approval {ID})\n"
    );
    assert_eq!(answer.text(), text);
    let filing: serde_json::Value =
        serde_json::from_slice(&scene.lies().calls()[0].body).expect("JSON");
    assert_eq!(filing["approval_rule"], "wire-approvers");
    scene.finish(0).await;
}

async fn a_rule_the_plane_does_not_know_refuses(host: Host) {
    let rules = json!([{"action": "require_approval", "approval_rule": "nobody"}]);
    let scene = Scene::real(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;

    answer::not_filed(&scene.post("/payments/42", &scene.body()).await);

    assert_eq!(scene.plane().rows().await.len(), 0);
    scene.finish(0).await;
}

async fn a_gate_without_a_plane_may_deny_and_answers_503_under_the_reserved_path(host: Host) {
    let rules = json!([{"match": {"paths": ["/admin/**"]}, "action": "deny"}]);
    let mut policy = policy::with_rules(rules);
    policy
        .as_object_mut()
        .expect("an object")
        .remove("control_plane");
    let scene = Scene::lying(host).policy(policy).start().await;

    answer::policy_with_status(&scene.get("/admin/x").await, 403);
    answer::passed(&scene.get("/x").await);
    let message = "review status comes from the control plane, and this sidecar has none";
    for family in ["approvals", "reviews"] {
        let answer = scene.get(&format!("/.well-known/hoop/{family}/{ID}")).await;
        answer::reserved_error(&answer, 503, message);
    }
    answer::reserved_error(&scene.get("/.well-known/hoop/").await, 404, "not found");
    answer::reserved_error(&scene.get("/.well-known/hoop/x").await, 404, "not found");
    let answer = scene
        .post(&format!("/.well-known/hoop/approvals/{ID}"), b"")
        .await;
    answer::reserved(&answer, 405);

    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(1).await;
}

async fn a_gate_without_rules_passes_everything_but_the_reserved_path(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(json!([])))
        .start()
        .await;

    answer::passed(&scene.post("/payments/42", &scene.body()).await);
    answer::passed(&scene.get("//x/../y").await);
    answer::reserved(&scene.get("/.well-known/hoop/x").await, 404);

    scene.finish(2).await;
}
