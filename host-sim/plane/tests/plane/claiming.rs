//! Owns the cases of `POST /api/sidecars/reviews/{id}/claim` (contract 1.5); the scene carries them out. They must
//! not know the plane's insides.

use axum::http::StatusCode;
use serde_json::json;

use crate::scene::{APPROVAL_TTL, PENDING_TTL, Scene, statement};

#[tokio::test]
async fn a_claim_answers_what_stands_and_files_nothing() {
    let scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    let pending = scene.claim(&id).await.is(StatusCode::OK);
    assert_eq!(
        (pending.asked(), pending.id()),
        ((false, "PENDING"), id.clone())
    );
    scene.decide(&id, "REJECTED").await.is(StatusCode::OK);
    assert_eq!(
        scene.claim(&id).await.is(StatusCode::OK).asked(),
        (false, "REJECTED")
    );
    assert_eq!(scene.list("").await.json.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_claim_has_the_shape_of_a_filing() {
    let scene = Scene::new().await;
    let filed = scene.file(&statement("1")).await;
    assert_eq!(scene.claim(&filed.id()).await.json, filed.json);
}

#[tokio::test]
async fn an_approval_is_claimed_once() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    assert_eq!(
        scene.claim(&id).await.is(StatusCode::OK).asked(),
        (true, "EXECUTED")
    );
    assert_eq!(
        scene.claim(&id).await.is(StatusCode::OK).asked(),
        (false, "EXECUTED")
    );
}

#[tokio::test]
async fn a_claim_and_a_resend_share_the_one_release() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    assert_eq!(scene.claim(&id).await.asked(), (true, "EXECUTED"));
    let resent = scene.file(&statement("1")).await.is(StatusCode::CREATED);
    assert_eq!(resent.asked(), (false, "PENDING"));
    let id = scene.approved(&statement("2")).await;
    assert_eq!(
        scene.file(&statement("2")).await.asked(),
        (true, "EXECUTED")
    );
    assert_eq!(scene.claim(&id).await.asked(), (false, "EXECUTED"));
}

#[tokio::test]
async fn a_revoked_or_lapsed_approval_cannot_be_claimed() {
    let scene = Scene::new().await;
    let revoked = scene.approved(&statement("1")).await;
    scene.decide(&revoked, "REVOKED").await.is(StatusCode::OK);
    assert_eq!(scene.claim(&revoked).await.asked(), (false, "REVOKED"));
    let lapsing = scene.approved(&statement("2")).await;
    let waiting = scene.file(&statement("3")).await.id();
    scene.clock.advance_sec(APPROVAL_TTL);
    assert_eq!(scene.claim(&lapsing).await.asked(), (false, "EXPIRED"));
    assert_eq!(scene.claim(&waiting).await.asked(), (false, "PENDING"));
    scene.clock.advance_sec(PENDING_TTL - APPROVAL_TTL);
    assert_eq!(scene.claim(&waiting).await.asked(), (false, "EXPIRED"));
}

#[tokio::test]
async fn an_approval_is_good_until_its_last_second() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    scene.clock.advance_sec(APPROVAL_TTL - 1);
    assert_eq!(scene.claim(&id).await.asked(), (true, "EXECUTED"));
}

#[tokio::test]
async fn an_approval_without_a_limit_outlives_the_pending_limit() {
    let scene = Scene::new().await;
    let id = scene.file_unlimited(&statement("1")).await.id();
    scene.decide(&id, "APPROVED").await.is(StatusCode::OK);
    scene.clock.advance_sec(u32::MAX);
    assert_eq!(scene.claim(&id).await.asked(), (true, "EXECUTED"));
}

#[tokio::test]
async fn a_claim_of_what_is_not_there_is_not_found() {
    let scene = Scene::new().await;
    for id in [
        &uuid::Uuid::new_v4().to_string(),
        "x",
        "..",
        "%2e%2e",
        "a%2Fb",
        "%ff",
        "0",
    ] {
        scene
            .claim(id)
            .await
            .says(StatusCode::NOT_FOUND, "review not found");
    }
    assert_eq!(scene.list("").await.json, json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_resends_and_a_revocation_at_once_release_at_most_one() {
    for round in 0..10 {
        let scene = std::sync::Arc::new(Scene::new().await);
        let id = scene.approved(&statement("1")).await;
        let asks = (0..12).map(|n| {
            let (scene, id) = (scene.clone(), id.clone());
            tokio::spawn(async move {
                match n % 3 {
                    0 => scene.claim(&id).await.asked().0,
                    1 => scene.file(&statement("1")).await.asked().0,
                    _ if n == 5 => {
                        // The contract has 400 for the one that came too late.
                        let revoked = scene.decide(&id, "REVOKED").await;
                        assert!(matches!(
                            revoked.status,
                            StatusCode::OK | StatusCode::BAD_REQUEST
                        ));
                        false
                    }
                    _ => {
                        scene.read(&id).await.is(StatusCode::OK);
                        false
                    }
                }
            })
        });
        let mut released = 0;
        for ask in asks.collect::<Vec<_>>() {
            released += u32::from(ask.await.expect("no panic"));
        }
        let end = scene.read(&id).await;
        match end.status_word() {
            "EXECUTED" => assert_eq!(released, 1, "round {round}"),
            "REVOKED" => assert_eq!(released, 0, "round {round}"),
            other => panic!("round {round}: {other}"),
        }
    }
}
