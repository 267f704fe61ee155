//! gRPC callouts: a call with one message, and streams. Measured on Envoy 1.40.

use std::time::Duration;

use host_sim::sim::{Request, Sim};
use host_sim::{ClusterHealth, HeaderMap};

use crate::guest::{
    GRPC_INITIAL_METADATA, GRPC_MESSAGE, GRPC_TRAILING_METADATA, Guest, ask, ask_number, buffer,
    count_pairs, get, give, pairs, say_number, set_buffer, text,
};
use crate::scene::{assert_lines, root_callbacks, said, said_since, start};

/// `envoy.config.core.v3.GrpcService` with `envoy_grpc { cluster_name }`.
fn service(cluster: &str) -> String {
    let length = u8::try_from(cluster.len()).expect("short");
    text([&[0x0a, length + 2, 0x0a, length], cluster.as_bytes()].concat())
}

const METHOD: &str = "svc.S/Method";

fn method() -> String {
    let (service, method) = METHOD.split_once('/').expect("both");
    format!("{} {}", text(service), text(method))
}

/// `call = STATUS TOKEN`
fn grpc_call(target: &str, message: &str, milliseconds: u32) -> String {
    let arguments = format!(
        "{target} {} {} {} (i32.const {milliseconds})",
        method(),
        pairs(&[("x-meta", "1")]),
        text(message)
    );
    [ask_number("call", "grpc_call", &arguments), keep_token()].concat()
}

/// `stream = STATUS TOKEN`
fn grpc_stream(target: &str) -> String {
    let arguments = format!("{target} {} {}", method(), pairs(&[("x-meta", "1")]));
    [
        ask_number("stream", "grpc_stream", &arguments),
        keep_token(),
    ]
    .concat()
}

fn keep_token() -> String {
    "(i32.store (i32.const 56) (i32.load (i32.const 16)))".to_owned()
}

const TOKEN: &str = "(i32.load (i32.const 56))";

fn send(token: &str, message: &str, end: u32) -> String {
    ask(
        "send",
        "grpc_send",
        &format!("{token} {} (i32.const {end})", text(message)),
    )
}

fn close(token: &str) -> String {
    ask("close", "grpc_close", token)
}

fn cancel(token: &str) -> String {
    ask("cancel", "grpc_cancel", token)
}

/// `status = 0 text` and `code = NUMBER`
fn status() -> String {
    let call = "(call $get_status (i32.const 32) (i32.const 16) (i32.const 20))";
    format!(
        "(call $report_bytes {} {call}) {}",
        text("status"),
        say_number("code", "(i32.load (i32.const 32))")
    )
}

/// Tells everything that comes back.
fn listening() -> Guest {
    Guest::new()
        .on(
            "grpc_receive_initial_metadata",
            [
                count_pairs(GRPC_INITIAL_METADATA),
                get(GRPC_INITIAL_METADATA, "x-initial"),
            ],
        )
        .on("grpc_receive", [buffer(GRPC_MESSAGE, 0, 99)])
        .on(
            "grpc_receive_trailing_metadata",
            [
                count_pairs(GRPC_TRAILING_METADATA),
                get(GRPC_TRAILING_METADATA, "x-trailing"),
            ],
        )
        .on("grpc_close", [status(), buffer(GRPC_MESSAGE, 0, 99)])
}

/// Asks at the request headers, which it holds.
fn asking(steps: impl IntoIterator<Item = String>) -> Sim {
    let mut steps: Vec<String> = steps.into_iter().collect();
    steps.push(give(1));
    let sim = start(listening().on("request_headers", steps));
    sim.request(Request::get("/"));
    sim
}

fn metadata(name: &str, value: &str) -> HeaderMap {
    HeaderMap::new().with(name, value)
}

#[test]
fn a_call_carries_its_message_and_metadata_and_gets_the_answer_s_message() {
    let sim = asking([grpc_call(&service("plane"), "hello", 500)]);
    let call = sim.grpc_calls().remove(0);
    let made = call.call();
    assert_eq!(
        (
            made.cluster.as_str(),
            made.service.as_str(),
            made.method.as_str()
        ),
        ("plane", "svc.S", "Method")
    );
    assert_eq!(made.initial_metadata.text("x-meta"), Some("1"));
    assert_eq!(made.timeout, Some(Duration::from_millis(500)));
    assert_eq!(call.sent(), (vec!["hello".into()], true));
    call.initial_metadata(metadata("x-initial", "i"));
    call.message("answer");
    call.trailing_metadata(metadata("x-trailing", "t"));
    call.close(0, "");
    // Of the answer's metadata a call sees nothing.
    assert_lines(&said(&sim), &["call = 0 5", "buffer = 0 answer"]);
    assert_lines(&root_callbacks(&sim), &["grpc_receive(1, 5, 6)"]);
}

