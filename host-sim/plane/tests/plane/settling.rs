//! Owns the cases of an approval that the upstream's answer spends: `"spend_on": "accepted"`, PROCESSING and the settle
//! route; the scene carries them out. They must not know the plane's insides.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::http::StatusCode;
use serde_json::json;

use crate::scene::{APPROVAL_TTL, LANE, PROCESSING_TTL, RULE, Scene, filing, statement};

/// An approval in flight: its id and its release.
async fn in_flight(scene: &Scene, bytes: &[u8]) -> (String, String) {
    let id = scene.approved(bytes).await;
    let claimed = scene.claim_accepted(&id).await.is(StatusCode::OK);
    assert_eq!(claimed.asked(), (true, "PROCESSING"));
    (id, claimed.release_id())
}

#[tokio::test]
async fn an_approval_in_flight_releases_nobody_else() {
    let scene = Scene::new().await;
    let (id, _) = in_flight(&scene, &statement("1")).await;
    for _ in 0..2 {
        assert_eq!(
            scene.claim_accepted(&id).await.asked(),
            (false, "PROCESSING")
        );
        assert_eq!(scene.claim(&id).await.asked(), (false, "PROCESSING"));
        for filed in [
            scene.file(&statement("1")).await,
            scene.file_accepted(&statement("1")).await,
        ] {
            let filed = filed.is(StatusCode::OK);
            assert_eq!(
                (filed.asked(), filed.id()),
                ((false, "PROCESSING"), id.clone())
            );
        }
    }
    assert_eq!(scene.read(&id).await.status_word(), "PROCESSING");
    assert_eq!(
        scene.list("?status=processing").await.json[0]["id"],
        id.as_str()
    );
    scene
        .decide(&id, "REVOKED")
        .await
        .is(StatusCode::BAD_REQUEST);
    scene.decide(&id, "REJECTED").await.conflicts("PROCESSING");
}

#[tokio::test]
async fn a_filing_releases_into_flight_as_a_claim_does() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    let released = scene
        .file_accepted(&statement("1"))
        .await
        .is(StatusCode::OK);
    assert_eq!(
        (released.asked(), released.id()),
        ((true, "PROCESSING"), id.clone())
    );
    let settled = scene
        .settle(&id, "spent", Some(&released.release_id()))
        .await;
    assert_eq!(settled.is(StatusCode::OK).asked(), (false, "EXECUTED"));
}

#[tokio::test]
async fn asking_for_accepted_files_and_waits_as_ever() {
    let scene = Scene::new().await;
    let filed = scene.file_accepted(&statement("1")).await;
    let filed = filed.is(StatusCode::CREATED);
    assert_eq!(filed.asked(), (false, "PENDING"));
    let id = filed.id();
    assert_eq!(scene.claim_accepted(&id).await.json, filed.json);
    scene.decide(&id, "REJECTED").await.is(StatusCode::OK);
    assert_eq!(scene.claim_accepted(&id).await.asked(), (false, "REJECTED"));
}

#[tokio::test]
async fn what_the_upstream_took_is_spent() {
    let scene = Scene::new().await;
    let (id, release) = in_flight(&scene, &statement("1")).await;
    scene.clock.advance_sec(5);
    let settled = scene
        .settle(&id, "spent", Some(&release))
        .await
        .is(StatusCode::OK);
    assert_eq!(
        (settled.asked(), settled.id()),
        ((false, "EXECUTED"), id.clone())
    );
    assert_eq!(scene.claim_accepted(&id).await.asked(), (false, "EXECUTED"));
    let seen = scene.people(&format!("/{id}")).await.json;
    assert_eq!(seen["executed_at"], "2023-11-14T22:13:25Z");
    assert_eq!(seen["decided_at"], "2023-11-14T22:13:20Z");
    let again = scene
        .file(&statement("1"))
        .await
        .is(StatusCode::CREATED)
        .id();
    assert_eq!(
        scene.people(&format!("/{again}")).await.json["ran_before"],
        1
    );
}

