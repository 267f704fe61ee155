//! The demo upstream: answers every request with what it received, and tells its holder about each one, so that a person SEES
//! how often a call came through.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::net::TcpListener;

/// One request as it reached the upstream.
#[derive(Clone, Debug, Serialize)]
pub struct ReceivedRequest {
    /// Its number since the upstream started, from 1.
    pub request: u64,
    /// The method.
    pub method: String,
    /// The path without the query, which may carry credentials.
    pub path: String,
    /// How many bytes the body had.
    pub body_bytes: usize,
}

impl fmt::Display for ReceivedRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReceivedRequest {
            request,
            method,
            path,
            body_bytes,
        } = self;
        write!(
            formatter,
            "upstream received request {request}: {method} {path} ({body_bytes} bytes)"
        )
    }
}

/// Serves `listener` until `stop` completes; `received` is called for each request once its body came in whole.
pub async fn serve_upstream(
    listener: TcpListener,
    received: impl Fn(&ReceivedRequest) + Send + Sync + 'static,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let upstream = Upstream {
        count: AtomicU64::new(0),
        received: Box::new(received),
    };
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::new(upstream));
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

struct Upstream {
    count: AtomicU64,
    received: Box<dyn Fn(&ReceivedRequest) + Send + Sync>,
}

async fn answer(State(upstream): State<Arc<Upstream>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let received = ReceivedRequest {
        request: upstream.count.fetch_add(1, Ordering::Relaxed) + 1,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        body_bytes: body.len(),
    };
    (upstream.received)(&received);
    Json(received).into_response()
}

/// Above anything that a demo sends, and below what would hurt.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
