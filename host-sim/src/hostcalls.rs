//! The functions that guests import: one table of names and types per ABI version, and a file for each family.

mod buffers;
mod callouts;
mod foreign;
mod grpc;
mod headers;
mod metrics;
mod properties;
mod shared;
mod streams;
mod system;

use wasmtime::{Caller, Engine, Func, Linker, Store};

use crate::abi::{AbiVersion, LogLevel, Status};
use crate::clock::Clock;
use crate::host::{Host, LogLine};
use crate::module::type_text;
use crate::trace::Entry;
use crate::vm::guest::{Answer, Failure, Guest};
use crate::vm::{VmState, wasi};

/// A linker with every function that a module of `abi` may import.
///
/// # Panics
///
/// Never: no name stands twice in the table.
pub(crate) fn linker(engine: &Engine, abi: AbiVersion) -> Linker<VmState> {
    let mut linker = Linker::new(engine);
    let linked = link_common(&mut linker)
        .and_then(|()| match abi {
            AbiVersion::V0_1_0 => link_only_0_1_0(&mut linker),
            AbiVersion::V0_2_0 => link_since_0_2_0(&mut linker),
            AbiVersion::V0_2_1 => {
                link_since_0_2_0(&mut linker).and_then(|()| link_since_0_2_1(&mut linker))
            }
        })
        .and_then(|()| wasi::link(&mut linker));
    debug_assert!(
        linked.is_ok(),
        "a name stands twice in the table: {linked:?}"
    );
    linker
}

/// Every function of `linker`, named `module.name`, with its type as text.
pub(crate) fn signatures(engine: &Engine, linker: &Linker<VmState>) -> Vec<(String, String)> {
    let host = Host::deterministic(Clock::virtual_clock(), |_| {});
    let mut store = Store::new(engine, VmState::new(&host, Vec::new(), 0));
    let functions: Vec<_> = linker
        .iter(&mut store)
        .filter_map(|(module, name, item)| Some((format!("{module}.{name}"), item.into_func()?)))
        .collect();
    let text = |(name, function): (String, Func)| (name, type_text(&function.ty(&store).into()));
    functions.into_iter().map(text).collect()
}

macro_rules! hostcalls {
    ($link:ident; $($name:literal ($($argument:ident: $ty:ty),*) => $body:path;)*) => {
        fn $link(linker: &mut Linker<VmState>) -> wasmtime::Result<()> {
            $(linker.func_wrap("env", $name, |mut caller: Caller<'_, VmState>, $($argument: $ty),*| {
                let numbers: &[i64] = &[$(i64::from_argument($argument)),*];
                around(&mut caller, $name, numbers, |guest| $body(guest, $($argument),*))
            })?;)*
            Ok(())
        }
    };
}

/// Arguments as the trace shows them.
trait FromArgument<T> {
    fn from_argument(argument: T) -> Self;
}

impl FromArgument<u32> for i64 {
    fn from_argument(argument: u32) -> i64 {
        argument.into()
    }
}

impl FromArgument<i32> for i64 {
    fn from_argument(argument: i32) -> i64 {
        argument.into()
    }
}

impl FromArgument<i64> for i64 {
    fn from_argument(argument: i64) -> i64 {
        argument
    }
}

impl FromArgument<u64> for i64 {
    fn from_argument(argument: u64) -> i64 {
        argument.cast_signed()
    }
}

/// What each host function shares: it is counted, traced, allowed, and its outcome becomes a number or a trap.
fn around(
    caller: &mut Caller<'_, VmState>,
    name: &'static str,
    numbers: &[i64],
    body: impl FnOnce(&mut Guest<'_, '_>) -> Answer,
) -> wasmtime::Result<u32> {
    let mut guest = Guest::new(caller);
    let state = guest.state_mut();
    state.trace.counted(state.callback, name);
    let log_only = state.starting && name != "proxy_log";
    let answer = if log_only {
        Err(Failure::too_early(name, state.callback))
    } else if state.plugin().is_some_and(|plugin| !plugin.allows(name)) {
        state.host.0.log(&LogLine {
            level: LogLevel::Error,
            from_guest: false,
            prefix: String::new(),
            message: format!("Attempted call to restricted proxy-wasm capability: {name}"),
        });
        Err(Failure::Status(Status::InternalFailure))
    } else {
        body(&mut guest)
    };
    let shown = guest.shown.take();
    let state = guest.state_mut();
    let status = match &answer {
        Ok(()) => Status::Ok,
        Err(Failure::Status(status)) => *status,
        Err(Failure::Stop(reason)) => {
            state.misused = Some(name);
            return Err(wasmtime::Error::msg(reason.clone()));
        }
    };
    if state.trace.is_recording() {
        let arguments = shown.unwrap_or_else(|| {
            let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
            numbers.join(", ")
        });
        let answer = status.name().to_owned();
        state.trace.push(Entry::Hostcall {
            name,
            arguments,
            answer,
        });
    }
    Ok(status as u32)
}