#[tokio::test]
async fn what_the_upstream_refused_can_be_used_again_by_one() {
    let scene = Scene::new().await;
    let (id, release) = in_flight(&scene, &statement("1")).await;
    let returned = scene.settle(&id, "returned", Some(&release)).await;
    assert_eq!(returned.is(StatusCode::OK).asked(), (false, "APPROVED"));
    let standing = scene.people(&format!("/{id}")).await.json;
    assert_eq!(standing["decided_at"], "2023-11-14T22:13:20Z");
    assert!(standing.get("executed_at").is_none() && standing.get("settle_by").is_none());
    let second = scene
        .file_accepted(&statement("1"))
        .await
        .is(StatusCode::OK);
    assert_eq!(second.asked(), (true, "PROCESSING"));
    assert_ne!(second.release_id(), release);
    let third = scene.settle(&id, "returned", None).await.is(StatusCode::OK);
    assert_eq!(third.asked(), (false, "APPROVED"));
    assert_eq!(scene.claim(&id).await.asked(), (true, "EXECUTED"));
}

#[tokio::test]
async fn a_settlement_told_twice_is_taken_once() {
    let scene = Scene::new().await;
    for (outcome, stands, other) in [
        ("spent", "EXECUTED", "returned"),
        ("returned", "APPROVED", "spent"),
    ] {
        let (id, release) = in_flight(&scene, &statement(outcome)).await;
        let first = scene
            .settle(&id, outcome, Some(&release))
            .await
            .is(StatusCode::OK);
        scene.clock.advance_sec(1);
        for release in [Some(release.as_str()), None] {
            let again = scene.settle(&id, outcome, release).await.is(StatusCode::OK);
            assert_eq!(again.json, first.json);
            scene.settle(&id, other, release).await.conflicts(stands);
        }
        assert_eq!(scene.read(&id).await.status_word(), stands);
    }
}

#[tokio::test]
async fn a_late_word_about_an_earlier_flight_does_not_end_a_later_one() {
    let scene = Scene::new().await;
    let (id, first) = in_flight(&scene, &statement("1")).await;
    scene
        .settle(&id, "returned", Some(&first))
        .await
        .is(StatusCode::OK);
    let second = scene.claim_accepted(&id).await.release_id();
    for outcome in ["returned", "spent"] {
        scene.settle(&id, outcome, Some(&first)).await.says(
            StatusCode::CONFLICT,
            "release_id is not the review's last release: it is PROCESSING",
        );
        scene
            .settle(&id, outcome, Some(""))
            .await
            .conflicts("PROCESSING");
    }
    assert_eq!(
        scene.claim_accepted(&id).await.asked(),
        (false, "PROCESSING")
    );
    scene
        .settle(&id, "spent", Some(&second))
        .await
        .is(StatusCode::OK);
    scene
        .settle(&id, "returned", Some(&first))
        .await
        .conflicts("EXECUTED");
}

#[tokio::test]
async fn a_word_about_a_flight_does_not_touch_a_release_that_spent_at_once() {
    let scene = Scene::new().await;
    let (id, release) = in_flight(&scene, &statement("1")).await;
    scene
        .settle(&id, "returned", Some(&release))
        .await
        .is(StatusCode::OK);
    assert_eq!(scene.claim(&id).await.asked(), (true, "EXECUTED"));
    for outcome in ["returned", "spent"] {
        scene
            .settle(&id, outcome, Some(&release))
            .await
            .conflicts("EXECUTED");
    }
    scene.settle(&id, "returned", None).await.says(
        StatusCode::CONFLICT,
        "review cannot be settled as returned: it is EXECUTED",
    );
}

#[tokio::test]
async fn a_review_that_never_flew_is_not_settled() {
    let scene = Scene::new().await;
    let pending = scene.file(&statement("1")).await.id();
    let approved = scene.approved(&statement("2")).await;
    let lapsing = scene.approved(&statement("3")).await;
    let rejected = scene.file(&statement("4")).await.id();
    scene.decide(&rejected, "REJECTED").await.is(StatusCode::OK);
    for outcome in ["spent", "returned"] {
        for release in [None, Some("x")] {
            scene
                .settle(&pending, outcome, release)
                .await
                .conflicts("PENDING");
            scene
                .settle(&approved, outcome, release)
                .await
                .conflicts("APPROVED");
            scene
                .settle(&rejected, outcome, release)
                .await
                .conflicts("REJECTED");
        }
    }
    scene.clock.advance_sec(APPROVAL_TTL);
    scene
        .settle(&lapsing, "returned", None)
        .await
        .conflicts("EXPIRED");
}

