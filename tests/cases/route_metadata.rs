//! Metadata of Envoy's routes in the policy: conditions on them, and routes that bring their own approval rule. A route without one
//! refuses what the rule holds, because nobody could approve it.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use serde_json::{Value, json};

on_both_hosts! {
    a_call_is_judged_by_the_route_that_it_takes,
    a_route_brings_its_own_approval_rule,
    a_route_without_a_usable_approval_rule_refuses_and_nothing_is_filed,
    a_condition_on_the_route_decides_by_each_comparison,
    metadata_that_are_no_text_never_slip_past_a_comparison,
    a_route_that_answers_itself_is_guarded_like_any_other,
    a_rule_on_the_body_finds_the_metadata_of_the_route_again,
    a_client_can_name_no_metadata,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// A route of everything below `prefix`.
fn route(prefix: &str, metadata: Value) -> Value {
    json!({
        "match": {"prefix": prefix},
        "metadata": {"filter_metadata": metadata},
        "route": {"cluster": "billing_upstream", "timeout": "0s"},
    })
}

/// A scene in which `routes` stand in front of the one for everything, with a plane that has filed all and decided nothing.
async fn scene_with(host: Host, rules: Value, routes: Vec<Value>) -> Scene {
    let more = |manager: &mut Value| {
        let all = manager.pointer_mut("/route_config/virtual_hosts/0/routes");
        let all = all.and_then(Value::as_array_mut).expect("routes");
        all.splice(0..0, routes);
    };
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .edit_manager(more)
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    scene
}

/// Holds every POST for whoever the route names.
fn named_by_the_route() -> Value {
    json!([{
        "match": {"methods": ["POST"]},
        "action": "require_approval",
        "approval_rule_from_route": "approval_rule",
    }])
}

/// The approval rule of each filing, in order.
fn asked(scene: &Scene) -> Vec<String> {
    let calls = scene.lies().calls();
    let rule = |body: &[u8]| -> String {
        let filing: Value = serde_json::from_slice(body).expect("JSON");
        filing["approval_rule"].as_str().expect("a rule").to_owned()
    };
    calls.iter().map(|call| rule(&call.body)).collect()
}

async fn a_route_brings_its_own_approval_rule(host: Host) {
    let routes = vec![
        route(
            "/billing",
            json!({"hoop": {"approval_rule": "billing-approvers"}}),
        ),
        route(
            "/wires",
            json!({"hoop": {"approval_rule": "wire approvers ü", "tier": "gold"}, "other": {"approval_rule": "nobody"}}),
        ),
    ];
    let scene = scene_with(host, named_by_the_route(), routes).await;
    for target in ["/billing/1", "/wires/1?a=b"] {
        answer::pending(&scene.post(target, b"x").await);
        let over_h2 = H2Request::new("POST", target, Some(b"x"));
        answer::pending(&scene.connect_h2().await.send(&over_h2).await);
    }
    let (billing, wires) = ("billing-approvers", "wire approvers ü");
    assert_eq!(asked(&scene), [billing, billing, wires, wires]);
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.post("/wires/1?a=b", b"x").await);
    assert_eq!(scene.upstream.last().body, b"x");
    answer::passed(&scene.get("/wires/1").await);
    answer::passed(&scene.get("/elsewhere").await);
    scene.finish(3).await;
}

async fn a_route_without_a_usable_approval_rule_refuses_and_nothing_is_filed(host: Host) {
    let values = [
        ("absent", json!({})),
        (
            "other-key",
            json!({"hoop": {"Approval_Rule": "billing-approvers"}}),
        ),
        (
            "other-namespace",
            json!({"Hoop": {"approval_rule": "billing-approvers"}}),
        ),
        ("empty", json!({"hoop": {"approval_rule": ""}})),
        ("blank", json!({"hoop": {"approval_rule": " \t "}})),
        (
            "two-lines",
            json!({"hoop": {"approval_rule": "billing\napprovers"}}),
        ),
        ("long", json!({"hoop": {"approval_rule": "x".repeat(256)}})),
        ("null", json!({"hoop": {"approval_rule": null}})),
        ("yes", json!({"hoop": {"approval_rule": true}})),
        ("number", json!({"hoop": {"approval_rule": 1}})),
        (
            "list",
            json!({"hoop": {"approval_rule": ["billing-approvers"]}}),
        ),
        (
            "group",
            json!({"hoop": {"approval_rule": {"name": "billing-approvers"}}}),
        ),
    ];
    let routes = values
        .clone()
        .map(|(name, value)| route(&format!("/{name}"), value));
    let scene = scene_with(host, named_by_the_route(), routes.to_vec()).await;
    let targets = values.iter().map(|(name, _)| format!("/{name}"));
    for target in targets.chain(["/".to_owned()]) {
        let answer = scene.post(&target, b"x").await;
        answer::policy_with_status(&answer, 403);
        assert!(
            answer.text().contains("approval rule"),
            "{target}: {answer}"
        );
    }
    let refused = "wasmcustom.hoop_filter_refused_no_approval_rule_total";
    assert_eq!(scene.proxy.stat(refused).await, 13);
    answer::passed(&scene.get("/absent").await);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(1).await;
}

