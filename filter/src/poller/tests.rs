//! The poller against a clock that the test moves and answers that the test writes.

mod reading;

use super::*;
use crate::approval::SpendOn;
use crate::config::ControlPlaneConfig;
use crate::control_plane::{ControlPlane, PendingSettlement, Settlement};

const A: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";
const B: &str = "00000000-0000-4000-8000-000000000001";
const C: &str = "00000000-0000-4000-8000-000000000002";
const BUDGET: u64 = 30_000;
const LIST: Errand = Errand::List(None);

struct Held {
    plane: ControlPlane,
    poller: Poller,
    now: u64,
}

impl Held {
    fn new() -> Self {
        let config = ControlPlaneConfig {
            cluster: "c".to_owned(),
            authority: "a".to_owned(),
            path_prefix: String::new(),
            token_env: None,
            timeout_ms: 5,
            heartbeat: false,
        };
        Self {
            plane: ControlPlane::new(config, None, SpendOn::Release),
            poller: Poller::new(1_000, Asks::Claims),
            now: 10,
        }
    }

    fn watching(watches: &[(Watcher, &str)]) -> Self {
        let mut held = Self::new();
        for (watcher, approval) in watches {
            held.poller
                .watch(*watcher, id(approval), BUDGET, false, held.now);
        }
        held
    }

