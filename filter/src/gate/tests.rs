//! One held request through the gate, event by event.

use super::*;
use crate::approval::Status;
use crate::config::Config;
use crate::control_plane::{Credential, PlaneAnswer, read_claim};
use crate::identity::NothingKnown;
use crate::listener::Secrets;
use crate::request::HeaderNames;

const ID: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";
const LEFT: Event = Event::StreamEnded {
    never_reached: false,
};

fn listener() -> Listener {
    listener_with(r#""approval_mode":"return""#)
}

fn listener_with(keys: &str) -> Listener {
    let text = format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a"}},{keys},"max_body_bytes":8,
        "rules":[{{"name":"pay","match":{{"methods":["POST"],"paths":["/p/**"]}},"action":"require_approval","approval_rule":"r"}}]}}"#
    );
    let secrets = Secrets {
        credential: Credential::parse("hsc_t").ok(),
        redaction_key: None,
    };
    Listener::new(Config::parse(text.as_bytes()).expect("valid"), secrets)
}

fn head(target: &str) -> RequestHead {
    head_with(target, &[])
}

fn head_with(target: &str, more: &[(&str, &str)]) -> RequestHead {
    let headers = [(":method", "POST"), (":path", target), (":authority", "h")];
    let all = headers.iter().chain(more);
    let all = all.map(|(name, value)| (*name, value.as_bytes()));
    let mut wanted = HeaderNames::default();
    for name in ["content-type", "grpc-encoding", "grpc-timeout"] {
        wanted.insert(name);
    }
    RequestHead::parse(all, &wanted).expect("readable")
}

fn held(listener: &Listener, target: &str, end_of_stream: bool) -> (Gate, Vec<Effect>) {
    match Gate::open(listener, &head(target), end_of_stream, &NothingKnown) {
        (Opening::Held(gate), effects) => (*gate, effects),
        (other, _) => panic!("not held: {other:?}"),
    }
}

fn body(chunk: &[u8], end_of_stream: bool) -> Event {
    Event::RequestBody {
        chunk: chunk.to_vec(),
        end_of_stream,
    }
}

fn plane_says(body: &str) -> Event {
    plane_says_with("200", body)
}

fn plane_says_with(status: &str, body: &str) -> Event {
    let headers = [
        (":status", status.as_bytes()),
        ("content-type", b"application/json"),
    ];
    Event::PlaneAnswered(Ok(PlaneAnswer::new(
        headers.into_iter(),
        Some(body.as_bytes().to_vec()),
    )))
}

fn forward() -> Event {
    plane_says(&format!(r#"{{"forward":true,"review":{{"id":"{ID}"}}}}"#))
}

/// The filed body, which names the statement.
fn filed(effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| {
        let Effect::CallPlane(call) = effect else {
            return None;
        };
        String::from_utf8(call.body.clone()?).ok()
    })
}

fn refusal(effects: &[Effect]) -> Option<(u16, Option<&str>)> {
    effects.iter().find_map(|effect| {
        let Effect::Answer(answer) = effect else {
            return None;
        };
        Some((answer.status, answer.header("x-hoop-denied")))
    })
}

fn forwards(effects: &[Effect]) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Forward(_)))
}

