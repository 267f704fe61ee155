//! The hostcalls that the gate uses, each as a `Result` or an `Option`, never as a panic on what a client sent.

use std::time::Duration;

use proxy_wasm::hostcalls;
use proxy_wasm::types::{BufferType, MapType, MetricType, Status};

use crate::answer::Answer;
use crate::control_plane::{PlaneAnswer, PlaneCall};
use crate::limits;
use crate::metrics::Counter;
use crate::request::{HeadFault, HeaderNames, RequestHead};

/// Reads the request's head from the whole map: one hostcall, and repeated headers are seen.
pub(super) fn request_head(wanted: &HeaderNames) -> Result<RequestHead, HeadFault> {
    let headers = hostcalls::get_map_bytes(MapType::HttpRequestHeaders).unwrap_or_default();
    RequestHead::parse(
        headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice())),
        wanted,
    )
}

/// Reads bytes of the request body as it will be forwarded; `None` where fewer are there than asked for.
pub(super) fn request_body(start: usize, size: usize) -> Option<Vec<u8>> {
    if size == 0 {
        return Some(Vec::new());
    }
    let bytes = hostcalls::get_buffer(BufferType::HttpRequestBody, start, size)
        .ok()
        .flatten()?;
    (bytes.len() == size).then_some(bytes)
}

/// Sends a call to the Control Plane; the token tells its answer.
pub(super) fn call_plane(call: &PlaneCall) -> Result<u32, Status> {
    let headers = call
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let timeout = Duration::from_millis(call.timeout_ms.into());
    hostcalls::dispatch_http_call(
        &call.cluster,
        headers,
        call.body.as_deref(),
        Vec::new(),
        timeout,
    )
}

/// Reads the answer that is being delivered.
pub(super) fn plane_answer(body_size: usize) -> PlaneAnswer {
    let headers = hostcalls::get_map_bytes(MapType::HttpCallResponseHeaders).unwrap_or_default();
    let body = (body_size <= limits::PLANE_ANSWER_BYTES).then(|| {
        let bytes = hostcalls::get_buffer(BufferType::HttpCallResponseBody, 0, body_size);
        bytes.ok().flatten().unwrap_or_default()
    });
    PlaneAnswer::new(
        headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice())),
        body,
    )
}

/// Sends a local reply.
pub(super) fn answer(answer: &Answer) {
    let headers = answer
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    if hostcalls::send_http_response(answer.status.into(), headers, Some(&answer.body)).is_err() {
        log::error!("a local reply could not be sent; the stream stays paused");
    }
}

/// Lets the paused request go on.
pub(super) fn resume_request() {
    if hostcalls::resume_http_request().is_err() {
        log::error!("a released request could not be resumed; it stays paused");
    }
}

/// The host's ids of all counters.
#[derive(Debug)]
pub(super) struct Counters(Vec<(Counter, u32)>);

impl Counters {
    /// Defines every counter, so that each shows from the start with its zero.
    pub fn define() -> Self {
        let define = |counter: Counter| {
            let id = hostcalls::define_metric(MetricType::Counter, counter.name()).ok()?;
            Some((counter, id))
        };
        Self(Counter::ALL.into_iter().filter_map(define).collect())
    }

    /// Adds one.
    pub fn increment(&self, counter: Counter) {
        let id = self
            .0
            .iter()
            .find(|(defined, _)| *defined == counter)
            .map(|(_, id)| *id);
        if id.is_none_or(|id| hostcalls::increment_metric(id, 1).is_err()) {
            log::warn!("the counter {} could not be incremented", counter.name());
        }
    }
}
