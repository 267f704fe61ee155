//! `/.well-known/hoop/`: the status of an approval, without a credential. Source: contract 4.
//!
//! The whole prefix is answered here, before any rule, and nothing that could mean it is ever forwarded: a wrong no
//! would let an upstream forge a status that an agent trusts.

use crate::answer::Answer;
use crate::approval::ApprovalId;
use crate::control_plane::{ApprovalView, PlaneAnswer, PlaneFault, ReadFault, read_approval};
use crate::effect::Effect;
use crate::event::Event;
use crate::identity::{Correlation, Surroundings};
use crate::json::Object;
use crate::listener::Listener;
use crate::metrics::{Counter, PlaneFailure};
use crate::request::RequestHead;
use crate::request::path::{PathReading, decode};

const PREFIX: &[u8] = b"/.well-known/hoop/";

/// What a path has to do with the reserved prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing.
    NotOurs,
    /// It lies under the prefix, as sent or decoded once; this is what stands behind it.
    Ours(Vec<u8>),
    /// It is ambiguous, and slash merging, dot segments, `\`, `;params` or a further decoding could bring it there.
    Disguised,
}

/// Decides whose path it is.
#[must_use]
pub fn claim(head: &RequestHead) -> Claim {
    let Some(raw) = head.path() else {
        return Claim::NotOurs;
    };
    let behind_prefix = |path: &[u8]| path.strip_prefix(PREFIX).map(<[u8]>::to_vec);
    match &head.reading {
        PathReading::Plain(path) => behind_prefix(path).map_or(Claim::NotOurs, Claim::Ours),
        PathReading::Ambiguous(_) | PathReading::Unknown => {
            let decoded = decode(raw);
            let ours = decoded
                .as_deref()
                .and_then(behind_prefix)
                .or_else(|| behind_prefix(raw));
            ours.map_or_else(|| disguised_or_not(&head.reading), Claim::Ours)
        }
    }
}

fn disguised_or_not(reading: &PathReading) -> Claim {
    match reading {
        PathReading::Ambiguous(letters) if WORDS.iter().all(|word| letters.may_hold(word)) => {
            Claim::Disguised
        }
        PathReading::Unknown => Claim::Disguised,
        PathReading::Ambiguous(_) | PathReading::Plain(_) => Claim::NotOurs,
    }
}

/// The words that every spelling of the prefix is made of.
const WORDS: [&[u8]; 2] = [b".well-known", b"hoop"];

/// A read of one approval that awaits the plane's answer.
#[derive(Debug)]
pub struct StatusRead {
    asked: ApprovalId,
}

/// Answers a request under the prefix, at once or after one read. `rest` is what stands behind the prefix.
#[must_use]
pub fn open(
    listener: &Listener,
    method: &[u8],
    rest: &[u8],
    surroundings: &dyn Surroundings,
) -> (Option<StatusRead>, Vec<Effect>) {
    if method != b"GET" && method != b"HEAD" {
        let mut refusal = error(405, "only GET and HEAD are served under /.well-known/hoop/");
        refusal.headers.insert(0, ("allow", "GET, HEAD".to_owned()));
        return (None, answered(refusal));
    }
    let id = [&b"approvals/"[..], b"reviews/"]
        .into_iter()
        .find_map(|collection| rest.strip_prefix(collection))
        .filter(|id| !id.is_empty());
    let Some(id) = id else {
        return (None, answered(error(404, "not found")));
    };
    let Some(plane) = &listener.control_plane else {
        return (
            None,
            answered(error(
                503,
                "review status comes from the control plane, and this sidecar has none",
            )),
        );
    };
    let Some(asked) = ApprovalId::parse(id) else {
        return (None, answered(unknown()));
    };
    let call = plane.read(&asked, &Correlation::of(&surroundings.headers()));
    (
        Some(StatusRead { asked }),
        vec![Effect::Count(Counter::PlaneCalls), Effect::CallPlane(call)],
    )
}

