//! The poller of those who only want to know: it reads and never claims.

use super::*;

/// A poller that reads, with its clock.
fn reader(watches: &[(Watcher, &str, u64)]) -> Held {
    let mut held = Held {
        poller: Poller::new(1_000, Asks::Reads),
        ..Held::new()
    };
    for (watcher, approval, budget_ms) in watches {
        watch(&mut held, *watcher, approval, *budget_ms);
    }
    held
}

fn watch(held: &mut Held, watcher: Watcher, approval: &str, budget_ms: u64) {
    held.poller
        .watch(watcher, id(approval), budget_ms, false, held.now);
}

/// Lets the time pass, tick by tick; a tick may tell somebody without asking anything.
fn pass(held: &mut Held, milliseconds: u64) -> Vec<Order> {
    let until = held.now.saturating_add(milliseconds);
    let mut orders = Vec::new();
    while let Some(next) = held.poller.next_tick().filter(|next| *next <= until) {
        held.now = held.now.max(next);
        let done = held.poller.tick(&held.plane, held.now);
        assert!(!done.is_empty(), "a tick for nothing at {next}");
        orders.extend(done);
    }
    held.now = until;
    never_claims(&orders);
    orders
}

fn never_claims(orders: &[Order]) {
    for errand in errands_of(orders) {
        assert!(
            matches!(errand, Errand::List(_) | Errand::Read(_)),
            "{errand:?}"
        );
    }
}

fn view(approval: &str, status: &str) -> String {
    format!(
        r#"{{"id":"{approval}","status":"{status}","listener_name":"l","approval_rule":"r","created_at":"2026-09-29T14:02:11Z"}}"#
    )
}

fn list(held: &mut Held, shown: Option<Shown>, entries: &[(&str, &str)]) -> Vec<Order> {
    let views: Vec<String> = entries
        .iter()
        .map(|(id, status)| view(id, status))
        .collect();
    let answer = said("200", &format!("[{}]", views.join(",")));
    let orders = held.answer(Errand::List(shown), answer);
    never_claims(&orders);
    orders
}

fn read(held: &mut Held, approval: &str, status: &str) -> Vec<Order> {
    let orders = held.answer(
        Errand::Read(id(approval)),
        said("200", &view(approval, status)),
    );
    never_claims(&orders);
    orders
}

/// Who was told how an approval stands, and how much time was left.
fn news(orders: &[Order]) -> Vec<(Watcher, String, u64)> {
    let told = |order: &Order| match order {
        Order::Tell(watcher, News::Read { read, left_ms }) => {
            let word = match read {
                Ok(view) => view.status.word().unwrap_or("?").to_owned(),
                Err(fault) => fault.to_string(),
            };
            Some((*watcher, word, *left_ms))
        }
        Order::Tell(watcher, News::NotChecked) => Some((*watcher, "not checked".to_owned(), 0)),
        Order::Tell(_, news) => panic!("told {news:?}"),
        Order::Call(..) | Order::Count(_) | Order::Log(..) | Order::Nobody(_) => None,
    };
    orders.iter().filter_map(told).collect()
}

fn stood(watcher: Watcher, status: &str, left_ms: u64) -> (Watcher, String, u64) {
    (watcher, status.to_owned(), left_ms)
}

#[test]
fn however_many_wait_there_is_one_read_per_interval() {
    let mut held = reader(&[]);
    let all: Vec<String> = (0..1_000)
        .map(|number| format!("00000000-0000-4000-8000-{:012}", number / 2))
        .collect();
    for (watcher, approval) in (0..).zip(&all) {
        watch(&mut held, watcher, approval, BUDGET);
    }
    let pending: Vec<(&str, &str)> = all
        .iter()
        .step_by(2)
        .map(|id| (id.as_str(), "PENDING"))
        .collect();
    let mut errands = Vec::new();
    for _ in 0..10 {
        errands.extend(errands_of(&pass(&mut held, 1_000)));
        assert_eq!(list(&mut held, None, &pending), []);
    }

    assert_eq!(errands, vec![LIST; 10]);
}