async fn a_condition_on_the_route_decides_by_each_comparison(host: Host) {
    let rule = |condition: Value, message: &str| json!({"match": {"route_metadata": [condition]}, "action": "deny", "message": message});
    let rules = json!([
        rule(json!({"key": "tier", "equals": "gold"}), "equals"),
        rule(json!({"key": "tier", "in": ["silver", "bronze"]}), "in"),
        rule(json!({"key": "tier", "glob": "pla*num"}), "glob"),
        rule(json!({"namespace": "com.example/team", "key": "owner", "exists": true}), "exists"),
        {"match": {"route_metadata": [{"key": "public", "exists": false}]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let routes = vec![
        route("/gold", json!({"hoop": {"tier": "gold"}})),
        route("/Gold", json!({"hoop": {"tier": "Gold", "public": "yes"}})),
        route("/bronze", json!({"hoop": {"tier": "bronze"}})),
        route("/platinum", json!({"hoop": {"tier": "platinum"}})),
        route("/owned", json!({"com.example/team": {"owner": "payments"}})),
        route(
            "/public",
            json!({"hoop": {"public": "yes"}, "com.example": {"owner": "payments"}}),
        ),
        route("/plain", json!({"hoop": {"tier": "none"}})),
    ];
    let scene = scene_with(host, rules, routes).await;
    for (target, message) in [
        ("/gold", "equals"),
        ("/bronze", "in"),
        ("/platinum", "glob"),
        ("/owned", "exists"),
    ] {
        answer::policy(&scene.get(target).await, message);
    }
    answer::pending(&scene.get("/plain").await);
    answer::pending(&scene.get("/anything").await);
    answer::passed(&scene.get("/public").await);
    answer::passed(&scene.get("/Gold").await);
    scene.finish(2).await;
}

async fn metadata_that_are_no_text_never_slip_past_a_comparison(host: Host) {
    let values = [
        ("number", json!(1)),
        ("zero", json!(0)),
        ("yes", json!(true)),
        ("list", json!(["1"])),
        ("group", json!({"tier": "1"})),
        ("null", json!(null)),
    ];
    let condition = json!([{"key": "tier", "equals": "1"}]);
    let rules = json!([
        {"match": {"methods": ["POST"], "route_metadata": condition}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
        {"match": {"methods": ["PUT"], "route_metadata": condition}, "action": "allow"},
        {"match": {"methods": ["PUT"]}, "action": "deny", "message": "not allowed"},
    ]);
    let routes = values
        .clone()
        .map(|(name, value)| route(&format!("/{name}"), json!({"hoop": {"tier": value}})));
    let scene = scene_with(host, rules, routes.to_vec()).await;
    for (name, _) in &values {
        let target = format!("/{name}");
        let answer = scene.post(&target, b"x").await;
        answer::policy_with_status(&answer, 403);
        assert!(answer.text().contains("are no text"), "{target}: {answer}");
        let put = request("PUT", &target, &[], Some(b"x"));
        answer::policy(&scene.send(&put).await, "not allowed");
    }
    let refused = "wasmcustom.hoop_filter_refused_route_metadata_total";
    assert_eq!(scene.proxy.stat(refused).await, 6);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn a_route_that_answers_itself_is_guarded_like_any_other(host: Host) {
    let direct = |prefix: &str, metadata: Value| {
        json!({
            "match": {"prefix": prefix},
            "metadata": {"filter_metadata": metadata},
            "direct_response": {"status": 200, "body": {"inline_string": "by the route"}},
        })
    };
    let routes = vec![
        direct(
            "/named",
            json!({"hoop": {"approval_rule": "billing-approvers"}}),
        ),
        direct("/unnamed", json!({})),
    ];
    let scene = scene_with(host, named_by_the_route(), routes).await;
    answer::pending(&scene.post("/named", b"x").await);
    answer::policy_with_status(&scene.post("/unnamed", b"x").await, 403);
    assert_eq!(scene.get("/unnamed").await.text(), "by the route");
    assert_eq!(asked(&scene), ["billing-approvers"]);
    scene.finish(0).await;
}

async fn a_rule_on_the_body_finds_the_metadata_of_the_route_again(host: Host) {
    let rules = json!([{
        "match": {"json": [{"pointer": "/amount", "greater_than": 1000}], "route_metadata": [{"key": "tier", "equals": "gold"}]},
        "action": "require_approval",
        "approval_rule_from_route": "approval_rule",
    }]);
    let routes = vec![
        route(
            "/gold",
            json!({"hoop": {"tier": "gold", "approval_rule": "gold-approvers"}}),
        ),
        route("/orphan", json!({"hoop": {"tier": "gold"}})),
        route(
            "/tin",
            json!({"hoop": {"tier": "tin", "approval_rule": "tin-approvers"}}),
        ),
    ];
    let scene = scene_with(host, rules, routes).await;
    let (large, small) = (br#"{"amount":5000}"#, br#"{"amount":5}"#);
    answer::pending(&scene.post("/gold", large).await);
    answer::passed(&scene.post("/gold", small).await);
    answer::policy_with_status(&scene.post("/gold", b"no JSON").await, 400);
    answer::policy_with_status(&scene.post("/orphan", large).await, 403);
    answer::passed(&scene.post("/orphan", small).await);
    answer::passed(&scene.post("/tin", large).await);
    answer::passed(&scene.post("/elsewhere", large).await);
    assert_eq!(asked(&scene), ["gold-approvers"]);
    scene.finish(4).await;
}

/// A host chooses anew when the gate changes a header, so that a call would be judged by one route and take another.
async fn a_call_is_judged_by_the_route_that_it_takes(host: Host) {
    let mut free = route("/", json!({"hoop": {"tier": "free"}}));
    free["match"]["headers"] = json!([{"name": "x-hoop-approval-mode", "present_match": true}]);
    let gold = route("/", json!({"hoop": {"tier": "gold"}}));
    let rules = json!([{
        "match": {"route_metadata": [{"key": "tier", "equals": "gold"}]},
        "action": "require_approval",
        "approval_rule": APPROVAL_RULE,
    }]);
    let scene = scene_with(host, rules, vec![free, gold]).await;
    let header = [("x-hoop-approval-mode", "return")];
    let call = request("POST", "/payments/42", &header, Some(b"x"));

    let free = scene.send(&call).await;

    answer::passed(&free);
    assert_eq!(scene.upstream.last().header("x-hoop-approval-mode"), None);
    answer::pending(&scene.post("/payments/42", b"x").await);
    scene.finish(1).await;
}

async fn a_client_can_name_no_metadata(host: Host) {
    let routes = vec![route(
        "/billing",
        json!({"hoop": {"approval_rule": "billing-approvers"}}),
    )];
    let scene = scene_with(host, named_by_the_route(), routes).await;
    let headers = [
        ("approval_rule", "nobody"),
        ("x-envoy-route-metadata", "nobody"),
        ("x-envoy-peer-metadata", "nobody"),
        ("hoop", "nobody"),
    ];
    // Envoy refuses names with underscores before the gate sees them.
    let call = request("POST", "/billing/1", &headers[1..], Some(b"x"));
    answer::pending(&scene.send(&call).await);
    let call = request("POST", "/other/1", &headers[1..], Some(b"x"));
    answer::policy_with_status(&scene.send(&call).await, 403);
    let call = request("POST", "/billing/1", &headers[..1], Some(b"x"));
    assert_eq!(scene.send(&call).await.status, 400);
    // The path that the filter reads is the one that the route was chosen by.
    for target in ["/billing/../other", "/other/..%2fbilling", "/BILLING/1"] {
        let answer = scene.post(target, b"x").await;
        assert_ne!(answer.status, 200, "{target}");
    }
    assert!(asked(&scene).iter().all(|rule| rule == "billing-approvers"));
    scene.finish(0).await;
}
