//! Owns the routes of the plane and what each of its handlers may use; `server` puts a socket under them, tests call
//! them without one. It must not know sockets, files or SQL.

mod body;
mod caller;
mod error;
mod handshake;
mod reviews;
mod settle;
mod sidecar;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::DefaultBodyLimit,
    http::{HeaderName, StatusCode, header::CONTENT_TYPE},
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

/// Every route. Each of them answers JSON, and an error has a `message`: that is how a sidecar tells a real answer from
/// one that some proxy made up, and a review that is not there from a route that is not (contract 1.2).
pub(crate) fn router(api: Api) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route(
            "/api/sidecars/reviews",
            get(sidecar::list).post(sidecar::file),
        )
        .route("/api/sidecars/reviews/{id}", get(sidecar::read))
        .route("/api/sidecars/reviews/{id}/claim", post(sidecar::claim))
        .route("/api/sidecars/reviews/{id}/settle", post(settle::settle))
        .route("/api/sidecars/handshake", post(handshake::handshake))
        .route("/api/sidecars/configuration", get(handshake::configuration))
        .route("/api/sidecars", get(handshake::list))
        .route("/api/reviews", get(reviews::list))
        .route("/api/reviews/{id}", get(reviews::read).put(reviews::decide))
        .fallback(no_such_route)
        .method_not_allowed_fallback(|| async { ApiError::MethodNotAllowed })
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .with_state(api)
}

/// What the gateway's own router (Gin) says to a route that it lacks, byte for byte. By this a sidecar knows that the
/// plane is older than itself; a JSON `message` here would make it report "not found" for a review that may well exist.
async fn no_such_route() -> (StatusCode, [(HeaderName, &'static str); 1], &'static str) {
    let plain = [(CONTENT_TYPE, "text/plain")];
    (StatusCode::NOT_FOUND, plain, "404 page not found")
}

async fn health() -> (StatusCode, Json<Health>) {
    (StatusCode::OK, Json(Health { status: "ok" }))
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}
