//! A module that does not fit is refused when it is loaded, in words that say what is wrong and where.

use std::path::Path;

use host_sim::{AbiVersion, LoadError, Module};

use crate::guest::Guest;

const MEMORY: &str = r#"(memory (export "memory") 1)"#;
const ALLOCATOR: &str = r#"(func (export "malloc") (param i32) (result i32) i32.const 64)"#;
const MARKER: &str = r#"(func (export "proxy_abi_version_0_2_1"))"#;

fn refused(wat: &str) -> LoadError {
    Module::from_bytes("gate.wasm", wat.as_bytes()).expect_err("it does not fit")
}

#[track_caller]
fn assert_refused(wat: &str, expected: &str) {
    assert_eq!(refused(wat).to_string(), expected);
}

#[test]
fn a_module_without_a_marker_is_no_proxy_wasm_module() {
    let expected = "gate.wasm exports none of proxy_abi_version_0_1_0, proxy_abi_version_0_2_0 and proxy_abi_version_0_2_1, so it \
                    is no proxy-wasm module\nhint: in Rust, the crate must be a `cdylib` whose `proxy_wasm::main!` block is linked in";
    assert_refused(&format!("(module {MEMORY} {ALLOCATOR})"), expected);
    assert!(matches!(
        refused("(module)"),
        LoadError::AbiVersionMissing { module } if module == "gate.wasm"
    ));
}

#[test]
fn a_module_has_to_export_its_memory() {
    let expected = "gate.wasm does not export memory, where the host reads and writes";
    assert_refused(&format!("(module {MARKER} {ALLOCATOR})"), expected);
    let not_memory = r#"(func (export "memory"))"#;
    assert_refused(
        &format!("(module {MARKER} {ALLOCATOR} {not_memory})"),
        expected,
    );
}

#[test]
fn a_module_has_to_export_an_allocator() {
    assert_refused(
        &format!("(module {MARKER} {MEMORY})"),
        "gate.wasm does not export proxy_on_memory_allocate or malloc, with which the host makes room for what it hands over",
    );
}

#[test]
fn either_allocator_will_do() {
    for name in ["malloc", "proxy_on_memory_allocate"] {
        let module = Guest::new().allocator(name).module();
        assert_eq!(module.name(), "guest");
    }
}

#[test]
fn an_unknown_import_is_named_with_a_hint() {
    let cases = [
        (
            r#"(import "env" "proxy_rewind" (func))"#,
            "gate.wasm imports env.proxy_rewind, which hosts of ABI 0.2.1 do not have\nhint: build the module for the ABI version \
             whose marker it exports, or drop what imports it",
        ),
        (
            r#"(import "wasi_snapshot_preview1" "sock_accept" (func))"#,
            "gate.wasm imports wasi_snapshot_preview1.sock_accept, which hosts of ABI 0.2.1 do not have\nhint: no proxy-wasm host \
             gives a filter files, sockets or threads, so find what needs wasi_snapshot_preview1.sock_accept and leave it out",
        ),
        (
            r#"(import "host" "proxy_log" (func))"#,
            "gate.wasm imports host.proxy_log, which hosts of ABI 0.2.1 do not have\nhint: it is called env.proxy_log here",
        ),
        (
            r#"(import "__wbindgen_placeholder__" "__wbindgen_throw" (func))"#,
            "gate.wasm imports __wbindgen_placeholder__.__wbindgen_throw, which hosts of ABI 0.2.1 do not have\nhint: a dependency \
             was built for the browser (wasm-bindgen); turn that feature off for this target",
        ),
    ];
    for (import, expected) in cases {
        assert_refused(
            &format!("(module {import} {MARKER} {MEMORY} {ALLOCATOR})"),
            expected,
        );
    }
}

#[test]
fn an_import_of_the_wrong_type_is_shown_with_both_types() {
    let import = r#"(import "env" "proxy_log" (func (param i32) (result i64)))"#;
    assert_refused(
        &format!("(module {import} {MARKER} {MEMORY} {ALLOCATOR})"),
        "gate.wasm: import env.proxy_log has the type (i32) -> (i64), and the ABI says (i32, i32, i32) -> (i32)",
    );
    let global = r#"(import "env" "proxy_log" (global i32))"#;
    assert_refused(
        &format!("(module {global} {MARKER} {MEMORY} {ALLOCATOR})"),
        "gate.wasm: import env.proxy_log has the type no function, and the ABI says (i32, i32, i32) -> (i32)",
    );
}

