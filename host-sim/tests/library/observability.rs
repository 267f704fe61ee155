//! What a test can see of a run: logs, counts, the trace, memory.

use host_sim::sim::{Request, Sim};
use host_sim::{Entry, LogLevel, Plugin};

use crate::guest::{
    Guest, REQUEST_HEADERS, add, ask_number, buffer, call, get, give, map_size, say, say_at,
    say_number, text, when,
};
use crate::scene::{assert_lines, builder, built, ok, said, start, started};

#[test]
fn a_line_of_a_stream_has_the_plugin_s_name_in_front_and_one_of_a_root_has_not() {
    let guest = Guest::new()
        .on("configure", [say("root")])
        .on("request_headers", [say("stream")]);
    let plugin = Plugin::new(guest.module())
        .name("gate")
        .root_id("gate_root")
        .vm_id("gate_vm");
    let sim = built(plugin);
    sim.request(Request::get("/"));
    let log = sim.log();
    let prefix = |message: &str| {
        let line = log
            .iter()
            .find(|line| line.message == message)
            .expect("it was logged");
        assert!(line.from_guest && line.level == LogLevel::Info);
        line.prefix.clone()
    };
    assert_eq!(prefix("root"), "gate_root gate_vm");
    assert_eq!(prefix("stream"), "gate gate_root gate_vm");
}

#[test]
fn empty_words_leave_no_gap_in_the_prefix() {
    let guest = Guest::new().on("request_headers", [say("stream")]);
    let sim = built(Plugin::new(guest.module()).vm_id("gate_vm"));
    sim.request(Request::get("/"));
    assert_eq!(sim.log()[0].prefix, "gate_vm");
}

#[test]
fn lines_below_the_level_are_dropped_and_the_guest_is_told_the_level() {
    let levels = [
        LogLevel::Trace,
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Warn,
        LogLevel::Error,
        LogLevel::Critical,
    ];
    for (number, level) in levels.into_iter().enumerate() {
        let steps = (0..6).map(|level| say_at(level, &format!("at {level}")));
        let level_step = [
            "(drop (call $get_log_level (i32.const 16)))".to_owned(),
            // Said at the highest level, so that it is always there.
            format!(
                "(call $put {} ) (call $put_number (i64.extend_i32_u (i32.load (i32.const 16))))
                 (drop (call $log (i32.const 5) (i32.const 0x10000) (global.get $line))) (global.set $line (i32.const 0))",
                text("level ")
            ),
        ];
        let guest = Guest::new().on("request_headers", steps.chain(level_step));
        let sim = started(builder(Plugin::new(guest.module())).log_level(level));
        sim.request(Request::get("/"));
        let mut expected: Vec<_> = (number..6).map(|level| format!("at {level}")).collect();
        expected.push(format!("level {number}"));
        assert_eq!(said(&sim), expected, "{level:?}");
    }
}

#[test]
fn a_level_that_does_not_exist_is_refused_and_nothing_is_logged() {
    let log = format!(
        "(call $report {} (call $log (i32.const 6) {}))",
        text("log"),
        text("six")
    );
    let sim = start(Guest::new().on("request_headers", [log]));
    sim.request(Request::get("/"));
    assert_lines(&said(&sim), &["log = 2"]);
    assert!(sim.logged("log = 2") && !sim.logged("six"));
}

#[test]
fn bytes_that_are_no_text_are_replaced_in_the_log() {
    let log = format!(
        "(drop (call $log (i32.const 2) {}))",
        text([b'a', 0xff, b'b'])
    );
    let sim = start(Guest::new().on("request_headers", [log]));
    sim.request(Request::get("/"));
    assert_lines(&said(&sim), &["a\u{fffd}b"]);
}

fn counting() -> Sim {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                get(REQUEST_HEADERS, "x"),
                get(REQUEST_HEADERS, "y"),
                add(REQUEST_HEADERS, "x", "1"),
            ],
        )
        .on("request_body", [buffer(0, 0, 9)]);
    let sim = start(guest);
    sim.request(Request::post("/").body("one").body("two"));
    sim
}

