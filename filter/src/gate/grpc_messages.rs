//! gRPC calls in which the client may send more than one message: each message is a statement of its own, kept back until it is
//! released, in their order. Source: contract 2.2, design 4.
//!
//! What the host keeps back goes on as a whole, so that messages that came together go on together, once the last of them is
//! released. If one of them is refused, none goes on, and the approvals of the others are given back; that is why each is filed as
//! one that is spent later, whatever the listener says.

use std::collections::VecDeque;

use super::grpc_call::{GrpcCall, Messages, why_frame};
use super::record::{self, Gone};
use super::upstream_answer::UpstreamAnswer;
use super::{Gate, State, told_refusal, why_not_filed};
use crate::approval::{ApprovalId, SpendOn};
use crate::approval_request::{Filed, Outcome, released_for_nobody};
use crate::control_plane::{PendingSettlement, PlaneFault, Release, Settlement};
use crate::denial::{Denial, Form, Reason};
use crate::effect::Effect;
use crate::event::Event;
use crate::grpc::{Deframer, Frame};
use crate::limits;
use crate::listener::{KeptShare, Listener};
use crate::metrics::Counter;

/// A gRPC call whose messages are held one by one.
#[derive(Debug)]
pub(super) struct MessageGate {
    call: Box<GrpcCall>,
    deframer: Deframer,
    /// Whole messages that are not released, in order; the first is being decided. `None` stands for a call without any.
    queue: VecDeque<Option<Frame>>,
    deciding: Option<Deciding>,
    /// Released, and kept back until those are that came with them.
    released: Vec<Release>,
    /// Gone on, and their approvals are not spent yet.
    unsettled: Vec<(ApprovalId, PendingSettlement)>,
    /// What those in the queue take of the VM's memory.
    kept: KeptShare,
    /// Digests of the statements whose approvals are released and not spent. The plane has one live row for a statement, so that an
    /// equal message would wait for an approval that is in use.
    in_flight: Vec<[u8; 32]>,
    /// Bytes that the host keeps back.
    held_bytes: usize,
    /// Whether the request's head may go on.
    is_open: bool,
    has_had_a_message: bool,
    /// Whether a message has gone on.
    has_gone_on: bool,
    /// The head of the answer came and is kept back: servers send one as soon as they are called, and no reply could follow it.
    has_held_answer: bool,
    /// Whether a part of the answer has gone on.
    is_answered: bool,
    answer: UpstreamAnswer,
}

/// How far the first message of the queue is.
#[derive(Debug)]
enum Deciding {
    Filed(Filed),
    Waiting(ApprovalId),
}

impl MessageGate {
    fn new(call: Box<GrpcCall>, kept: KeptShare) -> Self {
        Self {
            kept,
            in_flight: Vec::new(),
            deframer: call.deframer(),
            queue: VecDeque::new(),
            deciding: None,
            released: Vec::new(),
            unsettled: Vec::new(),
            held_bytes: 0,
            // A server may be the first to speak, where the client streams. Without a descriptor it could be a unary call, of which
            // nothing goes on.
            is_open: call.messages == Messages::Many,
            has_had_a_message: false,
            has_gone_on: false,
            has_held_answer: false,
            is_answered: false,
            answer: UpstreamAnswer::new(Form::Grpc),
            call,
        }
    }

    /// Whether what came so far may go on.
    pub fn may_continue(&self) -> bool {
        self.is_open
            && self.queue.is_empty()
            && self.released.is_empty()
            && self.is_between_messages()
    }

    /// Whether the head of the answer is kept back.
    pub const fn holds_answer(&self) -> bool {
        self.has_held_answer
    }

    /// How many more bytes are worth handing over.
    pub const fn room(&self) -> usize {
        limits::GRPC_HELD_BYTES
            .saturating_sub(self.held_bytes)
            .saturating_add(1)
    }

    fn is_between_messages(&self) -> bool {
        self.deframer.end().is_ok()
    }

    /// Takes bytes of the request.
    fn take(&mut self, chunk: &[u8], end_of_stream: bool) -> Result<(), Reason> {
        if chunk.len() >= self.room() {
            return Err(Reason::MessageTooLarge);
        }
        self.held_bytes = self.held_bytes.saturating_add(chunk.len());
        let mut rest = chunk;
        while let Some(frame) = self.deframer.read(&mut rest).map_err(why_frame)? {
            let bytes = frame.message.len().saturating_add(size_of::<Frame>());
            if self.queue.len() >= limits::GRPC_QUEUED_MESSAGES || !self.kept.grow(bytes) {
                return Err(Reason::TooManyMessages);
            }
            self.has_had_a_message = true;
            self.queue.push_back(Some(frame));
        }
        if end_of_stream {
            self.deframer.end().map_err(why_frame)?;
            // A call without a message runs, too.
            if !self.has_had_a_message {
                self.has_had_a_message = true;
                self.queue.push_back(None);
            }
        }
        Ok(())
    }
}

