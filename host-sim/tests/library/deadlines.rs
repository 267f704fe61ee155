//! Time-outs of streams: idle, request and route, each exactly at its moment, and what the filter hears of them.

use std::time::Duration;

use host_sim::sim::{Request, Sim};
use host_sim::{Plugin, StreamLimits};

use crate::guest::{Guest, give, property, property_number};
use crate::scene::{assert_lines, builder, callbacks, ok, said, started};

const SECOND: Duration = Duration::from_secs(1);
const NANOSECOND: Duration = Duration::from_nanos(1);

fn sim(guest: Guest, limits: StreamLimits) -> Sim {
    started(builder(Plugin::new(guest.module())).limits(limits))
}

/// Up to the last nanosecond before `duration` is over.
fn almost(sim: &Sim, duration: Duration) {
    sim.advance(duration - NANOSECOND);
}

fn idle(timeout: Option<Duration>) -> StreamLimits {
    StreamLimits {
        idle_timeout: timeout,
        route_timeout: None,
        ..StreamLimits::default()
    }
}

#[test]
fn a_held_request_is_answered_504_when_it_was_idle_for_too_long() {
    let guest = Guest::new()
        .on("request_headers", [give(1)])
        .on(
            "response_headers",
            [
                property("response.code_details"),
                property_number("response.flags"),
            ],
        )
        .on("log", []);
    let sim = sim(guest, idle(Some(SECOND)));
    let stream = sim.request(Request::get("/"));
    almost(&sim, SECOND);
    assert!(stream.is_paused());
    sim.advance(NANOSECOND);
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (504, "stream timeout".to_owned())
    );
    assert_lines(
        &said(&sim),
        &[
            "response.code_details = 0 stream_idle_timeout",
            "response.flags = 0 65536",
        ],
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

/// Source: `ActiveStream::onIdleTimeout` of Envoy's connection manager; measured.
#[test]
fn a_request_that_is_idle_before_its_end_is_answered_408() {
    let unfinished = sim(Guest::new(), idle(Some(SECOND)));
    let stream = unfinished.request(Request::post("/").unfinished());
    unfinished.advance(SECOND);
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (408, "stream timeout".to_owned())
    );
    let sim = sim(Guest::new(), idle(Some(SECOND)));
    let request = Request::post("/")
        .header("content-type", "application/grpc")
        .unfinished();
    let stream = sim.request(request);
    sim.advance(SECOND);
    assert_eq!(stream.response().header("grpc-status"), Some("2"));
    assert_eq!(
        stream.response().header("grpc-message"),
        Some("stream timeout")
    );
}

#[test]
fn bytes_of_either_side_keep_a_stream_from_being_idle() {
    let sim = sim(Guest::new(), idle(Some(SECOND)));
    let stream = sim.request(Request::post("/").unfinished());
    almost(&sim, SECOND);
    stream.send_body("one");
    almost(&sim, SECOND);
    stream.finish("two");
    almost(&sim, SECOND);
    stream.respond_headers(ok(""));
    almost(&sim, SECOND);
    stream.respond_body("up", false);
    almost(&sim, SECOND);
    assert!(!stream.is_over());
    sim.advance(NANOSECOND);
    assert!(stream.was_reset() && stream.is_over());
    assert_eq!(stream.response().status(), 200);
}

#[test]
fn no_idle_time_out_means_for_ever() {
    let sim = sim(Guest::new().on("request_headers", [give(1)]), idle(None));
    let stream = sim.request(Request::get("/"));
    sim.advance(Duration::from_secs(3_000_000));
    assert!(stream.is_paused());
}

#[test]
fn the_default_idle_time_out_is_five_minutes() {
    let guest = Guest::new().on("request_headers", [give(1)]);
    let sim = sim(guest, StreamLimits::default());
    let stream = sim.request(Request::get("/"));
    almost(&sim, Duration::from_secs(300));
    assert!(stream.is_paused());
    sim.advance(NANOSECOND);
    assert_eq!(stream.response().status(), 504);
}

