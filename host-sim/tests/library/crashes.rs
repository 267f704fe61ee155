//! A VM that traps: what its streams get, what the next ones get, and when a new VM comes. Measured on Envoy 1.40.

use std::time::Duration;

use host_sim::sim::{Request, Sim, Stream};
use host_sim::{FailurePolicy, LogLevel, Plugin, StreamLimits};

use crate::guest::{
    Guest, act_for_caller, call, give, nth, property, reply, say, tick, trap, when,
};
use crate::scene::{builder, built, callbacks, ok, said, start, started};

const POLICIES: [FailurePolicy; 3] = [
    FailurePolicy::FailClosed,
    FailurePolicy::FailOpen,
    FailurePolicy::FailReload,
];

/// Denies each request, or traps when its path is so long that the map has more than 60 bytes.
fn gate() -> Guest {
    let long = "(i32.gt_u (i32.load (i32.const 20)) (i32.const 160))";
    Guest::new()
        .on(
            "request_headers",
            [
                "(drop (call $get_header_map_pairs (i32.const 0) (i32.const 16) (i32.const 20)))"
                    .to_owned(),
                when(long, [trap()]),
                reply(403, "no", &[]),
            ],
        )
        .on("log", [])
}

fn deadly() -> Request {
    Request::get("/").header("x-deadly", "x".repeat(100))
}

fn sim(guest: Guest, policy: FailurePolicy) -> Sim {
    built(Plugin::new(guest.module()).failure_policy(policy))
}

fn status(stream: &Stream) -> u16 {
    stream.response().status()
}

#[test]
fn the_request_that_crashes_the_vm_gets_503_under_every_policy() {
    for policy in POLICIES {
        let sim = sim(gate(), policy);
        let stream = sim.request(deadly());
        let answer = stream.response();
        assert_eq!(
            (answer.status(), answer.text().as_str()),
            (503, ""),
            "{policy:?}"
        );
        assert_eq!(answer.header("content-type"), None, "{policy:?}");
        assert!(stream.is_over() && !stream.reached_upstream(), "{policy:?}");
        // No callback follows for it.
        assert_eq!(callbacks(&sim), ["request_headers(2, 5, 1)"], "{policy:?}");
    }
}

#[test]
fn fail_closed_answers_503_for_ever() {
    let sim = sim(gate(), FailurePolicy::FailClosed);
    assert_eq!(status(&sim.request(Request::get("/"))), 403);
    sim.request(deadly());
    for _ in 0..3 {
        assert_eq!(status(&sim.request(Request::get("/"))), 503);
        sim.advance(Duration::from_secs(3600));
    }
}

#[test]
fn fail_open_lets_the_next_requests_pass_without_the_filter() {
    let sim = sim(gate(), FailurePolicy::FailOpen);
    assert_eq!(status(&sim.request(Request::get("/"))), 403);
    sim.request(deadly());
    let stream = sim.request(Request::post("/").body("one").trailer("x", "y"));
    assert_eq!(stream.upstream_request().text(), "one");
    stream.respond(ok("up"));
    assert_eq!(stream.response().text(), "up");
}

#[test]
fn fail_reload_answers_503_until_the_back_off_is_over_and_then_has_a_new_vm() {
    let guest = gate().on("configure", [say("configured")]);
    let plugin = Plugin::new(guest.module())
        .failure_policy(FailurePolicy::FailReload)
        .reload_backoff(Duration::from_millis(500));
    let sim = built(plugin);
    sim.request(deadly());
    sim.advance(Duration::from_millis(499));
    assert_eq!(status(&sim.request(Request::get("/"))), 503);
    assert!(sim.failure(0).is_some());
    let before = said(&sim).len();
    sim.advance(Duration::from_millis(1));
    assert_eq!(status(&sim.request(Request::get("/"))), 403);
    assert!(sim.failure(0).is_none());
    assert_eq!(said(&sim)[before], "configured");
    // Its contexts begin anew.
    assert_eq!(callbacks(&sim)[0], "request_headers(2, 4, 1)");
}

#[test]
fn the_default_back_off_is_a_second() {
    let sim = sim(gate(), FailurePolicy::FailReload);
    sim.request(deadly());
    sim.advance(Duration::from_millis(999));
    assert_eq!(status(&sim.request(Request::get("/"))), 503);
    sim.advance(Duration::from_millis(1));
    assert_eq!(status(&sim.request(Request::get("/"))), 403);
}

