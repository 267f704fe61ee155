//! From the instance to a configured root context: what is called, in which order, and what a module that fails there is told.

use host_sim::sim::{Request, Sim};
use host_sim::{LoadError, Module, Plugin};

use crate::guest::{
    CONFIGURATION, Guest, VM_CONFIGURATION, ask_bytes, buffer, get, give, say, say_at, text, trap,
};
use crate::scene::{assert_lines, built, callbacks, root_callbacks, said, start};

const MARKER: &str = r#"(func (export "proxy_abi_version_0_2_1"))"#;
const REST: &str = r#"
    (memory (export "memory") 1)
    (func (export "malloc") (param i32) (result i32) i32.const 64)"#;
const LOG: &str = r#"(import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))"#;

fn refusal_of(plugin: Plugin) -> LoadError {
    let started = Sim::builder(plugin).start();
    started.expect_err("it must not start")
}

fn refusal(guest: Guest) -> LoadError {
    refusal_of(Plugin::new(guest.module()))
}

fn module(wat: &str) -> Plugin {
    Plugin::new(Module::from_bytes("gate.wasm", wat.as_bytes()).expect("it fits"))
}

/// How many VMs run their start functions is not told here: Envoy makes one more than it configures.
#[track_caller]
fn assert_each_vm_said(sim: &Sim, expected: &[&str]) {
    let said = said(sim);
    assert!(said.len() >= 3 * expected.len(), "{said:?}");
    assert!(
        said.chunks(expected.len()).all(|lines| lines == expected),
        "{said:?}"
    );
}

#[test]
fn the_root_context_is_created_then_the_vm_is_started_then_configured() {
    let guest = Guest::new()
        .on("context_create", [])
        .on("vm_start", [buffer(VM_CONFIGURATION, 0, 100)])
        .on("configure", [buffer(CONFIGURATION, 0, 100)]);
    let plugin = Plugin::new(guest.module())
        .vm_configuration("the vm's")
        .configuration("the plugin");
    let sim = built(plugin);
    assert_lines(
        &root_callbacks(&sim),
        &["context_create(1, 0)", "vm_start(1, 8)", "configure(1, 10)"],
    );
    // A canary, the main thread and one worker.
    let one = ["buffer = 0 the vm's", "buffer = 0 the plugin"];
    assert_lines(&said(&sim), &[one, one, one].concat());
}

#[test]
fn a_stream_has_a_context_of_its_own_counted_from_2() {
    let sim = start(
        Guest::new()
            .on("context_create", [])
            .on("request_headers", []),
    );
    sim.request(Request::get("/"));
    sim.request(Request::get("/"));
    assert_lines(
        &callbacks(&sim),
        &[
            "context_create(2, 1)",
            "request_headers(2, 4, 1)",
            "context_create(3, 1)",
            "request_headers(3, 4, 1)",
        ],
    );
}

#[test]
fn a_configuration_that_is_refused_says_what_the_guest_logged() {
    let silent = refusal(Guest::new().on("configure", [give(0)]));
    assert_eq!(
        silent.to_string(),
        "guest refused its configuration: proxy_on_configure returned false, and it logged no reason"
    );
    let spoken = refusal(Guest::new().on(
        "configure",
        [
            say("not this"),
            say_at(3, "no rules"),
            say_at(4, "no plane"),
            say_at(5, "lost"),
            give(0),
        ],
    ));
    assert_eq!(
        spoken.to_string(),
        "guest refused its configuration: proxy_on_configure returned false\n  it logged: no rules\n  it logged: no plane\n  it \
         logged: lost"
    );
}

#[test]
fn a_vm_that_refuses_to_start_is_told_from_a_refused_configuration() {
    let error = refusal(Guest::new().on("vm_start", [give(0)]));
    assert_eq!(
        error.to_string(),
        "guest refused its configuration: proxy_on_vm_start returned false, and it logged no reason"
    );
    let LoadError::ConfigurationRefused { callback, said, .. } = error else {
        panic!("another error: {error}");
    };
    assert_eq!((callback, said), ("proxy_on_vm_start", Vec::new()));
}

#[test]
fn a_module_without_vm_start_and_configure_is_accepted() {
    let sim = start(Guest::new());
    assert!(sim.failure(0).is_none());
}

