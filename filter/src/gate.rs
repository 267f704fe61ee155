//! The gate for one request: judge it by its head, or with its body where a rule looks into that; where a rule holds it,
//! collect it whole, file it, and forward it only on the Control Plane's release.
//!
//! Nothing of a held request reaches the upstream before that: the driver keeps headers, body and trailers back until
//! it is told to [`Effect::Forward`]. A wrong release runs a call that nobody approved; a wrong refusal costs a resend.

mod collect;
mod grpc_call;
mod grpc_messages;
mod judge;
mod record;
mod upstream_answer;

use crate::approval::{ApprovalId, SpendOn};
use crate::approval_request::{self, Filed, Outcome};
use crate::config::Streaming;
use crate::control_plane::{
    ControlPlane, FilingRequest, PendingSettlement, PlaneFault, Release, Settlement,
};
use crate::denial::{Denial, Form, Reason};
use crate::effect::Effect;
use crate::event::{Event, News};
use crate::identity::{Correlation, Requester, Surroundings};
use crate::limits;
use crate::listener::{Enforcement, Listener};
use crate::metrics::Counter;
use crate::request::RequestHead;
use crate::request::mode::Mode;
use crate::statement::Statement;
use collect::{Body, Collected};
use grpc_call::{Messages, form_of};
use grpc_messages::MessageGate;
use judge::{HeldBy, Judgement, Shown, judge};
use record::Gone;
use upstream_answer::UpstreamAnswer;

/// What the gate makes of a request's head.
#[derive(Debug)]
pub enum Opening {
    /// Nothing stands against it.
    Pass,
    /// It is in the gate's hands: feed the machine until it has decided.
    Held(Box<Gate>),
    /// It was refused; the answer is among the effects.
    Refused,
}

/// A request in the gate's hands.
#[derive(Debug)]
pub struct Gate {
    held_by: HeldBy,
    form: Form,
    /// How long a client of gRPC waits, in milliseconds, as far as it says so.
    deadline_ms: Option<u64>,
    surroundings: &'static dyn Surroundings,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Kept back until its body is whole.
    Collecting(Purpose, Body),
    Filed(Filed),
    /// Held until its approval is decided.
    Waiting(ApprovalId),
    /// A gRPC call whose messages are held one by one.
    Messages(Box<MessageGate>),
    /// Gone on already, and looked at as it passes: the listener only observes.
    Observing(Box<RequestHead>, Body),
    /// Gone on, and its approval is not spent yet.
    Unsettled(ApprovalId, PendingSettlement, UpstreamAnswer),
    /// Gone on for good.
    Forwarded,
    Refused,
}

/// What a body is collected for.
#[derive(Debug)]
enum Purpose {
    File(Shown),
    Judge(Box<RequestHead>),
}