hostcalls! { link_common;
    "proxy_log" (level: u32, text: u32, text_size: u32) => system::log;
    "proxy_get_status" (code_out: u32, text_out: u32, text_size_out: u32) => system::status;
    "proxy_get_current_time_nanoseconds" (time_out: u32) => system::current_time;
    "proxy_set_tick_period_milliseconds" (period: u32) => system::set_tick_period;
    "proxy_set_effective_context" (context: u32) => system::set_effective_context;
    "proxy_done" () => system::done;
    "proxy_get_property" (path: u32, path_size: u32, value_out: u32, size_out: u32) => properties::get;
    "proxy_set_property" (path: u32, path_size: u32, value: u32, value_size: u32) => properties::set;
    "proxy_get_header_map_value" (map: u32, key: u32, key_size: u32, value_out: u32, size_out: u32) => headers::value;
    "proxy_add_header_map_value" (map: u32, key: u32, key_size: u32, value: u32, value_size: u32) => headers::add;
    "proxy_replace_header_map_value" (map: u32, key: u32, key_size: u32, value: u32, value_size: u32) => headers::replace;
    "proxy_remove_header_map_value" (map: u32, key: u32, key_size: u32) => headers::remove;
    "proxy_get_header_map_pairs" (map: u32, pairs_out: u32, size_out: u32) => headers::pairs;
    "proxy_set_header_map_pairs" (map: u32, pairs: u32, pairs_size: u32) => headers::set_pairs;
    "proxy_get_header_map_size" (map: u32, size_out: u32) => headers::size;
    "proxy_get_buffer_status" (buffer: u32, length_out: u32, flags_out: u32) => buffers::status;
    "proxy_get_buffer_bytes" (buffer: u32, start: u32, length: u32, bytes_out: u32, size_out: u32) => buffers::bytes;
    "proxy_set_buffer_bytes" (buffer: u32, start: u32, length: u32, bytes: u32, size: u32) => buffers::set;
    "proxy_send_local_response" (
        status: u32, details: u32, details_size: u32, body: u32, body_size: u32, headers: u32, headers_size: u32, grpc_status: i32
    ) => streams::send_local_response;
    "proxy_http_call" (
        cluster: u32, cluster_size: u32, headers: u32, headers_size: u32, body: u32, body_size: u32, trailers: u32,
        trailers_size: u32, timeout: u32, token_out: u32
    ) => callouts::http_call;
    "proxy_grpc_call" (
        service: u32, service_size: u32, name: u32, name_size: u32, method: u32, method_size: u32, metadata: u32,
        metadata_size: u32, message: u32, message_size: u32, timeout: u32, token_out: u32
    ) => grpc::call;
    "proxy_grpc_stream" (
        service: u32, service_size: u32, name: u32, name_size: u32, method: u32, method_size: u32, metadata: u32,
        metadata_size: u32, token_out: u32
    ) => grpc::stream;
    "proxy_grpc_send" (token: u32, message: u32, message_size: u32, end: u32) => grpc::send;
    "proxy_grpc_close" (token: u32) => grpc::close;
    "proxy_grpc_cancel" (token: u32) => grpc::cancel;
    "proxy_get_shared_data" (key: u32, key_size: u32, value_out: u32, size_out: u32, cas_out: u32) => shared::get_data;
    "proxy_set_shared_data" (key: u32, key_size: u32, value: u32, value_size: u32, cas: u32) => shared::set_data;
    "proxy_register_shared_queue" (name: u32, name_size: u32, id_out: u32) => shared::register_queue;
    "proxy_resolve_shared_queue" (vm: u32, vm_size: u32, name: u32, name_size: u32, id_out: u32) => shared::resolve_queue;
    "proxy_enqueue_shared_queue" (queue: u32, message: u32, size: u32) => shared::enqueue;
    "proxy_dequeue_shared_queue" (queue: u32, message_out: u32, size_out: u32) => shared::dequeue;
    "proxy_define_metric" (kind: u32, name: u32, name_size: u32, id_out: u32) => metrics::define;
    "proxy_increment_metric" (metric: u32, offset: i64) => metrics::increment;
    "proxy_record_metric" (metric: u32, value: u64) => metrics::record;
    "proxy_get_metric" (metric: u32, value_out: u32) => metrics::get;
    "proxy_call_foreign_function" (
        name: u32, name_size: u32, arguments: u32, arguments_size: u32, results_out: u32, size_out: u32
    ) => foreign::call;
}

hostcalls! { link_only_0_1_0;
    "proxy_get_configuration" (bytes_out: u32, size_out: u32) => buffers::configuration;
    "proxy_continue_request" () => streams::continue_request;
    "proxy_continue_response" () => streams::continue_response;
    "proxy_clear_route_cache" () => streams::clear_route_cache;
}

hostcalls! { link_since_0_2_0;
    "proxy_continue_stream" (stream: u32) => streams::continue_stream;
    "proxy_close_stream" (stream: u32) => streams::close_stream;
}

hostcalls! { link_since_0_2_1;
    "proxy_get_log_level" (level_out: u32) => system::log_level;
}
