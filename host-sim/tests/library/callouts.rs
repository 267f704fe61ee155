//! HTTP callouts: what is refused at once, what comes back, when, and to whom. Measured on Envoy 1.40.

use std::time::Duration;

use host_sim::sim::{Request, Response};
use host_sim::{ClusterHealth, Plugin};

use crate::guest::{
    CALL_BODY, CALL_HEADERS, CALL_TRAILERS, Guest, HEAD, REQUEST, REQUEST_HEADERS, act_for,
    act_for_caller, buffer, call, call_with, count_pairs, get, give, nth, resume, say_number, tick,
};
use crate::scene::{
    STREAM_CALLBACKS, assert_lines, builder, built, callbacks, ok, root_callbacks, said,
    said_since, start, started,
};

const MILLISECOND: Duration = Duration::from_millis(1);
const NANOSECOND: Duration = Duration::from_nanos(1);

/// What a callback reads of the answer.
fn reads() -> [String; 5] {
    [
        get(CALL_HEADERS, ":status"),
        count_pairs(CALL_HEADERS),
        count_pairs(CALL_TRAILERS),
        buffer(CALL_BODY, 0, u32::MAX),
        status(),
    ]
}

/// `status = 0 text`, what `proxy_get_status` says, and `code = NUMBER`.
fn status() -> String {
    let call = format!(
        "(call $get_status (i32.const 32) {} {})",
        crate::guest::OUT,
        crate::guest::OUT_SIZE
    );
    format!(
        "(call $report_bytes {} {call}) {}",
        crate::guest::text("status"),
        say_number("code", "(i32.load (i32.const 32))")
    )
}

fn calling(milliseconds: u32) -> Guest {
    Guest::new()
        .on("request_headers", [call("plane", milliseconds), give(1)])
        .on("http_call_response", reads())
}

#[test]
fn a_callout_carries_what_the_guest_wrote() {
    let headers = [
        (":path", "/p"),
        (":method", "POST"),
        (":authority", "auth"),
        ("X-Own", "1"),
        ("x-own", "2"),
    ];
    let guest = Guest::new().on(
        "request_headers",
        [call_with("plane", &headers, "hello", 250)],
    );
    let sim = start(guest);
    sim.request(Request::get("/"));
    let callout = sim.callout();
    assert_eq!(callout.cluster(), "plane");
    assert_eq!(callout.timeout(), Some(MILLISECOND * 250));
    let request = callout.request();
    assert_eq!(
        (request.header(":path"), request.header(":method")),
        (Some("/p"), Some("POST"))
    );
    assert_eq!(request.headers.all("x-own").count(), 2);
    assert_eq!(request.text(), "hello");
    assert_eq!(request.trailers, None);
}

#[test]
fn an_answer_is_read_in_the_root_s_callback() {
    let sim = start(calling(1000));
    sim.request(Request::get("/"));
    sim.callout().answer(
        Response::new(200)
            .header("x-up", "1")
            .body("up")
            .trailer("x-trailer", "t"),
    );
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "get :status = 0 200",
            "pairs = 0 2",
            "pairs = 0 1",
            "buffer = 0 up",
            "status = 0 null",
            "code = 0",
        ],
    );
    assert_eq!(
        root_callbacks(&sim).last().map(String::as_str),
        Some("http_call_response(1, 4, 2, 2, 1)")
    );
}

#[test]
fn what_cannot_start_is_refused_at_once_and_no_callback_follows() {
    let without = |name: &str| {
        HEAD.into_iter()
            .filter(|(found, _)| *found != name)
            .collect::<Vec<_>>()
    };
    let cases = [
        ("an unknown cluster", call("nowhere", 10), "call = 2"),
        ("no name", call("", 10), "call = 2"),
        ("no healthy host", call("empty", 10), "call = 10"),
        (
            "no method",
            call_with("plane", &without(":method"), "", 10),
            "call = 2",
        ),
        (
            "no path",
            call_with("plane", &without(":path"), "", 10),
            "call = 2",
        ),
        (
            "no authority",
            call_with("plane", &without(":authority"), "", 10),
            "call = 2",
        ),
        ("nothing", call_with("plane", &[], "", 10), "call = 2"),
        (
            "an unknown cluster and no headers",
            call_with("nowhere", &[], "", 10),
            "call = 2",
        ),
    ];
    for (what, step, expected) in cases {
        let guest = Guest::new()
            .on("request_headers", [step])
            .on("http_call_response", []);
        let sim = start(guest);
        sim.set_cluster("empty", ClusterHealth::NoHealthyHost);
        sim.request(Request::get("/"));
        assert_eq!(said(&sim), [expected], "{what}");
        sim.advance(Duration::from_secs(60));
        assert_eq!(sim.callouts().len(), 0, "{what}");
        assert!(root_callbacks(&sim).is_empty(), "{what}");
    }
}