impl Gate {
    /// Judges a request by its head; with `end_of_stream` there is no body to wait for. The effects that
    /// come with the opening are to be carried out.
    #[must_use]
    pub fn open(
        listener: &Listener,
        head: &RequestHead,
        end_of_stream: bool,
        surroundings: &'static dyn Surroundings,
    ) -> (Opening, Vec<Effect>) {
        let observes = listener.enforcement == Enforcement::Observe;
        let form = form_of(head);
        let no_body: Option<&[u8]> = end_of_stream.then_some(b"");
        match judge(listener, head, no_body, surroundings) {
            Judgement::Pass => (Opening::Pass, vec![Effect::Count(Counter::Passed)]),
            Judgement::NeedsBody { rule_name } => {
                let body = Body::new(listener.max_body_bytes);
                let head = Box::new(head.clone());
                let state = if observes {
                    State::Observing(head, body)
                } else {
                    State::Collecting(Purpose::Judge(head), body)
                };
                let gate = Self {
                    held_by: HeldBy::by_a_look_into_the_body(rule_name),
                    form,
                    deadline_ms: None,
                    surroundings,
                    state,
                };
                (Opening::Held(Box::new(gate)), Vec::new())
            }
            judgement @ (Judgement::Hold(..) | Judgement::Refuse { .. }) if observes => {
                (Opening::Pass, observed(listener, &judgement))
            }
            Judgement::Hold(held_by, shown) => {
                let mut gate = Self {
                    held_by,
                    form,
                    deadline_ms: None,
                    surroundings,
                    state: State::Refused,
                };
                let shown = match shown {
                    Shown::Grpc(call)
                        if call.messages != Messages::One
                            && listener.grpc.streaming == Streaming::PerMessage =>
                    {
                        let effects = gate.open_messages(listener, call, end_of_stream);
                        return (Opening::Held(Box::new(gate)), effects);
                    }
                    Shown::Grpc(call) if call.messages == Messages::Many => {
                        let denial = Denial::new(gate.held_by.message, Reason::StreamingDenied);
                        let effects =
                            refusal(listener, &gate.held_by.rule_name, &denial, form, None);
                        return (Opening::Refused, effects);
                    }
                    shown @ (Shown::Grpc(_) | Shown::Http(_)) => shown,
                };
                let body = Body::new(listener.max_body_bytes);
                let collected = if end_of_stream {
                    body.ended()
                } else {
                    Collected::More(body)
                };
                let effects = gate.collected(listener, Purpose::File(shown), collected);
                (Opening::Held(Box::new(gate)), effects)
            }
            Judgement::Refuse { rule_name, denial } => (
                Opening::Refused,
                refusal(listener, &rule_name, &denial, form, None),
            ),
        }
    }

    /// Whether the request may go on to the upstream.
    #[must_use]
    pub fn may_continue(&self) -> bool {
        match &self.state {
            State::Forwarded | State::Observing(..) | State::Unsettled(..) => true,
            State::Messages(messages) => messages.may_continue(),
            State::Collecting(..) | State::Filed(_) | State::Waiting(_) | State::Refused => false,
        }
    }

    const fn is_filed(&self) -> bool {
        matches!(self.state, State::Filed(_))
    }

    /// Whether what the upstream answers still matters.
    #[must_use]
    pub const fn awaits_upstream(&self) -> bool {
        matches!(self.state, State::Unsettled(..) | State::Messages(_))
    }

    /// Whether the head of the upstream's answer is kept back.
    #[must_use]
    pub const fn holds_answer(&self) -> bool {
        match &self.state {
            State::Messages(messages) => messages.holds_answer(),
            State::Collecting(..)
            | State::Filed(_)
            | State::Forwarded
            | State::Observing(..)
            | State::Refused
            | State::Unsettled(..)
            | State::Waiting(_) => false,
        }
    }

    /// How many more body bytes are worth handing over; beyond them the request is refused anyway.
    #[must_use]
    pub fn body_room(&self) -> usize {
        match &self.state {
            State::Collecting(_, body) | State::Observing(_, body) => body.room(),
            State::Messages(messages) => messages.room(),
            State::Filed(_)
            | State::Waiting(_)
            | State::Unsettled(..)
            | State::Forwarded
            | State::Refused => 0,
        }
    }

