//! Waits that their clients have given up, told from one worker to all: the notice comes on a connection of its own, which another
//! worker may serve. A short list in the data that the VMs of a process share holds the last of them.

use std::cell::Cell;

use super::hostcalls;

/// What this VM has read of the list.
#[derive(Debug)]
pub(super) struct Cancellations {
    seen: Cell<u64>,
}

impl Cancellations {
    /// Begins with what is still to come.
    pub fn new() -> Self {
        let (list, _) = hostcalls::shared_numbers(LIST);
        Self {
            seen: Cell::new(list.first().copied().unwrap_or_default()),
        }
    }

    /// Tells the other workers.
    pub fn tell(&self, key: u64) {
        for _ in 0..TRIES {
            let (list, version) = hostcalls::shared_numbers(LIST);
            let count = list.first().copied().unwrap_or_default();
            let last = list.iter().skip(1).take(KEPT.saturating_sub(1)).copied();
            let newest = [count.saturating_add(1), key];
            let list: Vec<u64> = newest.into_iter().chain(last).collect();
            if hostcalls::share_numbers(LIST, &list, version) {
                return;
            }
        }
        log::debug!("a wait that was given up could not be told to the other workers");
    }

    /// What was told since the last look.
    pub fn news(&self) -> Vec<u64> {
        let (list, _) = hostcalls::shared_numbers(LIST);
        let count = list.first().copied().unwrap_or_default();
        let new = count.saturating_sub(self.seen.replace(count));
        let new = usize::try_from(new).unwrap_or(usize::MAX);
        list.into_iter().skip(1).take(new).collect()
    }
}

/// A count of all, then the newest first.
const LIST: &str = "hoop_filter.cancelled";
const KEPT: usize = 256;
/// Another worker may write at the same time.
const TRIES: usize = 4;
