//! A client that asks for one approval after another meets the caps of the plane: no row and no run beyond them, and the
//! others go on.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    a_caller_at_its_cap_is_refused_and_stops_nobody_else,
    a_plane_that_is_full_is_refused_to_all_until_somebody_decides,
    only_the_planes_own_word_says_that_too_many_wait,
}

const TOO_MANY: &str = "statement held for human approval: too many approval requests are waiting for a decision; \
                        wait until some of them are decided";

/// Two of each caller may wait, and three in all.
async fn scene(host: Host) -> Scene {
    let mut policy = policy::with("identity", json!({"header": "x-user"}));
    policy["approval_mode"] = "return".into();
    let scene = Scene::real(host).policy(policy);
    let caps = "max_waiting: 3\nmax_waiting_per_requester: 2\n";
    scene.plane_yaml(caps).start().await
}

async fn refund(scene: &Scene, user: &str, number: u32, mode: &str) -> Answer {
    let target = format!("/payments/{number}/refund");
    let headers = [("x-user", user), ("x-hoop-approval-mode", mode)];
    let request = request("POST", &target, &headers, Some(&scene.body()));
    scene.send(&request).await
}

async fn files(scene: &Scene, user: &str, number: u32) -> String {
    answer::pending(&refund(scene, user, number, "return").await)
}

/// In either mode at once.
async fn is_refused(scene: &Scene, user: &str, number: u32) {
    for mode in ["return", "hold"] {
        answer::policy(&refund(scene, user, number, mode).await, TOO_MANY);
    }
}

async fn counted(scene: &Scene, name: &str) -> u64 {
    let name = format!("wasmcustom.hoop_filter_{name}_total");
    scene.proxy.stat(&name).await
}

async fn a_caller_at_its_cap_is_refused_and_stops_nobody_else(host: Host) {
    let scene = scene(host).await;
    let first = files(&scene, "ann", 1).await;
    files(&scene, "ann", 2).await;

    is_refused(&scene, "ann", 3).await;

    assert_eq!(files(&scene, "ann", 1).await, first, "the one that waits");
    files(&scene, "bob", 4).await;
    scene.plane().approve(&first).await;
    answer::passed(&refund(&scene, "ann", 1, "return").await);
    assert_eq!(scene.plane().rows().await.len(), 3);
    for (name, value) in [
        ("refused_too_many_waiting", 2),
        ("refused_plane_fault", 0),
        ("plane_refusals", 2),
        ("approvals_filed", 3),
        ("requests_released", 1),
    ] {
        assert_eq!(counted(&scene, name).await, value, "{name}");
    }
    let log = scene.proxy.log();
    let lines = log.lines();
    let lines: Vec<_> = lines
        .filter(|line| line.contains("reason=too_many_waiting"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    for line in lines {
        let words = "too many approval requests of this requester are waiting for a decision: there may be 2";
        assert!(line.contains("warn") && line.contains(words), "{line}");
    }
    scene.assert_discreet("the plane's log", &scene.plane().log());
    scene.finish(1).await;
}

async fn a_plane_that_is_full_is_refused_to_all_until_somebody_decides(host: Host) {
    let scene = scene(host).await;
    let first = files(&scene, "ann", 1).await;
    let second = files(&scene, "ann", 2).await;
    files(&scene, "bob", 3).await;

    is_refused(&scene, "bob", 4).await;
    is_refused(&scene, "eve", 5).await;
    scene.plane().reject(&second, "no").await;
    scene.plane().approve(&first).await;
    files(&scene, "eve", 5).await;
    files(&scene, "bob", 4).await;
    is_refused(&scene, "ann", 6).await;
    answer::passed(&refund(&scene, "ann", 1, "return").await);

    assert_eq!(scene.plane().rows().await.len(), 5);
    assert_eq!(counted(&scene, "refused_too_many_waiting").await, 6);
    scene.finish(1).await;
}

async fn only_the_planes_own_word_says_that_too_many_wait(host: Host) {
    let scene = Scene::lying(host).start().await;
    let message = json!({"message": "no more"});

    scene.lies().once(Reply::json(429, &message));
    answer::policy(&scene.post("/payments/1", &scene.body()).await, TOO_MANY);
    for reply in [
        Reply::typed(429, "text/plain", "local_rate_limited"),
        Reply::typed(429, "text/plain", message.to_string()),
        Reply::json(429, &json!({})),
        Reply::json(503, &message),
    ] {
        scene.lies().once(reply);
        answer::not_filed(&scene.post("/payments/1", &scene.body()).await);
    }

    assert_eq!(counted(&scene, "refused_too_many_waiting").await, 1);
    assert_eq!(counted(&scene, "refused_plane_fault").await, 4);
    scene.finish(0).await;
}