#[test]
fn host_functions_are_counted_for_each_callback() {
    let sim = counting();
    let trace = sim.trace(0);
    assert_eq!(
        trace.count("proxy_on_request_headers", "proxy_get_header_map_value"),
        2
    );
    assert_eq!(
        trace.count("proxy_on_request_headers", "proxy_add_header_map_value"),
        1
    );
    assert_eq!(
        trace.count("proxy_on_request_body", "proxy_get_buffer_bytes"),
        2
    );
    assert_eq!(
        trace.count("proxy_on_request_body", "proxy_get_header_map_value"),
        0
    );
    let sum: u64 = trace.counts().map(|(_, _, count)| count).sum();
    assert_eq!(trace.total(), sum);
    // Each of them was logged.
    assert_eq!(trace.total(), 10);
}

#[test]
fn counting_needs_no_recording() {
    let guest = Guest::new().on("request_headers", [get(REQUEST_HEADERS, "x")]);
    let sim = Sim::builder(Plugin::new(guest.module()))
        .start()
        .expect("it starts");
    sim.request(Request::get("/"));
    let trace = sim.trace(0);
    assert!(trace.entries().is_empty());
    assert_eq!(
        trace.count("proxy_on_request_headers", "proxy_get_header_map_value"),
        1
    );
    assert_eq!(trace.to_string(), "");
}

#[test]
fn the_trace_tells_each_call_in_order() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                "(drop (call $get_header_map_value (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 16) (i32.const 20)))"
                    .to_owned(),
                "(drop (call $set_tick_period_milliseconds (i32.const 50)))".to_owned(),
                format!("(drop (call $log (i32.const 3) {}))", text("held")),
                give(1),
            ],
        )
        .on("log", []);
    let sim = start(guest);
    sim.request(Request::get("/")).disconnect();
    assert_eq!(
        sim.trace(0).to_string(),
        "proxy_on_request_headers(2, 4, 1)\n  \
         proxy_get_header_map_value(RequestHeaders, \"\") -> NotFound\n  \
         proxy_set_tick_period_milliseconds(50) -> Ok\n  \
         proxy_log(warning, \"held\") -> Ok\n\
         proxy_on_request_headers -> 1\n\
         proxy_on_log(2)\n\
         proxy_on_log returned\n"
    );
}

#[test]
fn a_trap_is_told_in_the_trace() {
    let sim = start(Guest::new().on("request_headers", [crate::guest::trap()]));
    sim.request(Request::get("/"));
    let trace = sim.trace(0);
    assert_eq!(
        trace.to_string(),
        "proxy_on_request_headers(2, 4, 1)\nproxy_on_request_headers trapped\n"
    );
    assert_eq!(
        trace.entries()[1],
        Entry::Trapped {
            name: "proxy_on_request_headers"
        }
    );
}

#[test]
fn the_trace_of_one_scenario_is_the_same_text_each_time() {
    let run = || {
        let guest = Guest::new()
            .on(
                "request_headers",
                [call("plane", 100), get(0, "x"), map_size(0), give(1)],
            )
            .on("http_call_response", [get(6, ":status")])
            .on("log", [get(2, ":status")]);
        let sim = start(guest);
        for _ in 0..20 {
            sim.request(Request::get("/").header("x", "1"));
        }
        sim.advance(std::time::Duration::from_secs(400));
        sim.trace(0).to_string()
    };
    let first = run();
    assert!(first.lines().count() > 200);
    assert_eq!(first, run());
}

const PAGE: usize = 65_536;

/// Grows by a page and says whether it could.
fn grow(pages: u32) -> String {
    say_number(
        "pages before",
        &format!("(memory.grow (i32.const {pages}))"),
    )
}

#[test]
fn a_guest_s_memory_is_seen_as_it_grows_and_it_never_shrinks() {
    let sim = start(Guest::new().on("request_headers", [grow(3)]));
    let before = sim.memory_bytes(0);
    assert_eq!(before, 4 * PAGE);
    let stream = sim.request(Request::get("/"));
    assert_eq!(sim.memory_bytes(0), before + 3 * PAGE);
    stream.disconnect();
    assert_eq!(sim.memory_bytes(0), before + 3 * PAGE);
}

