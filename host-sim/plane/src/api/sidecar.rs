//! Owns the Sidecar API (contract 1.4 to 1.7): filing, claiming, reading, listing. `api` routes to it. It must not know
//! who decides, nor how the store makes a release happen once.

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::StatusCode,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Api,
    body::{self, ListQuery, Received},
    caller::Sidecar,
    error::ApiError,
};
use crate::{
    config::PlaneConfig,
    limits::{NAME_MAX_BYTES, STATEMENT_MAX_BYTES},
    requester::{Requester, caller},
    store::{Asked, Filed, Filing, Full, Outcome, Review, SpendOn, Statement, WaitingCaps},
};

/// `POST /api/sidecars/reviews`
pub(super) async fn file(
    _: Sidecar,
    State(api): State<Api>,
    received: Received,
) -> Result<(StatusCode, Json<AskedBody>), ApiError> {
    let filing = filing(&body::bytes(received)?, &api.config)?;
    let filed = api
        .store
        .file(&filing)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "creating sidecar review",
            cause,
        })?;
    let asked = match filed {
        Filed::Asked(asked) => *asked,
        Filed::Refused(full) => return Err(too_many_waiting(full, &filing)),
    };
    log(&asked);
    let code = match asked.outcome {
        Outcome::Filed => StatusCode::CREATED,
        Outcome::Released { .. } | Outcome::Standing => StatusCode::OK,
    };
    Ok((
        code,
        Json(AskedBody::new(asked, api.credentials.sidecar_id)),
    ))
}

/// `POST /api/sidecars/reviews/{id}/claim`
pub(super) async fn claim(
    _: Sidecar,
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    received: Received,
) -> Result<Json<AskedBody>, ApiError> {
    let id = body::id(path)?;
    let sent = body::bytes(received)?;
    let wire = if sent.is_empty() {
        ClaimBody::default()
    } else {
        body::object(&sent)?
    };
    let asked = api
        .store
        .claim(id, spend_on(wire.spend_on, &api.config)?)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "claiming sidecar review",
            cause,
        })?
        .ok_or(ApiError::ReviewNotFound)?;
    log(&asked);
    Ok(Json(AskedBody::new(asked, api.credentials.sidecar_id)))
}

/// `GET /api/sidecars/reviews/{id}`
pub(super) async fn read(
    _: Sidecar,
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<StandingBody>, ApiError> {
    let review = api
        .store
        .review(body::id(path)?)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "reading sidecar review",
            cause,
        })?
        .ok_or(ApiError::ReviewNotFound)?;
    Ok(Json(StandingBody::new(review)))
}

/// `GET /api/sidecars/reviews`
pub(super) async fn list(
    _: Sidecar,
    State(api): State<Api>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Vec<StandingBody>>, ApiError> {
    let (status, limit) = body::list(query)?;
    let reviews = api
        .store
        .reviews(status, limit)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "listing sidecar reviews",
            cause,
        })?;
    Ok(Json(reviews.into_iter().map(StandingBody::new).collect()))
}

/// Reads a filing and checks it against the stored configuration, never against its own word.
fn filing(body: &[u8], config: &PlaneConfig) -> Result<Filing, ApiError> {
    let wire: FilingBody = body::object(body)?;
    let listener_name = required("listener_name", wire.listener_name)?;
    let approval_rule = required("approval_rule", wire.approval_rule)?;
    let payload = required("payload", wire.payload)?;
    let spend_on = spend_on(wire.spend_on, config)?;
    let statement = STANDARD
        .decode(payload)
        .map_err(|cause| ApiError::BadPayload(cause.to_string()))?;
    if statement.len() > STATEMENT_MAX_BYTES {
        return Err(ApiError::StatementTooLarge);
    }
    for (field, name) in [
        ("listener_name", &listener_name),
        ("approval_rule", &approval_rule),
    ] {
        if name.len() > NAME_MAX_BYTES {
            return Err(ApiError::NameTooLong(field));
        }
    }
    let Some(rule) = config.authorised(&listener_name, &approval_rule) else {
        tracing::warn!(listener = ?listener_name, rule = ?approval_rule, "filing refused: not configured");
        return Err(ApiError::NotAuthorised {
            listener: listener_name,
            rule: approval_rule,
        });
    };
    Ok(Filing {
        statement: Statement::new(statement),
        requester: Requester::read(body),
        reviewers: rule.reviewers.clone(),
        pending_ttl_sec: rule.pending_ttl_sec,
        approval_ttl_sec: rule.approval_ttl_sec,
        listener_name,
        approval_rule,
        spend_on,
        caps: WaitingCaps {
            in_all: config.max_waiting(),
            per_caller: config.max_waiting_per_requester(),
        },
    })
}