impl StatusRead {
    /// Takes what happened: the answer to the read ends it. The request's body, if any, is ignored.
    ///
    /// # Errors
    ///
    /// Gives the read back where the event does not end it.
    pub fn handle(self, listener: &Listener, event: Event) -> Result<Vec<Effect>, Self> {
        let Event::PlaneAnswered(answer) = event else {
            return Err(self);
        };
        Ok(match self.read(listener, answer) {
            Ok(view) => answered(report(&view)),
            Err(fault) => failed(listener, &fault),
        })
    }

    fn read(
        &self,
        listener: &Listener,
        answer: Result<PlaneAnswer, PlaneFault>,
    ) -> Result<ApprovalView, ReadFault> {
        let view = read_approval(&answer?, &self.asked)?;
        if view.listener_name == listener.name {
            Ok(view)
        } else {
            Err(ReadFault::Unknown)
        }
    }
}

/// The refusal of a disguised path.
#[must_use]
pub fn disguised() -> Vec<Effect> {
    let mut effects = vec![Effect::Count(Counter::RefusedAmbiguousPath)];
    effects.extend(answered(error(
        400,
        "the path can be read as one under /.well-known/hoop/, write it in its plain form",
    )));
    effects
}

fn failed(listener: &Listener, fault: &ReadFault) -> Vec<Effect> {
    let answer = match fault {
        ReadFault::Unknown => return answered(unknown()),
        ReadFault::PlaneTooOld => error(
            502,
            "the control plane is older than this sidecar and cannot report review status; upgrade the control plane",
        ),
        ReadFault::Plane(_) => error(502, "the control plane could not report the review"),
        ReadFault::Unwritable => error(500, "the review status could not be read"),
    };
    let line = format!(
        "reserved_path=failed listener={:?} control_plane={:?}",
        listener.name,
        fault.to_string()
    );
    let kind = match fault {
        ReadFault::Plane(fault) => fault.kind(),
        ReadFault::PlaneTooOld | ReadFault::Unknown | ReadFault::Unwritable => {
            PlaneFailure::BadAnswer
        }
    };
    let mut effects: Vec<Effect> = Counter::of_failure(kind).map(Effect::Count).into();
    effects.push(Effect::Log {
        level: log::Level::Warn,
        line,
    });
    effects.extend(answered(answer));
    effects
}

/// An unknown id and an id of another listener read the same, so that nothing is learned from asking.
fn unknown() -> Answer {
    error(404, "review not found on this sidecar")
}

fn answered(answer: Answer) -> Vec<Effect> {
    vec![
        Effect::Count(Counter::ReservedPathAnswered),
        Effect::Answer(answer),
    ]
}

fn error(code: u16, message: &str) -> Answer {
    let mut problem = Object::new();
    problem.text("message", message);
    json_answer(code, problem)
}

fn json_answer(code: u16, content: Object) -> Answer {
    let mut body = content.written().into_bytes();
    body.push(b'\n');
    Answer {
        status: code,
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("cache-control", "no-store".to_owned()),
            ("connection", "close".to_owned()),
        ],
        body,
    }
}

/// The approval as the path reports it: `decided_at` is null while undecided, other absent fields are left out.
fn report(view: &ApprovalView) -> Answer {
    let mut report = Object::new();
    report.text("id", view.id.as_str());
    report.text("status", view.status.word().unwrap_or("UNKNOWN"));
    report.text("listener_name", &view.listener_name);
    report.text("approval_rule", &view.approval_rule);
    report.text("created_at", &view.created_at);
    match &view.decided_at {
        Some(time) => report.text("decided_at", time),
        None => report.json("decided_at", "null"),
    }
    report.known_text("rejection_reason", view.rejection_reason.as_deref());
    report.known_text("expires_at", view.expires_at.as_deref());
    report.text("next", view.status.next().word());
    json_answer(200, report)
}

#[cfg(test)]
mod tests;
