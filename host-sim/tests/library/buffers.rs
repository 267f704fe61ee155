//! Bodies and configurations as byte ranges: what can be read when, and what a write does. Measured on Envoy 1.40.

use host_sim::Plugin;
use host_sim::sim::Request;

use crate::guest::{
    CALL_BODY, CONFIGURATION, GRPC_MESSAGE, Guest, REQUEST_BODY, RESPONSE_BODY, VM_CONFIGURATION,
    at_end, buffer, call, nth, set_buffer,
};
use crate::scene::{assert_lines, built, ok, said, said_since, start};

const WHOLE: u32 = u32::MAX;

#[test]
fn a_range_is_cut_to_what_is_there() {
    let cases = [
        (0, WHOLE, "hello"),
        (1, 2, "el"),
        (0, 0, "null"),
        (4, 9, "o"),
        (5, 1, "null"),
        (1_000_000, 1, "null"),
        // Start and length together overflow 32 bits.
        (1, WHOLE, "ello"),
        (WHOLE, WHOLE, "null"),
    ];
    let steps = cases.map(|(start, length, _)| buffer(REQUEST_BODY, start, length));
    let sim = start(Guest::new().on("request_body", steps));
    sim.request(Request::post("/").body("hello"));
    let expected = cases.map(|(_, _, bytes)| format!("buffer = 0 {bytes}"));
    assert_lines(&said(&sim), &expected.each_ref().map(String::as_str));
}

#[test]
fn a_write_prepends_replaces_or_appends() {
    let cases = [
        (0, 0, "X", 0, "Xhello"),
        (0, 2, "X", 0, "Xllo"),
        (0, 5, "X", 0, "X"),
        (0, 99, "X", 0, "X"),
        (0, WHOLE, "X", 0, "X"),
        (5, 0, "X", 0, "helloX"),
        (5, 3, "X", 0, "helloX"),
        (99, 0, "X", 0, "helloX"),
        (WHOLE, WHOLE, "X", 0, "helloX"),
        (0, 0, "", 0, "hello"),
        (0, 5, "", 0, ""),
        (2, 0, "X", 2, "hello"),
        (2, 1, "X", 2, "hello"),
        (1, 4, "X", 2, "hello"),
        (4, 1, "X", 2, "hello"),
    ];
    for (at, length, bytes, status, expected) in cases {
        let steps = || {
            [nth(
                1,
                [
                    set_buffer(REQUEST_BODY, at, length, bytes),
                    buffer(REQUEST_BODY, 0, WHOLE),
                ],
            )]
        };
        let sim = start(Guest::new().on("request_body", steps()));
        let stream = sim.request(Request::post("/").body("hello").body(""));
        let place = format!("{bytes:?} at {at}, {length}");
        assert_eq!(stream.upstream_request().text(), expected, "{place}");
        let read = if expected.is_empty() {
            "null"
        } else {
            expected
        };
        assert_eq!(
            said(&sim),
            [
                format!("set buffer = {status}"),
                format!("buffer = 0 {read}")
            ],
            "{place}"
        );
    }
}

#[test]
fn a_body_can_be_written_in_its_empty_last_call() {
    let guest = Guest::new()
        .on(
            "request_body",
            [at_end([set_buffer(REQUEST_BODY, 0, 0, "tail")])],
        )
        .on(
            "response_body",
            [at_end([set_buffer(RESPONSE_BODY, 0, 0, "tail")])],
        );
    let sim = start(guest);
    let stream = sim.request(Request::post("/").body("one").body(""));
    stream.respond_headers(ok(""));
    stream.respond_body("up", false);
    stream.respond_body("", true);
    assert_eq!(stream.upstream_request().text(), "onetail");
    assert_eq!(stream.response().text(), "uptail");
}

#[test]
fn a_collected_body_is_written_as_a_whole() {
    let guest = Guest::new().on(
        "request_body",
        [
            crate::guest::give(1),
            at_end([
                set_buffer(REQUEST_BODY, 0, WHOLE, "replaced"),
                crate::guest::give(0),
            ]),
        ],
    );
    let sim = start(guest);
    let stream = sim.request(Request::post("/").body("one").body("two").body("three"));
    assert_eq!(stream.upstream_request().text(), "replaced");
}