#[test]
fn a_request_that_does_not_come_in_whole_is_answered_408() {
    let limits = StreamLimits {
        request_timeout: Some(SECOND),
        ..StreamLimits::default()
    };
    let guest = Guest::new().on("response_headers", [property("response.code_details")]);
    let slow = sim(guest, limits);
    let stream = slow.request(Request::post("/").unfinished());
    stream.send_body("one");
    almost(&slow, SECOND);
    assert!(!stream.is_answered());
    slow.advance(NANOSECOND);
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (408, "request timeout".to_owned())
    );
    assert!(stream.upstream_was_reset());
    assert_lines(
        &said(&slow),
        &["response.code_details = 0 request_overall_timeout"],
    );

    let sim = sim(Guest::new().on("request_headers", [give(1)]), limits);
    let whole = sim.request(Request::get("/"));
    sim.advance(SECOND * 10);
    assert!(whole.is_paused());
}

#[test]
fn an_upstream_that_does_not_answer_in_time_is_answered_504() {
    let limits = StreamLimits {
        route_timeout: Some(SECOND),
        ..StreamLimits::default()
    };
    let guest = Guest::new().on(
        "response_headers",
        [
            property("response.code_details"),
            property_number("response.flags"),
        ],
    );
    let sim = sim(guest, limits);
    let stream = sim.request(Request::post("/").unfinished());
    assert_eq!(
        stream
            .upstream_request()
            .header("x-envoy-expected-rq-timeout-ms"),
        Some("1000")
    );
    // The clock starts when the request has gone out whole.
    sim.advance(SECOND * 5);
    assert!(!stream.is_answered());
    stream.finish("");
    almost(&sim, SECOND);
    assert!(!stream.is_answered());
    sim.advance(NANOSECOND);
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (504, "upstream request timeout".to_owned())
    );
    assert!(stream.upstream_was_reset());
    assert_lines(
        &said(&sim),
        &[
            "response.code_details = 0 response_timeout",
            "response.flags = 0 4",
        ],
    );
}

/// Source: `timeout` of Envoy's `RouteAction`: it spans until the upstream's response has been processed completely.
#[test]
fn the_route_s_time_out_runs_until_the_answer_is_complete() {
    let limits = StreamLimits {
        route_timeout: Some(SECOND),
        ..StreamLimits::default()
    };
    let sim = sim(Guest::new(), limits);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    stream.respond_body("u", false);
    almost(&sim, SECOND);
    assert!(!stream.is_over());
    sim.advance(NANOSECOND);
    assert!(stream.was_reset() && stream.is_over(), "{stream:?}");
    assert_eq!(stream.response().text(), "u");
}

#[test]
fn a_request_that_the_filter_holds_has_no_route_time_out() {
    let limits = StreamLimits {
        route_timeout: Some(SECOND),
        ..StreamLimits::default()
    };
    let sim = sim(Guest::new().on("request_headers", [give(1)]), limits);
    let stream = sim.request(Request::get("/"));
    sim.advance(SECOND * 299);
    assert!(stream.is_paused());
}

#[test]
fn no_route_time_out_sends_no_expectation() {
    let sim = sim(Guest::new(), idle(None));
    let stream = sim.request(Request::get("/"));
    assert_eq!(
        stream
            .upstream_request()
            .header("x-envoy-expected-rq-timeout-ms"),
        None
    );
    sim.advance(Duration::from_secs(100_000));
    assert!(!stream.is_answered());
}

#[test]
fn time_outs_of_several_streams_come_in_the_order_of_their_moments() {
    let guest = Guest::new().on("request_headers", [give(1)]).on(
        "log",
        [crate::guest::say_number("ended", "(local.get $p0)")],
    );
    let sim = sim(guest, idle(Some(SECOND * 3)));
    let first = sim.request(Request::post("/").unfinished());
    sim.advance(SECOND);
    let second = sim.request(Request::get("/"));
    sim.advance(SECOND);
    first.send_body("still here");
    sim.advance(SECOND * 9);
    assert_eq!(
        (first.response().status(), second.response().status()),
        (408, 504)
    );
    assert_lines(&said(&sim), &["ended = 3", "ended = 2"]);
}
