//! Clients that leave, wait for a 100, upgrade or tunnel: one decision each, and the gate goes on serving.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::{Body, request};
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::json;

on_both_hosts! {
    a_client_that_leaves_while_the_plane_is_asked_disturbs_nobody,
    a_release_for_a_client_that_has_left_runs_nothing,
    expect_100_continue_is_held_and_run_once,
    curl_with_expect_100_continue_walks_through,
    an_upgrade_under_a_holding_rule_is_refused,
    an_upgrade_to_h2c_is_stripped_by_envoy_and_the_call_is_held_like_any_other,
    a_tunnel_under_a_holding_rule_is_refused,
    a_refusal_keeps_the_connection_usable,
    an_approval_is_spent_even_when_the_upstream_is_down_and_the_client_is_told_by_envoy,
    head_and_options_follow_the_rules_like_any_method,
    a_grpc_call_under_a_holding_rule_never_runs_unapproved,
    the_admin_interface_shows_neither_the_token_nor_a_statement,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

async fn a_client_that_leaves_while_the_plane_is_asked_disturbs_nobody(host: Host) {
    let scene = Scene::lying(host).workers(1).start().await;
    let body = scene.body();
    scene.lies().always(Reply::Hang);
    for round in 1..=3 {
        let mut leaving = scene.connect().await;
        leaving
            .write(&request("POST", "/payments/42", &[], Some(&body)))
            .await;
        wait::until("the filing is out", async || {
            (scene.lies().calls().len() == round).then_some(())
        })
        .await;
        drop(leaving);
        wait::until("Envoy has noticed", async || {
            (scene
                .proxy
                .stat("http.billing_api.downstream_rq_active")
                .await
                == 0)
                .then_some(())
        })
        .await;
        answer::passed(&scene.get("/invoices/1").await);
    }
    // The plane's late answers meet nobody: connections end, and a release for a gone client runs nothing.
    scene.lies().stop().await;
    scene.lies().resume().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let back = wait::until("the gate reaches the plane again", async || {
        let answer = scene.post("/payments/42", &body).await;
        (answer.header("x-hoop-denied").as_deref() == Some("review")).then_some(answer)
    });
    answer::pending(&back.await);
    scene.finish(3).await;
}

async fn a_release_for_a_client_that_has_left_runs_nothing(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&id).await;

    // The head comes whole, the body never does.
    let call = request("POST", "/payments/42", &[], Some(&body));
    let mut leaving = scene.connect().await;
    leaving.write(&call[..call.len() - 2]).await;
    drop(leaving);

    // The approval was not touched, so the call still runs.
    answer::passed(&scene.post("/payments/42", &body).await);
    scene.finish(1).await;
}

async fn expect_100_continue_is_held_and_run_once(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = scene.body();
    let head = |length: usize| {
        let length = length.to_string();
        request(
            "POST",
            "/payments/42",
            &[("expect", "100-continue"), ("content-length", &length)],
            None,
        )
    };

    // A client that waits for the 100 gets it and is then judged, or is judged at once.
    for (reply, expected) in [
        (Reply::review(201, false, ID, "PENDING"), 403),
        (Reply::review(200, true, ID, "EXECUTED"), 200),
    ] {
        scene.lies().always(reply);
        let mut connection = scene.connect().await;
        connection.write(&head(body.len())).await;
        let interim = connection
            .next("the head with expect", Body::AsResponse)
            .await
            .expect("an answer");
        assert_eq!(interim.status, 100, "{interim}");
        connection.write(&body).await;
        assert_eq!(
            connection.answer("the body after 100").await.status,
            expected
        );
    }
    assert_eq!(scene.upstream.last().body, body);

    // A client that does not wait.
    let mut connection = scene.connect().await;
    connection
        .write(&[head(body.len()), body.clone()].concat())
        .await;
    answer::passed(&connection.answer("head and body at once").await);

    // A body over the limit.
    let huge = vec![b'x'; 70_000];
    let mut connection = scene.connect().await;
    connection.write(&[head(huge.len()), huge].concat()).await;
    answer::policy_with_status(&connection.answer("a body over the limit").await, 403);
    assert_eq!(scene.lies().filed().len(), 3);
    scene.finish(2).await;
}

async fn curl_with_expect_100_continue_walks_through(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = String::from_utf8(scene.body()).expect("text");
    let arguments = [
        "--http1.1",
        "--header",
        "expect: 100-continue",
        "--data-binary",
        &body,
    ];
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&scene.curl("/payments/42", &arguments).await);
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&scene.curl("/payments/42", &arguments).await);
    assert_eq!(scene.upstream.last().body, body.as_bytes());
    scene.finish(1).await;
}

