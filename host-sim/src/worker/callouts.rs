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
            CalloutOutcome::Unreachable { status, body } => error_answer(status, &body),
            CalloutOutcome::Reset => return self.deliver_reset(id),
        };
        self.deliver_http(id, headers, body, trailers);
    }

    /// The headers of an answer have come. Should the rest be late, the guest sees an answer without headers instead of 504.
    pub fn callout_answering(&mut self, id: CalloutId) {
        let callouts = &mut self.vm.state_mut().callouts;
        if id.vm == callouts.vm
            && let Some(waiting) = callouts.get_mut(id.token)
        {
            waiting.answering = true;
        }
    }

    /// The answer of a callout that has run out of time.
    pub(super) fn callout_timed_out(&mut self, id: CalloutId) {
        let (headers, body, trailers) = error_answer(504, "upstream request timeout");
        self.send(crate::output::Output::CalloutCancelled(id));
        let waiting = self.vm.state().callouts.get(id.token);
        if waiting.is_some_and(|waiting| waiting.answering) {
            return self.deliver_reset(id);
        }
        self.deliver_http(id, headers, body, trailers);
    }

    fn deliver_http(
        &mut self,
        id: CalloutId,
        headers: HeaderMap,
        body: Bytes,
        trailers: HeaderMap,
    ) {
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let sizes = (size(headers.len()), size(body.len()), size(trailers.len()));
        let delivery = Delivery {
            http_headers: Some(headers),
            http_body: Some(body),
            http_trailers: Some(trailers),
            ..Delivery::default()
        };
        self.deliver(id, delivery, sizes);
    }

    /// An answer of which nothing can be read.
    fn deliver_reset(&mut self, id: CalloutId) {
        let delivery = Delivery {
            status_message: "reset".to_owned(),
            ..Delivery::default()
        };
        self.vm.state_mut().status = RESET_STATUS;
        self.deliver(id, delivery, (0, 0, 0));
    }

    fn deliver(
        &mut self,
        id: CalloutId,
        delivery: Delivery,
        (headers, body, trailers): (u32, u32, u32),
    ) {
        let state = self.vm.state_mut();
        if id.vm != state.callouts.vm || id.token & 3 != 0 {
            return;
        }
        let Some(waiting) = state.callouts.remove(id.token) else {
            return;
        };
        state.delivery = delivery;
        let arguments = (waiting.root, id.token, headers, body, trailers);
        let called = self.vm.call(
            |exports| &exports.on_http_call_response,
            waiting.root,
            arguments,
        );
        self.vm.state_mut().delivery = Delivery::default();
        self.after(called);
    }

    /// Hands over what came back on a gRPC callout. Of a call with one message, the guest sees the answer's message when its status
    /// is 0, and otherwise the status.
    pub fn grpc_event(&mut self, id: CalloutId, event: GrpcEvent) {
        let state = self.vm.state_mut();
        if id.vm != state.callouts.vm {
            return;
        }
        let Some(waiting) = state.callouts.get_mut(id.token) else {
            return;
        };
        let root = waiting.root;
        let event = match &mut waiting.kind {
            Kind::Http => return,
            Kind::GrpcStream { .. } => event,
            Kind::GrpcCall { message } => match event {
                GrpcEvent::InitialMetadata(_) | GrpcEvent::TrailingMetadata(_) => return,
                GrpcEvent::Message(received) => {
                    message.get_or_insert(received);
                    return;
                }
                GrpcEvent::Closed { status: 0, .. } => match message.take() {
                    Some(message) => GrpcEvent::Message(message),
                    None => GrpcEvent::Closed {
                        status: GRPC_INTERNAL,
                        message: String::new(),
                    },
                },
                GrpcEvent::Closed { .. } => event,
            },
        };
        let over = id.token & 3 == 1 || matches!(event, GrpcEvent::Closed { .. });
        self.deliver_grpc(root, id.token, event);
        if over {
            self.grpc_closed(id.token);
        }
    }

    fn deliver_grpc(&mut self, root: u32, token: u32, event: GrpcEvent) {
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let state = self.vm.state_mut();
        let called = match event {
            GrpcEvent::InitialMetadata(metadata) => {
                let arguments = (root, token, size(metadata.len()));
                state.delivery.grpc_initial_metadata = Some(metadata);
                self.vm.call(
                    |exports| &exports.on_grpc_receive_initial_metadata,
                    root,
                    arguments,
                )
            }
            GrpcEvent::Message(message) => {
                let arguments = (root, token, size(message.len()));
                state.delivery.grpc_message = Some(message.into());
                self.vm
                    .call(|exports| &exports.on_grpc_receive, root, arguments)
            }
            GrpcEvent::TrailingMetadata(metadata) => {
                let arguments = (root, token, size(metadata.len()));
                state.delivery.grpc_trailing_metadata = Some(metadata);
                self.vm.call(
                    |exports| &exports.on_grpc_receive_trailing_metadata,
                    root,
                    arguments,
                )
            }
            GrpcEvent::Closed { status, message } => {
                state.status = status;
                state.delivery.status_message = message;
                self.vm.call(
                    |exports| &exports.on_grpc_close,
                    root,
                    (root, token, status),
                )
            }
        };
        self.vm.state_mut().delivery = Delivery::default();
        self.after(called);
    }

    /// A callout that could not be made: the guest was told by the hostcall, and is told again.
    pub(super) fn grpc_failed(&mut self, token: u32) {
        let id = self.vm.state().callouts.id(token);
        self.grpc_event(id, unavailable(String::new()));
        self.vm.state_mut().callouts.remove(token);
    }

    /// A gRPC callout has run out of time.
    pub(super) fn grpc_timed_out(&mut self, token: u32) {
        let id = self.vm.state().callouts.id(token);
        self.send(crate::output::Output::CalloutCancelled(id));
        self.grpc_event(
            id,
            unavailable("upstream request timeout{response_timeout}".to_owned()),
        );
        self.vm.state_mut().callouts.remove(token);
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

fn unavailable(message: String) -> GrpcEvent {
    GrpcEvent::Closed {
        status: GRPC_UNAVAILABLE,
        message,
    }
}

/// How Envoy's own client answers a callout that reached nobody.
fn error_answer(status: u16, body: &str) -> (HeaderMap, Bytes, HeaderMap) {
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

const GRPC_INTERNAL: u32 = 13;
const GRPC_UNAVAILABLE: u32 = 14;
