//! Owns how what a caller sends is read: JSON bodies, ids in paths, list queries. Both APIs' handlers use it. It must not
//! know what the values are for.

use axum::{
    body::Bytes,
    extract::{
        Path, Query,
        rejection::{BytesRejection, PathRejection, QueryRejection},
    },
    http::StatusCode,
};
use serde::{Deserialize, de::DeserializeOwned};
use uuid::Uuid;

use super::error::ApiError;
use crate::{
    lifecycle::Status,
    limits::{LIST_LIMIT, LIST_LIMIT_DEFAULT},
};

/// A body as it arrived, or why it did not.
pub(super) type Received = Result<Bytes, BytesRejection>;

/// The bytes of a body.
pub(super) fn bytes(received: Received) -> Result<Bytes, ApiError> {
    received.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            ApiError::BodyTooLarge
        } else {
            ApiError::BodyUnreadable
        }
    })
}

/// A JSON object. Unknown keys are none of our business (contract 1.3).
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    // A derived reader takes an array for its fields in order too, which no caller means.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::BadJson("it must be an object".to_owned()));
    }
    serde_json::from_slice(body).map_err(|cause| ApiError::BadJson(shape(&cause)))
}

/// What is wrong and where, without the value that stands there: it could be a part of a statement.
fn shape(cause: &serde_json::Error) -> String {
    let kind = match cause.classify() {
        serde_json::error::Category::Io | serde_json::error::Category::Syntax => "a syntax error",
        serde_json::error::Category::Data => "a value of the wrong type",
        serde_json::error::Category::Eof => "it ends too early",
    };
    format!("{kind} at line {} column {}", cause.line(), cause.column())
}

/// The id of a path, in any form that a UUID has. What is none cannot be found.
pub(super) fn id(path: Result<Path<String>, PathRejection>) -> Result<Uuid, ApiError> {
    let Path(text) = path.map_err(|_| ApiError::ReviewNotFound)?;
    Uuid::try_parse(&text).map_err(|_| ApiError::ReviewNotFound)
}

/// `?status=&limit=` as sent.
#[derive(Deserialize)]
pub(super) struct ListQuery {
    limit: Option<String>,
    status: Option<String>,
}

/// The status asked for, if any, and how many reviews at most.
pub(super) fn list(
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<(Option<Status>, u32), ApiError> {
    let Query(query) = query.map_err(|_| ApiError::BadQuery)?;
    let limit = match query.limit {
        None => LIST_LIMIT_DEFAULT,
        Some(text) => text.parse().map_err(|_| ApiError::BadLimit)?,
    };
    if !LIST_LIMIT.contains(&limit) {
        return Err(ApiError::BadLimit);
    }
    let status = match query.status.as_deref() {
        None | Some("") => None,
        Some(word) => Some(Status::parse(word).ok_or(ApiError::BadStatus)?),
    };
    Ok((status, limit))
}