#[tokio::test]
async fn a_flight_that_nobody_settles_is_spent_at_its_deadline() {
    let scene = Scene::new().await;
    let (id, release) = in_flight(&scene, &statement("1")).await;
    let seen = scene.people(&format!("/{id}")).await.json;
    assert_eq!(seen["settle_by"], "2023-11-14T22:14:50Z");
    scene.clock.advance_sec(PROCESSING_TTL - 1);
    assert_eq!(scene.read(&id).await.status_word(), "PROCESSING");
    scene.clock.advance_sec(1);
    assert_eq!(scene.read(&id).await.status_word(), "EXECUTED");
    assert_eq!(
        scene.list("?status=executed").await.json[0]["id"],
        id.as_str()
    );
    assert_eq!(scene.list("?status=processing").await.json, json!([]));
    assert_eq!(scene.claim_accepted(&id).await.asked(), (false, "EXECUTED"));
    scene
        .settle(&id, "returned", Some(&release))
        .await
        .conflicts("EXECUTED");
    scene
        .settle(&id, "returned", None)
        .await
        .conflicts("EXECUTED");
    let late = scene
        .settle(&id, "spent", Some(&release))
        .await
        .is(StatusCode::OK);
    assert_eq!(late.asked(), (false, "EXECUTED"));
    let seen = scene.people(&format!("/{id}")).await.json;
    assert_eq!(seen["executed_at"], "2023-11-14T22:14:50Z");
    assert!(seen.get("settle_by").is_none());
    // The same bytes are a new question, whose approver sees that they may have run.
    let anew = scene
        .file_accepted(&statement("1"))
        .await
        .is(StatusCode::CREATED);
    assert_ne!(anew.id(), id);
    assert_eq!(
        scene.people(&format!("/{}", anew.id())).await.json["ran_before"],
        1
    );
    assert_eq!(
        scene.people(&format!("/{id}")).await.json["executed_at"],
        "2023-11-14T22:14:50Z"
    );
    scene
        .settle(&id, "returned", Some(&release))
        .await
        .conflicts("EXECUTED");
}

#[tokio::test]
async fn a_flight_outlives_its_approvals_deadline_and_comes_back_expired() {
    let scene = Scene::new().await;
    let (id, release) = in_flight(&scene, &statement("1")).await;
    scene.clock.advance_sec(APPROVAL_TTL);
    assert_eq!(scene.read(&id).await.status_word(), "PROCESSING");
    for _ in 0..2 {
        let returned = scene.settle(&id, "returned", Some(&release)).await;
        assert_eq!(returned.is(StatusCode::OK).asked(), (false, "EXPIRED"));
    }
    assert_eq!(scene.claim_accepted(&id).await.asked(), (false, "EXPIRED"));
    scene
        .settle(&id, "spent", Some(&release))
        .await
        .conflicts("EXPIRED");
    scene.file(&statement("1")).await.is(StatusCode::CREATED);
}

#[tokio::test]
async fn a_returned_approval_can_be_taken_back() {
    let scene = Scene::new().await;
    let (id, release) = in_flight(&scene, &statement("1")).await;
    scene
        .settle(&id, "returned", Some(&release))
        .await
        .is(StatusCode::OK);
    scene.decide(&id, "REVOKED").await.is(StatusCode::OK);
    let again = scene.settle(&id, "returned", Some(&release)).await;
    assert_eq!(again.is(StatusCode::OK).asked(), (false, "REVOKED"));
    scene
        .settle(&id, "spent", Some(&release))
        .await
        .conflicts("REVOKED");
    assert_eq!(scene.claim_accepted(&id).await.asked(), (false, "REVOKED"));
}

