//! A request whose approval the upstream's answer spends.

use super::*;

fn gone_on(listener: &Listener, status: &str) -> Gate {
    let (mut gate, _) = held(listener, "/p/1", true);
    let released = format!(
        r#"{{"forward":true,"release_id":"r-1","review":{{"id":"{ID}","status":"{status}"}}}}"#
    );
    assert!(forwards(&gate.handle(listener, plane_says(&released))));
    gate
}

fn accepting() -> Listener {
    listener_with(r#""approval_mode":"return","spend_approval_on":"accepted""#)
}

const fn answering(status: u16) -> Event {
    Event::ResponseStarted {
        status,
        grpc_status: None,
        is_first_attempt: true,
        is_delimited: true,
    }
}

fn settlement(effects: &[Effect]) -> Option<Settlement> {
    effects.iter().find_map(|effect| {
        let Effect::Settle {
            id,
            pending,
            settlement,
        } = effect
        else {
            return None;
        };
        assert_eq!(id.as_str(), ID);
        assert_eq!(pending.release_id.as_deref(), Some("r-1"));
        Some(*settlement)
    })
}

#[test]
fn an_accepting_upstream_spends_it() {
    let listener = accepting();
    let mut gate = gone_on(&listener, "PROCESSING");
    assert!(gate.may_continue() && gate.awaits_upstream());

    let effects = gate.handle(&listener, answering(201));

    assert_eq!(settlement(&effects), Some(Settlement::Spent));
    assert!(gate.may_continue() && !gate.awaits_upstream());
    assert_eq!(gate.handle(&listener, LEFT), []);
}

#[test]
fn a_refusing_upstream_gives_it_back() {
    let listener = accepting();
    let mut gate = gone_on(&listener, "PROCESSING");
    assert_eq!(gate.handle(&listener, answering(503)), []);

    let effects = gate.handle(&listener, Event::ResponseEnded { grpc_status: None });

    assert_eq!(settlement(&effects), Some(Settlement::Returned));
    assert!(effects.contains(&Effect::Count(Counter::Returned)));
}

#[test]
fn a_client_that_leaves_after_the_release_spends_it() {
    let listener = accepting();
    let mut gate = gone_on(&listener, "PROCESSING");

    assert_eq!(
        settlement(&gate.handle(&listener, LEFT)),
        Some(Settlement::Spent)
    );
}

#[test]
fn a_plane_that_spends_at_release_has_nothing_to_settle() {
    let listener = accepting();
    let mut gate = gone_on(&listener, "EXECUTED");

    assert!(!gate.awaits_upstream());
    assert_eq!(gate.handle(&listener, answering(503)), []);
}
