//! The closed list of counters. Names follow Prometheus; the adapter defines and increments them, the core only says
//! which one counts. An operator reads them under Envoy's `/stats` as `wasmcustom.<name>`.

/// Kinds of failure of a Control Plane call that an operator would tell apart, since each has another cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneFailure {
    /// An answer that is not the plane's word.
    BadAnswer,
    /// The credential was not taken.
    Credential,
    /// The plane said no: an unknown rule, a statement too large, too many that wait, a fault of its own.
    Refused,
    /// No answer in time.
    TimedOut,
    /// No connection, no healthy host, a reset.
    Unreachable,
}

/// How many requests are held now, under Envoy's `/stats` as a gauge. A VM that crashes takes its share with it only when Envoy
/// restarts.
pub const HELD_GAUGE: &str = "hoop_filter_requests_held";

/// How many waits of the approval tools there are now, as a gauge beside it.
pub const MCP_WAITS_GAUGE: &str = "hoop_filter_mcp_waits";

/// A counter of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// A request that no holding or denying rule met.
    Passed,
    /// A held request that ended before it was decided: its client left, or Envoy's time for it ran out.
    Abandoned,
    /// A statement that was newly filed; asking again for the same one does not count.
    Filed,
    /// A held request that went on after an approval.
    Released,
    /// An approval that was spent although its request did not run: the client had left.
    SpentNotRun,
    /// An approval that was given back because the upstream did not accept its request.
    Returned,
    /// A request that a rule would have held; `enforcement` is `observe`.
    ObservedHold,
    /// A request that would have been refused; `enforcement` is `observe`.
    ObservedRefusal,
    /// A refusal because nobody has decided yet.
    RefusedPending,
    /// A refusal because nobody decided in the time that a request is held.
    RefusedHoldTimeout,
    /// A refusal because a person said no, or took a yes back.
    RefusedRejected,
    /// A refusal because the approval's time ran out.
    RefusedExpired,
    /// A refusal because the approval was used before.
    RefusedUsed,
    /// A refusal because the Control Plane did not release the statement, for a reason that this version does not know.
    RefusedNotReleased,
    /// A refusal by a rule whose action is `deny`.
    RefusedDenyRule,
    /// A refusal because a body that a rule looks into has more than one reading.
    RefusedAmbiguousBody,
    /// A refusal because a header that a rule looks at has more parts than can be told apart.
    RefusedAmbiguousHeader,
    /// A refusal because the path has more than one reading.
    RefusedAmbiguousPath,
    /// A refusal because a query parameter that a rule looks at has more than one reading.
    RefusedAmbiguousQuery,
    /// A refusal because the body is larger than `max_body_bytes`.
    RefusedBodyTooLarge,
    /// A refusal because a gRPC message cannot be read.
    RefusedUnreadableMessage,
    /// A refusal because a gRPC client sends more messages than are taken: more than one where the listener takes no streams, too many
    /// at once, or the same one twice.
    RefusedStreaming,
    /// A refusal because the route names no approval rule, so that nobody could approve.
    RefusedNoApprovalRule,
    /// A refusal because the request cannot be read as one request: a missing or repeated `:method` or `:path`.
    RefusedMalformed,
    /// A refusal because the Control Plane could not be asked or gave no answer that can be trusted.
    RefusedPlaneFault,
    /// A refusal because the Control Plane lets no more approval requests wait.
    RefusedTooManyWaiting,
    /// A refusal of an upgrade or CONNECT that a rule would hold: what follows it cannot be read.
    RefusedUpgrade,
    /// A refusal because a query secret cannot be bound to the approval without a key.
    RefusedRedactionKey,
    /// A refusal because a rule looks at metadata of the route that are no text.
    RefusedRouteMetadata,
    /// A request that the reserved path answered.
    ReservedPathAnswered,
    /// A request to the approval tools that was answered, be it with an error of the protocol.
    McpAnswered,
    /// A request to the approval tools that was refused by its head: another path, method, host, origin or content type.
    McpRefused,
    /// A call sent to the Control Plane.
    PlaneCalls,
    /// A call to the Control Plane that failed, of any kind.
    PlaneFailures,
    /// One of them: an answer that is not the plane's word.
    PlaneBadAnswers,
    /// One of them: the credential was not taken.
    PlaneCredentialFailures,
    /// One of them: the plane said no.
    PlaneRefusals,
    /// One of them: no answer in time.
    PlaneTimeouts,
    /// One of them: no connection, no healthy host, a reset.
    PlaneUnreachable,
    /// A state that should not exist; the stream was refused.
    Internal,
}

