//! Owns the cases of `POST /api/sidecars/reviews` (contract 1.4, 2.3); the scene carries them out. They must not know
//! the plane's insides.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::scene::{APPROVAL_TTL, LANE, PENDING_TTL, RULE, Scene, UNLIMITED, filing, statement};

#[tokio::test]
async fn a_new_statement_is_filed_with_every_field_of_the_contract() {
    let scene = Scene::new().await;
    let answer = scene.file(&statement("1")).await.is(StatusCode::CREATED);
    let review = &answer.json["review"];
    assert_eq!(answer.asked(), (false, "PENDING"));
    for uuid in [
        &review["id"],
        &review["session"],
        &review["sidecar_id"],
        &review["review_groups_data"][0]["id"],
    ] {
        let text = uuid.as_str().expect("a string");
        assert_eq!(
            uuid::Uuid::parse_str(text).expect("a uuid").to_string(),
            text
        );
    }
    assert_eq!(review["type"], "onetime");
    assert_eq!(review["created_at"], "2023-11-14T22:13:20Z");
    assert_eq!(review["expires_at"], "2023-11-14T22:15:00Z");
    assert_eq!(review["approval_ttl_sec"], 60);
    assert_eq!(review["min_approvals"], 1);
    assert_eq!(review["listener_name"], LANE);
    assert_eq!(review["access_request_rule_name"], RULE);
    assert_eq!(review["force_approval_groups"], json!([]));
    let groups = review["review_groups_data"].as_array().expect("groups");
    let shown: Vec<_> = groups
        .iter()
        .map(|group| (group["group"].as_str(), group["status"].as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("billing"), Some("PENDING")),
            (Some("finance"), Some("PENDING"))
        ]
    );
}

#[tokio::test]
async fn a_rule_without_limits_shows_none() {
    let scene = Scene::new().await;
    let answer = scene
        .file_unlimited(&statement("1"))
        .await
        .is(StatusCode::CREATED);
    assert!(answer.json["review"].get("expires_at").is_none());
    assert!(answer.json["review"].get("approval_ttl_sec").is_none());
}

#[tokio::test]
async fn the_same_bytes_while_pending_are_the_same_review() {
    let scene = Scene::new().await;
    let first = scene.file(&statement("1")).await.is(StatusCode::CREATED);
    let second = scene.file(&statement("1")).await.is(StatusCode::OK);
    assert_eq!(second.asked(), (false, "PENDING"));
    assert_eq!(first.json["review"], second.json["review"]);
}

#[tokio::test]
async fn an_approval_releases_the_same_bytes_once_and_then_files_anew() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    let released = scene.file(&statement("1")).await.is(StatusCode::OK);
    assert_eq!(
        (released.asked(), released.id()),
        ((true, "EXECUTED"), id.clone())
    );
    assert_eq!(
        released.json["review"]["review_groups_data"][0]["status"],
        "APPROVED"
    );
    let again = scene.file(&statement("1")).await.is(StatusCode::CREATED);
    assert_eq!(again.asked(), (false, "PENDING"));
    assert_ne!(again.id(), id);
}

#[tokio::test]
async fn one_other_byte_listener_or_rule_is_another_review() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    for other in [
        filing(LANE, RULE, &statement("1\n")),
        filing(LANE, RULE, &statement("1 ")),
        filing(LANE, UNLIMITED, &statement("1")),
        filing("other-api", RULE, &statement("1")),
    ] {
        let answer = scene.post(&other).await.is(StatusCode::CREATED);
        assert_ne!(answer.id(), id);
        assert_eq!(answer.asked(), (false, "PENDING"));
    }
    assert_eq!(
        scene.file(&statement("1")).await.asked(),
        (true, "EXECUTED")
    );
}

#[tokio::test]
async fn bytes_of_every_kind_are_filed_exactly() {
    let scene = Scene::new().await;
    let mut bytes = statement("1\n\n");
    bytes.extend(0..=255_u8);
    let id = scene.file(&bytes).await.is(StatusCode::CREATED).id();
    let seen = scene.people(&format!("/{id}")).await.is(StatusCode::OK);
    assert_eq!(seen.json["statement_bytes"], bytes.len());
    assert_eq!(scene.file(&bytes).await.is(StatusCode::OK).id(), id);
}

