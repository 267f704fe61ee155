//! Owns how a row of the database is read, and the columns that takes; `sqlite` drives it. It must not write.

use sqlx::{Row, sqlite::SqliteRow};
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    lifecycle::Status,
    requester::Requester,
    store::{Dossier, Group, Review, Statement, StoreError},
};

/// The condition of a list: how a review reads at ?1 is ?2, or ?2 is null. It repeats `Status::at`; a test holds the
/// two together.
macro_rules! reading_as {
    () => {
        "WHERE ?2 IS NULL OR ?2 = CASE WHEN status IN ('PENDING', 'APPROVED') AND expires_at <= ?1 \
         THEN 'EXPIRED' ELSE status END ORDER BY seq DESC LIMIT ?3"
    };
}

/// A query for reviews as a sidecar sees them: never the statement.
macro_rules! select_review {
    (reading_as) => {
        $crate::store::sqlite::rows::select_review!($crate::store::sqlite::rows::reading_as!())
    };
    ($condition:expr) => {
        concat!(
            "SELECT seq, id, session, listener_name, approval_rule, status, created_at, expires_at, \
             approval_ttl_sec, decided_at, executed_at, rejection_reason FROM reviews ",
            $condition
        )
    };
}

/// A query for reviews as a person sees them.
macro_rules! select_dossier {
    (reading_as) => {
        $crate::store::sqlite::rows::select_dossier!($crate::store::sqlite::rows::reading_as!())
    };
    ($condition:expr) => {
        concat!(
            "SELECT seq, id, session, listener_name, approval_rule, status, created_at, expires_at, \
             approval_ttl_sec, decided_at, executed_at, rejection_reason, statement, \
             requester_subject, requester_email, requester_peer_addr, requester_method, \
             (SELECT count(*) FROM reviews AS earlier WHERE earlier.status = 'EXECUTED' \
              AND earlier.listener_name = reviews.listener_name AND earlier.approval_rule = reviews.approval_rule \
              AND earlier.statement_sha256 = reviews.statement_sha256 AND earlier.seq < reviews.seq) AS ran_before \
             FROM reviews ",
            $condition
        )
    };
}

pub(super) use {reading_as, select_dossier, select_review};

/// A review as it reads at `now`.
pub(super) fn review(row: &SqliteRow, now: Timestamp) -> Result<Review, StoreError> {
    let stored: &str = row.try_get("status")?;
    let stored = Status::parse(stored).ok_or(StoreError::Foreign { what: "status" })?;
    let expires_at = instant(row, "expires_at")?;
    Ok(Review {
        seq: row.try_get("seq")?,
        id: id(row, "id")?,
        session: id(row, "session")?,
        listener_name: row.try_get("listener_name")?,
        approval_rule: row.try_get("approval_rule")?,
        status: stored.at(expires_at, now),
        created_at: Timestamp::from_unix_sec(row.try_get("created_at")?),
        expires_at,
        approval_ttl_sec: row.try_get("approval_ttl_sec")?,
        decided_at: instant(row, "decided_at")?,
        executed_at: instant(row, "executed_at")?,
        rejection_reason: row.try_get("rejection_reason")?,
    })
}

/// A review with its statement, requester and history.
pub(super) fn dossier(row: &SqliteRow, now: Timestamp) -> Result<Dossier, StoreError> {
    let method: Option<String> = row.try_get("requester_method")?;
    let requester = match method {
        None => None,
        Some(method) => Some(Requester {
            subject: row.try_get("requester_subject")?,
            email: row.try_get("requester_email")?,
            peer_addr: row.try_get("requester_peer_addr")?,
            method,
        }),
    };
    Ok(Dossier {
        review: review(row, now)?,
        statement: Statement::new(row.try_get("statement")?),
        requester,
        ran_before: row.try_get("ran_before")?,
    })
}

/// A reviewer group.
pub(super) fn group(row: &SqliteRow) -> Result<Group, StoreError> {
    Ok(Group {
        id: id(row, "id")?,
        name: row.try_get("group_name")?,
    })
}

fn id(row: &SqliteRow, column: &'static str) -> Result<Uuid, StoreError> {
    let text: &str = row.try_get(column)?;
    Uuid::try_parse(text).map_err(|_| StoreError::Foreign { what: "id" })
}

fn instant(row: &SqliteRow, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
    let unix_sec: Option<i64> = row.try_get(column)?;
    Ok(unix_sec.map(Timestamp::from_unix_sec))
}
