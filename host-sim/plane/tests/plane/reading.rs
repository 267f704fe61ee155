//! Owns the cases of reading and listing (contract 1.6, 1.7) and of what people see (1.10); the scene carries them
//! out. They must not know the plane's insides.

use axum::http::StatusCode;
use serde_json::{Value, json};
use sqlx::Row;

use crate::scene::{APPROVAL_TTL, LANE, PENDING_TTL, RULE, Scene, filing, statement};

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn a_review_reads_with_the_fields_of_the_contract_and_no_more() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    let pending = scene.read(&id).await.is(StatusCode::OK);
    assert_eq!(
        pending.json,
        json!({
            "id": id, "status": "PENDING", "listener_name": LANE, "approval_rule": RULE,
            "created_at": "2023-11-14T22:13:20Z", "decided_at": null, "expires_at": "2023-11-14T22:15:00Z"
        })
    );
    scene.clock.advance_sec(5);
    scene
        .put(
            &id,
            &json!({"status": "REJECTED", "rejection_reason": " too much "}),
        )
        .await
        .is(StatusCode::OK);
    let rejected = scene.read(&id).await.is(StatusCode::OK);
    assert_eq!(rejected.json["decided_at"], "2023-11-14T22:13:25Z");
    assert_eq!(rejected.json["rejection_reason"], "too much");
}

#[tokio::test]
async fn an_approval_replaces_the_deadline_or_clears_it() {
    let scene = Scene::new().await;
    scene.clock.advance_sec(10);
    let limited = scene.approved(&statement("1")).await;
    assert_eq!(
        scene.read(&limited).await.json["expires_at"],
        "2023-11-14T22:14:30Z"
    );
    let unlimited = scene.file_unlimited(&statement("1")).await.id();
    scene
        .decide(&unlimited, "APPROVED")
        .await
        .is(StatusCode::OK);
    assert!(
        scene
            .read(&unlimited)
            .await
            .json
            .get("expires_at")
            .is_none()
    );
}

#[tokio::test]
async fn an_id_is_read_in_each_form_of_a_uuid_and_answered_in_one() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    for form in [
        id.clone(),
        id.to_uppercase(),
        id.replace('-', ""),
        format!("%7B{id}%7D"),
        format!("urn:uuid:{id}"),
    ] {
        assert_eq!(
            scene.read(&form).await.is(StatusCode::OK).json["id"],
            id.as_str()
        );
        assert_eq!(scene.claim(&form).await.is(StatusCode::OK).id(), id);
        assert_eq!(
            scene
                .people(&format!("/{form}"))
                .await
                .is(StatusCode::OK)
                .json["id"],
            id.as_str()
        );
    }
}

#[tokio::test]
async fn what_is_no_id_or_nobodys_id_is_not_found() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    for form in [
        &uuid::Uuid::new_v4().to_string(),
        &id[..35],
        &format!("{id}0"),
        &format!("%20{id}"),
        "%2e%2e",
        "a%2Fb",
        "%ff",
        "'",
    ] {
        scene
            .read(form)
            .await
            .says(StatusCode::NOT_FOUND, "review not found");
        scene
            .people(&format!("/{form}"))
            .await
            .says(StatusCode::NOT_FOUND, "review not found");
    }
}

