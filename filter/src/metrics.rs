//! The closed list of counters. Names follow Prometheus; the adapter defines and increments them, the core only says
//! which one counts. An operator reads them under Envoy's `/stats` as `wasmcustom.<name>`.

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
    /// A refusal because the approval is not (or no longer) there to be used.
    RefusedApproval,
    /// A refusal by a rule whose action is `deny`.
    RefusedDenyRule,
    /// A refusal because a body that a rule looks into has more than one reading.
    RefusedAmbiguousBody,
    /// A refusal because the path has more than one reading.
    RefusedAmbiguousPath,
    /// A refusal because a query parameter that a rule looks at has more than one reading.
    RefusedAmbiguousQuery,
    /// A refusal because the body is larger than `max_body_bytes`.
    RefusedBodyTooLarge,
    /// A refusal because the route names no approval rule, so that nobody could approve.
    RefusedNoApprovalRule,
    /// A refusal because the request cannot be read as one request: a missing or repeated `:method` or `:path`.
    RefusedMalformed,
    /// A refusal because the Control Plane could not be asked or gave no answer that can be trusted.
    RefusedPlaneFault,
    /// A refusal of an upgrade or CONNECT that a rule would hold: what follows it cannot be read.
    RefusedUpgrade,
    /// A refusal because a query secret cannot be bound to the approval without a key.
    RefusedRedactionKey,
    /// A request that the reserved path answered.
    ReservedPathAnswered,
    /// A call sent to the Control Plane.
    PlaneCalls,
    /// A call to the Control Plane that failed.
    PlaneFailures,
    /// A state that should not exist; the stream was refused.
    Internal,
}

impl Counter {
    /// All counters, in the order of their declaration.
    pub const ALL: [Self; 19] = [
        Self::Passed,
        Self::Abandoned,
        Self::Filed,
        Self::Released,
        Self::RefusedApproval,
        Self::RefusedDenyRule,
        Self::RefusedAmbiguousBody,
        Self::RefusedAmbiguousPath,
        Self::RefusedAmbiguousQuery,
        Self::RefusedBodyTooLarge,
        Self::RefusedNoApprovalRule,
        Self::RefusedMalformed,
        Self::RefusedPlaneFault,
        Self::RefusedUpgrade,
        Self::RefusedRedactionKey,
        Self::ReservedPathAnswered,
        Self::PlaneCalls,
        Self::PlaneFailures,
        Self::Internal,
    ];

    /// The counter's name in the host.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "hoop_filter_requests_passed_total",
            Self::Abandoned => "hoop_filter_requests_abandoned_total",
            Self::Filed => "hoop_filter_approvals_filed_total",
            Self::Released => "hoop_filter_requests_released_total",
            Self::RefusedApproval => "hoop_filter_refused_approval_total",
            Self::RefusedDenyRule => "hoop_filter_refused_deny_rule_total",
            Self::RefusedAmbiguousBody => "hoop_filter_refused_ambiguous_body_total",
            Self::RefusedAmbiguousPath => "hoop_filter_refused_ambiguous_path_total",
            Self::RefusedAmbiguousQuery => "hoop_filter_refused_ambiguous_query_total",
            Self::RefusedBodyTooLarge => "hoop_filter_refused_body_too_large_total",
            Self::RefusedNoApprovalRule => "hoop_filter_refused_no_approval_rule_total",
            Self::RefusedMalformed => "hoop_filter_refused_malformed_total",
            Self::RefusedPlaneFault => "hoop_filter_refused_plane_fault_total",
            Self::RefusedUpgrade => "hoop_filter_refused_upgrade_total",
            Self::RefusedRedactionKey => "hoop_filter_refused_redaction_key_total",
            Self::ReservedPathAnswered => "hoop_filter_reserved_path_answered_total",
            Self::PlaneCalls => "hoop_filter_plane_calls_total",
            Self::PlaneFailures => "hoop_filter_plane_failures_total",
            Self::Internal => "hoop_filter_internal_total",
        }
    }
}
