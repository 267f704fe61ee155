//! One `approval_wait`: reads the approval, then waits for the poller that all waits of a VM share. Where its client asked for progress,
//! the answer is a stream of events, sent piece by piece as the host asks for them. Source: contract 5.2, `envoy.md` 0.11.

use std::rc::Rc;

use super::answers::{self, Waited};
use super::exchange::{self, Exchange};
use super::tools::Family;
use super::{answered, not_read, noted};
use crate::approval::{ApprovalId, Next};
use crate::control_plane::{ApprovalView, ControlPlane, ReadFault, read_approval};
use crate::effect::Effect;
use crate::event::{Event, News, Pace};
use crate::limits;
use crate::listener::{Listener, StreamSlot};
use crate::mcp::json_rpc::{INTERNAL_ERROR, RpcError};
use crate::mcp::sse;
use crate::metrics::Counter;

/// A wait.
#[derive(Debug)]
pub(super) struct Wait {
    exchange: Exchange,
    family: Family,
    id: ApprovalId,
    budget_ms: u64,
    /// By which its progress is to be told, as JSON.
    token: Option<String>,
    /// Whether the first read is under way.
    is_reading: bool,
    paced: Option<Paced>,
}

/// An answer in pieces.
#[derive(Debug)]
struct Paced {
    _slot: StreamSlot,
    /// By which progress is told, as JSON.
    token: String,
    /// When its first piece was asked for, and when it last said something.
    began: Option<(u64, u64)>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nobody has decided.
    Open,
    /// This is the last event. The answer is held back with it, and ends when it is let go.
    Closing(String),
    /// It was let go.
    Closed,
}

impl Wait {
    /// A wait whose first read is sent. `token` asks for progress, as JSON.
    pub const fn new(
        exchange: Exchange,
        family: Family,
        id: ApprovalId,
        seconds: u64,
        token: Option<String>,
    ) -> Self {
        Self {
            exchange,
            family,
            id,
            budget_ms: seconds.saturating_mul(1_000),
            token,
            is_reading: true,
            paced: None,
        }
    }

    /// Whether its request is let go, to the route that paces the answer.
    pub const fn is_paced(&self) -> bool {
        self.paced.is_some()
    }

    pub fn handle(&mut self, listener: &Listener, event: Event) -> Vec<Effect> {
        match event {
            Event::PlaneAnswered(answer) if self.is_reading => {
                self.is_reading = false;
                let read = answer.map_err(ReadFault::from);
                let read = read.and_then(|answer| read_approval(&answer, &self.id));
                match read {
                    Ok(view) if view.status.next() == Next::Wait => self.begin(listener),
                    read => {
                        let mut effects = match &read {
                            Ok(_) => Vec::new(),
                            Err(fault) => not_read(listener, fault),
                        };
                        effects.extend(self.end(&read.map(Rc::new), self.budget_ms));
                        effects
                    }
                }
            }
            // What failed the poller has counted, for all that wait.
            Event::Watched(News::Read { read, left_ms }) => self.end(&read, left_ms),
            Event::Watched(News::NotChecked) => {
                let result = answers::not_reported(&self.id);
                self.finish(&result)
            }
            Event::Paced(Pace::Head { is_paced }) => self.head(listener, is_paced),
            Event::Paced(Pace::Piece { now_ms }) => self.piece(now_ms),
            Event::Paced(Pace::LetGo) => {
                if let Some(paced) = &mut self.paced {
                    paced.state = State::Closed;
                }
                Vec::new()
            }
            Event::PlaneAnswered(_)
            | Event::RequestBody { .. }
            | Event::RequestBodyUnreadable
            | Event::RequestTrailers
            | Event::ResponseEnded { .. }
            | Event::ResponseGoesOn { .. }
            | Event::ResponseStarted { .. }
            | Event::StreamEnded { .. }
            | Event::Watched(News::Released(_) | News::Stands(_) | News::TimeOver) => Vec::new(),
        }
    }

    /// Nobody has decided: the poller takes over. Only now does an answer in pieces begin, since the host keeps memory for it.
    fn begin(&mut self, listener: &Listener) -> Vec<Effect> {
        let watch = Effect::Watch {
            id: self.id.clone(),
            budget_ms: self.budget_ms,
            settles_later: false,
        };
        let minutes = self.budget_ms.div_ceil(MINUTE_MS);
        let minutes = usize::try_from(minutes).unwrap_or(usize::MAX);
        let Some(token) = self.token.take() else {
            return vec![watch];
        };
        let Some(slot) = listener.streams.take(minutes) else {
            return vec![watch];
        };
        self.paced = Some(Paced {
            _slot: slot,
            token,
            began: None,
            state: State::Open,
        });
        let bytes = self.filler(listener);
        vec![watch, Effect::ForwardPaced { bytes }]
    }

