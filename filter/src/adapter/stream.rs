//! One stream: Envoy's callbacks become events, effects become hostcalls.
//!
//! Every request callback pauses until the stream may go on. A pause in the headers callback alone does not hold a
//! request with a body: a later Continue from the body callback would release the headers too.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use super::hostcalls;
use super::root::Shared;
use crate::control_plane::PlaneFault;
use crate::denial::{Denial, Reason};
use crate::effect::Effect;
use crate::event::Event;
use crate::stream::Stream;

/// One HTTP stream.
pub(super) struct StreamAdapter {
    shared: Option<Rc<Shared>>,
    stream: Option<Stream>,
    /// Body bytes already handed to the stream. Envoy's body callbacks tell cumulative sizes while a request is held.
    body_seen: usize,
}

impl StreamAdapter {
    pub const fn new(shared: Option<Rc<Shared>>) -> Self {
        Self {
            shared,
            stream: None,
            body_seen: 0,
        }
    }

    /// Hands an event to the stream, and the outcome of a call that could not be sent right behind it.
    fn handle(&mut self, event: Event) -> Action {
        let (Some(shared), Some(mut stream)) = (self.shared.clone(), self.stream.take()) else {
            return refuse_unready();
        };
        let effects = stream.handle(&shared.listener, event);
        self.settle(&shared, stream, effects)
    }

    fn settle(&mut self, shared: &Rc<Shared>, mut stream: Stream, effects: Vec<Effect>) -> Action {
        let mut pending = effects;
        while carry_out(shared, std::mem::take(&mut pending)) == Sent::Failed {
            pending = stream.handle(
                &shared.listener,
                Event::PlaneAnswered(Err(PlaneFault::Unsent)),
            );
        }
        let action = action_of(&stream);
        self.stream = Some(stream);
        action
    }

    /// The bytes of the body that came since the last callback, no more than the stream still wants.
    fn new_body(&mut self, body_size: usize, end_of_stream: bool) -> Event {
        let room = self.stream.as_ref().map_or(0, Stream::body_room);
        let Some(added) = body_size.checked_sub(self.body_seen) else {
            return Event::RequestBodyUnreadable;
        };
        match hostcalls::request_body(self.body_seen, added.min(room)) {
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
}

impl Context for StreamAdapter {
    fn on_http_call_response(
        &mut self,
        _token: u32,
        _headers: usize,
        body_size: usize,
        _trailers: usize,
    ) {
        self.handle(Event::PlaneAnswered(Ok(hostcalls::plane_answer(body_size))));
    }
}

impl HttpContext for StreamAdapter {
    fn on_http_request_headers(&mut self, _headers: usize, end_of_stream: bool) -> Action {
        let Some(shared) = self.shared.clone() else {
            return refuse_unready();
        };
        let head = hostcalls::request_head(shared.listener.policy.wanted_headers());
        let (stream, effects) = Stream::open(&shared.listener, head, end_of_stream);
        self.settle(&shared, stream, effects)
    }

    fn on_http_request_body(&mut self, body_size: usize, end_of_stream: bool) -> Action {
        if self.stream.as_ref().is_some_and(Stream::may_continue) {
            return Action::Continue;
        }
        let event = self.new_body(body_size, end_of_stream);
        self.handle(event)
    }

    fn on_http_request_trailers(&mut self, _trailers: usize) -> Action {
        self.handle(Event::RequestTrailers)
    }

    /// The last callback of a stream. A stream that was never opened (Envoy refused its request) has nothing to say.
    fn on_log(&mut self) {
        if let (Some(shared), Some(stream)) = (self.shared.clone(), self.stream.as_mut()) {
            let effects = stream.handle(&shared.listener, Event::StreamEnded);
            carry_out(&shared, effects);
        }
    }
}

const fn action_of(stream: &Stream) -> Action {
    if stream.may_continue() {
        Action::Continue
    } else {
        Action::Pause
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

/// Whether the Control Plane call among the effects, if any, went out.
#[derive(PartialEq, Eq)]
enum Sent {
    Failed,
    FineOrNone,
}

fn carry_out(shared: &Shared, effects: Vec<Effect>) -> Sent {
    let mut sent = Sent::FineOrNone;
    for effect in effects {
        match effect {
            Effect::Answer(answer) => hostcalls::answer(&answer),
            Effect::CallPlane(call) => {
                if hostcalls::call_plane(&call).is_err() {
                    sent = Sent::Failed;
                }
            }
            Effect::Count(counter) => shared.counters.increment(counter),
            Effect::Forward(_release) => hostcalls::resume_request(),
            Effect::Log { level, line } => log::log!(level, "{line}"),
        }
    }
    sent
}
