//! gRPC calls through the gate, event by event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

const OTHER: &str = "00000000-0000-4000-8000-000000000001";

fn grpc_listener(keys: &str) -> Listener {
    let text = format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a"}},{keys},
        "rules":[{{"name":"post","match":{{"grpc":["p.S/*"]}},"action":"require_approval","approval_rule":"r"}}]}}"#
    );
    Listener::new(
        Config::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}")),
        Secrets::default(),
    )
}

fn returning() -> Listener {
    grpc_listener(r#""approval_mode":"return""#)
}

fn open(listener: &Listener, more: &[(&str, &str)]) -> (Opening, Vec<Effect>) {
    let mut headers = vec![("content-type", "application/grpc")];
    headers.extend(more);
    Gate::open(
        listener,
        &head_with("/p.S/M", &headers),
        false,
        &NothingKnown,
    )
}

fn call(listener: &Listener, more: &[(&str, &str)]) -> Gate {
    match open(listener, more) {
        (Opening::Held(gate), effects) if effects.is_empty() => *gate,
        other => panic!("not held: {other:?}"),
    }
}

/// A message of one field: number 1, a text.
fn message(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("short");
    let mut message = vec![0x0a, length];
    message.extend_from_slice(text.as_bytes());
    message
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("short");
    let mut bytes = vec![0];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

fn statement(effects: &[Effect]) -> Option<String> {
    let filing: serde_json::Value = serde_json::from_str(&filed(effects)?).expect("JSON");
    let payload = filing["payload"].as_str().expect("a payload").to_owned();
    let bytes = STANDARD.decode(payload).expect("base64");
    Some(String::from_utf8(bytes).expect("a text"))
}

fn released(id: &str, status: &str) -> Event {
    plane_says(&format!(
        r#"{{"forward":true,"release_id":"r-1","review":{{"id":"{id}","status":"{status}"}}}}"#
    ))
}

fn gone_on(effects: &[Effect]) -> Option<usize> {
    effects.iter().find_map(|effect| {
        let Effect::ForwardMessages(releases) = effect else {
            return None;
        };
        Some(releases.len())
    })
}

fn settlements(effects: &[Effect]) -> Vec<(&str, Settlement)> {
    let settlements = effects.iter().filter_map(|effect| {
        let Effect::Settle { id, settlement, .. } = effect else {
            return None;
        };
        Some((id.as_str(), *settlement))
    });
    settlements.collect()
}

fn words(effects: &[Effect]) -> String {
    let answer = effects.iter().find_map(|effect| {
        let Effect::Answer(answer) = effect else {
            return None;
        };
        Some(answer)
    });
    String::from_utf8_lossy(&answer.expect("refused").body).into_owned()
}

#[test]
fn a_message_is_filed_as_its_method_and_its_text_and_refused_as_grpc_reads_it() {
    let listener = returning();
    let mut gate = call(&listener, &[]);

    let effects = gate.handle(&listener, body(&framed(&message("hi")), false));

    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M\n1: \"hi\""));
    let pending = format!(r#"{{"forward":false,"review":{{"id":"{ID}","status":"PENDING"}}}}"#);
    let effects = gate.handle(&listener, plane_says(&pending));
    assert_eq!(refusal(&effects), Some((403, Some("review"))));
    assert!(words(&effects).ends_with(&format!("(approval {ID})")));
}

#[test]
fn a_message_is_the_same_however_it_is_cut() {
    let listener = returning();
    let bytes = framed(&message("hi"));
    for cut in 0..=bytes.len() {
        let mut gate = call(&listener, &[]);
        let (start, end) = bytes.split_at(cut);
        let mut effects = gate.handle(&listener, body(start, false));
        assert!(!gate.may_continue());
        effects.extend(gate.handle(&listener, body(end, true)));
        assert_eq!(
            statement(&effects).as_deref(),
            Some("/p.S/M\n1: \"hi\""),
            "cut at {cut}"
        );
    }
}

#[test]
fn each_message_of_a_stream_waits_for_its_own_release() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    gate.handle(&listener, body(&framed(&message("a")), false));
    let effects = gate.handle(&listener, released(ID, "PROCESSING"));
    assert_eq!(gone_on(&effects), Some(1));
    assert_eq!(settlements(&effects), [(ID, Settlement::Spent)]);
    assert!(gate.may_continue());

    let effects = gate.handle(&listener, body(&framed(&message("b")), false));

    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M\n1: \"b\""));
    assert!(!gate.may_continue());
    let effects = gate.handle(&listener, released(OTHER, "EXECUTED"));
    assert_eq!(gone_on(&effects), Some(1));
    assert_eq!(settlements(&effects), []);
    assert_eq!(gate.handle(&listener, body(b"", true)), []);
    assert_eq!(gate.handle(&listener, LEFT), []);
}