    /// How much the host is to pace: a KiB for each second, and some for reads that are late: one in turn that is under way when the
    /// time is over, and the last.
    fn filler(&self, listener: &Listener) -> usize {
        let plane = listener.control_plane.as_ref();
        let timeout_ms = plane.map(ControlPlane::timeout_ms).unwrap_or_default();
        let late = u64::from(timeout_ms).saturating_mul(2);
        let late = late.saturating_add(listener.poll_interval_ms.saturating_mul(3));
        let seconds = self.budget_ms.saturating_add(late).checked_div(1_000);
        let seconds = seconds.and_then(|seconds| usize::try_from(seconds).ok());
        seconds
            .unwrap_or_default()
            .saturating_add(1)
            .saturating_mul(1_024)
    }

    fn end(&mut self, read: &Result<Rc<ApprovalView>, ReadFault>, left_ms: u64) -> Vec<Effect> {
        let waited_ms = self.budget_ms.saturating_sub(left_ms);
        let result = match read {
            Ok(view) => {
                let seconds = waited_ms.saturating_add(500).checked_div(1_000);
                let waited = Waited {
                    timed_out: view.status.next() == Next::Wait,
                    seconds: seconds.unwrap_or_default(),
                };
                answers::approval(view, self.family, Some(waited))
            }
            Err(fault) => answers::not_read(fault, &self.id),
        };
        self.finish(&result)
    }

    /// Answers at once, or keeps the answer for the next piece.
    fn finish(&mut self, result: &str) -> Vec<Effect> {
        let mut effects = vec![noted(self.id.as_str())];
        match &mut self.paced {
            None => effects.extend(answered(self.exchange.tool_result(result))),
            Some(paced) => {
                paced.state = State::Closing(sse::event(&self.exchange.message(result, false)));
                effects.push(Effect::Count(Counter::McpAnswered));
            }
        }
        effects
    }

    /// The route that was to pace the answer answers, or something else does.
    fn head(&self, listener: &Listener, is_paced: bool) -> Vec<Effect> {
        if is_paced {
            return vec![Effect::AnswerHead(exchange::event_headers())];
        }
        let error = RpcError::new(INTERNAL_ERROR, "the answer could not be sent in pieces");
        let mut effects = misconfigured(listener);
        effects.push(Effect::Answer(self.exchange.error(500, &error)));
        effects
    }

    fn piece(&mut self, now_ms: u64) -> Vec<Effect> {
        let Some(paced) = &mut self.paced else {
            return Vec::new();
        };
        match &paced.state {
            State::Open => {}
            State::Closing(last) => return vec![Effect::AnswerEnd(last.clone().into_bytes())],
            // The host has written the end, or does so once a slow client takes more.
            State::Closed => return vec![Effect::AnswerOver],
        }
        let (began, said) = *paced.began.get_or_insert((now_ms, now_ms));
        let mut bytes = Vec::new();
        if now_ms.saturating_sub(said) >= limits::PROGRESS_INTERVAL_MS {
            paced.began = Some((began, now_ms));
            let elapsed_ms = now_ms.saturating_sub(began);
            let progress = progress(&paced.token, elapsed_ms, self.budget_ms);
            bytes = sse::event(&progress).into_bytes();
        }
        vec![Effect::AnswerPiece(bytes)]
    }
}

/// The operator says that answers can be sent in pieces, and they cannot.
fn misconfigured(listener: &Listener) -> Vec<Effect> {
    let line = format!(
        "mcp=stream_failed listener={:?} why=\"the route's metadata say that it paces answers, and it does not\" hint=\"compare the listener with envoy/mcp.yaml\"",
        listener.name
    );
    vec![
        Effect::Count(Counter::Internal),
        Effect::Log {
            level: log::Level::Error,
            line,
        },
    ]
}

/// Answers in pieces are counted by the minute that they may last.
const MINUTE_MS: u64 = limits::DEFAULT_WAIT_SECONDS * 1_000;

/// The notification after so many milliseconds of a wait.
fn progress(token: &str, elapsed_ms: u64, budget_ms: u64) -> String {
    let [seconds, rest] = [elapsed_ms.checked_div(1_000), elapsed_ms.checked_rem(1_000)]
        .map(Option::unwrap_or_default);
    let total = budget_ms.checked_div(1_000).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{seconds}.{rest:03},"total":{total},"message":"waiting for an approver"}}}}"#
    )
}
