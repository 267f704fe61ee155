//! Answers of a route itself, and the pace at which filters behind the guest let their bytes out.
//!
//! Source: `StreamRateLimiter` of Envoy's `source/extensions/filters/http/common/stream_rate_limiter.cc`.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Moment;

/// What a route answers by itself (`direct_response`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// How slowly the body goes on. `None` = at once.
    pub pace: Option<Pace>,
}

/// How Envoy's filters between the guest and the router let a body go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `response_rate_limit.fixed_limit.limit_kbps` of the filter `envoy.filters.http.fault`, in bytes.
    pub bytes_per_second: u32,
    /// A filter behind that one has added trailers (`enable_response_trailers` of `envoy.filters.http.bandwidth_limit`). They exist
    /// from the moment on at which the body begins to wait, so a guest that pauses and resumes sends its bytes, then the trailers:
    /// the answer ends there, and what is left of the body is dropped.
    pub ends_with_trailers: bool,
}

/// A body that goes on bit by bit.
#[derive(Clone, Debug)]
pub(crate) struct PacedBody {
    left: Bytes,
    pace: Pace,
    started: Moment,
    released: u64,
    /// When the next bytes are due.
    pub(crate) due: Moment,
}

impl PacedBody {
    /// The first bytes are due at once.
    pub(crate) fn new(body: Bytes, pace: Pace, now: Moment) -> PacedBody {
        PacedBody {
            left: body,
            pace,
            started: now,
            released: 0,
            due: now,
        }
    }

    /// The bytes that may go on at `now`, at least one; and whether they are the last.
    pub(crate) fn release(&mut self, now: Moment) -> (Bytes, bool) {
        let elapsed = now.since(self.started) + FILL_INTERVAL;
        let allowed = elapsed.as_nanos() * u128::from(self.pace.bytes_per_second) / NANOSECONDS;
        let due = u64::try_from(allowed).unwrap_or(u64::MAX);
        let count = due.saturating_sub(self.released).max(1);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let bytes = self.left.split_to(count.min(self.left.len()));
        self.released += bytes.len() as u64;
        self.due = now.after(FILL_INTERVAL);
        (bytes, self.left.is_empty())
    }

    pub(crate) fn ends_with_trailers(&self) -> bool {
        self.pace.ends_with_trailers
    }
}

/// Source: `StreamRateLimiter::fillIntervalMs` and its default of 50 ms.
const FILL_INTERVAL: Duration = Duration::from_millis(50);
const NANOSECONDS: u128 = 1_000_000_000;
