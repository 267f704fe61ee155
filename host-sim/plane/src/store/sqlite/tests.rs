//! Owns the tests that hold the SQL and the pure rules of `lifecycle` together, for every status and side of a deadline;
//! the test runner drives it. It must not know the API.

use std::path::PathBuf;

use super::*;
use crate::{
    clock::ManualClock,
    lifecycle::{Deadlines, Settlement},
    requester::Requester,
    store::{Full, Settled, SpendOn, Statement, WaitingCaps},
};

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
    async fn row(&self, status: Status, deadline: Option<i64>) -> Uuid {
        let mut tx = self.store.begin().await.expect("begin");
        let name = Uuid::new_v4().to_string();
        let filed = insert(
            &mut tx,
            &filing(&name),
            ANONYMOUS,
            &"0".repeat(64),
            Timestamp::from_unix_sec(NOW),
        )
        .await
        .expect("insert");
        sqlx::query(
            "UPDATE reviews SET status = ?, expires_at = ?, settle_by = ?, release_id = ? WHERE seq = ?",
        )
            .bind(status.as_str())
            .bind(deadline)
            .bind(settle_by(deadline))
            .bind(RELEASE)
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
        spend_on: SpendOn::Release,
        caps: WaitingCaps {
            in_all: 100,
            per_caller: 100,
        },
    }
}

const ANONYMOUS: &str = "anonymous";

/// A flight always has a deadline; the database sees to that.
fn settle_by(deadline: Option<i64>) -> i64 {
    deadline.unwrap_or(NOW + 1_000)
}

const RELEASE: &str = "5b1f7f0e-2f0e-4d8e-9a54-0d6b3a8f1c22";
const ACCEPTED: SpendOn = SpendOn::Accepted {
    settle_within_sec: 100,
};

