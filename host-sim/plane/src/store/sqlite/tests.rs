//! Owns the tests that hold the SQL and the pure rules of `lifecycle` together, for every status and side of a deadline;
//! the test runner drives it. It must not know the API.

use std::path::PathBuf;

use super::*;
use crate::{clock::ManualClock, store::Statement};

const NOW: i64 = 1_000_000;

/// Before, at and after the deadline, and without one.
const DEADLINES: [Option<i64>; 4] = [Some(NOW - 1), Some(NOW), Some(NOW + 1), None];

struct Scene {
    store: SqliteStore,
    dir: PathBuf,
}

impl Scene {
    async fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("plane-store-{}", Uuid::new_v4().simple()));
        std::fs::create_dir(&dir).expect("create a directory");
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_sec(NOW)));
        let store = SqliteStore::open(&dir.join("db"), clock)
            .await
            .expect("open");
        Self { store, dir }
    }

    /// A review that stands so in the table, however it came there.
    async fn row(&self, status: Status, expires_at: Option<i64>) -> Uuid {
        let mut tx = self.store.begin().await.expect("begin");
        let name = Uuid::new_v4().to_string();
        let filed = insert(
            &mut tx,
            &filing(&name),
            &"0".repeat(64),
            Timestamp::from_unix_sec(NOW),
        )
        .await
        .expect("insert");
        sqlx::query("UPDATE reviews SET status = ?, expires_at = ? WHERE seq = ?")
            .bind(status.as_str())
            .bind(expires_at)
            .bind(filed.review.seq)
            .execute(&mut *tx)
            .await
            .expect("update");
        tx.commit().await.expect("commit");
        filed.review.id
    }

    async fn stored(&self, id: Uuid) -> String {
        sqlx::query_scalar("SELECT status FROM reviews WHERE id = ?")
            .bind(id.to_string())
            .fetch_one(&self.store.readers)
            .await
            .expect("read")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn filing(listener_name: &str) -> Filing {
    Filing {
        listener_name: listener_name.to_owned(),
        approval_rule: "rule".to_owned(),
        statement: Statement::new(b"statement".to_vec()),
        requester: None,
        reviewers: vec!["group".to_owned()],
        pending_ttl_sec: None,
        approval_ttl_sec: Some(60),
    }
}

fn cases() -> impl Iterator<Item = (Status, Option<i64>, Status)> {
    Status::ALL.into_iter().flat_map(|stored| {
        DEADLINES.into_iter().map(move |deadline| {
            let expires_at = deadline.map(Timestamp::from_unix_sec);
            (
                stored,
                deadline,
                stored.at(expires_at, Timestamp::from_unix_sec(NOW)),
            )
        })
    })
}

#[tokio::test]
async fn a_list_by_status_finds_what_reads_so() {
    let scene = Scene::new().await;
    let mut expected = Vec::new();
    for (stored, deadline, reads) in cases() {
        expected.push((scene.row(stored, deadline).await, reads));
    }
    for status in Status::ALL {
        let found = scene.store.reviews(Some(status), 200).await.expect("list");
        let people = scene.store.dossiers(Some(status), 200).await.expect("list");
        let ids: Vec<Uuid> = found.iter().map(|review| review.id).collect();
        let wanted: Vec<Uuid> = expected
            .iter()
            .rev()
            .filter(|(_, reads)| *reads == status)
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(ids, wanted, "{status}");
        assert!(found.iter().all(|review| review.status == status));
        assert_eq!(
            people
                .iter()
                .map(|dossier| dossier.review.id)
                .collect::<Vec<_>>(),
            wanted
        );
    }
}

#[tokio::test]
async fn a_claim_releases_what_reads_approved_and_nothing_else() {
    let scene = Scene::new().await;
    for (stored, deadline, reads) in cases() {
        let id = scene.row(stored, deadline).await;
        let asked = scene.store.claim(id).await.expect("claim").expect("found");
        if reads == Status::Approved {
            assert_eq!(
                (asked.outcome, asked.review.status),
                (Outcome::Released, Status::Executed)
            );
        } else {
            assert_eq!(
                (asked.outcome, asked.review.status),
                (Outcome::Standing, reads)
            );
            assert_eq!(scene.stored(id).await, stored.as_str());
        }
    }
}

#[tokio::test]
async fn a_decision_is_written_exactly_when_the_rule_allows_it() {
    let scene = Scene::new().await;
    for decision in [
        Decision::Approve,
        Decision::Reject { reason: None },
        Decision::Revoke,
    ] {
        for (stored, deadline, reads) in cases() {
            let id = scene.row(stored, deadline).await;
            match (
                scene.store.decide(id, &decision).await.expect("decide"),
                decision.refusal(reads),
            ) {
                (Decided::Taken(dossier), None) => assert_eq!(dossier.review.status, decision.to()),
                (Decided::Refused(found), Some(expected)) => {
                    assert_eq!(found, expected);
                    assert_eq!(scene.stored(id).await, stored.as_str());
                }
                (found, expected) => {
                    panic!("{stored} {deadline:?} {decision:?}: {found:?}, not {expected:?}")
                }
            }
        }
    }
}

#[tokio::test]
async fn an_approval_replaces_the_deadline_and_a_refusal_keeps_it() {
    let scene = Scene::new().await;
    for (decision, expected) in [
        (Decision::Approve, Some(NOW + 60)),
        (Decision::Reject { reason: None }, Some(NOW + 1)),
    ] {
        let id = scene.row(Status::Pending, Some(NOW + 1)).await;
        let Decided::Taken(dossier) = scene.store.decide(id, &decision).await.expect("decide")
        else {
            panic!("refused");
        };
        assert_eq!(dossier.review.expires_at.map(Timestamp::unix_sec), expected);
    }
}

#[tokio::test]
async fn the_database_itself_refuses_a_second_live_review() {
    let scene = Scene::new().await;
    let mut tx = scene.store.begin().await.expect("begin");
    let now = Timestamp::from_unix_sec(NOW);
    let hash = "0".repeat(64);
    insert(&mut tx, &filing("lane"), &hash, now)
        .await
        .expect("the first");
    let second = insert(&mut tx, &filing("lane"), &hash, now).await;
    assert!(
        matches!(second, Err(StoreError::Database(sqlx::Error::Database(cause))) if cause.is_unique_violation())
    );
}

#[tokio::test]
async fn each_commit_is_on_the_disk_before_it_is_answered() {
    let scene = Scene::new().await;
    let journal: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&scene.store.writer)
        .await
        .expect("read");
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous")
        .fetch_one(&scene.store.writer)
        .await
        .expect("read");
    assert_eq!((journal.as_str(), synchronous), ("wal", 2));
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let scene = Scene::new().await;
    let written = sqlx::query("DELETE FROM reviews")
        .execute(&scene.store.readers)
        .await;
    assert!(written.is_err());
}

#[tokio::test]
async fn an_unknown_review_is_absent_for_everyone() {
    let scene = Scene::new().await;
    let id = Uuid::new_v4();
    assert!(scene.store.claim(id).await.expect("claim").is_none());
    assert!(scene.store.review(id).await.expect("read").is_none());
    assert!(scene.store.dossier(id).await.expect("read").is_none());
    assert!(matches!(
        scene.store.decide(id, &Decision::Approve).await,
        Ok(Decided::Absent)
    ));
}
