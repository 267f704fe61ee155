//! What a poller does for those who only want to know how an approval stands. The list tells all of them at once; an approval that it
//! does not show is read by itself, once for all that wait for it.

use std::rc::Rc;

use super::{Order, Poller, failed_as};
use crate::approval::{ApprovalId, Next};
use crate::control_plane::{ApprovalView, PlaneAnswer, PlaneFault, ReadFault, read_approval};
use crate::event::News;
use crate::limits;

impl Poller {
    /// Goes through a list that was asked for at `asked_at`.
    pub(super) fn viewed(
        &mut self,
        views: Vec<ApprovalView>,
        is_whole: bool,
        asked_at: u64,
        now: u64,
    ) -> Vec<Order> {
        let mut orders = Vec::new();
        for view in views {
            let Some(watch) = self.approvals.get_mut(&view.id) else {
                continue;
            };
            watch.is_hidden &= !is_whole;
            let view = Rc::new(view);
            if view.status.next() == Next::Wait {
                watch.seen = Some((asked_at, view));
            } else {
                let id = view.id.clone();
                orders.extend(self.tell_read(&id, &Ok(view), None, now));
            }
        }
        orders
    }

    /// Takes the answer to the read of one approval.
    pub(super) fn read(
        &mut self,
        id: &ApprovalId,
        answer: Result<PlaneAnswer, PlaneFault>,
        now: u64,
    ) -> Vec<Order> {
        let Some(watch) = self.approvals.get_mut(id) else {
            return Vec::new();
        };
        let asked_at = watch.claimed_at.take().unwrap_or_default();
        let read = answer.map_err(ReadFault::from);
        let read = read
            .and_then(|answer| read_approval(&answer, id))
            .map(Rc::new);
        // Here, once, and not for each that waits.
        let mut orders = match &read {
            Err(fault) => fault
                .kind()
                .map(|kind| failed_as(kind, &fault.to_string(), "read"))
                .unwrap_or_default(),
            Ok(_) => Vec::new(),
        };
        let over_at = match &read {
            Ok(view) if view.status.next() == Next::Wait => {
                watch.seen = Some((asked_at, Rc::clone(view)));
                Some(asked_at)
            }
            Ok(_) | Err(_) => None,
        };
        orders.extend(self.tell_read(id, &read, over_at, now));
        if self.approvals.get(id).is_some_and(|watch| watch.is_over()) {
            self.approvals.remove(id);
        }
        orders
    }

    /// Ends the waits whose time is over and whose approval was seen undecided not long ago: they cost no call of their own.
    pub(super) fn end_reads(&mut self, now: u64) -> Vec<Order> {
        // Where the list is read seldom, what it said is old by now.
        let of_late = self.interval_ms.saturating_mul(2);
        let fresh_from = now.saturating_sub(of_late.min(limits::SEEN_OF_LATE_MS));
        let mut over = Vec::new();
        for (id, watch) in self.waited_for() {
            if watch
                .next_deadline()
                .is_some_and(|deadline| deadline <= now)
                && let Some((asked_at, view)) = &watch.seen
                && *asked_at >= fresh_from
            {
                over.push((id.clone(), Rc::clone(view)));
            }
        }
        let mut orders = Vec::new();
        for (id, view) in over {
            orders.extend(self.tell_read(&id, &Ok(view), Some(now), now));
        }
        orders
    }

    /// Tells those that wait for an approval, or those of them whose time was over by `over_at`.
    fn tell_read(
        &mut self,
        id: &ApprovalId,
        read: &Result<Rc<ApprovalView>, ReadFault>,
        over_at: Option<u64>,
        now: u64,
    ) -> Vec<Order> {
        let Some(watch) = self.approvals.get(id) else {
            return Vec::new();
        };
        let mut orders = Vec::new();
        for (watcher, deadline) in watch.deadlines.clone() {
            if over_at.is_none_or(|at| deadline <= at) {
                let deadline = self.hurried.get(&watcher).copied().unwrap_or(deadline);
                self.unwatch(watcher);
                let left_ms = deadline.saturating_sub(now);
                let read = read.clone();
                orders.push(Order::Tell(watcher, News::Read { read, left_ms }));
            }
        }
        orders
    }
}