#[test]
fn a_trap_while_configured_is_told_with_the_guest_s_functions() {
    let more = "(func $read_rules (unreachable))";
    let error = refusal(
        Guest::new()
            .on("configure", ["(call $read_rules)".to_owned()])
            .with(more),
    );
    assert_eq!(
        error.to_string(),
        "guest failed while it was started\ntrap in proxy_on_configure of context 1: wasm trap: wasm `unreachable` instruction \
         executed\n    in read_rules\n    in on_configure"
    );
}

#[test]
fn a_trap_at_the_start_is_told_with_the_guest_s_functions() {
    for export in ["_initialize", "_start"] {
        let wat = format!(
            r#"(module {MARKER} {REST} (func $build_tables (unreachable))
               (func $constructors (export "{export}") (call $build_tables)))"#
        );
        let error = refusal_of(module(&wat));
        assert_eq!(
            error.to_string(),
            format!(
                "gate.wasm failed while it was started\ntrap in {export} of context 0: wasm trap: wasm `unreachable` instruction \
                 executed\n    in build_tables\n    in constructors"
            )
        );
    }
}

#[test]
fn a_host_function_at_the_start_is_refused_by_name() {
    let import = r#"(import "env" "proxy_set_tick_period_milliseconds" (func $tick (param i32) (result i32)))"#;
    let wat = format!(
        r#"(module {import} {MARKER} {REST}
           (func $constructors (export "_initialize") (drop (call $tick (i32.const 5)))))"#
    );
    assert_eq!(
        refusal_of(module(&wat)).to_string(),
        "gate.wasm failed while it was started\ntrap in _initialize of context 0, while it called \
         proxy_set_tick_period_milliseconds: proxy_set_tick_period_milliseconds cannot be called during _initialize: the host is \
         not ready before it returns\n    in constructors"
    );
}

#[test]
fn a_start_function_may_log_and_use_wasi() {
    let wat = format!(
        r#"(module {LOG}
           (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
           (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
           {MARKER} {REST}
           (data (i32.const 1024) "ready!\n")
           (data (i32.const 2048) "\00\04\00\00\07\00\00\00")
           (func (export "_initialize")
             (drop (call $log (i32.const 3) (i32.const 1024) (i32.const 5)))
             (if (i32.or (call $write (i32.const 1) (i32.const 2048) (i32.const 1) (i32.const 8))
                   (i32.or (call $time (i32.const 0) (i64.const 1) (i32.const 16)) (call $random (i32.const 32) (i32.const 8))))
               (then (unreachable)))))"#
    );
    let sim = built(module(&wat));
    assert_lines(
        &said(&sim),
        &["ready", "ready!", "ready", "ready!", "ready", "ready!"],
    );
}

/// Source: `WasmBase::startVm` of proxy-wasm-cpp-host.
#[test]
fn main_follows_initialize_and_start_is_only_for_commands() {
    let function = |export: &str, at: u32| {
        format!(
            "(func (export \"{export}\") (drop (call $log (i32.const 2) (i32.const {at}) (i32.const 4))))"
        )
    };
    let data = r#"(data (i32.const 1024) "initmainstrt")"#;
    let cases = [
        (vec![("_initialize", 1024), ("_start", 1032)], vec!["init"]),
        (vec![("_start", 1032)], vec!["strt"]),
    ];
    for (exports, expected) in cases {
        let functions: String = exports
            .into_iter()
            .map(|(export, at)| function(export, at))
            .collect();
        let sim = built(module(&format!(
            "(module {LOG} {MARKER} {REST} {data} {functions})"
        )));
        assert_each_vm_said(&sim, &expected);
    }
    let main = r#"(func (export "main") (param i32 i32) (result i32)
        (drop (call $log (i32.const 2) (i32.const 1028) (i32.const 4))) (i32.const 0))"#;
    let initialize = function("_initialize", 1024);
    let sim = built(module(&format!(
        "(module {LOG} {MARKER} {REST} {data} {initialize} {main})"
    )));
    assert_each_vm_said(&sim, &["init", "main"]);
}

