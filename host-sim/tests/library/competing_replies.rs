//! More than one answer to one stream: which of them the client gets. Measured on Envoy 1.40.

use std::time::Duration;

use host_sim::sim::{Request, Sim, Stream};
use host_sim::{Plugin, StreamLimits};

use crate::guest::{
    Guest, REQUEST, RESPONSE, RESPONSE_HEADERS, act_for, call, close, get, give, property, reply,
    resume,
};
use crate::scene::{assert_lines, builder, callbacks, ok, said, start, started};

/// Holds a request until a callout is answered, and then does `steps` in the root's callback.
fn on_answer(steps: impl IntoIterator<Item = String>) -> (Sim, Stream) {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("http_call_response", steps)
        .on("response_headers", [get(RESPONSE_HEADERS, ":status")])
        .on("response_body", [])
        .on("log", []);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    sim.callout().answer(ok(""));
    (sim, stream)
}

#[track_caller]
fn assert_answer(stream: &Stream, status: u16, body: &str) {
    assert_eq!(
        (
            stream.response().status(),
            stream.response().text().as_str()
        ),
        (status, body)
    );
    assert!(stream.response().complete && stream.is_over() && !stream.was_reset());
}

/// Within a callback of the stream the first reply counts; from a root both are performed, and the second replaces the first while
/// the filter is looking at it.
#[test]
fn of_two_replies_from_a_root_the_client_gets_the_second() {
    let (sim, stream) = on_answer([
        act_for(2),
        reply(403, "first", &[]),
        reply(404, "second", &[]),
    ]);
    assert_answer(&stream, 404, "second");
    assert_lines(
        &said(&sim)[1..],
        &["act = 0", "reply = 0", "reply = 0", "get :status = 0 403"],
    );
    assert_lines(
        &callbacks(&sim),
        &[
            "request_headers(2, 4, 1)",
            "response_headers(2, 3, 0)",
            "log(2)",
        ],
    );
}

#[test]
fn a_reply_of_the_root_itself_does_not_count_as_the_stream_s() {
    let (_, stream) = on_answer([
        reply(403, "from the root", &[]),
        act_for(2),
        reply(404, "own", &[]),
    ]);
    assert_answer(&stream, 404, "own");
}

#[test]
fn a_reply_and_a_close_in_one_callback_end_without_an_answer() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "no", &[]), close(REQUEST)])
        .on("log", []);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert!(
        !stream.is_answered() && stream.was_reset() && stream.is_over(),
        "{stream:?}"
    );
    assert_eq!(
        callbacks(&sim)
            .iter()
            .filter(|line| *line == "log(2)")
            .count(),
        1
    );
}

#[test]
fn a_reply_behind_the_headers_of_an_answer_breaks_it_off_in_each_callback() {
    for (callback, body) in [("response_body", ""), ("response_trailers", "up")] {
        for result in [0, 1] {
            let guest = Guest::new()
                .on(callback, [give(result), reply(451, "replaced", &[])])
                .on("log", [property("response.code_details")]);
            let sim = start(guest);
            let stream = sim.request(Request::get("/"));
            stream.respond(ok("up").trailer("x", "y"));
            assert!(stream.was_reset() && stream.is_over(), "{callback}");
            assert_eq!(
                (
                    stream.response().status(),
                    stream.response().text().as_str()
                ),
                (200, body),
                "{callback}"
            );
            assert_lines(
                &said(&sim),
                &["reply = 0", "response.code_details = 0 null"],
            );
        }
    }
}

#[test]
fn a_held_body_of_one_s_own_reply_breaks_off_at_the_idle_time_out() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "no", &[])])
        .on("response_body", [give(1)]);
    let limits = StreamLimits {
        idle_timeout: Some(Duration::from_secs(2)),
        ..StreamLimits::default()
    };
    let sim = started(builder(Plugin::new(guest.module())).limits(limits));
    let stream = sim.request(Request::get("/"));
    assert_eq!(
        (
            stream.response().status(),
            stream.response().text().as_str()
        ),
        (403, "")
    );
    assert!(!stream.is_over());
    sim.advance(Duration::from_secs(2));
    assert!(stream.was_reset() && stream.is_over());
}

#[test]
fn a_held_own_reply_can_be_resumed() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "no", &[])])
        .on("response_headers", [call("plane", 0), give(1)])
        .on("http_call_response", [act_for(2), resume(RESPONSE)]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert!(!stream.is_answered());
    sim.callout().answer(ok(""));
    assert_answer(&stream, 403, "no");
}

#[test]
fn an_answer_of_envoy_s_own_can_be_replaced_by_the_filter() {
    let guest = Guest::new()
        .on("request_headers", [give(1)])
        .on("response_headers", [reply(429, "come back later", &[])]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    sim.advance(Duration::from_secs(300));
    assert_answer(&stream, 429, "come back later");
}

#[test]
fn a_time_out_behind_a_reply_that_was_sent_does_nothing() {
    let sim = start(Guest::new().on("request_headers", [reply(403, "no", &[])]));
    let stream = sim.request(Request::post("/").unfinished());
    sim.advance(Duration::from_secs(10_000));
    assert_answer(&stream, 403, "no");
}