#[test]
fn a_call_that_fails_gets_its_status_and_text() {
    let sim = asking([grpc_call(&service("plane"), "hello", 0)]);
    sim.grpc_calls()[0].close(9, "failed");
    assert_lines(
        &said(&sim)[1..],
        &["status = 0 failed", "code = 9", "buffer = 0 null"],
    );
    assert_lines(&root_callbacks(&sim), &["grpc_close(1, 5, 9)"]);
    assert!(sim.grpc_calls().is_empty());
}

#[test]
fn a_call_without_a_message_in_its_answer_is_an_internal_failure() {
    let sim = asking([grpc_call(&service("plane"), "hello", 0)]);
    sim.grpc_calls()[0].close(0, "");
    assert_lines(&root_callbacks(&sim), &["grpc_close(1, 5, 13)"]);
}

#[test]
fn a_call_runs_out_of_time_at_its_deadline() {
    let sim = asking([grpc_call(&service("plane"), "hello", 500)]);
    sim.advance(Duration::from_millis(500) - Duration::from_nanos(1));
    assert!(root_callbacks(&sim).is_empty());
    let call = sim.grpc_calls()[0].clone();
    sim.advance(Duration::from_nanos(1));
    assert_lines(&root_callbacks(&sim), &["grpc_close(1, 5, 14)"]);
    assert_lines(
        &said(&sim)[1..],
        &[
            "status = 0 upstream request timeout{response_timeout}",
            "code = 14",
            "buffer = 0 null",
        ],
    );
    call.message("late");
    call.close(0, "");
    assert_eq!(root_callbacks(&sim).len(), 1);
    assert!(sim.grpc_calls().is_empty());
}

#[test]
fn a_cluster_may_be_named_in_plain_text() {
    let sim = asking([grpc_call(&text("plane"), "hello", 0)]);
    assert_eq!(sim.grpc_calls()[0].call().cluster, "plane");
}

/// A name that is unknown as text is a message that cannot be read; one in a message fails twice: at once, and by a close.
#[test]
fn what_cannot_start_is_refused() {
    let cases = [
        (grpc_call(&text("nowhere"), "m", 0), "call = 4", None),
        (grpc_stream(&text("nowhere")), "stream = 4", None),
        (
            grpc_call(&service("nowhere"), "m", 0),
            "call = 10",
            Some("grpc_close(1, 5, 14)"),
        ),
        (
            grpc_stream(&service("nowhere")),
            "stream = 10",
            Some("grpc_close(1, 6, 14)"),
        ),
        (
            grpc_call(&service("empty"), "m", 0),
            "call = 10",
            Some("grpc_close(1, 5, 14)"),
        ),
    ];
    for (step, expected, closed) in cases {
        let sim = start(listening().on("request_headers", [step]));
        sim.set_cluster("empty", ClusterHealth::NoHealthyHost);
        sim.request(Request::get("/"));
        assert_eq!(said(&sim)[0], expected);
        let expected: Vec<_> = closed.into_iter().collect();
        assert_lines(&root_callbacks(&sim), &expected);
        assert!(sim.grpc_calls().is_empty());
    }
}

#[test]
fn a_call_is_given_up_by_cancel_or_close() {
    for (step, expected) in [(cancel(TOKEN), "cancel = 0"), (close(TOKEN), "close = 0")] {
        let sim = asking([
            grpc_call(&service("plane"), "hello", 0),
            step,
            cancel(TOKEN),
            close(TOKEN),
        ]);
        assert_lines(&said(&sim)[1..], &[expected, "cancel = 1", "close = 1"]);
        assert!(sim.grpc_calls().is_empty());
        assert!(root_callbacks(&sim).is_empty());
    }
}

#[test]
fn no_message_can_follow_on_a_call() {
    let sim = asking([
        grpc_call(&service("plane"), "hello", 0),
        send(TOKEN, "more", 0),
    ]);
    assert_eq!(said(&sim)[1], "send = 2");
    assert_eq!(sim.grpc_calls()[0].sent().0.len(), 1);
}

#[test]
fn a_stream_sends_and_receives_until_both_sides_have_ended() {
    let sim = asking([
        grpc_stream(&service("plane")),
        send(TOKEN, "one", 0),
        send(TOKEN, "two", 0),
        send(TOKEN, "", 1),
        send(TOKEN, "behind the end", 0),
    ]);
    let before = said(&sim).len();
    assert_lines(
        &said(&sim),
        &[
            "stream = 0 6",
            "send = 0",
            "send = 0",
            "send = 0",
            "send = 0",
        ],
    );
    let stream = sim.grpc_calls()[0].clone();
    assert_eq!(stream.call().message, None);
    assert_eq!(
        stream.sent(),
        (vec!["one".into(), "two".into(), "".into()], true)
    );
    stream.initial_metadata(metadata("x-initial", "i"));
    stream.message("un");
    stream.message("");
    stream.trailing_metadata(metadata("x-trailing", "t"));
    stream.close(0, "");
    assert_lines(
        &root_callbacks(&sim),
        &[
            "grpc_receive_initial_metadata(1, 6, 1)",
            "grpc_receive(1, 6, 2)",
            "grpc_receive(1, 6, 0)",
            "grpc_receive_trailing_metadata(1, 6, 1)",
            "grpc_close(1, 6, 0)",
        ],
    );
    assert_lines(
        &said_since(&sim, before),
        &[
            "pairs = 0 1",
            "get x-initial = 0 i",
            "buffer = 0 un",
            "buffer = 0 null",
            "pairs = 0 1",
            "get x-trailing = 0 t",
            "status = 0 null",
            "code = 0",
            "buffer = 0 null",
        ],
    );
    assert!(sim.grpc_calls().is_empty());
}