    /// Takes what happened.
    pub fn handle(&mut self, listener: &Listener, event: Event) -> Vec<Effect> {
        match (std::mem::replace(&mut self.state, State::Refused), event) {
            (
                State::Collecting(purpose, body),
                Event::RequestBody {
                    chunk,
                    end_of_stream,
                },
            ) => self.collected(listener, purpose, body.add(&chunk, end_of_stream)),
            (State::Collecting(purpose, body), Event::RequestTrailers) => {
                let mut effects = self.collected(listener, purpose, body.ended());
                if self.is_filed() {
                    effects.push(Effect::RemoveRequestTrailers);
                }
                effects
            }
            (State::Observing(head, body), event) => self.observe(listener, head, body, event),
            (State::Filed(filed), Event::PlaneAnswered(answer)) => {
                self.answered(listener, filed.answered(answer))
            }
            (State::Waiting(id), Event::Watched(news)) => self.told(listener, id, news),
            (State::Messages(messages), event) => self.handle_messages(listener, messages, event),
            (State::Unsettled(id, pending, mut answer), event) => match answer.handle(&event) {
                Some(settlement) => self.settled(listener, id, pending, settlement),
                None => {
                    self.state = State::Unsettled(id, pending, answer);
                    Vec::new()
                }
            },
            (State::Forwarded, _) => {
                self.state = State::Forwarded;
                Vec::new()
            }
            (State::Refused, _) => Vec::new(),
            (State::Collecting(_, body), Event::StreamEnded { .. }) => self.abandoned(
                listener,
                if body.was_seen() {
                    Gone::WhileSending
                } else {
                    Gone::BeforeBody
                },
            ),
            (State::Filed(_), Event::StreamEnded { .. }) => {
                self.abandoned(listener, Gone::WhileAsking)
            }
            (State::Waiting(id), Event::StreamEnded { .. }) => {
                self.abandoned(listener, Gone::WhileWaiting(&id))
            }
            (
                state @ (State::Collecting(..) | State::Filed(_) | State::Waiting(_)),
                Event::Paced(_)
                | Event::ResponseStarted { .. }
                | Event::ResponseEnded { .. }
                | Event::ResponseGoesOn { .. },
            ) => {
                // The host answers by itself, for a time-out or a body over its own limit; the end of the stream follows.
                self.state = state;
                Vec::new()
            }
            (State::Collecting(..) | State::Filed(_), Event::Watched(_))
            | (
                State::Collecting(..) | State::Filed(_) | State::Waiting(_),
                Event::RequestBodyUnreadable,
            )
            | (State::Collecting(..) | State::Waiting(_), Event::PlaneAnswered(_))
            | (
                State::Filed(_) | State::Waiting(_),
                Event::RequestBody { .. } | Event::RequestTrailers,
            ) => self.refuse(listener, Reason::Internal, None),
        }
    }

    fn collected(
        &mut self,
        listener: &Listener,
        purpose: Purpose,
        collected: Collected,
    ) -> Vec<Effect> {
        match (collected, purpose) {
            (Collected::More(body), purpose) => {
                self.state = State::Collecting(purpose, body);
                Vec::new()
            }
            (Collected::TooLarge, _) => self.refuse(listener, Reason::BodyTooLarge, None),
            (Collected::Whole(body), Purpose::File(shown)) => self.file(listener, &shown, &body),
            (Collected::Whole(body), Purpose::Judge(head)) => {
                match judge(listener, &head, Some(&body), self.surroundings) {
                    Judgement::Pass => {
                        self.state = State::Forwarded;
                        vec![Effect::Count(Counter::Passed)]
                    }
                    Judgement::Hold(held_by, shown) => {
                        self.held_by = held_by;
                        self.file(listener, &shown, &body)
                    }
                    Judgement::Refuse { rule_name, denial } => {
                        refusal(listener, &rule_name, &denial, self.form, None)
                    }
                    Judgement::NeedsBody { .. } => self.refuse(listener, Reason::Internal, None),
                }
            }
        }
    }

    /// Looks at a body that goes on at once. What would have happened is counted and logged.
    fn observe(
        &mut self,
        listener: &Listener,
        head: Box<RequestHead>,
        body: Body,
        event: Event,
    ) -> Vec<Effect> {
        let collected = match event {
            Event::RequestBody {
                chunk,
                end_of_stream,
            } => body.add(&chunk, end_of_stream),
            Event::RequestTrailers => body.ended(),
            Event::Paced(_)
            | Event::PlaneAnswered(_)
            | Event::RequestBodyUnreadable
            | Event::ResponseEnded { .. }
            | Event::ResponseGoesOn { .. }
            | Event::ResponseStarted { .. }
            | Event::StreamEnded { .. }
            | Event::Watched(_) => Collected::More(body),
        };
        self.state = State::Forwarded;
        match collected {
            Collected::More(body) => {
                self.state = State::Observing(head, body);
                Vec::new()
            }
            Collected::TooLarge => {
                let denial = Denial::new(self.held_by.message.clone(), Reason::BodyTooLarge);
                let rule_name = self.held_by.rule_name.clone();
                observed(listener, &Judgement::Refuse { rule_name, denial })
            }
            Collected::Whole(body) => {
                let judgement = judge(listener, &head, Some(&body), self.surroundings);
                observed(listener, &judgement)
            }
        }
    }

