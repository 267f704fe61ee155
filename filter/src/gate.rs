//! The gate for one request: decide by its head; where a rule holds it, collect it whole, file it, and forward it only
//! on the Control Plane's release.
//!
//! Nothing of a held request reaches the upstream before that: the driver keeps headers, body and trailers back until
//! it is told to [`Effect::Forward`]. A wrong release runs a call that nobody approved; a wrong refusal costs a resend.

mod collect;
mod record;
mod upstream_answer;

use crate::approval::ApprovalId;
use crate::approval_request::{self, Filed, Outcome};
use crate::control_plane::{FilingRequest, PendingSettlement, PlaneFault, Release, Settlement};
use crate::denial::{Denial, Reason};
use crate::effect::Effect;
use crate::event::{Event, News};
use crate::identity::{Correlation, Requester, Surroundings};
use crate::listener::{Enforcement, Listener};
use crate::metrics::Counter;
use crate::policy::{Hold, Verdict};
use crate::request::RequestHead;
use crate::request::mode::Mode;
use crate::statement::{Statement, redacted_target};
use collect::{Collected, Collecting};
use record::Gone;
use upstream_answer::UpstreamAnswer;

/// What the gate makes of a request's head.
#[derive(Debug)]
pub enum Opening {
    /// Nothing stands against it.
    Pass,
    /// It is held: feed the machine until it has decided.
    Held(Box<Gate>),
    /// It was refused; the answer is among the effects.
    Refused,
}

/// A held request.
#[derive(Debug)]
pub struct Gate {
    held_by: HeldBy,
    requester: Option<Requester>,
    correlation: Correlation,
    state: State,
}

#[derive(Debug)]
enum State {
    Collecting(Collecting),
    Filed(Filed),
    /// Held until its approval is decided.
    Waiting(ApprovalId),
    /// Gone on, and its approval is not spent yet.
    Unsettled(ApprovalId, PendingSettlement, UpstreamAnswer),
    /// Gone on for good.
    Forwarded,
    Refused,
}

/// The rule that holds the request.
#[derive(Debug)]
pub(crate) struct HeldBy {
    pub rule_name: String,
    pub approval_rule: String,
    pub message: String,
    pub mode: Mode,
}

impl HeldBy {
    /// A client may choose how it waits, not whether.
    fn new(hold: Hold<'_>, head: &RequestHead) -> Self {
        Self {
            rule_name: hold.rule_name.to_owned(),
            approval_rule: hold.approval_rule.to_owned(),
            message: hold.message.to_owned(),
            mode: head.wish.mode().unwrap_or(hold.mode),
        }
    }
}

impl Gate {
    /// Judges a request by its head; with `end_of_stream` there is no body to wait for. The effects that
    /// come with the opening are to be carried out.
    #[must_use]
    pub fn open(
        listener: &Listener,
        head: &RequestHead,
        end_of_stream: bool,
        surroundings: &dyn Surroundings,
    ) -> (Opening, Vec<Effect>) {
        let (rule_name, judged) = match listener.policy.decide(head) {
            Verdict::Pass => return (Opening::Pass, vec![Effect::Count(Counter::Passed)]),
            Verdict::Ambiguous(rule) => (
                rule.name.clone(),
                Err(Denial::by_policy(Reason::AmbiguousPath)),
            ),
            Verdict::Deny { rule, message } => (
                rule.name.clone(),
                Err(Denial::new(message.to_owned(), Reason::DenyRule)),
            ),
            Verdict::RequireApproval(hold) => {
                let held_by = HeldBy::new(hold, head);
                let judged = collecting(listener, head)
                    .map_err(|reason| Denial::new(held_by.message.clone(), reason));
                (
                    held_by.rule_name.clone(),
                    judged.map(|collecting| (held_by, collecting)),
                )
            }
        };
        if listener.enforcement == Enforcement::Observe {
            let denial = judged.as_ref().err();
            return (Opening::Pass, observed(listener, &rule_name, denial));
        }
        match judged {
            Ok((held_by, collecting)) => {
                let mut gate = Self {
                    held_by,
                    requester: Requester::find(&listener.identity, surroundings),
                    correlation: Correlation::of(surroundings),
                    state: State::Refused,
                };
                let effects = gate.collected(listener, collecting.opened(end_of_stream));
                (Opening::Held(Box::new(gate)), effects)
            }
            Err(denial) => (
                Opening::Refused,
                refusal(listener, &rule_name, &denial, None),
            ),
        }
    }

    /// Whether the request may go on to the upstream.
    #[must_use]
    pub const fn may_continue(&self) -> bool {
        matches!(self.state, State::Forwarded | State::Unsettled(..))
    }

    /// Whether what the upstream answers still matters.
    #[must_use]
    pub const fn awaits_upstream(&self) -> bool {
        matches!(self.state, State::Unsettled(..))
    }