#[test]
fn a_decision_is_told_to_all_that_wait_for_it_and_to_no_other() {
    for status in [
        "APPROVED", "REJECTED", "REVOKED", "EXECUTED", "EXPIRED", "FOO",
    ] {
        let mut held = reader(&[(2, A, 30_000), (3, B, 30_000), (4, A, 10_000)]);
        assert_eq!(errands_of(&pass(&mut held, 1_000)), [LIST]);

        let orders = list(
            &mut held,
            None,
            &[(A, status), (B, "PROCESSING"), (C, "APPROVED")],
        );

        assert_eq!(
            news(&orders),
            [stood(2, status, 29_000), stood(4, status, 9_000)]
        );
        assert_eq!(errands_of(&orders), []);
        assert_eq!(held.poller.waiting(), 1);
    }
}

#[test]
fn a_wait_whose_time_is_over_is_told_what_was_just_seen_without_a_call_of_its_own() {
    let mut held = reader(&[(2, A, 3_500), (3, A, 30_000)]);
    for _ in 0..3 {
        assert_eq!(news(&pass(&mut held, 1_000)), []);
        list(&mut held, None, &[(A, "PENDING")]);
    }

    let orders = pass(&mut held, 500);

    assert_eq!(
        (news(&orders), errands_of(&orders)),
        (vec![stood(2, "PENDING", 0)], Vec::new())
    );
    assert_eq!(held.poller.waiting(), 1);
}

#[test]
fn a_wait_whose_approval_was_not_seen_of_late_asks_once_more() {
    let mut held = reader(&[(2, A, 2_000)]);
    let orders = pass(&mut held, 2_000);
    assert_eq!(
        errands_of(&orders),
        [LIST, Errand::Read(id(A))],
        "the list is not answered"
    );
    assert_eq!(news(&orders), []);

    let orders = read(&mut held, A, "PENDING");

    assert_eq!(news(&orders), [stood(2, "PENDING", 0)]);
    assert_eq!(held.poller.next_tick(), None);
}

#[test]
fn a_decision_in_the_last_moment_is_told() {
    let mut held = reader(&[(2, A, 2_000)]);
    pass(&mut held, 2_000);
    held.now += 4_000;

    assert_eq!(
        news(&read(&mut held, A, "APPROVED")),
        [stood(2, "APPROVED", 0)]
    );
}

#[test]
fn a_wait_that_began_later_does_not_end_with_an_earlier_one() {
    let mut held = reader(&[(2, A, 2_000)]);
    held.now += 1_500;
    watch(&mut held, 3, A, 2_000);
    pass(&mut held, 500);

    let orders = read(&mut held, A, "PENDING");

    assert_eq!(news(&orders), [stood(2, "PENDING", 0)]);
    assert_eq!(held.poller.waiting(), 1);
}

/// Whatever the interval, an approval is looked at within two seconds before a wait is told that nobody has decided.
#[test]
fn what_was_seen_long_ago_is_read_again_at_the_end() {
    let mut held = reader(&[]);
    held.poller = Poller::new(60_000, Asks::Reads);
    watch(&mut held, 3, A, 300_000);
    pass(&mut held, 60_000);
    list(&mut held, None, &[(A, "PENDING")]);
    watch(&mut held, 2, A, 50_000);

    let orders = pass(&mut held, 50_000);

    assert_eq!(
        (news(&orders), errands_of(&orders)),
        (Vec::new(), vec![Errand::Read(id(A))])
    );
}

#[test]
fn what_the_list_does_not_show_is_read_one_in_turn() {
    let mut held = reader(&[(2, A, 100_000), (3, B, 100_000), (4, C, 100_000)]);
    let (mut lists, mut reads) = (0, Vec::new());
    for _ in 0..22 {
        for errand in errands_of(&pass(&mut held, 1_000)) {
            match errand {
                Errand::List(shown) => {
                    lists += 1;
                    let entries: &[_] = if shown.is_none() {
                        &[(C, "PENDING")]
                    } else {
                        &[]
                    };
                    assert_eq!(news(&list(&mut held, shown, entries)), []);
                }
                Errand::Read(asked) => {
                    assert_eq!(news(&read(&mut held, asked.as_str(), "PENDING")), []);
                    reads.push(asked);
                }
                Errand::Claim(_) | Errand::Settle(_) => panic!("a reader claims"),
            }
        }
    }

    assert_eq!(lists, 22, "one a second");
    assert_eq!(reads, [id(B), id(A), id(B), id(A)], "one in five seconds");
}

