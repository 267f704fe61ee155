//! One structured log line per decision (logfmt), and the note that an access log can print. They name rules, the approval
//! and the reason, never what the client sent.

use super::HeldBy;
use crate::approval::ApprovalId;
use crate::control_plane::{PlaneFault, Settlement};
use crate::denial::{Denial, Reason};
use crate::effect::{Effect, Note};
use crate::listener::Listener;

pub(super) fn released(listener: &Listener, held_by: &HeldBy, id: &ApprovalId) -> [Effect; 2] {
    let line = format!(
        "decision=released listener={:?} rule={:?} approval_rule={:?} approval_id={id}",
        listener.name, held_by.rule_name, held_by.approval_rule
    );
    let note = note("released", &held_by.rule_name, id.as_str());
    [log_at(log::Level::Info, line), note]
}

pub(super) fn settled(
    listener: &Listener,
    held_by: &HeldBy,
    id: &ApprovalId,
    settlement: Settlement,
) -> Effect {
    let why = match settlement {
        Settlement::Returned => " why=\"the upstream did not accept the request\"",
        Settlement::Spent => "",
    };
    let line = format!(
        "decision={} listener={:?} rule={:?} approval_id={id}{why}",
        settlement.word(),
        listener.name,
        held_by.rule_name
    );
    log_at(log::Level::Info, line)
}

/// When a held request was given up.
#[derive(Clone, Copy)]
pub(super) enum Gone<'g> {
    BeforeBody,
    WhileAsking,
    WhileSending,
    WhileWaiting(&'g ApprovalId),
}

pub(super) fn abandoned(listener: &Listener, held_by: &HeldBy, gone: Gone<'_>) -> Effect {
    let (level, why) = match gone {
        Gone::BeforeBody => (
            log::Level::Warn,
            "the request ended before any of its body reached the gate; hint: if every held call with a body ends so, set \
             allow_on_headers_stop_iteration: true in the wasm filter's configuration",
        ),
        Gone::WhileAsking => (
            log::Level::Info,
            "the request ended while the control plane was asked",
        ),
        Gone::WhileSending => (log::Level::Info, "the request ended before it was whole"),
        Gone::WhileWaiting(_) => (
            log::Level::Info,
            "the request ended while it waited; a decision is kept for the next one that is identical",
        ),
    };
    let mut line = format!(
        "decision=abandoned listener={:?} rule={:?} why={why:?}",
        listener.name, held_by.rule_name
    );
    if let Gone::WhileWaiting(id) = gone {
        line.push_str(&format!(" approval_id={id} status=PENDING"));
    }
    log_at(level, line)
}

pub(super) fn refused(
    listener: &Listener,
    rule_name: &str,
    denial: &Denial,
    fault: Option<&PlaneFault>,
) -> [Effect; 2] {
    let mut line = format!(
        "decision=refused listener={:?} rule={rule_name:?} reason={}",
        listener.name,
        denial.label()
    );
    let (id, status) = denial.approval().unwrap_or_default();
    let is_about_one = matches!(denial.reason(), Reason::Approval { .. }) || !id.is_empty();
    if is_about_one {
        let id = if id.is_empty() { "-" } else { id };
        line.push_str(&format!(
            " approval_id={id} status={}",
            status.unwrap_or("-")
        ));
    }
    if let Some(fault) = fault {
        line.push_str(&format!(" control_plane={:?}", fault.to_string()));
    }
    let level = match denial.reason() {
        Reason::Internal => log::Level::Error,
        Reason::NoApprovalRule
        | Reason::NotChecked { .. }
        | Reason::NotFiled
        | Reason::RedactionKeyMissing
        | Reason::RouteMetadata
        | Reason::TooManyWaiting => log::Level::Warn,
        Reason::AmbiguousBody
        | Reason::AmbiguousHeader
        | Reason::AmbiguousPath
        | Reason::AmbiguousQuery
        | Reason::Approval { .. }
        | Reason::BodyTooLarge
        | Reason::DenyRule
        | Reason::HoldTimeout { .. }
        | Reason::Malformed
        | Reason::MalformedCall
        | Reason::MessageTooLarge
        | Reason::MessageUnreadable
        | Reason::RepeatedMessage
        | Reason::StreamingDenied
        | Reason::TooManyMessages
        | Reason::Upgrade => log::Level::Info,
    };
    [log_at(level, line), note(denial.label(), rule_name, id)]
}

/// What would have happened, had the listener enforced its policy.
pub(super) fn observed(listener: &Listener, rule_name: &str, outcome: &'static str) -> [Effect; 2] {
    let line = format!(
        "decision=observed listener={:?} rule={rule_name:?} would={outcome}",
        listener.name
    );
    [
        log_at(log::Level::Info, line),
        note("observed", rule_name, ""),
    ]
}

fn note(outcome: &'static str, rule: &str, approval_id: &str) -> Effect {
    Effect::Note(Note {
        outcome,
        rule: rule.to_owned(),
        approval_id: approval_id.to_owned(),
    })
}

const fn log_at(level: log::Level, line: String) -> Effect {
    Effect::Log { level, line }
}
