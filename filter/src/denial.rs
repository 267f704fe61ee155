//! Refusals: every reason a client can read, worded in one place. Source of the words: contract 3.5.
//!
//! A denial never holds the statement, the Control Plane's address or its error text.

mod grpc;
mod http;

use crate::approval::{ApprovalId, SafeToken, Status};
use crate::metrics::Counter;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The body has more than one reading under a denying or holding rule that looks into it.
    AmbiguousBody,
    /// A header has more parts than can be told apart, under a denying or holding rule that looks at it.
    AmbiguousHeader,
    /// The path has more than one reading under a denying or holding rule.
    AmbiguousPath,
    /// A query parameter has more than one reading under a denying or holding rule.
    AmbiguousQuery,
    /// The approval is not there to be used (yet, or any more).
    Approval {
        /// Its id; `None` where the plane named none that is safe to repeat.
        id: Option<SafeToken>,
        /// Where it stands.
        status: Status,
    },
    /// Nobody decided in the time that the request was held.
    HoldTimeout {
        /// The approval.
        id: ApprovalId,
        /// That time, in milliseconds.
        budget_ms: u64,
    },
    /// What became of the approval could not be asked.
    NotChecked {
        /// The approval.
        id: ApprovalId,
    },
    /// The body is larger than `max_body_bytes`: nobody could read all of it.
    BodyTooLarge,
    /// A rule says so; its text is the whole message.
    DenyRule,
    /// A state that should not exist.
    Internal,
    /// The request cannot be read as one request.
    Malformed,
    /// The request says that it is gRPC, and is none that a server would take.
    MalformedCall,
    /// A gRPC message, or its text, is larger than `max_body_bytes`: nobody could read all of it.
    MessageTooLarge,
    /// A gRPC message cannot be read: its framing or its compression is broken or unknown.
    MessageUnreadable,
    /// The route names no approval rule.
    NoApprovalRule,
    /// The approval request could not be filed.
    NotFiled,
    /// A query credential cannot be bound to the approval.
    RedactionKeyMissing,
    /// Two equal messages of a gRPC call would need one approval at a time.
    RepeatedMessage,
    /// More messages of gRPC came at once than are kept back.
    TooManyMessages,
    /// The client of a gRPC call sends more than one message, and the listener takes no such calls.
    StreamingDenied,
    /// The Control Plane lets no more approval requests wait.
    TooManyWaiting,
    /// A rule looks at metadata of the route that are no text.
    RouteMetadata,
    /// An upgrade or CONNECT under a holding rule.
    Upgrade,
}

/// What kind of client reads a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One of gRPC: a status and metadata.
    Grpc,
    /// One of HTTP: a status code, headers and a text.
    Http,
}

/// A refusal in a form-free shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The operator's first words.
    message: String,
    reason: Reason,
    /// Whether agents have the approval tools, so that the text can name one.
    names_the_tool: bool,
}

impl Denial {
    /// A refusal whose text begins with the operator's message.
    #[must_use]
    pub const fn new(message: String, reason: Reason) -> Self {
        Self {
            message,
            reason,
            names_the_tool: false,
        }
    }

    /// The same for clients that have the approval tools or do not: with them, the refusal of a call that waits names one.
    #[must_use]
    pub fn with_tools(self, names_the_tool: bool) -> Self {
        Self {
            names_the_tool,
            ..self
        }
    }

