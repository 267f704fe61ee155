//! Answers to callouts, on their way to the root context.

use bytes::Bytes;

use super::Worker;
use crate::callout::{CalloutId, CalloutOutcome, Delivery, GrpcEvent, Kind};
use crate::header_map::HeaderMap;

impl Worker {
    /// Hands over what became of an HTTP callout. One that has run out of time, or whose VM has failed, is dropped.
    pub fn callout_answered(&mut self, id: CalloutId, outcome: CalloutOutcome) {
        let (headers, body, trailers) = match outcome {
            CalloutOutcome::Answered {
                headers,
                body,
                trailers,
            } => (headers, body, trailers),
            CalloutOutcome::Unreachable { body } => error_answer(503, &body),
            CalloutOutcome::Reset => {
                let state = self.vm.state_mut();
                state.delivery.status = (RESET_STATUS, "reset".to_owned());
                (HeaderMap::new(), Bytes::new(), HeaderMap::new())
            }
        };
        self.deliver_http(id, headers, body, trailers);
    }

    /// The answer of a callout that has run out of time.
    pub(super) fn callout_timed_out(&mut self, id: CalloutId) {
        let (headers, body, trailers) = error_answer(504, "upstream request timeout");
        self.send(crate::output::Output::CalloutCancelled(id));
        self.deliver_http(id, headers, body, trailers);
    }

    fn deliver_http(
        &mut self,
        id: CalloutId,
        headers: HeaderMap,
        body: Bytes,
        trailers: HeaderMap,
    ) {
        let state = self.vm.state_mut();
        if id.vm != state.callouts.vm || id.token & 3 != 0 {
            return;
        }
        let Some(waiting) = state.callouts.remove(id.token) else {
            return;
        };
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let arguments = (
            waiting.root,
            id.token,
            size(headers.len()),
            size(body.len()),
            size(trailers.len()),
        );
        state.delivery.http_headers = Some(headers);
        state.delivery.http_body = Some(body);
        state.delivery.http_trailers = Some(trailers);
        let called = self.vm.call(
            |exports| &exports.on_http_call_response,
            waiting.root,
            arguments,
        );
        self.vm.state_mut().delivery = Delivery::default();
        self.after(called);
    }

    /// Hands over what came back on a gRPC callout.
    pub fn grpc_event(&mut self, id: CalloutId, event: GrpcEvent) {
        let state = self.vm.state_mut();
        if id.vm != state.callouts.vm {
            return;
        }
        let Some(waiting) = state.callouts.get(id.token).cloned() else {
            return;
        };
        let (root, token) = (waiting.root, id.token);
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let called = match event {
            GrpcEvent::InitialMetadata(metadata) => {
                let count = size(metadata.len());
                state.delivery.grpc_initial_metadata = Some(metadata);
                self.vm.call(
                    |exports| &exports.on_grpc_receive_initial_metadata,
                    root,
                    (root, token, count),
                )
            }
            GrpcEvent::Message(message) => {
                let length = size(message.len());
                state.delivery.grpc_message = Some(message.into());
                let called = self.vm.call(
                    |exports| &exports.on_grpc_receive,
                    root,
                    (root, token, length),
                );
                if waiting.kind == Kind::GrpcCall {
                    self.vm.state_mut().callouts.remove(token);
                }
                called
            }
            GrpcEvent::TrailingMetadata(metadata) => {
                let count = size(metadata.len());
                state.delivery.grpc_trailing_metadata = Some(metadata);
                self.vm.call(
                    |exports| &exports.on_grpc_receive_trailing_metadata,
                    root,
                    (root, token, count),
                )
            }
            GrpcEvent::Closed { status, message } => {
                state.delivery.status = (status, message);
                let called = self.vm.call(
                    |exports| &exports.on_grpc_close,
                    root,
                    (root, token, status),
                );
                self.grpc_closed(token);
                called
            }
        };
        self.vm.state_mut().delivery = Delivery::default();
        self.after(called);
    }

    /// A stream whose other side is still open stays until the guest closes it too.
    fn grpc_closed(&mut self, token: u32) {
        let callouts = &mut self.vm.state_mut().callouts;
        if let Some(waiting) = callouts.get_mut(token)
            && let Kind::GrpcStream {
                local_closed: false,
                remote_closed,
            } = &mut waiting.kind
        {
            *remote_closed = true;
            return;
        }
        callouts.remove(token);
    }
}

/// How Envoy's own client answers a callout that reached nobody.
fn error_answer(status: u32, body: &str) -> (HeaderMap, Bytes, HeaderMap) {
    let headers = HeaderMap::new()
        .with(":status", status.to_string())
        .with("content-length", body.len().to_string())
        .with("content-type", "text/plain");
    (
        headers,
        Bytes::copy_from_slice(body.as_bytes()),
        HeaderMap::new(),
    )
}

/// What `proxy_get_status` tells of a callout without an answer. Source: `Context::onHttpCallFailure`.
const RESET_STATUS: u32 = 11;
