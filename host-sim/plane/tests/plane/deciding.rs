//! Owns the cases of `PUT /api/reviews/{id}` (contract 1.10); the scene carries them out. They must not know the
//! plane's insides.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::scene::{APPROVAL_TTL, PENDING_TTL, Scene, statement};

#[tokio::test]
async fn each_decision_answers_the_review_as_it_stands_then() {
    let scene = Scene::new().await;
    let approved = scene.file(&statement("1")).await.id();
    assert_eq!(
        scene
            .decide(&approved, "APPROVED")
            .await
            .is(StatusCode::OK)
            .status_word(),
        "APPROVED"
    );
    assert_eq!(
        scene
            .decide(&approved, "REVOKED")
            .await
            .is(StatusCode::OK)
            .status_word(),
        "REVOKED"
    );
    let rejected = scene.file(&statement("2")).await.id();
    let answer = scene
        .put(
            &rejected,
            &json!({"status": "rejected", "rejection_reason": "no", "force_review": true}),
        )
        .await;
    assert_eq!(
        answer.is(StatusCode::OK).json,
        scene.people(&format!("/{rejected}")).await.json
    );
}

#[tokio::test]
async fn the_second_to_decide_is_told_what_stands() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    for status in ["APPROVED", "REJECTED"] {
        let answer = scene.decide(&id, status).await;
        assert_eq!(answer.status_word(), "APPROVED");
        answer.says(
            StatusCode::CONFLICT,
            "review is already decided: it is APPROVED",
        );
    }
    scene.claim(&id).await.is(StatusCode::OK);
    let answer = scene.decide(&id, "REJECTED").await.is(StatusCode::CONFLICT);
    assert_eq!(answer.status_word(), "EXECUTED");
    assert_eq!(scene.read(&id).await.status_word(), "EXECUTED");
}

#[tokio::test]
async fn only_an_approved_unused_review_can_be_revoked() {
    let scene = Scene::new().await;
    let pending = scene.file(&statement("1")).await.id();
    let used = scene.approved(&statement("2")).await;
    scene.claim(&used).await.is(StatusCode::OK);
    let rejected = scene.file(&statement("3")).await.id();
    scene.decide(&rejected, "REJECTED").await.is(StatusCode::OK);
    for (id, standing) in [
        (pending, "PENDING"),
        (used, "EXECUTED"),
        (rejected, "REJECTED"),
    ] {
        let answer = scene.decide(&id, "REVOKED").await;
        assert_eq!(answer.status_word(), standing);
        answer.says(
            StatusCode::BAD_REQUEST,
            &format!("only an approved, unused review can be revoked: it is {standing}"),
        );
        assert_eq!(scene.read(&id).await.status_word(), standing);
    }
}

#[tokio::test]
async fn a_decision_after_the_deadline_is_refused_and_changes_nothing() {
    let scene = Scene::new().await;
    let waiting = scene.file(&statement("1")).await.id();
    let approved = scene.approved(&statement("2")).await;
    scene.clock.advance_sec(PENDING_TTL);
    for (id, status) in [
        (&waiting, "APPROVED"),
        (&waiting, "REJECTED"),
        (&approved, "REVOKED"),
        (&approved, "APPROVED"),
    ] {
        let answer = scene.decide(id, status).await;
        assert_eq!(answer.status_word(), "EXPIRED");
        answer.says(StatusCode::BAD_REQUEST, "review expired");
        assert_eq!(scene.read(id).await.status_word(), "EXPIRED");
        assert_eq!(scene.claim(id).await.asked(), (false, "EXPIRED"));
    }
}

#[tokio::test]
async fn an_expiry_that_was_written_down_cannot_be_decided_either() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    scene.clock.advance_sec(PENDING_TTL);
    scene.file(&statement("1")).await.is(StatusCode::CREATED);
    scene
        .decide(&id, "APPROVED")
        .await
        .says(StatusCode::BAD_REQUEST, "review expired");
}

#[tokio::test]
async fn a_decision_in_the_last_second_counts() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    scene.clock.advance_sec(PENDING_TTL - 1);
    scene.decide(&id, "APPROVED").await.is(StatusCode::OK);
    scene.clock.advance_sec(APPROVAL_TTL - 1);
    assert_eq!(
        scene.file(&statement("1")).await.asked(),
        (true, "EXECUTED")
    );
}