#[test]
fn a_request_without_a_body_is_filed_with_its_head() {
    let (_, effects) = held(&listener(), "/p/1", true);

    assert_eq!(
        filed(&effects).as_deref(),
        Some(r#"{"approval_rule":"r","listener_name":"l","payload":"UE9TVCAvcC8x"}"#)
    );
}

#[test]
fn a_body_is_filed_whole_however_it_was_cut() {
    let listener = listener();
    let mut statements = Vec::new();
    for cut in 0..=4 {
        let (mut gate, effects) = held(&listener, "/p/1", false);
        assert_eq!(filed(&effects), None);
        let (start, end) = b"body".split_at(cut);
        assert_eq!(gate.handle(&listener, body(start, false)), []);
        statements.push(filed(&gate.handle(&listener, body(end, true))).expect("filed"));
    }
    statements.dedup();

    assert_eq!(statements.len(), 1);
}

#[test]
fn trailers_end_the_body() {
    let listener = listener();
    let (mut gate, _) = held(&listener, "/p/1", false);
    gate.handle(&listener, body(b"x", false));

    let effects = gate.handle(&listener, Event::RequestTrailers);

    assert!(filed(&effects).is_some());
    assert!(
        effects.contains(&Effect::RemoveRequestTrailers),
        "nobody is shown them, so they go no further"
    );
}

#[test]
fn a_body_of_exactly_the_limit_is_filed_and_one_byte_more_is_refused() {
    let listener = listener();
    let (mut gate, _) = held(&listener, "/p/1", false);
    assert_eq!(gate.body_room(), 9);
    gate.handle(&listener, body(b"12345678", false));
    assert_eq!(gate.body_room(), 1);
    assert!(filed(&gate.handle(&listener, body(b"", true))).is_some());

    let (mut gate, _) = held(&listener, "/p/1", false);
    gate.handle(&listener, body(b"12345678", false));
    let effects = gate.handle(&listener, body(b"9", false));
    assert_eq!(refusal(&effects), Some((403, Some("policy"))));
    assert_eq!(filed(&effects), None);
}

#[test]
fn a_release_forwards_once_and_nothing_follows() {
    let listener = listener();
    let (mut gate, _) = held(&listener, "/p/1", true);

    assert!(forwards(&gate.handle(&listener, forward())));
    assert_eq!(gate.handle(&listener, forward()), []);
    assert_eq!(gate.handle(&listener, Event::RequestTrailers), []);
}

#[test]
fn a_pending_approval_is_refused_with_its_id_and_counted_once() {
    let listener = listener();
    for (status, counted) in [("201", true), ("200", false)] {
        let (mut gate, _) = held(&listener, "/p/1", true);
        let pending = format!(r#"{{"forward":false,"review":{{"id":"{ID}","status":"PENDING"}}}}"#);

        let effects = gate.handle(&listener, plane_says_with(status, &pending));

        assert_eq!(refusal(&effects), Some((403, Some("review"))));
        assert_eq!(effects.contains(&Effect::Count(Counter::Filed)), counted);
    }
}

#[test]
fn a_plane_that_cannot_be_asked_refuses() {
    let listener = listener();
    let (mut gate, _) = held(&listener, "/p/1", true);

    let effects = gate.handle(&listener, Event::PlaneAnswered(Err(PlaneFault::Unsent)));

    assert_eq!(refusal(&effects), Some((403, Some("policy"))));
    assert!(effects.contains(&Effect::Count(Counter::PlaneFailures)));
}

#[test]
fn one_approval_request_too_many_is_refused_in_either_mode_and_named_in_the_log() {
    for mode in ["return", "hold"] {
        let listener = listener_with(&format!(r#""approval_mode":"{mode}""#));
        let (mut gate, _) = held(&listener, "/p/1", true);

        let effects = gate.handle(&listener, plane_says_with("429", r#"{"message":"2 wait"}"#));

        assert_eq!(refusal(&effects), Some((403, Some("policy"))));
        let counters = [
            Counter::RefusedTooManyWaiting,
            Counter::PlaneFailures,
            Counter::PlaneRefusals,
        ];
        for counter in Counter::ALL {
            let counted = effects.contains(&Effect::Count(counter));
            assert_eq!(counted, counters.contains(&counter), "{counter:?}");
        }
        let logged = effects.iter().any(|effect| {
            matches!(effect, Effect::Log { level: log::Level::Warn, line }
                if line.contains("reason=too_many_waiting control_plane=\"answered with status 429: \\\"2 wait\\\""))
        });
        assert!(logged, "{effects:?}");
        assert_eq!(gate.handle(&listener, forward()), []);
    }
}

#[test]
fn a_429_of_a_proxy_is_no_word_about_what_waits() {
    let listener = listener();
    let (mut gate, _) = held(&listener, "/p/1", true);

    let effects = gate.handle(&listener, plane_says_with("429", "{}"));

    assert_eq!(refusal(&effects), Some((403, Some("policy"))));
    assert!(effects.contains(&Effect::Count(Counter::RefusedPlaneFault)));
}

#[test]
fn a_request_that_ends_undecided_is_counted_and_explained() {
    let listener = listener();
    let cases = [
        (false, None, "allow_on_headers_stop_iteration"),
        (false, Some(body(b"x", false)), "before it was whole"),
        (true, None, "while the control plane was asked"),
    ];
    for (end_of_stream, event, why) in cases {
        let (mut gate, _) = held(&listener, "/p/1", end_of_stream);
        if let Some(event) = event {
            gate.handle(&listener, event);
        }

        let effects = gate.handle(&listener, LEFT);

        assert!(effects.contains(&Effect::Count(Counter::Abandoned)));
        assert!(
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::Log { line, .. } if line.contains(why))),
            "{effects:?}"
        );
        assert_eq!(gate.handle(&listener, forward()), []);
    }
}

#[test]
fn an_event_out_of_order_refuses() {
    let listener = listener();
    let (mut gate, _) = held(&listener, "/p/1", false);
    let effects = gate.handle(&listener, forward());
    assert_eq!(refusal(&effects), Some((403, Some("policy"))));
    assert!(!forwards(&effects));

    let (mut gate, _) = held(&listener, "/p/1", true);
    let effects = gate.handle(&listener, body(b"more", true));
    assert!(refusal(&effects).is_some() && !forwards(&effects));
    assert_eq!(gate.handle(&listener, forward()), []);
}

#[test]
fn an_upgrade_under_a_holding_rule_is_refused() {
    let upgrade = RequestHead {
        leaves_http: true,
        ..head("/p/1")
    };

    let (opening, effects) = Gate::open(&listener(), &upgrade, true, &NothingKnown);

    assert!(matches!(opening, Opening::Refused));
    assert!(effects.contains(&Effect::Count(Counter::RefusedUpgrade)));
    assert_eq!(refusal(&effects), Some((403, Some("policy"))));
}

#[test]
fn a_log_line_holds_nothing_that_the_client_sent() {
    let listener = listener();
    let (mut gate, mut effects) = held(&listener, "/p/needle?needle=needle", false);
    effects.extend(gate.handle(&listener, body(b"needle", true)));
    effects.extend(gate.handle(
        &listener,
        plane_says(r#"{"forward":false,"review":{"id":"needle needle","status":"needle!"}}"#),
    ));

    for effect in effects {
        if let Effect::Log { line, .. } = effect {
            assert!(
                !line.contains("needle") && !line.contains("hsc_t"),
                "{line}"
            );
        }
    }
}

mod grpc;
mod hold;
mod spend_on_acceptance;