#[test]
fn an_export_of_the_wrong_type_is_shown_with_both_types() {
    let cases = [
        (
            r#"(func (export "proxy_on_tick") (result i32) i32.const 0)"#,
            "gate.wasm: export proxy_on_tick has the type () -> (i32), and the ABI says (i32) -> ()",
        ),
        (
            r#"(func (export "proxy_on_request_headers") (param i32) (result i32) i32.const 0)"#,
            "gate.wasm: export proxy_on_request_headers has the type (i32) -> (i32), and the ABI says (i32, i32, i32) -> (i32)",
        ),
        (
            r#"(func (export "proxy_on_response_headers") (param i32 i32) (result i32) i32.const 0)"#,
            "gate.wasm: export proxy_on_response_headers has the type (i32, i32) -> (i32), and the ABI says (i32, i32, i32) -> \
             (i32)",
        ),
        (
            r#"(func (export "proxy_on_done") (param i32))"#,
            "gate.wasm: export proxy_on_done has the type (i32) -> (), and the ABI says (i32) -> (i32)",
        ),
        (
            r#"(func (export "proxy_on_memory_allocate") (param i64) (result i32) i32.const 0)"#,
            "gate.wasm: export proxy_on_memory_allocate has the type (i64) -> (i32), and the ABI says (i32) -> (i32)",
        ),
    ];
    for (export, expected) in cases {
        let rest = REST.replace("malloc", "free_of_malloc");
        let rest = if export.contains("memory_allocate") {
            rest
        } else {
            REST.to_owned()
        };
        let wat = format!("(module {MARKER} {rest} {export})");
        // Which of the two steps notices is not promised.
        let error = match Module::from_bytes("gate.wasm", wat.as_bytes()) {
            Ok(module) => refusal_of(Plugin::new(module)),
            Err(error) => error,
        };
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, LoadError::WrongType { .. }));
    }
}

/// From 0.2.0 on the headers callbacks have a third parameter; version 0.1.0 has two, and an empty value for a missing key.
#[test]
fn each_version_s_headers_callback_is_called_with_its_own_arity() {
    let cases = [("0_1_0", "", 2), ("0_2_0", "i32", 3), ("0_2_1", "i32", 3)];
    for (marker, third, arity) in cases {
        let wat = format!(
            r#"(module {REST} (func (export "proxy_abi_version_{marker}"))
               (func (export "proxy_on_request_headers") (param i32 i32 {third}) (result i32) i32.const 0)
               (func (export "proxy_on_response_headers") (param i32 i32 {third}) (result i32) i32.const 0))"#
        );
        let sim = built(module(&wat));
        let stream = sim.request(Request::get("/"));
        stream.respond(crate::scene::ok(""));
        let expected = if arity == 2 {
            ["request_headers(2, 4)", "response_headers(2, 1)"]
        } else {
            ["request_headers(2, 4, 1)", "response_headers(2, 1, 1)"]
        };
        assert_lines(&callbacks(&sim), &expected);
    }
}

#[test]
fn version_0_1_0_has_no_word_for_a_missing_header() {
    let wat = format!(
        r#"(module
           (import "env" "proxy_get_header_map_value" (func $get (param i32 i32 i32 i32 i32) (result i32)))
           (import "env" "proxy_get_configuration" (func $configuration (param i32 i32) (result i32)))
           {LOG} {REST} (func (export "proxy_abi_version_0_1_0"))
           (func (export "proxy_on_configure") (param i32 i32) (result i32)
             (if (call $configuration (i32.const 16) (i32.const 20)) (then (unreachable)))
             (drop (call $log (i32.const 2) (i32.load (i32.const 16)) (i32.load (i32.const 20))))
             (i32.const 1))
           (data (i32.const 1024) "x-absent")
           (func (export "proxy_on_request_headers") (param i32 i32) (result i32)
             (if (call $get (i32.const 0) (i32.const 1024) (i32.const 8) (i32.const 16) (i32.const 20)) (then (unreachable)))
             (if (i32.load (i32.const 20)) (then (unreachable)))
             (i32.const 0)))"#
    );
    let sim = built(module(&wat).configuration("rules"));
    assert_lines(&said(&sim), &["rules"; 3]);
    let stream = sim.request(Request::get("/"));
    assert!(stream.reached_upstream(), "{:?}", sim.failure(0));
}

