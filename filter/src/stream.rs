//! One stream from its request headers to its end: picks the machine that judges it, or lets it pass. Has no rule of
//! its own beyond that choice.
//!
//! Order for a driver: carry out the effects of every call in the order given, and then ask [`Stream::may_continue`].

use crate::approval_request;
use crate::config::McpConfig;
use crate::denial::{Denial, Reason};
use crate::effect::Effect;
use crate::event::{Event, News};
use crate::gate::{Gate, Opening};
use crate::identity::Surroundings;
use crate::listener::{Enforcement, Listener};
use crate::mcp::endpoint::{self, Endpoint};
use crate::metrics::Counter;
use crate::request::{HeadFault, RequestHead};
use crate::reserved_path::{self, Claim, StatusRead};

/// A stream.
#[derive(Debug)]
pub struct Stream {
    machine: Machine,
}

#[derive(Debug)]
enum Machine {
    /// Refused or answered: nothing that still comes matters, and nothing goes on.
    Ended,
    /// Served the approval tools.
    Endpoint(Box<Endpoint>),
    /// In the hands of the gate.
    Gate(Box<Gate>),
    /// Free to go.
    Passing,
    /// Under the reserved path.
    StatusRead(StatusRead),
}

impl Stream {
    /// Opens a stream with its request's head.
    #[must_use]
    pub fn open(
        listener: &Listener,
        head: Result<RequestHead, HeadFault>,
        end_of_stream: bool,
        surroundings: &'static dyn Surroundings,
    ) -> (Self, Vec<Effect>) {
        let head = match head {
            Ok(head) => head,
            Err(fault) => return Self::ended(malformed(listener, fault)),
        };
        // Nothing is forwarded here and nothing filed, so the whole of the listener is the endpoint's.
        if let McpConfig::Served(served) = &listener.mcp {
            let (endpoint, effects) =
                endpoint::open(listener, served, &head, end_of_stream, surroundings);
            let machine = endpoint.map_or(Machine::Ended, |endpoint| {
                Machine::Endpoint(Box::new(endpoint))
            });
            return (Self { machine }, effects);
        }
        match reserved_path::claim(&head) {
            Claim::Ours(rest) => {
                let (read, effects) =
                    reserved_path::open(listener, &head.method, &rest, surroundings);
                (
                    Self {
                        machine: read.map_or(Machine::Ended, Machine::StatusRead),
                    },
                    effects,
                )
            }
            // What an observing listener cannot read it lets pass like the rest; its policy says what it would have done.
            Claim::Disguised if listener.enforcement == Enforcement::Enforce => {
                Self::ended(reserved_path::disguised())
            }
            Claim::Disguised => {
                Self::through_the_gate(listener, &head, end_of_stream, surroundings)
            }
            Claim::NotOurs => Self::through_the_gate(listener, &head, end_of_stream, surroundings),
        }
    }

    fn through_the_gate(
        listener: &Listener,
        head: &RequestHead,
        end_of_stream: bool,
        surroundings: &'static dyn Surroundings,
    ) -> (Self, Vec<Effect>) {
        let (opening, effects) = Gate::open(listener, head, end_of_stream, surroundings);
        let machine = match opening {
            Opening::Pass => Machine::Passing,
            Opening::Held(gate) => Machine::Gate(gate),
            Opening::Refused => Machine::Ended,
        };
        let mut stream = Self { machine };
        stream.settle(&effects);
        (stream, effects)
    }

    fn ended(effects: Vec<Effect>) -> (Self, Vec<Effect>) {
        (
            Self {
                machine: Machine::Ended,
            },
            effects,
        )
    }

    /// Whether the request may go on to the upstream. While it may not, the driver pauses in every callback.
    #[must_use]
    pub fn may_continue(&self) -> bool {
        match &self.machine {
            Machine::Endpoint(endpoint) => endpoint.may_continue(),
            Machine::Gate(gate) => gate.may_continue(),
            Machine::Passing => true,
            Machine::Ended | Machine::StatusRead(_) => false,
        }
    }