#[test]
fn host_stands_for_authority_and_empty_values_are_values() {
    let cases = [
        [(":method", "GET"), (":path", "/"), ("host", "a")],
        [(":method", ""), (":path", ""), (":authority", "")],
    ];
    for headers in cases {
        let sim = start(Guest::new().on("request_headers", [call_with("plane", &headers, "", 0)]));
        sim.request(Request::get("/"));
        assert_lines(&said(&sim), &["call = 0 4"]);
        sim.callout().answer(ok(""));
    }
}

#[test]
fn a_refused_connection_looks_like_a_503_with_a_text() {
    let sim = start(calling(1000));
    sim.request(Request::get("/"));
    sim.callout().refuse_connection();
    let found = said(&sim);
    assert_lines(
        &found[1..4],
        &["get :status = 0 503", "pairs = 0 3", "pairs = 0 null"],
    );
    assert_eq!(
        found[4],
        "buffer = 0 upstream connect error or disconnect/reset before headers. reset reason: remote connection failure"
    );
    assert_eq!(found[5..], ["status = 0 null", "code = 0"]);
}

#[test]
fn a_broken_answer_has_no_headers_and_a_status_of_its_own() {
    let sim = start(calling(1000));
    sim.request(Request::get("/"));
    sim.callout().reset();
    assert_lines(
        &said(&sim)[1..],
        &[
            "get :status = 2",
            "pairs = 0 null",
            "pairs = 0 null",
            "buffer = 1",
            "status = 0 reset",
            "code = 11",
        ],
    );
    assert_eq!(
        root_callbacks(&sim).last().map(String::as_str),
        Some("http_call_response(1, 4, 0, 0, 0)")
    );
}

#[test]
fn a_callout_runs_out_of_time_exactly_at_its_deadline() {
    let sim = start(calling(200));
    sim.request(Request::get("/"));
    sim.advance(MILLISECOND * 200 - NANOSECOND);
    assert!(root_callbacks(&sim).is_empty());
    let callout = sim.callout();
    sim.advance(NANOSECOND);
    assert_lines(
        &said(&sim)[1..],
        &[
            "get :status = 0 504",
            "pairs = 0 3",
            "pairs = 0 null",
            "buffer = 0 upstream request timeout",
            "status = 0 null",
            "code = 0",
        ],
    );
    // An answer behind it is dropped.
    callout.answer(ok("late"));
    sim.advance(Duration::from_secs(60));
    assert_lines(
        &root_callbacks(&sim),
        &["http_call_response(1, 4, 3, 24, 0)"],
    );
    assert!(sim.callouts().is_empty());
}

#[test]
fn an_answer_just_before_the_deadline_is_in_time() {
    let sim = start(calling(200));
    sim.request(Request::get("/"));
    sim.advance(MILLISECOND * 200 - NANOSECOND);
    sim.callout().answer(ok("up"));
    sim.advance(Duration::from_secs(60));
    assert_lines(
        &root_callbacks(&sim),
        &["http_call_response(1, 4, 1, 2, 0)"],
    );
}

#[test]
fn a_time_out_of_0_waits_for_ever() {
    let sim = start(calling(0));
    sim.request(Request::get("/"));
    assert_eq!(sim.callout().timeout(), None);
    sim.advance(Duration::from_secs(250));
    sim.callout().answer(ok("late but welcome"));
    assert_eq!(said(&sim)[1], "get :status = 0 200");
}

#[test]
fn several_callouts_of_one_stream_are_answered_in_the_order_of_their_answers() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                call("plane", 0),
                call("plane", 300),
                call("plane", 100),
                give(1),
            ],
        )
        .on(
            "http_call_response",
            [nth(3, [act_for_caller(), resume(REQUEST)])],
        );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_lines(&said(&sim), &["call = 0 4", "call = 0 8", "call = 0 12"]);
    let waiting = sim.callouts();
    assert_eq!(waiting.len(), 3);
    waiting[1].answer(ok(""));
    sim.advance(MILLISECOND * 100);
    assert!(stream.is_paused());
    waiting[0].answer(ok(""));
    assert!(stream.reached_upstream());
    assert_lines(
        &root_callbacks(&sim),
        &[
            "http_call_response(1, 8, 1, 0, 0)",
            "http_call_response(1, 12, 3, 24, 0)",
            "http_call_response(1, 4, 1, 0, 0)",
        ],
    );
}

#[test]
fn an_answer_is_given_once() {
    let sim = start(calling(0));
    sim.request(Request::get("/"));
    let callout = sim.callout();
    callout.answer(ok("one"));
    callout.answer(ok("two"));
    callout.reset();
    assert_eq!(root_callbacks(&sim).len(), 1);
}

#[test]
fn a_callout_may_follow_another_one() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [
                nth(1, [call("plane", 0)]),
                nth(2, [act_for(2), resume(REQUEST)]),
            ],
        );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    sim.callout().answer(ok("one"));
    assert!(stream.is_paused());
    sim.callout().answer(ok("two"));
    assert!(stream.reached_upstream());
}