impl Counter {
    /// All counters, in the order of their declaration.
    pub const ALL: [Self; 40] = [
        Self::Passed,
        Self::Abandoned,
        Self::Filed,
        Self::Released,
        Self::SpentNotRun,
        Self::Returned,
        Self::ObservedHold,
        Self::ObservedRefusal,
        Self::RefusedPending,
        Self::RefusedHoldTimeout,
        Self::RefusedRejected,
        Self::RefusedExpired,
        Self::RefusedUsed,
        Self::RefusedNotReleased,
        Self::RefusedDenyRule,
        Self::RefusedAmbiguousBody,
        Self::RefusedAmbiguousHeader,
        Self::RefusedAmbiguousPath,
        Self::RefusedAmbiguousQuery,
        Self::RefusedBodyTooLarge,
        Self::RefusedUnreadableMessage,
        Self::RefusedStreaming,
        Self::RefusedNoApprovalRule,
        Self::RefusedMalformed,
        Self::RefusedPlaneFault,
        Self::RefusedTooManyWaiting,
        Self::RefusedUpgrade,
        Self::RefusedRedactionKey,
        Self::RefusedRouteMetadata,
        Self::ReservedPathAnswered,
        Self::McpAnswered,
        Self::McpRefused,
        Self::PlaneCalls,
        Self::PlaneFailures,
        Self::PlaneBadAnswers,
        Self::PlaneCredentialFailures,
        Self::PlaneRefusals,
        Self::PlaneTimeouts,
        Self::PlaneUnreachable,
        Self::Internal,
    ];

    /// What a failed call counts: the failure, and its kind.
    #[must_use]
    pub const fn of_failure(kind: PlaneFailure) -> [Self; 2] {
        let kind = match kind {
            PlaneFailure::BadAnswer => Self::PlaneBadAnswers,
            PlaneFailure::Credential => Self::PlaneCredentialFailures,
            PlaneFailure::Refused => Self::PlaneRefusals,
            PlaneFailure::TimedOut => Self::PlaneTimeouts,
            PlaneFailure::Unreachable => Self::PlaneUnreachable,
        };
        [Self::PlaneFailures, kind]
    }

    /// The counter's name in the host.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "hoop_filter_requests_passed_total",
            Self::Abandoned => "hoop_filter_requests_abandoned_total",
            Self::Filed => "hoop_filter_approvals_filed_total",
            Self::Released => "hoop_filter_requests_released_total",
            Self::SpentNotRun => "hoop_filter_approvals_spent_not_run_total",
            Self::Returned => "hoop_filter_approvals_returned_total",
            Self::ObservedHold => "hoop_filter_observed_holds_total",
            Self::ObservedRefusal => "hoop_filter_observed_refusals_total",
            Self::RefusedPending => "hoop_filter_refused_pending_total",
            Self::RefusedHoldTimeout => "hoop_filter_refused_hold_timeout_total",
            Self::RefusedRejected => "hoop_filter_refused_rejected_total",
            Self::RefusedExpired => "hoop_filter_refused_expired_total",
            Self::RefusedUsed => "hoop_filter_refused_used_total",
            Self::RefusedNotReleased => "hoop_filter_refused_not_released_total",
            Self::RefusedDenyRule => "hoop_filter_refused_deny_rule_total",
            Self::RefusedAmbiguousBody => "hoop_filter_refused_ambiguous_body_total",
            Self::RefusedAmbiguousHeader => "hoop_filter_refused_ambiguous_header_total",
            Self::RefusedAmbiguousPath => "hoop_filter_refused_ambiguous_path_total",
            Self::RefusedAmbiguousQuery => "hoop_filter_refused_ambiguous_query_total",
            Self::RefusedBodyTooLarge => "hoop_filter_refused_body_too_large_total",
            Self::RefusedUnreadableMessage => "hoop_filter_refused_unreadable_message_total",
            Self::RefusedStreaming => "hoop_filter_refused_streaming_total",
            Self::RefusedNoApprovalRule => "hoop_filter_refused_no_approval_rule_total",
            Self::RefusedMalformed => "hoop_filter_refused_malformed_total",
            Self::RefusedPlaneFault => "hoop_filter_refused_plane_fault_total",
            Self::RefusedTooManyWaiting => "hoop_filter_refused_too_many_waiting_total",
            Self::RefusedUpgrade => "hoop_filter_refused_upgrade_total",
            Self::RefusedRedactionKey => "hoop_filter_refused_redaction_key_total",
            Self::RefusedRouteMetadata => "hoop_filter_refused_route_metadata_total",
            Self::ReservedPathAnswered => "hoop_filter_reserved_path_answered_total",
            Self::McpAnswered => "hoop_filter_mcp_answered_total",
            Self::McpRefused => "hoop_filter_mcp_refused_total",
            Self::PlaneCalls => "hoop_filter_plane_calls_total",
            Self::PlaneFailures => "hoop_filter_plane_failures_total",
            Self::PlaneBadAnswers => "hoop_filter_plane_bad_answers_total",
            Self::PlaneCredentialFailures => "hoop_filter_plane_credential_failures_total",
            Self::PlaneRefusals => "hoop_filter_plane_refusals_total",
            Self::PlaneTimeouts => "hoop_filter_plane_timeouts_total",
            Self::PlaneUnreachable => "hoop_filter_plane_unreachable_total",
            Self::Internal => "hoop_filter_internal_total",
        }
    }
}
