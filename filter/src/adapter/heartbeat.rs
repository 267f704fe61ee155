//! The heartbeat that shows this Envoy as connected: one call about once a minute however many workers there are. Source:
//! contract 1.8.
//!
//! Workers agree by a lease in the data that the VMs of a process share.

use std::cell::Cell;

use super::hostcalls;
use crate::control_plane::{PlaneAnswer, PlaneFault, read_handshake};

#[derive(Debug)]
pub(super) struct Heartbeat {
    next: Cell<u64>,
}

impl Heartbeat {
    pub fn new(now: u64) -> Self {
        hostcalls::offer_lease(LEASE);
        Self {
            next: Cell::new(now.saturating_add(FIRST_MS)),
        }
    }

    /// When to look again.
    pub const fn next(&self) -> u64 {
        self.next.get()
    }

    /// Whether this VM is the one that sends now.
    pub fn is_due(&self, now: u64) -> bool {
        if now < self.next.get() {
            return false;
        }
        // Spread by what the clock happens to show, so that many Envoys do not beat as one.
        let jitter = now.checked_rem(JITTER_MS).unwrap_or_default();
        self.next
            .set(now.saturating_add(SHORTEST_MS).saturating_add(jitter));
        hostcalls::take_lease(LEASE, SHORTEST_MS)
    }

    pub fn answered(answer: Result<PlaneAnswer, PlaneFault>) {
        if let Err(fault) = answer.and_then(|answer| read_handshake(&answer)) {
            log::warn!("heartbeat=failed control_plane={:?}", fault.to_string());
        }
    }
}

const LEASE: &str = "hoop_filter.heartbeat";
const FIRST_MS: u64 = 100;
const SHORTEST_MS: u64 = 48_000;
const JITTER_MS: u64 = 24_000;
