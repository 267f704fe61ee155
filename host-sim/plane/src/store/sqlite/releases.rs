//! Owns the release of an approval and what becomes of one in flight: the only writes that let a statement run, and the
//! only ones that give an approval back. `sqlite` drives it. It must not know who asks, nor what the upstream said.

use uuid::Uuid;

use super::{Tx, rows, rows::review};
use crate::{
    clock::Timestamp,
    lifecycle::{SettleRefusal, Settlement, Status},
    store::{Asked, Outcome, Review, Settled, SpendOn, StoreError, sqlite::SqliteStore},
};

impl SqliteStore {
    /// Releases the approval of one review, or answers how it stands. `None` for a review that is not here.
    pub(crate) async fn claim(
        &self,
        id: Uuid,
        spend_on: SpendOn,
    ) -> Result<Option<Asked>, StoreError> {
        let mut tx = self.begin().await?;
        let asked = release(&mut tx, id, spend_on, self.clock.now()).await?;
        tx.commit().await?;
        Ok(asked)
    }

    /// Ends the flight of an approval, if it is in flight, within its deadline, and on the release that is meant.
    ///
    /// A wrong "given back" runs a statement twice on one yes, so without a `release_id` the caller has to know that no
    /// other release of this review can be in flight.
    pub(crate) async fn settle(
        &self,
        id: Uuid,
        settlement: Settlement,
        release_id: Option<&str>,
    ) -> Result<Settled, StoreError> {
        let mut tx = self.begin().await?;
        let now = self.clock.now();
        let won = sqlx::query(
            "UPDATE reviews SET status = ?1, settle_by = NULL, \
             executed_at = CASE ?1 WHEN 'EXECUTED' THEN ?2 ELSE executed_at END \
             WHERE id = ?3 AND status = 'PROCESSING' AND settle_by > ?2 AND (?4 IS NULL OR release_id = ?4)",
        )
        .bind(settlement.to().as_str())
        .bind(now.unix_sec())
        .bind(id.to_string())
        .bind(release_id)
        .execute(&mut *tx)
        .await?
        .rows_affected();
        let found = by_id(&mut tx, id, now).await?;
        tx.commit().await?;
        let Some(asked) = found else {
            return Ok(Settled::Absent);
        };
        if won == 1 {
            return Ok(Settled::Taken(Box::new(asked)));
        }
        Ok(match not_settled(&asked.review, settlement, release_id) {
            None => Settled::Before(Box::new(asked)),
            Some(refusal) => Settled::Refused(refusal),
        })
    }
}

/// Why the write changed nothing; `None` when it had been done before.
fn not_settled(
    review: &Review,
    settlement: Settlement,
    release_id: Option<&str>,
) -> Option<SettleRefusal> {
    let standing = review.status;
    let last = review.release_id.map(|id| id.to_string());
    match release_id {
        Some(meant) if last.as_deref() != Some(meant) => {
            Some(SettleRefusal::AnotherRelease { standing })
        }
        Some(_) | None => settlement.refusal(standing, last.is_some()),
    }
}

/// The one place that releases. The write itself asks whether the approval is there and not lapsed, and the number of
/// rows it changed is the answer: a wrong yes runs a statement twice, or without a person's word.
pub(super) async fn release(
    tx: &mut Tx,
    id: Uuid,
    spend_on: SpendOn,
    now: Timestamp,
) -> Result<Option<Asked>, StoreError> {
    let (release_id, executed_at, settle_by) = match spend_on {
        // A release that spends has nothing to settle, and a word about an earlier one must not find its mark.
        SpendOn::Release => (None, Some(now), None),
        SpendOn::Accepted { settle_within_sec } => {
            let settle_by = now.plus_sec(settle_within_sec);
            (Some(Uuid::new_v4()), None, Some(settle_by))
        }
    };
    let status = match spend_on {
        SpendOn::Release => Status::Executed,
        SpendOn::Accepted { .. } => Status::Processing,
    };
    let won = sqlx::query(
        "UPDATE reviews SET status = ?1, executed_at = ?2, release_id = ?3, settle_by = ?4 \
         WHERE id = ?5 AND status = 'APPROVED' AND (expires_at IS NULL OR expires_at > ?6)",
    )
    .bind(status.as_str())
    .bind(executed_at.map(Timestamp::unix_sec))
    .bind(release_id.map(|id| id.to_string()))
    .bind(settle_by.map(Timestamp::unix_sec))
    .bind(id.to_string())
    .bind(now.unix_sec())
    .execute(&mut **tx)
    .await?
    .rows_affected();
    let found = by_id(tx, id, now).await?;
    Ok(found.map(|asked| {
        if won == 1 {
            let outcome = Outcome::Released { release_id };
            Asked { outcome, ..asked }
        } else {
            asked
        }
    }))
}

/// Writes down what a deadline has made of a review, so that its place among the live ones is free.
pub(super) async fn write_down(tx: &mut Tx, seq: i64, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE reviews SET status = 'EXPIRED' \
         WHERE seq = ? AND status IN ('PENDING', 'APPROVED') AND expires_at <= ?",
    )
    .bind(seq)
    .bind(now.unix_sec())
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "UPDATE reviews SET status = 'EXECUTED', executed_at = settle_by, settle_by = NULL \
         WHERE seq = ? AND status = 'PROCESSING' AND settle_by <= ?",
    )
    .bind(seq)
    .bind(now.unix_sec())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn by_id(tx: &mut Tx, id: Uuid, now: Timestamp) -> Result<Option<Asked>, StoreError> {
    let row = sqlx::query(rows::select_review!("WHERE id = ?"))
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    match row {
        None => Ok(None),
        Some(row) => Ok(Some(standing(tx, review(&row, now)?).await?)),
    }
}

/// A review as it stands, with its groups.
pub(super) async fn standing(tx: &mut Tx, review: Review) -> Result<Asked, StoreError> {
    let rows = sqlx::query(
        "SELECT id, group_name FROM review_groups WHERE review_seq = ? ORDER BY position",
    )
    .bind(review.seq)
    .fetch_all(&mut **tx)
    .await?;
    let groups = rows.iter().map(rows::group).collect::<Result<_, _>>()?;
    Ok(Asked {
        review,
        groups,
        outcome: Outcome::Standing,
        lapsed: None,
    })
}
