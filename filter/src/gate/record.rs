//! One structured log line per decision (logfmt). It names rules, the approval and the reason, never what the client
//! sent.

use super::HeldBy;
use crate::approval::ApprovalId;
use crate::control_plane::PlaneFault;
use crate::denial::{Denial, Reason};
use crate::effect::Effect;
use crate::listener::Listener;

pub(super) fn released(listener: &Listener, held_by: &HeldBy, id: &ApprovalId) -> Effect {
    Effect::Log {
        level: log::Level::Info,
        line: format!(
            "decision=released listener={:?} rule={:?} approval_rule={:?} approval_id={id}",
            listener.name, held_by.rule_name, held_by.approval_rule
        ),
    }
}

/// When a held request was given up.
#[derive(Clone, Copy)]
pub(super) enum Gone {
    BeforeBody,
    WhileAsking,
    WhileSending,
}

pub(super) fn abandoned(listener: &Listener, held_by: &HeldBy, gone: Gone) -> Effect {
    let (level, why) = match gone {
        Gone::BeforeBody => (
            log::Level::Warn,
            "the request ended before any of its body reached the gate; hint: if every held call with a body ends so, set \
             allow_on_headers_stop_iteration: true in the wasm filter's configuration",
        ),
        Gone::WhileAsking => (
            log::Level::Warn,
            "the request ended while the control plane was asked; if it was released just then, its approval is spent and it \
             did not run",
        ),
        Gone::WhileSending => (log::Level::Info, "the request ended before it was whole"),
    };
    let line = format!(
        "decision=abandoned listener={:?} rule={:?} why={why:?}",
        listener.name, held_by.rule_name
    );
    Effect::Log { level, line }
}

pub(super) fn refused(
    listener: &Listener,
    rule_name: &str,
    denial: &Denial,
    fault: Option<&PlaneFault>,
) -> Effect {
    let mut line = format!(
        "decision=refused listener={:?} rule={rule_name:?} reason={}",
        listener.name,
        denial.label()
    );
    if let Reason::Approval { id, status } = denial.reason() {
        let id = id.as_ref().map_or("-", |id| id.as_str());
        line.push_str(&format!(
            " approval_id={id} status={}",
            status.word().unwrap_or("-")
        ));
    }
    if let Some(fault) = fault {
        line.push_str(&format!(" control_plane={:?}", fault.to_string()));
    }
    let level = match denial.reason() {
        Reason::Internal => log::Level::Error,
        Reason::NoApprovalRule | Reason::NotFiled | Reason::RedactionKeyMissing => log::Level::Warn,
        Reason::AmbiguousBody
        | Reason::AmbiguousPath
        | Reason::AmbiguousQuery
        | Reason::Approval { .. }
        | Reason::BodyTooLarge
        | Reason::DenyRule
        | Reason::Malformed
        | Reason::Upgrade => log::Level::Info,
    };
    Effect::Log { level, line }
}
