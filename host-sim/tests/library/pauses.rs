//! What each return value of each callback does, with `allow_on_headers_stop_iteration` off and on. Measured on Envoy 1.40.

use std::time::Duration;

use host_sim::sim::{Request, Sim, Stream};
use host_sim::{HeaderMap, Plugin, StreamLimits};

use crate::guest::{Guest, REQUEST_BODY, RESPONSE_BODY, at_end, buffer, give, nth};
use crate::scene::{
    STREAM_CALLBACKS, assert_lines, builder, callbacks, ok, said, started, trailer,
};

/// The limits under which Envoy was measured.
fn limits() -> StreamLimits {
    StreamLimits {
        buffer_limit_bytes: 1000,
        idle_timeout: Some(Duration::from_secs(2)),
        ..StreamLimits::default()
    }
}

fn sim(guest: Guest, allow: bool) -> Sim {
    let plugin = Plugin::new(guest.module()).allow_on_headers_stop_iteration(allow);
    started(builder(plugin).limits(limits()))
}

fn with_all_callbacks(guest: Guest) -> Guest {
    STREAM_CALLBACKS
        .into_iter()
        .fold(guest, |guest, callback| guest.on(callback, []))
}

/// `one` and `two`, and the end by itself.
fn post(sim: &Sim) -> Stream {
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    stream.send_body("two");
    stream.finish("");
    stream
}

const ENDING: [&str; 3] = ["log(2)", "done(2)", "delete(2)"];