#[test]
fn a_stream_that_was_cancelled_hears_nothing_more() {
    let sim = asking([grpc_stream(&service("plane")), send(TOKEN, "one", 0)]);
    let stream = sim.grpc_calls()[0].clone();
    let cancelling = asking([
        grpc_stream(&service("plane")),
        cancel(TOKEN),
        cancel(TOKEN),
        send(TOKEN, "x", 0),
    ]);
    assert_lines(
        &said(&cancelling)[1..],
        &["cancel = 0", "cancel = 1", "send = 1"],
    );
    assert!(cancelling.grpc_calls().is_empty());
    stream.message("still open");
    assert_lines(&root_callbacks(&sim), &["grpc_receive(1, 6, 10)"]);
}

/// Closing ends the guest's own side only.
#[test]
fn a_stream_that_was_half_closed_still_receives() {
    let sim = asking([
        grpc_stream(&service("plane")),
        close(TOKEN),
        close(TOKEN),
        send(TOKEN, "x", 0),
    ]);
    assert_lines(&said(&sim)[1..], &["close = 0", "close = 0", "send = 0"]);
    let stream = sim.grpc_calls()[0].clone();
    assert_eq!(stream.sent(), (vec![], true));
    stream.message("last");
    stream.close(0, "");
    assert_lines(
        &root_callbacks(&sim),
        &["grpc_receive(1, 6, 4)", "grpc_close(1, 6, 0)"],
    );
    // Both sides have ended.
    assert!(sim.grpc_calls().is_empty());
}

#[test]
fn tokens_that_nobody_was_given_are_told_apart() {
    let number = |token: u32| format!("(i32.const {token})");
    // Four would be an HTTP callout, 5 a call, 6 a stream, 99 nothing.
    let cases = [
        (send(&number(4), "x", 0), "send = 2"),
        (send(&number(6), "x", 0), "send = 1"),
        (send(&number(99), "x", 1), "send = 2"),
        (cancel(&number(4)), "cancel = 2"),
        (cancel(&number(5)), "cancel = 1"),
        (cancel(&number(6)), "cancel = 1"),
        (cancel(&number(99)), "cancel = 2"),
        (close(&number(4)), "close = 2"),
        (close(&number(5)), "close = 1"),
        (close(&number(6)), "close = 1"),
        (close(&number(0)), "close = 2"),
    ];
    let expected: Vec<&str> = cases.iter().map(|(_, expected)| *expected).collect();
    let sim = asking(cases.iter().map(|(step, _)| step.clone()));
    assert_lines(&said(&sim), &expected);
}

#[test]
fn each_kind_of_callout_counts_its_own_tokens() {
    let sim = asking([
        crate::guest::call("plane", 0),
        grpc_call(&service("plane"), "m", 0),
        grpc_stream(&service("plane")),
        crate::guest::call("plane", 0),
        grpc_call(&service("plane"), "m", 0),
    ]);
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "call = 0 5",
            "stream = 0 6",
            "call = 0 8",
            "call = 0 9",
        ],
    );
}

#[test]
fn a_message_is_the_only_answer_that_a_guest_can_change() {
    let guest = Guest::new()
        .on("request_headers", [grpc_call(&service("plane"), "m", 0)])
        .on(
            "grpc_receive",
            [
                set_buffer(GRPC_MESSAGE, 0, 0, "<"),
                buffer(GRPC_MESSAGE, 0, 99),
            ],
        );
    let sim = start(guest);
    sim.request(Request::get("/"));
    let call = sim.grpc_calls()[0].clone();
    call.message("hello");
    call.close(0, "");
    assert_lines(&said(&sim)[1..], &["set buffer = 0", "buffer = 0 <hello"]);
}

#[test]
fn a_grpc_stream_outlives_the_request_that_opened_it() {
    let sim = start(listening().on(
        "request_headers",
        [grpc_stream(&service("plane")), send(TOKEN, "one", 0)],
    ));
    let request = sim.request(Request::get("/"));
    request.respond(crate::scene::ok("up"));
    assert!(request.is_over());
    sim.grpc_calls()[0].message("still here");
    assert_lines(&root_callbacks(&sim), &["grpc_receive(1, 6, 10)"]);
}
