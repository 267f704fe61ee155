//! Going on after a pause: what the filter is shown then, what it can read and change meanwhile, and what reaches the other side.

use host_sim::Plugin;
use host_sim::sim::{Request, Sim};

use crate::guest::{
    Guest, REQUEST, REQUEST_BODY, REQUEST_HEADERS, REQUEST_TRAILERS, RESPONSE, RESPONSE_BODY,
    RESPONSE_HEADERS, act_for, act_for_caller, add, at_end, buffer, call, close, count_pairs, get,
    give, nth, remove, replace, resume, set_buffer,
};
use crate::scene::{assert_lines, built, callbacks, ok, root_callbacks, said, start, trailer};

fn sim(guest: Guest, allow: bool) -> Sim {
    built(Plugin::new(guest.module()).allow_on_headers_stop_iteration(allow))
}

const WHOLE: u32 = u32::MAX;

#[test]
fn what_came_during_a_pause_is_shown_after_the_resume() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 1000), give(1)])
        .on("request_body", [buffer(REQUEST_BODY, 0, WHOLE)])
        .on(
            "http_call_response",
            [
                act_for_caller(),
                count_pairs(REQUEST_HEADERS),
                resume(REQUEST),
                count_pairs(REQUEST_HEADERS),
            ],
        );
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    stream.send_body("two");
    assert!(stream.is_paused());
    sim.callout().answer(ok(""));
    stream.finish("");
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "pairs = 0 4",
            "resume = 0",
            "pairs = 0 null",
            "buffer = 0 onetwo",
            "buffer = 0 null",
        ],
    );
    assert_eq!(stream.upstream_request().text(), "onetwo");
    assert!(stream.upstream_request().complete);
}

#[test]
fn a_request_that_ended_during_the_pause_is_shown_with_its_end() {
    let cases = [
        (
            Request::post("/").body("one").body("two"),
            vec!["request_body(2, 6, 1)"],
        ),
        (
            Request::post("/").body("one").trailer("x-sum", "1"),
            vec!["request_body(2, 3, 0)", "request_trailers(2, 1)"],
        ),
        (Request::get("/"), vec![]),
    ];
    for (request, expected) in cases {
        let guest = Guest::new()
            .on("request_headers", [call("plane", 0), give(1)])
            .on("request_body", [])
            .on("request_trailers", [])
            .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
        let sim = sim(guest, false);
        let stream = sim.request(request);
        sim.callout().answer(ok(""));
        assert_lines(&callbacks(&sim)[1..], &expected);
        assert!(stream.upstream_request().complete);
    }
}

#[test]
fn a_whole_request_that_was_held_by_each_callback_goes_out_at_once() {
    let guest = Guest::new()
        .on("request_headers", [give(1)])
        .on(
            "request_body",
            [
                give(1),
                buffer(REQUEST_BODY, 0, WHOLE),
                count_pairs(REQUEST_HEADERS),
            ],
        )
        .on(
            "request_trailers",
            [
                call("plane", 1000),
                give(1),
                count_pairs(REQUEST_HEADERS),
                buffer(REQUEST_BODY, 0, WHOLE),
            ],
        )
        .on(
            "http_call_response",
            [
                act_for_caller(),
                count_pairs(REQUEST_HEADERS),
                count_pairs(REQUEST_TRAILERS),
                buffer(REQUEST_BODY, 0, WHOLE),
                resume(REQUEST),
                count_pairs(REQUEST_HEADERS),
                count_pairs(REQUEST_TRAILERS),
                buffer(REQUEST_BODY, 0, WHOLE),
            ],
        );
    let sim = sim(guest, true);
    let stream = sim.request(
        Request::post("/")
            .body("one")
            .body("two")
            .trailer("x-sum", "1"),
    );
    assert!(stream.is_paused());
    sim.callout().answer(ok(""));
    assert_lines(
        &said(&sim),
        &[
            "buffer = 0 one",
            "pairs = 0 4",
            "buffer = 0 onetwo",
            "pairs = 0 4",
            "call = 0 4",
            "pairs = 0 4",
            "buffer = 0 onetwo",
            "pairs = 0 4",
            "pairs = 0 1",
            "buffer = 0 onetwo",
            "resume = 0",
            "pairs = 0 null",
            "pairs = 0 null",
            "buffer = 0 onetwo",
        ],
    );
    assert_eq!(stream.upstream_request().text(), "onetwo");
    assert_eq!(stream.upstream_request().trailer("x-sum"), Some("1"));
}

