//! The main loop with a real plane and people on the command line: refuse, wait, approve, run once.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{APPROVAL_RULE, LISTENER};
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::json;

on_both_hosts! {
    a_held_post_is_refused_with_its_approval_id_before_the_upstream_sees_a_byte,
    the_same_bytes_again_wait_for_the_same_approval,
    another_body_query_path_or_method_needs_an_approval_of_its_own,
    other_headers_or_another_host_ask_for_the_same_approval_and_may_use_it,
    an_approved_call_runs_once_byte_for_byte_and_the_next_send_needs_a_new_approval,
    of_twenty_sends_at_once_after_one_approval_exactly_one_runs,
    a_rejection_is_told_with_its_reason_and_a_new_send_asks_anew,
    a_revoked_approval_releases_nothing,
    a_filed_call_survives_a_crash_of_the_plane_and_is_approved_after_it,
    an_approval_that_was_given_before_a_crash_of_the_plane_is_still_good_for_one_run,
    an_approval_over_http_2_is_usable_over_http_1_and_the_other_way_round,
    a_plain_http_library_walks_through_the_whole_loop,
    of_many_sends_at_once_over_two_envoys_exactly_one_runs,
    twenty_first_sends_at_once_are_one_approval_request,
    people_decide_over_http_and_see_the_statement,
    an_agent_can_not_approve_itself_through_the_gate_or_with_the_sidecar_token,
    a_decision_that_comes_too_late_says_what_stands,
}

async fn a_held_post_is_refused_with_its_approval_id_before_the_upstream_sees_a_byte(host: Host) {
    let scene = Scene::real(host).start().await;

    let answer = scene.post("/payments/42", &scene.body()).await;

    let id = answer::pending(&answer);
    let row = scene.plane().row(&id).await;
    assert_eq!(row["status"], "PENDING");
    assert_eq!(row["listener_name"], LISTENER);
    assert_eq!(row["approval_rule"], APPROVAL_RULE);
    assert_eq!(scene.upstream.connections(), 0);
    scene.finish(0).await;
}

async fn the_same_bytes_again_wait_for_the_same_approval(host: Host) {
    let scene = Scene::real(host).start().await;

    let first = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    let second = answer::pending(&scene.post("/payments/42", &scene.body()).await);

    assert_eq!(first, second);
    assert_eq!(scene.plane().rows().await.len(), 1);
    scene.finish(0).await;
}

async fn another_body_query_path_or_method_needs_an_approval_of_its_own(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let mut longer = body.clone();
    longer.push(b' ');
    let mut changed = body.clone();
    changed[0] = b'[';
    let sends: [(&str, &str, &[u8]); 10] = [
        ("POST", "/payments/42", &body),
        ("POST", "/payments/42", &longer),
        ("POST", "/payments/42", &changed),
        ("POST", "/payments/42", b""),
        ("POST", "/payments/42?", &body),
        ("POST", "/payments/42?a=1", &body),
        ("POST", "/payments/42?a=2", &body),
        ("POST", "/payments/43", &body),
        ("PUT", "/payments/42", &body),
        ("DELETE", "/payments/42", &body),
    ];

    let mut ids = Vec::new();
    for (method, target, body) in sends {
        let answer = scene.send(&request(method, target, &[], Some(body))).await;
        ids.push(answer::pending(&answer));
    }

    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), sends.len());
    assert_eq!(scene.plane().rows().await.len(), sends.len());
    scene.finish(0).await;
}

async fn other_headers_or_another_host_ask_for_the_same_approval_and_may_use_it(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let plain = request("POST", "/payments/42", &[], Some(&body));
    let dressed = [
        ("content-type", "application/json"),
        ("authorization", "Bearer of-the-agent"),
        ("x-trace", "7"),
        ("x-trace", "8"),
    ];
    let dressed = request("POST", "/payments/42", &dressed, Some(&body));
    let other_host = String::from_utf8(plain.clone()).expect("text");
    let other_host = other_host.replace("billing.example", "other.example:8080");

    let first = answer::pending(&scene.send(&plain).await);
    let second = answer::pending(&scene.send(&dressed).await);
    let third = answer::pending(&scene.send(other_host.as_bytes()).await);
    scene.plane().approve(&first).await;
    let released = scene.send(&dressed).await;

    assert_eq!((&first, &first), (&second, &third));
    answer::passed(&released);
    assert_eq!(
        scene.upstream.last().header("x-trace").as_deref(),
        Some("7")
    );
    scene.finish(1).await;
}