impl Gate {
    /// Takes a call whose messages are to be held one by one.
    pub(super) fn open_messages(
        &mut self,
        listener: &Listener,
        call: Box<GrpcCall>,
        end_of_stream: bool,
    ) -> Vec<Effect> {
        self.deadline_ms = call.deadline_ms;
        let messages = Box::new(MessageGate::new(call, listener.kept.share()));
        if end_of_stream {
            self.more(listener, messages, &[], true)
        } else {
            self.state = State::Messages(messages);
            Vec::new()
        }
    }

    /// Takes what happened to such a call.
    pub(super) fn handle_messages(
        &mut self,
        listener: &Listener,
        mut messages: Box<MessageGate>,
        event: Event,
    ) -> Vec<Effect> {
        match (event, messages.deciding.take()) {
            (
                Event::RequestBody {
                    chunk,
                    end_of_stream,
                },
                deciding,
            ) => {
                messages.deciding = deciding;
                self.more(listener, messages, &chunk, end_of_stream)
            }
            (Event::RequestTrailers, deciding) => {
                messages.deciding = deciding;
                let mut effects = vec![Effect::RemoveRequestTrailers];
                effects.extend(self.more(listener, messages, &[], true));
                effects
            }
            (Event::PlaneAnswered(answer), Some(Deciding::Filed(filed))) => {
                self.filed(listener, messages, filed.answered(answer))
            }
            (Event::Watched(news), Some(Deciding::Waiting(id))) => {
                match self.release_of(listener, id, news) {
                    Ok(release) => self.released(listener, messages, release),
                    Err(reason) => self.refuse_call(listener, &messages, reason, None),
                }
            }
            (event @ (Event::ResponseStarted { .. } | Event::ResponseEnded { .. }), deciding) => {
                messages.deciding = deciding;
                messages.has_held_answer = !messages.has_gone_on && !messages.is_answered;
                let effects = self.answered_call(listener, &mut messages, &event);
                self.state = State::Messages(messages);
                effects
            }
            (event @ Event::ResponseGoesOn { .. }, deciding) => {
                messages.deciding = deciding;
                messages.is_answered = true;
                messages.has_held_answer = false;
                let effects = self.answered_call(listener, &mut messages, &event);
                self.state = State::Messages(messages);
                effects
            }
            (event @ Event::StreamEnded { .. }, deciding) => {
                messages.deciding = deciding;
                let mut effects = self.answered_call(listener, &mut messages, &event);
                effects.extend(self.ended_call(listener, &messages));
                effects
            }
            (Event::Paced(_), deciding) => {
                messages.deciding = deciding;
                Vec::new()
            }
            (Event::PlaneAnswered(_) | Event::Watched(_) | Event::RequestBodyUnreadable, _) => {
                self.refuse_call(listener, &messages, Reason::Internal, None)
            }
        }
    }

    fn more(
        &mut self,
        listener: &Listener,
        mut messages: Box<MessageGate>,
        chunk: &[u8],
        end_of_stream: bool,
    ) -> Vec<Effect> {
        match messages.take(chunk, end_of_stream) {
            Ok(()) => self.decide_next(listener, messages),
            Err(reason) => self.refuse_call(listener, &messages, reason, None),
        }
    }

    /// Files the next message, or lets all go on once none is left.
    fn decide_next(&mut self, listener: &Listener, mut messages: Box<MessageGate>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if messages.deciding.is_none() {
            if let Some(frame) = messages.queue.front_mut() {
                let frame = frame.take();
                let statement = messages.call.statement(frame);
                let (plane, statement) = match (&listener.control_plane, statement) {
                    (Some(plane), Ok(statement)) => (plane, statement),
                    (None, _) => {
                        return self.refuse_call(listener, &messages, Reason::NotFiled, None);
                    }
                    (_, Err(reason)) => {
                        return self.refuse_call(listener, &messages, reason, None);
                    }
                };
                let digest = statement.digest();
                if messages.in_flight.contains(&digest) {
                    let reason = Reason::RepeatedMessage;
                    return self.refuse_call(listener, &messages, reason, None);
                }
                messages.in_flight.push(digest);
                let (filed, calls) = self.filing(listener, plane, &statement, SpendOn::Accepted);
                messages.deciding = Some(Deciding::Filed(filed));
                effects.extend(calls);
            } else if messages.is_between_messages() {
                effects.extend(self.forward_messages(listener, &mut messages));
            }
        }
        self.state = State::Messages(messages);
        effects
    }