    /// A refusal that no rule's message belongs to.
    #[must_use]
    pub fn by_policy(reason: Reason) -> Self {
        Self::new("denied by policy".to_owned(), reason)
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> &Reason {
        &self.reason
    }

    /// The approval that the refusal is about, with its status where that is fit to be repeated.
    #[must_use]
    pub fn approval(&self) -> Option<(&str, Option<&str>)> {
        match &self.reason {
            Reason::Approval {
                id: Some(id),
                status,
            } => Some((id.as_str(), status.word())),
            Reason::HoldTimeout { id, .. } => Some((id.as_str(), Status::Pending.word())),
            Reason::NotChecked { id } => Some((id.as_str(), None)),
            Reason::AmbiguousBody
            | Reason::AmbiguousHeader
            | Reason::AmbiguousPath
            | Reason::AmbiguousQuery
            | Reason::Approval { id: None, .. }
            | Reason::BodyTooLarge
            | Reason::DenyRule
            | Reason::Internal
            | Reason::Malformed
            | Reason::MalformedCall
            | Reason::MessageTooLarge
            | Reason::MessageUnreadable
            | Reason::NoApprovalRule
            | Reason::NotFiled
            | Reason::RedactionKeyMissing
            | Reason::RouteMetadata
            | Reason::RepeatedMessage
            | Reason::StreamingDenied
            | Reason::TooManyMessages
            | Reason::TooManyWaiting
            | Reason::Upgrade => None,
        }
    }

    /// The text for a client, without a line feed at its end.
    #[must_use]
    pub fn text(&self) -> String {
        let message = &self.message;
        match &self.reason {
            Reason::DenyRule => message.clone(),
            Reason::Approval {
                id: Some(id),
                status: Status::Pending,
            } if self.names_the_tool => format!(
                "approval {}: waiting for approval; call the MCP tool approval_wait with the approval id, then resend the identical statement once it is approved ({message})",
                id.as_str()
            ),
            Reason::Approval {
                id: Some(id),
                status,
            } => {
                format!(
                    "{message}: {} (approval {})",
                    approval_words(status, true),
                    id.as_str()
                )
            }
            Reason::Approval { id: None, status } => {
                format!("{message}: {}", approval_words(status, false))
            }
            Reason::HoldTimeout { id, budget_ms } => format!(
                "{message}: still waiting for approval after {}; run the statement again once it is approved (approval {id})",
                written_duration(*budget_ms)
            ),
            Reason::NotChecked { id } => {
                format!("{message}: the approval request could not be checked (approval {id})")
            }
            Reason::AmbiguousPath => format!(
                "{message}: the request path or host can be read in more than one way; send it in its plain form, a path without empty, dot or \";\" segments, backslashes or encoded slashes"
            ),
            Reason::AmbiguousBody => format!(
                "{message}: the request body cannot be read in one way only, and a rule depends on it; send plain JSON in UTF-8 without a content-encoding, each key once and spelled and typed as the service documents it"
            ),
            Reason::AmbiguousHeader => format!(
                "{message}: a header that a rule depends on has too many parts or is too long to be compared; send fewer or shorter values"
            ),
            Reason::AmbiguousQuery => format!(
                "{message}: a query parameter can be read in more than one way; send it once, with its name in plain letters and its value encoded once"
            ),
            Reason::BodyTooLarge => format!(
                "{message}: the request body is larger than http.max_body_bytes, so an approver could not read all of it"
            ),
            Reason::Internal => format!("{message}: the gate could not judge this request"),
            Reason::Malformed => {
                format!("{message}: the request cannot be read as one HTTP request")
            }
            Reason::MalformedCall => format!(
                "{message}: the request says that it is gRPC and is no call that can be read; send a POST to /package.Service/Method with one content-type as gRPC has it"
            ),
            Reason::MessageTooLarge => format!(
                "{message}: the request message is larger than grpc.max_payload_bytes, so an approver could not read all of it"
            ),
            Reason::MessageUnreadable => format!(
                "{message}: the gRPC request message cannot be read; send whole messages, plain or compressed with gzip or deflate as grpc-encoding says"
            ),
            Reason::RepeatedMessage => format!(
                "{message}: the same message comes again before the approval of the one before is spent; send it in a call of its own, or once that one was answered"
            ),
            Reason::TooManyMessages => format!(
                "{message}: more messages came than can be kept back until they are approved; send fewer at a time"
            ),
            Reason::StreamingDenied => format!(
                "{message}: a call with more than one request message is not taken here; send one message per call"
            ),
            Reason::NoApprovalRule => {
                format!("{message}: the route names no approval rule, so nobody could approve")
            }
            Reason::NotFiled => format!("{message}: the approval request could not be filed"),
            Reason::RedactionKeyMissing => format!(
                "{message}: a query parameter carries a credential that this gate cannot bind to an approval; send it in a header"
            ),
            Reason::TooManyWaiting => format!(
                "{message}: too many approval requests are waiting for a decision; wait until some of them are decided"
            ),
            Reason::RouteMetadata => format!(
                "{message}: a rule looks at metadata of the route that are no text, so the gate cannot judge this request"
            ),
            Reason::Upgrade => {
                format!(
                    "{message}: a connection upgrade cannot be approved, because what follows it cannot be read"
                )
            }
        }
    }

    /// The counter that this refusal adds to.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        match self.reason {
            Reason::AmbiguousBody => Counter::RefusedAmbiguousBody,
            Reason::AmbiguousHeader => Counter::RefusedAmbiguousHeader,
            Reason::AmbiguousPath => Counter::RefusedAmbiguousPath,
            Reason::Approval { ref status, .. } => match status {
                Status::Pending => Counter::RefusedPending,
                Status::Rejected | Status::Revoked => Counter::RefusedRejected,
                Status::Executed => Counter::RefusedUsed,
                Status::Expired => Counter::RefusedExpired,
                Status::Approved | Status::Processing | Status::Unknown(_) => {
                    Counter::RefusedNotReleased
                }
            },
            Reason::HoldTimeout { .. } => Counter::RefusedHoldTimeout,
            Reason::NotChecked { .. } => Counter::RefusedPlaneFault,
            Reason::AmbiguousQuery => Counter::RefusedAmbiguousQuery,
            Reason::BodyTooLarge => Counter::RefusedBodyTooLarge,
            Reason::DenyRule => Counter::RefusedDenyRule,
            Reason::Internal => Counter::Internal,
            Reason::Malformed | Reason::MalformedCall => Counter::RefusedMalformed,
            Reason::MessageTooLarge => Counter::RefusedBodyTooLarge,
            Reason::MessageUnreadable => Counter::RefusedUnreadableMessage,
            Reason::RepeatedMessage | Reason::StreamingDenied | Reason::TooManyMessages => {
                Counter::RefusedStreaming
            }
            Reason::NoApprovalRule => Counter::RefusedNoApprovalRule,
            Reason::NotFiled => Counter::RefusedPlaneFault,
            Reason::RedactionKeyMissing => Counter::RefusedRedactionKey,
            Reason::RouteMetadata => Counter::RefusedRouteMetadata,
            Reason::TooManyWaiting => Counter::RefusedTooManyWaiting,
            Reason::Upgrade => Counter::RefusedUpgrade,
        }
    }

    /// One word for the operator's log, the same as in the name of the counter.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self.reason {
            Reason::AmbiguousBody => "ambiguous_body",
            Reason::AmbiguousHeader => "ambiguous_header",
            Reason::AmbiguousPath => "ambiguous_path",
            Reason::Approval { ref status, .. } => match status {
                Status::Pending => "pending",
                Status::Rejected | Status::Revoked => "rejected",
                Status::Executed => "used",
                Status::Expired => "expired",
                Status::Approved | Status::Processing | Status::Unknown(_) => "not_released",
            },
            Reason::HoldTimeout { .. } => "hold_timeout",
            Reason::NotChecked { .. } => "plane_fault",
            Reason::AmbiguousQuery => "ambiguous_query",
            Reason::BodyTooLarge => "body_too_large",
            Reason::DenyRule => "deny_rule",
            Reason::Internal => "internal",
            Reason::Malformed | Reason::MalformedCall => "malformed",
            Reason::MessageTooLarge => "body_too_large",
            Reason::MessageUnreadable => "unreadable_message",
            Reason::RepeatedMessage => "repeated_message",
            Reason::StreamingDenied => "streaming",
            Reason::TooManyMessages => "too_many_messages",
            Reason::NoApprovalRule => "no_approval_rule",
            Reason::NotFiled => "plane_fault",
            Reason::RedactionKeyMissing => "redaction_key",
            Reason::RouteMetadata => "route_metadata",
            Reason::TooManyWaiting => "too_many_waiting",
            Reason::Upgrade => "upgrade",
        }
    }
}