async fn an_approved_call_runs_once_byte_for_byte_and_the_next_send_needs_a_new_approval(
    host: Host,
) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let headers = [("content-type", "application/json"), ("x-Agent", "seven")];
    let call = request("POST", "/payments/42?note=a%20b", &headers, Some(&body));
    let id = answer::pending(&scene.send(&call).await);
    scene.plane().approve(&id).await;
    assert_eq!(scene.plane().row(&id).await["status"], "APPROVED");

    answer::passed(&scene.send(&call).await);

    let seen = scene.upstream.last();
    assert_eq!(seen.start, b"POST /payments/42?note=a%20b HTTP/1.1");
    assert_eq!(seen.body, body);
    assert_eq!(seen.header("host").as_deref(), Some("billing.example"));
    assert_eq!(
        seen.header("content-type").as_deref(),
        Some("application/json")
    );
    assert_eq!(seen.header("x-agent").as_deref(), Some("seven"));
    assert_eq!(seen.header("content-length"), Some(body.len().to_string()));
    for (name, _) in &seen.headers {
        assert!(
            !name.starts_with("hoop-") && !name.starts_with("x-hoop-"),
            "{name} reached the upstream"
        );
    }
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");

    let next = answer::pending(&scene.send(&call).await);

    assert_ne!(next, id);
    assert_eq!(scene.plane().rows().await.len(), 2);
    scene.finish(1).await;
}

async fn of_twenty_sends_at_once_after_one_approval_exactly_one_runs(host: Host) {
    let scene = Scene::real(host).workers(2).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&id).await;
    let call = request("POST", "/payments/42", &[], Some(&body));

    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let mut connection = scene.connect().await;
        let call = call.clone();
        senders.spawn(async move { connection.send(&call).await });
    }
    let answers: Vec<Answer> = senders.join_all().await;

    let (passed, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(passed.len(), 1);
    answer::passed(passed[0]);
    for answer in refused {
        // The losers ask for a next approval: all for the same one, since they are the same statement.
        assert_ne!(answer::pending(answer), id);
    }
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    assert_eq!(scene.plane().rows().await.len(), 2);
    scene.finish(1).await;
}

async fn a_rejection_is_told_with_its_reason_and_a_new_send_asks_anew(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);

    scene.plane().reject(&id, "the amount is wrong").await;

    let status = scene
        .get(&format!("/.well-known/hoop/approvals/{id}"))
        .await;
    answer::reserved(&status, 200);
    let status = status.json();
    assert_eq!(status["id"], id.as_str());
    assert_eq!(status["status"], "REJECTED");
    assert_eq!(status["rejection_reason"], "the amount is wrong");
    assert_eq!(status["next"], "stop");
    assert!(status["decided_at"].is_string(), "{status}");
    let next = answer::pending(&scene.post("/payments/42", &body).await);
    assert_ne!(next, id);
    scene.finish(0).await;
}

async fn a_revoked_approval_releases_nothing(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&id).await;
    let path = format!("/.well-known/hoop/approvals/{id}");
    assert_eq!(
        scene.get(&path).await.json()["next"],
        "resend_identical_statement"
    );

    scene.plane().revoke(&id).await;

    let status = scene.get(&path).await.json();
    assert_eq!(
        (&status["status"], &status["next"]),
        (&"REVOKED".into(), &"stop".into())
    );
    assert_ne!(
        answer::pending(&scene.post("/payments/42", &body).await),
        id
    );
    scene.finish(0).await;
}

async fn a_filed_call_survives_a_crash_of_the_plane_and_is_approved_after_it(host: Host) {
    let mut scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);

    scene.plane_mut().kill().await;
    answer::not_filed(&scene.post("/payments/42", &body).await);
    scene.plane_mut().restart().await;

    // Envoy notices by itself that the plane is back.
    let again = wait::until("the gate reaches the plane again", async || {
        let answer = scene.post("/payments/42", &body).await;
        (answer.header("x-hoop-denied").as_deref() == Some("review")).then_some(answer)
    });
    assert_eq!(answer::pending(&again.await), id);
    scene.plane().approve(&id).await;
    answer::passed(&scene.post("/payments/42", &body).await);
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    scene.finish(1).await;
}

async fn an_approval_that_was_given_before_a_crash_of_the_plane_is_still_good_for_one_run(
    host: Host,
) {
    let mut scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&id).await;

    scene.plane_mut().kill().await;
    scene.plane_mut().restart().await;

    answer::passed(&scene.post("/payments/42", &body).await);
    assert_ne!(
        answer::pending(&scene.post("/payments/42", &body).await),
        id
    );
    scene.finish(1).await;
}

async fn an_approval_over_http_2_is_usable_over_http_1_and_the_other_way_round(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let h2 = scene.connect_h2().await;
    let call = hoop_tests::client::h2::H2Request::new("POST", "/payments/42", Some(&body));

    let over_h2 = answer::pending(&h2.send(&call).await);
    let over_h1 = answer::pending(&scene.post("/payments/42", &body).await);
    assert_eq!(over_h2, over_h1);
    scene.plane().approve(&over_h2).await;
    answer::passed(&h2.send(&call).await);
    assert_eq!(scene.upstream.last().body, body);

    let next = answer::pending(&h2.send(&call).await);
    assert_ne!(next, over_h1);
    scene.plane().approve(&next).await;
    answer::passed(&scene.post("/payments/42", &body).await);
    assert_eq!(scene.upstream.last().body, body);
    scene.finish(2).await;
}

