//! Time is moved by the test: ticks come at their own moments and in order, and two runs are alike.

use std::time::Duration;

use host_sim::Plugin;
use host_sim::sim::{Request, Sim};

use crate::guest::{Guest, act_for, ask_wide, give, nth, property, say, say_number, tick};
use crate::scene::{
    assert_lines, builder, built, root_callbacks, said, said_since, start, started,
};

const MILLISECOND: Duration = Duration::from_millis(1);
const NANOSECOND: Duration = Duration::from_nanos(1);

fn now() -> String {
    ask_wide("now", "get_current_time_nanoseconds", "")
}

fn ticks(sim: &Sim) -> usize {
    root_callbacks(sim)
        .iter()
        .filter(|line| *line == "tick(1)")
        .count()
}

#[test]
fn a_tick_comes_exactly_at_its_moment_and_then_again() {
    let sim = start(Guest::new().on("configure", [tick(100)]).on("tick", []));
    sim.advance(MILLISECOND * 100 - NANOSECOND);
    assert_eq!(ticks(&sim), 0);
    sim.advance(NANOSECOND);
    assert_eq!(ticks(&sim), 1);
    sim.advance(MILLISECOND * 250);
    assert_eq!(ticks(&sim), 3);
    sim.advance(MILLISECOND * 50);
    assert_eq!(ticks(&sim), 4);
}

#[test]
fn every_worker_and_the_main_thread_tick() {
    let guest = Guest::new()
        .on("configure", [tick(100)])
        .on("tick", [say("tick")]);
    let sim = started(builder(Plugin::new(guest.module())).workers(3));
    sim.advance(MILLISECOND * 100);
    // The canary is gone.
    assert_eq!(said(&sim).iter().filter(|line| *line == "tick").count(), 4);
    for worker in 0..3 {
        assert!(sim.trace(worker).to_string().contains("proxy_on_tick(1)"));
    }
    assert!(
        sim.main_thread_trace()
            .to_string()
            .contains("proxy_on_tick(1)")
    );
}

#[test]
fn each_vm_ticks_at_its_own_moments_and_all_of_them_in_order() {
    // The VMs differ by the number that shared data gave them: the first one ticks each 10 ms, the second each 20 ms.
    let key = crate::guest::text("vms");
    let count = format!(
        "(drop (call $get_shared_data {key} (i32.const 16) (i32.const 20) (i32.const 24)))
         (global.set $number (i32.add (i32.const 1) (i32.load (i32.const 20))))
         (drop (call $set_shared_data {key} (i32.const 2048) (global.get $number) (i32.const 0)))
         (drop (call $set_tick_period_milliseconds (i32.mul (global.get $number) (i32.const 10))))"
    );
    let guest = Guest::new()
        .with("(global $number (mut i32) (i32.const 0))")
        .on("configure", [count])
        .on("tick", [say_number("vm", "(global.get $number)"), now()]);
    let sim = start(guest);
    sim.advance(MILLISECOND * 60);
    let at = |vm: u32, milliseconds: u64| {
        [
            format!("vm = {vm}"),
            format!(
                "now = 0 {}",
                1_767_225_600_000_000_000 + milliseconds * 1_000_000
            ),
        ]
    };
    // 1 was the canary, 2 the main thread, 3 the worker.
    let expected = [at(2, 20), at(3, 30), at(2, 40), at(2, 60), at(3, 60)].concat();
    assert_eq!(said(&sim), expected);
}

#[test]
fn a_tick_can_be_set_anew_and_stopped_from_a_tick() {
    let guest = Guest::new()
        .on("configure", [tick(100)])
        .on("tick", [nth(2, [tick(10)]), nth(4, [tick(0)])]);
    let sim = start(guest);
    sim.advance(MILLISECOND * 200);
    assert_eq!(ticks(&sim), 2);
    sim.advance(MILLISECOND * 20);
    assert_eq!(ticks(&sim), 4);
    sim.advance(Duration::from_secs(60));
    assert_eq!(ticks(&sim), 4);
}

