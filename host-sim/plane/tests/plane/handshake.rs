//! Owns the cases of the handshake, the served configuration and the people's list of sidecars (contract 1.8); the scene
//! carries them out. They must not know the plane's insides.

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode},
};
use host_sim_plane::{Plane, PlaneConfig};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::scene::{Scene, statement};

const HANDSHAKE: &str = "/api/sidecars/handshake";
const REVISION: &str = "hoop-sidecar-config-revision";

/// Sends one request with the sidecar's token; the answer's status, headers and text.
async fn send(
    plane: &Plane,
    method: Method,
    path: &str,
    capabilities: &[&str],
    body: String,
) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("hoop-sidecar-token", plane.sidecar_token().expose());
    for value in capabilities {
        request = request.header("hoop-sidecar-capabilities", *value);
    }
    let request = request.body(Body::from(body)).expect("a request");
    let response = plane.router().oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("a body");
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (parts.status, parts.headers, text)
}

async fn shake(scene: &Scene, body: &Value) -> (StatusCode, HeaderMap, String) {
    send(&scene.plane, Method::POST, HANDSHAKE, &[], body.to_string()).await
}

async fn sidecar(scene: &Scene) -> Value {
    let listed = scene
        .send(
            Method::GET,
            "/api/sidecars",
            &[scene.approver()],
            Body::empty(),
        )
        .await
        .is(StatusCode::OK);
    assert_eq!(listed.json.as_array().map(Vec::len), Some(1));
    listed.json[0].clone()
}

fn revision(headers: &HeaderMap) -> String {
    let revision = headers[REVISION].to_str().expect("text").to_owned();
    assert_eq!(headers["hoop-sidecar-license-managed"], "true");
    assert_eq!(revision.len(), 32);
    assert!(
        revision
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
    revision
}

#[tokio::test]
async fn a_handshake_is_answered_with_the_configuration_and_its_revision() {
    let scene = Scene::new().await;
    let (status, headers, text) = shake(&scene, &json!({"version": "1.0"})).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON"),
        json!({
            "load_from_disk": true,
            "listeners": [
                {"name": "billing-api", "approval_rules": ["billing-approvers", "ops-approvers"]},
                {"name": "other-api", "approval_rules": ["billing-approvers"]},
            ],
        }),
        "and no rule that no listener has"
    );
    let (_, again, _) = shake(&scene, &json!({"version": "2.0"})).await;
    assert_eq!(revision(&headers), revision(&again));
}

#[tokio::test]
async fn the_configuration_is_served_without_being_recorded() {
    let scene = Scene::new().await;
    let path = "/api/sidecars/configuration";
    let (status, headers, text) = send(&scene.plane, Method::GET, path, &[], String::new()).await;
    assert_eq!(
        (status, sidecar(&scene).await["last_seen"].is_null()),
        (StatusCode::OK, true)
    );
    let (_, shaken, same) = shake(&scene, &json!({"version": "1"})).await;
    assert_eq!((revision(&headers), text), (revision(&shaken), same));
}