#[test]
fn a_held_request_can_be_changed_from_the_callout_s_callback() {
    let guest = Guest::new()
        .on("request_headers", [give(1)])
        .on("request_body", [give(1), at_end([call("plane", 1000)])])
        .on(
            "http_call_response",
            [
                act_for_caller(),
                add(REQUEST_HEADERS, "x-stamped", "yes"),
                remove(REQUEST_HEADERS, "x-secret"),
                replace(REQUEST_HEADERS, ":path", "/safe"),
                set_buffer(REQUEST_BODY, 0, 0, "<"),
                resume(REQUEST),
                add(REQUEST_HEADERS, "x-late", "1"),
            ],
        );
    let sim = sim(guest, true);
    let stream = sim.request(
        Request::post("/")
            .header("x-secret", "s")
            .body("one")
            .body("two"),
    );
    sim.callout().answer(ok(""));
    let upstream = stream.upstream_request();
    assert_eq!(upstream.text(), "<onetwo");
    assert_eq!(upstream.header("x-stamped"), Some("yes"));
    assert_eq!(upstream.header(":path"), Some("/safe"));
    assert_eq!(upstream.header("x-secret"), None);
    assert_eq!(upstream.header("x-late"), None);
    assert_eq!(
        said(&sim).last().map(String::as_str),
        Some("add x-late = 2")
    );
}

/// Envoy: with the setting on, body callbacks had already taken the headers along when the callout's answer came.
#[test]
fn a_resume_behind_a_body_that_went_on_changes_nothing() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 1000), give(1)])
        .on("request_body", [buffer(REQUEST_BODY, 0, WHOLE)])
        .on(
            "http_call_response",
            [
                act_for_caller(),
                resume(REQUEST),
                count_pairs(REQUEST_HEADERS),
            ],
        );
    let sim = sim(guest, true);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    stream.send_body("two");
    assert_eq!(stream.upstream_request().text(), "onetwo");
    sim.callout().answer(ok(""));
    stream.finish("");
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "buffer = 0 one",
            "buffer = 0 two",
            "resume = 0",
            "pairs = 0 null",
            "buffer = 0 null",
        ],
    );
    assert!(stream.upstream_request().complete);
}

#[test]
fn a_response_is_held_changed_and_resumed_in_the_same_way() {
    let guest = Guest::new()
        .on("response_headers", [call("plane", 1000), give(1)])
        .on("response_body", [buffer(RESPONSE_BODY, 0, WHOLE)])
        .on(
            "http_call_response",
            [
                act_for_caller(),
                count_pairs(RESPONSE_HEADERS),
                add(RESPONSE_HEADERS, "x-late", "1"),
                resume(RESPONSE),
            ],
        );
    let sim = sim(guest, false);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok("").header("x-up", "1"));
    stream.respond_body("u", false);
    stream.respond_body("p", true);
    assert!(!stream.is_answered());
    sim.callout().answer(ok(""));
    assert_eq!(stream.response().text(), "up");
    assert_eq!(stream.response().header("x-late"), Some("1"));
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "pairs = 0 2",
            "add x-late = 0",
            "resume = 0",
            "buffer = 0 up",
        ],
    );
    assert_eq!(
        callbacks(&sim).last().map(String::as_str),
        Some("response_body(2, 2, 1)")
    );
}