#[tokio::test]
async fn after_a_no_a_revocation_or_a_lapse_the_same_bytes_are_a_new_request() {
    let scene = Scene::new().await;
    let first = scene.file(&statement("1")).await.id();
    scene.decide(&first, "REJECTED").await.is(StatusCode::OK);
    let second = scene
        .file(&statement("1"))
        .await
        .is(StatusCode::CREATED)
        .id();
    scene.decide(&second, "APPROVED").await.is(StatusCode::OK);
    scene.decide(&second, "REVOKED").await.is(StatusCode::OK);
    let third = scene
        .file(&statement("1"))
        .await
        .is(StatusCode::CREATED)
        .id();
    scene.clock.advance_sec(PENDING_TTL);
    let fourth = scene
        .file(&statement("1"))
        .await
        .is(StatusCode::CREATED)
        .id();
    scene.decide(&fourth, "APPROVED").await.is(StatusCode::OK);
    scene.clock.advance_sec(APPROVAL_TTL);
    let fifth = scene.file(&statement("1")).await.is(StatusCode::CREATED);
    assert_eq!(fifth.asked(), (false, "PENDING"));
    for (id, status) in [
        (&first, "REJECTED"),
        (&second, "REVOKED"),
        (&third, "EXPIRED"),
        (&fourth, "EXPIRED"),
        (&fifth.id(), "PENDING"),
    ] {
        assert_eq!(scene.read(id).await.status_word(), status);
    }
}