    fn file(&mut self, listener: &Listener, shown: &Shown, body: &[u8]) -> Vec<Effect> {
        if let Shown::Grpc(call) = shown {
            self.deadline_ms = call.deadline_ms;
        }
        let Some(plane) = &listener.control_plane else {
            return self.refuse(listener, Reason::NotFiled, None);
        };
        let statement = match shown.statement(body) {
            Ok(statement) => statement,
            Err(reason) => return self.refuse(listener, reason, None),
        };
        let (filed, effects) = self.filing(listener, plane, &statement, plane.spend_on());
        self.state = State::Filed(filed);
        effects
    }

    /// The call that files a statement, and the state that takes its answer.
    fn filing(
        &self,
        listener: &Listener,
        plane: &ControlPlane,
        statement: &Statement,
        spend_on: SpendOn,
    ) -> (Filed, Vec<Effect>) {
        let headers = self.surroundings.headers();
        let peer = self.surroundings.peer();
        let requester = Requester::find(&listener.identity, &headers, &peer);
        let filing = FilingRequest {
            listener_name: &listener.name,
            approval_rule: &self.held_by.approval_rule,
            statement,
            requester: requester.as_ref(),
            correlation: &Correlation::of(&headers),
            spend_on,
        };
        let (filed, call) = approval_request::file(plane, &filing, self.held_by.mode);
        let effects = vec![Effect::Count(Counter::PlaneCalls), Effect::CallPlane(call)];
        (filed, effects)
    }

    fn answered(&mut self, listener: &Listener, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Released(release) => self.forward(listener, release),
            Outcome::Held { id, status, is_new } => {
                let mut effects = self.refuse(listener, Reason::Approval { id, status }, None);
                effects.extend(is_new.then_some(Effect::Count(Counter::Filed)));
                effects
            }
            Outcome::Waiting { id, is_new } => {
                self.state = State::Waiting(id.clone());
                let mut effects = vec![Effect::Watch {
                    id,
                    budget_ms: self.budget_ms(listener),
                    settles_later: false,
                }];
                effects.extend(is_new.then_some(Effect::Count(Counter::Filed)));
                effects
            }
            Outcome::Failed(fault) => self.refuse(listener, why_not_filed(&fault), Some(&fault)),
        }
    }

    /// How long the request is held, in milliseconds: no longer than its client waits, less some time for the answer.
    fn budget_ms(&self, listener: &Listener) -> u64 {
        let margin = |deadline: u64| {
            deadline
                .checked_div(10)
                .unwrap_or_default()
                .min(limits::DEADLINE_MARGIN_MS)
        };
        let deadline = self
            .deadline_ms
            .map(|deadline| deadline.saturating_sub(margin(deadline)));
        deadline.map_or(listener.hold_timeout_ms, |deadline| {
            deadline.min(listener.hold_timeout_ms)
        })
    }

    fn told(&mut self, listener: &Listener, id: ApprovalId, news: News) -> Vec<Effect> {
        match self.release_of(listener, id, news) {
            Ok(release) => self.forward(listener, release),
            Err(reason) => self.refuse(listener, reason, None),
        }
    }

    /// The release that somebody waited for, or why there is none.
    fn release_of(
        &self,
        listener: &Listener,
        id: ApprovalId,
        news: News,
    ) -> Result<Release, Reason> {
        Err(match news {
            // A release of another approval is for another statement.
            News::Released(release) if *release.id() == id => return Ok(release),
            News::Read { .. } | News::Released(_) => Reason::Internal,
            News::NotChecked => Reason::NotChecked { id },
            News::Stands(status) => Reason::Approval {
                id: Some((&id).into()),
                status,
            },
            News::TimeOver => Reason::HoldTimeout {
                id,
                budget_ms: self.budget_ms(listener),
            },
        })
    }

    fn forward(&mut self, listener: &Listener, release: Release) -> Vec<Effect> {
        self.state = match release.pending() {
            Some(pending) => State::Unsettled(
                release.id().clone(),
                pending.clone(),
                UpstreamAnswer::new(self.form),
            ),
            None => State::Forwarded,
        };
        let mut effects = vec![Effect::Count(Counter::Released)];
        effects.extend(record::released(listener, &self.held_by, release.id()));
        effects.push(Effect::Forward(release));
        effects
    }

    fn settled(
        &mut self,
        listener: &Listener,
        id: ApprovalId,
        pending: PendingSettlement,
        settlement: Settlement,
    ) -> Vec<Effect> {
        self.state = State::Forwarded;
        self.settling(listener, id, pending, settlement)
    }

    /// Tells how a release ended.
    fn settling(
        &self,
        listener: &Listener,
        id: ApprovalId,
        pending: PendingSettlement,
        settlement: Settlement,
    ) -> Vec<Effect> {
        let mut effects = vec![record::settled(listener, &self.held_by, &id, settlement)];
        effects.extend(
            (settlement == Settlement::Returned).then_some(Effect::Count(Counter::Returned)),
        );
        effects.push(Effect::Settle {
            id,
            pending,
            settlement,
        });
        effects
    }

    fn abandoned(&self, listener: &Listener, gone: Gone<'_>) -> Vec<Effect> {
        vec![
            Effect::Count(Counter::Abandoned),
            record::abandoned(listener, &self.held_by, gone),
        ]
    }

    fn refuse(
        &self,
        listener: &Listener,
        reason: Reason,
        fault: Option<&PlaneFault>,
    ) -> Vec<Effect> {
        let denial =
            Denial::new(self.held_by.message.clone(), reason).with_tools(listener.names_the_tool());
        refusal(listener, &self.held_by.rule_name, &denial, self.form, fault)
    }
}

