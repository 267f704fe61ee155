//! How streams end: log, done, delete, in this order and once, whatever ended them.

use host_sim::UpstreamFailure;
use host_sim::sim::{Request, Sim, Stream};

use crate::guest::{
    Guest, REQUEST, REQUEST_HEADERS, RESPONSE, RESPONSE_HEADERS, RESPONSE_TRAILERS, add, ask,
    buffer, call, count_pairs, get, give, map_size, property, property_number, resume, tick,
};
use crate::scene::{assert_lines, callbacks, ok, root_callbacks, said, start};

fn watched(guest: Guest) -> Guest {
    let details = || {
        [
            property("response.code_details"),
            property_number("response.flags"),
        ]
    };
    guest.on("log", details()).on("done", []).on("delete", [])
}

/// How often a stream ended: all three callbacks, in order, nothing behind them.
#[track_caller]
fn assert_ended_once(sim: &Sim) {
    let found = callbacks(sim);
    let ending = found
        .iter()
        .skip_while(|line| !line.starts_with("log"))
        .cloned()
        .collect::<Vec<_>>();
    assert_lines(&ending, &["log(2)", "done(2)", "delete(2)"]);
}

#[test]
fn a_client_that_leaves_ends_the_stream_in_each_phase() {
    type Play = fn(&Stream);
    let cases: [(&str, Guest, Play, bool); 6] = [
        (
            "held headers",
            Guest::new().on("request_headers", [give(1)]),
            |_| {},
            false,
        ),
        (
            "an unfinished request",
            Guest::new(),
            |stream| stream.send_body("one"),
            true,
        ),
        (
            "a held body",
            Guest::new().on("request_body", [give(1)]),
            |stream| stream.finish("one"),
            true,
        ),
        (
            "no answer yet",
            Guest::new(),
            |stream| stream.finish(""),
            true,
        ),
        (
            "a held answer",
            Guest::new().on("response_headers", [give(1)]),
            |stream| {
                stream.finish("");
                stream.respond(ok("up"));
            },
            true,
        ),
        (
            "an unfinished answer",
            Guest::new(),
            |stream| {
                stream.finish("");
                stream.respond_headers(ok(""));
            },
            true,
        ),
    ];
    for (phase, guest, play, reached) in cases {
        let sim = start(watched(guest));
        let stream = sim.request(Request::post("/").unfinished());
        play(&stream);
        stream.disconnect();
        assert!(stream.is_over(), "{phase}");
        assert_eq!(stream.reached_upstream(), reached, "{phase}");
        assert_ended_once(&sim);
        let flags = said(&sim)[1].clone();
        assert_eq!(flags, "response.flags = 0 16384", "{phase}");
        // Nothing more happens to it.
        stream.disconnect();
        stream.send_body("late");
        stream.respond(ok("late"));
        assert_ended_once(&sim);
    }
}

#[test]
fn a_client_that_leaves_while_held_is_told_in_the_details_and_has_no_status() {
    let guest = Guest::new().on("request_headers", [give(1)]).on(
        "log",
        [
            property("response.code_details"),
            property("response.code"),
            count_pairs(RESPONSE_HEADERS),
        ],
    );
    let sim = start(guest);
    sim.request(Request::get("/")).disconnect();
    assert_lines(
        &said(&sim),
        &[
            "response.code_details = 0 downstream_remote_disconnect",
            "response.code = 1",
            "pairs = 0 null",
        ],
    );
}

#[test]
fn a_request_that_was_let_go_is_given_up_upstream_when_the_client_leaves() {
    let sim = start(Guest::new());
    let stream = sim.request(Request::get("/"));
    stream.disconnect();
    assert!(stream.upstream_was_reset());
    let held = start(Guest::new().on("request_headers", [give(1)]));
    let stream = held.request(Request::get("/"));
    stream.disconnect();
    assert!(!stream.upstream_was_reset());
}

#[test]
fn the_answer_of_a_callout_comes_although_the_client_has_left() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 1000), give(1)])
        .on(
            "http_call_response",
            [
                crate::guest::act_for_caller(),
                resume(REQUEST),
                resume(RESPONSE),
            ],
        );
    let sim = start(watched(guest));
    let stream = sim.request(Request::get("/"));
    stream.disconnect();
    sim.callout().answer(ok("late"));
    assert_lines(
        &root_callbacks(&sim),
        &["http_call_response(1, 4, 1, 4, 0)"],
    );
    assert!(!stream.reached_upstream());
    assert_ended_once(&sim);
}

#[test]
fn log_reads_the_maps_of_the_whole_stream_and_changes_none() {
    let guest = Guest::new().on("request_body", []).on(
        "log",
        [
            get(REQUEST_HEADERS, "x-one"),
            get(REQUEST_HEADERS, "x-absent"),
            get(RESPONSE_HEADERS, ":status"),
            get(RESPONSE_TRAILERS, "x-sum"),
            map_size(REQUEST_HEADERS),
            add(REQUEST_HEADERS, "x-late", "1"),
            buffer(0, 0, 99),
            property("request.path"),
        ],
    );
    let sim = start(guest.on(
        "done",
        [get(REQUEST_HEADERS, "x-one"), count_pairs(REQUEST_HEADERS)],
    ));
    let stream = sim.request(Request::post("/path").header("x-one", "1").body("one"));
    stream.respond(ok("up").trailer("x-sum", "2"));
    assert_lines(
        &said(&sim),
        &[
            "get x-one = 0 1",
            "get x-absent = 1",
            "get :status = 0 200",
            "get x-sum = 0 2",
            "size = 2",
            "add x-late = 2",
            "buffer = 0 null",
            "request.path = 0 /path",
            "get x-one = 2",
            "pairs = 0 null",
        ],
    );
}