#[test]
fn the_environment_holds_what_the_plugin_says_and_nothing_else() {
    let wat = format!(
        r#"(module
           (import "wasi_unstable" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
           (import "wasi_unstable" "environ_get" (func $environment (param i32 i32) (result i32)))
           {LOG} {MARKER} {REST}
           (func (export "proxy_on_configure") (param i32 i32) (result i32)
             (if (call $sizes (i32.const 16) (i32.const 20)) (then (unreachable)))
             (if (i32.ne (i32.load (i32.const 16)) (i32.const 2)) (then (unreachable)))
             (if (call $environment (i32.const 512) (i32.const 1024)) (then (unreachable)))
             (if (i32.ne (i32.load (i32.const 516)) (i32.const 1030)) (then (unreachable)))
             (drop (call $log (i32.const 2) (i32.const 1024) (i32.load (i32.const 20))))
             (i32.const 1)))"#
    );
    let sim = built(
        module(&wat)
            .environment("PORT", "")
            .environment("NAME", "gate"),
    );
    assert_lines(&said(&sim), &["PORT=\0NAME=gate\0"; 3]);
}

#[test]
fn proc_exit_returns_as_on_envoy() {
    let wat = format!(
        r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) {MARKER} {REST}
           (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
             (call $exit (i32.const 3))
             (i32.const 0)))"#
    );
    let sim = built(module(&wat));
    let stream = sim.request(Request::get("/"));
    assert!(stream.reached_upstream());
    assert_eq!(sim.failure(0), None);
}

#[test]
fn wasi_functions_that_envoy_stops_at_the_start_are_refused_by_name() {
    let restricted = [
        ("fd_close", "i32", "(result i32)"),
        ("fd_read", "i32 i32 i32 i32", "(result i32)"),
        ("fd_seek", "i32 i64 i32 i32", "(result i32)"),
        (
            "path_open",
            "i32 i32 i32 i32 i32 i64 i64 i32 i32",
            "(result i32)",
        ),
        ("proc_exit", "i32", ""),
        ("sched_yield", "", "(result i32)"),
    ];
    for (name, types, result) in restricted {
        let arguments: String = types
            .split_whitespace()
            .map(|ty| format!("({ty}.const 1)"))
            .collect();
        let drop = if result.is_empty() { "" } else { "drop" };
        for start in ["_initialize", "_start"] {
            let wat = format!(
                r#"(module (import "wasi_snapshot_preview1" "{name}" (func $early (param {types}) {result})) {MARKER} {REST}
                   (func $constructors (export "{start}") {arguments} call $early {drop}))"#
            );
            assert_eq!(
                refusal_of(module(&wat)).to_string(),
                format!(
                    "gate.wasm failed while it was started\ntrap in {start} of context 0, while it called {name}: {name} cannot be \
                     called during {start}: the host is not ready before it returns\n    in constructors"
                )
            );
        }
    }
}

#[test]
fn what_a_plugin_may_not_do_is_not_called_and_answers_internal_failure() {
    let read = ask_bytes(
        "get",
        "get_header_map_value",
        &format!("(i32.const 0) {}", text(":path")),
    );
    let guest = Guest::new()
        .on("request_headers", [read, get(0, ":path")])
        .on("response_headers", [say("called"), trap()]);
    let allowed = ["proxy_log", "proxy_on_request_headers"];
    let sim = built(Plugin::new(guest.module()).allowed_capabilities(allowed));
    let stream = sim.request(Request::get("/"));
    stream.respond(crate::scene::ok("up"));
    assert_eq!(stream.response().text(), "up");
    assert_lines(&said(&sim), &["get = 10", "get :path = 10"]);
}

/// Envoy logs an error for each such call; without it, a forgotten capability is hard to find.
#[test]
fn a_call_that_the_plugin_may_not_make_is_named_in_the_log() {
    let guest = Guest::new().on("request_headers", [get(0, ":path")]);
    let allowed = ["proxy_log", "proxy_on_request_headers"];
    let sim = built(Plugin::new(guest.module()).allowed_capabilities(allowed));
    sim.request(Request::get("/"));
    let log = sim.log();
    let host = log
        .iter()
        .find(|line| !line.from_guest)
        .expect("the host says so");
    assert_eq!(host.level, host_sim::LogLevel::Error);
    assert_eq!(
        host.message,
        "Attempted call to restricted proxy-wasm capability: proxy_get_header_map_value"
    );
}
