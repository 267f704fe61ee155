//! What all held requests of a VM share: one read of the Control Plane's list per interval, and a claim for what it shows as
//! approved. Source: design 6.
//!
//! A driver tells it who waits for which approval, lets it [`Poller::tick`] when [`Poller::next_tick`] says so, and brings the
//! answers back. It learns nothing of requests: a [`Watcher`] is a number, and what it is told is a [`News`].
//!
//! Only a claim releases. A claim is made once per approval however many wait for it, and its release goes to one of them. A poller
//! that only reads asks in the same places where another claims: once per approval, for all that wait for it.

mod approval_watch;
mod reading;
mod settlements;

use crate::approval::{ApprovalId, SpendOn, Status};
use crate::control_plane::{
    ControlPlane, Filing, ListFault, PlaneAnswer, PlaneCall, PlaneFault, Release, read_claim,
    read_list, read_views,
};
use crate::event::News;
use crate::identity::Correlation;
use crate::limits;
use crate::metrics::{Counter, PlaneFailure};
use crate::table::Table;
use approval_watch::ApprovalWatch;
use settlements::Settlements;
pub use settlements::{Settling, settle};

/// Who waits; the driver's number of a stream.
pub type Watcher = u32;

/// What the poller wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Send a call and bring its answer back with the errand.
    Call(PlaneCall, Errand),
    /// Add one to a counter.
    Count(Counter),
    /// Write a line to the operator's log.
    Log(log::Level, String),
    /// A claim has released for somebody who has gone.
    Nobody(Release),
    /// Tell who waits; the watch is over.
    Tell(Watcher, News),
}

/// What a call of the poller was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// A claim of this approval.
    Claim(ApprovalId),
    /// A read of the list, or of the part of it that stands so.
    List(Option<Shown>),
    /// A read of this approval.
    Read(ApprovalId),
    /// The settlement of a release.
    Settle(Settling),
}

/// A status by which the list is read where it holds more than one answer can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What a claim would release: read most often.
    Approved,
    /// Used.
    Executed,
    /// Lapsed.
    Expired,
    /// Decided against.
    Rejected,
    /// Taken back.
    Revoked,
}

impl Shown {
    /// The status word of the contract.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::Executed => "EXECUTED",
            Self::Expired => "EXPIRED",
            Self::Rejected => "REJECTED",
            Self::Revoked => "REVOKED",
        }
    }
}

/// What is read in turn while the whole list does not show all that is waited for. Approvals come every other time, so that a
/// release is never far; the others only end waits.
const TURNS: [Option<Shown>; 10] = [
    Some(Shown::Approved),
    None,
    Some(Shown::Approved),
    Some(Shown::Rejected),
    Some(Shown::Approved),
    Some(Shown::Expired),
    Some(Shown::Approved),
    Some(Shown::Revoked),
    Some(Shown::Approved),
    Some(Shown::Executed),
];

/// What a poller asks about an approval that has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// For its release: held calls wait for it.
    Claims,
    /// How it stands: somebody only wants to know.
    Reads,
}

/// The poller of one VM. Times are milliseconds of any one clock.
#[derive(Debug)]
pub struct Poller {
    interval_ms: u64,
    asks: Asks,
    /// Who waits for what.
    watchers: Table<Watcher, ApprovalId>,
    /// Until when those would have waited whose time was ended.
    hurried: Table<Watcher, u64>,
    approvals: Table<ApprovalId, ApprovalWatch>,
    list: List,
    /// Place in [`TURNS`].
    turn: usize,
    /// When the next of those that the list does not show is claimed.
    next_rotation: u64,
    unsettled: Settlements,
}

/// How the list is read.
#[derive(Clone, Copy, Debug)]
enum List {
    /// A read is under way since then.
    Asked { at: u64 },
    /// The next read is due then.
    Due { at: u64 },
    /// The plane has no list; each approval is claimed by itself, and the list is tried again then.
    Missing { retry_at: u64 },
}

impl Poller {
    /// A poller that reads the list once per interval while somebody waits.
    #[must_use]
    pub const fn new(interval_ms: u64, asks: Asks) -> Self {
        Self {
            interval_ms,
            asks,
            watchers: Table::new(),
            hurried: Table::new(),
            approvals: Table::new(),
            list: List::Due { at: 0 },
            turn: 0,
            next_rotation: 0,
            unsettled: Settlements::new(),
        }
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.watchers.len()
    }

