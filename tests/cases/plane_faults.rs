//! What a plane can do wrong. Whatever it does, a held call is refused, the client learns nothing about the plane, and all works
//! again when the plane does.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::json;

on_both_hosts! {
    an_answer_that_is_no_clear_release_refuses_the_call_and_tells_nothing_about_the_plane,
    a_redirect_of_the_plane_is_not_followed_and_the_token_goes_nowhere_else,
    only_forward_releases_whatever_the_status_says,
    a_release_under_200_or_201_passes_and_asks_once,
    an_id_or_status_with_a_line_break_reaches_no_header,
    a_plane_that_is_down_refuses_and_works_again_when_it_is_back,
    a_plane_that_hangs_refuses_after_the_configured_time,
    a_slow_plane_holds_up_only_the_call_that_waits_for_it,
    a_cluster_that_the_bootstrap_does_not_have_refuses_each_held_call,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const JSON: &str = "application/json";

/// Answers to a filing that are no release and name no approval: refused as "could not be filed".
fn unusable() -> Vec<(&'static str, Reply)> {
    let released = json!({"forward": true, "review": {"id": ID, "status": "EXECUTED"}}).to_string();
    let review =
        |review: serde_json::Value| Reply::json(200, &json!({"forward": true, "review": review}));
    let mut cases = vec![
        ("HTML", Reply::typed(200, "text/html", "<html>forward: true</html>")),
        ("an empty 200", Reply::typed(200, JSON, "")),
        ("an empty 200 without a content type", Reply::with_headers(200, &[], "")),
        ("null", Reply::typed(200, JSON, "null")),
        ("an array", Reply::typed(200, JSON, "[]")),
        ("true", Reply::typed(200, JSON, "true")),
        ("a release in an array", Reply::typed(200, JSON, format!("[{released}]"))),
        ("half a release", Reply::typed(200, JSON, &released[..released.len() - 3])),
        ("forward twice", Reply::typed(200, JSON, format!("{{\"forward\":false,{}", &released[1..]))),
        ("Forward with a capital", Reply::typed(200, JSON, released.replace("forward", "Forward"))),
        ("a release and more", Reply::typed(200, JSON, format!("{released}{released}"))),
        ("forward without a review", Reply::json(200, &json!({"forward": true}))),
        ("forward with a review that is null", review(json!(null))),
        ("forward with a review without id", review(json!({"status": "EXECUTED"}))),
        ("forward with an empty id", review(json!({"id": "", "status": "EXECUTED"}))),
        ("forward with an id that is a number", review(json!({"id": 7, "status": "EXECUTED"}))),
        ("forward with an id that is no uuid", review(json!({"id": "42", "status": "EXECUTED"}))),
        ("a release as plain text", Reply::typed(200, "text/plain", &released)),
        ("a release without a content type", Reply::with_headers(200, &[], &released)),
        ("a release of 2 MiB", {
            let padding = " ".repeat(2 * 1024 * 1024);
            Reply::typed(200, JSON, format!("{released}{padding}"))
        }),
        ("a body that ends early", Reply::Truncated(
            format!("HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-length: {}\r\n\r\n{released}", released.len() + 9).into_bytes(),
        )),
        ("a head that ends early", Reply::Truncated(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec())),
        ("a closed connection", Reply::Truncated(Vec::new())),
        ("no HTTP", Reply::Truncated(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
    ];
    // A status other than 200 and 201 is never a release, whatever the body says.
    for status in [
        202, 204, 206, 226, 300, 400, 401, 403, 404, 409, 412, 413, 422, 429, 500, 502, 503, 504,
    ] {
        let body = if status == 204 { "" } else { &released };
        cases.push((
            "a release under another status",
            Reply::typed(status, JSON, body),
        ));
    }
    let messages = [
        (401, "access denied"),
        (403, "forbidden"),
        (412, "sidecar reviews are served by the control plane"),
        (413, "statement is larger than 100000 bytes"),
        (
            422,
            "listener \"billing-api\" is not configured to use approval rule \"billing-approvers\"",
        ),
        (500, "failed creating sidecar review"),
        (503, "no healthy upstream"),
    ];
    for (status, message) in messages {
        cases.push((message, Reply::json(status, &json!({"message": message}))));
    }
    cases
}

async fn an_answer_that_is_no_clear_release_refuses_the_call_and_tells_nothing_about_the_plane(
    host: Host,
) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    let mut wrong = Vec::new();
    for (what, reply) in unusable() {
        scene.lies().always(reply.clone());
        let answer = scene.post("/payments/42", &body).await;
        let told = std::panic::catch_unwind(|| answer::not_filed(&answer));
        if told.is_err() {
            wrong.push(format!("{what}\n  plane: {reply:?}\n  client: {answer}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );

    // After all that the gate still works, without a restart.
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.post("/payments/42", &body).await);
    scene.finish(1).await;
}

async fn a_redirect_of_the_plane_is_not_followed_and_the_token_goes_nowhere_else(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    let elsewhere = scene.upstream.address();
    for status in [301, 302, 303, 307, 308] {
        let location = format!("http://{elsewhere}/api/sidecars/reviews");
        scene
            .lies()
            .always(Reply::with_headers(status, &[("location", &location)], ""));
        answer::not_filed(&scene.post("/payments/42", &body).await);
    }
    assert_eq!(scene.lies().calls().len(), 5);
    scene.finish(0).await;
}

async fn only_forward_releases_whatever_the_status_says(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    let not_released = "the statement was not released";
    let cases = [
        ("APPROVED", not_released),
        ("PROCESSING", not_released),
        ("FOO", not_released),
        ("REJECTED", "the approval request was rejected"),
        ("REVOKED", "the approval was revoked"),
        ("EXECUTED", "the approval was already used"),
        (
            "EXPIRED",
            "the approval request expired; running the statement again files a new approval request",
        ),
    ];
    for (status, reason) in cases {
        scene.lies().always(Reply::review(200, false, ID, status));
        let answer = scene.post("/payments/42", &body).await;
        assert_eq!(answer::settled(&answer, status, reason), ID);
    }
    for code in [200, 201] {
        scene
            .lies()
            .always(Reply::review(code, false, ID, "PENDING"));
        assert_eq!(
            answer::pending(&scene.post("/payments/42", &body).await),
            ID
        );
    }
    for forward in [
        json!("true"),
        json!(1),
        json!(null),
        json!({}),
        json!([true]),
    ] {
        let review = json!({"forward": forward, "review": {"id": ID, "status": "EXECUTED"}});
        scene.lies().always(Reply::json(200, &review));
        let answer = scene.post("/payments/42", &body).await;
        assert_eq!(answer.status, 403, "forward {forward}: {answer}");
    }
    scene.finish(0).await;
}

async fn a_release_under_200_or_201_passes_and_asks_once(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    for code in [200, 201] {
        scene
            .lies()
            .always(Reply::review(code, true, ID, "EXECUTED"));
        answer::passed(&scene.post("/payments/42", &body).await);
    }
    let calls = scene.lies().calls();
    assert_eq!(calls.len(), 2);
    for call in calls {
        assert_eq!(call.start, b"POST /api/sidecars/reviews HTTP/1.1");
        assert_eq!(call.header("content-type").as_deref(), Some(JSON));
        assert!(call.header("hoop-sidecar-token").is_some());
        assert_eq!(call.header("hoop-sidecar-identity"), None);
        assert_eq!(call.header("authorization"), None);
    }
    scene.finish(2).await;
}

async fn an_id_or_status_with_a_line_break_reaches_no_header(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    let evil = [
        "a\r\nx-evil: 1",
        "a\nb",
        "a b",
        "a\u{0}b",
        "é",
        "<b>",
        &"7".repeat(70_000),
    ];
    for value in evil {
        let texts = [(value, "PENDING"), (ID, value), (value, value)];
        for (id, status) in texts {
            scene.lies().always(Reply::review(201, false, id, status));
            let answer = scene.post("/payments/42", &body).await;
            no_injection(&answer);
            scene.lies().always(Reply::review(200, true, id, status));
            if id != ID {
                no_injection(&scene.post("/payments/42", &body).await);
            }
        }
    }
    scene.finish(0).await;
}

fn no_injection(answer: &Answer) {
    assert_eq!(answer.status, 403, "{answer}");
    assert_eq!(answer.header("x-evil"), None, "{answer}");
    for name in [
        "x-hoop-approval-id",
        "x-hoop-review-id",
        "x-hoop-approval-status",
        "x-hoop-review-status",
    ] {
        let value = answer.header(name).unwrap_or_default();
        let plain = value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        assert!(plain && value.len() <= 64, "{name}: {value:?} in {answer}");
    }
    let text = answer.text();
    assert!(
        !text.trim_end_matches('\n').contains(['\r', '\n', '\0']),
        "{text:?}"
    );
    assert!(text.len() < 2_000, "{} bytes of text", text.len());
}

async fn a_plane_that_is_down_refuses_and_works_again_when_it_is_back(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&scene.post("/payments/42", &body).await);

    scene.lies().stop().await;
    answer::not_filed(&scene.post("/payments/42", &body).await);
    answer::not_filed(&scene.post("/payments/42", &body).await);
    // What no rule holds needs no plane.
    answer::passed(&scene.get("/invoices/1").await);

    scene.lies().resume().await;
    let back = wait::until("the gate reaches the plane again", async || {
        let answer = scene.post("/payments/42", &body).await;
        (answer.header("x-hoop-denied").as_deref() == Some("review")).then_some(answer)
    });
    assert_eq!(answer::pending(&back.await), ID);
    scene.finish(1).await;
}

async fn a_plane_that_hangs_refuses_after_the_configured_time(host: Host) {
    let mut policy = policy::shipped();
    policy["control_plane"]["timeout_ms"] = 300.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    let body = scene.body();
    scene.lies().always(Reply::Hang);

    answer::not_filed(&scene.post("/payments/42", &body).await);
    let started =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
            .to_vec();
    scene.lies().always(Reply::Raw(started));
    answer::not_filed(&scene.post("/payments/42", &body).await);

    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.post("/payments/42", &body).await);
    scene.finish(1).await;
}

async fn a_slow_plane_holds_up_only_the_call_that_waits_for_it(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene.lies().always(Reply::Hang);
    let mut waiting = scene.connect().await;
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    waiting.write(&call).await;
    wait::until("the filing is out", async || {
        (scene.lies().calls().len() == 1).then_some(())
    })
    .await;

    for _ in 0..5 {
        answer::passed(&scene.get("/invoices/1").await);
    }

    scene.lies().stop().await;
    answer::not_filed(&waiting.answer("the held call").await);
    scene.finish(5).await;
}

async fn a_cluster_that_the_bootstrap_does_not_have_refuses_each_held_call(host: Host) {
    let mut policy = policy::shipped();
    policy["control_plane"]["cluster"] = "nowhere".into();
    let scene = Scene::lying(host).policy(policy).start().await;

    answer::not_filed(&scene.post("/payments/42", &scene.body()).await);
    answer::passed(&scene.get("/payments/42").await);

    scene.finish(1).await;
}
