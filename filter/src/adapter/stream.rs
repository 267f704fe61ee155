//! One stream: Envoy's callbacks become events, effects become hostcalls.
//!
//! Every request callback pauses until the stream may go on. A pause in the headers callback alone does not hold a
//! request with a body: a later Continue from the body callback would release the headers too.

use std::cell::RefCell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use super::hostcalls;
use super::vm::{Piece, Vm};
use crate::config::McpConfig;
use crate::denial::{Denial, Reason};
use crate::event::{Event, Pace};
use crate::identity::{Headers, Peer, Surroundings};
use crate::stream::Stream;

/// One HTTP stream.
pub(super) struct StreamAdapter {
    vm: Option<Rc<Vm>>,
    id: u32,
    /// `None` before it is opened, and once nothing more can come of it.
    stream: Option<Rc<RefCell<Stream>>>,
    /// Whether it was let go at its head, as most streams are: nothing about it matters any more.
    passes: bool,
    /// Body bytes already handed to the stream. Envoy's body callbacks tell cumulative sizes while a request is held.
    body_seen: usize,
}

impl StreamAdapter {
    pub const fn new(vm: Option<Rc<Vm>>, id: u32) -> Self {
        Self {
            vm,
            id,
            stream: None,
            passes: false,
            body_seen: 0,
        }
    }

    fn handle(&self, event: Event) -> Action {
        let (Some(vm), Some(stream)) = (&self.vm, &self.stream) else {
            return refuse_unready();
        };
        let Ok(effects) = stream
            .try_borrow_mut()
            .map(|mut stream| stream.handle(&vm.listener, event))
        else {
            return refuse_unready();
        };
        vm.carry_out_in_callback(self.id, effects);
        self.action()
    }

    fn action(&self) -> Action {
        if self.asks(Stream::may_continue) {
            Action::Continue
        } else {
            Action::Pause
        }
    }

    fn asks(&self, question: impl Fn(&Stream) -> bool) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(|stream| stream.try_borrow().is_ok_and(|stream| question(&stream)))
    }

    /// The bytes of the body that came since the last callback, no more than the stream still wants.
    fn new_body(&mut self, body_size: usize, end_of_stream: bool) -> Event {
        let stream = self.stream.as_ref();
        let room = stream.and_then(|stream| Some(stream.try_borrow().ok()?.body_room()));
        // What passes is handed over piece by piece, what is kept back grows.
        let seen = if self.asks(Stream::may_continue) {
            0
        } else {
            self.body_seen
        };
        let Some(added) = body_size.checked_sub(seen) else {
            return Event::RequestBodyUnreadable;
        };
        match hostcalls::request_body(seen, added.min(room.unwrap_or_default())) {
            Some(chunk) => {
                self.body_seen = body_size;
                Event::RequestBody {
                    chunk,
                    end_of_stream,
                }
            }
            None => Event::RequestBodyUnreadable,
        }
    }

    /// Puts what the stream has to say in the place of what the host paces.
    fn send_piece(&self, body_size: usize) -> Action {
        let now_ms = hostcalls::now_ms();
        self.handle(Event::Paced(Pace::Piece { now_ms }));
        let piece = self.vm.as_ref().and_then(|vm| vm.take_piece());
        let Some(Piece { bytes, holds_back }) = piece else {
            return self.action();
        };
        hostcalls::replace_piece(body_size, &bytes);
        if holds_back {
            Action::Pause
        } else {
            Action::Continue
        }
    }

    fn answer_goes_on(&self, has_body: bool) {
        if self.asks(Stream::awaits_upstream) {
            self.handle(Event::ResponseGoesOn { has_body });
        }
    }

    fn ended_response(&self, end_of_stream: bool, grpc_status: impl Fn() -> Option<u32>) {
        if end_of_stream && self.asks(Stream::awaits_upstream) && hostcalls::upstream_answered() {
            let grpc_status = grpc_status();
            self.handle(Event::ResponseEnded { grpc_status });
        }
    }
}

impl Context for StreamAdapter {}