#[test]
fn a_hidden_decision_is_found_by_its_status() {
    let mut held = reader(&[(2, A, BUDGET), (3, C, BUDGET)]);
    pass(&mut held, 1_000);
    list(&mut held, None, &[(C, "PENDING")]);
    assert_eq!(
        errands_of(&pass(&mut held, 1_000)),
        [Errand::List(Some(Shown::Approved))]
    );

    let orders = list(&mut held, Some(Shown::Approved), &[(A, "APPROVED")]);

    assert_eq!(news(&orders), [stood(2, "APPROVED", 28_000)]);
}

#[test]
fn a_list_that_fails_ends_all_waits() {
    for fault in [
        Err(PlaneFault::Unsent),
        said("500", "{}"),
        said("200", "{}"),
        said("200", "no json"),
    ] {
        let mut held = reader(&[(2, A, BUDGET), (3, B, BUDGET)]);
        pass(&mut held, 1_000);

        let orders = held.answer(LIST, fault);

        assert_eq!(
            news(&orders),
            [stood(2, "not checked", 0), stood(3, "not checked", 0)]
        );
        assert_eq!(counts(&orders, Counter::PlaneFailures), 1);
        assert_eq!(held.poller.next_tick(), None);
    }
}

#[test]
fn a_read_that_fails_ends_the_waits_for_its_approval_and_is_counted_once() {
    let table = [
        (Err(PlaneFault::NoAnswer), 1),
        (said("500", "{}"), 1),
        (said("200", &view(B, "PENDING")), 1),
        (said("200", &view(A, "PENDING").replace("2026", "12026")), 1),
        (said("404", "404 page not found"), 1),
        (said("404", r#"{"message":"review not found"}"#), 0),
    ];
    for (fault, failures) in table {
        let mut held = reader(&[(2, A, 2_000), (3, B, BUDGET), (4, A, BUDGET)]);
        pass(&mut held, 2_000);

        let orders = held.answer(Errand::Read(id(A)), fault.clone());

        let told: Vec<_> = news(&orders)
            .into_iter()
            .map(|(watcher, _, left)| (watcher, left))
            .collect();
        assert_eq!(told, [(2, 0), (4, 28_000)], "{fault:?}");
        assert_eq!(
            counts(&orders, Counter::PlaneFailures),
            failures,
            "{fault:?}"
        );
        assert_eq!(held.poller.waiting(), 1);
    }
}

#[test]
fn without_a_list_each_approval_is_read_by_itself() {
    for status in ["401", "403", "404"] {
        let mut held = reader(&[(2, A, BUDGET), (3, B, BUDGET), (4, A, BUDGET)]);
        pass(&mut held, 1_000);
        let orders = held.answer(LIST, said(status, r#"{"message":"no"}"#));
        assert_eq!(news(&orders), []);
        let says = |order: &Order| matches!(order, Order::Log(_, line) if line.contains("reads") && !line.contains("claim"));
        assert!(orders.iter().any(says), "{orders:?}");

        for _ in 0..3 {
            let errands = errands_of(&pass(&mut held, 5_000));
            assert_eq!(
                errands,
                [Errand::Read(id(B)), Errand::Read(id(A))],
                "{status}"
            );
            assert_eq!(read(&mut held, A, "PENDING"), []);
            assert_eq!(read(&mut held, B, "PROCESSING"), []);
        }
        let orders = read(&mut held, A, "REJECTED");
        assert_eq!(news(&orders).len(), 2, "all that wait for it");
    }
}

#[test]
fn an_answer_that_comes_when_nobody_waits_any_more_is_told_to_nobody() {
    let mut held = reader(&[(2, A, 2_000)]);
    pass(&mut held, 2_000);
    held.poller.unwatch(2);

    assert_eq!(read(&mut held, A, "APPROVED"), []);
    assert_eq!(list(&mut held, None, &[(A, "APPROVED")]), []);
    assert_eq!((held.poller.next_tick(), held.poller.waiting()), (None, 0));
}

#[test]
fn a_wait_whose_time_is_ended_tells_how_long_it_was() {
    let mut held = reader(&[(2, A, BUDGET)]);
    pass(&mut held, 1_000);
    assert_eq!(list(&mut held, None, &[(A, "PENDING")]), []);

    held.poller.hurry(2, held.now);
    held.now = held.now.saturating_add(10);
    held.poller.hurry(2, held.now);

    let told = held.poller.tick(&held.plane, held.now);
    assert_eq!(news(&told), [stood(2, "PENDING", BUDGET - 1_010)]);
}