fn cases() -> impl Iterator<Item = (Status, Option<i64>, Status)> {
    Status::ALL.into_iter().flat_map(|stored| {
        DEADLINES.into_iter().map(move |deadline| {
            let deadlines = Deadlines {
                expires_at: deadline.map(Timestamp::from_unix_sec),
                settle_by: Some(Timestamp::from_unix_sec(settle_by(deadline))),
            };
            let reads = stored.at(deadlines, Timestamp::from_unix_sec(NOW));
            (stored, deadline, reads)
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
    let ways = [
        (SpendOn::Release, Status::Executed),
        (ACCEPTED, Status::Processing),
    ];
    for ((stored, deadline, reads), (spend_on, released)) in
        cases().flat_map(|case| ways.map(|way| (case, way)))
    {
        let id = scene.row(stored, deadline).await;
        let asked = scene.store.claim(id, spend_on).await;
        let asked = asked.expect("claim").expect("found");
        if reads == Status::Approved {
            let review = asked.review;
            let Outcome::Released { release_id } = asked.outcome else {
                panic!("not released");
            };
            assert_eq!((review.status, review.release_id), (released, release_id));
            assert_eq!(release_id.is_some(), spend_on == ACCEPTED);
            assert_eq!(review.executed_at.is_some(), spend_on == SpendOn::Release);
            assert_eq!(
                review.settle_by.map(Timestamp::unix_sec),
                (spend_on == ACCEPTED).then_some(NOW + 100)
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
async fn a_settlement_is_written_exactly_when_the_flight_lasts() {
    let scene = Scene::new().await;
    for settlement in Settlement::ALL {
        for (stored, deadline, reads) in cases() {
            for (release_id, same) in [(None, true), (Some(RELEASE), true), (Some("other"), false)]
            {
                let id = scene.row(stored, deadline).await;
                let settled = scene.store.settle(id, settlement, release_id).await;
                let in_flight = reads == Status::Processing && same;
                let repeated = same && settlement.refusal(reads, true).is_none();
                match settled.expect("settle") {
                    Settled::Taken(asked) if in_flight => {
                        assert_eq!(scene.stored(id).await, settlement.to().as_str());
                        assert_eq!(asked.outcome, Outcome::Standing);
                        assert_eq!(
                            asked.review.executed_at.is_some(),
                            settlement == Settlement::Spent
                        );
                        continue;
                    }
                    Settled::Before(asked) if repeated => assert_eq!(asked.review.status, reads),
                    Settled::Refused(_) if !in_flight && !repeated => {}
                    other @ (Settled::Absent
                    | Settled::Before(_)
                    | Settled::Refused(_)
                    | Settled::Taken(_)) => {
                        panic!("{stored} {deadline:?} {settlement:?} {release_id:?}: {other:?}")
                    }
                }
                assert_eq!(scene.stored(id).await, stored.as_str());
            }
        }
    }
}

#[tokio::test]
async fn the_database_itself_refuses_a_flight_without_an_end() {
    let scene = Scene::new().await;
    let id = scene.row(Status::Approved, None).await;
    for change in [
        "status = 'PROCESSING', settle_by = NULL",
        "status = 'PROCESSING', release_id = NULL",
    ] {
        let statement = format!("UPDATE reviews SET {change} WHERE id = '{id}'");
        let written = sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&scene.store.writer)
            .await;
        assert!(written.is_err(), "{change}");
    }
}

/// The steps of a query that touch reviews.
async fn plan(scene: &Scene, query: &str) -> Vec<String> {
    sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")))
        .bind(200)
        .bind(NOW)
        .bind("APPROVED")
        .fetch_all(&scene.store.readers)
        .await
        .expect("plan")
        .iter()
        .map(|row| sqlx::Row::get(row, "detail"))
        .filter(|step: &String| step.contains(" reviews"))
        .collect()
}

#[tokio::test]
async fn what_waits_is_counted_by_ranges_of_an_index() {
    let scene = Scene::new().await;
    for (query, index, range) in [
        (
            waiting::OF_CALLER,
            "reviews_waiting_of_caller",
            "caller=? AND ",
        ),
        (waiting::IN_ALL, "reviews_waiting", ""),
    ] {
        let expected = ["expires_at=?", "expires_at>?"]
            .map(|part| format!("SEARCH reviews USING COVERING INDEX {index} ({range}{part})"));
        assert_eq!(plan(&scene, query).await, expected);
    }
}

#[tokio::test]
async fn only_what_reads_pending_counts_as_waiting() {
    let scene = Scene::new().await;
    let now = Timestamp::from_unix_sec(NOW);
    let mut waiting = 0;
    for (stored, deadline, reads) in cases() {
        scene.row(stored, deadline).await;
        waiting += u32::from(reads == Status::Pending);
        let mut tx = scene.store.begin().await.expect("begin");
        for (in_all, per_caller, caller, expected) in [
            (waiting, 100, ANONYMOUS, Some(Full::InAll)),
            (waiting + 1, 100, ANONYMOUS, None),
            (100, waiting, ANONYMOUS, Some(Full::OfCaller)),
            (100, waiting + 1, ANONYMOUS, None),
            (waiting, waiting, ANONYMOUS, Some(Full::OfCaller)),
            (waiting, 1, "peer:10.0.0.1", Some(Full::InAll)),
            (100, 1, "peer:10.0.0.1", None),
        ] {
            let caps = WaitingCaps { in_all, per_caller };
            let full = waiting::full(&mut tx, caller, caps, now).await;
            assert_eq!(full.expect("count"), expected, "{stored} {deadline:?}");
        }
    }
    assert_eq!(waiting, 2);
}

#[tokio::test]
async fn a_list_never_walks_through_the_table() {
    let scene = Scene::new().await;
    for (query, steps) in [(rows::LISTED, 1), (rows::LISTED_BY_STATUS, 5)] {
        let plan = plan(&scene, query).await;
        assert_eq!(plan.len(), steps, "{plan:#?}");
        assert!(
            plan.iter()
                .all(|step| step.contains("USING COVERING INDEX reviews_")),
            "{plan:#?}"
        );
    }
}

/// A database as an older version left it, after so many migrations.
async fn older(dir: &Path, migrations: usize) -> SqlitePool {
    std::fs::create_dir(dir).expect("create a directory");
    let path = dir.join("db");
    create_private(&path).expect("create");
    let old = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path))
        .await
        .expect("open");
    let first = sqlx::migrate!().iter().take(migrations).cloned().collect();
    sqlx::migrate::Migrator::with_migrations(first)
        .run(&old)
        .await
        .expect("the first tables");
    old
}

#[tokio::test]
async fn what_waited_before_the_caps_counts_against_its_caller() {
    let dir = std::env::temp_dir().join(format!("plane-store-{}", Uuid::new_v4().simple()));
    let old = older(&dir, 3).await;
    let requesters = [
        r#"{"subject":"ann","email":"a@x","peer_addr":"10.0.0.1:5","method":"identity_header"}"#,
        r#"{"email":"a@x","peer_addr":"10.0.0.1:5"}"#,
        r#"{"peer_addr":"10.0.0.1:5123"}"#,
        r#"{"peer_addr":"10.0.0.1"}"#,
        r#"{"peer_addr":"[2001:db8::1]:5123"}"#,
        r#"{"peer_addr":"2001:db8::1"}"#,
        r#"{"peer_addr":"/run/agent.sock"}"#,
        "{}",
    ];
    for (n, text) in requesters.iter().enumerate() {
        let who = Requester::read(format!(r#"{{"requester":{text}}}"#).as_bytes());
        let who = who.as_ref();
        sqlx::query(
            "INSERT INTO reviews (id, session, listener_name, approval_rule, statement, statement_sha256, status, \
             created_at, requester_subject, requester_email, requester_peer_addr, requester_method) \
             VALUES (?1, ?1, ?1, 'rule', x'00', ?2, 'PENDING', 1, ?3, ?4, ?5, ?6)",
        )
        .bind(n.to_string())
        .bind("0".repeat(64))
        .bind(who.map(|who| who.subject.as_str()))
        .bind(who.map(|who| who.email.as_str()))
        .bind(who.map(|who| who.peer_addr.as_str()))
        .bind(who.map(|who| who.method.as_str()))
        .execute(&old)
        .await
        .expect("insert");
    }
    old.close().await;
    let clock = Arc::new(ManualClock::new(Timestamp::from_unix_sec(NOW)));
    let store = SqliteStore::open(&dir.join("db"), clock)
        .await
        .expect("open");
    let found: Vec<String> = sqlx::query_scalar("SELECT caller FROM reviews ORDER BY seq")
        .fetch_all(&store.readers)
        .await
        .expect("read");
    let expected = requesters.map(|text| {
        caller(Requester::read(format!(r#"{{"requester":{text}}}"#).as_bytes()).as_ref())
    });
    assert_eq!(found, expected);
    store.close().await;
    std::fs::remove_dir_all(&dir).expect("clean up");
}

#[tokio::test]
async fn a_database_of_the_first_version_opens_with_all_it_holds() {
    let dir = std::env::temp_dir().join(format!("plane-store-{}", Uuid::new_v4().simple()));
    let old = older(&dir, 1).await;
    let ids: Vec<Uuid> = Status::ALL.iter().map(|_| Uuid::new_v4()).collect();
    for (n, (status, id)) in Status::ALL.iter().zip(&ids).enumerate() {
        sqlx::query(
            "INSERT INTO reviews (id, session, listener_name, approval_rule, statement, statement_sha256, status, \
             created_at) VALUES (?1, ?1, ?2, 'rule', x'00', ?3, ?4, ?5)",
        )
        .bind(id.to_string())
        .bind(n.to_string())
        .bind("0".repeat(64))
        .bind(status.as_str())
        .bind(NOW)
        .execute(&old)
        .await
        .expect("insert");
    }
    old.close().await;
    let clock = Arc::new(ManualClock::new(Timestamp::from_unix_sec(NOW)));
    let store = SqliteStore::open(&dir.join("db"), clock)
        .await
        .expect("open");
    for (status, id) in Status::ALL.into_iter().zip(ids) {
        let found = store.review(id).await.expect("read").expect("there");
        let expected = if status == Status::Processing {
            Status::Executed
        } else {
            status
        };
        assert_eq!(found.status, expected);
    }
    store.close().await;
    std::fs::remove_dir_all(&dir).expect("clean up");
}

#[tokio::test]
async fn the_database_itself_refuses_a_second_live_review() {
    let scene = Scene::new().await;
    let mut tx = scene.store.begin().await.expect("begin");
    let now = Timestamp::from_unix_sec(NOW);
    let hash = "0".repeat(64);
    insert(&mut tx, &filing("lane"), ANONYMOUS, &hash, now)
        .await
        .expect("the first");
    let second = insert(&mut tx, &filing("lane"), ANONYMOUS, &hash, now).await;
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
    for spend_on in [SpendOn::Release, ACCEPTED] {
        assert!(
            scene
                .store
                .claim(id, spend_on)
                .await
                .expect("claim")
                .is_none()
        );
    }
    assert!(matches!(
        scene.store.settle(id, Settlement::Spent, None).await,
        Ok(Settled::Absent)
    ));
    assert!(scene.store.review(id).await.expect("read").is_none());
    assert!(scene.store.dossier(id).await.expect("read").is_none());
    assert!(matches!(
        scene.store.decide(id, &Decision::Approve).await,
        Ok(Decided::Absent)
    ));
}