    /// Begins a watch that ends by itself after `budget_ms`. With `settles_later` the release is not to spend the approval, whatever
    /// the listener says.
    pub fn watch(
        &mut self,
        watcher: Watcher,
        id: ApprovalId,
        budget_ms: u64,
        settles_later: bool,
        now: u64,
    ) {
        if self.watchers.is_empty() && matches!(self.list, List::Due { .. }) {
            self.list = List::Due {
                at: now.saturating_add(self.interval_ms),
            };
        }
        let deadline = now.saturating_add(budget_ms);
        self.approvals.change(
            id.clone(),
            || ApprovalWatch::new(now),
            |approval| {
                approval.settles_later |= settles_later;
                approval.deadlines.insert(watcher, deadline);
            },
        );
        self.watchers.insert(watcher, id);
    }

    /// Ends the time of a watch.
    pub fn hurry(&mut self, watcher: Watcher, now: u64) {
        let id = self.watchers.get(&watcher);
        let watch = id.and_then(|id| self.approvals.get_mut(id));
        if let Some(deadline) = watch.and_then(|watch| watch.deadlines.get_mut(&watcher))
            && *deadline > now
        {
            self.hurried.insert(watcher, *deadline);
            *deadline = now;
        }
    }

    /// Ends a watch whose watcher has gone.
    pub fn unwatch(&mut self, watcher: Watcher) {
        self.hurried.remove(&watcher);
        let Some(id) = self.watchers.remove(&watcher) else {
            return;
        };
        if let Some(approval) = self.approvals.get_mut(&id) {
            approval.deadlines.remove(&watcher);
            if approval.is_over() {
                self.approvals.remove(&id);
            }
        }
    }

    /// When to tick next; `None` while nothing is to be done.
    #[must_use]
    pub fn next_tick(&self) -> Option<u64> {
        let settlement = self.unsettled.next().into_iter();
        settlement.chain(self.next_look()).min()
    }

    fn next_look(&self) -> Option<u64> {
        let deadlines = self
            .waited_for()
            .filter_map(|(_, watch)| watch.next_deadline());
        let listing = match self.list {
            List::Asked { .. } => None,
            List::Due { at } => Some(at),
            List::Missing { retry_at } => {
                let claims = self.waited_for().map(|(_, watch)| watch.next_claim());
                claims.chain([retry_at]).min()
            }
        };
        let hidden = self.next_hidden().map(|(_, watch)| watch.next_claim());
        let hidden = hidden.map(|at| at.max(self.next_rotation));
        self.waited_for().next()?;
        deadlines.chain(listing).chain(hidden).min()
    }

    /// Does what is due.
    #[must_use]
    pub fn tick(&mut self, plane: &ControlPlane, now: u64) -> Vec<Order> {
        let mut orders = self.unsettled.again(plane, now);
        if self.asks == Asks::Reads {
            orders.extend(self.end_reads(now));
        }
        if self.waited_for().next().is_none() {
            return orders;
        }
        if let List::Missing { retry_at } = self.list
            && retry_at <= now
        {
            self.list = List::Due { at: now };
        }
        let is_missing = matches!(self.list, List::Missing { .. });
        let asks = self.asks;
        // Before a wait ends it asks once more: the decision may have come since the last read.
        for (id, watch) in self.approvals.iter_mut() {
            let over = watch
                .next_deadline()
                .is_some_and(|deadline| deadline <= now);
            let claims_itself = is_missing && watch.next_claim() <= now && watch.is_waited_for();
            if (over || claims_itself) && watch.may_claim() {
                orders.extend(ask(asks, plane, id, watch, now));
            }
        }
        // One in turn, so that the plane sees few calls however many the list does not show.
        let hidden = self
            .next_hidden()
            .filter(|(_, watch)| watch.next_claim() <= now);
        if self.next_rotation <= now
            && let Some(id) = hidden.map(|(id, _)| id.clone())
            && let Some(watch) = self.approvals.get_mut(&id)
        {
            self.next_rotation = now.saturating_add(limits::CLAIM_INTERVAL_MS);
            orders.extend(ask(self.asks, plane, &id, watch, now));
        }
        if let List::Due { at } = self.list
            && at <= now
        {
            self.list = List::Asked { at: now };
            let shown = self.next_read();
            let call = plane.list(shown.map(Shown::word));
            orders.extend(counted(vec![Order::Call(call, Errand::List(shown))]));
        }
        orders
    }

    /// Takes the answer to a call.
    #[must_use]
    pub fn answered(
        &mut self,
        plane: &ControlPlane,
        errand: Errand,
        answer: Result<PlaneAnswer, PlaneFault>,
        now: u64,
    ) -> Vec<Order> {
        match errand {
            Errand::Claim(id) => self.claimed(&id, answer, now),
            Errand::List(shown) => self.listed(plane, shown, answer, now),
            Errand::Read(id) => self.read(&id, answer, now),
            Errand::Settle(settling) => self.unsettled.answered(settling, answer, now),
        }
    }

