//! Owns the SQLite database: the conditional writes behind each promise of `store`. The API drives it. It must not know
//! HTTP, nor decide anything that `lifecycle` decides.
//!
//! One connection writes and a few read. SQLite has one writer at a time anyway: with a single writing connection the
//! queue stands in the pool, where it is fair and waits, and not in the file's lock, where it spins and can end in
//! SQLITE_BUSY. Each write is a BEGIN IMMEDIATE transaction, so a lock of another process is waited for at its start
//! and no transaction is refused half way. Readers use the write-ahead log and never wait. `synchronous=FULL` has each
//! commit on the disk before the answer leaves. A caller that goes away drops its transaction, which rolls it back.

mod credentials;
mod releases;
mod rows;
mod sidecars;
mod waiting;

use std::{io, os::unix::fs::OpenOptionsExt, path::Path, sync::Arc};

use sqlx::{
    Sqlite, SqlitePool, Transaction,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use uuid::Uuid;

pub(crate) use self::credentials::Recorded;
use self::{
    releases::{release, standing, write_down},
    rows::{dossier, review},
};
use crate::{
    clock::{Clock, Timestamp},
    lifecycle::{Decision, OnFiling, Status},
    limits::{DATABASE_BUSY, DATABASE_TURN, FILING_ATTEMPTS, READERS},
    requester::caller,
    store::{Asked, Decided, Dossier, Filed, Filing, Group, Outcome, Review, StoreError},
};

/// The database of one plane.
#[derive(Clone, Debug)]
pub(crate) struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Opens the database and brings its tables up to date.
    pub(crate) async fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, sqlx::Error> {
        create_private(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(DATABASE_BUSY);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(DATABASE_TURN)
            .connect_with(options.clone().journal_mode(SqliteJournalMode::Wal))
            .await?;
        sqlx::migrate!().run(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(DATABASE_TURN)
            .connect_with(options.read_only(true))
            .await?;
        Ok(Self {
            writer,
            readers,
            clock,
        })
    }

    /// Closes the connections, so that the write-ahead log is folded into the database.
    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Files a statement, or answers the live review that it has: spends its approval, or says that it waits. Only a new
    /// review can be one too many.
    pub(crate) async fn file(&self, filing: &Filing) -> Result<Filed, StoreError> {
        let sha256 = filing.statement.sha256();
        for _ in 0..FILING_ATTEMPTS {
            let mut tx = self.begin().await?;
            match self.file_once(&mut tx, filing, &sha256).await {
                Ok(filed @ Filed::Asked(_)) => {
                    tx.commit().await?;
                    return Ok(filed);
                }
                Ok(refused @ Filed::Refused(_)) => {
                    tx.rollback().await?;
                    return Ok(refused);
                }
                // Under the write lock nobody can file in between; a database without such a lock can lose here.
                Err(StoreError::Database(sqlx::Error::Database(cause)))
                    if cause.is_unique_violation() =>
                {
                    tx.rollback().await?;
                }
                Err(other) => return Err(other),
            }
        }
        Err(StoreError::LostEveryRace)
    }

    async fn file_once(
        &self,
        tx: &mut Tx,
        filing: &Filing,
        sha256: &str,
    ) -> Result<Filed, StoreError> {
        let now = self.clock.now();
        let live = live_review(tx, filing, sha256, now).await?;
        let asked = match live.map(|live| (live.status.on_filing(), live)) {
            Some((OnFiling::Wait, live)) => standing(tx, live).await?,
            Some((OnFiling::Spend, live)) => release(tx, live.id, filing.spend_on, now)
                .await?
                .ok_or(StoreError::Foreign { what: "review" })?,
            anew @ (None | Some((OnFiling::FileAnew, _))) => {
                let caller = caller(filing.requester.as_ref());
                if let Some(full) = waiting::full(tx, &caller, filing.caps, now).await? {
                    return Ok(Filed::Refused(full));
                }
                let lapsed = anew.map(|(_, lapsed)| lapsed);
                if let Some(lapsed) = &lapsed {
                    write_down(tx, lapsed.seq, now).await?;
                }
                Asked {
                    lapsed: lapsed.map(|lapsed| (lapsed.id, lapsed.status)),
                    ..insert(tx, filing, &caller, sha256, now).await?
                }
            }
        };
        Ok(Filed::Asked(Box::new(asked)))
    }

    /// Takes a person's decision, if the review still waits for that one.
    pub(crate) async fn decide(
        &self,
        id: Uuid,
        decision: &Decision,
    ) -> Result<Decided, StoreError> {
        let mut tx = self.begin().await?;
        let now = self.clock.now();
        let taken = write_decision(&mut tx, id, decision, now).await?;
        let row = sqlx::query(rows::select_dossier!("WHERE id = ?"))
            .bind(id.to_string())
            .fetch_optional(&mut *tx)
            .await?;
        let found = row.map(|row| dossier(&row, now)).transpose()?;
        tx.commit().await?;
        let Some(found) = found else {
            return Ok(Decided::Absent);
        };
        if taken {
            return Ok(Decided::Taken(Box::new(found)));
        }
        match decision.refusal(found.review.status) {
            Some(refusal) => Ok(Decided::Refused(refusal)),
            // The write's condition and the rule say the same, so this row is not of our making.
            None => Err(StoreError::Foreign { what: "deadline" }),
        }
    }

    /// One review, for a sidecar.
    pub(crate) async fn review(&self, id: Uuid) -> Result<Option<Review>, StoreError> {
        let row = sqlx::query(rows::select_review!("WHERE id = ?"))
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await?;
        row.map(|row| review(&row, self.clock.now())).transpose()
    }

    /// The newest reviews first, for a sidecar.
    pub(crate) async fn reviews(
        &self,
        status: Option<Status>,
        limit: u32,
    ) -> Result<Vec<Review>, StoreError> {
        let now = self.clock.now();
        let query = match status {
            None => sqlx::query(rows::LISTED).bind(limit),
            Some(status) => sqlx::query(rows::LISTED_BY_STATUS)
                .bind(limit)
                .bind(now.unix_sec())
                .bind(status.as_str()),
        };
        let rows = query.fetch_all(&self.readers).await?;
        rows.iter().map(|row| review(row, now)).collect()
    }

    /// One review, for a person.
    pub(crate) async fn dossier(&self, id: Uuid) -> Result<Option<Dossier>, StoreError> {
        let row = sqlx::query(rows::select_dossier!("WHERE id = ?"))
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await?;
        row.map(|row| dossier(&row, self.clock.now())).transpose()
    }

    /// The newest reviews first, for a person.
    pub(crate) async fn dossiers(
        &self,
        status: Option<Status>,
        limit: u32,
    ) -> Result<Vec<Dossier>, StoreError> {
        let now = self.clock.now();
        let query = match status {
            None => sqlx::query(rows::select_dossier!("ORDER BY seq DESC LIMIT ?1")).bind(limit),
            Some(status) => sqlx::query(rows::select_dossier!(rows::newest_reading_as!()))
                .bind(limit)
                .bind(now.unix_sec())
                .bind(status.as_str()),
        };
        let rows = query.fetch_all(&self.readers).await?;
        rows.iter().map(|row| dossier(row, now)).collect()
    }

    async fn begin(&self) -> Result<Tx, sqlx::Error> {
        self.writer.begin_with("BEGIN IMMEDIATE").await
    }
}

type Tx = Transaction<'static, Sqlite>;

/// The database and its log hold statements, so no other user may read them. SQLite gives its log the mode of the
/// database, which therefore has to be there first.
fn create_private(path: &Path) -> io::Result<()> {
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(_) => Ok(()),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// The one review of this key that is not over in the table; its deadline may have passed.
async fn live_review(
    tx: &mut Tx,
    filing: &Filing,
    sha256: &str,
    now: Timestamp,
) -> Result<Option<Review>, StoreError> {
    let row = sqlx::query(rows::select_review!(
        "WHERE listener_name = ? AND approval_rule = ? AND statement_sha256 = ? \
         AND status IN ('PENDING', 'APPROVED', 'PROCESSING')"
    ))
    .bind(&filing.listener_name)
    .bind(&filing.approval_rule)
    .bind(sha256)
    .fetch_optional(&mut **tx)
    .await?;
    row.map(|row| review(&row, now)).transpose()
}

async fn insert(
    tx: &mut Tx,
    filing: &Filing,
    caller: &str,
    sha256: &str,
    now: Timestamp,
) -> Result<Asked, StoreError> {
    let requester = filing.requester.as_ref();
    let filed = Review {
        seq: 0,
        id: Uuid::new_v4(),
        session: Uuid::new_v4(),
        listener_name: filing.listener_name.clone(),
        approval_rule: filing.approval_rule.clone(),
        status: Status::Pending,
        created_at: now,
        expires_at: filing.pending_ttl_sec.map(|seconds| now.plus_sec(seconds)),
        approval_ttl_sec: filing.approval_ttl_sec,
        decided_at: None,
        executed_at: None,
        rejection_reason: None,
        release_id: None,
        settle_by: None,
    };
    let seq = sqlx::query(
        "INSERT INTO reviews (id, session, listener_name, approval_rule, statement, statement_sha256, status, \
         created_at, expires_at, approval_ttl_sec, requester_subject, requester_email, requester_peer_addr, \
         requester_method, caller) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(filed.id.to_string())
    .bind(filed.session.to_string())
    .bind(&filed.listener_name)
    .bind(&filed.approval_rule)
    .bind(filing.statement.bytes())
    .bind(sha256)
    .bind(filed.status.as_str())
    .bind(now.unix_sec())
    .bind(filed.expires_at.map(Timestamp::unix_sec))
    .bind(filed.approval_ttl_sec)
    .bind(requester.map(|who| who.subject.as_str()))
    .bind(requester.map(|who| who.email.as_str()))
    .bind(requester.map(|who| who.peer_addr.as_str()))
    .bind(requester.map(|who| who.method.as_str()))
    .bind(caller)
    .execute(&mut **tx)
    .await?
    .last_insert_rowid();
    let mut groups = Vec::with_capacity(filing.reviewers.len());
    for (position, name) in (0_i64..).zip(&filing.reviewers) {
        let group = Group {
            id: Uuid::new_v4(),
            name: name.clone(),
        };
        sqlx::query(
            "INSERT INTO review_groups (id, review_seq, position, group_name) VALUES (?, ?, ?, ?)",
        )
        .bind(group.id.to_string())
        .bind(seq)
        .bind(position)
        .bind(name)
        .execute(&mut **tx)
        .await?;
        groups.push(group);
    }
    Ok(Asked {
        review: Review { seq, ..filed },
        groups,
        outcome: Outcome::Filed,
        lapsed: None,
    })
}

/// One conditional write: `true` when the review still stood where this decision begins, within its deadline.
async fn write_decision(
    tx: &mut Tx,
    id: Uuid,
    decision: &Decision,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (reason, new_deadline) = match decision {
        // From now on the approval's own limit counts, and where there is none, no limit.
        Decision::Approve => (None, true),
        Decision::Reject { reason } => (reason.as_deref(), false),
        Decision::Revoke => (None, false),
    };
    let written = sqlx::query(
        "UPDATE reviews SET status = ?1, decided_at = ?2, rejection_reason = ?3, \
         expires_at = CASE WHEN ?4 THEN ?2 + approval_ttl_sec ELSE expires_at END \
         WHERE id = ?5 AND status = ?6 AND (expires_at IS NULL OR expires_at > ?2)",
    )
    .bind(decision.to().as_str())
    .bind(now.unix_sec())
    .bind(reason)
    .bind(new_deadline)
    .bind(id.to_string())
    .bind(decision.from().as_str())
    .execute(&mut **tx)
    .await?;
    Ok(written.rows_affected() == 1)
}

#[cfg(test)]
mod tests;