#[tokio::test]
async fn err_decisions_that_are_none() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    for status in ["PENDING", "EXECUTED", "EXPIRED", "PROCESSING", "yes", ""] {
        scene.decide(&id, status).await.says(
            StatusCode::BAD_REQUEST,
            "status must be one of APPROVED, REJECTED, REVOKED",
        );
    }
    scene
        .put(&id, &json!({}))
        .await
        .says(StatusCode::BAD_REQUEST, "status is required");
    for body in ["", "[]", "[\"APPROVED\"]", "{\"status\":1}", "APPROVED"] {
        let path = format!("/api/reviews/{id}");
        scene
            .send(Method::PUT, &path, &[scene.approver()], body)
            .await
            .is(StatusCode::BAD_REQUEST);
    }
    assert_eq!(scene.read(&id).await.status_word(), "PENDING");
}

#[tokio::test]
async fn err_reasons_that_do_not_belong_or_do_not_fit() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    scene
        .put(
            &id,
            &json!({"status": "APPROVED", "rejection_reason": "why"}),
        )
        .await
        .says(
            StatusCode::BAD_REQUEST,
            "rejection_reason goes with status REJECTED only",
        );
    for reason in ["x".repeat(1_001), "a\nb".to_owned(), "\u{1b}[2J".to_owned()] {
        scene
            .put(
                &id,
                &json!({"status": "REJECTED", "rejection_reason": reason}),
            )
            .await
            .says(
                StatusCode::BAD_REQUEST,
                "rejection_reason must be at most 1000 bytes without control characters",
            );
    }
    assert_eq!(scene.read(&id).await.status_word(), "PENDING");
    scene
        .put(
            &id,
            &json!({"status": "REJECTED", "rejection_reason": "x".repeat(1_000)}),
        )
        .await
        .is(StatusCode::OK);
}

#[tokio::test]
async fn a_decision_on_what_is_not_there_is_not_found() {
    let scene = Scene::new().await;
    for id in [&uuid::Uuid::new_v4().to_string(), "x", "%ff"] {
        scene
            .decide(id, "APPROVED")
            .await
            .says(StatusCode::NOT_FOUND, "review not found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_decide_at_once_one_wins_and_all_learn_who() {
    for _ in 0..5 {
        let scene = Arc::new(Scene::new().await);
        let id = scene.file(&statement("1")).await.id();
        let puts = (0..10).map(|n| {
            let (scene, id) = (scene.clone(), id.clone());
            let status = if n % 2 == 0 { "APPROVED" } else { "REJECTED" };
            tokio::spawn(async move { scene.decide(&id, status).await })
        });
        let mut winners = 0;
        let mut told = Vec::new();
        for put in puts.collect::<Vec<_>>() {
            let answer = put.await.expect("no panic");
            assert!(
                matches!(answer.status, StatusCode::OK | StatusCode::CONFLICT),
                "{}",
                answer.json
            );
            winners += u32::from(answer.status == StatusCode::OK);
            told.push(answer.status_word().to_owned());
        }
        let standing = scene.read(&id).await.status_word().to_owned();
        assert_eq!(winners, 1);
        assert!(
            told.iter().all(|word| *word == standing),
            "{told:?} {standing}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_approval_and_the_deadline_at_once_end_one_way_for_all() {
    for _ in 0..10 {
        let scene = Arc::new(Scene::new().await);
        let id = scene.file(&statement("1")).await.id();
        scene.clock.advance_sec(PENDING_TTL - 1);
        let tick = {
            let scene = scene.clone();
            tokio::spawn(async move { scene.clock.advance_sec(1) })
        };
        let put = {
            let (scene, id) = (scene.clone(), id.clone());
            tokio::spawn(async move { scene.decide(&id, "APPROVED").await })
        };
        tick.await.expect("no panic");
        let approved = put.await.expect("no panic").status == StatusCode::OK;
        let (released, _) = scene.claim(&id).await.asked();
        assert_eq!(released, approved);
    }
}