    fn listed(
        &mut self,
        plane: &ControlPlane,
        shown: Option<Shown>,
        answer: Result<PlaneAnswer, PlaneFault>,
        now: u64,
    ) -> Vec<Order> {
        let asked_at = match self.list {
            List::Asked { at } => at,
            List::Due { .. } | List::Missing { .. } => now,
        };
        let answer = answer.map_err(ListFault::from);
        let is_whole = shown.is_none();
        let read = answer.and_then(|answer| match self.asks {
            Asks::Claims => {
                let entries = read_list(&answer)?;
                self.list_was_read(asked_at, is_whole, now);
                Ok(self.shown(plane, entries, is_whole, now))
            }
            Asks::Reads => {
                let (views, _) = read_views(&answer)?;
                self.list_was_read(asked_at, is_whole, now);
                Ok(self.viewed(views, is_whole, asked_at, now))
            }
        });
        match read {
            Ok(orders) => {
                if shown == Some(Shown::Approved) && !orders.is_empty() {
                    // There may be more of them than one answer holds.
                    self.turn = 0;
                }
                orders
            }
            Err(ListFault::NoRoute) => {
                self.list = List::Missing {
                    retry_at: now.saturating_add(limits::LIST_RETRY_MS),
                };
                let line = match self.asks {
                    Asks::Claims => {
                        "poll=claims why=\"the control plane does not list approvals for this sidecar; each held call claims its own\""
                    }
                    Asks::Reads => {
                        "poll=reads why=\"the control plane does not list approvals for this sidecar; each one that is waited for is read by itself\""
                    }
                };
                vec![Order::Log(log::Level::Warn, line.to_owned())]
            }
            Err(ListFault::Plane(fault)) => {
                self.list = List::Due {
                    at: now.saturating_add(self.interval_ms),
                };
                let mut orders = failed(&fault, "list");
                for (watcher, id) in std::mem::take(&mut self.watchers) {
                    if let Some(watch) = self.approvals.get_mut(&id) {
                        watch.deadlines.remove(&watcher);
                    }
                    orders.push(Order::Tell(watcher, News::NotChecked));
                }
                self.approvals.retain(|_, watch| !watch.is_over());
                orders
            }
        }
    }

    /// The next read is due an interval after this one began. What the whole list does not go on to show is hidden.
    fn list_was_read(&mut self, asked_at: u64, is_whole: bool, now: u64) {
        let at = asked_at.saturating_add(self.interval_ms).max(now);
        self.list = List::Due { at };
        if is_whole {
            for (_, watch) in self.approvals.iter_mut() {
                watch.is_hidden = watch.since <= asked_at;
            }
        }
    }

    /// The whole list as long as it shows all that is waited for; then its parts in turn.
    fn next_read(&mut self) -> Option<Shown> {
        if !self.waited_for().any(|(_, watch)| watch.is_hidden) {
            self.turn = 0;
            return None;
        }
        let shown = TURNS.get(self.turn).copied().flatten();
        let next = self.turn.saturating_add(1);
        self.turn = next.checked_rem(TURNS.len()).unwrap_or_default();
        shown
    }

    /// Goes through a list. What the whole list does not show, though it was asked for after the watch had begun, is hidden.
    fn shown(
        &mut self,
        plane: &ControlPlane,
        entries: Vec<(ApprovalId, Status)>,
        is_whole: bool,
        now: u64,
    ) -> Vec<Order> {
        let mut orders = Vec::new();
        for (id, status) in entries {
            let Some(watch) = self.approvals.get_mut(&id) else {
                continue;
            };
            watch.is_hidden &= !is_whole;
            match status {
                Status::Approved => {
                    if watch.believes_the_list(now) {
                        watch.on_the_lists_word = true;
                        orders.extend(ask(self.asks, plane, &id, watch, now));
                    }
                }
                Status::Pending | Status::Processing => {}
                // A claim under way may just have spent it for one of them.
                Status::Executed if !watch.may_claim() => {}
                Status::Executed
                | Status::Expired
                | Status::Rejected
                | Status::Revoked
                | Status::Unknown(_) => orders.extend(self.tell_all(&id, &status)),
            }
        }
        orders
    }

    fn claimed(
        &mut self,
        id: &ApprovalId,
        answer: Result<PlaneAnswer, PlaneFault>,
        now: u64,
    ) -> Vec<Order> {
        let claimed_at = self
            .approvals
            .get_mut(id)
            .and_then(|watch| watch.claimed_at.take())
            .unwrap_or_default();
        let orders = match answer.and_then(|answer| read_claim(&answer, id)) {
            Ok(Filing::Released(release)) => self.released(id, release),
            Ok(Filing::Held {
                status: Status::Pending | Status::Processing,
                ..
            }) => {
                if let Some(watch) = self.approvals.get_mut(id)
                    && std::mem::take(&mut watch.on_the_lists_word)
                {
                    watch.contradicted_at = Some(now);
                }
                self.end_holds(id, claimed_at)
            }
            Ok(Filing::Held { status, .. }) => self.tell_all(id, &status),
            Err(fault) => {
                let mut orders = failed(&fault, "claim");
                for watcher in self.take_watchers(id) {
                    orders.push(Order::Tell(watcher, News::NotChecked));
                }
                orders
            }
        };
        if self.approvals.get(id).is_some_and(ApprovalWatch::is_over) {
            self.approvals.remove(id);
        }
        orders
    }