async fn a_plain_http_library_walks_through_the_whole_loop(host: Host) {
    for http_2 in [false, true] {
        let scene = Scene::real(host).start().await;
        let client = reqwest::Client::builder().no_proxy();
        let client = if http_2 {
            client.http2_prior_knowledge()
        } else {
            client.http1_only()
        };
        let client = client.build().expect("a client");
        let url = format!("http://{}/payments/42", scene.address());
        let send = || client.post(&url).body(scene.body()).send();

        let refused = send().await.expect("an answer");
        assert_eq!(refused.status(), 403);
        let id = refused.headers()["x-hoop-approval-id"]
            .to_str()
            .expect("text")
            .to_owned();
        let text = refused.text().await.expect("a text");
        assert!(text.contains(&id), "{text}");
        scene.plane().approve(&id).await;
        let released = send().await.expect("an answer");

        assert_eq!(released.status(), 200);
        assert_eq!(scene.upstream.last().body, scene.body());
        scene.finish(1).await;
    }
}

async fn of_many_sends_at_once_over_two_envoys_exactly_one_runs(host: Host) {
    let scene = Scene::real(host).workers(2).start().await;
    let mut replica = scene.replica().await;
    let body = scene.body();
    let call = request("POST", "/payments/42", &[], Some(&body));
    let id = answer::pending(&scene.send(&call).await);
    let same = scene.connect_to(&replica).await.send(&call).await;
    assert_eq!(answer::pending(&same), id);
    let decision = json!({"status": "APPROVED"});
    assert_eq!(scene.plane().decide_over_http(&id, &decision).await, 200);

    let mut senders = tokio::task::JoinSet::new();
    for index in 0..40 {
        let proxy = if index % 2 == 0 {
            &scene.proxy
        } else {
            &replica
        };
        let mut connection = scene.connect_to(proxy).await;
        let call = call.clone();
        senders.spawn(async move { connection.send(&call).await });
    }
    let answers: Vec<Answer> = senders.join_all().await;

    let passed = answers.iter().filter(|answer| answer.status == 200);
    assert_eq!(passed.count(), 1);
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    replica.stop().await;
    scene.finish(1).await;
}

async fn twenty_first_sends_at_once_are_one_approval_request(host: Host) {
    let scene = Scene::real(host).workers(2).start().await;
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let mut connection = scene.connect().await;
        let call = call.clone();
        senders.spawn(async move { answer::pending(&connection.send(&call).await) });
    }
    let mut ids: Vec<String> = senders.join_all().await;
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(scene.plane().rows().await.len(), 1);
    scene.finish(0).await;
}

async fn people_decide_over_http_and_see_the_statement(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42?a=b", &body).await);
    let seen = scene.plane().dossier(&id).await.to_string();
    assert!(seen.contains("POST /payments/42?a=b"), "{seen}");
    assert!(seen.contains(&scene.marker), "{seen}");

    let rejected = json!({"status": "REJECTED", "rejection_reason": "no"});
    assert_eq!(scene.plane().decide_over_http(&id, &rejected).await, 200);
    // A decision stands: a late yes is told so and releases nothing.
    let approved = json!({"status": "APPROVED"});
    assert_ne!(scene.plane().decide_over_http(&id, &approved).await, 200);
    assert_eq!(scene.plane().row(&id).await["status"], "REJECTED");
    let next = answer::pending(&scene.post("/payments/42?a=b", &body).await);
    assert_ne!(next, id);
    assert_eq!(scene.plane().decide_over_http(&next, &approved).await, 200);
    answer::passed(&scene.post("/payments/42?a=b", &body).await);
    scene.finish(1).await;
}

async fn an_agent_can_not_approve_itself_through_the_gate_or_with_the_sidecar_token(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    let path = format!("/.well-known/hoop/approvals/{id}");
    let decision = br#"{"status":"APPROVED"}"#;
    let put = request("PUT", &path, &[], Some(decision));
    answer::reserved(&scene.send(&put).await, 405);

    let token = scene.plane().sidecar_token();
    let client = reqwest::Client::builder().no_proxy().build();
    let request = client
        .expect("a client")
        .put(format!(
            "http://{}/api/reviews/{id}",
            scene.plane().address()
        ))
        .header("hoop-sidecar-token", &token)
        .bearer_auth(&token)
        .json(&json!({"status": "APPROVED"}));
    let status = request.send().await.expect("an answer").status();

    assert!(matches!(status.as_u16(), 401 | 403), "{status}");
    assert_eq!(scene.plane().row(&id).await["status"], "PENDING");
    scene.finish(0).await;
}

async fn a_decision_that_comes_too_late_says_what_stands(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&id).await;
    answer::passed(&scene.post("/payments/42", &body).await);

    for arguments in [
        vec!["reject", id.as_str(), "--reason", "too late"],
        vec!["revoke", id.as_str()],
        vec!["approve", id.as_str()],
    ] {
        let output = scene.plane().approvals(&arguments).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("EXECUTED"), "{arguments:?}: {told}");
    }
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    scene.finish(1).await;
}
