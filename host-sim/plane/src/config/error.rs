//! Owns every message about `plane.yaml`: the place, what was found, what is allowed and what to do. `config` makes
//! them. It must not know how the file is checked.

use thiserror::Error;

/// Why `plane.yaml` cannot be used. All of it is the operator's to mend; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name that is empty, padded, too long, or has control characters.
    #[error(
        "{origin}: {key} is {found:?}; allowed: 1 to 255 bytes without control characters and without spaces around \
         them\nhint: write a plain name such as billing-api"
    )]
    BadName {
        /// The file.
        origin: String,
        /// The place in it.
        key: String,
        /// What stands there.
        found: String,
    },
    /// A name that stood before in the same list.
    #[error(
        "{origin}: {key} is {found:?} a second time; allowed: each name once\nhint: rename or remove one of the two"
    )]
    DuplicateName {
        /// The file.
        origin: String,
        /// The place in it.
        key: String,
        /// What stands there.
        found: String,
    },
    /// A rule that nobody could decide.
    #[error(
        "{origin}: {key} is empty; allowed: at least one group name\nhint: name the group that decides, such as [billing]"
    )]
    NoReviewers {
        /// The file.
        origin: String,
        /// The place in it.
        key: String,
    },
    /// A time limit of the flight out of its range.
    #[error(
        "{origin}: processing_ttl_sec is {found}; allowed: 60 to 604800 seconds\nhint: take more than the longest call \
         may last; leave the key out for 3600"
    )]
    ProcessingTimeLimit {
        /// The file.
        origin: String,
        /// What stands there.
        found: u64,
    },
    /// Not YAML, or not the keys and types of this file.
    #[error(
        "{origin}: {problem}\nhint: the file has two lists: listeners (name, approval_rules) and approval_rules (name, \
         reviewers, pending_ttl_sec, approval_ttl_sec), and may have the numbers processing_ttl_sec, max_waiting and \
         max_waiting_per_requester"
    )]
    Syntax {
        /// The file.
        origin: String,
        /// The reader's words, with line and column.
        problem: String,
    },
    /// A time limit out of its range.
    #[error(
        "{origin}: {key} is {found}; allowed: 60 to 604800 seconds\nhint: leave the key out for no limit"
    )]
    TimeLimit {
        /// The file.
        origin: String,
        /// The place in it.
        key: String,
        /// What stands there.
        found: u64,
    },
    /// A listener that names a rule which is not there.
    #[error(
        "{origin}: {key} is {found:?}, and no approval rule has that name; allowed: {}\nhint: add the rule under \
         approval_rules, or name one of these",
        listed(.known)
    )]
    UnknownRule {
        /// The file.
        origin: String,
        /// The place in it.
        key: String,
        /// What stands there.
        found: String,
        /// The rules of this file.
        known: Vec<String>,
    },
    /// A number of reviews that may wait, out of its range.
    #[error(
        "{origin}: {key} is {found}; allowed: 1 to 100000\nhint: take what people can look through; leave the key out \
         for its default"
    )]
    WaitingLimit {
        /// The file.
        origin: String,
        /// The place in it.
        key: &'static str,
        /// What stands there.
        found: u64,
    },
    /// More of one requester than of all of them.
    #[error(
        "{origin}: max_waiting_per_requester is {max_waiting_per_requester} and max_waiting is {max_waiting}; allowed: at \
         most max_waiting\nhint: set both; without the key the one is 1000 and the other 5000"
    )]
    WaitingLimitsCrossed {
        /// The file.
        origin: String,
        /// What stands there, or the default.
        max_waiting: u32,
        /// The same.
        max_waiting_per_requester: u32,
    },
}

fn listed(known: &[String]) -> String {
    if known.is_empty() {
        return "none, because approval_rules is empty".to_owned();
    }
    known.join(", ")
}
