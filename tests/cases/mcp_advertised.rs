//! A listener whose agents have the approval tools elsewhere: what its refusals say.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::ledger::{LedgerScene, holding};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    a_refusal_of_a_call_that_waits_leads_with_the_id_and_names_the_tool,
    a_refusal_over_grpc_names_the_tool_as_well,
}

async fn a_refusal_of_a_call_that_waits_leads_with_the_id_and_names_the_tool(host: Host) {
    let scene = Scene::real(host).policy(policy::advertising_tools());
    let scene = scene.start().await;

    let held = scene.post("/payments/1", &scene.body()).await;

    let id = answer::pending_with_tools(&held);
    // A decision that stands needs no tool to wait with.
    scene.plane().reject(&id, "no").await;
    let mut connection = scene.connect().await;
    let status = format!("/.well-known/hoop/approvals/{id}");
    let told = connection
        .send(&hoop_tests::http1::request("GET", &status, &[], None))
        .await;
    assert_eq!(told.json()["next"], "stop");
    scene.finish(0).await;
}

async fn a_refusal_over_grpc_names_the_tool_as_well(host: Host) {
    let mut policy = holding(&["Post"], "return");
    policy["mcp"] = json!({"advertise": true});
    let world = LedgerScene::start(Scene::real(host).policy(policy)).await;
    let request = world.posting(5);

    let refused = world.client().await.post(request).await;

    let refused = refused.expect_err("held");
    let id = refused.metadata().get("x-hoop-approval-id").expect("an id");
    let id = id.to_str().expect("a text");
    assert_eq!(refused.message(), answer::names_the_tool(id));
    world.scene.finish(0).await;
}