    /// The release goes to the one that has waited longest. The others stay where the plane may still give it back.
    fn released(&mut self, id: &ApprovalId, release: Release) -> Vec<Order> {
        let first = self
            .approvals
            .get(id)
            .and_then(ApprovalWatch::longest_waiting);
        let Some(first) = first else {
            return vec![Order::Nobody(release)];
        };
        let spent = release.pending().is_none();
        self.unwatch(first);
        let mut orders = vec![Order::Tell(first, News::Released(release))];
        if spent {
            orders.extend(self.tell_all(id, &Status::Executed));
        }
        orders
    }

    /// The budget bounds when a claim starts, so only those end whose time was over by then.
    fn end_holds(&mut self, id: &ApprovalId, claimed_at: u64) -> Vec<Order> {
        let watch = self.approvals.get(id);
        let over = watch.map(|watch| watch.over_at(claimed_at));
        let mut orders = Vec::new();
        for watcher in over.unwrap_or_default() {
            self.unwatch(watcher);
            orders.push(Order::Tell(watcher, News::TimeOver));
        }
        orders
    }

    fn tell_all(&mut self, id: &ApprovalId, status: &Status) -> Vec<Order> {
        let mut orders = Vec::new();
        for watcher in self.take_watchers(id) {
            orders.push(Order::Tell(watcher, News::Stands(status.clone())));
        }
        orders
    }

    fn take_watchers(&mut self, id: &ApprovalId) -> Vec<Watcher> {
        let Some(watch) = self.approvals.get_mut(id) else {
            return Vec::new();
        };
        let mut watchers = Vec::new();
        for (watcher, _) in std::mem::take(&mut watch.deadlines) {
            self.watchers.remove(&watcher);
            watchers.push(watcher);
        }
        if watch.is_over() {
            self.approvals.remove(id);
        }
        watchers
    }

    fn waited_for(&self) -> impl Iterator<Item = (&ApprovalId, &ApprovalWatch)> {
        let all = self.approvals.iter();
        all.filter(|(_, watch)| watch.is_waited_for())
    }

    /// Whose turn it is among those that the list does not show.
    fn next_hidden(&self) -> Option<(&ApprovalId, &ApprovalWatch)> {
        if matches!(self.list, List::Missing { .. }) {
            return None;
        }
        let hidden = self.waited_for();
        hidden
            .filter(|(_, watch)| watch.is_hidden && watch.may_claim())
            .min_by_key(|(_, watch)| watch.next_claim())
    }
}

fn ask(
    asks: Asks,
    plane: &ControlPlane,
    id: &ApprovalId,
    watch: &mut ApprovalWatch,
    now: u64,
) -> Vec<Order> {
    watch.claimed_at = Some(now);
    watch.asked_at = now;
    if asks == Asks::Reads {
        let call = plane.read(id, &Correlation::default());
        return counted(vec![Order::Call(call, Errand::Read(id.clone()))]);
    }
    let spend_on = if watch.settles_later {
        SpendOn::Accepted
    } else {
        plane.spend_on()
    };
    counted(vec![Order::Call(
        plane.claim(id, spend_on),
        Errand::Claim(id.clone()),
    )])
}

/// Counts each call of the orders.
fn counted(mut orders: Vec<Order>) -> Vec<Order> {
    let calls = orders
        .iter()
        .filter(|order| matches!(order, Order::Call(..)))
        .count();
    orders.extend(std::iter::repeat_with(|| Order::Count(Counter::PlaneCalls)).take(calls));
    orders
}

/// Counters and log line of a call that failed.
fn failed(fault: &PlaneFault, what: &str) -> Vec<Order> {
    failed_as(fault.kind(), &fault.to_string(), what)
}

fn failed_as(kind: PlaneFailure, fault: &str, what: &str) -> Vec<Order> {
    let line = format!("poll={what}_failed control_plane={fault:?}");
    let mut orders: Vec<Order> = Counter::of_failure(kind)
        .into_iter()
        .map(Order::Count)
        .collect();
    orders.push(Order::Log(log::Level::Warn, line));
    orders
}

#[cfg(test)]
mod tests;