#[test]
fn messages_that_came_together_go_on_together() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    let mut two = framed(&message("a"));
    two.extend(framed(&message("b")));
    let effects = gate.handle(&listener, body(&two, true));
    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M\n1: \"a\""));

    let effects = gate.handle(&listener, released(ID, "PROCESSING"));

    assert_eq!(gone_on(&effects), None);
    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M\n1: \"b\""));
    let effects = gate.handle(&listener, released(OTHER, "PROCESSING"));
    assert_eq!(gone_on(&effects), Some(2));
}

#[test]
fn a_refusal_gives_back_what_was_released_and_did_not_go_on() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    let mut two = framed(&message("a"));
    two.extend(framed(&message("b")));
    gate.handle(&listener, body(&two, true));
    gate.handle(&listener, released(ID, "PROCESSING"));

    let pending = format!(r#"{{"forward":false,"review":{{"id":"{OTHER}","status":"PENDING"}}}}"#);
    let effects = gate.handle(&listener, plane_says(&pending));

    assert!(words(&effects).contains(OTHER));
    assert_eq!(settlements(&effects), [(ID, Settlement::Returned)]);
    assert_eq!(gone_on(&effects), None);
}

#[test]
fn an_equal_message_is_refused_while_the_approval_of_the_first_is_in_use() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    let twice = framed(&message("a")).repeat(2);
    gate.handle(&listener, body(&twice, true));

    let effects = gate.handle(&listener, released(ID, "PROCESSING"));

    assert!(words(&effects).contains("the same message"), "{effects:?}");
    assert_eq!(settlements(&effects), [(ID, Settlement::Returned)]);
    assert_eq!(filed(&effects), None);

    // Once the first has gone on, an equal one has an approval of its own.
    let mut gate = call(&listener, &[]);
    gate.handle(&listener, body(&framed(&message("a")), false));
    gate.handle(&listener, released(ID, "PROCESSING"));
    let effects = gate.handle(&listener, body(&framed(&message("a")), true));
    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M\n1: \"a\""));
}

#[test]
fn more_messages_than_a_person_would_read_are_refused_and_leave_no_trace_in_memory() {
    let listener = returning();
    let empty = framed(b"");
    let mut gate = call(&listener, &[]);
    let effects = gate.handle(&listener, body(&empty.repeat(129), false));
    assert!(words(&effects).contains("fewer at a time"), "{effects:?}");
    drop(gate);

    // Calls that are not too large each, until the VM keeps enough back.
    let large = framed(&[b"\x0a\xd0\x86\x03".to_vec(), vec![b'x'; 50_000]].concat());
    let mut calls = Vec::new();
    let refused = loop {
        let mut gate = call(&listener, &[]);
        let effects = gate.handle(&listener, body(&large, false));
        if refusal(&effects).is_some() {
            break words(&effects);
        }
        calls.push(gate);
        assert!(calls.len() < 1_000, "nothing is refused");
    };
    assert!(refused.contains("fewer at a time"), "{refused}");
    calls.pop();
    let mut gate = call(&listener, &[]);
    let effects = gate.handle(&listener, body(&large, false));
    assert_eq!(refusal(&effects), None, "a call that ended has made room");
}

#[test]
fn a_message_that_is_no_protobuf_is_bound_to_its_content_type() {
    let listener = returning();
    for (kind, text) in [
        ("application/grpc+json", "1: \"q\""),
        ("Application/GRPC+JSON", "1: \"q\""),
        ("application/grpc+thrift", "1: \"q\""),
    ] {
        let message: &[u8] = if kind.ends_with("thrift") {
            b"\x0a\x01q"
        } else {
            b"1: \"q\""
        };
        let head = head_with("/p.S/M", &[("content-type", kind)]);
        let (opening, _) = Gate::open(&listener, &head, false, &NothingKnown);
        let Opening::Held(mut gate) = opening else {
            panic!("{kind}: {opening:?}");
        };
        let effects = gate.handle(&listener, body(&framed(message), true));
        let kind = kind.to_ascii_lowercase();
        let expected = format!("/p.S/M\ncontent-type: {kind}\n{text}");
        assert_eq!(statement(&effects), Some(expected));
    }
}

