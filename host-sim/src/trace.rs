//! What passed between host and guest: each callback and each host function, in order and counted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// How the ABI was used. Counting is always on; the ordered list only where it was asked for, since it grows with every call.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    recording: bool,
    entries: Vec<Entry>,
    counts: BTreeMap<(&'static str, &'static str), u64>,
}

/// Where two traces part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} was {before:?} and is now {after:?}")]
pub struct Difference {
    /// The line, counted from 1.
    pub line: usize,
    /// What the saved trace says there; `None` where it has ended.
    pub before: Option<String>,
    /// What this trace says there; `None` where it has ended.
    pub after: Option<String>,
}

/// One call over the border.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The host called the guest.
    Callback {
        /// The export.
        name: &'static str,
        /// Its arguments, the context first.
        arguments: Vec<u64>,
    },
    /// The guest called the host.
    Hostcall {
        /// The import.
        name: &'static str,
        /// Its arguments as numbers; text is shown where the function takes any.
        arguments: String,
        /// What it answered: a status, or for WASI an error number.
        answer: String,
    },
    /// The guest came back from a callback.
    Returned {
        /// The export.
        name: &'static str,
        /// What it returned, if it returns anything.
        value: Option<u64>,
    },
    /// The guest trapped in a callback.
    Trapped {
        /// The export.
        name: &'static str,
    },
}

impl Trace {
    /// The calls in order; empty unless recording was asked for.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How often `hostcall` was called during `callback`.
    pub fn count(&self, callback: &str, hostcall: &str) -> u64 {
        let same = |(key, _): &(&(&'static str, &'static str), &u64)| **key == (callback, hostcall);
        self.counts.iter().find(same).map_or(0, |(_, count)| *count)
    }

    /// How often each host function was called in each callback.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.counts
            .iter()
            .map(|((callback, hostcall), count)| (*callback, *hostcall, *count))
    }

    /// How many host functions were called in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Writes the printed form to a file, to be compared with a later run or looked at.
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        std::fs::write(path, self.to_string())
    }

    /// Compares with a saved trace, and tells the first line that differs.
    pub fn compare(&self, saved: &str) -> Result<(), Difference> {
        let now = self.to_string();
        let (mut saved, mut now) = (saved.lines(), now.lines());
        for line in 1.. {
            let (before, after) = (saved.next(), now.next());
            if before != after {
                return Err(Difference {
                    line,
                    before: before.map(str::to_owned),
                    after: after.map(str::to_owned),
                });
            }
            if before.is_none() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn record(&mut self) {
        self.recording = true;
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        if self.recording {
            self.entries.push(entry);
        }
    }

    pub(crate) fn counted(&mut self, callback: &'static str, hostcall: &'static str) {
        *self.counts.entry((callback, hostcall)).or_default() += 1;
    }
}

/// One line for each call, host functions indented below the callback that made them. Two runs of the same scenario print the
/// same text, so a saved trace can be compared with `diff`.
impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(formatter, "{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Callback { name, arguments } => {
                let arguments: Vec<_> = arguments.iter().map(u64::to_string).collect();
                write!(formatter, "{name}({})", arguments.join(", "))
            }
            Entry::Hostcall {
                name,
                arguments,
                answer,
            } => {
                write!(formatter, "  {name}({arguments}) -> {answer}")
            }
            Entry::Returned {
                name,
                value: Some(value),
            } => write!(formatter, "{name} -> {value}"),
            Entry::Returned { name, value: None } => write!(formatter, "{name} returned"),
            Entry::Trapped { name } => write!(formatter, "{name} trapped"),
        }
    }
}
