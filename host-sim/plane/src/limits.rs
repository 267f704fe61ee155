//! Owns every bound of the plane, each with its reason; all modules read it. It must not know what the
//! bounds are applied to beyond their names.

use std::{ops::RangeInclusive, time::Duration};

/// Bytes of one statement: the contract's number (1.4), accepted at the border and refused one above.
pub(crate) const STATEMENT_MAX_BYTES: usize = 100_000;

/// Bytes of a request's body. A statement at its limit needs 133,336 in base64; the room above it lets a
/// statement that is too large be told so, instead of "the body is too large".
pub(crate) const BODY_MAX_BYTES: usize = 2 * 1024 * 1024;

/// Bytes of a listener's, rule's or group's name, so that a log line and an answer stay readable.
pub(crate) const NAME_MAX_BYTES: usize = 255;

/// Bytes of each value that describes a requester: the contract's number (1.4).
pub(crate) const REQUESTER_VALUE_MAX_BYTES: usize = 255;

/// Bytes of a requester's method: the contract's number (1.4).
pub(crate) const REQUESTER_METHOD_MAX_BYTES: usize = 64;

/// Bytes of a rejection's reason: a sentence or two, never a document.
pub(crate) const REJECTION_REASON_MAX_BYTES: usize = 1_000;

/// Seconds of both time limits of a rule: the contract's numbers (1.10).
pub(crate) const TTL_SEC: RangeInclusive<u32> = 60..=604_800;

/// Seconds that an approval may be in flight. Below the least a slow upstream would be counted as one that never answered;
/// above the most a dead gate would block its statement for days.
pub(crate) const PROCESSING_TTL_SEC: RangeInclusive<u32> = 60..=604_800;

/// The same where `plane.yaml` says nothing: longer than a gate lets its calls take, and than most routes do.
pub(crate) const PROCESSING_TTL_SEC_DEFAULT: u32 = 3_600;

/// What `plane.yaml` may say of how many reviews may wait, of one requester and in all. They are counted at each filing,
/// and above the most that would hold up every other one.
pub(crate) const WAITING: RangeInclusive<u32> = 1..=100_000;

/// How many may wait in all where `plane.yaml` says nothing: far more than people look through, and no burden to count.
pub(crate) const WAITING_DEFAULT: u32 = 5_000;

/// The same of one requester: a fifth of them, so that one alone does not fill the list.
pub(crate) const WAITING_PER_REQUESTER_DEFAULT: u32 = 1_000;

/// Bytes of an unknown word that are told back to whoever sent it.
pub(crate) const WORD_SHOWN_MAX_BYTES: usize = 64;

/// Bytes of a sidecar's version and revision.
pub(crate) const HANDSHAKE_VALUE_MAX_BYTES: usize = 255;

/// Bytes of what a sidecar says went wrong: a few sentences, never a document.
pub(crate) const HANDSHAKE_ERROR_MAX_BYTES: usize = 1_000;

/// Names of capabilities that are kept; the contract's examples are a handful.
pub(crate) const CAPABILITIES_MAX: usize = 64;

/// Bytes of one name of a capability.
pub(crate) const CAPABILITY_MAX_BYTES: usize = 64;

/// Seconds after its last word that a sidecar counts as connected: two heartbeats of at most 72 s (contract 1.8) and a
/// little.
pub(crate) const CONNECTED_WITHIN_SEC: u32 = 150;

/// Entries of one list: the contract's numbers (1.7).
pub(crate) const LIST_LIMIT: RangeInclusive<u32> = 1..=200;

/// Entries of a list that names no limit: one screen.
pub(crate) const LIST_LIMIT_DEFAULT: u32 = 20;

/// Bytes read of a token file; a token has 68.
pub(crate) const TOKEN_FILE_MAX_BYTES: u64 = 1_024;

/// Characters of a token after its prefix. 32 hex digits are the least that cannot be guessed.
pub(crate) const TOKEN_BODY_CHARS: RangeInclusive<usize> = 32..=256;

/// Connections that read. Readers never wait for the writer (WAL), so a few are plenty for one machine.
pub(crate) const READERS: u32 = 4;

/// How long a lock of another process (a backup, `sqlite3`) is waited for.
pub(crate) const DATABASE_BUSY: Duration = Duration::from_secs(10);

/// How long a request waits for its turn at the database; a sidecar gives up after 15 s (contract 1.1).
pub(crate) const DATABASE_TURN: Duration = Duration::from_secs(15);

/// How long open connections may finish after the order to stop.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Attempts at one filing: the contract retries its own insert race once (1.4).
pub(crate) const FILING_ATTEMPTS: u32 = 2;
