//! Time: the machine's own, or one that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment, in nanoseconds since the clock was made. It never goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub(crate) u64);

impl Moment {
    /// The moment that comes `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Moment {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(nanoseconds))
    }

    /// How long it is from `earlier` to this moment; zero when it lies in the future.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// What time it is. Clones show the same clock.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real { start: Instant },
    Virtual(Arc<VirtualTime>),
}

#[derive(Debug)]
struct VirtualTime {
    /// Nanoseconds since the clock was made.
    elapsed: AtomicU64,
    /// Nanoseconds since 1970, at the start. A jump of the wall clock changes it.
    wall_start: AtomicU64,
}

impl Clock {
    /// The clock of this machine.
    pub fn real() -> Clock {
        Clock(Kind::Real {
            start: Instant::now(),
        })
    }

    /// A clock that stands still until it is moved, at the same wall time in each run.
    pub fn virtual_clock() -> Clock {
        Clock(Kind::Virtual(Arc::new(VirtualTime {
            elapsed: AtomicU64::new(0),
            wall_start: AtomicU64::new(VIRTUAL_START_NANOSECONDS),
        })))
    }

    /// Now.
    pub fn now(&self) -> Moment {
        match &self.0 {
            Kind::Real { start } => Moment::default().after(start.elapsed()),
            Kind::Virtual(time) => Moment(time.elapsed.load(Ordering::SeqCst)),
        }
    }

    /// Nanoseconds since 1970 as the wall clock shows them.
    pub fn wall_nanoseconds(&self) -> u64 {
        match &self.0 {
            Kind::Real { .. } => {
                let since = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            }
            Kind::Virtual(time) => {
                let elapsed = time.elapsed.load(Ordering::SeqCst);
                time.wall_start
                    .load(Ordering::SeqCst)
                    .saturating_add(elapsed)
            }
        }
    }

    /// Now, as the `date` header has it.
    pub(crate) fn http_date(&self) -> String {
        let since = Duration::from_nanos(self.wall_nanoseconds());
        httpdate::fmt_http_date(UNIX_EPOCH + since)
    }

    /// Moves a virtual clock to `moment`, or leaves it where that lies in the past. A real clock moves by itself.
    pub(crate) fn move_to(&self, moment: Moment) {
        if let Kind::Virtual(time) = &self.0 {
            time.elapsed.fetch_max(moment.0, Ordering::SeqCst);
        }
    }

    /// Lets the wall clock of a virtual clock jump, forwards or backwards, as a correction by the system does. No timer fires.
    pub(crate) fn jump_wall(&self, seconds: i64) {
        if let Kind::Virtual(time) = &self.0 {
            let nanoseconds = seconds.saturating_mul(1_000_000_000);
            let jump = |start: u64| Some(start.saturating_add_signed(nanoseconds));
            let _always_some =
                time.wall_start
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, jump);
        }
    }
}

/// 2026-01-01T00:00:00Z
const VIRTUAL_START_NANOSECONDS: u64 = 1_767_225_600_000_000_000;
