//! Owns what the sidecar last said of itself in the database; the API drives it. Nothing may decide by it: it is the
//! sidecar's own word, and no approval needs it.

use sqlx::Row;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    store::{Handshake, Seen, StoreError, sqlite::SqliteStore},
};

impl SqliteStore {
    /// Keeps this handshake in the place of the one before.
    pub(crate) async fn record_handshake(
        &self,
        sidecar: Uuid,
        said: &Handshake,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sqlx::query(
            "INSERT INTO sidecars (id, last_seen, version, applied_revision, last_outcome, last_error, capabilities) \
             VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen, \
             version = excluded.version, applied_revision = excluded.applied_revision, \
             last_outcome = excluded.last_outcome, last_error = excluded.last_error, \
             capabilities = excluded.capabilities",
        )
        .bind(sidecar.to_string())
        .bind(self.clock.now().unix_sec())
        .bind(&said.version)
        .bind(said.applied_revision.as_deref())
        .bind(said.last_outcome.as_deref())
        .bind(said.last_error.as_deref())
        .bind(said.capabilities.join(","))
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// The last handshake of a sidecar; `None` for one that never made any.
    pub(crate) async fn seen(&self, sidecar: Uuid) -> Result<Option<Seen>, StoreError> {
        let row = sqlx::query(
            "SELECT last_seen, version, applied_revision, last_outcome, last_error, capabilities FROM sidecars \
             WHERE id = ?",
        )
        .bind(sidecar.to_string())
        .fetch_optional(&self.readers)
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let capabilities: &str = row.try_get("capabilities")?;
        Ok(Some(Seen {
            at: Timestamp::from_unix_sec(row.try_get("last_seen")?),
            now: self.clock.now(),
            said: Handshake {
                version: row.try_get("version")?,
                applied_revision: row.try_get("applied_revision")?,
                last_outcome: row.try_get("last_outcome")?,
                last_error: row.try_get("last_error")?,
                capabilities: capabilities
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
            },
        }))
    }
}
