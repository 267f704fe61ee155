//! Answers that do not come from the upstream. They pass the filter's own response callbacks, as in Envoy.

use super::filter_chain::add_response_headers;
use super::{UpstreamFailure, Worker, flags};
use crate::HeaderMap;
use crate::abi::Direction;
use crate::output::Output;
use crate::stream::{LocalReply, Protocol, StreamId};

impl Worker {
    /// Answers a stream. Once a part of another answer has left, all that can be done is to break it off.
    pub(super) fn reply(&mut self, id: StreamId, reply: LocalReply) {
        let Some(stream) = self.live(id) else {
            return;
        };
        stream.flags |= reply.flag;
        if stream.response.headers_continued {
            let details = reply
                .details
                .replace("_before_response_", "_after_response_");
            stream.details = Some(details);
            self.send(Output::ResetDownstream(id));
            self.finish(id);
            return;
        }
        let upstream_is_busy = stream.request.headers_continued && !stream.answered_locally;
        let bypass_filter = stream.response.headers.is_some();
        stream.details = Some(reply.details.clone());
        stream.code = Some(reply.status.into());
        stream.answered_locally = true;
        stream.route_deadline = None;
        stream.request_deadline = None;
        let (headers, body) = reply.render(stream.grpc, stream.head);
        // Envoy also ends a connection on which it has found a request bad.
        let unfit = !stream.request.complete || reply.status == 400;
        stream.closes_connection = unfit && stream.info.protocol != Protocol::Http2;
        if upstream_is_busy {
            self.send(Output::ResetUpstream(id));
        }
        let end_stream = body.is_empty();
        if bypass_filter {
            self.send_directly(id, headers, body);
            return;
        }
        self.receive_headers(id, Direction::Response, headers, end_stream);
        if !end_stream {
            self.begin_body(id, body.into());
        }
    }

    /// An answer in place of an upstream's that the filter is looking at: it does not pass the filter again.
    fn send_directly(&mut self, id: StreamId, mut headers: HeaderMap, body: Vec<u8>) {
        let date = self.host.clock().http_date();
        let Some(stream) = self.live(id) else {
            return;
        };
        add_response_headers(&mut headers, &date, stream.closes_connection);
        stream.code = headers
            .text(":status")
            .and_then(|status| status.parse().ok());
        let response = &mut stream.response;
        response.headers = Some(headers.clone());
        response.headers_continued = true;
        response.complete = true;
        response.sent_complete = true;
        response.buffer = None;
        response.trailers = None;
        let end_stream = body.is_empty();
        self.send(Output::Headers {
            stream: id,
            direction: Direction::Response,
            headers,
            end_stream,
        });
        if !end_stream {
            self.send(Output::Data {
                stream: id,
                direction: Direction::Response,
                data: body.into(),
                end_stream: true,
            });
        }
        self.finish(id);
    }

    /// The answer of a filter whose VM has failed.
    pub(super) fn fail_stream(&mut self, id: StreamId) {
        let Some(stream) = self.live(id) else {
            return;
        };
        if stream.failed {
            return;
        }
        stream.failed = true;
        let mut reply = LocalReply::of_envoy(503, "", "wasm_fail_stream");
        reply.grpc_status = Some(14);
        self.reply(id, reply);
    }

    /// Answers where a paused body has outgrown its limit.
    pub(super) fn check_limit(&mut self, id: StreamId, direction: Direction) {
        if let Some(reply) = self.limit_reply(id, direction) {
            self.reply(id, reply);
        }
    }

