//! The approval tools: a stateless MCP server on a listener of its own. Everything it answers it reads; it files, claims and decides
//! nothing. Source: contract 5, design 8.

mod answers;
mod cancel;
mod exchange;
mod methods;
mod tools;
mod wait;

use crate::answer::Answer;
use crate::approval::ApprovalId;
use crate::config::McpEndpoint;
use crate::control_plane::{
    ListFault, PlaneAnswer, PlaneFault, ReadFault, read_approval, read_views,
};
use crate::effect::{Effect, Note};
use crate::event::Event;
use crate::identity::{Correlation, Headers, Surroundings};
use crate::listener::Listener;
use crate::mcp::json_rpc::{self, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, RpcError};
use crate::mcp::origin::{self, Foreign};
use crate::mcp::{Era, headers};
use crate::metrics::{Counter, PlaneFailure};
use crate::request::RequestHead;
use crate::request::path::PathReading;
use exchange::{Exchange, Reader};
use methods::Asked;
use tools::{Family, Listing, Tool};
use wait::Wait;

/// A request to the endpoint that is not answered yet.
#[derive(Debug)]
pub struct Endpoint {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Its body is still to come.
    Collecting(Collecting),
    /// The approval is being read.
    Status(Exchange, Family, ApprovalId),
    /// The newest approvals are being read.
    List(Exchange, Family),
    /// Somebody waits for a decision.
    Waiting(Box<Wait>),
}

#[derive(Debug)]
struct Collecting {
    headers: Headers,
    body: Vec<u8>,
    most: usize,
    /// What the client is called from now on, if it opens with `initialize`.
    label: String,
    /// Whether the route can send an answer piece by piece.
    is_paced: bool,
}

/// The value of the route's metadata, in namespace `hoop` under `mcp_stream`, by which the operator says that the listener has what an
/// answer in pieces needs.
const PACED: &[u8] = b"paced";

/// Takes a request: refuses it at its head, or waits for its body.
#[must_use]
pub fn open(
    listener: &Listener,
    endpoint: &McpEndpoint,
    head: &RequestHead,
    end_of_stream: bool,
    surroundings: &dyn Surroundings,
) -> (Option<Endpoint>, Vec<Effect>) {
    let headers = surroundings.headers();
    if let Err(refusal) = admitted(listener, endpoint, head, &headers, surroundings) {
        return (None, refused(listener, refusal));
    }
    let is_paced = surroundings.route_metadata("hoop", "mcp_stream").as_deref() == Some(PACED);
    let collecting = Collecting {
        headers,
        body: Vec::new(),
        most: listener.max_body_bytes,
        label: cancel::new_label(surroundings),
        is_paced,
    };
    if end_of_stream {
        let (state, effects) = collecting.read(listener);
        return (state.map(|state| Endpoint { state }), effects);
    }
    let state = State::Collecting(collecting);
    (Some(Endpoint { state }), Vec::new())
}

/// A refusal of the transport: its status code, and what a person reads.
struct Refusal {
    status: u16,
    why: &'static str,
    message: String,
}

fn admitted(
    listener: &Listener,
    endpoint: &McpEndpoint,
    head: &RequestHead,
    headers: &Headers,
    surroundings: &dyn Surroundings,
) -> Result<(), Refusal> {
    let refuse = |status, why, message: &str| {
        Err(Refusal {
            status,
            why,
            message: message.to_owned(),
        })
    };
    let is_here =
        matches!(&head.reading, PathReading::Plain(path) if path == endpoint.path.as_bytes());
    if !is_here {
        let message = format!(
            "not found: this listener serves the approval tools under {} alone",
            endpoint.path
        );
        return refuse(404, "path", &message);
    }
    let arrived_at = surroundings.local_address();
    match origin::check(
        headers,
        &head.authority,
        arrived_at.as_deref(),
        &endpoint.hosts,
    ) {
        Ok(()) => {}
        Err(Foreign::Host) => {
            return refuse(
                403,
                "host",
                "the Host of this request is none of this endpoint's names; call it by its own address",
            );
        }
        Err(Foreign::Origin) => {
            return refuse(
                403,
                "origin",
                "a web page of another origin must not use the approval tools",
            );
        }
    }
    if head.method != b"POST" {
        return refuse(
            405,
            "method",
            "only POST is served: this endpoint keeps no session and opens no stream of its own",
        );
    }
    if !headers::accepts(headers, "application", "json")
        && !headers::accepts(headers, "text", "event-stream")
    {
        return refuse(
            406,
            "accept",
            "Accept must name application/json and text/event-stream",
        );
    }
    if !headers::is_json(headers) {
        return refuse(
            415,
            "content_type",
            "Content-Type must be application/json, once",
        );
    }
    let is_encoded = |(name, value): &(String, Vec<u8>)| {
        name == "content-encoding" && !value.eq_ignore_ascii_case(b"identity")
    };
    if headers.iter().any(is_encoded) {
        return refuse(
            415,
            "content_encoding",
            "the body must be sent without Content-Encoding",
        );
    }
    let declared = headers.iter().find_map(declared_length);
    if declared.is_some_and(|length| length > listener.max_body_bytes) {
        return Err(too_large(listener.max_body_bytes));
    }
    Ok(())
}