impl HttpContext for StreamAdapter {
    fn on_http_request_headers(&mut self, _headers: usize, end_of_stream: bool) -> Action {
        let Some(vm) = self.vm.clone() else {
            return refuse_unready();
        };
        if matches!(vm.listener.mcp, McpConfig::Served(_)) {
            hostcalls::remove_request_headers(&[hostcalls::PACE_HEADER]);
        }
        let head = hostcalls::request_head(vm.listener.policy.wanted_headers());
        // A host chooses the route anew once a header is changed, and this call would be judged by another one than it takes. Where
        // that matters, the host's own configuration takes them off.
        if let Ok(head) = &head
            && !vm.listener.policy.looks_at_route()
        {
            hostcalls::remove_request_headers(&head.not_for_upstream);
        }
        let (stream, effects) = Stream::open(&vm.listener, head, end_of_stream, &OfTheHost);
        self.passes = stream.passes();
        if self.passes {
            vm.carry_out_in_callback(self.id, effects);
            return Action::Continue;
        }
        self.stream = Some(vm.add(self.id, stream));
        vm.carry_out_in_callback(self.id, effects);
        self.action()
    }

    fn on_http_request_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        if self.passes || (self.asks(Stream::may_continue) && !self.asks(Stream::wants_body)) {
            return Action::Continue;
        }
        let event = self.new_body(body_size, end_of_stream);
        self.handle(event)
    }

    fn on_http_request_trailers(&mut self, _trailers: usize) -> Action {
        if self.passes || (self.asks(Stream::may_continue) && !self.asks(Stream::wants_body)) {
            return Action::Continue;
        }
        self.handle(Event::RequestTrailers)
    }

    /// The gate's own replies come by here as well, and those of Envoy; neither is the upstream's answer.
    fn on_http_response_headers(&mut self, _headers: usize, end_of_stream: bool) -> Action {
        if self.asks(Stream::is_paced) {
            let is_paced = !end_of_stream && hostcalls::is_paced_by_the_host();
            self.handle(Event::Paced(Pace::Head { is_paced }));
            return self.action();
        }
        if self.asks(Stream::awaits_upstream)
            && let Some(started) = hostcalls::answer_of_the_upstream(end_of_stream)
        {
            self.handle(started);
            self.ended_response(end_of_stream, || None);
            if !end_of_stream && self.asks(Stream::holds_answer) {
                return Action::Pause;
            }
        }
        self.answer_goes_on(false);
        Action::Continue
    }

    /// What the upstream says lets go a head that was kept back, too.
    fn on_http_response_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        if self.asks(Stream::is_paced) {
            return self.send_piece(body_size);
        }
        self.answer_goes_on(body_size > 0);
        self.ended_response(end_of_stream, || None);
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _trailers: usize) -> Action {
        self.answer_goes_on(false);
        self.ended_response(true, hostcalls::grpc_status_of_trailers);
        Action::Continue
    }

    /// The last callback of a stream. A stream that was never opened (Envoy refused its request) has nothing to say.
    fn on_log(&mut self) {
        let (Some(vm), Some(_)) = (self.vm.clone(), &self.stream) else {
            return;
        };
        let never_reached =
            self.asks(Stream::awaits_upstream) && hostcalls::never_reached_an_upstream();
        self.handle(Event::StreamEnded { never_reached });
        // What the stream counts for stays counted until the host drops it: it may still have to send to a slow client.
        vm.forget(self.id);
    }
}

impl StreamAdapter {
    fn forget(&mut self) {
        if let (Some(vm), Some(_)) = (&self.vm, self.stream.take()) {
            vm.forget(self.id);
        }
    }
}

impl Drop for StreamAdapter {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Asks the host about the stream that hostcalls act for.
#[derive(Debug)]
struct OfTheHost;

impl Surroundings for OfTheHost {
    fn headers(&self) -> Headers {
        hostcalls::request_headers()
    }

    fn peer(&self) -> Peer {
        hostcalls::peer()
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        hostcalls::local_address()
    }

    fn moment_ns(&self) -> u64 {
        hostcalls::time_of_day_ns()
    }

    fn route_metadata(&self, namespace: &str, key: &str) -> Option<Vec<u8>> {
        hostcalls::route_metadata(namespace, key)
    }
}

/// A callback on a stream or VM that was never set up: nothing can judge it, so it is refused.
fn refuse_unready() -> Action {
    log::error!(
        "decision=refused reason=internal why=\"a callback came before the stream was opened\""
    );
    hostcalls::answer(&Denial::by_policy(Reason::Internal).to_http());
    Action::Pause
}