    /// How many more body bytes are worth handing over; beyond them the request is refused anyway.
    #[must_use]
    pub fn body_room(&self) -> usize {
        match &self.state {
            State::Collecting(collecting) => collecting.room(),
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
                State::Collecting(collecting),
                Event::RequestBody {
                    chunk,
                    end_of_stream,
                },
            ) => self.collected(listener, collecting.body(&chunk, end_of_stream)),
            (State::Collecting(collecting), Event::RequestTrailers) => {
                self.collected(listener, collecting.ended())
            }
            (State::Filed(filed), Event::PlaneAnswered(answer)) => {
                self.answered(listener, filed.answered(answer))
            }
            (State::Waiting(id), Event::Watched(news)) => self.told(listener, id, news),
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
            (State::Collecting(collecting), Event::StreamEnded { .. }) => self.abandoned(
                listener,
                if collecting.saw_body() {
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
                state @ (State::Collecting(_) | State::Filed(_) | State::Waiting(_)),
                Event::ResponseStarted { .. } | Event::ResponseEnded,
            ) => {
                // The host answers by itself, for a time-out or a body over its own limit; the end of the stream follows.
                self.state = state;
                Vec::new()
            }
            (State::Collecting(_) | State::Filed(_), Event::Watched(_))
            | (
                State::Collecting(_) | State::Filed(_) | State::Waiting(_),
                Event::RequestBodyUnreadable,
            )
            | (State::Collecting(_) | State::Waiting(_), Event::PlaneAnswered(_))
            | (
                State::Filed(_) | State::Waiting(_),
                Event::RequestBody { .. } | Event::RequestTrailers,
            ) => self.refuse(listener, Reason::Internal, None),
        }
    }

    fn collected(&mut self, listener: &Listener, collected: Collected) -> Vec<Effect> {
        match collected {
            Collected::More(collecting) => {
                self.state = State::Collecting(collecting);
                Vec::new()
            }
            Collected::TooLarge => self.refuse(listener, Reason::BodyTooLarge, None),
            Collected::Whole(statement) => self.file(listener, &statement),
        }
    }

    fn file(&mut self, listener: &Listener, statement: &Statement) -> Vec<Effect> {
        let Some(plane) = &listener.control_plane else {
            return self.refuse(listener, Reason::NotFiled, None);
        };
        let filing = FilingRequest {
            listener_name: &listener.name,
            approval_rule: &self.held_by.approval_rule,
            statement,
            requester: self.requester.as_ref(),
            correlation: &self.correlation,
        };
        let (filed, call) = approval_request::file(plane, &filing, self.held_by.mode);
        self.state = State::Filed(filed);
        vec![Effect::Count(Counter::PlaneCalls), Effect::CallPlane(call)]
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
                    budget_ms: listener.hold_timeout_ms,
                }];
                effects.extend(is_new.then_some(Effect::Count(Counter::Filed)));
                effects
            }
            Outcome::Failed(fault) => self.refuse(listener, Reason::NotFiled, Some(&fault)),
        }
    }

    fn told(&mut self, listener: &Listener, id: ApprovalId, news: News) -> Vec<Effect> {
        let reason = match news {
            // A release of another approval is for another statement.
            News::Released(release) if *release.id() == id => {
                return self.forward(listener, release);
            }
            News::Released(_) => Reason::Internal,
            News::NotChecked => Reason::NotChecked { id },
            News::Stands(status) => Reason::Approval {
                id: Some((&id).into()),
                status,
            },
            News::TimeOver => Reason::HoldTimeout {
                id,
                budget_ms: listener.hold_timeout_ms,
            },
        };
        self.refuse(listener, reason, None)
    }

    fn forward(&mut self, listener: &Listener, release: Release) -> Vec<Effect> {
        self.state = match release.pending() {
            Some(pending) => State::Unsettled(
                release.id().clone(),
                pending.clone(),
                UpstreamAnswer::default(),
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
        let denial = Denial::new(self.held_by.message.clone(), reason);
        refusal(listener, &self.held_by.rule_name, &denial, fault)
    }
}

/// Begins to collect a request that a rule holds, unless its head alone forbids it.
fn collecting(listener: &Listener, head: &RequestHead) -> Result<Collecting, Reason> {
    if head.leaves_http {
        return Err(Reason::Upgrade);
    }
    let target = head.target.as_deref().ok_or(Reason::Malformed)?;
    let target = redacted_target(
        target,
        &listener.sensitive_names,
        listener.redaction_key.as_ref(),
    );
    let target = target.map_err(|_missing| Reason::RedactionKeyMissing)?;
    Ok(Collecting::new(
        head.method.clone(),
        target,
        listener.max_body_bytes,
    ))
}

/// Counts and logs what would have happened; the request passes.
fn observed(listener: &Listener, rule_name: &str, denial: Option<&Denial>) -> Vec<Effect> {
    let (counter, outcome) = match denial {
        Some(denial) => (Counter::ObservedRefusal, denial.label()),
        None => (Counter::ObservedHold, "hold"),
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
    fault: Option<&PlaneFault>,
) -> Vec<Effect> {
    let mut effects = vec![Effect::Count(denial.counter())];
    let failures = fault.map(|fault| Counter::of_failure(fault.kind()));
    effects.extend(failures.into_iter().flatten().map(Effect::Count));
    effects.extend(record::refused(listener, rule_name, denial, fault));
    effects.push(Effect::Answer(denial.to_http()));
    effects
}

#[cfg(test)]
mod tests;
