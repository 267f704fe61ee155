//! The hostcalls that the gate uses, each as a `Result` or an `Option`, never as a panic on what a client sent.

use std::time::{Duration, Instant, SystemTime};

use proxy_wasm::hostcalls;
use proxy_wasm::types::{BufferType, MapType, MetricType, Status};

use crate::answer::Answer;
use crate::control_plane::{PlaneAnswer, PlaneCall};
use crate::effect::Note;
use crate::event::Event;
use crate::identity::{Headers, Peer};
use crate::limits;
use crate::metrics::{Counter, HELD_GAUGE, MCP_WAITS_GAUGE};
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

/// Lets a held request go on to the route that paces an answer of so many bytes: the host chooses the route anew once a header is set,
/// and writes the property as the body. Should that fail, the request takes a route that serves nothing.
pub(super) fn resume_paced(bytes: usize) {
    let filler = vec![b'.'; bytes];
    let is_set = hostcalls::set_property(vec![PACE_PROPERTY], Some(&filler)).is_ok()
        && hostcalls::set_map_value(MapType::HttpRequestHeaders, PACE_HEADER, Some("1")).is_ok();
    if !is_set {
        log::error!("an answer in pieces could not be begun");
    }
    resume_request();
}

/// The property that the pacing route writes as its body: `%FILTER_STATE(wasm.hoop_mcp_pace:PLAIN)%`.
const PACE_PROPERTY: &str = "hoop_mcp_pace";

/// The header by which the host chooses that route. A client's own copy is taken off.
pub(super) const PACE_HEADER: &str = "x-hoop-mcp-pace";

/// Whether the answer that is passing is the pacing route's: one of the host's own, and not that of a route that serves nothing.
pub(super) fn is_paced_by_the_host() -> bool {
    let is_own = property(&["response", "code_details"]).as_deref() == Some(b"direct_response");
    is_own && number(&["response", "code"]) == Some(200)
}

/// Gives the answer that is passing other headers, but for its status.
pub(super) fn replace_answer_head(headers: &[(&'static str, String)]) {
    let mut head = vec![(":status", &b"200"[..])];
    head.extend(
        headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes())),
    );
    if hostcalls::set_map_bytes(MapType::HttpResponseHeaders, head).is_err() {
        log::error!("the head of an answer in pieces could not be written");
    }
}

/// Puts these bytes in the place of the piece that is passing.
pub(super) fn replace_piece(size: usize, bytes: &[u8]) {
    if hostcalls::set_buffer(BufferType::HttpResponseBody, 0, size, bytes).is_err() {
        log::error!("a piece of an answer could not be written");
        reset_stream();
    }
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

/// Lets the paused answer go on. Only for one that is paused: Envoy 1.40 crashes on any other.
pub(super) fn resume_response() {
    if hostcalls::resume_http_response().is_err() {
        log::error!("an answer could not be resumed; it stays paused");
    }
}

/// Milliseconds of a clock that nobody sets: a hold is as long as it says, whatever happens to the time of day.
#[expect(
    clippy::disallowed_methods,
    reason = "the adapter is where the clock is read"
)]
pub(super) fn now_ms() -> u64 {
    thread_local! {
        static START: Instant = Instant::now();
    }
    let since = START.with(Instant::elapsed);
    // Not 0, so that "never" can be told from "at the start".
    u64::try_from(since.as_millis())
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

/// Makes the host's ticker fire after so many milliseconds; `None` stops it.
pub(super) fn set_tick_period(period_ms: Option<u64>) {
    let period = Duration::from_millis(period_ms.unwrap_or_default());
    if hostcalls::set_tick_period(period).is_err() {
        log::error!("the host would not set its ticker; held requests are not woken");
    }
}

/// Makes hostcalls act for a stream; `false` where it has gone.
pub(super) fn act_for(stream: u32) -> bool {
    hostcalls::set_effective_context(stream).is_ok()
}

// The SDK's own entry for ticks, called from a stream's callback: it makes the root the context that calls belong to. The SDK
// gives the answer to a call to the context in whose callback it was sent, and drops it when that has gone.
#[expect(
    unsafe_code,
    reason = "declares a function of the SDK, which is linked in; it takes a number and touches no memory of ours"
)]
unsafe extern "C" {
    safe fn proxy_on_tick(context_id: u32);
}

/// Lets the root context tick now. Not to be called from a callback of the root itself, which the SDK has borrowed then.
pub(super) fn tick_as_root(root_id: u32) {
    proxy_on_tick(root_id);
}

