//! One statement on its way: filed with the Control Plane, then released or refused. Knows nothing of requests and
//! bodies.

use crate::approval::{SafeToken, Status};
use crate::control_plane::{
    ControlPlane, Filing, PlaneAnswer, PlaneCall, PlaneFault, Release, read_filing,
};
use crate::statement::Statement;

/// A statement that was filed and whose answer is awaited.
#[derive(Debug)]
pub struct Filed(());

/// How an approval request ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Whether it was filed is not known; the statement does not run.
    Failed(PlaneFault),
    /// It is filed and not released; the statement does not run.
    Held {
        /// The approval; `None` where the plane named none that is safe to repeat.
        id: Option<SafeToken>,
        /// Where it stands.
        status: Status,
        /// Whether this filing made it.
        is_new: bool,
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
            Ok(Filing::Held { id, status, is_new }) => Outcome::Held { id, status, is_new },
            Err(fault) => Outcome::Failed(fault),
        }
    }
}
