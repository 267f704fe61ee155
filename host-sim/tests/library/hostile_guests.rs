//! A guest may hand over any number. It gets a status or traps; the host goes on.

use std::sync::OnceLock;

use host_sim::sim::{Request, Sim};
use host_sim::{Module, Plugin};
use proptest::prelude::*;

use crate::guest::{Guest, HOSTCALLS, tick};
use crate::scene::{STREAM_CALLBACKS, built, cases, ok, said};

/// Numbers that break things more often than others.
fn argument() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => 0u32..16,
        2 => prop::sample::select(vec![
            u32::MAX, u32::MAX - 1, 0x8000_0000, 0x7fff_ffff, 65_535, 65_536, 4 * 65_536, 4 * 65_536 - 1, 4 * 65_536 - 4,
        ]),
        3 => 2048u32..2400,
        1 => any::<u32>(),
    ]
}

/// A guest that, in each callback, calls one host function with arguments that lie in the plugin's configuration: 16 numbers behind
/// the number of the callback.
fn calling(name: &str, parameters: &str) -> Module {
    let arguments: String = parameters
        .chars()
        .enumerate()
        .map(|(index, kind)| {
            let load = if kind == 'I' { "i64.load" } else { "i32.load" };
            format!(
                "({load} (i32.add (global.get $numbers) (i32.const {})))",
                4 * index
            )
        })
        .collect();
    // The status is read so that nothing of the call is optimised away.
    let step =
        format!("(if (i32.gt_u (call ${name} {arguments}) (i32.const 12)) (then (unreachable)))");
    let configure = "(drop (call $get_buffer_bytes (i32.const 7) (i32.const 0) (i32.const 4096) (i32.const 16) (i32.const 20)))
         (global.set $numbers (i32.load (i32.const 16)))"
        .to_owned();
    let guest = Guest::new()
        .with("(global $numbers (mut i32) (i32.const 0))")
        .on("configure", [configure, tick(10)]);
    let others = [
        "tick",
        "context_create",
        "http_call_response",
        "queue_ready",
        "grpc_close",
    ];
    STREAM_CALLBACKS
        .into_iter()
        .chain(others)
        .fold(guest, |guest, callback| guest.on(callback, [step.clone()]))
        .module()
}