/// The request's headers, as they came.
pub(super) fn request_headers() -> Headers {
    hostcalls::get_map_bytes(MapType::HttpRequestHeaders).unwrap_or_default()
}

/// Takes headers out of the request.
pub(super) fn remove_request_headers(names: &[&str]) {
    for name in names {
        if hostcalls::remove_map_value(MapType::HttpRequestHeaders, name).is_err() {
            log::error!("a header that only the gate may set could not be removed");
        }
    }
}

/// Takes all trailers off the request.
pub(super) fn remove_request_trailers() {
    if hostcalls::set_map(MapType::HttpRequestTrailers, Vec::new()).is_err() {
        log::error!("the trailers of a held request could not be removed");
    }
}

/// What the host knows of the other end of the connection.
pub(super) fn peer() -> Peer {
    Peer {
        address: property(&["source", "address"]),
        uri_san: property(&["connection", "uri_san_peer_certificate"]),
        subject: property(&["connection", "subject_peer_certificate"]),
    }
}

/// The address at which the connection arrived.
pub(super) fn local_address() -> Option<Vec<u8>> {
    property(&["destination", "address"])
}

/// Whether the answer that is passing is the upstream's own.
pub(super) fn upstream_answered() -> bool {
    property(&["response", "code_details"]).as_deref() == Some(b"via_upstream")
}

/// Breaks off the stream that hostcalls act for.
pub(super) fn reset_stream() {
    if hostcalls::reset_http_request().is_err() {
        log::error!("a refused stream could not be reset; it stays paused");
    }
}

/// The `grpc-status` in the trailers of the answer that is passing.
pub(super) fn grpc_status_of_trailers() -> Option<u32> {
    let trailers = hostcalls::get_map_bytes(MapType::HttpResponseTrailers).ok()?;
    grpc_status(&trailers)
}