#[test]
fn a_map_that_a_stream_never_had_is_empty_in_log_and_no_error() {
    // Trailers of both directions, and what belongs to callouts.
    for map in [1, 3, 4, 5, 6, 7] {
        let steps = [
            get(map, "x"),
            count_pairs(map),
            map_size(map),
            add(map, "x", "y"),
        ];
        let sim = start(Guest::new().on("log", steps));
        sim.request(Request::get("/")).respond(ok("up"));
        assert_lines(
            &said(&sim),
            &["get x = 1", "pairs = 0 null", "size = 2", "add x = 2"],
        );
    }
}

/// Measured: `done` of a stream may answer what it likes, and `proxy_done` finds nothing to finish.
#[test]
fn a_stream_is_deleted_whatever_done_returns() {
    for answer in [0, 1] {
        let guest = Guest::new()
            .on("request_headers", [ask("done", "done", "")])
            .on("log", [])
            .on("done", [give(answer), tick(100)])
            .on("delete", []);
        let sim = start(guest);
        sim.request(Request::get("/")).respond(ok("up"));
        assert_ended_once(&sim);
        assert_lines(&said(&sim), &["done = 1", "tick period = 0"]);
        sim.advance(std::time::Duration::from_millis(100));
        assert_ended_once(&sim);
    }
}

#[test]
fn a_resume_in_log_done_or_delete_changes_nothing() {
    for callback in ["log", "done", "delete"] {
        let guest = Guest::new().on(callback, [resume(REQUEST), resume(RESPONSE)]);
        let sim = start(guest);
        let stream = sim.request(Request::get("/"));
        stream.respond(ok("up"));
        assert_eq!(stream.response().text(), "up");
        assert_lines(&said(&sim), &["resume = 0", "resume = 0"]);
    }
}

/// Envoy itself crashes there; a host for tests must not.
#[test]
fn a_reply_or_a_close_of_a_stream_that_ends_does_no_harm() {
    for callback in ["log", "done", "delete"] {
        for step in [
            crate::guest::reply(403, "late", &[]),
            crate::guest::close(RESPONSE),
        ] {
            let sim = start(Guest::new().on(callback, [step]));
            let stream = sim.request(Request::get("/"));
            stream.respond(ok("up"));
            assert_eq!(stream.response().text(), "up", "{callback}");
            assert!(stream.is_over(), "{callback}");
        }
    }
}

/// The client is told less than the filter: Envoy keeps the system's words for the details.
#[test]
fn an_upstream_that_fails_is_answered_503_and_told_in_the_details() {
    let cases = [
        (
            UpstreamFailure::ConnectionFailed {
                reason: "delayed connect error: Connection refused".to_owned(),
            },
            "remote connection failure",
            "remote_connection_failure|delayed_connect_error:_Connection_refused",
            32,
        ),
        (
            UpstreamFailure::Disconnected,
            "connection termination",
            "connection_termination",
            64,
        ),
        (UpstreamFailure::Reset, "remote reset", "remote_reset", 16),
    ];
    for (failure, reason, details, flags) in cases {
        let sim = start(watched(Guest::new()));
        let stream = sim.request(Request::get("/"));
        stream.fail_upstream(&failure);
        assert_eq!(stream.response().status(), 503);
        assert_eq!(
            stream.response().text(),
            format!(
                "upstream connect error or disconnect/reset before headers. reset reason: {reason}"
            )
        );
        let details = format!(
            "response.code_details = 0 upstream_reset_before_response_started{{{details}}}"
        );
        assert_lines(
            &said(&sim),
            &[
                details.as_str(),
                format!("response.flags = 0 {flags}").as_str(),
            ],
        );
        assert_ended_once(&sim);
    }
}

#[test]
fn an_upstream_that_fails_in_the_middle_breaks_the_answer_off() {
    let sim = start(watched(Guest::new()));
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    stream.respond_body("up", false);
    stream.fail_upstream(&UpstreamFailure::ProtocolError);
    assert!(stream.was_reset());
    assert_eq!(
        (stream.response().text(), stream.response().complete),
        ("up".to_owned(), false)
    );
    assert_lines(
        &said(&sim),
        &[
            "response.code_details = 0 upstream_reset_after_response_started{protocol_error}",
            "response.flags = 0 8388608",
        ],
    );
}

#[test]
fn an_upstream_may_answer_before_the_request_is_complete() {
    let guest = Guest::new().on("request_body", []).on("log", []);
    let sim = start(guest);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    stream.respond(ok("early"));
    assert_eq!(stream.response().text(), "early");
    assert_eq!(callbacks(&sim), ["request_body(2, 3, 0)", "log(2)"]);
}

#[test]
fn a_stream_that_is_closed_in_its_answer_is_broken_off_there() {
    let guest = Guest::new()
        .on(
            "response_body",
            [crate::guest::nth(2, [crate::guest::close(RESPONSE)])],
        )
        .on("log", [])
        .on("done", [])
        .on("delete", []);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    stream.respond_body("a", false);
    stream.respond_body("b", false);
    assert!(stream.was_reset() && stream.upstream_was_reset());
    assert_eq!(stream.response().text(), "a");
    assert_ended_once(&sim);
}

#[test]
fn a_closed_stream_is_told_in_the_details() {
    let guest = Guest::new()
        .on("request_headers", [crate::guest::close(REQUEST)])
        .on(
            "log",
            [property("response.code_details"), property("response.code")],
        );
    let sim = start(guest);
    sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &[
            "close = 0",
            "response.code_details = 0 wasm_close_stream",
            "response.code = 1",
        ],
    );
}
