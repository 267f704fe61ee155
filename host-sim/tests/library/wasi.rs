//! The part of WASI that there is: output becomes log lines, clocks and randomness come from the host, there are no files.
//! Measured on Envoy 1.40.

use host_sim::{LogLevel, Module, Plugin};

use crate::scene::built;

/// A module that makes these calls in `proxy_on_configure` and logs each error number in two digits.
fn answers(calls: &[(&str, &str, &str)]) -> Vec<String> {
    let mut imports = String::new();
    let mut steps = String::new();
    for (index, (name, types, arguments)) in calls.iter().enumerate() {
        imports.push_str(&format!(
            "(import \"wasi_snapshot_preview1\" \"{name}\" (func $f{index} (param {types}) (result i32)))\n"
        ));
        steps.push_str(&format!("(call $tell (call $f{index} {arguments}))\n"));
    }
    let wat = format!(
        r#"(module {imports}
           (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
           (memory (export "memory") 2)
           (data (i32.const 64) "one two")
           ;; Two vectors: "one" and " two", and one outside of the memory.
           (data (i32.const 128) "\40\00\00\00\03\00\00\00\43\00\00\00\04\00\00\00")
           (data (i32.const 192) "\ff\ff\ff\7f\04\00\00\00")
           (func (export "malloc") (param i32) (result i32) i32.const 1024)
           (func (export "proxy_abi_version_0_2_1"))
           (func $tell (param $errno i32)
             (i32.store8 (i32.const 32) (i32.add (i32.const 48) (i32.div_u (local.get $errno) (i32.const 10))))
             (i32.store8 (i32.const 33) (i32.add (i32.const 48) (i32.rem_u (local.get $errno) (i32.const 10))))
             (drop (call $log (i32.const 0) (i32.const 32) (i32.const 2))))
           (func (export "proxy_on_configure") (param i32 i32) (result i32)
             {steps}
             (i32.const 1)))"#
    );
    let module =
        Module::from_bytes("wasi", wat.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    let log = built(Plugin::new(module)).log();
    // The canary's lines are enough.
    let lines = log.into_iter().map(|line| match line.level {
        LogLevel::Trace => line.message,
        LogLevel::Debug
        | LogLevel::Info
        | LogLevel::Warn
        | LogLevel::Error
        | LogLevel::Critical => {
            format!("{}: {}", line.level.name(), line.message)
        }
    });
    let mut lines: Vec<String> = lines.collect();
    lines.truncate(lines.len() / 3);
    lines
}

#[track_caller]
fn assert_answers(calls: &[(&str, &str, &str, &[&str])]) {
    for (name, types, arguments, expected) in calls {
        assert_eq!(
            answers(&[(name, types, arguments)]),
            *expected,
            "{name} {arguments}"
        );
    }
}

const OUT: &str = "(i32.const 512)";

#[test]
fn output_becomes_log_lines_and_other_descriptors_are_bad() {
    let write = |descriptor: u32, vectors: u32, count: u32| {
        format!("(i32.const {descriptor}) (i32.const {vectors}) (i32.const {count}) {OUT}")
    };
    let types = "i32 i32 i32 i32";
    assert_answers(&[
        (
            "fd_write",
            types,
            &write(1, 128, 2),
            &["info: one two", "00"],
        ),
        (
            "fd_write",
            types,
            &write(2, 128, 2),
            &["error: one two", "00"],
        ),
        ("fd_write", types, &write(2, 128, 1), &["error: one", "00"]),
        ("fd_write", types, &write(3, 128, 2), &["08"]),
        ("fd_write", types, &write(0, 128, 2), &["08"]),
        ("fd_write", types, &write(1, 192, 1), &["21"]),
        ("fd_write", types, &write(1, 0x7fff_ffff, 1), &["21"]),
    ]);
}

#[test]
fn clocks_are_the_wall_s_and_the_monotonic_one() {
    let types = "i32 i64 i32";
    assert_answers(&[
        (
            "clock_time_get",
            types,
            &format!("(i32.const 0) (i64.const 1) {OUT}"),
            &["00"],
        ),
        (
            "clock_time_get",
            types,
            &format!("(i32.const 1) (i64.const 1) {OUT}"),
            &["00"],
        ),
        (
            "clock_time_get",
            types,
            &format!("(i32.const 2) (i64.const 1) {OUT}"),
            &["58"],
        ),
        (
            "clock_time_get",
            types,
            &format!("(i32.const 9) (i64.const 1) {OUT}"),
            &["58"],
        ),
        (
            "clock_time_get",
            types,
            "(i32.const 0) (i64.const 1) (i32.const 0x7fffffff)",
            &["21"],
        ),
        (
            "clock_res_get",
            "i32 i32",
            &format!("(i32.const 0) {OUT}"),
            &["00"],
        ),
    ]);
}

#[test]
fn randomness_comes_in_at_most_64_kib() {
    let types = "i32 i32";
    assert_answers(&[
        (
            "random_get",
            types,
            &format!("{OUT} (i32.const 16)"),
            &["00"],
        ),
        (
            "random_get",
            types,
            &format!("{OUT} (i32.const 0)"),
            &["00"],
        ),
        (
            "random_get",
            types,
            &format!("{OUT} (i32.const 65536)"),
            &["00"],
        ),
        (
            "random_get",
            types,
            &format!("{OUT} (i32.const 65537)"),
            &["28"],
        ),
        (
            "random_get",
            types,
            "(i32.const 0x7fffffff) (i32.const 16)",
            &["21"],
        ),
    ]);
}

#[test]
fn there_are_no_arguments_and_no_files() {
    let path = "(i32.const 3) (i32.const 0) (i32.const 64) (i32.const 3) (i32.const 0) (i64.const 0) (i64.const 0) (i32.const 0)";
    assert_answers(&[
        (
            "args_sizes_get",
            "i32 i32",
            &format!("{OUT} (i32.const 516)"),
            &["00"],
        ),
        (
            "args_get",
            "i32 i32",
            &format!("{OUT} (i32.const 516)"),
            &["00"],
        ),
        (
            "fd_read",
            "i32 i32 i32 i32",
            &format!("(i32.const 0) (i32.const 128) (i32.const 1) {OUT}"),
            &["52"],
        ),
        ("fd_close", "i32", "(i32.const 1)", &["00"]),
        (
            "fd_seek",
            "i32 i64 i32 i32",
            &format!("(i32.const 1) (i64.const 0) (i32.const 0) {OUT}"),
            &["00"],
        ),
        (
            "fd_fdstat_get",
            "i32 i32",
            &format!("(i32.const 1) {OUT}"),
            &["00"],
        ),
        (
            "fd_fdstat_get",
            "i32 i32",
            &format!("(i32.const 0) {OUT}"),
            &["08"],
        ),
        (
            "fd_fdstat_get",
            "i32 i32",
            &format!("(i32.const 3) {OUT}"),
            &["08"],
        ),
        (
            "fd_fdstat_set_flags",
            "i32 i32",
            "(i32.const 1) (i32.const 0)",
            &["52"],
        ),
        (
            "fd_prestat_get",
            "i32 i32",
            &format!("(i32.const 3) {OUT}"),
            &["08"],
        ),
        (
            "fd_prestat_dir_name",
            "i32 i32 i32",
            &format!("(i32.const 3) {OUT} (i32.const 9)"),
            &["52"],
        ),
        (
            "path_open",
            "i32 i32 i32 i32 i32 i64 i64 i32 i32",
            &format!("{path} {OUT}"),
            &["44"],
        ),
        (
            "path_filestat_get",
            "i32 i32 i32 i32 i32",
            &format!("(i32.const 3) (i32.const 0) (i32.const 64) (i32.const 3) {OUT}"),
            &["58"],
        ),
        (
            "poll_oneoff",
            "i32 i32 i32 i32",
            &format!("{OUT} {OUT} (i32.const 1) (i32.const 600)"),
            &["00"],
        ),
        ("sched_yield", "", "", &["00"]),
    ]);
}