#[test]
fn a_new_period_starts_now() {
    let guest = Guest::new()
        .on("configure", [tick(100)])
        .on("tick", [])
        .on("request_headers", [tick(100)]);
    let sim = start(guest);
    sim.advance(MILLISECOND * 99);
    // A stream sets the period of its root.
    sim.request(Request::get("/"));
    sim.advance(MILLISECOND * 99);
    assert_eq!(ticks(&sim), 0);
    sim.advance(MILLISECOND);
    assert_eq!(ticks(&sim), 1);
}

#[test]
fn a_guest_without_a_period_never_ticks() {
    let sim = start(Guest::new().on("tick", []));
    sim.advance(Duration::from_secs(3600));
    assert_eq!(ticks(&sim), 0);
}

#[test]
fn the_wall_clock_starts_at_the_same_moment_and_moves_with_the_time() {
    let sim = start(Guest::new().on("request_headers", [now()]));
    sim.request(Request::get("/"));
    sim.advance(Duration::from_secs(90));
    sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &["now = 0 1767225600000000000", "now = 0 1767225690000000000"],
    );
}

#[test]
fn a_jump_of_the_wall_clock_moves_no_timer() {
    let guest = Guest::new()
        .on("configure", [tick(100)])
        .on("tick", [])
        .on("request_headers", [now(), give(1)]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    sim.jump_wall_clock(3600);
    sim.request(Request::get("/"));
    sim.jump_wall_clock(-7200);
    sim.request(Request::get("/"));
    assert_eq!(ticks(&sim), 0);
    assert!(stream.is_paused());
    assert_lines(
        &said_since(&sim, 3),
        &[
            "now = 0 1767225600000000000",
            "now = 0 1767229200000000000",
            "now = 0 1767222000000000000",
        ],
    );
    sim.advance(MILLISECOND * 100);
    assert_eq!(ticks(&sim), 1);
}

#[test]
fn what_is_due_at_one_moment_happens_once_each() {
    let guest = Guest::new()
        .on("configure", [tick(1000)])
        .on(
            "request_headers",
            [crate::guest::call("plane", 1000), give(1)],
        )
        .on("http_call_response", [say("callout")])
        .on("tick", [say("tick")])
        .on("log", [say("log")]);
    let limits = host_sim::StreamLimits {
        idle_timeout: Some(MILLISECOND * 1000),
        ..host_sim::StreamLimits::default()
    };
    let sim = started(builder(Plugin::new(guest.module())).limits(limits));
    sim.request(Request::get("/"));
    let before = said(&sim).len();
    sim.advance(MILLISECOND * 1000);
    let mut found = said_since(&sim, before);
    found.sort();
    assert_lines(&found, &["callout", "log", "tick", "tick"]);
}

#[test]
fn two_runs_of_one_scenario_are_alike() {
    let run = || {
        let guest = Guest::new()
            .on("configure", [tick(70)])
            .on("tick", [now(), act_for(2)])
            .on(
                "request_headers",
                [crate::guest::call("plane", 50), property("request.time")],
            )
            .on("http_call_response", [now()]);
        let sim = built(Plugin::new(guest.module()));
        sim.request(Request::get("/"));
        sim.advance(Duration::from_secs(1));
        (said(&sim), sim.trace(0).to_string())
    };
    assert_eq!(run(), run());
}

#[test]
fn random_bytes_are_the_same_in_each_run() {
    let wat = r#"(module
        (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "malloc") (param i32) (result i32) i32.const 64)
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_configure") (param i32 i32) (result i32)
          (drop (call $random (i32.const 512) (i32.const 16)))
          (drop (call $log (i32.const 2) (i32.const 512) (i32.const 16)))
          (i32.const 1)))"#;
    let run = || {
        let module = host_sim::Module::from_bytes("random", wat.as_bytes()).expect("it fits");
        said(&built(Plugin::new(module)))
    };
    let first = run();
    assert_eq!(first, run());
    assert_ne!(first[0], first[1]);
}