#[test]
fn bytes_that_are_no_module_are_refused() {
    let error = Module::from_bytes("gate.wasm", b"\0asm\x01\0\0\0\x01").expect_err("cut short");
    let text = error.to_string();
    assert!(
        text.starts_with("gate.wasm is no valid WebAssembly module: "),
        "{text}"
    );
    assert!(matches!(error, LoadError::Invalid { .. }));
    let not_typed = format!("(module {MARKER} {MEMORY} (func (result i32)))");
    assert!(matches!(refused(&not_typed), LoadError::Invalid { .. }));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_system_s_reason_is_the_source() {
    let path = Path::new("/nonexistent/gate.wasm");
    let error = Module::from_file(path).expect_err("there is no such file");
    assert_eq!(
        error.to_string(),
        "cannot read the module /nonexistent/gate.wasm"
    );
    let LoadError::Unreadable {
        path: named,
        source,
    } = error
    else {
        panic!("another error: {error}");
    };
    assert_eq!(named, path);
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_file_is_loaded_as_binary_or_text_and_named_by_its_path() {
    let directory = std::env::temp_dir().join(format!("host-sim-loading-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory of our own");
    let path = directory.join("gate.wat");
    std::fs::write(&path, Guest::new().wat()).expect("a file of our own");
    let module = Module::from_file(&path);
    std::fs::remove_dir_all(&directory).expect("our own directory");
    assert_eq!(module.expect("it fits").name(), path.display().to_string());
}

#[test]
fn the_version_is_told_by_the_marker_and_the_newest_one_counts() {
    let cases = [
        (&["0_1_0"][..], AbiVersion::V0_1_0),
        (&["0_2_0"], AbiVersion::V0_2_0),
        (&["0_2_1"], AbiVersion::V0_2_1),
        (&["0_1_0", "0_2_1", "0_2_0"], AbiVersion::V0_2_1),
    ];
    for (markers, expected) in cases {
        let markers: String = markers
            .iter()
            .map(|marker| format!("(func (export \"proxy_abi_version_{marker}\"))"))
            .collect();
        let wat = format!("(module {markers} {MEMORY} {ALLOCATOR})");
        let module = Module::from_bytes("any", wat.as_bytes()).expect("it fits");
        assert_eq!(module.abi(), expected, "{markers}");
    }
}

/// What a module of each version may import that the others may not.
#[test]
fn each_version_has_its_own_imports() {
    let imports = [
        ("proxy_get_configuration", "(param i32 i32)", &["0.1.0"][..]),
        ("proxy_continue_request", "", &["0.1.0"]),
        ("proxy_continue_response", "", &["0.1.0"]),
        ("proxy_clear_route_cache", "", &["0.1.0"]),
        ("proxy_continue_stream", "(param i32)", &["0.2.0", "0.2.1"]),
        ("proxy_close_stream", "(param i32)", &["0.2.0", "0.2.1"]),
        ("proxy_get_log_level", "(param i32)", &["0.2.1"]),
        (
            "proxy_call_foreign_function",
            "(param i32 i32 i32 i32 i32 i32)",
            &["0.1.0", "0.2.0", "0.2.1"],
        ),
    ];
    for (name, parameters, versions) in imports {
        for version in ["0.1.0", "0.2.0", "0.2.1"] {
            let marker = version.replace('.', "_");
            let wat = format!(
                r#"(module (import "env" "{name}" (func {parameters} (result i32))) {MEMORY} {ALLOCATOR}
                   (func (export "proxy_abi_version_{marker}")))"#
            );
            let loaded = Module::from_bytes("gate.wasm", wat.as_bytes());
            if versions.contains(&version) {
                assert!(loaded.is_ok(), "{name} in {version}: {loaded:?}");
                continue;
            }
            let text = loaded.expect_err("not of this version").to_string();
            let expected =
                format!("gate.wasm imports env.{name}, which hosts of ABI {version} do not have\n");
            assert!(text.starts_with(&expected), "{text}");
        }
    }
}

#[test]
fn both_names_of_wasi_are_there_with_what_the_compilers_import() {
    let functions = [
        ("args_get", "i32 i32"),
        ("args_sizes_get", "i32 i32"),
        ("clock_time_get", "i32 i64 i32"),
        ("environ_get", "i32 i32"),
        ("environ_sizes_get", "i32 i32"),
        ("fd_close", "i32"),
        ("fd_fdstat_get", "i32 i32"),
        ("fd_prestat_dir_name", "i32 i32 i32"),
        ("fd_prestat_get", "i32 i32"),
        ("fd_read", "i32 i32 i32 i32"),
        ("fd_seek", "i32 i64 i32 i32"),
        ("fd_write", "i32 i32 i32 i32"),
        ("path_filestat_get", "i32 i32 i32 i32 i32"),
        ("path_open", "i32 i32 i32 i32 i32 i64 i64 i32 i32"),
        ("poll_oneoff", "i32 i32 i32 i32"),
        ("random_get", "i32 i32"),
        ("sched_yield", ""),
    ];
    for module in ["wasi_snapshot_preview1", "wasi_unstable"] {
        let imports: String = functions
            .iter()
            .map(|(name, types)| {
                format!("(import \"{module}\" \"{name}\" (func (param {types}) (result i32)))")
            })
            .collect();
        let exit = format!("(import \"{module}\" \"proc_exit\" (func (param i32)))");
        let wat = format!("(module {imports} {exit} {MARKER} {MEMORY} {ALLOCATOR})");
        let loaded = Module::from_bytes("any", wat.as_bytes());
        assert!(loaded.is_ok(), "{loaded:?}");
    }
}
