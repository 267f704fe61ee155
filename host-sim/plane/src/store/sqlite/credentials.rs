//! Owns the hashes of the two tokens in the database; `Plane::open` drives it. It must never see a token.

use sqlx::Row;
use uuid::Uuid;

use crate::{
    store::{StoreError, sqlite::SqliteStore},
    tokens::{TokenDigest, TokenKind},
};

/// What recording a credential found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// None was there.
    First,
    /// Another token's hash was there, and is not any more.
    Replaced,
    /// This one was there.
    Same,
}

impl SqliteStore {
    /// Makes this the one hash of its kind. Answers the credential's id, which outlives its token.
    pub(crate) async fn record_credential(
        &self,
        kind: TokenKind,
        digest: &TokenDigest,
    ) -> Result<(Uuid, Recorded), StoreError> {
        let hash = digest.hex();
        let mut tx = self.begin().await?;
        let row = sqlx::query("SELECT id, token_sha256 FROM credentials WHERE kind = ?")
            .bind(kind.as_str())
            .fetch_optional(&mut *tx)
            .await?;
        let (id, recorded) = match row {
            None => (Uuid::new_v4(), Recorded::First),
            Some(row) => {
                let id: &str = row.try_get("id")?;
                let id = Uuid::try_parse(id).map_err(|_| StoreError::Foreign { what: "id" })?;
                let same = row.try_get::<&str, _>("token_sha256")? == hash;
                (
                    id,
                    if same {
                        Recorded::Same
                    } else {
                        Recorded::Replaced
                    },
                )
            }
        };
        if recorded != Recorded::Same {
            sqlx::query(
                "INSERT INTO credentials (kind, id, token_sha256, issued_at) VALUES (?, ?, ?, ?) \
                 ON CONFLICT (kind) DO UPDATE SET token_sha256 = excluded.token_sha256, issued_at = excluded.issued_at",
            )
            .bind(kind.as_str())
            .bind(id.to_string())
            .bind(&hash)
            .bind(self.clock.now().unix_sec())
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
        Ok((id, recorded))
    }
}
