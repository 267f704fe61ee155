//! How releases ended, told to the Control Plane until it has taken it, or its deadline will do.

use super::{Errand, Order, counted, failed};
use crate::approval::ApprovalId;
use crate::control_plane::{
    ControlPlane, PendingSettlement, PlaneAnswer, PlaneFault, Settlement, read_settlement,
};

/// A settlement that the Control Plane is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settling {
    id: ApprovalId,
    pending: PendingSettlement,
    settlement: Settlement,
    tries: usize,
}

/// Settlements that the plane has not taken, and when each is told again.
#[derive(Debug)]
pub(super) struct Settlements(Vec<(u64, Settling)>);

impl Settlements {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// When one of them is told again.
    pub fn next(&self) -> Option<u64> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    pub fn answered(
        &mut self,
        settling: Settling,
        answer: Result<PlaneAnswer, PlaneFault>,
        now: u64,
    ) -> Vec<Order> {
        let Err(fault) = answer.and_then(|answer| read_settlement(&answer)) else {
            return Vec::new();
        };
        let mut orders = failed(&fault, "settle");
        // The plane has said what stands; telling it again would change nothing.
        let is_final = matches!(
            fault,
            PlaneFault::Status {
                status: 400..=499,
                ..
            }
        );
        // If the plane took the word and its answer was lost, the approval may be in flight again for somebody else: a second word
        // that does not say which release it is about would give that one back.
        let may_end_another =
            settling.settlement == Settlement::Returned && settling.pending.release_id.is_none();
        let wait = AGAIN_MS.get(settling.tries).copied();
        match wait.filter(|_| !is_final && !may_end_another) {
            Some(wait) => self.0.push((now.saturating_add(wait), settling)),
            None => {
                let line = format!(
                    "settle=failed approval_id={} outcome={} why=\"the control plane spends at its deadline what nobody settles\"",
                    settling.id,
                    settling.settlement.word()
                );
                orders.push(Order::Log(log::Level::Warn, line));
            }
        }
        orders
    }

    /// Tells again what is due.
    pub fn again(&mut self, plane: &ControlPlane, now: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        for (at, mut settling) in std::mem::take(&mut self.0) {
            if at <= now {
                settling.tries = settling.tries.saturating_add(1);
                orders.extend(tell(plane, settling));
            } else {
                self.0.push((at, settling));
            }
        }
        orders
    }
}

/// The order to settle a release.
#[must_use]
pub fn settle(
    plane: &ControlPlane,
    id: &ApprovalId,
    pending: &PendingSettlement,
    settlement: Settlement,
) -> Vec<Order> {
    let settling = Settling {
        id: id.clone(),
        pending: pending.clone(),
        settlement,
        tries: 0,
    };
    tell(plane, settling)
}

fn tell(plane: &ControlPlane, settling: Settling) -> Vec<Order> {
    let release_id = settling.pending.release_id.as_deref();
    let call = plane.settle(&settling.id, release_id, settling.settlement);
    counted(vec![Order::Call(call, Errand::Settle(settling))])
}

/// How long to wait before each new try to settle. The plane takes the same settlement of the same release twice without harm.
const AGAIN_MS: [u64; 3] = [1_000, 5_000, 30_000];