#[tokio::test]
async fn err_words_that_the_fields_do_not_have() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    let text = r#"spend_on must be one of release, accepted; found "Accepted""#;
    let mut body = filing(LANE, RULE, &statement("1"));
    body["spend_on"] = json!("Accepted");
    scene.post(&body).await.says(StatusCode::BAD_REQUEST, text);
    let claimed = scene.claim_with(&id, r#"{"spend_on":"Accepted"}"#).await;
    claimed.says(StatusCode::BAD_REQUEST, text);
    let long = format!("{{\"spend_on\":\"{}\"}}", "é".repeat(100));
    let cut = scene.claim_with(&id, long).await;
    assert!(
        cut.json["message"]
            .as_str()
            .is_some_and(|text| text.len() < 150)
    );
    for body in ["x", "[]", "\"accepted\"", r#"{"spend_on":1}"#, " "] {
        scene
            .claim_with(&id, body)
            .await
            .is(StatusCode::BAD_REQUEST);
    }
    scene
        .settle_with(&id, &json!({}))
        .await
        .says(StatusCode::BAD_REQUEST, "outcome is required");
    scene.settle(&id, "SPENT", None).await.says(
        StatusCode::BAD_REQUEST,
        r#"outcome must be one of spent, returned; found "SPENT""#,
    );
    for body in [
        json!([]),
        json!(1),
        json!({"outcome": "spent", "release_id": 1}),
    ] {
        scene
            .settle_with(&id, &body)
            .await
            .is(StatusCode::BAD_REQUEST);
    }
    assert_eq!(scene.read(&id).await.status_word(), "APPROVED");
    for body in [
        "{}",
        r#"{"spend_on":null}"#,
        r#"{"spend_on":"release","x":1}"#,
    ] {
        let id = scene.approved(&statement(body)).await;
        assert_eq!(
            scene.claim_with(&id, body).await.asked(),
            (true, "EXECUTED"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_settlement_of_what_is_not_there_is_not_found() {
    let scene = Scene::new().await;
    for id in [&uuid::Uuid::new_v4().to_string(), "x", "..", "a%2Fb", "%ff"] {
        scene
            .settle(id, "spent", None)
            .await
            .says(StatusCode::NOT_FOUND, "review not found");
    }
}

/// Senders that ask, run and settle, again and again, while others repeat whatever was said about flights that are over.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_senders_never_two_run_at_once_and_never_one_after_the_run_that_counts() {
    for round in 0..6 {
        let scene = Arc::new(Scene::new().await);
        let id = scene.approved(&statement("1")).await;
        let running = Arc::new(AtomicUsize::new(0));
        let spent = Arc::new(AtomicUsize::new(0));
        let over: Arc<Mutex<Vec<String>>> = Arc::default();
        let senders = (0..12_usize).map(|n| {
            let (scene, id) = (scene.clone(), id.clone());
            let (running, spent, over) = (running.clone(), spent.clone(), over.clone());
            tokio::spawn(async move {
                for turn in 0..8_usize {
                    if n % 4 == 3 {
                        let old = over.lock().expect("the list").get(turn).cloned();
                        if let Some(old) = old {
                            let word = if turn % 2 == 0 { "returned" } else { "spent" };
                            scene.settle(&id, word, Some(&old)).await;
                        }
                        continue;
                    }
                    let asked = if n % 2 == 0 {
                        scene.claim_accepted(&id).await
                    } else {
                        scene.file_accepted(&statement("1")).await
                    };
                    if !asked.asked().0 {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two run at once");
                    assert_eq!(spent.load(Ordering::SeqCst), 0, "a run after the last one");
                    scene.read(&id).await.is(StatusCode::OK);
                    let release = asked.release_id();
                    let last = n == round && turn > 0;
                    spent.fetch_add(usize::from(last), Ordering::SeqCst);
                    running.fetch_sub(1, Ordering::SeqCst);
                    // From here on another word about this flight may reach the plane first.
                    let outcome = if last { "spent" } else { "returned" };
                    scene
                        .settle(&id, outcome, Some(&release))
                        .await
                        .is(StatusCode::OK);
                    over.lock().expect("the list").push(release);
                }
            })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.await.expect("no two at once");
        }
        let expected = if spent.load(Ordering::SeqCst) == 1 {
            "EXECUTED"
        } else {
            "APPROVED"
        };
        assert_eq!(
            scene.read(&id).await.status_word(),
            expected,
            "round {round}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_contrary_words_about_one_flight_one_is_taken() {
    let scene = Arc::new(Scene::new().await);
    for n in 0..10 {
        let (id, release) = in_flight(&scene, &statement(&n.to_string())).await;
        let words = (0..8).map(|n| {
            let (scene, id, release) = (scene.clone(), id.clone(), release.clone());
            let word = if n % 2 == 0 { "spent" } else { "returned" };
            tokio::spawn(async move {
                let answer = scene.settle(&id, word, Some(&release)).await;
                (word, answer.status)
            })
        });
        let mut answers = Vec::new();
        for word in words.collect::<Vec<_>>() {
            answers.push(word.await.expect("no panic"));
        }
        let taken = match scene.read(&id).await.status_word() {
            "EXECUTED" => "spent",
            "APPROVED" => "returned",
            other => panic!("{other}"),
        };
        for (word, status) in answers {
            let expected = if word == taken {
                StatusCode::OK
            } else {
                StatusCode::CONFLICT
            };
            assert_eq!(status, expected, "{word}, and {taken} was taken");
        }
    }
}