#[test]
fn a_guest_cannot_grow_over_its_limit_and_lives_on_when_it_bears_that() {
    let guest = Guest::new().on("request_headers", [grow(4), grow(1)]);
    let sim = built(Plugin::new(guest.module()).memory_limit_bytes(8 * PAGE));
    let stream = sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &["pages before = 4", "pages before = 4294967295"],
    );
    assert_eq!(sim.memory_bytes(0), 8 * PAGE);
    assert!(stream.reached_upstream());
}

#[test]
fn a_guest_that_grows_without_end_fails_at_its_limit_and_nothing_else_does() {
    let guest = Guest::new().on(
        "request_headers",
        [when(
            "(i32.const 1)",
            ["(loop $more (drop (call $allocate (i32.const 100000))) (br $more))".to_owned()],
        )],
    );
    let plugin = Plugin::new(guest.module()).memory_limit_bytes(64 * PAGE);
    let sim = started(builder(plugin).workers(2));
    let stream = sim.request_on(0, Request::get("/"));
    assert_eq!(stream.response().status(), 503);
    let failure = sim.failure(0).expect("it failed");
    assert_eq!(failure.backtrace, ["allocate", "on_request_headers"]);
    assert!(sim.memory_bytes(0) <= 64 * PAGE);
    assert!(sim.failure(1).is_none());
}

#[test]
fn an_allocator_that_traps_or_gives_nothing_is_told() {
    let module = |body: &str| {
        let wat = format!(
            r#"(module
               (import "env" "proxy_get_property" (func $property (param i32 i32 i32 i32) (result i32)))
               (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
               (memory (export "memory") 1)
               (data (i32.const 64) "plugin_name") (data (i32.const 128) "0123456789")
               (func $make_room (export "malloc") (param i32) (result i32) {body})
               (func (export "proxy_abi_version_0_2_1"))
               (func $ask (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
                 (drop (call $log (i32.const 2) (i32.add (i32.const 128)
                   (call $property (i32.const 64) (i32.const 11) (i32.const 16) (i32.const 20))) (i32.const 1)))
                 (i32.const 0)))"#
        );
        host_sim::Module::from_bytes("guest", wat.as_bytes()).expect("it fits")
    };
    let null = built(Plugin::new(module("i32.const 0")).name("gate"));
    null.request(Request::get("/"));
    // InvalidMemoryAccess, as in Envoy.
    assert_lines(&said(&null), &["6"]);

    let outside = built(Plugin::new(module("i32.const 0x7fffffff")).name("gate"));
    outside.request(Request::get("/"));
    assert_lines(&said(&outside), &["6"]);

    let trapping = built(Plugin::new(module("unreachable")).name("gate"));
    trapping.request(Request::get("/"));
    let failure = trapping.failure(0).expect("it failed");
    assert_eq!(failure.callback, "proxy_on_request_headers");
    assert_eq!(failure.hostcall, Some("proxy_get_property"));
    assert!(
        failure
            .reason
            .contains("the guest's allocator failed for 4 bytes"),
        "{failure}"
    );
}

#[test]
fn a_finished_simulation_leaves_nothing_open() {
    let guest = Guest::new().on(
        "request_headers",
        [ask_number("queue", "register_shared_queue", &text("q"))],
    );
    let sim = start(guest);
    for _ in 0..100 {
        let stream = sim.request(Request::get("/"));
        stream.respond(ok("up"));
        assert!(stream.is_over());
    }
    assert!(sim.callouts().is_empty() && sim.grpc_calls().is_empty());
}

#[test]
fn who_serves_may_look_at_the_simulation_meanwhile() {
    let guest = Guest::new().on("request_headers", [call("plane", 0), give(1)]);
    let sim = start(guest);
    let inside = sim.clone();
    sim.serve_cluster("plane", move |_| {
        assert!(inside.logged("call = 0 4"));
        assert_eq!(inside.metric("hits"), 0);
        assert_eq!(inside.host().shared_data("", "k"), None);
        ok("")
    });
    let inside = sim.clone();
    sim.serve_upstream(move |_| ok(&inside.log().len().to_string()));
    sim.request(Request::get("/"));
    assert!(sim.callouts().is_empty());
}