/// The answer to one review too many, and its line in the log.
fn too_many_waiting(full: Full, filing: &Filing) -> ApiError {
    let (cap, key) = match full {
        Full::InAll => (filing.caps.in_all, "max_waiting"),
        Full::OfCaller => (filing.caps.per_caller, "max_waiting_per_requester"),
    };
    tracing::warn!(
        listener = filing.listener_name,
        rule = filing.approval_rule,
        caller = ?caller(filing.requester.as_ref()),
        "filing refused: {key} is {cap}, and as many wait"
    );
    ApiError::TooManyWaiting { full, cap }
}

/// What uses the approval up, should this very request be released on it.
///
/// A word that this plane does not know is refused: whoever sent it counts on something that would not happen.
fn spend_on(found: Option<String>, config: &PlaneConfig) -> Result<SpendOn, ApiError> {
    match found.as_deref() {
        None | Some("release") => Ok(SpendOn::Release),
        Some("accepted") => Ok(SpendOn::Accepted {
            settle_within_sec: config.processing_ttl_sec(),
        }),
        Some(other) => Err(ApiError::unknown_word(
            "spend_on",
            "release, accepted",
            other,
        )),
    }
}

fn required(field: &'static str, value: Option<String>) -> Result<String, ApiError> {
    value
        .filter(|value| !value.is_empty())
        .ok_or(ApiError::MissingField(field))
}

/// One line for each step of a life; asking again is none.
fn log(asked: &Asked) {
    let Review {
        id,
        listener_name: listener,
        approval_rule: rule,
        status,
        ..
    } = &asked.review;
    if let Some((id, status)) = asked.lapsed {
        tracing::info!(%id, listener, rule, %status, "review ended by its deadline");
    }
    match asked.outcome {
        Outcome::Filed => tracing::info!(%id, listener, rule, %status, "review filed"),
        Outcome::Released { .. } => tracing::info!(%id, listener, rule, %status, "review released"),
        Outcome::Standing => {
            tracing::debug!(%id, listener, rule, %status, "review asked for again")
        }
    }
}

#[derive(Deserialize)]
struct FilingBody {
    listener_name: Option<String>,
    approval_rule: Option<String>,
    payload: Option<String>,
    spend_on: Option<String>,
}

#[derive(Default, Deserialize)]
struct ClaimBody {
    spend_on: Option<String>,
}

/// The answer to a filing, to a claim and to a settlement.
#[derive(Serialize)]
pub(super) struct AskedBody {
    forward: bool,
    /// Beside a release that is settled: what to name when settling it.
    #[serde(skip_serializing_if = "Option::is_none")]
    release_id: Option<String>,
    review: ReviewBody,
}

impl AskedBody {
    pub(super) fn new(asked: Asked, sidecar_id: Uuid) -> Self {
        let Asked {
            review,
            groups,
            outcome,
            lapsed: _,
        } = asked;
        let group_status = review.status.of_group(review.decided_at.is_some()).as_str();
        let (forward, release_id) = match outcome {
            Outcome::Released { release_id } => (true, release_id),
            Outcome::Filed | Outcome::Standing => (false, None),
        };
        Self {
            forward,
            release_id: release_id.map(|id| id.to_string()),
            review: ReviewBody {
                id: review.id.to_string(),
                session: review.session.to_string(),
                kind: "onetime",
                status: review.status.as_str(),
                created_at: review.created_at.to_string(),
                expires_at: review.expires_at.map(|at| at.to_string()),
                approval_ttl_sec: review.approval_ttl_sec,
                review_groups_data: groups
                    .into_iter()
                    .map(|group| GroupBody {
                        id: group.id.to_string(),
                        group: group.name,
                        status: group_status,
                    })
                    .collect(),
                // The one approver of this plane answers for every group, so one word settles a review.
                min_approvals: 1,
                sidecar_id: sidecar_id.to_string(),
                listener_name: review.listener_name,
                access_request_rule_name: review.approval_rule,
                force_approval_groups: [],
            },
        }
    }
}

#[derive(Serialize)]
struct ReviewBody {
    id: String,
    session: String,
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_ttl_sec: Option<u32>,
    review_groups_data: Vec<GroupBody>,
    min_approvals: u32,
    sidecar_id: String,
    listener_name: String,
    access_request_rule_name: String,
    force_approval_groups: [String; 0],
}

#[derive(Serialize)]
struct GroupBody {
    id: String,
    group: String,
    status: &'static str,
}

/// How a review stands (contract 1.6).
#[derive(Serialize)]
pub(super) struct StandingBody {
    id: String,
    status: &'static str,
    listener_name: String,
    approval_rule: String,
    created_at: String,
    decided_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejection_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl StandingBody {
    /// The wire form of a review; people read the same fields first.
    pub(super) fn new(review: Review) -> Self {
        Self {
            id: review.id.to_string(),
            status: review.status.as_str(),
            listener_name: review.listener_name,
            approval_rule: review.approval_rule,
            created_at: review.created_at.to_string(),
            decided_at: review.decided_at.map(|at| at.to_string()),
            rejection_reason: review.rejection_reason,
            expires_at: review.expires_at.map(|at| at.to_string()),
        }
    }
}
