//! Owns what a review is to the rest of the plane, and the promises that every database behind it keeps; the API drives
//! it, `sqlite` keeps it. It must not know HTTP, tokens' texts or the configuration file.
//!
//! The promises:
//! - one statement has at most one live review (a partial unique index);
//! - every step of a life is one conditional write, and the count of rows it changed says who won;
//! - a deadline is compared inside that write, with the time read after the database was ours;
//! - each approval has at most one release in flight, and a word about another one settles nothing;
//! - no more reviews wait than the caps allow, of one caller and in all;
//! - reading changes nothing; what has lapsed reads as expired;
//! - what was answered is on the disk.

pub(crate) mod sqlite;

use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    lifecycle::{Refusal, SettleRefusal, Status},
    requester::Requester,
    tokens,
};

/// What a sidecar asks to have decided.
#[derive(Debug)]
pub(crate) struct Filing {
    pub(crate) listener_name: String,
    pub(crate) approval_rule: String,
    pub(crate) statement: Statement,
    pub(crate) requester: Option<Requester>,
    pub(crate) reviewers: Vec<String>,
    pub(crate) pending_ttl_sec: Option<u32>,
    pub(crate) approval_ttl_sec: Option<u32>,
    pub(crate) spend_on: SpendOn,
    pub(crate) caps: WaitingCaps,
}

/// How many reviews may wait for a person: pending ones within their deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingCaps {
    pub(crate) in_all: u32,
    pub(crate) per_caller: u32,
}

/// What uses an approval up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpendOn {
    /// The upstream's answer: until then it is in flight, and it can be given back.
    Accepted {
        /// Silence for so long counts as spent.
        settle_within_sec: u32,
    },
    /// The release itself.
    Release,
}

/// The exact bytes that were filed. It never prints them.
pub(crate) struct Statement(Vec<u8>);

impl Statement {
    pub(crate) const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Half of the matching key: SHA-256 of the exact bytes, nothing normalised.
    pub(crate) fn sha256(&self) -> String {
        tokens::hex(&Sha256::digest(&self.0))
    }
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("[redacted]")
    }
}

/// A review as it reads at one moment: `status` and `executed_at` already know the deadlines.
#[derive(Clone, Debug)]
pub(crate) struct Review {
    pub(crate) seq: i64,
    pub(crate) id: Uuid,
    pub(crate) session: Uuid,
    pub(crate) listener_name: String,
    pub(crate) approval_rule: String,
    pub(crate) status: Status,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) approval_ttl_sec: Option<u32>,
    pub(crate) decided_at: Option<Timestamp>,
    pub(crate) executed_at: Option<Timestamp>,
    pub(crate) rejection_reason: Option<String>,
    /// The last release, when it was one that is settled.
    pub(crate) release_id: Option<Uuid>,
    /// Until when the release in flight may be settled.
    pub(crate) settle_by: Option<Timestamp>,
}

/// A reviewer group of a review.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: Uuid,
    pub(crate) name: String,
}

/// What came of a filing.
#[derive(Debug)]
pub(crate) enum Filed {
    /// As it stands now.
    Asked(Box<Asked>),
    /// A new review would wait beyond a cap; there is none.
    Refused(Full),
}

/// The cap that a new review would go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The one of all callers together.
    InAll,
    /// The one of whoever asks.
    OfCaller,
}

/// The answer to a filing or a claim.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) review: Review,
    pub(crate) groups: Vec<Group>,
    pub(crate) outcome: Outcome,
    /// The earlier review of this statement that a deadline had ended, and how that was written down.
    pub(crate) lapsed: Option<(Uuid, Status)>,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It waits for a person from now on.
    Filed,
    /// The approval was used for this very request: the one yes that may run.
    Released {
        /// What settles it; `None` when there is nothing to settle, because the release has spent it.
        release_id: Option<Uuid>,
    },
    /// As it stands; nothing may run.
    Standing,
}

/// What came of settling.
#[derive(Debug)]
pub(crate) enum Settled {
    /// Nobody knows that review.
    Absent,
    /// It had been settled in just this way, and stands so.
    Before(Box<Asked>),
    /// It was not taken; the review stands as the refusal says.
    Refused(SettleRefusal),
    /// It was taken.
    Taken(Box<Asked>),
}

/// What a sidecar says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) version: String,
    pub(crate) applied_revision: Option<String>,
    pub(crate) last_outcome: Option<String>,
    pub(crate) last_error: Option<String>,
    /// Names without commas.
    pub(crate) capabilities: Vec<String>,
}

/// The last handshake of a sidecar, read at one moment.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) said: Handshake,
    pub(crate) at: Timestamp,
    pub(crate) now: Timestamp,
}

/// A review with what a person needs to decide it.
#[derive(Debug)]
pub(crate) struct Dossier {
    pub(crate) review: Review,
    pub(crate) statement: Statement,
    pub(crate) requester: Option<Requester>,
    /// How many earlier reviews of this listener, rule and statement were released.
    pub(crate) ran_before: i64,
}

/// What came of a decision.
#[derive(Debug)]
pub(crate) enum Decided {
    /// Nobody knows that review.
    Absent,
    /// It was not taken; the review stands as the refusal says.
    Refused(Refusal),
    /// It was taken.
    Taken(Box<Dossier>),
}

/// Why the database gave no answer. Whatever was asked either happened whole or not at all.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// The database failed, or its turn did not come in time.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// A row holds what this program never writes.
    #[error("the database holds an unknown {what}")]
    Foreign {
        /// Which value.
        what: &'static str,
    },
    /// Another writer filed the same statement first, each time.
    #[error("another writer won each attempt to file")]
    LostEveryRace,
}
