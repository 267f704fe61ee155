//! Clients that send `Expect: 100-continue` and then wait: each gets its 100 or a final answer, whatever the gate wants to know of
//! the body, so that nobody waits for the other.

use hoop_tests::answer;
use hoop_tests::client::{Answer, Connection};
use hoop_tests::host::Host;
use hoop_tests::http1::{Body, request};
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::{Value, json};

on_both_hosts! {
    a_client_that_waits_for_its_100_is_judged_by_the_body_it_then_sends,
    a_client_that_waits_for_its_100_is_refused_by_its_head_alone,
    a_client_that_got_its_100_is_held_until_somebody_decides,
    a_client_that_announces_a_body_over_the_limit_is_refused_however_much_it_sends,
    curl_sends_seventy_kilobytes_behind_its_100_under_each_kind_of_rule,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// One path for each way to be judged.
fn rules() -> Value {
    let over = json!([{"pointer": "/amount", "greater_than": 1000}]);
    json!([
        {"match": {"paths": ["/returned"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE, "approval_mode": "return"},
        {"match": {"paths": ["/held"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE, "approval_mode": "hold"},
        {"match": {"paths": ["/judged"], "json": over}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
        {"match": {"paths": ["/denied"]}, "action": "deny"},
    ])
}

/// The head of a POST that waits for its 100.
fn head(target: &str, length: usize) -> Vec<u8> {
    let length = length.to_string();
    let headers = [("expect", "100-continue"), ("content-length", &length)];
    request("POST", target, &headers, None)
}

/// Sends the head, and gives the first answer to it.
async fn first_answer(scene: &Scene, target: &str, length: usize) -> (Connection, Answer) {
    let mut connection = scene.connect().await;
    connection.write(&head(target, length)).await;
    let first = connection.next("a head with expect", Body::AsResponse);
    let first = first.await.expect("an answer");
    (connection, first)
}

/// Sends the head, waits for the 100, sends `body` and gives the final answer.
async fn patient(scene: &Scene, target: &str, body: &[u8]) -> Answer {
    let (mut connection, first) = first_answer(scene, target, body.len()).await;
    assert_eq!(first.status, 100, "{target}: {first}");
    connection.write(body).await;
    connection.answer("the body behind the 100").await
}

async fn a_client_that_waits_for_its_100_is_judged_by_the_body_it_then_sends(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules()))
        .start()
        .await;
    let large: &[u8] = br#"{"amount":5000}"#;
    let small: &[u8] = br#"{"amount":5}"#;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&patient(&scene, "/returned", small).await);
    answer::pending(&patient(&scene, "/judged", large).await);
    answer::policy_with_status(&patient(&scene, "/judged", b"no JSON").await, 400);
    answer::passed(&patient(&scene, "/judged", small).await);
    assert_eq!(scene.upstream.last().body, small);
    answer::passed(&patient(&scene, "/other", large).await);
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    for target in ["/returned", "/held", "/judged"] {
        answer::passed(&patient(&scene, target, large).await);
        assert_eq!(scene.upstream.last().body, large);
    }
    // Without a body to send there is nothing to wait for.
    answer::passed(&scene.send(&head("/judged", 0)).await);
    scene.finish(6).await;
}

async fn a_client_that_waits_for_its_100_is_refused_by_its_head_alone(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules()))
        .start()
        .await;
    for (target, status) in [("/denied", 403), ("//held", 400), ("/judged/../held", 400)] {
        let (mut connection, first) = first_answer(&scene, target, 10).await;
        let last = if first.status == 100 {
            connection.answer("a head that is refused").await
        } else {
            first
        };
        answer::policy_with_status(&last, status);
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn a_client_that_got_its_100_is_held_until_somebody_decides(host: Host) {
    let scene = Scene::real(host)
        .policy(policy::with_rules(rules()))
        .start()
        .await;
    let body = scene.body();
    let (mut connection, first) = first_answer(&scene, "/held", body.len()).await;
    assert_eq!(first.status, 100, "{first}");
    connection.write(&body).await;
    wait::until("the call is held", async || {
        let held = "wasmcustom.hoop_filter_requests_held";
        (scene.proxy.stat(held).await == 1).then_some(())
    })
    .await;
    let statement = [b"POST /held\n\n".as_slice(), &body].concat();
    let id = scene.plane().id_of(&statement).await;
    scene.plane().approve(&id).await;
    answer::passed(&connection.answer("a call that was held").await);
    assert_eq!(scene.upstream.last().body, body);
    scene.finish(1).await;
}

async fn a_client_that_announces_a_body_over_the_limit_is_refused_however_much_it_sends(
    host: Host,
) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules()))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let body = vec![b' '; 70_000];
    for target in ["/returned", "/held", "/judged"] {
        answer::policy_with_status(&patient(&scene, target, &body).await, 403);
        // One byte too many is enough.
        let (mut connection, first) = first_answer(&scene, target, body.len()).await;
        assert_eq!(first.status, 100, "{first}");
        connection.write(&body[..65_537]).await;
        answer::policy_with_status(&connection.answer("one byte too many").await, 403);
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

/// A curl that would rather give up than send a body without its 100.
async fn curl(scene: &Scene, target: &str, file: &str) -> Answer {
    let data = format!("@{file}");
    let arguments = [
        "--http1.1",
        "--expect100-timeout",
        "600",
        "--header",
        "expect: 100-continue",
        "--header",
        "content-type: application/json",
        "--data-binary",
        &data,
    ];
    scene.curl(target, &arguments).await
}

async fn curl_sends_seventy_kilobytes_behind_its_100_under_each_kind_of_rule(host: Host) {
    let folder = hoop_tests::scene::Folder::create();
    let mut policy = policy::with_rules(rules());
    policy["max_body_bytes"] = 100_000.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    let written = |name: &str, amount: u32, size: usize| {
        let mut body = format!("{{\"amount\":{amount}}}").into_bytes();
        body.resize(size, b' ');
        let file = folder.path().join(name);
        std::fs::write(&file, &body).expect("the folder of the case");
        (file.to_string_lossy().into_owned(), body)
    };
    let (large_file, large) = written("large", 5000, 70_000);
    let (small_file, small) = written("small", 5, 70_000);
    let (too_large_file, _) = written("too-large", 5, 100_001);

    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&curl(&scene, "/returned", &large_file).await);
    answer::pending(&curl(&scene, "/judged", &large_file).await);
    answer::passed(&curl(&scene, "/judged", &small_file).await);
    assert!(scene.upstream.last().body == small);
    answer::policy_with_status(&curl(&scene, "/denied", &large_file).await, 403);
    for target in ["/returned", "/held", "/judged"] {
        answer::policy_with_status(&curl(&scene, target, &too_large_file).await, 403);
    }
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    for target in ["/returned", "/held", "/judged"] {
        answer::passed(&curl(&scene, target, &large_file).await);
        assert!(scene.upstream.last().body == large, "{target}");
    }
    assert_eq!(scene.lies().filed().len(), 5);
    scene.finish(4).await;
}
