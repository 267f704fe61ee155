//! Owns how many reviews wait, and whether one more may; `sqlite` asks inside the transaction that would file it, so that
//! nobody files in between. It must not know what a caller is made of, nor what the caps are.

use super::Tx;
use crate::{
    clock::Timestamp,
    store::{Full, StoreError, WaitingCaps},
};

/// How many of caller ?1 wait at ?2, or ?3 if there are more. Those without a deadline are a range of their own. The index
/// is named because one by status alone looks as good, and leads through all that has ever lapsed.
pub(super) const OF_CALLER: &str = "SELECT count(*) FROM (\
     SELECT 1 FROM reviews INDEXED BY reviews_waiting_of_caller \
      WHERE status = 'PENDING' AND caller = ?1 AND expires_at IS NULL \
     UNION ALL SELECT 1 FROM reviews INDEXED BY reviews_waiting_of_caller \
      WHERE status = 'PENDING' AND caller = ?1 AND expires_at > ?2 LIMIT ?3)";

/// The same, of all callers.
pub(super) const IN_ALL: &str = "SELECT count(*) FROM (\
     SELECT 1 FROM reviews INDEXED BY reviews_waiting WHERE status = 'PENDING' AND expires_at IS NULL \
     UNION ALL SELECT 1 FROM reviews INDEXED BY reviews_waiting WHERE status = 'PENDING' AND expires_at > ?2 LIMIT ?3)";

/// The cap that another review of this caller would go beyond. The caller's own is named first: that one is the caller's
/// to mend.
pub(super) async fn full(
    tx: &mut Tx,
    caller: &str,
    caps: WaitingCaps,
    now: Timestamp,
) -> Result<Option<Full>, StoreError> {
    for (query, cap, full) in [
        (OF_CALLER, caps.per_caller, Full::OfCaller),
        (IN_ALL, caps.in_all, Full::InAll),
    ] {
        let waiting: i64 = sqlx::query_scalar(query)
            .bind(caller)
            .bind(now.unix_sec())
            .bind(cap)
            .fetch_one(&mut **tx)
            .await?;
        if waiting >= i64::from(cap) {
            return Ok(Some(full));
        }
    }
    Ok(None)
}
