//! What settles an approval, of HTTP and of gRPC.

use super::*;

fn started(
    status: u16,
    grpc_status: Option<u32>,
    is_first_attempt: bool,
    is_delimited: bool,
) -> Event {
    Event::ResponseStarted {
        status,
        grpc_status,
        is_first_attempt,
        is_delimited,
    }
}

fn ended(grpc_status: Option<u32>) -> Event {
    Event::ResponseEnded { grpc_status }
}

const LEFT: Event = Event::StreamEnded {
    never_reached: false,
};
const NEVER: Event = Event::StreamEnded {
    never_reached: true,
};

fn settled(form: Form, events: &[Event]) -> Option<Settlement> {
    let mut answer = UpstreamAnswer::new(form);
    events.iter().find_map(|event| answer.handle(event))
}

#[test]
fn an_accepting_answer_spends_as_soon_as_it_begins() {
    let ok = started(200, None, true, true);
    assert_eq!(settled(Form::Http, &[ok]), Some(Settlement::Spent));
}

#[test]
fn a_whole_refusal_returns() {
    let refused = || started(400, None, true, true);
    assert_eq!(settled(Form::Http, &[refused()]), None);
    assert_eq!(
        settled(Form::Http, &[refused(), ended(None)]),
        Some(Settlement::Returned)
    );
}

#[test]
fn a_refusal_that_proves_nothing_spends() {
    for (is_first, is_delimited) in [(false, true), (true, false)] {
        let refused = started(400, None, is_first, is_delimited);
        assert_eq!(settled(Form::Http, &[refused]), Some(Settlement::Spent));
    }
}

#[test]
fn a_refusal_that_breaks_off_spends() {
    for end in [LEFT, NEVER] {
        let refused = started(400, None, true, true);
        assert_eq!(
            settled(Form::Http, &[refused, end]),
            Some(Settlement::Spent)
        );
    }
}

#[test]
fn without_an_answer_it_is_spent_unless_nobody_got_it() {
    for form in [Form::Http, Form::Grpc] {
        assert_eq!(settled(form, &[LEFT]), Some(Settlement::Spent));
        assert_eq!(settled(form, &[NEVER]), Some(Settlement::Returned));
    }
}

#[test]
fn of_grpc_the_status_of_the_call_counts_wherever_it_stands() {
    let ok = || started(200, None, true, false);
    assert_eq!(settled(Form::Grpc, &[ok()]), None);
    let table = [
        (vec![started(200, Some(0), true, true)], Settlement::Spent),
        (vec![ok(), ended(Some(0))], Settlement::Spent),
        (vec![ok(), ended(Some(9))], Settlement::Returned),
        (
            vec![started(200, Some(9), true, true), ended(None)],
            Settlement::Returned,
        ),
        // No status at all, or one of another attempt: it may have run.
        (vec![ok(), ended(None)], Settlement::Spent),
        // A call that was under way when it failed, and one that has answered.
        (vec![ok(), ended(Some(4))], Settlement::Spent),
        (vec![started(200, Some(14), true, true)], Settlement::Spent),
        (
            vec![ok(), Event::ResponseGoesOn { has_body: true }],
            Settlement::Spent,
        ),
        (
            vec![
                ok(),
                Event::ResponseGoesOn { has_body: false },
                ended(Some(7)),
            ],
            Settlement::Returned,
        ),
        (vec![ok(), LEFT], Settlement::Spent),
        (
            vec![started(200, None, false, false), ended(Some(9))],
            Settlement::Spent,
        ),
        (vec![started(200, Some(9), false, true)], Settlement::Spent),
        (
            vec![started(200, Some(9), true, true), LEFT],
            Settlement::Spent,
        ),
        // No gRPC: some proxy in between.
        (
            vec![started(503, None, true, true), ended(None)],
            Settlement::Returned,
        ),
        (vec![started(503, None, true, false)], Settlement::Spent),
    ];
    for (events, settlement) in table {
        assert_eq!(settled(Form::Grpc, &events), Some(settlement), "{events:?}");
    }
}