    fn filed(
        &mut self,
        listener: &Listener,
        mut messages: Box<MessageGate>,
        outcome: Outcome,
    ) -> Vec<Effect> {
        match outcome {
            Outcome::Released(release) => self.released(listener, messages, release),
            Outcome::Held { id, status, is_new } => {
                let reason = Reason::Approval { id, status };
                let mut effects = self.refuse_call(listener, &messages, reason, None);
                effects.extend(is_new.then_some(Effect::Count(Counter::Filed)));
                effects
            }
            Outcome::Waiting { id, is_new } => {
                let mut effects = vec![Effect::Watch {
                    id: id.clone(),
                    budget_ms: self.budget_ms(listener),
                    settles_later: true,
                }];
                effects.extend(is_new.then_some(Effect::Count(Counter::Filed)));
                messages.deciding = Some(Deciding::Waiting(id));
                self.state = State::Messages(messages);
                effects
            }
            Outcome::Failed(fault) => {
                let reason = why_not_filed(&fault);
                self.refuse_call(listener, &messages, reason, Some(&fault))
            }
        }
    }

    fn released(
        &mut self,
        listener: &Listener,
        mut messages: Box<MessageGate>,
        release: Release,
    ) -> Vec<Effect> {
        messages.queue.pop_front();
        messages.released.push(release);
        self.decide_next(listener, messages)
    }

    /// Lets everything go on that is kept back.
    fn forward_messages(&self, listener: &Listener, messages: &mut MessageGate) -> Vec<Effect> {
        let releases = std::mem::take(&mut messages.released);
        messages.held_bytes = 0;
        messages.kept.clear();
        if releases.is_empty() {
            return Vec::new();
        }
        messages.is_open = true;
        messages.has_gone_on = true;
        let spends_at_once = listener
            .control_plane
            .as_ref()
            .is_none_or(|plane| plane.spend_on() == SpendOn::Release);
        let mut effects = Vec::new();
        let mut settled = Vec::new();
        for release in &releases {
            effects.push(Effect::Count(Counter::Released));
            effects.extend(record::released(listener, &self.held_by, release.id()));
            if let Some(pending) = release.pending() {
                let flight = (release.id().clone(), pending.clone());
                if spends_at_once {
                    settled.push(settle(flight, Settlement::Spent));
                } else {
                    messages.unsettled.push(flight);
                }
            }
        }
        if messages.unsettled.is_empty() {
            messages.in_flight.clear();
        }
        effects.push(Effect::ForwardMessages(releases));
        if std::mem::take(&mut messages.has_held_answer) {
            messages.is_answered = true;
            effects.push(Effect::ForwardAnswer);
        }
        effects.extend(settled);
        effects
    }

    /// Settles what has gone on, once the answer says how.
    fn answered_call(
        &self,
        listener: &Listener,
        messages: &mut MessageGate,
        event: &Event,
    ) -> Vec<Effect> {
        let Some(settlement) = messages.answer.handle(event) else {
            return Vec::new();
        };
        if messages.deciding.is_none() && messages.released.is_empty() {
            messages.in_flight.clear();
        }
        let mut effects = Vec::new();
        for (id, pending) in std::mem::take(&mut messages.unsettled) {
            effects.extend(self.settling(listener, id, pending, settlement));
        }
        effects
    }

    /// The call is over. What was released and did not go on is given back.
    fn ended_call(&self, listener: &Listener, messages: &MessageGate) -> Vec<Effect> {
        let mut effects = Vec::new();
        for release in &messages.released {
            effects.extend(released_for_nobody(release));
        }
        let gone = match &messages.deciding {
            Some(Deciding::Filed(_)) => Gone::WhileAsking,
            Some(Deciding::Waiting(id)) => Gone::WhileWaiting(id),
            None if messages.is_open && messages.is_between_messages() => return effects,
            None if messages.has_had_a_message || messages.held_bytes > 0 => Gone::WhileSending,
            None => Gone::BeforeBody,
        };
        effects.extend(self.abandoned(listener, gone));
        effects
    }

    /// Refuses the call from here on: with a reply, or by breaking it off where the upstream has begun to answer.
    fn refuse_call(
        &self,
        listener: &Listener,
        messages: &MessageGate,
        reason: Reason,
        fault: Option<&PlaneFault>,
    ) -> Vec<Effect> {
        let denial =
            Denial::new(self.held_by.message.clone(), reason).with_tools(listener.names_the_tool());
        let mut effects = told_refusal(listener, &self.held_by.rule_name, &denial, fault);
        for release in &messages.released {
            effects.extend(released_for_nobody(release));
        }
        // What has gone on may run.
        for flight in &messages.unsettled {
            effects.push(settle(flight.clone(), Settlement::Spent));
        }
        effects.push(if messages.is_answered {
            Effect::Reset
        } else {
            Effect::Answer(denial.to_answer(self.form))
        });
        effects
    }
}

fn settle((id, pending): (ApprovalId, PendingSettlement), settlement: Settlement) -> Effect {
    Effect::Settle {
        id,
        pending,
        settlement,
    }
}
