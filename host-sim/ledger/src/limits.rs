//! Owns the bounds, each with its reason. Every module reads them. It must not know who keeps to them.

use std::time::Duration;

/// Postings in the books. A demo needs a few; a loop that goes wild shall not fill the memory.
pub(crate) const POSTINGS: usize = 100_000;

/// Letters of an account's name, so that a line of text holds it.
pub(crate) const ACCOUNT_LETTERS: usize = 64;

/// Letters of a memo, for the same reason.
pub(crate) const MEMO_LETTERS: usize = 200;

/// Bytes of an idempotency key, a label's name or its value: a uuid with a prefix, and room.
pub(crate) const NAME_BYTES: usize = 128;

/// Labels of one posting.
pub(crate) const LABELS: usize = 16;

/// Postings that one `Watch` sends.
pub(crate) const WATCHED: u32 = 1_000;

/// Calls that are remembered with their messages; older ones are only counted.
pub(crate) const CALLS_KEPT: usize = 4_096;

/// Messages that are remembered of one call; later ones are only counted.
pub(crate) const MESSAGES_KEPT: usize = 1_024;

/// Bytes of one message that the server reads, unless its owner says otherwise. gRPC's own default.
pub(crate) const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Answers of a stream that may wait for a slow reader.
pub(crate) const ANSWERS_WAITING: usize = 16;

/// How long connections may take to go after the last call was ended by a stop: enough for a peer that listens.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long the client tries to connect. What it calls runs on the same machine, as a rule.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
