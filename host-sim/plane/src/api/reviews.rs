//! Owns the people's API: seeing what waits and deciding it (contract 1.10). `api` routes to it. It must not release
//! anything: a decision only makes a release possible.

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
};
use serde::{Deserialize, Serialize};

use super::{
    Api,
    body::{self, ListQuery, Received},
    caller::Approver,
    error::ApiError,
    sidecar::StandingBody,
};
use crate::{
    lifecycle::{Decision, Status},
    limits::REJECTION_REASON_MAX_BYTES,
    render,
    requester::Requester,
    store::{Decided, Dossier},
};

/// `GET /api/reviews`
pub(super) async fn list(
    _: Approver,
    State(api): State<Api>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Vec<DossierBody>>, ApiError> {
    let (status, limit) = body::list(query)?;
    let dossiers = api
        .store
        .dossiers(status, limit)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "listing reviews",
            cause,
        })?;
    Ok(Json(dossiers.into_iter().map(DossierBody::new).collect()))
}

/// `GET /api/reviews/{id}`
pub(super) async fn read(
    _: Approver,
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<DossierBody>, ApiError> {
    let dossier = api
        .store
        .dossier(body::id(path)?)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "reading review",
            cause,
        })?
        .ok_or(ApiError::ReviewNotFound)?;
    Ok(Json(DossierBody::new(dossier)))
}

/// `PUT /api/reviews/{id}`
pub(super) async fn decide(
    _: Approver,
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    received: Received,
) -> Result<Json<DossierBody>, ApiError> {
    let id = body::id(path)?;
    let decision = decision(&body::bytes(received)?)?;
    let decided = api
        .store
        .decide(id, &decision)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "deciding review",
            cause,
        })?;
    match decided {
        Decided::Absent => Err(ApiError::ReviewNotFound),
        Decided::Refused(refusal) => {
            tracing::info!(%id, asked = %decision.to(), ?refusal, "decision refused");
            Err(ApiError::Refused(refusal))
        }
        Decided::Taken(dossier) => {
            let review = &dossier.review;
            let (listener, rule) = (&review.listener_name, &review.approval_rule);
            tracing::info!(%id, listener, rule, status = %review.status, "review decided");
            Ok(Json(DossierBody::new(*dossier)))
        }
    }
}

fn decision(body: &[u8]) -> Result<Decision, ApiError> {
    let wire: DecisionBody = body::object(body)?;
    let word = wire.status.ok_or(ApiError::MissingField("status"))?;
    let reason = reason(wire.rejection_reason)?;
    let decision = match Status::parse(&word).ok_or(ApiError::NotDecidable)? {
        Status::Approved => Decision::Approve,
        Status::Rejected => return Ok(Decision::Reject { reason }),
        Status::Revoked => Decision::Revoke,
        Status::Pending | Status::Processing | Status::Executed | Status::Expired => {
            return Err(ApiError::NotDecidable);
        }
    };
    // A "why not" beside a yes means that one of the two is a mistake.
    if reason.is_some() {
        Err(ApiError::ReasonWithoutRejection)
    } else {
        Ok(decision)
    }
}

/// The reason reaches an agent's terminal and log, so it is short and has no control characters.
fn reason(found: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(text) = found else {
        return Ok(None);
    };
    if text.len() > REJECTION_REASON_MAX_BYTES || text.chars().any(char::is_control) {
        return Err(ApiError::BadReason);
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

#[derive(Deserialize)]
struct DecisionBody {
    status: Option<String>,
    rejection_reason: Option<String>,
}

/// A review as a person reads it.
#[derive(Serialize)]
pub(super) struct DossierBody {
    #[serde(flatten)]
    standing: StandingBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed_at: Option<String>,
    /// Until when the call that uses the approval right now may be settled; from then on it counts as run.
    #[serde(skip_serializing_if = "Option::is_none")]
    settle_by: Option<String>,
    requester: Option<Requester>,
    statement: String,
    statement_bytes: usize,
    statement_sha256: String,
    ran_before: i64,
}

impl DossierBody {
    fn new(dossier: Dossier) -> Self {
        let Dossier {
            review,
            statement,
            requester,
            ran_before,
        } = dossier;
        Self {
            executed_at: review.executed_at.map(|at| at.to_string()),
            settle_by: review
                .settle_by
                .filter(|_| review.status == Status::Processing)
                .map(|at| at.to_string()),
            standing: StandingBody::new(review),
            requester: requester.map(|requester| requester.shown()),
            statement: render::statement(statement.bytes()),
            statement_bytes: statement.bytes().len(),
            statement_sha256: statement.sha256(),
            ran_before,
        }
    }
}
