//! Owns the one table from what went wrong to what the caller reads; every handler ends here when it fails. It must not
//! show a caller what the database or the system said.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    auth::Denied,
    lifecycle::{Refusal, SettleRefusal, Status},
    limits::{
        BODY_MAX_BYTES, LIST_LIMIT, NAME_MAX_BYTES, REJECTION_REASON_MAX_BYTES,
        STATEMENT_MAX_BYTES, WORD_SHOWN_MAX_BYTES,
    },
    store::{Full, StoreError},
};

/// Why a request was not served.
#[derive(Debug)]
pub(super) enum ApiError {
    /// Not JSON, or not of the type.
    BadJson(String),
    /// A list's limit out of its range.
    BadLimit,
    /// A payload that is no base64.
    BadPayload(String),
    /// A query string that cannot be read.
    BadQuery,
    /// A rejection's reason that is too long or has control characters.
    BadReason,
    /// A word that is no status.
    BadStatus,
    /// A body over its bound.
    BodyTooLarge,
    /// A body that did not arrive whole.
    BodyUnreadable,
    /// Let in nowhere.
    Denied(Denied),
    /// Ours.
    Internal {
        /// What the caller is told.
        doing: &'static str,
        /// What the log is told.
        cause: StoreError,
    },
    /// A route has other methods.
    MethodNotAllowed,
    /// A field that must be there and not empty.
    MissingField(&'static str),
    /// A name over its bound.
    NameTooLong(&'static str),
    /// A rule that this listener may not use, or one of the two does not exist.
    NotAuthorised {
        /// As it was asked.
        listener: String,
        /// As it was asked.
        rule: String,
    },
    /// A status that nobody can decide.
    NotDecidable,
    /// A settlement that the review's state does not allow.
    NotSettled(SettleRefusal),
    /// A reason without a rejection.
    ReasonWithoutRejection,
    /// A decision that the review's state does not allow.
    Refused(Refusal),
    /// No such review, or nothing that could be one's id.
    ReviewNotFound,
    /// A statement over its bound.
    StatementTooLarge,
    /// A new review beyond a cap on those that wait.
    TooManyWaiting {
        /// Which one.
        full: Full,
        /// How many may wait.
        cap: u32,
    },
    /// A word that a field does not have.
    UnknownWord {
        /// Which field.
        field: &'static str,
        /// Its words.
        allowed: &'static str,
        /// What was sent, cut.
        found: String,
    },
}

impl ApiError {
    /// A word that a field does not have.
    pub(super) fn unknown_word(field: &'static str, allowed: &'static str, found: &str) -> Self {
        let end = found.floor_char_boundary(WORD_SHOWN_MAX_BYTES);
        Self::UnknownWord {
            field,
            allowed,
            found: found.get(..end).unwrap_or_default().to_owned(),
        }
    }

    fn code(&self) -> StatusCode {
        match self {
            Self::BadJson(_)
            | Self::BadLimit
            | Self::BadPayload(_)
            | Self::BadQuery
            | Self::BadReason
            | Self::BadStatus
            | Self::BodyUnreadable
            | Self::Denied(Denied::TwoCredentials)
            | Self::MissingField(_)
            | Self::NameTooLong(_)
            | Self::NotDecidable
            | Self::ReasonWithoutRejection
            | Self::UnknownWord { .. }
            | Self::Refused(Refusal::Expired | Refusal::NotRevocable { .. }) => {
                StatusCode::BAD_REQUEST
            }
            Self::Denied(Denied::IdentityNotServed | Denied::NoCredential) => {
                StatusCode::UNAUTHORIZED
            }
            Self::ReviewNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotSettled(_) | Self::Refused(Refusal::AlreadySettled { .. }) => {
                StatusCode::CONFLICT
            }
            Self::BodyTooLarge | Self::StatementTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotAuthorised { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyWaiting { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::BadJson(problem) => format!("request body is not the expected JSON: {problem}"),
            Self::BadLimit => {
                format!(
                    "limit must be a number from {} to {}",
                    LIST_LIMIT.start(),
                    LIST_LIMIT.end()
                )
            }
            Self::BadPayload(problem) => format!("payload is not valid base64: {problem}"),
            Self::BadQuery => "query string cannot be read".to_owned(),
            Self::BadReason => format!(
                "rejection_reason must be at most {REJECTION_REASON_MAX_BYTES} bytes without control characters"
            ),
            Self::BadStatus => format!("status must be one of {}", words(&Status::ALL)),
            Self::BodyTooLarge => format!("request body is larger than {BODY_MAX_BYTES} bytes"),
            Self::BodyUnreadable => "request body did not arrive whole".to_owned(),
            Self::Denied(Denied::IdentityNotServed) => {
                "this control plane checks no workload identity; send the hoop-sidecar-token header"
                    .to_owned()
            }
            Self::Denied(Denied::NoCredential) => "access denied".to_owned(),
            Self::Denied(Denied::TwoCredentials) => {
                "send one sidecar credential: the hoop-sidecar-token header or the \
                 hoop-sidecar-identity header, not both"
                    .to_owned()
            }
            Self::Internal { doing, .. } => format!("failed {doing}"),
            Self::MethodNotAllowed => "method not allowed".to_owned(),
            Self::MissingField(field) => format!("{field} is required"),
            Self::NameTooLong(field) => format!("{field} is longer than {NAME_MAX_BYTES} bytes"),
            Self::NotAuthorised { listener, rule } => {
                format!("listener {listener:?} is not configured to use approval rule {rule:?}")
            }
            Self::NotDecidable => {
                format!(
                    "status must be one of {}",
                    words(&[Status::Approved, Status::Rejected, Status::Revoked])
                )
            }
            Self::NotSettled(SettleRefusal::AnotherRelease { standing }) => {
                format!("release_id is not the review's last release: it is {standing}")
            }
            Self::NotSettled(SettleRefusal::SettledOtherwise {
                settlement,
                standing,
            }) => {
                let settlement = settlement.as_str();
                format!("review cannot be settled as {settlement}: it is {standing}")
            }
            Self::ReasonWithoutRejection => {
                format!(
                    "rejection_reason goes with status {} only",
                    Status::Rejected
                )
            }
            Self::Refused(Refusal::AlreadySettled { standing }) => {
                format!("review is already decided: it is {standing}")
            }
            Self::Refused(Refusal::Expired) => "review expired".to_owned(),
            Self::Refused(Refusal::NotRevocable { standing }) => {
                format!("only an approved, unused review can be revoked: it is {standing}")
            }
            Self::ReviewNotFound => "review not found".to_owned(),
            Self::StatementTooLarge => {
                format!("statement is larger than {STATEMENT_MAX_BYTES} bytes")
            }
            Self::TooManyWaiting {
                full: Full::InAll,
                cap,
            } => format!(
                "too many approval requests are waiting for a decision: there may be {cap} in all"
            ),
            Self::TooManyWaiting {
                full: Full::OfCaller,
                cap,
            } => format!(
                "too many approval requests of this requester are waiting for a decision: there may be {cap}"
            ),
            Self::UnknownWord {
                field,
                allowed,
                found,
            } => format!("{field} must be one of {allowed}; found {found:?}"),
        }
    }

    /// The state that stands, for whoever lost against it.
    const fn standing(&self) -> Option<&'static str> {
        if let Self::NotSettled(refusal) = self {
            return Some(refusal.standing().as_str());
        }
        let Self::Refused(refusal) = self else {
            return None;
        };
        Some(match refusal {
            Refusal::AlreadySettled { standing } | Refusal::NotRevocable { standing } => {
                standing.as_str()
            }
            Refusal::Expired => Status::Expired.as_str(),
        })
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal { doing, cause } = &self {
            tracing::error!(error = %chain(cause), "failed {doing}");
        }
        let body = Body {
            message: self.message(),
            status: self.standing(),
        };
        (self.code(), Json(body)).into_response()
    }
}

#[derive(Serialize)]
struct Body {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

fn words(statuses: &[Status]) -> String {
    statuses
        .iter()
        .map(|status| status.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// An error and its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