    /// Whether it was let go for good: no event can have an effect any more.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self.machine, Machine::Passing)
    }

    /// Whether what the upstream answers still matters; otherwise a driver need not tell of it.
    #[must_use]
    pub const fn awaits_upstream(&self) -> bool {
        match &self.machine {
            Machine::Gate(gate) => gate.awaits_upstream(),
            Machine::Ended | Machine::Endpoint(_) | Machine::Passing | Machine::StatusRead(_) => {
                false
            }
        }
    }

    /// Whether its answer is sent piece by piece: the driver tells of the answer's head and of each piece that the host asks for.
    #[must_use]
    pub const fn is_paced(&self) -> bool {
        match &self.machine {
            Machine::Endpoint(endpoint) => endpoint.is_paced(),
            Machine::Ended | Machine::Gate(_) | Machine::Passing | Machine::StatusRead(_) => false,
        }
    }

    /// Whether the head of the upstream's answer, once told of, is to be kept back until [`Effect::ForwardAnswer`] or until more of the
    /// answer comes.
    #[must_use]
    pub const fn holds_answer(&self) -> bool {
        match &self.machine {
            Machine::Gate(gate) => gate.holds_answer(),
            Machine::Ended | Machine::Endpoint(_) | Machine::Passing | Machine::StatusRead(_) => {
                false
            }
        }
    }

    /// How many more body bytes the stream wants to see; a driver need not hand over more.
    #[must_use]
    pub fn body_room(&self) -> usize {
        match &self.machine {
            Machine::Endpoint(endpoint) => endpoint.body_room(),
            Machine::Gate(gate) => gate.body_room(),
            Machine::Ended | Machine::Passing | Machine::StatusRead(_) => 0,
        }
    }

    /// Whether the stream still looks at the request's body, be it only as it passes.
    #[must_use]
    pub fn wants_body(&self) -> bool {
        self.body_room() > 0
    }

    /// Takes what happened. After the decision no event has an effect on the request; a release that comes too late is
    /// accounted for.
    pub fn handle(&mut self, listener: &Listener, event: Event) -> Vec<Effect> {
        let effects = match std::mem::replace(&mut self.machine, Machine::Ended) {
            Machine::Ended => match event {
                Event::PlaneAnswered(answer) => approval_request::answered_nobody(answer),
                Event::Watched(News::Released(release)) => {
                    approval_request::released_for_nobody(&release)
                }
                Event::RequestBody { .. }
                | Event::RequestBodyUnreadable
                | Event::RequestTrailers
                | Event::Paced(_)
                | Event::ResponseEnded { .. }
                | Event::ResponseGoesOn { .. }
                | Event::ResponseStarted { .. }
                | Event::StreamEnded { .. }
                | Event::Watched(
                    News::NotChecked | News::Read { .. } | News::Stands(_) | News::TimeOver,
                ) => Vec::new(),
            },
            Machine::Endpoint(endpoint) => {
                let (endpoint, effects) = endpoint.handle(listener, event);
                self.machine = endpoint.map_or(Machine::Ended, |endpoint| {
                    Machine::Endpoint(Box::new(endpoint))
                });
                effects
            }
            Machine::Gate(mut gate) => {
                let effects = gate.handle(listener, event);
                self.machine = Machine::Gate(gate);
                effects
            }
            Machine::Passing => {
                self.machine = Machine::Passing;
                Vec::new()
            }
            Machine::StatusRead(read) => match read.handle(listener, event) {
                Ok(effects) => effects,
                Err(read) => {
                    self.machine = Machine::StatusRead(read);
                    Vec::new()
                }
            },
        };
        self.settle(&effects);
        effects
    }

    /// An answer or a reset ends the stream.
    fn settle(&mut self, effects: &[Effect]) {
        if effects
            .iter()
            .any(|effect| matches!(effect, Effect::Answer(_) | Effect::Reset))
        {
            self.machine = Machine::Ended;
        }
    }
}

/// A head that cannot be read is refused under any policy: the gate cannot tell which rule it would meet, and the
/// upstream could read it otherwise.
fn malformed(listener: &Listener, fault: HeadFault) -> Vec<Effect> {
    let line = format!(
        "decision=refused listener={:?} reason=malformed why={:?}",
        listener.name,
        fault.to_string()
    );
    vec![
        Effect::Count(Counter::RefusedMalformed),
        Effect::Log {
            level: log::Level::Info,
            line,
        },
        Effect::Answer(Denial::by_policy(Reason::Malformed).to_http()),
    ]
}
