//! Does what its plugin configuration and the header `x-do` say, in every callback, and logs what the host answered.
//!
//! See `guests::script` for the language and `guests::operation` for the operations.

use guests::abi;
use guests::guest::{answer, callback, report_panics};

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// Says which ABI this guest speaks.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_abi_version_0_2_1() {}

/// Runs before all else.
#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    // SAFETY: the host calls this once.
    unsafe { __wasm_call_ctors() };
    report_panics();
    abi::log("| initialize");
}

/// Memory for what the host hands over.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    abi::allocate(size)
}

/// Exports that only log and follow the script.
macro_rules! callbacks {
    ($($export:ident $name:literal ($($argument:ident),*) $default:literal)*) => {$(
        #[doc = concat!("Callback `", $name, "`.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $export(context: u32 $(, $argument: u32)*) -> u32 {
            let arguments: &[(&str, u32)] = &[$((stringify!($argument), $argument)),*];
            callback(context, $name, &list(arguments), $default)
        }
    )*};
}

/// The same for callbacks without a result.
macro_rules! notices {
    ($($export:ident $name:literal ($($argument:ident),*))*) => {$(
        #[doc = concat!("Callback `", $name, "`.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $export(context: u32 $(, $argument: u32)*) {
            let arguments: &[(&str, u32)] = &[$((stringify!($argument), $argument)),*];
            callback(context, $name, &list(arguments), 0);
        }
    )*};
}

/// The same for answers to callouts.
macro_rules! answers {
    ($($export:ident $name:literal ($($argument:ident),*))*) => {$(
        #[doc = concat!("Callback `", $name, "`.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $export(context: u32, token: u32 $(, $argument: u32)*) {
            let arguments: &[(&str, u32)] = &[("token", token) $(, (stringify!($argument), $argument))*];
            answer(context, token, $name, &list(arguments));
        }
    )*};
}

callbacks! {
    proxy_on_vm_start "vm_start" (size) 1
    proxy_on_configure "configure" (size) 1
    proxy_on_request_headers "request_headers" (count, end) 0
    proxy_on_request_body "request_body" (size, end) 0
    proxy_on_request_trailers "request_trailers" (count) 0
    proxy_on_request_metadata "request_metadata" (count) 0
    proxy_on_response_headers "response_headers" (count, end) 0
    proxy_on_response_body "response_body" (size, end) 0
    proxy_on_response_trailers "response_trailers" (count) 0
    proxy_on_response_metadata "response_metadata" (count) 0
    proxy_on_done "done" () 1
}

notices! {
    proxy_on_context_create "context_create" (parent)
    proxy_on_tick "tick" ()
    proxy_on_queue_ready "queue_ready" (queue)
    proxy_on_foreign_function "foreign_function" (id, size)
    proxy_on_log "log" ()
    proxy_on_delete "delete" ()
}

answers! {
    proxy_on_http_call_response "http_call_response" (headers, body, trailers)
    proxy_on_grpc_receive_initial_metadata "grpc_initial_metadata" (headers)
    proxy_on_grpc_receive "grpc_receive" (size)
    proxy_on_grpc_receive_trailing_metadata "grpc_trailing_metadata" (trailers)
    proxy_on_grpc_close "grpc_close" (code)
}

fn list(arguments: &[(&str, u32)]) -> String {
    let arguments = arguments
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    arguments.collect::<Vec<_>>().join(" ")
}
