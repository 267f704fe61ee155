//! Direct responses that reach the filter bit by bit: when and how much, how they end, and how a filter ends them before.
//! Measured on Envoy 1.40 with `envoy.filters.http.fault` and `envoy.filters.http.bandwidth_limit` behind the filter.

use std::time::Duration;

use host_sim::sim::{Request, Sim, Stream};
use host_sim::{DirectResponse, Pace};

use crate::guest::{
    Guest, RESPONSE, RESPONSE_BODY, RESPONSE_HEADERS, act_for, close, get, give, nth, property,
    remove, resume, set_buffer, tick,
};
use crate::scene::{assert_lines, callbacks, ok, said, start};

/// 1 KiB a second.
fn slow(ends_with_trailers: bool) -> Option<Pace> {
    Some(Pace {
        bytes_per_second: 1024,
        ends_with_trailers,
    })
}

/// A request that its route answers with `size` bytes.
fn answered(sim: &Sim, size: usize, pace: Option<Pace>) -> Stream {
    let stream = sim.request(Request::get("/"));
    let body = vec![b'p'; size].into();
    stream.respond_directly(DirectResponse {
        status: 200,
        body,
        pace,
    });
    stream
}

fn body_callbacks(sim: &Sim) -> Vec<String> {
    let all = callbacks(sim).into_iter();
    all.filter(|line| line.starts_with("response_body") || line.starts_with("response_trailers"))
        .collect()
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// A guest that is told of the answer's body, and does not touch it.
fn watching() -> Guest {
    Guest::new()
        .on("response_body", [])
        .on("response_trailers", [])
}

#[test]
fn without_a_pace_the_filter_gets_the_whole_body_at_once() {
    let sim = start(watching().on(
        "response_headers",
        [
            property("response.code_details"),
            get(RESPONSE_HEADERS, "content-length"),
        ],
    ));
    let stream = answered(&sim, 200, None);
    assert_lines(&body_callbacks(&sim), &["response_body(2, 200, 1)"]);
    assert_lines(
        &said(&sim),
        &[
            "response.code_details = 0 direct_response",
            "get content-length = 0 200",
        ],
    );
    assert_eq!(stream.response().body.len(), 200);
}

#[test]
fn a_body_comes_twenty_times_a_second_and_its_last_bytes_end_it() {
    let sim = start(watching());
    let stream = answered(&sim, 128, slow(false));
    sim.advance(Duration::ZERO);
    assert_lines(&body_callbacks(&sim), &["response_body(2, 51, 0)"]);
    sim.advance(milliseconds(49));
    assert_eq!(stream.response().body.len(), 51);
    sim.advance(milliseconds(1));
    assert_eq!(stream.response().body.len(), 102);
    sim.advance(milliseconds(50));
    assert_lines(
        &body_callbacks(&sim),
        &[
            "response_body(2, 51, 0)",
            "response_body(2, 51, 0)",
            "response_body(2, 26, 1)",
        ],
    );
    assert!(stream.response().complete && stream.is_over());
}

#[test]
fn a_second_brings_what_the_pace_says() {
    let sim = start(watching());
    let stream = answered(&sim, 100_000, slow(true));
    sim.advance(Duration::from_secs(10));
    // One slice more, since the first is there at once.
    assert_eq!(stream.response().body.len(), 10 * 1024 + 51);
    assert!(!stream.is_over());
}

#[test]
fn with_trailers_behind_the_body_their_callback_is_the_end() {
    let sim = start(watching());
    let stream = answered(&sim, 60, slow(true));
    sim.advance(milliseconds(50));
    assert_lines(
        &body_callbacks(&sim),
        &[
            "response_body(2, 51, 0)",
            "response_body(2, 9, 0)",
            "response_trailers(2, 0)",
        ],
    );
    assert!(stream.response().complete);
}

#[test]
fn a_pause_and_a_resume_end_the_answer_where_there_are_trailers() {
    let guest = Guest::new()
        .on("configure", [tick(120)])
        .on(
            "response_headers",
            [remove(RESPONSE_HEADERS, "content-length")],
        )
        .on(
            "response_body",
            [
                nth(1, [set_buffer(RESPONSE_BODY, 0, u32::MAX, "event")]),
                nth(2, [set_buffer(RESPONSE_BODY, 0, u32::MAX, ",end"), give(1)]),
                nth(3, [set_buffer(RESPONSE_BODY, 0, u32::MAX, ",end"), give(1)]),
            ],
        )
        .on("response_trailers", [])
        .on("tick", [act_for(2), resume(RESPONSE)]);
    let sim = start(guest);
    let stream = answered(&sim, 60 * 1024, slow(true));
    sim.advance(milliseconds(119));
    assert_eq!(stream.response().text(), "event");
    assert!(!stream.is_over());
    sim.advance(milliseconds(1));
    assert_eq!(stream.response().text(), "event,end");
    assert!(stream.response().complete && stream.is_over() && !stream.was_reset());
    assert!(!body_callbacks(&sim).contains(&"response_trailers(2, 0)".to_owned()));
}

#[test]
fn going_on_by_itself_after_a_pause_ends_the_answer_too() {
    let guest = Guest::new().on(
        "response_body",
        [
            nth(1, [set_buffer(RESPONSE_BODY, 0, u32::MAX, "end"), give(1)]),
            nth(2, [set_buffer(RESPONSE_BODY, 0, u32::MAX, "end"), give(0)]),
        ],
    );
    let sim = start(guest);
    let stream = answered(&sim, 60 * 1024, slow(true));
    sim.advance(milliseconds(50));
    assert_eq!(stream.response().text(), "end");
    assert!(stream.response().complete && stream.is_over());
}

#[test]
fn a_resume_without_a_pause_ends_the_answer_before_the_bytes_of_the_same_callback() {
    let guest = Guest::new().on("response_body", [nth(2, [resume(RESPONSE), give(1)])]);
    let sim = start(guest);
    let stream = answered(&sim, 60 * 1024, slow(true));
    sim.advance(milliseconds(50));
    assert_eq!(stream.response().body.len(), 51);
    assert!(stream.response().complete && stream.is_over());
}

#[test]
fn without_trailers_a_resume_lets_the_answer_go_on() {
    let guest = Guest::new()
        .on("configure", [tick(70)])
        .on("response_body", [nth(2, [give(1)])])
        .on("tick", [act_for(2), resume(RESPONSE)]);
    let sim = start(guest);
    let stream = answered(&sim, 60 * 1024, slow(false));
    sim.advance(milliseconds(70));
    assert_eq!(stream.response().body.len(), 102);
    assert!(!stream.is_over());
}

#[test]
fn a_resume_of_paused_headers_ends_the_answer_behind_what_has_come() {
    let guest = Guest::new()
        .on("configure", [tick(70)])
        .on("response_headers", [give(1)])
        .on("response_body", [])
        .on("response_trailers", [])
        .on("tick", [act_for(2), resume(RESPONSE)]);
    let sim = start(guest);
    let stream = answered(&sim, 60 * 1024, slow(true));
    sim.advance(milliseconds(70));
    assert_lines(
        &body_callbacks(&sim),
        &["response_body(2, 102, 0)", "response_trailers(2, 0)"],
    );
    assert_eq!(stream.response().body.len(), 102);
    assert!(stream.response().complete && stream.is_over());
}

#[test]
fn an_answer_that_the_filter_closes_is_broken_off_and_no_more_of_it_comes() {
    let sim = start(watching().on("response_body", [nth(2, [close(RESPONSE)])]));
    let stream = answered(&sim, 60 * 1024, slow(true));
    sim.advance(Duration::from_secs(1));
    assert_eq!(body_callbacks(&sim).len(), 2);
    assert_eq!(stream.response().body.len(), 51);
    assert!(stream.was_reset() && stream.is_over());
}

#[test]
fn a_client_that_leaves_ends_the_pace() {
    let sim = start(watching());
    let stream = answered(&sim, 60 * 1024, slow(true));
    sim.advance(milliseconds(60));
    stream.disconnect();
    sim.advance(Duration::from_secs(1));
    assert_eq!(body_callbacks(&sim).len(), 2);
}

#[test]
fn an_answer_that_comes_slowly_is_not_idle() {
    let sim = start(watching());
    let stream = answered(&sim, 400 * 1024, slow(true));
    // Envoy's `stream_idle_timeout` is 300 s unless it is set.
    sim.advance(Duration::from_secs(390));
    assert!(!stream.is_over());
    sim.advance(Duration::from_secs(11));
    assert!(stream.response().complete);
}

#[test]
fn an_upstreams_answer_behind_a_direct_one_is_dropped() {
    let sim = start(watching());
    let stream = answered(&sim, 60, slow(true));
    stream.respond(ok("late"));
    sim.advance(milliseconds(50));
    assert_eq!(stream.response().body.len(), 60);
}