fn declared_length((name, value): &(String, Vec<u8>)) -> Option<usize> {
    let text = std::str::from_utf8(value).ok();
    text.filter(|_| name == "content-length")?.parse().ok()
}

fn too_large(most: usize) -> Refusal {
    Refusal {
        status: 413,
        why: "body",
        message: format!("the body is larger than {most} bytes"),
    }
}

fn refused(listener: &Listener, refusal: Refusal) -> Vec<Effect> {
    let Refusal {
        status,
        why,
        message,
    } = refusal;
    let error = RpcError::new(INVALID_REQUEST, message);
    let mut answer = exchange::json(status, &json_rpc::error(None, &error));
    if status == 405 {
        answer.headers.insert(0, ("allow", "POST".to_owned()));
    }
    let line = format!(
        "mcp=refused listener={:?} why={why} status={status}",
        listener.name
    );
    vec![
        Effect::Count(Counter::McpRefused),
        Effect::Log {
            level: log::Level::Info,
            line,
        },
        Effect::Answer(answer),
    ]
}

fn answered(answer: Answer) -> Vec<Effect> {
    vec![Effect::Count(Counter::McpAnswered), Effect::Answer(answer)]
}

impl Endpoint {
    /// Whether the request may go on: to the route that paces an answer in pieces, never to an upstream.
    #[must_use]
    pub const fn may_continue(&self) -> bool {
        match &self.state {
            State::Collecting(_) | State::Status(..) | State::List(..) => false,
            State::Waiting(wait) => wait.is_paced(),
        }
    }

    /// Whether its answer is sent piece by piece.
    #[must_use]
    pub const fn is_paced(&self) -> bool {
        self.may_continue()
    }

    /// How many more body bytes are looked at.
    #[must_use]
    pub fn body_room(&self) -> usize {
        match &self.state {
            State::Collecting(collecting) => collecting
                .most
                .saturating_add(1)
                .saturating_sub(collecting.body.len()),
            State::Status(..) | State::List(..) | State::Waiting(_) => 0,
        }
    }

    /// Takes what happened. An answer ends the exchange.
    pub fn handle(self, listener: &Listener, event: Event) -> (Option<Self>, Vec<Effect>) {
        let (state, effects) = match self.state {
            State::Collecting(collecting) => collecting.handle(listener, event),
            State::Status(exchange, family, id) => {
                if let Event::PlaneAnswered(answer) = event {
                    (None, status_read(listener, &exchange, family, &id, answer))
                } else {
                    (Some(State::Status(exchange, family, id)), Vec::new())
                }
            }
            State::List(exchange, family) => {
                if let Event::PlaneAnswered(answer) = event {
                    (None, list_read(listener, &exchange, family, answer))
                } else {
                    (Some(State::List(exchange, family)), Vec::new())
                }
            }
            State::Waiting(mut wait) => {
                let effects = wait.handle(listener, event);
                (Some(State::Waiting(wait)), effects)
            }
        };
        (state.map(|state| Self { state }), effects)
    }
}

impl Collecting {
    fn handle(mut self, listener: &Listener, event: Event) -> (Option<State>, Vec<Effect>) {
        match event {
            Event::RequestBody {
                chunk,
                end_of_stream,
            } => {
                self.body.extend_from_slice(&chunk);
                if self.body.len() > self.most {
                    return (None, refused(listener, too_large(self.most)));
                }
                if end_of_stream {
                    self.read(listener)
                } else {
                    (Some(State::Collecting(self)), Vec::new())
                }
            }
            Event::RequestTrailers => self.read(listener),
            Event::RequestBodyUnreadable => {
                let error = RpcError::new(INTERNAL_ERROR, "the body could not be read");
                let answer = exchange::json(500, &json_rpc::error(None, &error));
                let effects = vec![Effect::Count(Counter::Internal), Effect::Answer(answer)];
                (None, effects)
            }
            Event::Paced(_)
            | Event::PlaneAnswered(_)
            | Event::ResponseEnded { .. }
            | Event::ResponseGoesOn { .. }
            | Event::ResponseStarted { .. }
            | Event::StreamEnded { .. }
            | Event::Watched(_) => (Some(State::Collecting(self)), Vec::new()),
        }
    }