#[test]
fn a_half_message_goes_on_with_nothing() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    let mut bytes = framed(&message("a"));
    bytes.extend_from_slice(&[0, 0, 0]);
    gate.handle(&listener, body(&bytes, false));

    let effects = gate.handle(&listener, released(ID, "PROCESSING"));
    assert_eq!(gone_on(&effects), None);
    assert!(!gate.may_continue());

    let effects = gate.handle(&listener, body(b"", true));
    assert!(words(&effects).contains("cannot be read"), "{effects:?}");
    assert_eq!(settlements(&effects), [(ID, Settlement::Returned)]);
}

#[test]
fn a_call_without_a_message_is_filed_by_its_path() {
    let listener = returning();
    let mut gate = call(&listener, &[]);

    let effects = gate.handle(&listener, body(b"", true));

    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M"));
}

#[test]
fn a_refusal_after_the_answer_began_breaks_the_stream_off() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    gate.handle(&listener, body(&framed(&message("a")), false));
    gate.handle(&listener, released(ID, "EXECUTED"));
    let began = Event::ResponseStarted {
        status: 200,
        grpc_status: None,
        is_first_attempt: true,
        is_delimited: false,
    };
    assert!(gate.awaits_upstream());
    assert_eq!(gate.handle(&listener, began), []);
    assert!(!gate.holds_answer());
    assert_eq!(
        gate.handle(&listener, Event::ResponseGoesOn { has_body: false }),
        []
    );
    gate.handle(&listener, body(&framed(&message("b")), false));

    let pending = format!(r#"{{"forward":false,"review":{{"id":"{OTHER}","status":"PENDING"}}}}"#);
    let effects = gate.handle(&listener, plane_says(&pending));

    assert_eq!(refusal(&effects), None);
    assert!(effects.contains(&Effect::Reset));
    assert!(effects.contains(&Effect::Count(Counter::RefusedPending)));
}

