//! One statement on its way: filed with the Control Plane, then released or refused. Knows nothing of requests and
//! bodies.

use crate::control_plane::{
    ControlPlane, Filing, PlaneAnswer, PlaneCall, PlaneFault, Release, read_filing,
};
use crate::denial::Reason;
use crate::statement::Statement;

/// A statement that was filed and whose answer is awaited.
#[derive(Debug)]
pub struct Filed(());

/// How an approval request ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The statement does not run.
    Refused {
        /// What the client is told.
        reason: Reason,
        /// What the operator is told, where the Control Plane is at fault.
        fault: Option<PlaneFault>,
    },
    /// The statement runs once.
    Released(Release),
}

/// Files a statement: the call to send, and the state that takes its answer.
#[must_use]
pub fn file(
    plane: &ControlPlane,
    listener_name: &str,
    approval_rule: &str,
    statement: &Statement,
) -> (Filed, PlaneCall) {
    (
        Filed(()),
        plane.file(listener_name, approval_rule, statement),
    )
}

impl Filed {
    /// Takes the answer. Every fault refuses.
    #[must_use]
    pub fn answered(self, answer: Result<PlaneAnswer, PlaneFault>) -> Outcome {
        match answer.and_then(|answer| read_filing(&answer)) {
            Ok(Filing::Released(release)) => Outcome::Released(release),
            Ok(Filing::Held { id, status }) => Outcome::Refused {
                reason: Reason::Approval { id, status },
                fault: None,
            },
            Err(fault) => Outcome::Refused {
                reason: Reason::NotFiled,
                fault: Some(fault),
            },
        }
    }
}
