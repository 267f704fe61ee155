//! Owns what time it is; `Plane::open` takes the system's clock, tests hand in one they move. It must not know
//! what a deadline means.

use std::{
    fmt,
    sync::atomic::{AtomicI64, Ordering},
};

use time::{OffsetDateTime, UtcDateTime, format_description::well_known::Rfc3339};

/// Whole seconds since 1970 UTC. What is stored, compared and shown is one number, so a deadline is enforced
/// at exactly the second that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant this many seconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_sec(unix_sec: i64) -> Self {
        Self(unix_sec)
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    pub const fn unix_sec(self) -> i64 {
        self.0
    }

    /// This instant and `seconds` more.
    pub const fn plus_sec(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(seconds as i64))
    }
}

/// RFC 3339 in UTC, with `Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = UtcDateTime::from_unix_timestamp(self.0)
            .ok()
            .and_then(|at| at.format(&Rfc3339).ok());
        // Out of RFC 3339's years only for a database that was edited by hand.
        out.write_str(text.as_deref().unwrap_or("9999-12-31T23:59:59Z"))
    }
}

/// Where the plane reads the time from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present second.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(OffsetDateTime::now_utc().unix_timestamp())
    }
}

/// A clock that stands until it is moved, so that a test reaches a deadline without waiting for it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub const fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.0))
    }

    /// Moves the clock on.
    pub fn advance_sec(&self, seconds: u32) {
        self.0.fetch_add(i64::from(seconds), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_rfc_3339_in_utc() {
        assert_eq!(
            Timestamp::from_unix_sec(1_700_000_000).to_string(),
            "2023-11-14T22:13:20Z"
        );
    }

    #[test]
    fn a_time_beyond_the_calendar_is_still_a_time() {
        assert_eq!(
            Timestamp::from_unix_sec(i64::MAX).to_string(),
            "9999-12-31T23:59:59Z"
        );
    }
}
