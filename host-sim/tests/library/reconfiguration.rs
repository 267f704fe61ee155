//! An update of the configuration: a canary tries it, then each VM gets a new root, and old streams end with the old one. Measured
//! on Envoy 1.40 with a listener from a file.

use host_sim::sim::{Request, Sim};
use host_sim::{LoadError, Plugin};

use crate::guest::{
    CONFIGURATION, Guest, ask, buffer, for_context, get, give, say_at, tick, trap, when,
};
use crate::scene::{
    assert_lines, builder, built, of_contexts, ok, said, said_since, start, started,
};

/// Refuses a configuration of one byte, traps at one of two bytes.
fn picky() -> Guest {
    let size = |size: u32| format!("(i32.eq (local.get $p1) (i32.const {size}))");
    Guest::new().on(
        "configure",
        [
            buffer(CONFIGURATION, 0, 99),
            when(&size(1), [say_at(3, "too short"), give(0)]),
            when(&size(2), [trap()]),
        ],
    )
}

fn all(sim: &Sim) -> Vec<String> {
    of_contexts(sim, |_| true)
}

#[test]
fn an_update_makes_a_new_root_in_each_vm_and_ends_the_old_one() {
    let guest = picky()
        .on("vm_start", [])
        .on("context_create", [])
        .on("done", [])
        .on("delete", []);
    let sim = start(guest);
    let before = all(&sim).len();
    sim.reconfigure("new rules").expect("it is accepted");
    assert_lines(
        &all(&sim)[before..],
        &[
            "context_create(2, 0)",
            "vm_start(2, 0)",
            "configure(2, 9)",
            "done(1)",
            "delete(1)",
        ],
    );
    // The canary, the main thread and the worker have read it.
    assert_eq!(
        said(&sim)
            .iter()
            .filter(|line| *line == "buffer = 0 new rules")
            .count(),
        3
    );
}

#[test]
fn new_streams_get_the_new_root_and_old_ones_end_with_the_old_root() {
    let guest = Guest::new()
        .on("context_create", [])
        .on("request_headers", [give(1)])
        .on("log", [])
        .on("done", [])
        .on("delete", []);
    let sim = start(guest);
    let old = sim.request(Request::get("/"));
    let older = sim.request(Request::get("/"));
    sim.reconfigure("new").expect("it is accepted");
    let new = sim.request(Request::get("/"));
    let before = all(&sim).len();
    assert_eq!(all(&sim)[before - 2], "context_create(5, 4)");
    old.disconnect();
    new.disconnect();
    // A stream of the old root is still there.
    let ending = |context: u32| {
        [
            format!("log({context})"),
            format!("done({context})"),
            format!("delete({context})"),
        ]
    };
    assert_eq!(all(&sim)[before..], [ending(2), ending(5)].concat());
    older.disconnect();
    let expected = [
        &ending(2)[..],
        &ending(5),
        &ending(3),
        &["done(1)".to_owned(), "delete(1)".to_owned()],
    ]
    .concat();
    assert_eq!(all(&sim)[before..], expected);
}

#[test]
fn a_refused_update_changes_nothing() {
    for (configuration, expected) in [
        (
            "x",
            "guest refused its configuration: proxy_on_configure returned false\n  it logged: too short",
        ),
        (
            "xx",
            "guest failed while it was started\ntrap in proxy_on_configure of context 1: wasm trap: wasm `unreachable` \
                instruction executed\n    in on_configure",
        ),
    ] {
        let sim = start(picky().on("request_headers", [get(0, ":path")]));
        let before = all(&sim).len();
        let error = sim.reconfigure(configuration).expect_err("it is refused");
        assert_eq!(error.to_string(), expected);
        assert_eq!(all(&sim).len(), before);
        assert!(sim.failure(0).is_none());
        let stream = sim.request(Request::get("/"));
        assert!(stream.reached_upstream());
        assert_eq!(
            all(&sim).last().map(String::as_str),
            Some("request_headers(2, 4, 1)")
        );
        sim.reconfigure("long enough")
            .expect("a later one is accepted");
    }
}

#[test]
fn the_reason_of_a_refusal_is_that_of_the_last_configuration() {
    let sim = start(picky());
    for _ in 0..2 {
        let error = sim.reconfigure("x").expect_err("it is refused");
        let LoadError::ConfigurationRefused { said, .. } = error else {
            panic!("another error: {error}")
        };
        assert_eq!(said, ["too short"]);
    }
}

#[test]
fn a_root_that_is_not_done_yet_stays_until_it_says_so() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                ask("act", "set_effective_context", "(i32.const 1)"),
                ask("done", "done", ""),
            ],
        )
        .on("done", [for_context(1, [give(0)])])
        .on("delete", []);
    let sim = start(guest);
    sim.reconfigure("new").expect("it is accepted");
    assert_eq!(all(&sim), ["done(1)"]);
    let before = said(&sim).len();
    sim.request(Request::get("/"));
    assert_lines(&said_since(&sim, before), &["act = 0", "done = 0"]);
    assert_eq!(all(&sim)[1..], ["request_headers(3, 4, 1)", "delete(1)"]);
    sim.request(Request::get("/"));
    assert_eq!(said(&sim)[before + 2..], ["act = 2", "done = 1"]);
}

#[test]
fn ticks_go_on_with_the_new_root_only() {
    let sim = start(Guest::new().on("configure", [tick(10)]).on("tick", []));
    sim.reconfigure("new").expect("it is accepted");
    let before = all(&sim).len();
    sim.advance(std::time::Duration::from_millis(20));
    assert_lines(&all(&sim)[before..], &["tick(2)", "tick(2)"]);
}

#[test]
fn an_old_stream_keeps_its_configuration_and_a_callout_of_the_old_root_is_still_answered() {
    let guest = Guest::new()
        .on("request_headers", [crate::guest::call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [crate::guest::act_for_caller(), crate::guest::resume(0)],
        );
    let sim = start(guest);
    let old = sim.request(Request::get("/"));
    sim.reconfigure("new").expect("it is accepted");
    sim.callout().answer(ok(""));
    assert!(old.reached_upstream());
    assert_eq!(
        all(&sim).last().map(String::as_str),
        Some("http_call_response(1, 4, 1, 0, 0)")
    );
}

#[test]
fn every_worker_takes_the_update() {
    let guest = Guest::new()
        .on(
            "configure",
            ["(global.set $size (local.get $p1))".to_owned()],
        )
        .with("(global $size (mut i32) (i32.const 0))")
        .on(
            "request_headers",
            [crate::guest::say_number(
                "configured with",
                "(global.get $size)",
            )],
        );
    let sim = started(builder(Plugin::new(guest.module()).configuration("one")).workers(2));
    sim.reconfigure("seven b").expect("it is accepted");
    for worker in 0..2 {
        sim.request_on(worker, Request::get("/"));
    }
    assert_lines(&said(&sim), &["configured with = 7"; 2]);
}

#[test]
fn an_update_with_the_same_bytes_is_an_update_here() {
    // Envoy leaves an unchanged listener alone; a test that asks for an update wants one.
    let sim = built(Plugin::new(Guest::new().on("configure", []).module()).configuration("same"));
    sim.reconfigure("same").expect("it is accepted");
    assert_eq!(all(&sim), ["configure(1, 4)", "configure(2, 4)"]);
}