/// The status, where it stands once and is a number.
fn grpc_status(map: &[(String, Vec<u8>)]) -> Option<u32> {
    let mut found = map.iter().filter(|(name, _)| name == "grpc-status");
    let (_, value) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What the upstream's own answer begins with, and whether its end can be told from a connection that broke off: an answer without
/// a length that is not chunked ends with its connection. `None` where the host or the gate answers.
pub(super) fn answer_of_the_upstream(end_of_stream: bool) -> Option<Event> {
    if !upstream_answered() {
        return None;
    }
    // The whole map: a single value would be a panic of the SDK where the map is gone.
    let headers = hostcalls::get_map_bytes(MapType::HttpResponseHeaders).ok()?;
    let value = |name: &str| headers.iter().find(|(found, _)| found == name);
    let (_, status) = value(":status")?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    let is_delimited =
        end_of_stream || value("content-length").is_some() || value("transfer-encoding").is_some();
    Some(Event::ResponseStarted {
        status,
        grpc_status: grpc_status(&headers),
        is_first_attempt: tried_once(),
        is_delimited,
    })
}

/// Whether the host is sure that it sent the request once. A retry may follow an attempt that did run.
fn tried_once() -> bool {
    number(&["upstream", "request_attempt_count"]).is_some_and(|tries| tries <= 1)
}

fn number(path: &[&str]) -> Option<u64> {
    let bytes: [u8; 8] = property(path)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// Whether the host is sure that no upstream got any of the request: it found no route or no host, or could not connect,
/// and did not try again.
pub(super) fn never_reached_an_upstream() -> bool {
    let flags = number(&["response", "flags"]).unwrap_or_default();
    let tries = number(&["upstream", "request_attempt_count"]);
    let tried_once = tries.is_none_or(|tries| tries <= 1);
    flags & NEVER_REACHED != 0 && flags & MAY_HAVE_REACHED == 0 && tried_once
}

/// No healthy upstream, connection failure, circuit breaker, no route. Source: Envoy's `CoreResponseFlag`, by position.
const NEVER_REACHED: u64 = 1 << 1 | 1 << 5 | 1 << 7 | 1 << 8;
/// Time-out, resets of either side, connection ended: something may have been sent.
const MAY_HAVE_REACHED: u64 = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6;

/// What the metadata of the request's route say: a text as its bytes, anything else as bytes that are no text.
pub(super) fn route_metadata(namespace: &str, key: &str) -> Option<Vec<u8>> {
    let path = vec!["xds", "route_metadata", "filter_metadata", namespace, key];
    match hostcalls::get_property(path) {
        Ok(value) => value.filter(|value| !value.is_empty()),
        // There, and nothing that the host could write down, such as a list.
        Err(_) => Some(vec![0]),
    }
}

fn property(path: &[&str]) -> Option<Vec<u8>> {
    let value = hostcalls::get_property(path.to_vec()).ok().flatten();
    value.filter(|value| !value.is_empty())
}

/// Leaves what was decided where the access log can print it: `%FILTER_STATE(wasm.hoop_outcome:PLAIN)%` and the like.
pub(super) fn note(note: &Note) {
    for (name, value) in [
        ("hoop_outcome", note.outcome),
        ("hoop_rule", &note.rule),
        ("hoop_approval_id", &note.approval_id),
    ] {
        if !value.is_empty() && hostcalls::set_property(vec![name], Some(value.as_bytes())).is_err()
        {
            log::debug!("{name} could not be left for the access log");
        }
    }
}

/// Makes sure that a lease is there to be taken. The host notices that two write at once only where there was a value before.
pub(super) fn offer_lease(key: &str) {
    let (there, _) = hostcalls::get_shared_data(key).unwrap_or((None, None));
    let never = 0_u64.to_le_bytes();
    if there.is_none() && hostcalls::set_shared_data(key, Some(&never), None).is_err() {
        log::debug!("the lease {key} could not be offered");
    }
}

/// Takes a lease in the data that the VMs of a process share; `false` where another has it. It goes by the time of day, since
/// the data outlives a VM and each VM has a clock of its own.
pub(super) fn take_lease(key: &str, length: u64) -> bool {
    let now = time_of_day_ms();
    let (taken, cas) = hostcalls::get_shared_data(key).unwrap_or((None, None));
    let taken = taken.and_then(|bytes| bytes.try_into().ok());
    let taken_at = taken.map(u64::from_le_bytes);
    // A lease from the future was taken before somebody set the clock back.
    if taken_at.is_some_and(|at| (at..at.saturating_add(length)).contains(&now)) {
        return false;
    }
    hostcalls::set_shared_data(key, Some(&now.to_le_bytes()), cas).is_ok()
}

/// Numbers in the data that the VMs of a process share, and the version that a change of them has to name.
pub(super) fn shared_numbers(key: &str) -> (Vec<u64>, Option<u32>) {
    let (bytes, version) = hostcalls::get_shared_data(key).unwrap_or((None, None));
    let bytes = bytes.unwrap_or_default();
    let mut numbers = Vec::new();
    for chunk in bytes.as_chunks().0 {
        numbers.push(u64::from_le_bytes(*chunk));
    }
    (numbers, version)
}

/// Writes them; `false` where somebody else has changed them meanwhile.
pub(super) fn share_numbers(key: &str, numbers: &[u64], version: Option<u32>) -> bool {
    let mut bytes = Vec::new();
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    hostcalls::set_shared_data(key, Some(&bytes), version).is_ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the adapter is where the clock is read"
)]
pub(super) fn time_of_day_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

fn time_of_day_ms() -> u64 {
    time_of_day_ns().checked_div(1_000_000).unwrap_or_default()
}

/// The host's ids of all metrics.
#[derive(Debug)]
pub(super) struct Metrics {
    counters: Vec<(Counter, u32)>,
    waiting: Option<u32>,
}

impl Metrics {
    /// Defines every metric, so that each shows from the start with its zero.
    pub fn define(serves_tools: bool) -> Self {
        let mut counters = Vec::new();
        for counter in Counter::ALL {
            if let Ok(id) = hostcalls::define_metric(MetricType::Counter, counter.name()) {
                counters.push((counter, id));
            }
        }
        let gauge = |name| hostcalls::define_metric(MetricType::Gauge, name).ok();
        let (held, waits) = (gauge(HELD_GAUGE), gauge(MCP_WAITS_GAUGE));
        Self {
            counters,
            waiting: if serves_tools { waits.or(held) } else { held },
        }
    }

    /// Adds one.
    pub fn increment(&self, counter: Counter) {
        let id = self
            .counters
            .iter()
            .find(|(defined, _)| *defined == counter)
            .map(|(_, id)| *id);
        if id.is_none_or(|id| hostcalls::increment_metric(id, 1).is_err()) {
            log::warn!("the counter {} could not be incremented", counter.name());
        }
    }

    /// Moves the gauge of held requests, or of waits, which all VMs share, by what this one's share has changed.
    pub fn change_waiting(&self, from: usize, to: usize) {
        let signed = |count| i64::try_from(count).unwrap_or(i64::MAX);
        let change = signed(to).saturating_sub(signed(from));
        let changed = self
            .waiting
            .map(|id| hostcalls::increment_metric(id, change));
        if changed.is_none_or(|changed| changed.is_err()) {
            log::warn!("the gauge of those that wait could not be changed");
        }
    }
}
