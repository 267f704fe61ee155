//! Owns the life of a review: its statuses, who may move it where, and what a deadline does. The store turns
//! these rules into conditional writes, and the API asks them why a write did not happen. It is pure: it must not
//! know the database, the wire or the clock.

use std::fmt;

use crate::clock::Timestamp;

/// Where a review stands, in the order of its life. The names are the contract's (1.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Filed; nobody has decided.
    Pending,
    /// A person said yes, and the statement has not run on it.
    Approved,
    /// A person said no.
    Rejected,
    /// A person took an unused yes back.
    Revoked,
    /// A resend is in flight on it; the upstream's answer spends it or gives it back.
    Processing,
    /// The one release that an approval gives has been given.
    Executed,
    /// Its deadline passed first.
    Expired,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Approved,
        Self::Rejected,
        Self::Revoked,
        Self::Processing,
        Self::Executed,
        Self::Expired,
    ];

    /// The contract's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Approved => "APPROVED",
            Self::Rejected => "REJECTED",
            Self::Revoked => "REVOKED",
            Self::Processing => "PROCESSING",
            Self::Executed => "EXECUTED",
            Self::Expired => "EXPIRED",
        }
    }

    /// Reads the contract's word in any case; `None` for every other word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str().eq_ignore_ascii_case(word))
    }

    /// What a stored status means at `now`: past its deadline a waiting or an unused review is expired, and one in
    /// flight is spent, whether or not anyone has written that down. The second of the deadline itself is already too
    /// late.
    ///
    /// A wrong "still approved" would run a statement on a yes that has lapsed, or a second time; a wrong "expired" or
    /// "executed" costs one more question to a person.
    pub fn at(self, deadlines: Deadlines, now: Timestamp) -> Self {
        let passed = |deadline: Option<Timestamp>| deadline.is_some_and(|at| at <= now);
        match self {
            Self::Pending | Self::Approved if passed(deadlines.expires_at) => Self::Expired,
            Self::Processing if passed(deadlines.settle_by) => Self::Executed,
            Self::Pending
            | Self::Approved
            | Self::Rejected
            | Self::Revoked
            | Self::Processing
            | Self::Executed
            | Self::Expired => self,
        }
    }

    /// What filing a statement does when this is how its newest review stands now.
    pub const fn on_filing(self) -> OnFiling {
        match self {
            Self::Pending | Self::Processing => OnFiling::Wait,
            Self::Approved => OnFiling::Spend,
            Self::Rejected | Self::Revoked | Self::Executed | Self::Expired => OnFiling::FileAnew,
        }
    }

    /// What a reviewer group's own entry shows. Here one approver answers for all groups of a rule, so the
    /// groups follow the review; a review that lapsed undecided leaves them waiting.
    pub const fn of_group(self, decided: bool) -> Self {
        match self {
            Self::Approved | Self::Processing | Self::Executed => Self::Approved,
            Self::Expired if decided => Self::Approved,
            Self::Pending | Self::Expired => Self::Pending,
            Self::Rejected => Self::Rejected,
            Self::Revoked => Self::Revoked,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Until when a status may stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// Ends the waiting and the unused yes; an approval in flight stands above it.
    pub expires_at: Option<Timestamp>,
    /// Ends the flight: whoever has not said by then how it ended, may have run it.
    pub settle_by: Option<Timestamp>,
}

/// What filing a statement does with the review it already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFiling {
    /// That review is over; a new one is filed.
    FileAnew,
    /// Its approval is spent on this very request.
    Spend,
    /// It is answered as it stands.
    Wait,
}

/// What a person does to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, once.
    Approve,
    /// No, and perhaps why.
    Reject {
        /// Shown to whoever asked; already bounded and cleaned.
        reason: Option<String>,
    },
    /// No longer yes.
    Revoke,
}

impl Decision {
    /// The only status that this decision may leave.
    pub const fn from(&self) -> Status {
        match self {
            Self::Approve | Self::Reject { .. } => Status::Pending,
            Self::Revoke => Status::Approved,
        }
    }

    /// The status it leads to.
    pub const fn to(&self) -> Status {
        match self {
            Self::Approve => Status::Approved,
            Self::Reject { .. } => Status::Rejected,
            Self::Revoke => Status::Revoked,
        }
    }

    /// Why this decision does not apply to a review that stands so now; `None` when it does.
    pub fn refusal(&self, standing: Status) -> Option<Refusal> {
        if standing == self.from() {
            return None;
        }
        if standing == Status::Expired {
            return Some(Refusal::Expired);
        }
        Some(match self {
            Self::Revoke => Refusal::NotRevocable { standing },
            Self::Approve | Self::Reject { .. } => Refusal::AlreadySettled { standing },
        })
    }
}

/// What the upstream's answer does to the approval that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It did not run; the approval can be used again.
    Returned,
    /// It ran, or may have.
    Spent,
}

impl Settlement {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Returned, Self::Spent];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Spent => "spent",
        }
    }

    /// The status it leads to.
    pub const fn to(self) -> Status {
        match self {
            Self::Returned => Status::Approved,
            Self::Spent => Status::Executed,
        }
    }

    /// Why this does not apply to a review that stands so and is not in flight any more; `None` when it was settled in
    /// just this way before. `flown`: its last release was one that is settled.
    pub const fn refusal(self, standing: Status, flown: bool) -> Option<SettleRefusal> {
        let settled_so = match (self, standing) {
            (Self::Spent, Status::Executed) => true,
            // What was given back can lapse or be taken back afterwards.
            (Self::Returned, Status::Approved | Status::Revoked | Status::Expired) => flown,
            (Self::Returned, Status::Executed)
            | (Self::Spent, Status::Approved | Status::Revoked | Status::Expired)
            | (_, Status::Pending | Status::Rejected | Status::Processing) => false,
        };
        if settled_so {
            None
        } else {
            Some(SettleRefusal::SettledOtherwise {
                settlement: self,
                standing,
            })
        }
    }
}

/// Why a settlement was not taken. The review is untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleRefusal {
    /// It speaks of a release that is not the last one of this review.
    AnotherRelease {
        /// How the review stands.
        standing: Status,
    },
    /// The review was settled in the other way, by someone or by the deadline, or is not in flight at all.
    SettledOtherwise {
        /// What was asked.
        settlement: Settlement,
        /// How the review stands.
        standing: Status,
    },
}

impl SettleRefusal {
    /// How the review stands.
    pub const fn standing(self) -> Status {
        match self {
            Self::AnotherRelease { standing } | Self::SettledOtherwise { standing, .. } => standing,
        }
    }
}

/// Why a decision was not taken. The review is untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Someone, or a release, was first; this is what stands.
    AlreadySettled {
        /// How the review stands.
        standing: Status,
    },
    /// The deadline was first.
    Expired,
    /// Only an approved, unused review can be revoked.
    NotRevocable {
        /// How the review stands.
        standing: Status,
    },
}

#[cfg(test)]
mod tests;