#[tokio::test]
async fn err_bodies_that_are_no_filing() {
    let scene = Scene::new().await;
    let post = |body: &'static str| scene.send(Method::POST, "/api/sidecars/reviews", &[], body);
    post("{}")
        .await
        .says(StatusCode::UNAUTHORIZED, "access denied");
    let headers = [scene.sidecar()];
    let post =
        |body: &'static str| scene.send(Method::POST, "/api/sidecars/reviews", &headers, body);
    for body in [
        "",
        " ",
        "null",
        "1",
        "[]",
        "[\"billing-api\",\"billing-approvers\",\"eA==\"]",
        "{",
        "{}x",
        "{\"payload\":1}",
    ] {
        post(body).await.is(StatusCode::BAD_REQUEST);
    }
    post("[1]").await.says(
        StatusCode::BAD_REQUEST,
        "request body is not the expected JSON: it must be an object",
    );
    scene
        .send(
            Method::POST,
            "/api/sidecars/reviews",
            &headers,
            b"{\"payload\":\"\xff\"}".to_vec(),
        )
        .await
        .is(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn err_each_missing_field_is_named() {
    let scene = Scene::new().await;
    for field in ["listener_name", "approval_rule", "payload"] {
        for value in [None, Some(Value::Null), Some(json!(""))] {
            let mut body = filing(LANE, RULE, &statement("1"));
            let fields = body.as_object_mut().expect("an object");
            match value {
                None => fields.remove(field),
                Some(value) => fields.insert(field.to_owned(), value),
            };
            scene
                .post(&body)
                .await
                .says(StatusCode::BAD_REQUEST, &format!("{field} is required"));
        }
    }
}

#[tokio::test]
async fn err_payloads_that_are_no_padded_standard_base64() {
    let scene = Scene::new().await;
    for payload in [
        "!", "eA", "eA=", "eB==", "-_-_", "e A==", "eA==\n", "eA==eA==",
    ] {
        let mut body = filing(LANE, RULE, b"");
        body["payload"] = json!(payload);
        let answer = scene.post(&body).await.is(StatusCode::BAD_REQUEST);
        let message = answer.json["message"].as_str().expect("a message");
        assert!(
            message.starts_with("payload is not valid base64: "),
            "{payload:?} -> {message}"
        );
    }
}

#[tokio::test]
async fn a_statement_of_100000_bytes_is_filed_and_one_more_is_refused() {
    let scene = Scene::new().await;
    let mut bytes = statement("");
    bytes.resize(100_000, b'x');
    scene.file(&bytes).await.is(StatusCode::CREATED);
    bytes.push(b'x');
    scene.file(&bytes).await.says(
        StatusCode::PAYLOAD_TOO_LARGE,
        "statement is larger than 100000 bytes",
    );
    bytes.resize(1_000_000, b'x');
    scene.file(&bytes).await.says(
        StatusCode::PAYLOAD_TOO_LARGE,
        "statement is larger than 100000 bytes",
    );
}

#[tokio::test]
async fn a_body_over_its_bound_is_refused_as_json_too() {
    let scene = Scene::new().await;
    let body = vec![b' '; 2 * 1024 * 1024 + 1];
    scene
        .send(
            Method::POST,
            "/api/sidecars/reviews",
            &[scene.sidecar()],
            body,
        )
        .await
        .says(
            StatusCode::PAYLOAD_TOO_LARGE,
            "request body is larger than 2097152 bytes",
        );
}

#[tokio::test]
async fn each_way_to_miss_a_rule_reads_the_same() {
    let scene = Scene::new().await;
    for (listener, rule) in [
        (LANE, "absent"),
        (LANE, "lonely"),
        ("absent", RULE),
        ("other-api", UNLIMITED),
        ("Billing-api", RULE),
    ] {
        scene
            .post(&filing(listener, rule, &statement("1")))
            .await
            .says(
                StatusCode::UNPROCESSABLE_ENTITY,
                &format!(
                    "listener \"{listener}\" is not configured to use approval rule \"{rule}\""
                ),
            );
    }
    assert_eq!(scene.list("").await.json, json!([]));
}

#[tokio::test]
async fn names_that_no_configuration_can_have_are_not_echoed() {
    let scene = Scene::new().await;
    let long = "x".repeat(256);
    scene
        .post(&filing(&long, RULE, &statement("1")))
        .await
        .says(
            StatusCode::BAD_REQUEST,
            "listener_name is longer than 255 bytes",
        );
}

#[tokio::test]
async fn unknown_keys_and_a_malformed_requester_do_not_refuse_a_filing() {
    let scene = Scene::new().await;
    for (index, requester) in [
        json!(1),
        json!("x"),
        json!([]),
        json!({"subject": 1}),
        Value::Null,
    ]
    .iter()
    .enumerate()
    {
        let mut body = filing(LANE, RULE, &statement(&index.to_string()));
        body["requester"] = requester.clone();
        body["session"] = json!("x");
        let id = scene.post(&body).await.is(StatusCode::CREATED).id();
        assert_eq!(
            scene.people(&format!("/{id}")).await.json["requester"],
            Value::Null
        );
    }
}

#[tokio::test]
async fn only_the_first_to_file_is_recorded() {
    let scene = Scene::new().await;
    let mut body = filing(LANE, RULE, &statement("1"));
    body["requester"] = json!({"subject": "ann", "email": "ann@example.com", "peer_addr": "10.0.0.1:1", "method": "Identity_Header"});
    let id = scene.post(&body).await.is(StatusCode::CREATED).id();
    body["requester"] = json!({"subject": "bob"});
    assert_eq!(scene.post(&body).await.is(StatusCode::OK).id(), id);
    assert_eq!(
        scene.people(&format!("/{id}")).await.json["requester"],
        json!({"subject": "ann", "email": "ann@example.com", "peer_addr": "10.0.0.1:1", "method": "identity_header"})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_approval_used_from_twenty_senders_at_once_releases_one() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    let sends = (0..20).map(|_| {
        let (router, header) = (scene.router.clone(), scene.sidecar());
        let body = filing(LANE, RULE, &statement("1")).to_string();
        tokio::spawn(send(router, header, body))
    });
    let mut released = Vec::new();
    let mut waiting = Vec::new();
    for sent in sends.collect::<Vec<_>>() {
        let answer = sent.await.expect("no panic");
        let id = answer["review"]["id"].as_str().expect("an id").to_owned();
        match answer["forward"].as_bool().expect("forward") {
            true => released.push(id),
            false => waiting.push(id),
        }
    }
    assert!(!waiting.contains(&id));
    assert_eq!(released, [id]);
    assert_eq!(waiting.len(), 19);
    waiting.dedup();
    assert_eq!(waiting.len(), 1, "all others wait for one new review");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_first_sends_at_once_file_one_review_and_none_fails() {
    let scene = Scene::new().await;
    let sends = (0..200).map(|n| {
        let (router, header) = (scene.router.clone(), scene.sidecar());
        let body = filing(LANE, RULE, &statement(&(n % 2).to_string())).to_string();
        tokio::spawn(send(router, header, body))
    });
    for sent in sends.collect::<Vec<_>>() {
        assert_eq!(sent.await.expect("no panic")["forward"], false);
    }
    assert_eq!(
        scene.list("?limit=200").await.json.as_array().map(Vec::len),
        Some(2)
    );
}

async fn send(router: axum::Router, header: (&'static str, String), body: String) -> Value {
    use tower::ServiceExt;
    let request = axum::http::Request::post("/api/sidecars/reviews")
        .header(header.0, header.1)
        .body(axum::body::Body::from(body))
        .expect("a request");
    let response = router.oneshot(request).await.expect("infallible");
    assert!(response.status().is_success(), "{}", response.status());
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}
