//! The heartbeat that shows this Envoy to the plane: one for all workers, and never needed for an approval.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::{Value, json};

on_both_hosts! {
    of_several_workers_one_shakes_hands,
    approvals_need_no_handshake,
    without_the_setting_there_is_no_handshake,
    a_real_plane_shows_the_gate_as_connected_with_its_version,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

async fn beating(host: Host, beats: bool, handshake: Reply) -> Scene {
    let mut policy = policy::holding_for_a_second();
    policy["control_plane"]["heartbeat"] = beats.into();
    let scene = Scene::lying(host).policy(policy).workers(4).script(|lies| {
        lies.on(Kind::Handshake, handshake);
        lies.undecided(ID);
        lies.on(Kind::Claim, Reply::review(200, false, ID, "PENDING"));
    });
    scene.start().await
}

/// A hold of a second: by its end every worker has had the time for its first heartbeat.
async fn hold_for_a_second(scene: &Scene) {
    let answer = scene.post("/payments/42", &scene.body()).await;
    assert_eq!(answer::hold_over(&answer, "1s"), ID);
}

async fn of_several_workers_one_shakes_hands(host: Host) {
    let configuration = json!({"load_from_disk": true});
    let scene = beating(host, true, Reply::json(200, &configuration)).await;
    let lies = scene.lies();
    lies.until_asked(Kind::Handshake, 1).await;

    hold_for_a_second(&scene).await;

    let handshakes = lies.calls_of(Kind::Handshake);
    assert_eq!(handshakes.len(), 1);
    let handshake = &handshakes[0];
    let body: Value = serde_json::from_slice(&handshake.body).expect("JSON");
    assert_eq!(body["last_outcome"], "applied");
    let version = body["version"].as_str().expect("a version");
    assert!(!version.is_empty());
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(2));
    let json = Some("application/json");
    assert_eq!(handshake.header("content-type").as_deref(), json);
    assert!(handshake.header("hoop-sidecar-token").is_some());
    let capabilities = handshake.header("hoop-sidecar-capabilities");
    let capabilities = capabilities.expect("capabilities");
    assert!(
        capabilities.split(',').any(|can| can == "approval_mode"),
        "{capabilities}"
    );
    assert!(!scene.proxy.log().contains("heartbeat=failed"));
    scene.finish(0).await;
}

async fn approvals_need_no_handshake(host: Host) {
    for refusal in [
        Reply::json(403, &json!({"message": "forbidden"})),
        Reply::json(412, &json!({"message": "no configuration stored"})),
        Reply::Truncated(Vec::new()),
    ] {
        let scene = beating(host, true, refusal).await;
        let lies = scene.lies();
        scene.until_logged(&["heartbeat=failed"]).await;
        hold_for_a_second(&scene).await;
        lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
        lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
        answer::passed(&scene.post("/payments/42", &scene.body()).await);
        assert_eq!(lies.count(Kind::Handshake), 1);
        scene.finish(1).await;
    }
}

async fn without_the_setting_there_is_no_handshake(host: Host) {
    let scene = beating(host, false, Reply::json(200, &json!({}))).await;
    hold_for_a_second(&scene).await;
    assert_eq!(scene.lies().count(Kind::Handshake), 0);
    scene.finish(0).await;
}

async fn a_real_plane_shows_the_gate_as_connected_with_its_version(host: Host) {
    let mut policy = policy::shipped();
    policy["control_plane"]["heartbeat"] = true.into();
    let scene = Scene::real(host).policy(policy).start().await;

    let sidecar = wait::until("the plane has heard of the gate", async || {
        let sidecar = scene.plane().sidecar().await;
        (sidecar["connected"] == true).then_some(sidecar)
    })
    .await;

    assert_eq!(sidecar["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(sidecar["last_outcome"], "applied");
    let capabilities = sidecar["capabilities"].as_array().expect("a list");
    assert!(capabilities.contains(&json!("approval_mode")), "{sidecar}");
    scene.finish(0).await;
}
