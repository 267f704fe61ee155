//! Owns the routes of the plane and what each of its handlers may use; `server` puts a socket under them, tests call
//! them without one. It must not know sockets, files or SQL.

mod body;
mod caller;
mod error;
mod reviews;
mod sidecar;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::DefaultBodyLimit,
    http::StatusCode,
    routing::{get, post},
};
use serde::Serialize;
use uuid::Uuid;

use self::error::ApiError;
use crate::{
    config::PlaneConfig, limits::BODY_MAX_BYTES, store::sqlite::SqliteStore, tokens::TokenDigest,
};

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) store: SqliteStore,
    pub(crate) config: Arc<PlaneConfig>,
    pub(crate) credentials: Arc<Credentials>,
}

/// Whom the plane lets in.
pub(crate) struct Credentials {
    pub(crate) sidecar_id: Uuid,
    pub(crate) sidecar: TokenDigest,
    pub(crate) approver: TokenDigest,
}

/// Every route. Whatever is asked, the answer is JSON, and an error has a `message`: that is how a sidecar tells a real
/// answer from one that some proxy made up (contract 1.2).
pub(crate) fn router(api: Api) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route(
            "/api/sidecars/reviews",
            get(sidecar::list).post(sidecar::file),
        )
        .route("/api/sidecars/reviews/{id}", get(sidecar::read))
        .route("/api/sidecars/reviews/{id}/claim", post(sidecar::claim))
        .route("/api/reviews", get(reviews::list))
        .route("/api/reviews/{id}", get(reviews::read).put(reviews::decide))
        .fallback(|| async { ApiError::RouteNotFound })
        .method_not_allowed_fallback(|| async { ApiError::MethodNotAllowed })
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .with_state(api)
}

async fn health() -> (StatusCode, Json<Health>) {
    (StatusCode::OK, Json(Health { status: "ok" }))
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}
