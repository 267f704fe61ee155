//! What the built module asks of its host. A longer list means a new power: a clock, randomness, files.

use std::collections::BTreeSet;

use wasmparser::{Parser, Payload, TypeRef};

/// What std needs of WASI: to read a variable, to write a panic and to end; and the clock that nobody sets, for holds. `random_get`
/// would mean a hash map of std, `fd_read` or `path_open` files.
const WASI: [&str; 5] = [
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
];

/// What the SDK's traits pull in by their default methods, whether the filter calls them or not (proxy-wasm 0.2.5).
const PROXY: [&str; 36] = [
    "proxy_add_header_map_value",
    "proxy_call_foreign_function",
    "proxy_close_stream",
    "proxy_continue_stream",
    "proxy_define_metric",
    "proxy_dequeue_shared_queue",
    "proxy_done",
    "proxy_enqueue_shared_queue",
    "proxy_get_buffer_bytes",
    "proxy_get_current_time_nanoseconds",
    "proxy_get_header_map_pairs",
    "proxy_get_header_map_value",
    "proxy_get_log_level",
    "proxy_get_property",
    "proxy_get_shared_data",
    "proxy_get_status",
    "proxy_grpc_call",
    "proxy_grpc_cancel",
    "proxy_grpc_close",
    "proxy_grpc_send",
    "proxy_grpc_stream",
    "proxy_http_call",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_record_metric",
    "proxy_register_shared_queue",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_resolve_shared_queue",
    "proxy_send_local_response",
    "proxy_set_buffer_bytes",
    "proxy_set_effective_context",
    "proxy_set_header_map_pairs",
    "proxy_set_property",
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
];

#[test]
fn the_module_imports_only_what_is_on_the_list() {
    let module = std::fs::read(hoop_tests::binaries::filter_module()).expect("the built module");
    let mut extra = BTreeSet::new();
    for payload in Parser::new(0).parse_all(&module) {
        let Payload::ImportSection(imports) = payload.expect("a valid module") else {
            continue;
        };
        for import in imports.into_imports() {
            let import = import.expect("a valid import");
            let allowed = match import.module {
                "env" => PROXY.contains(&import.name),
                "wasi_snapshot_preview1" => WASI.contains(&import.name),
                _ => false,
            };
            let function = matches!(import.ty, TypeRef::Func(_));
            if !allowed || !function {
                extra.insert(format!("{}.{}", import.module, import.name));
            }
        }
    }
    assert!(extra.is_empty(), "imports beyond the list: {extra:?}");
}