#[test]
fn held_response_trailers_go_on_after_a_resume() {
    let guest = Guest::new()
        .on("response_trailers", [call("plane", 0), give(1)])
        .on("http_call_response", [act_for_caller(), resume(RESPONSE)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::get("/"));
    stream.respond(ok("up").trailer("x-sum", "1"));
    assert!(!stream.response().complete);
    sim.callout().answer(ok(""));
    assert_eq!(stream.response().trailer("x-sum"), Some("1"));
    assert!(stream.is_over());
}

#[test]
fn a_root_resumes_a_stream_by_its_effective_context() {
    let guest = Guest::new()
        .on("configure", [crate::guest::tick(100)])
        .on("request_headers", [give(1)])
        .on("tick", [act_for(2), resume(REQUEST), act_for(3)]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    let before = said(&sim).len();
    sim.advance(std::time::Duration::from_millis(100));
    assert!(stream.reached_upstream());
    // The main thread's VM ticks too, and has no stream.
    assert_lines(
        &crate::scene::said_since(&sim, before),
        &[
            "act = 2",
            "resume = 0",
            "act = 2",
            "act = 0",
            "resume = 0",
            "act = 2",
        ],
    );
    assert_lines(&root_callbacks(&sim)[1..], &["tick(1)"]);
}

#[test]
fn a_resume_without_a_pause_or_from_the_root_is_ok_and_nothing_happens() {
    let guest = Guest::new()
        .on("configure", [resume(REQUEST), resume(RESPONSE)])
        .on(
            "request_headers",
            [resume(REQUEST), get(REQUEST_HEADERS, ":path")],
        )
        .on("response_headers", [resume(RESPONSE)]);
    let sim = start(guest);
    let before = said(&sim).len();
    let stream = sim.request(Request::get("/"));
    stream.respond(ok("up"));
    assert_eq!(stream.response().text(), "up");
    // The map is gone from the resume on.
    assert_lines(
        &crate::scene::said_since(&sim, before),
        &["resume = 0", "get :path = 2", "resume = 0"],
    );
}

/// Measured: the downstream of a TCP connection is accepted, its upstream is not there, other numbers mean nothing.
#[test]
fn a_direction_that_does_not_exist_is_a_bad_argument() {
    let guest = Guest::new().on(
        "request_headers",
        [
            resume(2),
            resume(3),
            resume(4),
            resume(u32::MAX),
            close(4),
            close(u32::MAX),
        ],
    );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &[
            "resume = 0",
            "resume = 12",
            "resume = 2",
            "resume = 2",
            "close = 2",
            "close = 2",
        ],
    );
    assert!(stream.reached_upstream());
}

#[test]
fn a_closed_stream_is_reset_for_the_client_and_ends_for_the_filter() {
    for direction in [REQUEST, RESPONSE] {
        let guest = Guest::new()
            .on("request_headers", [close(direction)])
            .on("log", [])
            .on("done", [])
            .on("delete", []);
        let sim = start(guest);
        let stream = sim.request(Request::get("/"));
        assert!(stream.was_reset() && stream.is_over(), "{stream:?}");
        assert!(!stream.reached_upstream());
        assert_lines(
            &callbacks(&sim),
            &["request_headers(2, 4, 1)", "log(2)", "done(2)", "delete(2)"],
        );
    }
}

/// How a gate passes a bidirectional gRPC stream: each message waits for its own release.
#[test]
fn each_message_of_a_stream_can_be_released_by_itself() {
    let guest = Guest::new()
        .on("request_body", [give(1), call("plane", 0)])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let sim = sim(guest, true);
    let stream = sim.request(Request::post("/").unfinished());
    for (message, so_far) in [("one", "one"), ("two", "onetwo")] {
        let before = stream.upstream_request().text();
        stream.send_body(message);
        assert_eq!(stream.upstream_request().text(), before);
        sim.callout().answer(ok(""));
        assert_eq!(stream.upstream_request().text(), so_far);
        stream.respond_headers(ok(""));
        stream.respond_body(message, false);
        assert_eq!(stream.response().text(), so_far);
    }
}

#[test]
fn a_body_paused_again_after_a_resume_waits_again() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "request_body",
            [nth(1, [give(1)]), buffer(REQUEST_BODY, 0, WHOLE)],
        )
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    sim.callout().answer(ok(""));
    // The headers are out, the body is not.
    assert_eq!(stream.upstream_request().body, b"");
    stream.finish("two");
    assert_eq!(stream.upstream_request().text(), "onetwo");
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "resume = 0",
            "buffer = 0 one",
            "buffer = 0 onetwo",
        ],
    );
}

#[test]
fn trailers_that_came_during_a_pause_can_pause_again() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("request_trailers", [call("plane", 0), give(1)])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_trailers(trailer("x-sum", "1"));
    sim.callout().answer(ok(""));
    assert!(!stream.upstream_request().complete);
    sim.callout().answer(ok(""));
    assert_eq!(stream.upstream_request().trailer("x-sum"), Some("1"));
    assert!(stream.upstream_request().complete);
}
