//! One statement on its way: filed with the Control Plane, then released, waited for or refused. Knows nothing of requests
//! and bodies.

use crate::approval::{ApprovalId, SafeToken, Status};
use crate::control_plane::{
    ControlPlane, Filing, FilingRequest, PlaneAnswer, PlaneCall, PlaneFault, Release, Settlement,
    read_filing,
};
use crate::effect::Effect;
use crate::metrics::Counter;
use crate::request::mode::Mode;

/// A statement that was filed and whose answer is awaited.
#[derive(Debug)]
pub struct Filed {
    mode: Mode,
}

/// What a filing has come to.
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
    /// The statement waits for what becomes of its approval.
    Waiting {
        /// The approval.
        id: ApprovalId,
        /// Whether this filing made it.
        is_new: bool,
    },
}

/// Files a statement: the call to send, and the state that takes its answer.
#[must_use]
pub fn file(plane: &ControlPlane, filing: &FilingRequest<'_>, mode: Mode) -> (Filed, PlaneCall) {
    (Filed { mode }, plane.file(filing))
}

/// Takes the answer to a filing whose stream has gone or was refused meanwhile: what it released, it released for nobody.
#[must_use]
pub fn answered_nobody(answer: Result<PlaneAnswer, PlaneFault>) -> Vec<Effect> {
    match answer.and_then(|answer| read_filing(&answer)) {
        Ok(Filing::Released(release)) => released_for_nobody(&release),
        Ok(Filing::Held { .. }) | Err(_) => Vec::new(),
    }
}

/// What a release is that found nobody: its approval is spent and nothing ran, or the plane gets it back.
#[must_use]
pub fn released_for_nobody(release: &Release) -> Vec<Effect> {
    let id = release.id();
    let Some(pending) = release.pending() else {
        let line = format!(
            "decision=spent_not_run approval_id={id} why=\"the request had ended while its approval was being spent\""
        );
        return vec![
            Effect::Count(Counter::SpentNotRun),
            Effect::Log {
                level: log::Level::Warn,
                line,
            },
        ];
    };
    let line = format!(
        "decision=returned approval_id={id} why=\"the request had ended before it could go on\""
    );
    vec![
        Effect::Count(Counter::Returned),
        Effect::Log {
            level: log::Level::Info,
            line,
        },
        Effect::Settle {
            id: id.clone(),
            pending: pending.clone(),
            settlement: Settlement::Returned,
        },
    ]
}

impl Filed {
    /// Takes the answer. Every fault refuses.
    #[must_use]
    pub fn answered(self, answer: Result<PlaneAnswer, PlaneFault>) -> Outcome {
        match answer.and_then(|answer| read_filing(&answer)) {
            Ok(Filing::Released(release)) => Outcome::Released(release),
            Ok(Filing::Held { id, status, is_new }) => match self.awaited(id.as_ref(), &status) {
                Some(id) => Outcome::Waiting { id, is_new },
                None => Outcome::Held { id, status, is_new },
            },
            Err(fault) => Outcome::Failed(fault),
        }
    }

    /// The approval that is worth waiting for. Only a canonical id can be asked about.
    fn awaited(&self, id: Option<&SafeToken>, status: &Status) -> Option<ApprovalId> {
        let undecided = matches!(status, Status::Pending | Status::Processing);
        let waits = self.mode == Mode::Hold && undecided;
        id.filter(|_| waits)
            .and_then(|id| ApprovalId::parse_canonical(id.as_str()))
    }
}
