//! Moments of a run that others wait for, so that an upstream answers late without a clock.
//!
//! An upstream that is told `after=sent` answers once the client's pieces are all read, `after=gone` once the host has let go of a
//! client that hung up, `after=/path` once the answer to `/path` was read, and `after=log:text` once the host's log holds the text.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::wait;

/// What has happened in the current exchange. Clones share it.
#[derive(Clone)]
pub(super) struct Moments {
    happened: Arc<Mutex<HashSet<String>>>,
    log: PathBuf,
}

impl Moments {
    /// Nothing has happened; the host writes its log to `log`.
    pub(super) fn new(log: &Path) -> Moments {
        Moments {
            happened: Arc::default(),
            log: log.to_owned(),
        }
    }

    /// Forgets the last exchange.
    pub(super) fn start_over(&self) {
        self.happened.lock().expect("no holder panicked").clear();
    }

    /// Notes that `moment` has come.
    pub(super) fn note(&self, moment: &str) {
        let mut happened = self.happened.lock().expect("no holder panicked");
        happened.insert(moment.to_owned());
    }

    /// Waits until `moment` has come.
    pub(super) fn wait_for(&self, moment: &str) {
        match moment.strip_prefix("log:") {
            Some(text) => self.wait_for_line(text, 1),
            None => wait::blocking(moment, || {
                let happened = self.happened.lock().expect("no holder panicked");
                happened.contains(moment).then_some(())
            }),
        }
    }

    /// Waits until `times` lines of the host's log hold `text`.
    pub(super) fn wait_for_line(&self, text: &str, times: usize) {
        wait::blocking(&format!("{times} lines of the log with {text:?}"), || {
            let log = std::fs::read(&self.log).ok()?;
            let log = String::from_utf8_lossy(&log).into_owned();
            let found = log.lines().filter(|line| line.contains(text)).count();
            (found >= times).then_some(())
        });
    }
}