    /// The answer to a paused body that has outgrown its limit; `None` where it has not, or where the sender waits instead.
    pub(super) fn limit_reply(&mut self, id: StreamId, direction: Direction) -> Option<LocalReply> {
        let stream = self.live(id)?;
        let limit = stream.limits.buffer_limit_bytes;
        let half = stream.half(direction);
        let waiting = half.buffer.as_ref().map_or(0, Vec::len);
        let too_large = !half.watermarked && waiting > limit;
        too_large.then(|| match direction {
            Direction::Request => {
                LocalReply::of_envoy(413, "Payload Too Large", "request_payload_too_large")
            }
            Direction::Response => {
                LocalReply::of_envoy(500, "Internal Server Error", "response_payload_too_large")
            }
        })
    }
}

/// What is answered where the filter has made something of the headers that cannot be sent; `None` where they are well.
/// Source: `HeaderUtility::checkRequiredRequestHeaders` and its siblings in Envoy's `source/common/http/header_utility.cc`.
pub(super) fn to_broken_headers(direction: Direction, headers: &HeaderMap) -> Option<LocalReply> {
    if direction == Direction::Response {
        let status = headers
            .text(":status")
            .and_then(|status| status.parse::<u32>().ok());
        let missing = || LocalReply::of_envoy(502, "missing required header: :status", "");
        return status.is_none().then(missing);
    }
    let connect = headers.first(":method") == Some(b"CONNECT".as_slice());
    if !connect
        && !headers
            .first(":path")
            .is_some_and(|path| path.starts_with(b"/"))
    {
        return Some(LocalReply::of_envoy(404, "", "route_not_found"));
    }
    let problem = if headers.contains(":method") {
        let broken = headers
            .iter()
            .find_map(|(name, value)| problem_of(name, value));
        broken?
    } else {
        "missing required header: :method".to_owned()
    };
    let details = problem.replace(' ', "_");
    let details = format!("filter_removed_required_request_headers{{{details}}}");
    Some(LocalReply::of_envoy(503, &problem, &details))
}

fn problem_of(name: &[u8], value: &[u8]) -> Option<String> {
    let shown = String::from_utf8_lossy(name);
    let bare = name.strip_prefix(b":").unwrap_or(name);
    if !bare
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
    {
        return Some(format!("invalid header name: {shown}"));
    }
    let clean = |byte: &u8| !matches!(byte, b'\r' | b'\n' | 0);
    (!value.iter().all(clean)).then(|| format!("invalid header value for: {shown}"))
}

/// Source: `Filter::onUpstreamAbort` and its callers in Envoy's `source/common/router/router.cc`.
pub(super) fn of_upstream_failure(failure: &UpstreamFailure) -> LocalReply {
    let (reason, transport, flag) = match failure {
        UpstreamFailure::ConnectionFailed { reason } => (
            "remote connection failure",
            Some(reason),
            flags::UPSTREAM_CONNECTION_FAILURE,
        ),
        UpstreamFailure::ConnectionTimedOut => (
            "connection timeout",
            None,
            flags::UPSTREAM_CONNECTION_FAILURE,
        ),
        UpstreamFailure::Disconnected => (
            "connection termination",
            None,
            flags::UPSTREAM_CONNECTION_TERMINATION,
        ),
        UpstreamFailure::ProtocolError => ("protocol error", None, flags::UPSTREAM_PROTOCOL_ERROR),
        UpstreamFailure::Reset => ("remote reset", None, flags::UPSTREAM_REMOTE_RESET),
    };
    // The client is told less than the log.
    let body = format!(
        "upstream connect error or disconnect/reset before headers. reset reason: {reason}"
    );
    let mut details = reason.replace(' ', "_");
    if let Some(transport) = transport {
        details.push('|');
        details.push_str(&transport.replace(' ', "_"));
    }
    let details = format!("upstream_reset_before_response_started{{{details}}}");
    let status = match failure {
        UpstreamFailure::ProtocolError => 502,
        UpstreamFailure::ConnectionFailed { .. }
        | UpstreamFailure::ConnectionTimedOut
        | UpstreamFailure::Disconnected
        | UpstreamFailure::Reset => 503,
    };
    LocalReply::of_envoy(status, &body, &details).flagged(flag)
}