#[test]
fn callouts_go_out_from_every_callback() {
    let outside = ["configure", "tick", "context_create"];
    for callback in outside.into_iter().chain(STREAM_CALLBACKS) {
        let guest = Guest::new()
            .on(callback, [nth(1, [call("plane", 0)])])
            .on("http_call_response", [])
            .on("configure", [tick(10)]);
        let sim = start(guest);
        // Root callbacks run in the main thread's VM too.
        for callout in sim.callouts() {
            callout.answer(ok(""));
        }
        sim.advance(MILLISECOND * 10);
        let stream = sim.request(Request::post("/").body("one").trailer("x", "y"));
        stream.respond(ok("up").trailer("x", "y"));
        for callout in sim.callouts() {
            callout.answer(ok(""));
        }
        let answers = root_callbacks(&sim)
            .into_iter()
            .filter(|line| line.starts_with("http_call_response"));
        assert_eq!(answers.count(), 1, "{callback}");
    }
}

#[test]
fn a_callout_outlives_its_stream_and_is_answered_in_the_root() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [
                act_for(2),
                count_pairs(REQUEST_HEADERS),
                get(CALL_HEADERS, ":status"),
            ],
        );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    stream.disconnect();
    sim.callout().answer(ok("late"));
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "act = 2",
            "pairs = 0 null",
            "get :status = 0 200",
        ],
    );
}

#[test]
fn the_answer_is_readable_in_any_effective_context_and_only_readable() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [
                count_pairs(REQUEST_HEADERS),
                act_for(2),
                count_pairs(CALL_HEADERS),
                count_pairs(REQUEST_HEADERS),
                buffer(CALL_BODY, 0, 9),
                act_for(99),
                act_for(1),
                count_pairs(CALL_HEADERS),
                crate::guest::add(CALL_HEADERS, "x", "y"),
                crate::guest::map_size(CALL_HEADERS),
            ],
        );
    let sim = start(guest);
    sim.request(Request::get("/"));
    sim.callout().answer(ok("up"));
    assert_lines(
        &said(&sim)[1..],
        &[
            "pairs = 0 null",
            "act = 0",
            "pairs = 0 1",
            "pairs = 0 4",
            "buffer = 0 up",
            "act = 2",
            "act = 0",
            "pairs = 0 1",
            "add x = 2",
            "size = 2",
        ],
    );
}

#[test]
fn a_served_cluster_answers_by_itself_and_never_within_the_hostcall() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [call("plane", 1000), crate::guest::say("sent"), give(1)],
        )
        .on(
            "http_call_response",
            [
                get(CALL_HEADERS, ":status"),
                act_for_caller(),
                resume(REQUEST),
            ],
        );
    let sim = start(guest);
    sim.serve_cluster("plane", |request| {
        assert_eq!(request.header(":path"), Some("/plane"));
        Response::new(201).json("{}")
    });
    let stream = sim.request(Request::get("/"));
    assert!(stream.reached_upstream());
    assert_lines(
        &said(&sim),
        &["call = 0 4", "sent", "get :status = 0 201", "resume = 0"],
    );
}

#[test]
fn what_becomes_of_a_cluster_later_does_not_touch_a_callout_under_way() {
    let sim = start(calling(0));
    sim.request(Request::get("/"));
    sim.set_cluster("plane", ClusterHealth::NoHealthyHost);
    sim.callout().answer(ok("up"));
    sim.request(Request::get("/"));
    assert_eq!(said(&sim).last().map(String::as_str), Some("call = 10"));
}

#[test]
fn callouts_of_several_streams_find_their_own() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [
                act_for_caller(),
                crate::guest::add(0, "x-answer", "1"),
                resume(REQUEST),
            ],
        );
    let sim = start(guest);
    let streams: Vec<_> = (0..3)
        .map(|number| sim.request(Request::get(&format!("/{number}"))))
        .collect();
    let waiting = sim.callouts();
    for index in [2, 0, 1] {
        assert!(streams[index].is_paused());
        waiting[index].answer(ok(""));
        assert_eq!(
            streams[index].upstream_request().header(":path"),
            Some(format!("/{index}").as_str())
        );
    }
    assert_eq!(callbacks(&sim).len(), 3);
}

#[test]
fn a_missing_callback_loses_the_answer() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let allowed = ["proxy_log", "proxy_http_call", "proxy_on_request_headers"];
    let sim = built(Plugin::new(guest.module()).allowed_capabilities(allowed));
    let stream = sim.request(Request::get("/"));
    sim.callout().answer(ok(""));
    assert!(stream.is_paused());
}

#[test]
fn proxy_get_status_without_an_answer_is_0_and_empty() {
    let sim = started(builder(Plugin::new(
        Guest::new().on("request_headers", [status()]).module(),
    )));
    sim.request(Request::get("/"));
    assert_lines(&said_since(&sim, 0), &["status = 0 null", "code = 0"]);
}
