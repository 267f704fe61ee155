//! What a root context may ask for, and acting for another context. Measured on Envoy 1.40.

use std::time::Duration;

use host_sim::Plugin;
use host_sim::sim::Request;

use crate::guest::{
    Guest, REQUEST, REQUEST_HEADERS, RESPONSE, act_for, ask, call, close, count_pairs, get, give,
    property, reply, resume, text, tick,
};
use crate::scene::{assert_lines, built, ok, said, start};

#[test]
fn a_root_asks_for_a_stream_s_things_in_vain() {
    let steps = || {
        [
            resume(REQUEST),
            resume(RESPONSE),
            close(REQUEST),
            close(RESPONSE),
            reply(200, "x", &[]),
            ask("done", "done", ""),
            act_for(0),
            act_for(1),
            act_for(2),
            act_for(99),
            ask(
                "set property",
                "set_property",
                &format!("{} {}", text("p"), text("v")),
            ),
            property("p"),
            property("request.path"),
            get(REQUEST_HEADERS, ":path"),
            count_pairs(REQUEST_HEADERS),
        ]
    };
    let expected = [
        "resume = 0",
        "resume = 0",
        "close = 0",
        "close = 0",
        "reply = 0",
        "done = 1",
        "act = 0",
        "act = 0",
        "act = 2",
        "act = 2",
        "set property = 1",
        "p = 1",
        "request.path = 1",
        "get :path = 2",
        "pairs = 0 null",
    ];
    for callback in ["vm_start", "configure", "tick"] {
        let sim = start(
            Guest::new()
                .on(callback, steps())
                .on("configure", [tick(10)]),
        );
        sim.advance(Duration::from_millis(10));
        let mut found = said(&sim);
        found.retain(|line| line != "tick period = 0");
        assert_lines(&found[..expected.len()], &expected);
        // And it goes on.
        let stream = sim.request(Request::get("/"));
        assert!(stream.reached_upstream(), "{callback}");
    }
}

#[test]
fn acting_for_another_context_lasts_until_the_callback_ends() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                act_for(1),
                count_pairs(REQUEST_HEADERS),
                property("request.path"),
                act_for(99),
                count_pairs(REQUEST_HEADERS),
                act_for(0),
                count_pairs(REQUEST_HEADERS),
                act_for(1),
            ],
        )
        .on("request_body", [property("request.protocol")]);
    let sim = start(guest);
    sim.request(Request::post("/").body("one"));
    assert_lines(
        &said(&sim),
        &[
            "act = 0",
            "pairs = 0 null",
            "request.path = 1",
            // An unknown context changes nothing.
            "act = 2",
            "pairs = 0 null",
            // 0 is the callback's own.
            "act = 0",
            "pairs = 0 4",
            "act = 0",
            "request.protocol = 0 HTTP/1.1",
        ],
    );
}

#[test]
fn one_stream_may_act_for_another() {
    let guest = Guest::new().on(
        "request_headers",
        [
            crate::guest::for_context(2, [give(1)]),
            crate::guest::for_context(
                3,
                [
                    act_for(2),
                    get(REQUEST_HEADERS, ":path"),
                    reply(403, "from the other", &[]),
                    give(1),
                ],
            ),
        ],
    );
    let sim = start(guest);
    let first = sim.request(Request::get("/first"));
    let second = sim.request(Request::get("/second"));
    assert_lines(
        &said(&sim),
        &["act = 0", "get :path = 0 /first", "reply = 0"],
    );
    assert_eq!(first.response().text(), "from the other");
    assert!(!second.is_answered());
}

#[test]
fn a_log_line_bears_the_name_of_the_context_that_is_acted_for() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [
                crate::guest::say("root"),
                act_for(2),
                crate::guest::say("stream"),
            ],
        );
    let sim = built(Plugin::new(guest.module()).name("gate").root_id("root"));
    sim.request(Request::get("/"));
    sim.callout().answer(ok(""));
    let log = sim.log();
    let prefix = |message: &str| {
        &log.iter()
            .find(|line| line.message == message)
            .expect("logged")
            .prefix
    };
    assert_eq!(
        (prefix("root").as_str(), prefix("stream").as_str()),
        ("root", "gate root")
    );
}

#[test]
fn malloc_goes_before_the_other_allocator() {
    let more =
        r#"(func (export "proxy_on_memory_allocate") (param i32) (result i32) (unreachable))"#;
    let guest = Guest::new()
        .with(more)
        .on("request_headers", [get(REQUEST_HEADERS, ":path")]);
    let sim = start(guest);
    sim.request(Request::get("/read"));
    assert_lines(&said(&sim), &["get :path = 0 /read"]);
}

/// Version 0.1.0 resumes by functions of their own, and steers by the same numbers.
#[test]
fn a_guest_of_version_0_1_0_pauses_and_resumes() {
    let wat = r#"(module
        (import "env" "proxy_set_tick_period_milliseconds" (func $tick (param i32) (result i32)))
        (import "env" "proxy_set_effective_context" (func $act (param i32) (result i32)))
        (import "env" "proxy_continue_request" (func $request (result i32)))
        (import "env" "proxy_continue_response" (func $response (result i32)))
        (import "env" "proxy_clear_route_cache" (func $clear (result i32)))
        (memory (export "memory") 1)
        (func (export "malloc") (param i32) (result i32) i32.const 64)
        (func (export "proxy_abi_version_0_1_0"))
        (func (export "_start"))
        (func (export "proxy_on_configure") (param i32 i32) (result i32)
          (drop (call $tick (i32.const 10))) (i32.const 1))
        (func (export "proxy_on_tick") (param i32)
          (if (i32.eqz (call $act (i32.const 2)))
            (then (drop (call $request)) (drop (call $response)) (drop (call $clear)))))
        (func (export "proxy_on_request_headers") (param i32 i32) (result i32) i32.const 1)
        (func (export "proxy_on_response_headers") (param i32 i32) (result i32) i32.const 1))"#;
    let module = host_sim::Module::from_bytes("old", wat.as_bytes()).expect("it fits");
    let sim = built(Plugin::new(module));
    let stream = sim.request(Request::post("/").body("one"));
    assert!(stream.is_paused());
    sim.advance(Duration::from_millis(10));
    assert_eq!(stream.upstream_request().text(), "one");
    stream.respond(ok("up"));
    assert!(!stream.is_answered());
    sim.advance(Duration::from_millis(10));
    assert_eq!(stream.response().text(), "up");
}

#[test]
fn headers_of_a_reply_that_cannot_be_read_are_none() {
    let arguments = format!(
        "(i32.const 403) {} {} {} (i32.const -1)",
        text(""),
        text("no"),
        text([9, 0, 0, 0, 1])
    );
    let sim = start(Guest::new().on(
        "request_headers",
        [ask("reply", "send_local_response", &arguments)],
    ));
    let stream = sim.request(Request::get("/"));
    assert_eq!(stream.response().text(), "no");
    assert_lines(&said(&sim), &["reply = 0"]);
}