#[test]
fn a_new_vm_that_crashes_again_waits_again() {
    let sim = sim(gate(), FailurePolicy::FailReload);
    for _ in 0..3 {
        sim.request(deadly());
        assert_eq!(status(&sim.request(Request::get("/"))), 503);
        sim.advance(Duration::from_secs(1));
        assert_eq!(status(&sim.request(Request::get("/"))), 403);
    }
}

#[test]
fn a_new_vm_that_refuses_its_configuration_is_tried_again_after_another_back_off() {
    let key = crate::guest::text("broken");
    let broken = format!(
        "(i32.eqz (call $get_shared_data {key} (i32.const 16) (i32.const 20) (i32.const 24)))"
    );
    let refuse = when(
        &format!("(i32.and {broken} (i32.gt_u (i32.load (i32.const 20)) (i32.const 0)))"),
        [give(0)],
    );
    let sim = sim(gate().on("configure", [refuse]), FailurePolicy::FailReload);
    sim.request(deadly());
    sim.host().set_shared_data("", "broken", b"yes");
    sim.advance(Duration::from_secs(1));
    assert_eq!(status(&sim.request(Request::get("/"))), 503);
    assert!(sim.logged("wasm vm cannot be reloaded: guest refused its configuration: proxy_on_configure returned false"));
    sim.host().set_shared_data("", "broken", b"");
    assert_eq!(status(&sim.request(Request::get("/"))), 503);
    sim.advance(Duration::from_secs(1));
    assert_eq!(status(&sim.request(Request::get("/"))), 403);
}

#[test]
fn other_workers_go_on_serving() {
    for policy in POLICIES {
        let plugin = Plugin::new(gate().module()).failure_policy(policy);
        let sim = started(builder(plugin).workers(3));
        sim.request_on(1, deadly());
        for worker in [0, 2] {
            assert_eq!(
                status(&sim.request_on(worker, Request::get("/"))),
                403,
                "{policy:?}"
            );
            assert!(sim.failure(worker).is_none());
        }
        assert!(sim.failure(1).is_some());
    }
}

/// Envoy does not tell them: they hang until they have been idle for too long, and then it is the dead filter that answers.
#[test]
fn other_paused_streams_of_a_crashed_vm_hang_until_the_idle_time_out_and_get_503() {
    for policy in POLICIES {
        let guest = Guest::new()
            .on(
                "request_headers",
                [nth(1, [call("plane", 1000), give(1)]), nth(2, [trap()])],
            )
            .on(
                "http_call_response",
                [act_for_caller(), reply(200, "released", &[])],
            );
        let limits = StreamLimits {
            idle_timeout: Some(Duration::from_secs(30)),
            ..StreamLimits::default()
        };
        let plugin = Plugin::new(guest.module()).failure_policy(policy);
        let sim = started(builder(plugin).limits(limits));
        let paused = sim.request(Request::get("/"));
        let callout = sim.callout();
        sim.request(Request::get("/"));
        callout.answer(ok("too late"));
        sim.advance(Duration::from_secs(29));
        assert!(paused.is_paused(), "{policy:?}");
        sim.advance(Duration::from_secs(1));
        assert_eq!(status(&paused), 503, "{policy:?}");
        assert!(paused.is_over() && !paused.reached_upstream(), "{policy:?}");
    }
}

#[test]
fn a_stream_that_outlives_a_reload_belongs_to_nobody() {
    let guest = Guest::new()
        .on("request_headers", [nth(1, [give(1)]), nth(2, [trap()])])
        .on("log", [say("logged")]);
    let sim = sim(guest, FailurePolicy::FailReload);
    let paused = sim.request(Request::get("/"));
    sim.request(Request::get("/"));
    sim.advance(Duration::from_secs(1));
    // The counter of the new VM begins anew, so this one is held as the first was.
    let held = sim.request(Request::get("/"));
    assert!(held.is_paused() && paused.is_paused());
    paused.disconnect();
    assert_eq!(said(&sim).len(), 0);
    held.disconnect();
    assert_eq!(said(&sim), ["logged"]);
}