/// A duration as Go writes it (`30m0s`, `1.5s`), which is the contract's form.
fn written_duration(milliseconds: u64) -> String {
    let [hours, minutes] =
        [3_600_000, 60_000].map(|unit| milliseconds.checked_div(unit).unwrap_or_default());
    let minutes = minutes.checked_rem(60).unwrap_or_default();
    let rest = milliseconds.checked_rem(60_000).unwrap_or_default();
    let [whole, thousandths] =
        [rest.checked_div(1_000), rest.checked_rem(1_000)].map(Option::unwrap_or_default);
    let fraction = match thousandths {
        0 => String::new(),
        _ => format!(".{thousandths:03}")
            .trim_end_matches('0')
            .to_owned(),
    };
    match (hours, minutes) {
        (0, 0) if whole == 0 && thousandths > 0 => format!("{thousandths}ms"),
        (0, 0) => format!("{whole}{fraction}s"),
        (0, _) => format!("{minutes}m{whole}{fraction}s"),
        _ => format!("{hours}h{minutes}m{whole}{fraction}s"),
    }
}

fn approval_words(status: &Status, named: bool) -> &'static str {
    match status {
        Status::Pending if named => {
            "waiting for approval; resend the identical statement once it is approved"
        }
        Status::Pending => "waiting for approval",
        Status::Rejected => "the approval request was rejected",
        Status::Revoked => "the approval was revoked",
        Status::Executed => "the approval was already used",
        Status::Expired => {
            "the approval request expired; running the statement again files a new approval request"
        }
        Status::Approved | Status::Processing | Status::Unknown(_) => {
            "the statement was not released"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_as_the_contract_writes_it() {
        let table = [
            (0, "0s"),
            (250, "250ms"),
            (1_000, "1s"),
            (1_500, "1.5s"),
            (60_000, "1m0s"),
            (1_800_000, "30m0s"),
            (3_600_000, "1h0m0s"),
            (86_399_999, "23h59m59.999s"),
        ];
        for (milliseconds, text) in table {
            assert_eq!(written_duration(milliseconds), text);
        }
    }
}
