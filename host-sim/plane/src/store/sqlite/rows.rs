//! Owns how a row of the database is read, and the columns that takes; `sqlite` drives it. It must not write.

use sqlx::{Row, sqlite::SqliteRow};
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    lifecycle::{Deadlines, Status},
    requester::Requester,
    store::{Dossier, Group, Review, Statement, StoreError},
};

/// All columns of a review as a sidecar sees it: never the statement.
macro_rules! columns {
    () => {
        "seq, id, session, listener_name, approval_rule, status, created_at, expires_at, approval_ttl_sec, decided_at, \
         executed_at, rejection_reason, release_id, settle_by"
    };
}

/// The newest ?1 reviews that at ?2 read as ?3. It repeats `Status::at`, one range of the index for each stored status
/// that can read so; a test holds the two together.
macro_rules! newest_reading_as {
    () => {
        "WHERE seq IN (\
         SELECT seq FROM (SELECT seq FROM reviews WHERE status = ?3 \
          AND (status NOT IN ('PENDING', 'APPROVED') OR expires_at IS NULL OR expires_at > ?2) \
          AND (status <> 'PROCESSING' OR settle_by > ?2) ORDER BY seq DESC LIMIT ?1) \
         UNION ALL SELECT seq FROM (SELECT seq FROM reviews WHERE ?3 = 'EXPIRED' AND status = 'PENDING' \
          AND expires_at <= ?2 ORDER BY seq DESC LIMIT ?1) \
         UNION ALL SELECT seq FROM (SELECT seq FROM reviews WHERE ?3 = 'EXPIRED' AND status = 'APPROVED' \
          AND expires_at <= ?2 ORDER BY seq DESC LIMIT ?1) \
         UNION ALL SELECT seq FROM (SELECT seq FROM reviews WHERE ?3 = 'EXECUTED' AND status = 'PROCESSING' \
          AND settle_by <= ?2 ORDER BY seq DESC LIMIT ?1)) ORDER BY seq DESC LIMIT ?1"
    };
}

/// A query for reviews as a sidecar sees them.
macro_rules! select_review {
    ($condition:expr) => {
        concat!(
            "SELECT ",
            $crate::store::sqlite::rows::columns!(),
            " FROM reviews ",
            $condition
        )
    };
}

/// A query for reviews as a person sees them.
macro_rules! select_dossier {
    ($condition:expr) => {
        concat!(
            "SELECT ",
            $crate::store::sqlite::rows::columns!(),
            ", statement, requester_subject, requester_email, requester_peer_addr, requester_method, \
             (SELECT count(*) FROM reviews AS earlier WHERE earlier.status = 'EXECUTED' \
              AND earlier.listener_name = reviews.listener_name AND earlier.approval_rule = reviews.approval_rule \
              AND earlier.statement_sha256 = reviews.statement_sha256 AND earlier.seq < reviews.seq) AS ran_before \
             FROM reviews ",
            $condition
        )
    };
}

/// The newest ?1 reviews. A gate asks for them once a second, so the index has to hold every column: in the table most of
/// them stand behind the statement, and reading past a long one costs as much as reading it.
pub(super) const LISTED: &str =
    select_review!("INDEXED BY reviews_listed ORDER BY seq DESC LIMIT ?1");

/// The same, of those that at ?2 read as ?3.
pub(super) const LISTED_BY_STATUS: &str =
    select_review!(concat!("INDEXED BY reviews_listed ", newest_reading_as!()));

pub(super) use {columns, newest_reading_as, select_dossier, select_review};

/// A review as it reads at `now`.
pub(super) fn review(row: &SqliteRow, now: Timestamp) -> Result<Review, StoreError> {
    let stored: &str = row.try_get("status")?;
    let stored = Status::parse(stored).ok_or(StoreError::Foreign { what: "status" })?;
    let deadlines = Deadlines {
        expires_at: instant(row, "expires_at")?,
        settle_by: instant(row, "settle_by")?,
    };
    let status = stored.at(deadlines, now);
    let executed_at = if stored == Status::Processing && status == Status::Executed {
        // Nobody has written down yet that its deadline has spent it.
        deadlines.settle_by
    } else {
        instant(row, "executed_at")?
    };
    let release_id: Option<&str> = row.try_get("release_id")?;
    let release_id = release_id
        .map(Uuid::try_parse)
        .transpose()
        .map_err(|_| StoreError::Foreign { what: "release" })?;
    Ok(Review {
        seq: row.try_get("seq")?,
        id: id(row, "id")?,
        session: id(row, "session")?,
        listener_name: row.try_get("listener_name")?,
        approval_rule: row.try_get("approval_rule")?,
        status,
        created_at: Timestamp::from_unix_sec(row.try_get("created_at")?),
        expires_at: deadlines.expires_at,
        approval_ttl_sec: row.try_get("approval_ttl_sec")?,
        decided_at: instant(row, "decided_at")?,
        executed_at,
        rejection_reason: row.try_get("rejection_reason")?,
        release_id,
        settle_by: deadlines.settle_by,
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