    /// The body is whole.
    fn read(self, listener: &Listener) -> (Option<State>, Vec<Effect>) {
        if self.body.trim_ascii().is_empty() {
            let error = RpcError::new(PARSE_ERROR, "a POST needs a JSON-RPC message as its body");
            return (
                None,
                answered(exchange::json(400, &json_rpc::error(None, &error))),
            );
        }
        let reader = Reader::of(&self.headers);
        let call = match methods::read(&self.headers, &self.body, reader) {
            Asked::Answered(answer) => return (None, answered(answer)),
            Asked::Opened(mut answer) => {
                answer.headers.push((cancel::LABEL, self.label));
                return (None, answered(answer));
            }
            Asked::Cancelled(id) => {
                let wait = cancel::name(&self.headers, &id);
                let cancels = wait.map(|wait| Effect::Cancel { wait });
                let effects = cancels.into_iter().chain(answered(exchange::accepted()));
                return (None, effects.collect());
            }
            Asked::Tool(call) => *call,
        };
        let exchange = call.exchange;
        let Some(plane) = &listener.control_plane else {
            // A configuration with the tools and without a plane is refused when it is loaded.
            let error = RpcError::new(INTERNAL_ERROR, "there is no control plane to ask");
            let effects = vec![
                Effect::Count(Counter::Internal),
                Effect::Answer(exchange.error(500, &error)),
            ];
            return (None, effects);
        };
        let correlation = Correlation::of(&self.headers);
        let family = call.family;
        let mut effects = vec![Effect::Count(Counter::PlaneCalls)];
        let (state, plane_call) = match call.tool {
            Tool::Status(id) => {
                let plane_call = plane.read(&id, &correlation);
                (State::Status(exchange, family, id), plane_call)
            }
            Tool::List(Listing { status, limit }) => {
                let plane_call = plane.newest(limit, status, &correlation);
                (State::List(exchange, family), plane_call)
            }
            Tool::Wait { id, seconds } => {
                let plane_call = plane.read(&id, &correlation);
                if exchange.era == Era::Legacy {
                    let wait = cancel::name(&self.headers, &exchange.id);
                    effects.extend(wait.map(|wait| Effect::Cancellable { wait }));
                }
                let can_stream = self.is_paced && exchange.reader.takes_events;
                let token = call.progress_token.filter(|_| can_stream);
                let wait = Wait::new(exchange, family, id, seconds, token);
                (State::Waiting(Box::new(wait)), plane_call)
            }
        };
        effects.push(Effect::CallPlane(plane_call));
        (Some(state), effects)
    }
}

fn status_read(
    listener: &Listener,
    exchange: &Exchange,
    family: Family,
    id: &ApprovalId,
    answer: Result<PlaneAnswer, PlaneFault>,
) -> Vec<Effect> {
    let read = answer.map_err(ReadFault::from);
    let read = read.and_then(|answer| read_approval(&answer, id));
    let mut effects = match &read {
        Ok(_) => Vec::new(),
        Err(fault) => not_read(listener, fault),
    };
    effects.push(noted(id.as_str()));
    let result = match read {
        Ok(view) => answers::approval(&view, family, None),
        Err(fault) => answers::not_read(&fault, id),
    };
    effects.extend(answered(exchange.tool_result(&result)));
    effects
}

fn list_read(
    listener: &Listener,
    exchange: &Exchange,
    family: Family,
    answer: Result<PlaneAnswer, PlaneFault>,
) -> Vec<Effect> {
    let read = answer.map_err(ListFault::from);
    let (result, mut effects) = match read.and_then(|answer| read_views(&answer)) {
        Ok((views, left_out)) => {
            let mut effects = Vec::new();
            if left_out > 0 {
                let line = format!(
                    "mcp=list listener={:?} why=\"{left_out} approvals of the control plane's list cannot be read\"",
                    listener.name
                );
                effects.push(Effect::Log {
                    level: log::Level::Warn,
                    line,
                });
            }
            (answers::approvals(&views, family), effects)
        }
        Err(fault) => {
            let kind = match &fault {
                ListFault::NoRoute => PlaneFailure::Refused,
                ListFault::Plane(fault) => fault.kind(),
            };
            let effects = failed(listener, "list", &fault.to_string(), kind);
            (answers::not_listed(&fault, family), effects)
        }
    };
    effects.extend(answered(exchange.tool_result(&result)));
    effects
}

/// Counters and log line of a read that failed. That there is no such approval is no failure.
fn not_read(listener: &Listener, fault: &ReadFault) -> Vec<Effect> {
    let Some(kind) = fault.kind() else {
        return Vec::new();
    };
    failed(listener, "read", &fault.to_string(), kind)
}

fn failed(listener: &Listener, what: &str, fault: &str, kind: PlaneFailure) -> Vec<Effect> {
    let line = format!(
        "mcp={what}_failed listener={:?} control_plane={fault:?}",
        listener.name
    );
    let mut effects: Vec<Effect> = Counter::of_failure(kind).map(Effect::Count).into();
    effects.push(Effect::Log {
        level: log::Level::Warn,
        line,
    });
    effects
}

/// What the access log can print of a call about an approval.
fn noted(approval_id: &str) -> Effect {
    Effect::Note(Note {
        outcome: "told",
        rule: String::new(),
        approval_id: approval_id.to_owned(),
    })
}

#[cfg(test)]
mod tests;