#[tokio::test]
async fn what_has_lapsed_reads_as_expired_and_reading_writes_nothing() {
    let scene = Scene::new().await;
    let waiting = scene.file(&statement("1")).await.id();
    let approved = scene.approved(&statement("2")).await;
    let before = dump(&scene).await;
    scene.clock.advance_sec(APPROVAL_TTL - 1);
    assert_eq!(scene.read(&approved).await.status_word(), "APPROVED");
    scene.clock.advance_sec(1);
    assert_eq!(scene.read(&approved).await.status_word(), "EXPIRED");
    assert_eq!(scene.read(&waiting).await.status_word(), "PENDING");
    scene.clock.advance_sec(PENDING_TTL - APPROVAL_TTL);
    for id in [&waiting, &approved] {
        assert_eq!(scene.read(id).await.status_word(), "EXPIRED");
        assert_eq!(
            scene.people(&format!("/{id}")).await.status_word(),
            "EXPIRED"
        );
        assert_eq!(scene.claim(id).await.asked(), (false, "EXPIRED"));
    }
    assert_eq!(
        scene
            .list("?status=expired")
            .await
            .json
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(scene.list("?status=PENDING").await.json, json!([]));
    assert_eq!(dump(&scene).await, before);
}

#[tokio::test]
async fn a_list_shows_the_newest_first_within_its_limit_and_status() {
    let scene = Scene::new().await;
    let mut ids = Vec::new();
    for n in 0..25 {
        ids.insert(0, scene.file(&statement(&n.to_string())).await.id());
    }
    let listed = |answer: crate::scene::Answer| -> Vec<String> {
        let rows = answer.is(StatusCode::OK).json;
        let rows = rows.as_array().expect("an array");
        rows.iter()
            .map(|row| row["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(listed(scene.list("").await), ids[..20]);
    assert_eq!(listed(scene.list("?limit=3").await), ids[..3]);
    assert_eq!(listed(scene.list("?limit=200&status=").await), ids);
    scene.decide(&ids[7], "APPROVED").await.is(StatusCode::OK);
    for word in ["APPROVED", "approved", "Approved"] {
        assert_eq!(
            listed(scene.list(&format!("?status={word}")).await),
            ids[7..8]
        );
        assert_eq!(
            listed(scene.people(&format!("?status={word}")).await),
            ids[7..8]
        );
    }
    let row = &scene.list("?status=APPROVED").await.json[0];
    assert_eq!(*row, scene.read(&ids[7]).await.json);
}

#[tokio::test]
async fn err_limits_and_statuses_outside_the_contract() {
    let scene = Scene::new().await;
    for limit in ["0", "201", "x", "", "-1", "1.5", "99999999999"] {
        let query = format!("?limit={limit}");
        scene.list(&query).await.says(
            StatusCode::BAD_REQUEST,
            "limit must be a number from 1 to 200",
        );
        scene.people(&query).await.says(
            StatusCode::BAD_REQUEST,
            "limit must be a number from 1 to 200",
        );
    }
    for query in ["?status=FOO", "?status=UNKNOWN", "?status=%00"] {
        scene.list(query).await.says(
            StatusCode::BAD_REQUEST,
            "status must be one of PENDING, APPROVED, REJECTED, REVOKED, PROCESSING, EXECUTED, EXPIRED",
        );
    }
    scene
        .list("?limit=1&limit=2")
        .await
        .says(StatusCode::BAD_REQUEST, "query string cannot be read");
    scene.list("?other=1").await.is(StatusCode::OK);
}

#[tokio::test]
async fn a_person_sees_the_statement_its_hash_who_asked_and_nothing_hidden() {
    let scene = Scene::new().await;
    let bytes = statement("\u{202e}1");
    let mut body = filing(LANE, RULE, &bytes);
    body["requester"] = json!({"subject": "ann\u{200b}"});
    let id = scene.post(&body).await.id();
    let seen = scene.people(&format!("/{id}")).await.is(StatusCode::OK);
    assert_eq!(
        keys(&seen.json),
        [
            "approval_rule",
            "created_at",
            "decided_at",
            "expires_at",
            "id",
            "listener_name",
            "ran_before",
            "requester",
            "statement",
            "statement_bytes",
            "statement_sha256",
            "status"
        ]
    );
    assert_eq!(
        seen.json["statement"],
        format!(
            "[binary statement, {} bytes: a byte that is not printable shows as \\xNN, a backslash as \\\\]\n\
             DELETE /marker-7f3a/\\xe2\\x80\\xae1",
            bytes.len()
        )
    );
    assert_eq!(seen.json["statement_bytes"], bytes.len());
    assert_eq!(
        seen.json["statement_sha256"].as_str().map(str::len),
        Some(64)
    );
    assert_eq!(seen.json["requester"]["subject"], "ann\\xe2\\x80\\x8b");
    assert_eq!(scene.people("").await.json[0], seen.json);
}

#[tokio::test]
async fn a_person_sees_how_often_the_same_statement_ran_before() {
    let scene = Scene::new().await;
    for ran_before in 0..3 {
        let id = scene.approved(&statement("1")).await;
        assert_eq!(
            scene.people(&format!("/{id}")).await.json["ran_before"],
            ran_before
        );
        scene.claim(&id).await.is(StatusCode::OK);
        let executed = scene.people(&format!("/{id}")).await.json;
        assert_eq!(
            executed["ran_before"], ran_before,
            "its own run is not one before it"
        );
        assert_eq!(executed["executed_at"], "2023-11-14T22:13:20Z");
    }
    let other = scene.file(&statement("2")).await.id();
    assert_eq!(
        scene.people(&format!("/{other}")).await.json["ran_before"],
        0
    );
}

/// Every column of every review that a step of its life could change.
async fn dump(scene: &Scene) -> Vec<(String, String, Option<i64>, Option<i64>)> {
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(scene.dir.join("plane.sqlite3"))
        .read_only(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.expect("open");
    let rows = sqlx::query("SELECT id, status, expires_at, decided_at FROM reviews ORDER BY seq")
        .fetch_all(&pool)
        .await
        .expect("read");
    let dump = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect();
    pool.close().await;
    dump
}
