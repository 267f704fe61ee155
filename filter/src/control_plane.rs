//! The Control Plane as the gate sees it: calls out, answers in. The only module that knows the plane's JSON.
//!
//! Only [`read_filing`] and [`read_claim`] can make a [`Release`], and only from an answer that says `forward: true` beside a canonical
//! id: a dead plane, which Envoy answers for with a 503 of its own, can never look like the plane's word.

mod answers;
mod calls;

pub use answers::{
    ApprovalView, Filing, ListFault, PendingSettlement, PlaneAnswer, PlaneFault, ReadFault,
    Release, read_approval, read_claim, read_filing, read_handshake, read_list, read_settlement,
    read_views,
};
pub use calls::{ControlPlane, Credential, CredentialUnfit, FilingRequest, PlaneCall, Settlement};