/// Buffers out of their own callback: bodies read as empty ones, a callout's answer and the configuration are not found, none can
/// be changed.
#[test]
fn a_buffer_out_of_its_callback_answers_as_in_envoy() {
    let read = |kind| buffer(kind, 0, WHOLE);
    let kinds = [
        (REQUEST_BODY, "0 null", "2"),
        (RESPONSE_BODY, "0 null", "2"),
        (2, "0 null", "2"),
        (3, "0 null", "2"),
        (CALL_BODY, "1", "1"),
        (GRPC_MESSAGE, "0 null", "2"),
        (VM_CONFIGURATION, "0 vm's", "2"),
        (CONFIGURATION, "1", "1"),
        (8, "0 vm's", "2"),
        (9, "2", "2"),
    ];
    for callback in [
        "tick",
        "request_headers",
        "response_headers",
        "log",
        "done",
        "delete",
    ] {
        for (kind, readable, change) in kinds {
            let guest = Guest::new()
                .on("configure", [crate::guest::tick(10)])
                .on(callback, [read(kind), set_buffer(kind, 0, 0, "<")]);
            let plugin = Plugin::new(guest.module())
                .vm_configuration("vm's")
                .configuration("plugin's");
            let sim = built(plugin);
            let before = said(&sim).len();
            sim.advance(std::time::Duration::from_millis(10));
            sim.request(Request::get("/")).respond(ok(""));
            let found = said_since(&sim, before);
            let expected = [
                format!("buffer = {readable}"),
                format!("set buffer = {change}"),
            ];
            assert_eq!(found[..2], expected, "buffer {kind} in {callback}");
        }
    }
}

#[test]
fn configure_reads_the_plugin_s_configuration_and_vm_start_the_vm_s() {
    let reads = || [CONFIGURATION, VM_CONFIGURATION, 8].map(|kind| buffer(kind, 0, WHOLE));
    let guest = Guest::new()
        .on("vm_start", reads())
        .on("configure", reads());
    let sim = built(
        Plugin::new(guest.module())
            .vm_configuration("vm's")
            .configuration("plugin's"),
    );
    assert_lines(
        &said(&sim)[..6],
        &[
            "buffer = 1",
            "buffer = 0 vm's",
            "buffer = 0 vm's",
            "buffer = 0 plugin's",
            "buffer = 0 vm's",
            "buffer = 0 plugin's",
        ],
    );
}

#[test]
fn a_buffer_s_status_is_its_length_and_no_flags() {
    let flags = "(if (i32.load (i32.const 24)) (then (unreachable)))".to_owned();
    let status = |kind: u32| {
        let call = format!(
            "(call $report_number {} (call $get_buffer_status (i32.const {kind}) (i32.const 16) (i32.const 24)))",
            crate::guest::text("status")
        );
        [call, flags.clone()].concat()
    };
    let guest = Guest::new().on(
        "request_body",
        [
            status(REQUEST_BODY),
            status(RESPONSE_BODY),
            status(9),
            status(CALL_BODY),
        ],
    );
    let sim = start(guest);
    sim.request(Request::post("/").body("hello"));
    assert_lines(
        &said(&sim),
        &["status = 0 5", "status = 0 0", "status = 2", "status = 1"],
    );
}

#[test]
fn a_callout_s_answer_is_read_in_its_callback_only() {
    let guest = Guest::new().on("request_headers", [call("plane", 0)]).on(
        "http_call_response",
        [
            buffer(CALL_BODY, 0, WHOLE),
            buffer(CALL_BODY, 1, 1),
            set_buffer(CALL_BODY, 0, 0, "<"),
        ],
    );
    let sim = start(guest);
    sim.request(Request::get("/"));
    sim.callout().answer(ok("up"));
    assert_lines(
        &said(&sim),
        &[
            "call = 0 4",
            "buffer = 0 up",
            "buffer = 0 p",
            "set buffer = 2",
        ],
    );
}
