//! The gate for one request: decide by its head; where a rule holds it, collect it whole, file it, and forward it only
//! on the Control Plane's release.
//!
//! Nothing of a held request reaches the upstream before that: the driver keeps headers, body and trailers back until
//! it is told to [`Effect::Forward`]. A wrong release runs a call that nobody approved; a wrong refusal costs a resend.

mod collect;
mod record;

use crate::approval_request::{self, Filed, Outcome};
use crate::control_plane::PlaneFault;
use crate::denial::{Denial, Reason};
use crate::effect::Effect;
use crate::event::Event;
use crate::listener::Listener;
use crate::metrics::Counter;
use crate::policy::{Doubt, Hold, NoMetadata, Subject, Verdict};
use crate::request::RequestHead;
use crate::statement::{Statement, redacted_target};
use collect::{Collected, Collecting};
use record::Gone;

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
    state: State,
}

#[derive(Debug)]
enum State {
    Collecting(Collecting),
    Filed(Filed),
    Decided,
}

/// The rule that holds the request.
#[derive(Debug)]
pub(crate) struct HeldBy {
    pub rule_name: String,
    pub approval_rule: String,
    pub message: String,
}

impl HeldBy {
    fn new(hold: &Hold<'_>, approval_rule: &str) -> Self {
        Self {
            rule_name: hold.rule_name.to_owned(),
            approval_rule: approval_rule.to_owned(),
            message: hold.message.to_owned(),
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
    ) -> (Opening, Vec<Effect>) {
        let subject = Subject {
            head,
            body: end_of_stream.then_some(b""),
            route: &NoMetadata,
        };
        let hold = match listener.policy.decide(&subject) {
            Verdict::Pass => return (Opening::Pass, vec![Effect::Count(Counter::Passed)]),
            Verdict::Ambiguous { rule, doubt } => {
                return refused(listener, &rule.name, &Denial::by_policy(reason_of(doubt)));
            }
            Verdict::NeedsBody { rule } => {
                return refused(
                    listener,
                    &rule.name,
                    &Denial::by_policy(Reason::AmbiguousBody),
                );
            }
            Verdict::Deny { rule, message } => {
                return refused(
                    listener,
                    &rule.name,
                    &Denial::new(message.to_owned(), Reason::DenyRule),
                );
            }
            Verdict::RequireApproval(hold) => hold,
        };
        let Some(approval_rule) = hold.approval_rule.as_deref() else {
            return refused(
                listener,
                hold.rule_name,
                &Denial::new(hold.message.to_owned(), Reason::NoApprovalRule),
            );
        };
        let held_by = HeldBy::new(&hold, approval_rule);
        let refuse = |reason| {
            refused(
                listener,
                &held_by.rule_name,
                &Denial::new(held_by.message.clone(), reason),
            )
        };
        if head.leaves_http {
            return refuse(Reason::Upgrade);
        }
        let Some(target) = head.target.as_deref() else {
            return refuse(Reason::Malformed);
        };
        let Ok(target) = redacted_target(
            target,
            &listener.sensitive_names,
            listener.redaction_key.as_ref(),
        ) else {
            return refuse(Reason::RedactionKeyMissing);
        };
        let collecting = Collecting::new(head.method.clone(), target, listener.max_body_bytes);
        let mut gate = Self {
            held_by,
            state: State::Decided,
        };
        let effects = gate.collected(listener, collecting.opened(end_of_stream));
        (Opening::Held(Box::new(gate)), effects)
    }

    /// How many more body bytes are worth handing over; beyond them the request is refused anyway.
    #[must_use]
    pub fn body_room(&self) -> usize {
        match &self.state {
            State::Collecting(collecting) => collecting.room(),
            State::Filed(_) | State::Decided => 0,
        }
    }

    /// Takes what happened.
    pub fn handle(&mut self, listener: &Listener, event: Event) -> Vec<Effect> {
        match (std::mem::replace(&mut self.state, State::Decided), event) {
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
                self.finish(listener, filed.answered(answer))
            }
            (State::Decided, _) => Vec::new(),
            (State::Collecting(collecting), Event::StreamEnded) => self.abandoned(
                listener,
                if collecting.saw_body() {
                    Gone::WhileSending
                } else {
                    Gone::BeforeBody
                },
            ),
            (State::Filed(_), Event::StreamEnded) => self.abandoned(listener, Gone::WhileAsking),
            (State::Collecting(_) | State::Filed(_), Event::RequestBodyUnreadable)
            | (State::Collecting(_), Event::PlaneAnswered(_))
            | (State::Filed(_), Event::RequestBody { .. } | Event::RequestTrailers) => {
                self.refuse(listener, Reason::Internal, None)
            }
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
        let (filed, call) = approval_request::file(
            plane,
            &listener.name,
            &self.held_by.approval_rule,
            statement,
        );
        self.state = State::Filed(filed);
        vec![Effect::Count(Counter::PlaneCalls), Effect::CallPlane(call)]
    }

    fn finish(&self, listener: &Listener, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Released(release) => vec![
                Effect::Count(Counter::Released),
                record::released(listener, &self.held_by, release.id()),
                Effect::Forward(release),
            ],
            Outcome::Held { id, status, is_new } => {
                let mut effects = self.refuse(listener, Reason::Approval { id, status }, None);
                effects.extend(is_new.then_some(Effect::Count(Counter::Filed)));
                effects
            }
            Outcome::Failed(fault) => self.refuse(listener, Reason::NotFiled, Some(&fault)),
        }
    }

    fn abandoned(&self, listener: &Listener, gone: Gone) -> Vec<Effect> {
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

const fn reason_of(doubt: Doubt) -> Reason {
    match doubt {
        Doubt::Body => Reason::AmbiguousBody,
        Doubt::PathOrHost => Reason::AmbiguousPath,
        Doubt::Query => Reason::AmbiguousQuery,
    }
}

fn refused(listener: &Listener, rule_name: &str, denial: &Denial) -> (Opening, Vec<Effect>) {
    (Opening::Refused, refusal(listener, rule_name, denial, None))
}

/// Counter, log line and answer of a refusal.
fn refusal(
    listener: &Listener,
    rule_name: &str,
    denial: &Denial,
    fault: Option<&PlaneFault>,
) -> Vec<Effect> {
    let mut effects = vec![Effect::Count(denial.counter())];
    effects.extend(fault.map(|_| Effect::Count(Counter::PlaneFailures)));
    effects.push(record::refused(listener, rule_name, denial, fault));
    effects.push(Effect::Answer(denial.to_http()));
    effects
}

#[cfg(test)]
mod tests;
