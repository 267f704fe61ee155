//! Owns the proof that a caller was let in: a handler that takes one of these values cannot be reached without it. The
//! router makes them before it reads a body. It must not know what the call wants.

use axum::{extract::FromRequestParts, http::request::Parts};

use super::{Api, error::ApiError};
use crate::auth;

/// Whoever holds the sidecar's token.
pub(super) struct Sidecar;

impl FromRequestParts<Api> for Sidecar {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        auth::sidecar(&parts.headers, &api.credentials.sidecar)?;
        Ok(Self)
    }
}

/// Whoever holds the approver's token.
pub(super) struct Approver;

impl FromRequestParts<Api> for Approver {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        auth::approver(&parts.headers, &api.credentials.approver)?;
        Ok(Self)
    }
}
