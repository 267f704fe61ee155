//! What becomes of a request, by its head alone or with its body. Files nothing and collects nothing.

use super::grpc_call::GrpcCall;
use crate::denial::{Denial, Reason};
use crate::identity::Surroundings;
use crate::listener::Listener;
use crate::policy::{Doubt, Hold, RouteMetadata, Subject, Verdict};
use crate::request::RequestHead;
use crate::request::mode::Mode;
use crate::statement::{Statement, redacted_target};

/// A judgement.
#[derive(Debug)]
pub(super) enum Judgement {
    /// It waits for a person.
    Hold(HeldBy, Shown),
    /// What happens depends on the body; this rule looks into it.
    NeedsBody { rule_name: String },
    /// Nothing stands against it.
    Pass,
    /// It must not run.
    Refuse { rule_name: String, denial: Denial },
}

/// The rule that holds a request.
#[derive(Debug)]
pub(crate) struct HeldBy {
    pub rule_name: String,
    pub approval_rule: String,
    pub message: String,
    pub mode: Mode,
}

/// What a person is shown of a request.
#[derive(Debug)]
pub(super) enum Shown {
    /// A method and its message.
    Grpc(Box<GrpcCall>),
    /// The request line, and the bytes of the body.
    Http(RequestLine),
}

impl Shown {
    /// The statement of a request with this whole body.
    ///
    /// # Errors
    ///
    /// Why the request has to be refused.
    pub fn statement(&self, body: &[u8]) -> Result<Statement, Reason> {
        match self {
            Self::Grpc(call) => call.statement_of(body),
            Self::Http(line) => Ok(Statement::http(&line.method, &line.target, body)),
        }
    }
}

/// What a person is shown before the body.
#[derive(Debug)]
pub(super) struct RequestLine {
    pub method: Vec<u8>,
    /// The target with its query credentials redacted.
    pub target: Vec<u8>,
}

/// Judges a request; `body` is `None` while it is not there.
pub(super) fn judge(
    listener: &Listener,
    head: &RequestHead,
    body: Option<&[u8]>,
    surroundings: &dyn Surroundings,
) -> Judgement {
    let subject = Subject {
        head,
        body,
        route: &Route(surroundings),
    };
    match listener.policy.decide(&subject) {
        Verdict::Pass => Judgement::Pass,
        Verdict::Ambiguous { rule, doubt } => Judgement::Refuse {
            rule_name: rule.name.clone(),
            denial: Denial::by_policy(reason_of(doubt)),
        },
        Verdict::Deny { rule, message } => Judgement::Refuse {
            rule_name: rule.name.clone(),
            denial: Denial::new(message.to_owned(), Reason::DenyRule),
        },
        Verdict::NeedsBody { rule } => {
            let rule_name = rule.name.clone();
            // Behind an upgrade comes no body that could be read.
            if head.leaves_http {
                let denial = Denial::by_policy(Reason::Upgrade);
                return Judgement::Refuse { rule_name, denial };
            }
            Judgement::NeedsBody { rule_name }
        }
        Verdict::RequireApproval(hold) => held(listener, head, hold),
    }
}

fn held(listener: &Listener, head: &RequestHead, hold: Hold<'_>) -> Judgement {
    match shown(listener, head, &hold) {
        Ok((approval_rule, shown)) => {
            let held_by = HeldBy {
                rule_name: hold.rule_name.to_owned(),
                approval_rule,
                message: hold.message.to_owned(),
                // A client may choose how it waits, not whether.
                mode: head.wish.mode().unwrap_or(hold.mode),
            };
            Judgement::Hold(held_by, shown)
        }
        Err(reason) => Judgement::Refuse {
            rule_name: hold.rule_name.to_owned(),
            denial: Denial::new(hold.message.to_owned(), reason),
        },
    }
}

fn shown(
    listener: &Listener,
    head: &RequestHead,
    hold: &Hold<'_>,
) -> Result<(String, Shown), Reason> {
    let approval_rule = hold.approval_rule.as_deref();
    let approval_rule = approval_rule.ok_or(Reason::NoApprovalRule)?.to_owned();
    if head.leaves_http {
        return Err(Reason::Upgrade);
    }
    if let Some(call) = GrpcCall::of(head, &listener.grpc, listener.max_body_bytes)? {
        return Ok((approval_rule, Shown::Grpc(Box::new(call))));
    }
    let target = head.target.as_deref().ok_or(Reason::Malformed)?;
    let target = redacted_target(
        target,
        &listener.sensitive_names,
        listener.redaction_key.as_ref(),
    );
    let line = RequestLine {
        method: head.method.clone(),
        target: target.map_err(|_missing| Reason::RedactionKeyMissing)?,
    };
    Ok((approval_rule, Shown::Http(line)))
}

const fn reason_of(doubt: Doubt) -> Reason {
    match doubt {
        Doubt::Body => Reason::AmbiguousBody,
        Doubt::Header => Reason::AmbiguousHeader,
        Doubt::PathOrHost => Reason::AmbiguousPath,
        Doubt::Query => Reason::AmbiguousQuery,
        Doubt::RouteMetadata => Reason::RouteMetadata,
    }
}

/// The route as the policy asks about it.
struct Route<'s>(&'s dyn Surroundings);

impl RouteMetadata for Route<'_> {
    fn value(&self, namespace: &str, key: &str) -> Option<Vec<u8>> {
        self.0.route_metadata(namespace, key)
    }
}