    /// Lets the time pass, tick by tick, and gives the errands that were sent.
    fn pass(&mut self, milliseconds: u64) -> Vec<Errand> {
        let until = self.now.saturating_add(milliseconds);
        let mut errands = Vec::new();
        while let Some(next) = self.poller.next_tick().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            let sent = errands_of(&self.poller.tick(&self.plane, self.now));
            assert!(!sent.is_empty(), "a tick for nothing at {next}");
            errands.extend(sent);
        }
        self.now = until;
        errands
    }

    fn answer(&mut self, errand: Errand, answer: Result<PlaneAnswer, PlaneFault>) -> Vec<Order> {
        self.poller.answered(&self.plane, errand, answer, self.now)
    }

    fn list(&mut self, entries: &[(&str, &str)]) -> Vec<Order> {
        self.part_of_the_list(None, entries)
    }

    fn part_of_the_list(&mut self, shown: Option<Shown>, entries: &[(&str, &str)]) -> Vec<Order> {
        let entries: Vec<String> = entries
            .iter()
            .map(|(id, status)| format!(r#"{{"id":"{id}","status":"{status}"}}"#))
            .collect();
        self.answer(
            Errand::List(shown),
            said("200", &format!("[{}]", entries.join(","))),
        )
    }

    fn claim(&mut self, approval: &str, forward: bool, status: &str) -> Vec<Order> {
        let body = format!(
            r#"{{"forward":{forward},"review":{{"id":"{approval}","status":"{status}"}}}}"#
        );
        self.answer(Errand::Claim(id(approval)), said("200", &body))
    }
}

fn id(text: &str) -> ApprovalId {
    ApprovalId::parse_canonical(text).expect("canonical")
}

fn said(status: &str, body: &str) -> Result<PlaneAnswer, PlaneFault> {
    let headers = [
        (":status", status.as_bytes()),
        ("content-type", b"application/json"),
    ];
    Ok(PlaneAnswer::new(
        headers.into_iter(),
        Some(body.as_bytes().to_vec()),
    ))
}

fn errands_of(orders: &[Order]) -> Vec<Errand> {
    let errand = |order: &Order| match order {
        Order::Call(_, errand) => Some(errand.clone()),
        Order::Count(_) | Order::Log(..) | Order::Nobody(_) | Order::Tell(..) => None,
    };
    orders.iter().filter_map(errand).collect()
}

/// Who was told what, in one word.
fn told(orders: &[Order]) -> Vec<(Watcher, String)> {
    let told = |order: &Order| match order {
        Order::Tell(watcher, news) => Some((
            *watcher,
            match news {
                News::NotChecked => "not checked".to_owned(),
                News::Read { read, left_ms } => format!("{read:?} {left_ms}"),
                News::Released(release) => format!("released {}", release.id()),
                News::Stands(status) => status.word().unwrap_or("?").to_owned(),
                News::TimeOver => "time over".to_owned(),
            },
        )),
        Order::Call(..) | Order::Count(_) | Order::Log(..) | Order::Nobody(_) => None,
    };
    orders.iter().filter_map(told).collect()
}

fn counts(orders: &[Order], counter: Counter) -> usize {
    let counted = |order: &&Order| **order == Order::Count(counter);
    orders.iter().filter(counted).count()
}

#[test]
fn nothing_is_asked_while_nobody_waits() {
    let mut held = Held::new();
    assert_eq!(held.poller.next_tick(), None);
    assert_eq!(held.poller.tick(&held.plane, 5_000_000), []);

    held.poller.watch(2, id(A), BUDGET, false, held.now);
    held.poller.unwatch(2);

    assert_eq!((held.poller.next_tick(), held.poller.waiting()), (None, 0));
}

#[test]
fn however_many_wait_there_is_one_read_per_interval() {
    let mut held = Held::new();
    for watcher in 0..1_000 {
        let approval = format!("00000000-0000-4000-8000-{watcher:012}");
        held.poller
            .watch(watcher, id(&approval), BUDGET, false, held.now);
    }
    let all: Vec<String> = (0..1_000)
        .map(|number| format!("00000000-0000-4000-8000-{number:012}"))
        .collect();
    let pending: Vec<(&str, &str)> = all.iter().map(|id| (id.as_str(), "PENDING")).collect();
    let mut errands = Vec::new();
    for _ in 0..10 {
        errands.extend(held.pass(1_000));
        assert_eq!(held.list(&pending), []);
    }

    assert_eq!(errands, vec![LIST; 10]);
}

#[test]
fn an_approval_in_the_list_is_claimed_at_once_and_released() {
    let mut held = Held::watching(&[(2, A), (3, B)]);
    assert_eq!(held.pass(1_000), [LIST]);
    let orders = held.list(&[(A, "APPROVED"), (B, "PENDING"), (C, "APPROVED")]);
    assert_eq!(errands_of(&orders), [Errand::Claim(id(A))]);

    let orders = held.claim(A, true, "EXECUTED");

    assert_eq!(told(&orders), [(2, format!("released {A}"))]);
    assert_eq!(held.poller.waiting(), 1);
}

#[test]
fn a_list_alone_never_releases() {
    let mut held = Held::watching(&[(2, A)]);
    held.pass(1_000);

    let orders = held.list(&[(A, "APPROVED"), (A, "APPROVED")]);

    assert_eq!(told(&orders), []);
    assert_eq!(errands_of(&orders), [Errand::Claim(id(A))]);
}

#[test]
fn what_is_decided_against_is_told_with_its_status() {
    for status in ["REJECTED", "REVOKED", "EXPIRED", "EXECUTED", "FOO"] {
        let mut held = Held::watching(&[(2, A)]);
        held.pass(1_000);

        assert_eq!(told(&held.list(&[(A, status)])), [(2, status.to_owned())]);
        assert_eq!(held.poller.next_tick(), None);
    }
}

#[test]
fn of_those_that_wait_for_one_approval_one_is_released() {
    let mut held = Held::watching(&[(3, A), (2, A)]);
    held.pass(1_000);
    assert_eq!(
        errands_of(&held.list(&[(A, "APPROVED")])),
        [Errand::Claim(id(A))]
    );

    let orders = held.claim(A, true, "EXECUTED");

    assert_eq!(
        told(&orders),
        [(2, format!("released {A}")), (3, "EXECUTED".to_owned())]
    );
}

#[test]
fn where_the_upstreams_answer_spends_the_others_go_on_waiting() {
    let mut held = Held::watching(&[(2, A), (3, A)]);
    held.pass(1_000);
    held.list(&[(A, "APPROVED")]);
    assert_eq!(
        told(&held.claim(A, true, "PROCESSING")),
        [(2, format!("released {A}"))]
    );

    held.pass(1_000);
    assert_eq!(held.list(&[(A, "PROCESSING")]), []);
    held.pass(1_000);
    assert_eq!(
        errands_of(&held.list(&[(A, "APPROVED")])),
        [Errand::Claim(id(A))]
    );
}

#[test]
fn a_release_that_finds_nobody_is_handed_over_as_such() {
    let mut held = Held::watching(&[(2, A)]);
    held.pass(1_000);
    held.list(&[(A, "APPROVED")]);
    held.poller.unwatch(2);

    let orders = held.claim(A, true, "EXECUTED");

    assert!(matches!(&orders[..], [Order::Nobody(release)] if release.id().as_str() == A));
    assert_eq!(held.poller.next_tick(), None);
}

#[test]
fn a_release_goes_to_whoever_still_waits_when_its_first_watcher_has_gone() {
    let mut held = Held::watching(&[(2, A), (3, A)]);
    held.pass(1_000);
    held.list(&[(A, "APPROVED")]);
    held.poller.unwatch(2);

    let orders = held.claim(A, true, "EXECUTED");

    assert_eq!(told(&orders), [(3, format!("released {A}"))]);
}

#[test]
fn before_a_hold_ends_its_approval_is_claimed_once_more() {
    let mut held = Held::watching(&[(2, A)]);
    let mut errands = Vec::new();
    for _ in 0..30 {
        errands.extend(held.pass(1_000));
        held.list(&[(A, "PENDING")]);
    }
    assert_eq!(errands.iter().filter(|errand| **errand != LIST).count(), 1);

    assert_eq!(
        told(&held.claim(A, false, "PENDING")),
        [(2, "time over".to_owned())]
    );
}

#[test]
fn a_decision_in_the_last_moment_is_honoured() {
    let mut held = Held::watching(&[(2, A)]);
    for _ in 0..30 {
        held.pass(1_000);
        held.list(&[(A, "PENDING")]);
    }
    held.now += 5_000;

    assert_eq!(
        told(&held.claim(A, true, "EXECUTED")),
        [(2, format!("released {A}"))]
    );
}

#[test]
fn a_hold_that_began_later_does_not_end_with_an_earlier_one() {
    let mut held = Held::watching(&[(2, A)]);
    held.now += 10_000;
    held.poller.watch(3, id(A), BUDGET, false, held.now);
    held.pass(20_000);

    let orders = held.claim(A, false, "PENDING");

    assert_eq!(told(&orders), [(2, "time over".to_owned())]);
    assert_eq!(held.poller.waiting(), 1);
}

#[test]
fn what_the_list_does_not_show_is_read_by_status_and_claimed_in_turn() {
    let mut held = Held::watching(&[(2, A), (3, B), (4, C)]);
    let (mut reads, mut claims) = (Vec::new(), Vec::new());
    for _ in 0..22 {
        for errand in held.pass(1_000) {
            match errand {
                LIST => {
                    reads.push("all");
                    assert_eq!(told(&held.list(&[(C, "PENDING")])), []);
                }
                Errand::List(Some(shown)) => {
                    reads.push(shown.word());
                    assert_eq!(held.part_of_the_list(Some(shown), &[]), []);
                }
                Errand::Claim(claimed) => {
                    assert_eq!(told(&held.claim(claimed.as_str(), false, "PENDING")), []);
                    claims.push(claimed);
                }
                Errand::Read(_) | Errand::Settle(_) => panic!("nothing to read or settle"),
            }
        }
    }

    assert_eq!(reads.len(), 22, "one read a second");
    let of = |wanted: &str| reads.iter().filter(|read| **read == wanted).count();
    assert!(of("APPROVED") >= 10, "{reads:?}");
    for status in ["all", "REJECTED", "EXPIRED", "REVOKED", "EXECUTED"] {
        assert!(of(status) >= 2, "{status} in {reads:?}");
    }
    assert_eq!(claims, [id(B), id(A), id(B), id(A)], "one in five seconds");
}

#[test]
fn an_approval_beyond_the_list_is_found_by_its_status() {
    let mut held = Held::watching(&[(2, A), (3, C)]);
    held.pass(1_000);
    held.list(&[(C, "PENDING")]);
    assert_eq!(held.pass(1_000), [Errand::List(Some(Shown::Approved))]);

    let orders = held.part_of_the_list(Some(Shown::Approved), &[(A, "APPROVED")]);

    assert_eq!(errands_of(&orders), [Errand::Claim(id(A))]);
    assert_eq!(
        held.pass(1_000),
        [Errand::List(Some(Shown::Approved))],
        "there may be more"
    );
}

#[test]
fn a_list_that_was_asked_for_before_the_watch_proves_nothing() {
    let mut held = Held::watching(&[(2, A)]);
    held.pass(1_000);
    held.now += 1;
    held.poller.watch(3, id(B), BUDGET, false, held.now);

    held.list(&[(A, "PENDING")]);

    assert!(held.poller.next_hidden().is_none());
}

#[test]
fn without_a_list_each_approval_is_claimed_by_itself() {
    for status in ["401", "403", "404"] {
        let mut held = Held::watching(&[(2, A), (3, B)]);
        held.pass(1_000);
        held.answer(LIST, said(status, r#"{"message":"no"}"#));

        let errands = held.pass(4_000);

        assert_eq!(
            errands,
            [Errand::Claim(id(B)), Errand::Claim(id(A))],
            "{status}"
        );
        assert_eq!(held.claim(A, false, "PENDING"), []);
        assert_eq!(
            told(&held.claim(B, true, "EXECUTED")),
            [(3, format!("released {B}"))]
        );
    }
}

#[test]
fn the_list_is_tried_again_after_a_while() {
    let mut held = Held::watching(&[(2, A)]);
    held.poller.watch(2, id(A), 10 * BUDGET, false, held.now);
    held.pass(1_000);
    held.answer(LIST, said("404", "{}"));
    let mut errands = Vec::new();
    for _ in 0..65 {
        for errand in held.pass(1_000) {
            if let Errand::Claim(_) = errand {
                held.claim(A, false, "PENDING");
            }
            errands.push(errand);
        }
    }

    assert!(errands.contains(&LIST), "{errands:?}");
}

#[test]
fn a_failed_read_refuses_all_that_wait() {
    let faults = [
        Err(PlaneFault::Unsent),
        said("500", "{}"),
        said("200", "{}"),
        said("200", "no json"),
        Ok(PlaneAnswer::new(std::iter::empty(), None)),
    ];
    for fault in faults {
        let mut held = Held::watching(&[(2, A), (3, B)]);
        held.pass(1_000);

        let orders = held.answer(LIST, fault);

        assert_eq!(
            told(&orders),
            [(2, "not checked".to_owned()), (3, "not checked".to_owned())]
        );
        assert_eq!(counts(&orders, Counter::PlaneFailures), 1);
        assert_eq!(held.poller.next_tick(), None);
    }
}

#[test]
fn a_failed_claim_refuses_those_that_wait_for_it() {
    let faults = [
        Err(PlaneFault::Unsent),
        said("404", r#"{"message":"review not found"}"#),
        said("404", "404 page not found"),
        said(
            "201",
            &format!(r#"{{"forward":true,"review":{{"id":"{A}"}}}}"#),
        ),
        said(
            "200",
            &format!(r#"{{"forward":true,"review":{{"id":"{B}"}}}}"#),
        ),
        said(
            "200",
            &format!(r#"{{"forward":false,"review":{{"id":"{B}","status":"PENDING"}}}}"#),
        ),
        said("200", r#"{"forward":true}"#),
        said("301", ""),
    ];
    for fault in faults {
        let mut held = Held::watching(&[(2, A), (3, B)]);
        held.pass(1_000);
        held.list(&[(A, "APPROVED"), (B, "PENDING")]);

        let orders = held.answer(Errand::Claim(id(A)), fault);

        assert_eq!(told(&orders), [(2, "not checked".to_owned())]);
        assert_eq!(held.poller.waiting(), 1);
    }
}

#[test]
fn a_list_that_contradicts_the_claim_is_not_believed_again_at_once() {
    let mut held = Held::watching(&[(2, A)]);
    let mut claims = 0;
    for _ in 0..20 {
        held.pass(1_000);
        for errand in errands_of(&held.list(&[(A, "APPROVED")])) {
            assert_eq!(errand, Errand::Claim(id(A)));
            assert_eq!(told(&held.claim(A, false, "PENDING")), []);
            claims += 1;
        }
    }

    assert_eq!(claims, 4, "one in five seconds");
}

#[test]
fn a_decision_right_behind_a_claim_in_turn_is_told_at_once() {
    let mut held = Held::watching(&[(2, A)]);
    let claims = |errands: &[Errand]| errands.contains(&Errand::Claim(id(A)));
    let mut errands = Vec::new();
    while !claims(&errands) {
        errands = held.pass(1_000);
        held.list(&[]);
    }
    assert_eq!(told(&held.claim(A, false, "PENDING")), []);

    held.pass(1_000);
    let orders = held.part_of_the_list(Some(Shown::Approved), &[(A, "APPROVED")]);

    assert!(claims(&errands_of(&orders)));
}

#[test]
fn an_approval_that_is_not_released_says_so() {
    let mut held = Held::watching(&[(2, A)]);
    held.pass(1_000);
    held.list(&[(A, "APPROVED")]);

    assert_eq!(
        told(&held.claim(A, false, "APPROVED")),
        [(2, "APPROVED".to_owned())]
    );
}

#[test]
fn a_settlement_that_the_plane_has_not_taken_is_told_again() {
    let named = Some("r-1".to_owned());
    assert_eq!(told_again(named.clone(), Settlement::Returned), 3);
    assert_eq!(told_again(named, Settlement::Spent), 3);
    assert_eq!(told_again(None, Settlement::Spent), 3);
}

/// If the plane took it and only its answer was lost, the approval may be in flight for somebody else by now.
#[test]
fn a_return_that_does_not_say_of_which_release_is_told_once() {
    assert_eq!(told_again(None, Settlement::Returned), 0);
}

/// How often a settlement is told again to a plane that never answers.
fn told_again(release_id: Option<String>, settlement: Settlement) -> usize {
    let mut held = Held::new();
    let pending = PendingSettlement { release_id };
    let orders = settle(&held.plane, &id(A), &pending, settlement);
    let mut told_again = 0_usize;
    let mut errand = errands_of(&orders).remove(0);
    loop {
        let orders = held.answer(errand, Err(PlaneFault::NoAnswer));
        assert_eq!(counts(&orders, Counter::PlaneFailures), 1);
        let Some(next) = held.poller.next_tick() else {
            break;
        };
        held.now = next;
        errand = errands_of(&held.poller.tick(&held.plane, next)).remove(0);
        told_again = told_again.saturating_add(1);
    }
    told_again
}

#[test]
fn a_settlement_that_the_plane_refuses_is_not_told_again() {
    for status in ["404", "409", "500"] {
        let mut held = Held::new();
        let pending = PendingSettlement { release_id: None };
        let orders = settle(&held.plane, &id(A), &pending, Settlement::Spent);

        held.answer(
            errands_of(&orders).remove(0),
            said(status, r#"{"message":"no"}"#),
        );

        assert_eq!(
            held.poller.next_tick().is_some(),
            status == "500",
            "{status}"
        );
    }
}
