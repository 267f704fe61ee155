//! HTTP and gRPC callouts: what a guest asks for becomes a request to a cluster, and what comes back goes to the worker.
//!
//! Source: Envoy's async clients (`source/common/http/async_client_impl.cc`, `source/common/grpc/async_client_impl.cc`), and what
//! servers behind Envoy 1.40 were sent.

mod grpc;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::cluster::Answer;
use super::driver::Driver;
use super::lane::{Lane, Order};
use crate::callout::{CalloutId, CalloutOutcome};
use crate::header_map::HeaderMap;
use crate::output::HttpCallout;
use crate::stream::UpstreamInfo;
use crate::worker::UpstreamFailure;

pub(super) use grpc::{frame, run as run_grpc};

/// Sends an HTTP callout and hands over what became of it.
pub(super) async fn run_http(driver: Rc<Driver>, callout: HttpCallout) {
    let id = callout.id;
    let outcome = outcome(&driver, callout).await;
    driver.callout_over(id);
    driver.tell(|worker| worker.callout_answered(id, outcome));
}

async fn outcome(driver: &Rc<Driver>, callout: HttpCallout) -> CalloutOutcome {
    let Some(cluster) = driver.clusters.named(&callout.cluster) else {
        return CalloutOutcome::Reset;
    };
    let mut headers = callout.headers;
    if !headers.contains(":scheme") {
        headers.add(b":scheme", b"http");
    }
    if !callout.body.is_empty() {
        headers.set(b"content-length", callout.body.len().to_string().as_bytes());
    }
    headers.set(b"x-envoy-internal", b"true");
    if let Some(timeout) = callout.timeout {
        headers.set(
            b"x-envoy-expected-rq-timeout-ms",
            timeout.as_millis().to_string().as_bytes(),
        );
    }
    let lane = Lane::default();
    let trailers = !callout.trailers.is_empty();
    let end_stream = callout.body.is_empty() && !trailers;
    if !end_stream {
        lane.push(Order::Data {
            data: callout.body,
            end_stream: !trailers,
        });
    }
    if trailers {
        lane.push(Order::Trailers(callout.trailers));
    }
    let collected = Collected {
        driver,
        id: callout.id,
        parts: RefCell::default(),
        too_large: Notify::new(),
        stuck: Cell::new(false),
    };
    let exchange = cluster.exchange(headers, end_stream, &lane, &collected);
    let exchanged = tokio::select! {
        exchanged = exchange => exchanged,
        () = collected.too_large.notified() => return CalloutOutcome::Reset,
    };
    collected.outcome(exchanged)
}

/// An answer that is handed over whole.
struct Collected<'a> {
    driver: &'a Rc<Driver>,
    id: CalloutId,
    parts: RefCell<Parts>,
    /// Told when the body has outgrown its limit.
    too_large: Notify,
    stuck: Cell<bool>,
}

#[derive(Default)]
struct Parts {
    headers: Option<HeaderMap>,
    body: BytesMut,
    trailers: HeaderMap,
}

impl Collected<'_> {
    fn outcome(self, exchanged: Result<(), UpstreamFailure>) -> CalloutOutcome {
        let parts = self.parts.into_inner();
        match (exchanged, parts.headers) {
            (Ok(()), Some(headers)) => CalloutOutcome::Answered {
                headers,
                body: parts.body.freeze(),
                trailers: parts.trailers,
            },
            (Err(failure), None) => CalloutOutcome::Unreachable {
                status: reset_reason(&failure).0,
                body: reset_text(&failure),
            },
            // Once headers were there, Envoy tells nothing but that it broke off.
            (Err(_), Some(_)) | (Ok(()), None) => CalloutOutcome::Reset,
        }
    }
}

impl Answer for Collected<'_> {
    fn connected(&self, _upstream: &UpstreamInfo) {}

    fn headers(&self, headers: HeaderMap, _end_stream: bool) {
        self.parts.borrow_mut().headers = Some(headers);
        self.driver.tell(|worker| worker.callout_answering(self.id));
    }

    fn data(&self, data: Bytes, _end_stream: bool) {
        let mut parts = self.parts.borrow_mut();
        if parts.body.len() + data.len() > BODY_LIMIT {
            self.stuck.set(true);
            self.too_large.notify_one();
        } else {
            parts.body.extend_from_slice(&data);
        }
    }

    fn trailers(&self, trailers: HeaderMap) {
        self.parts.borrow_mut().trailers = trailers;
    }

    /// There is none any more for a body that was too large.
    async fn room(&self) {
        if self.stuck.get() {
            std::future::pending().await
        }
    }
}

/// The text of an answer that Envoy makes where none came.
fn reset_text(failure: &UpstreamFailure) -> String {
    let (_, reason) = reset_reason(failure);
    format!("upstream connect error or disconnect/reset before headers. reset reason: {reason}")
}

/// What Envoy's log has about it, in its own spelling.
fn reset_details(failure: &UpstreamFailure) -> String {
    let (_, reason) = reset_reason(failure);
    let reason = reason.replace(' ', "_");
    let transport = match failure {
        UpstreamFailure::ConnectionFailed { reason } => format!("|{}", reason.replace(' ', "_")),
        UpstreamFailure::ConnectionTimedOut
        | UpstreamFailure::Disconnected
        | UpstreamFailure::ProtocolError
        | UpstreamFailure::Reset => String::new(),
    };
    format!("upstream_reset_before_response_started{{{reason}{transport}}}")
}

/// The status and the reason of such an answer.
fn reset_reason(failure: &UpstreamFailure) -> (u16, &'static str) {
    match failure {
        UpstreamFailure::ConnectionFailed { .. } => (503, "remote connection failure"),
        UpstreamFailure::ConnectionTimedOut => (503, "connection timeout"),
        UpstreamFailure::Disconnected => (503, "connection termination"),
        UpstreamFailure::ProtocolError => (502, "protocol error"),
        UpstreamFailure::Reset => (503, "remote reset"),
    }
}

/// Envoy's `http.async_response_buffer_limit`.
const BODY_LIMIT: usize = 32 * 1024 * 1024;