async fn an_upgrade_under_a_holding_rule_is_refused(host: Host) {
    let upgrades = |manager: &mut serde_json::Value| {
        manager["upgrade_configs"] =
            json!([{"upgrade_type": "websocket"}, {"upgrade_type": "custom"}]);
    };
    let rules = policy::hold_everything();
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .edit_manager(upgrades)
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    for protocol in ["websocket", "WebSocket", "custom"] {
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", protocol),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
        ];
        let mut connection = scene.connect().await;
        let call = request("GET", "/socket", &headers, None);
        let answer = connection.send(&call).await;
        answer::policy_with_status(&answer, 403);
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn an_upgrade_to_h2c_is_stripped_by_envoy_and_the_call_is_held_like_any_other(host: Host) {
    let rules = policy::hold_everything();
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let headers = [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABkAAQAAP__"),
    ];
    let answer = scene.send(&request("GET", "/socket", &headers, None)).await;
    answer::pending(&answer);
    scene.finish(0).await;
}

async fn a_tunnel_under_a_holding_rule_is_refused(host: Host) {
    let connect = |document: &mut serde_json::Value| {
        let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
        let manager = document
            .pointer_mut(manager)
            .expect("the connection manager");
        manager["upgrade_configs"] = json!([{"upgrade_type": "CONNECT"}]);
        let routes = manager
            .pointer_mut("/route_config/virtual_hosts/0/routes")
            .expect("routes");
        let tunnel = json!({
            "match": {"connect_matcher": {}},
            "route": {"cluster": "billing_upstream", "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}]},
        });
        routes.as_array_mut().expect("a list").insert(0, tunnel);
    };
    let rules = policy::hold_everything();
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .edit(connect)
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));

    let mut connection = scene.connect().await;
    let answer = connection
        .send(b"CONNECT billing.example:443 HTTP/1.1\r\nhost: billing.example:443\r\n\r\n")
        .await;

    answer::policy_with_status(&answer, 403);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn a_refusal_keeps_the_connection_usable(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let mut connection = scene.connect().await;
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    for _ in 0..3 {
        answer::pending(&connection.send(&call).await);
        answer::passed(
            &connection
                .send(&request("GET", "/invoices/1", &[], None))
                .await,
        );
    }
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&connection.send(&call).await);
    scene.finish(4).await;
}

async fn an_approval_is_spent_even_when_the_upstream_is_down_and_the_client_is_told_by_envoy(
    host: Host,
) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let id = answer::pending(&scene.post("/payments/42", &body).await);
    scene.plane().approve(&id).await;
    scene.upstream.react(hoop_tests::upstream::Reaction::Hangup);

    let answer = scene.post("/payments/42", &body).await;

    assert_eq!(answer.status, 503, "{answer}");
    assert_eq!(scene.plane().row(&id).await["status"], "EXECUTED");
    assert_eq!(scene.upstream.requests().len(), 1);
    scene.finish(1).await;
}

async fn head_and_options_follow_the_rules_like_any_method(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(policy::hold_everything()))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let head = request("HEAD", "/payments/42", &[], None);
    let answer = scene.connect().await.send_head(&head).await;
    assert_eq!(answer.status, 403, "{answer}");
    assert_eq!(answer.header("x-hoop-approval-id").as_deref(), Some(ID));
    answer::pending(
        &scene
            .send(&request("OPTIONS", "/payments/42", &[], None))
            .await,
    );
    // Envoy answers 400 to a method that HTTP/1.1 does not know, and hands it on over HTTP/2.
    let odd = H2Request::new("BREW", "/payments/42", None);
    answer::pending(&scene.connect_h2().await.send(&odd).await);
    scene.finish(0).await;
}

async fn a_grpc_call_under_a_holding_rule_never_runs_unapproved(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(policy::hold_everything()))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let mut call = H2Request::new(
        "POST",
        "/pay.Payments/Send",
        Some(b"\0\0\0\0\x03\x08\x96\x01"),
    );
    call.headers = vec![
        ("content-type".to_owned(), b"application/grpc".to_vec()),
        ("te".to_owned(), b"trailers".to_vec()),
    ];
    let answer = scene.connect_h2().await.send(&call).await;
    // Envoy turns the 403 into a trailers-only refusal (contract 3.7).
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(
        answer.header("grpc-status").as_deref(),
        Some("7"),
        "{answer}"
    );
    assert!(answer.header("x-hoop-denied").is_some(), "{answer}");
    scene.finish(0).await;
}

async fn the_admin_interface_shows_neither_the_token_nor_a_statement(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&scene.post("/payments/42", &scene.body()).await);
    for target in [
        "/config_dump?include_eds",
        "/stats",
        "/clusters",
        "/server_info",
    ] {
        scene.assert_discreet(target, &scene.proxy.admin(target).await);
    }
    scene.finish(0).await;
}
