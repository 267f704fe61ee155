//! One approval that somebody waits for: who, until when, and when it was last asked about.

use std::rc::Rc;

use super::Watcher;
use crate::control_plane::ApprovalView;
use crate::limits;
use crate::table::Table;

#[derive(Debug)]
pub(super) struct ApprovalWatch {
    /// Who waits, until when.
    pub deadlines: Table<Watcher, u64>,
    /// When the first of them began.
    pub since: u64,
    /// When it was last claimed or, at first, when the watch began.
    pub asked_at: u64,
    /// When the claim that is under way was sent.
    pub claimed_at: Option<u64>,
    /// Whether the claim under way was made because a list had called it approved.
    pub on_the_lists_word: bool,
    /// When such a claim last found it undecided after all. The list is believed again only after a while.
    pub contradicted_at: Option<u64>,
    /// Whether whoever waits settles the release later, whatever the listener says.
    pub settles_later: bool,
    /// Whether the last list did not tell of it.
    pub is_hidden: bool,
    /// How it last stood while undecided, and when that was asked; only a poller that reads keeps it.
    pub seen: Option<(u64, Rc<ApprovalView>)>,
}

impl ApprovalWatch {
    pub const fn new(now: u64) -> Self {
        Self {
            deadlines: Table::new(),
            since: now,
            asked_at: now,
            claimed_at: None,
            on_the_lists_word: false,
            contradicted_at: None,
            settles_later: false,
            is_hidden: false,
            seen: None,
        }
    }

    pub fn is_waited_for(&self) -> bool {
        !self.deadlines.is_empty()
    }

    /// One claim at a time: two could spend two approvals' worth of luck, and one of them for nobody.
    pub const fn may_claim(&self) -> bool {
        self.claimed_at.is_none()
    }

    /// Whether a list's word that it is approved is worth a claim now.
    pub fn believes_the_list(&self, now: u64) -> bool {
        let again = |at: u64| at.saturating_add(limits::CLAIM_INTERVAL_MS) <= now;
        self.may_claim() && self.is_waited_for() && self.contradicted_at.is_none_or(again)
    }

    /// Nobody waits and no answer is to come.
    pub fn is_over(&self) -> bool {
        !self.is_waited_for() && self.may_claim()
    }

    /// The first deadline, unless a claim is under way that will answer for it.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.deadlines.values().copied();
        deadlines.min().filter(|_| self.may_claim())
    }

    pub const fn next_claim(&self) -> u64 {
        self.asked_at.saturating_add(limits::CLAIM_INTERVAL_MS)
    }

    /// Streams are numbered in the order in which they came.
    pub fn longest_waiting(&self) -> Option<Watcher> {
        self.deadlines.keys().next().copied()
    }

    pub fn over_at(&self, now: u64) -> Vec<Watcher> {
        let mut over = Vec::new();
        for (watcher, deadline) in self.deadlines.iter() {
            if *deadline <= now {
                over.push(*watcher);
            }
        }
        over
    }
}
