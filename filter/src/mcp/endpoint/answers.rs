//! Results of the tools: an approval and what to do next, in a form for programs and in words. No statement, no token and no address
//! is within reach here. Source: contract 5.2, 5.3.

use super::tools::Family;
use crate::approval::{ApprovalId, Status};
use crate::control_plane::{ApprovalView, ListFault, ReadFault};
use crate::identity::is_invisible;
use crate::json::{Object, quoted};
use crate::limits;

/// How a wait went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    /// Whether it ended undecided.
    pub timed_out: bool,
    /// Rounded.
    pub seconds: u64,
}

/// The members of a result that tells of one approval.
pub(super) fn approval(view: &ApprovalView, family: Family, waited: Option<Waited>) -> String {
    structured(&told(view, family, waited))
}

/// The members of a result that lists approvals.
pub(super) fn approvals(views: &[ApprovalView], family: Family) -> String {
    let mut listed = String::from(r#"{"reviews":["#);
    for (at, view) in views.iter().enumerate() {
        if at > 0 {
            listed.push(',');
        }
        listed.push_str(&told(view, family, None));
    }
    listed.push_str("]}");
    structured(&listed)
}

/// An approval as JSON. What is not known is left out.
fn told(view: &ApprovalView, family: Family, waited: Option<Waited>) -> String {
    let instruction = instruction(view, family);
    let reason = reason(view);
    let listener_name = shown(&view.listener_name);
    let approval_rule = shown(&view.approval_rule);
    let members = [
        ("id", Some(view.id.as_str())),
        ("status", Some(view.status.word().unwrap_or("UNKNOWN"))),
        ("listener_name", Some(listener_name.as_str())),
        ("approval_rule", Some(approval_rule.as_str())),
        ("created_at", Some(view.created_at.as_str())),
        ("decided_at", view.decided_at.as_deref()),
        ("rejection_reason", reason.as_deref()),
        ("expires_at", view.expires_at.as_deref()),
        ("next", Some(view.status.next().word())),
        ("instruction", Some(instruction.as_str())),
    ];
    let mut object = Object::new();
    for (name, value) in members {
        object.known_text(name, value);
    }
    if let Some(Waited { timed_out, seconds }) = waited {
        object.json("timed_out", if timed_out { "true" } else { "false" });
        object.json("waited_seconds", &seconds.to_string());
    }
    object.written()
}

/// The same in both forms, for clients that read one of them.
fn structured(content: &str) -> String {
    let text = quoted(content);
    format!(r#""content":[{{"type":"text","text":{text}}}],"structuredContent":{content}"#)
}

/// The members of a result that says why there is none.
pub(super) fn failure(text: &str) -> String {
    let text = quoted(text);
    format!(r#""content":[{{"type":"text","text":{text}}}],"isError":true"#)
}

/// There is no such approval, or it is another sidecar's: both read the same.
pub(super) fn not_found(id: &str) -> String {
    failure(&format!(
        "approval {id} was not found on this sidecar. Stop: check the id against the deny message, and that this MCP entry is the sidecar that denied it"
    ))
}

/// The approval could not be read.
pub(super) fn not_read(fault: &ReadFault, id: &ApprovalId) -> String {
    match fault {
        ReadFault::Unknown => not_found(id.as_str()),
        ReadFault::PlaneTooOld => failure(&format!(
            "{TOO_OLD}. Ask a human to check approval {id} in the control plane"
        )),
        ReadFault::Plane(_) | ReadFault::Unwritable => not_reported(id),
    }
}

/// How the approval stands could not be learned.
pub(super) fn not_reported(id: &ApprovalId) -> String {
    failure(&format!(
        "the control plane could not report approval {id}. Try again later, or ask a human to check it in the control plane"
    ))
}

/// The list could not be read.
pub(super) fn not_listed(fault: &ListFault, family: Family) -> String {
    match fault {
        ListFault::NoRoute => failure(&format!(
            "{TOO_OLD}. Use {}_status with an id from a deny message",
            family.prefix()
        )),
        ListFault::Plane(_) => failure(
            "the control plane could not list the approvals. Try again later, or ask a human to check them in the control plane",
        ),
    }
}

const TOO_OLD: &str =
    "the control plane is older than this sidecar, or does not let it read approvals";

/// What `next` says, in words.
fn instruction(view: &ApprovalView, family: Family) -> String {
    let with_reason = |text: &str| match reason(view) {
        Some(reason) => format!("{text} Reason: {reason}"),
        None => text.to_owned(),
    };
    let until = |words: &str| match &view.expires_at {
        Some(time) => format!(" {words} {time}."),
        None => String::new(),
    };
    let (listener, wait) = (shown(&view.listener_name), family.prefix());
    match view.status {
        Status::Pending => format!(
            "Nobody has decided yet. Call {wait}_wait with this id. Do not resend the statement meanwhile and do not reformat it: other bytes are another request.{}",
            until("Undecided, the request expires at")
        ),
        Status::Approved => format!(
            "Approved. Resend the identical statement, byte for byte, to listener {listener}. It runs once.{}",
            until("Resend it before")
        ),
        Status::Processing => format!(
            "Another request is using this approval. Call {wait}_wait with this id: the upstream's answer spends it or gives it back."
        ),
        Status::Rejected => with_reason("Rejected: the statement will not run. Do not resend it."),
        Status::Revoked => with_reason("Revoked: the statement will not run. Do not resend it."),
        Status::Executed => {
            "Already used: the approved statement was let through. Running it again needs a new request.".to_owned()
        }
        Status::Expired => {
            "Expired: the statement did not run. Sending it again asks the approvers again; do so only if a person asks for it.".to_owned()
        }
        Status::Unknown(_) => "Stop, and ask a human to check this approval.".to_owned(),
    }
}

/// The approver's words.
fn reason(view: &ApprovalView) -> Option<String> {
    let reason = view.rejection_reason.as_deref().map(shown);
    reason.filter(|text| !text.is_empty())
}

/// A person's words as a model is to read them: without what nobody sees, and not of any length, as they stand in an answer four times.
fn shown(words: &str) -> String {
    let mut text = String::new();
    let is_shown = |letter: &char| !letter.is_control() && !is_invisible(*letter);
    for letter in words.chars().filter(is_shown) {
        if text.len().saturating_add(letter.len_utf8()) > limits::TOLD_BYTES {
            text.push('…');
            break;
        }
        text.push(letter);
    }
    text
}