/// A head that a server sends as soon as it is called must not take the place of a refusal.
#[test]
fn the_head_of_an_answer_waits_for_the_first_release_or_for_more_of_the_answer() {
    let listener = returning();
    let began = || Event::ResponseStarted {
        status: 200,
        grpc_status: None,
        is_first_attempt: true,
        is_delimited: false,
    };
    let waiting = || {
        let mut gate = call(&listener, &[]);
        gate.handle(&listener, body(&framed(&message("a")), false));
        assert_eq!(gate.handle(&listener, began()), []);
        assert!(gate.holds_answer());
        gate
    };
    let pending = format!(r#"{{"forward":false,"review":{{"id":"{ID}","status":"PENDING"}}}}"#);

    let effects = waiting().handle(&listener, plane_says(&pending));
    assert_eq!(refusal(&effects), Some((403, Some("review"))));

    let mut gate = waiting();
    let effects = gate.handle(&listener, released(ID, "EXECUTED"));
    assert!(effects.contains(&Effect::ForwardAnswer));
    assert!(!gate.holds_answer());

    let mut gate = waiting();
    assert_eq!(
        gate.handle(&listener, Event::ResponseGoesOn { has_body: false }),
        []
    );
    assert!(!gate.holds_answer());
    let effects = gate.handle(&listener, plane_says(&pending));
    assert!(effects.contains(&Effect::Reset));
}

#[test]
fn the_status_of_the_call_settles_its_messages_where_the_upstream_has_to_accept() {
    let listener = grpc_listener(r#""approval_mode":"return","spend_approval_on":"accepted""#);
    for (status, settlement) in [(0, Settlement::Spent), (5, Settlement::Returned)] {
        let mut gate = call(&listener, &[]);
        gate.handle(&listener, body(&framed(&message("a")), true));
        let effects = gate.handle(&listener, released(ID, "PROCESSING"));
        assert_eq!(
            (gone_on(&effects), settlements(&effects)),
            (Some(1), vec![])
        );
        let began = Event::ResponseStarted {
            status: 200,
            grpc_status: None,
            is_first_attempt: true,
            is_delimited: false,
        };
        gate.handle(&listener, began);

        let ended = Event::ResponseEnded {
            grpc_status: Some(status),
        };
        let effects = gate.handle(&listener, ended);

        assert_eq!(settlements(&effects), [(ID, settlement)]);
        assert_eq!(gate.handle(&listener, LEFT), []);
    }
}

#[test]
fn a_client_that_leaves_gives_back_what_did_not_go_on() {
    let listener = returning();
    let mut gate = call(&listener, &[]);
    let mut two = framed(&message("a"));
    two.extend(framed(&message("b")));
    gate.handle(&listener, body(&two, true));
    gate.handle(&listener, released(ID, "PROCESSING"));

    let effects = gate.handle(&listener, LEFT);

    assert_eq!(settlements(&effects), [(ID, Settlement::Returned)]);
    assert!(effects.contains(&Effect::Count(Counter::Abandoned)));
}

#[test]
fn a_deadline_ends_the_hold_before_it() {
    let listener = grpc_listener(r#""approval_mode":"hold""#);
    for (timeout, budget_ms) in [("2S", 1_800), ("1M", 59_000), ("99999999H", 1_800_000)] {
        let mut gate = call(&listener, &[("grpc-timeout", timeout)]);
        gate.handle(&listener, body(&framed(&message("a")), true));
        let pending = format!(r#"{{"forward":false,"review":{{"id":"{ID}","status":"PENDING"}}}}"#);

        let effects = gate.handle(&listener, plane_says(&pending));

        let watched = effects.iter().find_map(|effect| {
            let Effect::Watch { budget_ms, .. } = effect else {
                return None;
            };
            Some(*budget_ms)
        });
        assert_eq!(watched, Some(budget_ms), "{timeout}");
    }
}

#[test]
fn what_nobody_could_read_is_refused_and_not_filed() {
    let listener = grpc_listener(r#""approval_mode":"return","grpc":{"max_payload_bytes":8}"#);
    let flagged = [&[1][..], &framed(b"x")[1..]].concat();
    let large = framed(&[0x0a, 7, 1, 2, 3, 4, 5, 6, 7]);
    let long_as_text = framed(&message("abcd"));
    for (headers, bytes, why) in [
        (&[][..], &b"\x02\0\0\0\0"[..], "cannot be read"),
        (&[], &flagged, "cannot be read"),
        (&[], &large, "larger than grpc.max_payload_bytes"),
        (&[], &long_as_text, "larger than grpc.max_payload_bytes"),
    ] {
        let mut gate = call(&listener, headers);
        let effects = gate.handle(&listener, body(bytes, true));
        assert!(words(&effects).contains(why), "{why}: {effects:?}");
        assert_eq!(filed(&effects), None);
    }
    for headers in [[("grpc-encoding", "br")], [("grpc-encoding", "GZIP")]] {
        let (opening, effects) = open(&listener, &headers);
        assert!(matches!(opening, Opening::Refused));
        assert!(words(&effects).contains("cannot be read"));
    }
}

#[test]
fn a_request_that_only_says_it_is_grpc_is_refused() {
    let listener = returning();
    for (method, path, kind) in [
        ("GET", "/p.S/M", "application/grpc"),
        ("POST", "/p.S/M?x=1", "application/grpc"),
        ("POST", "/p.S/M", "application/grpc, text/plain"),
        ("POST", "/p.S/M", "application/grpc;json"),
    ] {
        let headers = [
            (":method", method),
            (":path", path),
            (":authority", "h"),
            ("content-type", kind),
        ];
        let mut wanted = HeaderNames::default();
        wanted.insert("content-type");
        let headers = headers.map(|(name, value)| (name, value.as_bytes()));
        let head = RequestHead::parse(headers.into_iter(), &wanted).expect("readable");

        let (opening, effects) = Gate::open(&listener, &head, false, &NothingKnown);

        assert!(
            matches!(opening, Opening::Refused),
            "{method} {path} {kind}"
        );
        assert!(
            words(&effects).contains("says that it is gRPC"),
            "{effects:?}"
        );
    }
}

#[test]
fn a_method_is_held_whatever_content_type_it_comes_with() {
    let listener = returning();
    for kind in [
        "application/json",
        "application/proto",
        "application/grpc-web+proto",
    ] {
        let head = head_with("/p.S/M", &[("content-type", kind)]);
        let (opening, _) = Gate::open(&listener, &head, false, &NothingKnown);
        let Opening::Held(mut gate) = opening else {
            panic!("{kind}: {opening:?}");
        };
        let effects = gate.handle(&listener, body(b"{}", true));
        assert_eq!(statement(&effects).as_deref(), Some("POST /p.S/M\n\n{}"));
    }
}

#[test]
fn without_streaming_a_call_is_held_whole_and_a_second_message_refused() {
    let listener = grpc_listener(r#""approval_mode":"return","grpc":{"streaming":"deny"}"#);
    let one = framed(&message("a"));
    let mut gate = call(&listener, &[]);
    assert_eq!(gate.handle(&listener, body(&one, false)), []);
    let effects = gate.handle(&listener, body(b"", true));
    assert_eq!(statement(&effects).as_deref(), Some("/p.S/M\n1: \"a\""));

    let mut gate = call(&listener, &[]);
    let effects = gate.handle(&listener, body(&[one.clone(), one].concat(), true));
    assert!(words(&effects).contains("more than one request message"));
    assert_eq!(filed(&effects), None);
}