impl HeldBy {
    /// Stands for a rule that may turn out not to hold the request at all.
    fn by_a_look_into_the_body(rule_name: String) -> Self {
        Self {
            rule_name,
            approval_rule: String::new(),
            message: "denied by policy".to_owned(),
            mode: Mode::Return,
        }
    }
}

/// Counts and logs what would have happened; the request passes.
fn observed(listener: &Listener, judgement: &Judgement) -> Vec<Effect> {
    let (counter, rule_name, outcome) = match judgement {
        Judgement::Hold(held_by, _) => (Counter::ObservedHold, &held_by.rule_name, "hold"),
        Judgement::Refuse { rule_name, denial } => {
            (Counter::ObservedRefusal, rule_name, denial.label())
        }
        Judgement::NeedsBody { .. } | Judgement::Pass => {
            return vec![Effect::Count(Counter::Passed)];
        }
    };
    let mut effects = vec![Effect::Count(counter)];
    effects.extend(record::observed(listener, rule_name, outcome));
    effects
}

/// Counter, log line, note and answer of a refusal.
fn refusal(
    listener: &Listener,
    rule_name: &str,
    denial: &Denial,
    form: Form,
    fault: Option<&PlaneFault>,
) -> Vec<Effect> {
    let mut effects = told_refusal(listener, rule_name, denial, fault);
    effects.push(Effect::Answer(denial.to_answer(form)));
    effects
}

/// Counter, log line and note of a refusal.
fn told_refusal(
    listener: &Listener,
    rule_name: &str,
    denial: &Denial,
    fault: Option<&PlaneFault>,
) -> Vec<Effect> {
    let mut effects = vec![Effect::Count(denial.counter())];
    let failures = fault.map(|fault| Counter::of_failure(fault.kind()));
    effects.extend(failures.into_iter().flatten().map(Effect::Count));
    effects.extend(record::refused(listener, rule_name, denial, fault));
    effects
}

fn why_not_filed(fault: &PlaneFault) -> Reason {
    if fault.says_too_many_wait() {
        Reason::TooManyWaiting
    } else {
        Reason::NotFiled
    }
}

#[cfg(test)]
mod tests;