#[test]
fn a_trap_in_each_callback_of_a_stream_is_answered_or_breaks_the_answer_off() {
    // Callback, the client's status, whether the answer is broken off.
    let cases = [
        ("request_headers", 503, false),
        ("request_body", 503, false),
        ("request_trailers", 503, false),
        ("response_headers", 503, false),
        ("response_body", 200, true),
        ("response_trailers", 200, true),
        ("log", 200, false),
        ("done", 200, false),
        ("delete", 200, false),
    ];
    for (callback, client, broken) in cases {
        let sim = start(Guest::new().on(callback, [trap()]));
        let stream = sim.request(Request::post("/").body("one").trailer("x", "y"));
        stream.respond(ok("up").trailer("x", "y"));
        assert_eq!(status(&stream), client, "{callback}");
        assert_eq!(stream.was_reset(), broken, "{callback}");
        assert!(stream.is_over(), "{callback}");
        let failure = sim
            .failure(0)
            .unwrap_or_else(|| panic!("{callback} did not fail"));
        assert_eq!(failure.callback, format!("proxy_on_{callback}"));
        assert_eq!(failure.context, 2);
        assert_eq!(status(&sim.request(Request::get("/"))), 503, "{callback}");
    }
}

#[test]
fn a_trap_in_a_tick_or_an_answer_fails_the_vm_too() {
    let by_tick = Guest::new()
        .on("configure", [tick(10)])
        .on("tick", [trap()]);
    let by_answer = Guest::new()
        .on("request_headers", [call("plane", 5), give(1)])
        .on("http_call_response", [trap()]);
    for (guest, callback) in [
        (by_tick, "proxy_on_tick"),
        (by_answer, "proxy_on_http_call_response"),
    ] {
        let sim = start(guest);
        sim.request(Request::get("/"));
        sim.advance(Duration::from_millis(10));
        let failure = sim.failure(0).expect("it failed");
        assert_eq!((failure.callback, failure.context), (callback, 1));
        assert_eq!(status(&sim.request(Request::get("/"))), 503);
        // Nothing of it runs any more.
        let calls = sim.trace(0).entries().len();
        sim.advance(Duration::from_secs(10));
        assert_eq!(sim.trace(0).entries().len(), calls);
    }
}

#[test]
fn what_the_guest_asked_for_before_it_trapped_does_not_happen() {
    let guest = Guest::new().on("request_headers", [reply(200, "fine", &[]), trap()]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_eq!(
        (status(&stream), stream.response().text()),
        (503, String::new())
    );
}

#[test]
fn a_grpc_client_of_a_crashed_filter_is_told_unavailable() {
    let sim = start(Guest::new().on("request_headers", [trap()]));
    let stream = sim.request(
        Request::post("/")
            .header("content-type", "application/grpc")
            .body("one"),
    );
    assert_eq!(status(&stream), 200);
    assert_eq!(stream.response().header("grpc-status"), Some("14"));
}

#[test]
fn a_failure_is_logged_and_told_with_the_guest_s_functions() {
    let guest = Guest::new()
        .on("request_headers", ["(call $decide)".to_owned()])
        .with("(func $decide (drop (i32.div_u (i32.const 1) (i32.const 0))))");
    let sim = start(guest);
    sim.request(Request::get("/"));
    let failure = sim.failure(0).expect("it failed");
    let text = "trap in proxy_on_request_headers of context 2: wasm trap: integer divide by zero\n    in decide\n    in \
                on_request_headers";
    assert_eq!(failure.to_string(), text);
    let log = sim.log();
    let said: Vec<_> = log
        .iter()
        .filter(|line| !line.from_guest)
        .map(|line| (line.level, line.message.as_str()))
        .collect();
    let whole = format!("wasm vm failed: {text}");
    let expected = [
        (
            LogLevel::Error,
            "Function: proxy_on_request_headers failed: Uncaught RuntimeError: divide by zero",
        ),
        (LogLevel::Critical, whole.as_str()),
    ];
    assert_eq!(said, expected);
    assert!(sim.logged("integer divide by zero"));
}

#[test]
fn functions_without_names_are_told_by_their_numbers() {
    let wat = r#"(module (memory (export "memory") 1)
        (func (export "malloc") (param i32) (result i32) i32.const 64)
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) unreachable))"#;
    let module = host_sim::Module::from_bytes("nameless", wat.as_bytes()).expect("it fits");
    let sim = built(Plugin::new(module));
    sim.request(Request::get("/"));
    assert_eq!(sim.failure(0).expect("it failed").backtrace, ["function 2"]);
}

#[test]
fn a_dead_filter_has_no_properties_to_ask_and_no_log_callback() {
    let guest = Guest::new()
        .on("request_headers", [nth(2, [trap()])])
        .on("log", [property("response.code_details"), say("logged")]);
    let sim = start(guest);
    let first = sim.request(Request::post("/").unfinished());
    sim.request(Request::get("/"));
    first.disconnect();
    assert_eq!(said(&sim).len(), 0);
    assert!(first.is_over());
}