fn lines(parts: &[&[&'static str]]) -> Vec<&'static str> {
    parts.concat()
}

#[test]
fn what_request_headers_may_return() {
    let passes = [
        "request_headers(2, 4, 0)",
        "request_body(2, 3, 0)",
        "request_body(2, 3, 0)",
        "request_body(2, 0, 1)",
    ];
    let waits = ["request_headers(2, 4, 0)"];
    // Return value, setting, whether the request goes on.
    let cases = [
        (0, false, true),
        (1, false, false),
        (2, false, true),
        (3, false, false),
        (4, false, false),
        (5, false, false),
        (0, true, true),
        // The body's callbacks continue, and take the headers with them.
        (1, true, true),
        (2, true, true),
        (3, true, false),
        (4, true, false),
        (5, true, false),
    ];
    for (number, allow, goes_on) in cases {
        let sim = sim(
            with_all_callbacks(Guest::new().on("request_headers", [give(number)])),
            allow,
        );
        let stream = post(&sim);
        let place = format!("returns {number}, setting {allow}");
        assert_eq!(stream.reached_upstream(), goes_on, "{place}");
        if goes_on {
            assert_eq!(stream.upstream_request().text(), "onetwo", "{place}");
            assert!(stream.upstream_request().complete, "{place}");
            stream.respond(ok("up"));
            let answer: &[&str] = &["response_headers(2, 1, 0)", "response_body(2, 2, 1)"];
            assert_lines(&callbacks(&sim), &lines(&[&passes, answer, &ENDING]));
            continue;
        }
        assert!(stream.is_paused(), "{place}");
        sim.advance(Duration::from_secs(2));
        assert_eq!(stream.response().status(), 504, "{place}");
        assert_eq!(stream.response().text(), "stream timeout", "{place}");
        assert!(!stream.reached_upstream(), "{place}");
        let answer: &[&str] = &["response_headers(2, 3, 0)", "response_body(2, 14, 1)"];
        assert_lines(&callbacks(&sim), &lines(&[&waits, answer, &ENDING]));
    }
}

#[test]
fn what_request_headers_of_a_request_without_a_body_may_return() {
    for allow in [false, true] {
        for (number, goes_on) in [
            (0, true),
            (1, false),
            (2, true),
            (3, false),
            (4, false),
            (5, false),
        ] {
            let sim = sim(
                with_all_callbacks(Guest::new().on("request_headers", [give(number)])),
                allow,
            );
            let stream = sim.request(Request::get("/"));
            assert_eq!(
                stream.reached_upstream(),
                goes_on,
                "returns {number}, setting {allow}"
            );
            assert_eq!(
                stream.is_paused(),
                !goes_on,
                "returns {number}, setting {allow}"
            );
        }
    }
}

/// 1 keeps the bytes and shows them again, 2 keeps them, all others drop them.
#[test]
fn what_the_first_request_body_may_return() {
    let cases = [
        (0, "request_body(2, 3, 0)", "onetwo"),
        (1, "request_body(2, 6, 0)", "onetwo"),
        (2, "request_body(2, 3, 0)", "onetwo"),
        (3, "request_body(2, 3, 0)", "two"),
        (4, "request_body(2, 3, 0)", "two"),
        (5, "request_body(2, 3, 0)", "two"),
    ];
    for allow in [false, true] {
        for (number, second, upstream) in cases {
            let guest = Guest::new().on("request_body", [nth(1, [give(number)])]);
            let sim = sim(with_all_callbacks(guest), allow);
            let stream = post(&sim);
            assert_eq!(
                stream.upstream_request().text(),
                upstream,
                "returns {number}"
            );
            assert!(stream.upstream_request().complete, "returns {number}");
            assert_lines(
                &callbacks(&sim),
                &[
                    "request_headers(2, 4, 0)",
                    "request_body(2, 3, 0)",
                    second,
                    "request_body(2, 0, 1)",
                ],
            );
        }
    }
}

#[test]
fn a_request_body_that_always_pauses_never_goes_on() {
    let cases = [
        (
            1,
            ["buffer = 0 one", "buffer = 0 onetwo", "buffer = 0 onetwo"],
            "request_body(2, 6, 1)",
        ),
        (
            2,
            ["buffer = 0 one", "buffer = 0 two", "buffer = 0 null"],
            "request_body(2, 0, 1)",
        ),
        (
            3,
            ["buffer = 0 one", "buffer = 0 two", "buffer = 0 null"],
            "request_body(2, 0, 1)",
        ),
        (
            4,
            ["buffer = 0 one", "buffer = 0 two", "buffer = 0 null"],
            "request_body(2, 0, 1)",
        ),
    ];
    for allow in [false, true] {
        for (number, read, last) in cases {
            let guest = Guest::new().on(
                "request_body",
                [buffer(REQUEST_BODY, 0, u32::MAX), give(number)],
            );
            let sim = sim(guest, allow);
            let stream = post(&sim);
            assert_lines(&said(&sim), &read);
            assert_eq!(
                callbacks(&sim).last().map(String::as_str),
                Some(last),
                "returns {number}"
            );
            // The headers had gone on before.
            assert_eq!(stream.upstream_request().body, b"", "returns {number}");
            assert!(!stream.upstream_request().complete, "returns {number}");
            sim.advance(Duration::from_secs(2));
            assert_eq!(stream.response().status(), 504, "returns {number}");
            assert!(stream.upstream_was_reset(), "returns {number}");
        }
    }
}

/// The rule that a gate lives by: with the setting on, each callback has to pause.
#[test]
fn with_the_setting_on_a_body_callback_that_continues_lets_held_headers_go() {
    let guest = Guest::new()
        .on("request_headers", [give(1)])
        .on("request_body", [nth(1, [give(1)])]);
    let sim = sim(guest, true);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    assert!(!stream.reached_upstream());
    stream.send_body("two");
    assert_eq!(stream.upstream_request().text(), "onetwo");
}

#[test]
fn trailers_end_a_body_so_no_body_callback_has_the_end() {
    let sim = sim(with_all_callbacks(Guest::new()), false);
    let stream = sim.request(Request::post("/").body("one").trailer("x-sum", "1"));
    stream.respond(ok("up").trailer("x-sum", "2"));
    assert_lines(
        &callbacks(&sim),
        &lines(&[
            &[
                "request_headers(2, 4, 0)",
                "request_body(2, 3, 0)",
                "request_trailers(2, 1)",
            ],
            &[
                "response_headers(2, 1, 0)",
                "response_body(2, 2, 0)",
                "response_trailers(2, 1)",
            ],
            &ENDING,
        ]),
    );
    assert_eq!(stream.upstream_request().trailer("x-sum"), Some("1"));
    assert_eq!(stream.response().trailer("x-sum"), Some("2"));
}

#[test]
fn what_request_trailers_may_return() {
    for allow in [false, true] {
        for number in 1..=5 {
            let guest = with_all_callbacks(Guest::new().on("request_trailers", [give(number)]));
            let sim = sim(guest, allow);
            let stream = sim.request(Request::post("/").body("one").trailer("x-sum", "1"));
            // The body went on before the trailers came.
            assert_eq!(stream.upstream_request().trailers, None, "returns {number}");
            assert!(!stream.upstream_request().complete, "returns {number}");
            sim.advance(Duration::from_secs(2));
            assert_eq!(stream.response().status(), 504, "returns {number}");
        }
    }
}

/// What a body callback holds goes out in front of trailers that continue, as measured for responses.
#[test]
fn a_paused_body_waits_for_trailers_that_continue() {
    let guest = Guest::new()
        .on("request_body", [give(1)])
        .on("request_trailers", []);
    let sim = sim(guest, false);
    let stream = sim.request(
        Request::post("/")
            .body("one")
            .body("two")
            .trailer("x-sum", "1"),
    );
    assert_eq!(stream.upstream_request().text(), "onetwo");
    assert_eq!(stream.upstream_request().trailer("x-sum"), Some("1"));
}

#[test]
fn what_response_headers_may_return() {
    let cases = [
        (0, false, true),
        (1, false, false),
        (2, false, true),
        (3, false, false),
        (4, false, false),
        (5, false, false),
        (1, true, true),
        (2, true, true),
        (3, true, false),
        (4, true, false),
        (5, true, false),
    ];
    for (number, allow, goes_on) in cases {
        let sim = sim(
            with_all_callbacks(Guest::new().on("response_headers", [give(number)])),
            allow,
        );
        let stream = sim.request(Request::get("/"));
        stream.respond_headers(ok(""));
        stream.respond_body("u", false);
        stream.respond_body("p", false);
        stream.respond_body("", true);
        let place = format!("returns {number}, setting {allow}");
        let head: &[&str] = &["request_headers(2, 4, 1)", "response_headers(2, 1, 0)"];
        if goes_on {
            assert_eq!(stream.response().text(), "up", "{place}");
            assert!(stream.response().complete, "{place}");
            let body: &[&str] = &[
                "response_body(2, 1, 0)",
                "response_body(2, 1, 0)",
                "response_body(2, 0, 1)",
            ];
            assert_lines(&callbacks(&sim), &lines(&[head, body, &ENDING]));
            continue;
        }
        assert!(!stream.is_answered(), "{place}");
        sim.advance(Duration::from_secs(2));
        // Envoy's own answer in place of a held one does not pass the filter.
        assert_eq!(stream.response().status(), 504, "{place}");
        assert_eq!(stream.response().text(), "stream timeout", "{place}");
        assert_lines(&callbacks(&sim), &lines(&[head, &ENDING]));
    }
}

/// With trailers behind it, a held response body goes on when they do; what 3 and above were shown is lost.
#[test]
fn what_response_body_may_return() {
    let cases = [
        (
            1,
            ["buffer = 0 u", "buffer = 0 up"],
            "response_body(2, 2, 0)",
            "up",
        ),
        (
            2,
            ["buffer = 0 u", "buffer = 0 p"],
            "response_body(2, 1, 0)",
            "up",
        ),
        (
            3,
            ["buffer = 0 u", "buffer = 0 p"],
            "response_body(2, 1, 0)",
            "",
        ),
        (
            4,
            ["buffer = 0 u", "buffer = 0 p"],
            "response_body(2, 1, 0)",
            "",
        ),
        (
            5,
            ["buffer = 0 u", "buffer = 0 p"],
            "response_body(2, 1, 0)",
            "",
        ),
    ];
    for allow in [false, true] {
        for (number, read, second, client) in cases {
            let guest = Guest::new().on(
                "response_body",
                [buffer(RESPONSE_BODY, 0, u32::MAX), give(number)],
            );
            let sim = sim(with_all_callbacks(guest), allow);
            let stream = sim.request(Request::get("/"));
            stream.respond_headers(ok(""));
            stream.respond_body("u", false);
            stream.respond_body("p", false);
            stream.respond_trailers(trailer("x-trailer", "t"));
            assert_lines(&said(&sim), &read);
            assert_eq!(stream.response().text(), client, "returns {number}");
            assert_eq!(
                stream.response().trailer("x-trailer"),
                Some("t"),
                "returns {number}"
            );
            let body: &[&str] = &["response_body(2, 1, 0)", second, "response_trailers(2, 1)"];
            let head: &[&str] = &["request_headers(2, 4, 1)", "response_headers(2, 1, 0)"];
            assert_lines(&callbacks(&sim), &lines(&[head, body, &ENDING]));
        }
    }
}

#[test]
fn held_response_trailers_break_the_answer_off_at_the_idle_time_out() {
    for number in [1, 2, 4] {
        let sim = sim(
            with_all_callbacks(Guest::new().on("response_trailers", [give(number)])),
            false,
        );
        let stream = sim.request(Request::get("/"));
        stream.respond_headers(ok(""));
        stream.respond_body("u", false);
        stream.respond_body("p", false);
        stream.respond_trailers(trailer("x-trailer", "t"));
        assert_eq!(stream.response().text(), "up");
        assert!(!stream.response().complete);
        sim.advance(Duration::from_secs(2));
        assert!(stream.was_reset(), "returns {number}");
        assert_eq!(stream.response().status(), 200, "returns {number}");
        assert_eq!(
            callbacks(&sim).last().map(String::as_str),
            Some("delete(2)"),
            "returns {number}"
        );
    }
}

#[test]
fn a_request_that_comes_in_one_piece_ends_with_its_only_body_callback() {
    let guest = Guest::new().on("request_body", [at_end([buffer(REQUEST_BODY, 0, 9)])]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").body("whole"));
    assert_lines(&said(&sim), &["buffer = 0 whole"]);
    assert_eq!(stream.upstream_request().text(), "whole");
}

#[test]
fn trailers_of_a_request_without_a_body_follow_its_headers() {
    let sim = sim(with_all_callbacks(Guest::new()), false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_trailers(HeaderMap::new().with("X-Sum", "1").with("x-more", "2"));
    assert_lines(
        &callbacks(&sim),
        &["request_headers(2, 4, 0)", "request_trailers(2, 2)"],
    );
    assert_eq!(stream.upstream_request().trailer("x-sum"), Some("1"));
    assert_eq!(stream.upstream_request().body, b"");
}