fn modules() -> &'static [(&'static str, Module)] {
    static MODULES: OnceLock<Vec<(&'static str, Module)>> = OnceLock::new();
    MODULES.get_or_init(|| {
        HOSTCALLS
            .into_iter()
            .map(|(name, parameters)| (name, calling(name, parameters)))
            .collect()
    })
}

fn exchange(sim: &Sim) {
    sim.advance(std::time::Duration::from_millis(25));
    let stream = sim.request(
        Request::post("/")
            .header("x", "y")
            .body("one")
            .body("two")
            .trailer("x", "y"),
    );
    stream.respond(ok("up").trailer("x", "y"));
    stream.disconnect();
    for callout in sim.callouts() {
        callout.answer(ok("late"));
    }
    for call in sim.grpc_calls() {
        call.message("late");
        call.close(0, "");
    }
    let second = sim.request(Request::get("/"));
    sim.advance(std::time::Duration::from_millis(25));
    second.disconnect();
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn garbage_gives_a_status_or_a_trap_and_never_a_panic(numbers in prop::collection::vec(argument(), 16)) {
        let configuration: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        for (name, module) in modules() {
            let sim = built(Plugin::new(module.clone()).configuration(configuration.clone()).memory_limit_bytes(1 << 24));
            exchange(&sim);
            let hostcall = format!("proxy_{name}");
            let called = sim.trace(0).counts().any(|(_, found, _)| found == hostcall);
            prop_assert!(called, "{name} was never called");
            // What traps the guest is its own allocator or a status that does not exist; the latter is the host's fault.
            if let Some(failure) = sim.failure(0) {
                prop_assert!(!failure.reason.contains("unreachable") || failure.backtrace[0] == "allocate", "{}: {}", name, failure);
            }
            prop_assert!(sim.log().len() < 100_000);
        }
    }
}

/// Each pointer of each function, one by one, outside of the memory.
#[test]
fn a_pointer_outside_of_the_memory_is_an_invalid_access_and_not_a_trap() {
    let outside = "(i32.const 0x7ffffff0)";
    let inside = "(i32.const 16)";
    let cases = [
        ("log", format!("(i32.const 2) {outside} (i32.const 4)")),
        ("get_log_level", outside.to_owned()),
        ("get_current_time_nanoseconds", outside.to_owned()),
        (
            "get_header_map_value",
            format!("(i32.const 0) {outside} (i32.const 4) {inside} {inside}"),
        ),
        (
            "get_header_map_pairs",
            format!("(i32.const 0) {outside} {inside}"),
        ),
        ("get_header_map_size", format!("(i32.const 0) {outside}")),
        (
            "set_header_map_pairs",
            format!("(i32.const 0) {outside} (i32.const 4)"),
        ),
        (
            "add_header_map_value",
            format!("(i32.const 0) {outside} (i32.const 4) {inside} (i32.const 0)"),
        ),
        (
            "replace_header_map_value",
            format!("(i32.const 0) {inside} (i32.const 1) {outside} (i32.const 4)"),
        ),
        (
            "remove_header_map_value",
            format!("(i32.const 0) {outside} (i32.const 4)"),
        ),
        (
            "get_buffer_bytes",
            format!("(i32.const 6) (i32.const 0) (i32.const 9) {outside} {inside}"),
        ),
        (
            "get_buffer_status",
            format!("(i32.const 6) {outside} {inside}"),
        ),
        (
            "get_property",
            format!("{outside} (i32.const 4) {inside} {inside}"),
        ),
        (
            "set_property",
            format!("{outside} (i32.const 4) {inside} (i32.const 0)"),
        ),
        (
            "get_shared_data",
            format!("{outside} (i32.const 4) {inside} {inside} {inside}"),
        ),
        (
            "set_shared_data",
            format!("{outside} (i32.const 4) {inside} (i32.const 0) (i32.const 0)"),
        ),
        (
            "register_shared_queue",
            format!("{outside} (i32.const 4) {inside}"),
        ),
        (
            "define_metric",
            format!("(i32.const 0) {outside} (i32.const 4) {inside}"),
        ),
        ("get_status", format!("{outside} {inside} {inside}")),
        (
            "http_call",
            format!(
                "{outside} (i32.const 4) {inside} (i32.const 0) {inside} (i32.const 0) {inside} (i32.const 0) (i32.const 0) {inside}"
            ),
        ),
        (
            "send_local_response",
            format!(
                "(i32.const 200) {inside} (i32.const 0) {outside} (i32.const 4) {inside} (i32.const 0) (i32.const -1)"
            ),
        ),
        (
            "call_foreign_function",
            format!("{outside} (i32.const 4) {inside} (i32.const 0) {inside} {inside}"),
        ),
    ];
    let steps = cases
        .iter()
        .map(|(name, arguments)| crate::guest::ask(name, name, arguments));
    let sim = built(
        Plugin::new(Guest::new().on("request_headers", steps).module()).vm_configuration("x"),
    );
    let stream = sim.request(Request::get("/"));
    let expected: Vec<_> = cases
        .iter()
        .map(|(name, _)| format!("{name} = 6"))
        .collect();
    assert_eq!(said(&sim), expected);
    assert!(stream.reached_upstream(), "{:?}", sim.failure(0));
}

#[test]
fn an_endless_recursion_is_a_trap_of_the_guest_only() {
    let guest = Guest::new()
        .with("(func $down (param i32) (call $down (local.get 0)) (call $down (local.get 0)))")
        .on("request_headers", ["(call $down (i32.const 1))".to_owned()]);
    let sim = built(Plugin::new(guest.module()));
    let stream = sim.request(Request::get("/"));
    assert_eq!(stream.response().status(), 503);
    let failure = sim.failure(0).expect("it failed");
    assert!(failure.reason.contains("stack"), "{failure}");
}

#[test]
fn a_reply_in_every_response_callback_of_its_own_ends() {
    let reply = || crate::guest::reply(500, "again", &[]);
    let guest = Guest::new()
        .on("request_headers", [reply()])
        .on("response_headers", [reply()])
        .on("response_body", [reply()])
        .on("log", [reply()])
        .on("done", [reply()])
        .on("delete", [reply()]);
    let sim = built(Plugin::new(guest.module()));
    let stream = sim.request(Request::get("/"));
    assert!(stream.is_over());
    assert_eq!(stream.response().status(), 500);
}
