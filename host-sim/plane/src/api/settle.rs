//! Owns the route that ends the flight of an approval which was released with `"spend_on": "accepted"`. `api` routes to
//! it. It must not know what the upstream answered: the gate has judged that.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use serde::Deserialize;

use super::{
    Api,
    body::{self, Received},
    caller::Sidecar,
    error::ApiError,
    sidecar::AskedBody,
};
use crate::{lifecycle::Settlement, store::Settled};

/// `POST /api/sidecars/reviews/{id}/settle`
pub(super) async fn settle(
    _: Sidecar,
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    received: Received,
) -> Result<Json<AskedBody>, ApiError> {
    let id = body::id(path)?;
    let wire: SettleBody = body::object(&body::bytes(received)?)?;
    let settlement = settlement(wire.outcome)?;
    let settled = api
        .store
        .settle(id, settlement, wire.release_id.as_deref())
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "settling sidecar review",
            cause,
        })?;
    let asked = match settled {
        Settled::Absent => return Err(ApiError::ReviewNotFound),
        Settled::Refused(refusal) => {
            let (asked, standing) = (settlement.as_str(), refusal.standing());
            tracing::warn!(%id, asked, ?refusal, %standing, "settlement refused");
            return Err(ApiError::NotSettled(refusal));
        }
        Settled::Before(asked) => {
            tracing::debug!(%id, settlement = settlement.as_str(), "review settled again");
            asked
        }
        Settled::Taken(asked) => {
            let review = &asked.review;
            let (listener, rule) = (&review.listener_name, &review.approval_rule);
            let settlement = settlement.as_str();
            tracing::info!(%id, listener, rule, status = %review.status, settlement, "review settled");
            asked
        }
    };
    Ok(Json(AskedBody::new(*asked, api.credentials.sidecar_id)))
}

fn settlement(outcome: Option<String>) -> Result<Settlement, ApiError> {
    let word = outcome.ok_or(ApiError::MissingField("outcome"))?;
    Settlement::ALL
        .into_iter()
        .find(|settlement| settlement.as_str() == word)
        .ok_or_else(|| ApiError::unknown_word("outcome", "spent, returned", &word))
}

#[derive(Deserialize)]
struct SettleBody {
    outcome: Option<String>,
    release_id: Option<String>,
}