#[tokio::test]
async fn only_the_revision_that_is_served_is_not_modified() {
    let scene = Scene::new().await;
    let (_, headers, _) = shake(&scene, &json!({"version": "1"})).await;
    let current = revision(&headers);
    for other in ["", "0", &current[..31], &current.to_uppercase()] {
        let (status, _, text) =
            shake(&scene, &json!({"version": "1", "served_revision": other})).await;
        assert_eq!(
            (status, text.is_empty()),
            (StatusCode::OK, false),
            "{other}"
        );
    }
    scene.clock.advance_sec(10);
    let body = json!({"version": "1", "served_revision": current, "applied_revision": current});
    let (status, headers, text) = shake(&scene, &body).await;
    assert_eq!((status, text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    assert_eq!(revision(&headers), current);
    assert_eq!(sidecar(&scene).await["last_seen"], "2023-11-14T22:13:30Z");
}

#[tokio::test]
async fn another_configuration_has_another_revision_and_an_equal_one_the_same() {
    let scene = Scene::new().await;
    let rules = "approval_rules: [{name: a, reviewers: [x]}, {name: b, reviewers: [x]}]";
    let mut revisions = Vec::new();
    for listeners in [
        "listeners: [{name: l, approval_rules: [a, b]}]",
        "listeners: [{name: l, approval_rules: [b, a]}]",
        "listeners: [{name: l, approval_rules: [a]}]",
        "listeners: [{name: m, approval_rules: [a, b]}]",
    ] {
        let config = PlaneConfig::parse(&format!("{listeners}\n{rules}"), "plane.yaml");
        let plane = Plane::open(&scene.dir, config.expect("good"))
            .await
            .expect("open");
        let body = json!({"version": "1"}).to_string();
        let (_, headers, _) = send(&plane, Method::POST, HANDSHAKE, &[], body).await;
        revisions.push(revision(&headers));
        plane.close().await;
    }
    assert_eq!(revisions[0], revisions[1]);
    revisions.dedup();
    assert_eq!(revisions.len(), 3);
}

#[tokio::test]
async fn people_see_what_a_sidecar_said_last() {
    let scene = Scene::new().await;
    let never = sidecar(&scene).await;
    assert_eq!(
        (
            &never["name"],
            &never["connected"],
            &never["last_seen"],
            &never["version"]
        ),
        (&json!("sidecar"), &json!(false), &Value::Null, &Value::Null)
    );
    let capabilities = [
        "review_mode, approval_mode,,review_mode",
        "rule:deny,b\u{fc}d,protocol:http",
        "a b",
    ];
    let body = json!({
        "version": "0.1.0", "applied_revision": "abc", "last_outcome": "refused", "last_error": "no\u{1b}[2J \u{202e}rule",
    });
    send(
        &scene.plane,
        Method::POST,
        HANDSHAKE,
        &capabilities,
        body.to_string(),
    )
    .await;
    assert_eq!(
        sidecar(&scene).await,
        json!({
            "id": never["id"], "name": "sidecar", "connected": true, "last_seen": "2023-11-14T22:13:20Z",
            "version": "0.1.0", "applied_revision": "abc", "last_outcome": "refused",
            "last_error": "no\\x1b[2J \\xe2\\x80\\xaerule",
            "capabilities": ["review_mode", "approval_mode", "rule:deny", "protocol:http"],
        })
    );
    shake(
        &scene,
        &json!({"version": "0.2.0", "last_outcome": "invented"}),
    )
    .await;
    let now = sidecar(&scene).await;
    assert_eq!(
        (
            &now["version"],
            &now["last_outcome"],
            &now["last_error"],
            &now["capabilities"]
        ),
        (
            &json!("0.2.0"),
            &json!("unrecognized"),
            &Value::Null,
            &json!([])
        )
    );
}

#[tokio::test]
async fn a_sidecar_is_connected_for_two_heartbeats_and_after_a_restart() {
    let mut scene = Scene::new().await;
    shake(&scene, &json!({"version": "1"})).await;
    scene.clock.advance_sec(150);
    scene.restart().await;
    assert_eq!(sidecar(&scene).await["connected"], true);
    scene.clock.advance_sec(1);
    assert_eq!(sidecar(&scene).await["connected"], false);
    shake(&scene, &json!({"version": "1"})).await;
    assert_eq!(sidecar(&scene).await["connected"], true);
}

#[tokio::test]
async fn what_a_sidecar_says_is_kept_within_bounds() {
    let scene = Scene::new().await;
    let long = "é".repeat(2_000);
    let many: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
    let body = json!({"version": long, "applied_revision": long, "last_error": long}).to_string();
    send(
        &scene.plane,
        Method::POST,
        HANDSHAKE,
        &[&many.join(","), &"x".repeat(65)],
        body,
    )
    .await;
    let seen = sidecar(&scene).await;
    for (key, bytes) in [
        ("version", 254),
        ("applied_revision", 254),
        ("last_error", 1_000),
    ] {
        assert_eq!(seen[key].as_str().map(str::len), Some(bytes), "{key}");
    }
    assert_eq!(seen["capabilities"].as_array().map(Vec::len), Some(64));
}

#[tokio::test]
async fn err_a_handshake_without_a_version_or_of_another_shape() {
    let scene = Scene::new().await;
    for body in ["{}", r#"{"version":""}"#, r#"{"version":null}"#] {
        scene
            .send(Method::POST, HANDSHAKE, &[scene.sidecar()], body)
            .await
            .says(StatusCode::BAD_REQUEST, "version is required");
    }
    for body in [
        "",
        "x",
        "[]",
        r#"{"version":1}"#,
        r#"{"version":"1","last_error":{}}"#,
    ] {
        scene
            .send(Method::POST, HANDSHAKE, &[scene.sidecar()], body)
            .await
            .is(StatusCode::BAD_REQUEST);
    }
    assert_eq!(sidecar(&scene).await["last_seen"], Value::Null);
}

#[tokio::test]
async fn approvals_need_no_handshake() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    assert_eq!(scene.claim(&id).await.asked(), (true, "EXECUTED"));
    assert_eq!(sidecar(&scene).await["last_seen"], Value::Null);
}
