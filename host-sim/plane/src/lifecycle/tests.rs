//! Owns the tests of the pure rules; the test runner drives it. It must not know the store or the wire.

use proptest::prelude::*;

use super::*;

fn at(unix_sec: i64) -> Timestamp {
    Timestamp::from_unix_sec(unix_sec)
}

fn expiring(expires_at: Option<i64>) -> Deadlines {
    Deadlines {
        expires_at: expires_at.map(at),
        settle_by: None,
    }
}

fn settling(settle_by: i64) -> Deadlines {
    Deadlines {
        expires_at: Some(at(0)),
        settle_by: Some(at(settle_by)),
    }
}

fn decisions() -> [Decision; 3] {
    [
        Decision::Approve,
        Decision::Reject { reason: None },
        Decision::Revoke,
    ]
}

#[test]
fn a_word_is_read_in_any_case_and_written_in_one() {
    for status in Status::ALL {
        let word = status.as_str();
        assert_eq!(Status::parse(word), Some(status));
        assert_eq!(Status::parse(&word.to_lowercase()), Some(status));
        assert_eq!(status.to_string(), word);
    }
}

#[test]
fn a_word_outside_the_contract_is_no_status() {
    for word in ["", " PENDING", "UNKNOWN", "DONE", "PENDİNG"] {
        assert_eq!(Status::parse(word), None, "{word:?}");
    }
}

#[test]
fn the_second_of_the_deadline_is_too_late_and_the_one_before_is_not() {
    for status in [Status::Pending, Status::Approved] {
        assert_eq!(status.at(expiring(Some(100)), at(99)), status);
        assert_eq!(status.at(expiring(Some(100)), at(100)), Status::Expired);
        assert_eq!(status.at(expiring(None), at(i64::MAX)), status);
    }
}

#[test]
fn a_flight_ends_as_spent_at_its_own_deadline_and_not_at_the_approvals() {
    assert_eq!(
        Status::Processing.at(settling(100), at(99)),
        Status::Processing
    );
    assert_eq!(
        Status::Processing.at(settling(100), at(100)),
        Status::Executed
    );
    for status in Status::ALL {
        if status != Status::Processing {
            assert_eq!(
                status.at(settling(0), at(1)),
                status.at(expiring(Some(0)), at(1))
            );
        }
    }
}

#[test]
fn a_settlement_is_repeated_only_where_it_was_taken() {
    let repeats = |settlement: Settlement, flown| -> Vec<Status> {
        Status::ALL
            .into_iter()
            .filter(|standing| settlement.refusal(*standing, flown).is_none())
            .collect()
    };
    let given_back = [Status::Approved, Status::Revoked, Status::Expired];
    assert_eq!(repeats(Settlement::Returned, true), given_back);
    assert_eq!(repeats(Settlement::Returned, false), []);
    assert_eq!(repeats(Settlement::Spent, true), [Status::Executed]);
    assert_eq!(repeats(Settlement::Spent, false), [Status::Executed]);
}

#[test]
fn only_a_waiting_or_an_unused_review_lapses() {
    for status in Status::ALL {
        let lapsed = status.at(expiring(Some(0)), at(1));
        let lapses = matches!(status, Status::Pending | Status::Approved);
        assert_eq!(
            lapsed == Status::Expired,
            lapses || status == Status::Expired
        );
    }
}

#[test]
fn filing_spends_nothing_but_an_approval() {
    let spending: Vec<Status> = Status::ALL
        .into_iter()
        .filter(|status| status.on_filing() == OnFiling::Spend)
        .collect();
    assert_eq!(spending, [Status::Approved]);
}

#[test]
fn filing_anew_and_being_over_are_the_same() {
    for status in Status::ALL {
        let over = matches!(
            status,
            Status::Rejected | Status::Revoked | Status::Executed | Status::Expired
        );
        assert_eq!(status.on_filing() == OnFiling::FileAnew, over, "{status}");
    }
}

#[test]
fn a_decision_applies_to_the_one_status_it_leaves() {
    for decision in decisions() {
        let applies: Vec<Status> = Status::ALL
            .into_iter()
            .filter(|status| decision.refusal(*status).is_none())
            .collect();
        assert_eq!(applies, [decision.from()]);
    }
}

#[test]
fn an_expired_review_is_called_expired_whatever_is_tried() {
    for decision in decisions() {
        assert_eq!(decision.refusal(Status::Expired), Some(Refusal::Expired));
    }
}

#[test]
fn the_loser_is_told_what_stands() {
    assert_eq!(
        Decision::Approve.refusal(Status::Rejected),
        Some(Refusal::AlreadySettled {
            standing: Status::Rejected
        })
    );
    assert_eq!(
        Decision::Revoke.refusal(Status::Executed),
        Some(Refusal::NotRevocable {
            standing: Status::Executed
        })
    );
}

#[test]
fn a_group_never_shows_an_approval_that_nobody_gave() {
    assert_eq!(Status::Pending.of_group(false), Status::Pending);
    assert_eq!(Status::Expired.of_group(false), Status::Pending);
    assert_eq!(Status::Expired.of_group(true), Status::Approved);
    assert_eq!(Status::Executed.of_group(true), Status::Approved);
    assert_eq!(Status::Rejected.of_group(true), Status::Rejected);
    assert_eq!(Status::Revoked.of_group(true), Status::Revoked);
}

fn any_status() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.to_vec())
}

proptest! {
    #[test]
    fn time_only_ever_takes_a_yes_away(
        status in any_status(),
        expires_at in prop::option::of(-10_i64..10),
        settle_by in prop::option::of(-10_i64..10),
        now in -10_i64..10,
        later in 0_i64..10,
    ) {
        let deadlines = Deadlines { expires_at: expires_at.map(at), settle_by: settle_by.map(at) };
        let first = status.at(deadlines, at(now));
        let second = status.at(deadlines, at(now + later));
        prop_assert!(first == second || matches!(second, Status::Expired | Status::Executed));
        prop_assert_eq!(first.at(deadlines, at(now)), first);
    }

    #[test]
    fn a_settled_review_cannot_be_decided_into_another_end(status in any_status()) {
        for decision in decisions() {
            if decision.refusal(status).is_none() {
                prop_assert!(matches!(status, Status::Pending | Status::Approved));
            }
        }
    }
}
