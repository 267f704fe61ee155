//! The proxy-wasm imports as they are, without the SDK: each wrapper hands back the host's status and data, whatever they are.
//!
//! Every function here is one call with pointers to our own live memory, which is what makes it sound. The SDK panics on a
//! status that it does not expect and hides some functions. A guest that asks a host questions needs the bare answer, so
//! nothing here judges one.

mod outside;

use std::ptr;

pub use outside::outside_calls;

/// Imports of module `env`.
mod import {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        pub fn proxy_log(level: u32, text: *const u8, size: usize) -> u32;
        pub fn proxy_get_log_level(level: *mut u32) -> u32;
        pub fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
        pub fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
        pub fn proxy_get_buffer_bytes(
            buffer: u32,
            start: usize,
            max: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub fn proxy_get_buffer_status(buffer: u32, size: *mut usize, flags: *mut u32) -> u32;
        pub fn proxy_set_buffer_bytes(
            buffer: u32,
            start: usize,
            length: usize,
            data: *const u8,
            size: usize,
        ) -> u32;
        pub fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, size: *mut usize) -> u32;
        pub fn proxy_set_header_map_pairs(map: u32, data: *const u8, size: usize) -> u32;
        pub fn proxy_get_header_map_size(map: u32, size: *mut usize) -> u32;
        pub fn proxy_get_header_map_value(
            map: u32,
            key: *const u8,
            key_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub fn proxy_add_header_map_value(
            map: u32,
            key: *const u8,
            key_size: usize,
            value: *const u8,
            size: usize,
        ) -> u32;
        pub fn proxy_replace_header_map_value(
            map: u32,
            key: *const u8,
            key_size: usize,
            value: *const u8,
            size: usize,
        ) -> u32;
        pub fn proxy_remove_header_map_value(map: u32, key: *const u8, key_size: usize) -> u32;
        pub fn proxy_get_property(
            path: *const u8,
            path_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub fn proxy_set_property(
            path: *const u8,
            path_size: usize,
            value: *const u8,
            size: usize,
        ) -> u32;
        pub fn proxy_get_shared_data(
            key: *const u8,
            key_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
            cas: *mut u32,
        ) -> u32;
        pub fn proxy_set_shared_data(
            key: *const u8,
            key_size: usize,
            value: *const u8,
            size: usize,
            cas: u32,
        ) -> u32;
        pub fn proxy_register_shared_queue(name: *const u8, size: usize, id: *mut u32) -> u32;
        pub fn proxy_resolve_shared_queue(
            vm: *const u8,
            vm_size: usize,
            name: *const u8,
            size: usize,
            id: *mut u32,
        ) -> u32;
        pub fn proxy_dequeue_shared_queue(id: u32, data: *mut *mut u8, size: *mut usize) -> u32;
        pub fn proxy_enqueue_shared_queue(id: u32, value: *const u8, size: usize) -> u32;
        pub fn proxy_continue_stream(stream: u32) -> u32;
        pub fn proxy_close_stream(stream: u32) -> u32;
        pub fn proxy_send_local_response(
            status: u32,
            details: *const u8,
            details_size: usize,
            body: *const u8,
            body_size: usize,
            headers: *const u8,
            headers_size: usize,
            grpc_status: i32,
        ) -> u32;
        pub fn proxy_http_call(
            upstream: *const u8,
            upstream_size: usize,
            headers: *const u8,
            headers_size: usize,
            body: *const u8,
            body_size: usize,
            trailers: *const u8,
            trailers_size: usize,
            timeout: u32,
            token: *mut u32,
        ) -> u32;
        pub fn proxy_grpc_call(
            upstream: *const u8,
            upstream_size: usize,
            service: *const u8,
            service_size: usize,
            method: *const u8,
            method_size: usize,
            metadata: *const u8,
            metadata_size: usize,
            message: *const u8,
            message_size: usize,
            timeout: u32,
            token: *mut u32,
        ) -> u32;
        pub fn proxy_grpc_stream(
            upstream: *const u8,
            upstream_size: usize,
            service: *const u8,
            service_size: usize,
            method: *const u8,
            method_size: usize,
            metadata: *const u8,
            metadata_size: usize,
            token: *mut u32,
        ) -> u32;
        pub fn proxy_grpc_send(token: u32, message: *const u8, size: usize, end: u32) -> u32;
        pub fn proxy_grpc_cancel(token: u32) -> u32;
        pub fn proxy_grpc_close(token: u32) -> u32;
        pub fn proxy_get_status(code: *mut u32, data: *mut *mut u8, size: *mut usize) -> u32;
        pub fn proxy_set_effective_context(context: u32) -> u32;
        pub fn proxy_done() -> u32;
        pub fn proxy_call_foreign_function(
            name: *const u8,
            name_size: usize,
            argument: *const u8,
            argument_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32) -> u32;
        pub fn proxy_increment_metric(id: u32, offset: i64) -> u32;
        pub fn proxy_record_metric(id: u32, value: u64) -> u32;
        pub fn proxy_get_metric(id: u32, value: *mut u64) -> u32;
    }
}

/// Bytes that the host handed over; `None` for a null pointer.
pub type Data = Option<Vec<u8>>;

/// Where a host is made to read or write outside of the guest's memory.
pub const OUTSIDE: usize = 0xffff_ff00;

/// Takes over what the host allocated with `proxy_on_memory_allocate`.
fn take(data: *mut u8, size: usize) -> Data {
    if data.is_null() {
        return None;
    }
    // SAFETY: the host got this block from `allocate` with this size and gave it up.
    Some(unsafe { Vec::from_raw_parts(data, size, size) })
}

/// Calls `ask` with places for an answer.
fn ask(ask: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> (u32, Data) {
    let mut data = ptr::null_mut();
    let mut size = 0;
    let status = ask(&mut data, &mut size);
    (status, take(data, size))
}

/// Memory for the host; the export `proxy_on_memory_allocate` of each guest calls it.
pub fn allocate(size: usize) -> *mut u8 {
    let mut block = Vec::with_capacity(size);
    let start = block.as_mut_ptr();
    std::mem::forget(block);
    start
}

/// Writes one line at level info.
pub fn log(text: &str) -> u32 {
    log_at(2, text)
}

/// Writes one line at `level`, valid or not.
pub fn log_at(level: u32, text: &str) -> u32 {
    unsafe { import::proxy_log(level, text.as_ptr(), text.len()) }
}

/// Status and level.
pub fn log_level() -> (u32, u32) {
    let mut level = u32::MAX;
    (unsafe { import::proxy_get_log_level(&mut level) }, level)
}

/// Status and nanoseconds.
pub fn current_time() -> (u32, u64) {
    let mut time = 0;
    (
        unsafe { import::proxy_get_current_time_nanoseconds(&mut time) },
        time,
    )
}

/// Asks for ticks; 0 ends them.
pub fn set_tick_period(milliseconds: u32) -> u32 {
    unsafe { import::proxy_set_tick_period_milliseconds(milliseconds) }
}

/// A range of a buffer.
pub fn buffer(buffer: u32, start: usize, max: usize) -> (u32, Data) {
    ask(|data, size| unsafe { import::proxy_get_buffer_bytes(buffer, start, max, data, size) })
}

/// Status, size and flags of a buffer.
pub fn buffer_status(buffer: u32) -> (u32, usize, u32) {
    let (mut size, mut flags) = (usize::MAX, u32::MAX);
    let status = unsafe { import::proxy_get_buffer_status(buffer, &mut size, &mut flags) };
    (status, size, flags)
}

/// Replaces a range of a buffer.
pub fn set_buffer(buffer: u32, start: usize, length: usize, data: &[u8]) -> u32 {
    unsafe { import::proxy_set_buffer_bytes(buffer, start, length, data.as_ptr(), data.len()) }
}

/// A whole map, still serialised.
pub fn map(map: u32) -> (u32, Data) {
    ask(|data, size| unsafe { import::proxy_get_header_map_pairs(map, data, size) })
}

/// Replaces a whole map by serialised pairs.
pub fn set_map(map: u32, pairs: &[u8]) -> u32 {
    unsafe { import::proxy_set_header_map_pairs(map, pairs.as_ptr(), pairs.len()) }
}

/// Status and size in bytes of a map.
pub fn map_size(map: u32) -> (u32, usize) {
    let mut size = usize::MAX;
    (
        unsafe { import::proxy_get_header_map_size(map, &mut size) },
        size,
    )
}

/// One value of a map.
pub fn value(map: u32, key: &[u8]) -> (u32, Data) {
    ask(|data, size| unsafe {
        import::proxy_get_header_map_value(map, key.as_ptr(), key.len(), data, size)
    })
}

/// Adds a value to a map.
pub fn add(map: u32, key: &[u8], value: &[u8]) -> u32 {
    let (key, value) = (slice(key), slice(value));
    unsafe { import::proxy_add_header_map_value(map, key.0, key.1, value.0, value.1) }
}

/// Replaces the values of a key.
pub fn replace(map: u32, key: &[u8], value: &[u8]) -> u32 {
    let (key, value) = (slice(key), slice(value));
    unsafe { import::proxy_replace_header_map_value(map, key.0, key.1, value.0, value.1) }
}

/// Removes a key.
pub fn remove(map: u32, key: &[u8]) -> u32 {
    unsafe { import::proxy_remove_header_map_value(map, key.as_ptr(), key.len()) }
}

/// A property; `path` is joined by NUL.
pub fn property(path: &[u8]) -> (u32, Data) {
    ask(|data, size| unsafe { import::proxy_get_property(path.as_ptr(), path.len(), data, size) })
}

/// Sets a property.
pub fn set_property(path: &[u8], value: &[u8]) -> u32 {
    let (path, value) = (slice(path), slice(value));
    unsafe { import::proxy_set_property(path.0, path.1, value.0, value.1) }
}

/// Status, value and its compare-and-swap number.
pub fn shared_data(key: &[u8]) -> (u32, Data, u32) {
    let mut cas = u32::MAX;
    let (status, data) = ask(|data, size| unsafe {
        import::proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &mut cas)
    });
    (status, data, cas)
}

/// Sets a value; `cas` 0 means at any rate.
pub fn set_shared_data(key: &[u8], value: &[u8], cas: u32) -> u32 {
    let (key, value) = (slice(key), slice(value));
    unsafe { import::proxy_set_shared_data(key.0, key.1, value.0, value.1, cas) }
}

/// Status and id of a queue of this VM id.
pub fn register_queue(name: &[u8]) -> (u32, u32) {
    let mut id = u32::MAX;
    let status = unsafe { import::proxy_register_shared_queue(name.as_ptr(), name.len(), &mut id) };
    (status, id)
}

/// Status and id of a queue of any VM id.
pub fn resolve_queue(vm: &[u8], name: &[u8]) -> (u32, u32) {
    let mut id = u32::MAX;
    let (vm, name) = (slice(vm), slice(name));
    let status = unsafe { import::proxy_resolve_shared_queue(vm.0, vm.1, name.0, name.1, &mut id) };
    (status, id)
}

/// Takes the oldest entry.
pub fn dequeue(id: u32) -> (u32, Data) {
    ask(|data, size| unsafe { import::proxy_dequeue_shared_queue(id, data, size) })
}

/// Adds an entry.
pub fn enqueue(id: u32, value: &[u8]) -> u32 {
    unsafe { import::proxy_enqueue_shared_queue(id, value.as_ptr(), value.len()) }
}

/// Resumes a paused stream.
pub fn continue_stream(stream: u32) -> u32 {
    unsafe { import::proxy_continue_stream(stream) }
}

/// Ends a stream.
pub fn close_stream(stream: u32) -> u32 {
    unsafe { import::proxy_close_stream(stream) }
}

/// Answers the request.
pub fn reply(status: u32, details: &[u8], body: &[u8], headers: &[u8], grpc_status: i32) -> u32 {
    let (details, body, headers) = (slice(details), slice(body), slice(headers));
    unsafe {
        import::proxy_send_local_response(
            status,
            details.0,
            details.1,
            body.0,
            body.1,
            headers.0,
            headers.1,
            grpc_status,
        )
    }
}

/// Sends an HTTP callout; status and token.
pub fn http_call(
    upstream: &[u8],
    headers: &[u8],
    body: &[u8],
    trailers: &[u8],
    timeout: u32,
) -> (u32, u32) {
    let mut token = u32::MAX;
    let (upstream, headers) = (slice(upstream), slice(headers));
    let (body, trailers) = (slice(body), slice(trailers));
    let status = unsafe {
        import::proxy_http_call(
            upstream.0, upstream.1, headers.0, headers.1, body.0, body.1, trailers.0, trailers.1,
            timeout, &mut token,
        )
    };
    (status, token)
}

/// Sends a unary gRPC callout; status and token.
pub fn grpc_call(
    upstream: &[u8],
    service: &[u8],
    method: &[u8],
    metadata: &[u8],
    message: &[u8],
    timeout: u32,
) -> (u32, u32) {
    let mut token = u32::MAX;
    let (upstream, service, method) = (slice(upstream), slice(service), slice(method));
    let (metadata, message) = (slice(metadata), slice(message));
    let status = unsafe {
        import::proxy_grpc_call(
            upstream.0, upstream.1, service.0, service.1, method.0, method.1, metadata.0,
            metadata.1, message.0, message.1, timeout, &mut token,
        )
    };
    (status, token)
}

/// Opens a gRPC stream; status and token.
pub fn grpc_stream(upstream: &[u8], service: &[u8], method: &[u8], metadata: &[u8]) -> (u32, u32) {
    let mut token = u32::MAX;
    let (upstream, service) = (slice(upstream), slice(service));
    let (method, metadata) = (slice(method), slice(metadata));
    let status = unsafe {
        import::proxy_grpc_stream(
            upstream.0, upstream.1, service.0, service.1, method.0, method.1, metadata.0,
            metadata.1, &mut token,
        )
    };
    (status, token)
}

/// Sends one message on a gRPC stream.
pub fn grpc_send(token: u32, message: &[u8], end: u32) -> u32 {
    unsafe { import::proxy_grpc_send(token, message.as_ptr(), message.len(), end) }
}

/// Drops a gRPC call or stream.
pub fn grpc_cancel(token: u32) -> u32 {
    unsafe { import::proxy_grpc_cancel(token) }
}

/// Closes a gRPC call or stream.
pub fn grpc_close(token: u32) -> u32 {
    unsafe { import::proxy_grpc_close(token) }
}

/// Status, code and text of the call whose answer is at hand.
pub fn call_status() -> (u32, u32, Data) {
    let mut code = u32::MAX;
    let (status, data) =
        ask(|data, size| unsafe { import::proxy_get_status(&mut code, data, size) });
    (status, code, data)
}

/// Makes another context the one that later calls speak of.
pub fn set_effective_context(context: u32) -> u32 {
    unsafe { import::proxy_set_effective_context(context) }
}

/// Tells the host that a context held back by `on_done` is done.
pub fn done() -> u32 {
    unsafe { import::proxy_done() }
}

/// Calls a function that only this host knows.
pub fn foreign(name: &[u8], argument: &[u8]) -> (u32, Data) {
    let (name, argument) = (slice(name), slice(argument));
    ask(|data, size| unsafe {
        import::proxy_call_foreign_function(name.0, name.1, argument.0, argument.1, data, size)
    })
}

/// Status and id.
pub fn define_metric(kind: u32, name: &[u8]) -> (u32, u32) {
    let mut id = u32::MAX;
    let status = unsafe { import::proxy_define_metric(kind, name.as_ptr(), name.len(), &mut id) };
    (status, id)
}

/// Adds to a metric.
pub fn increment_metric(id: u32, offset: i64) -> u32 {
    unsafe { import::proxy_increment_metric(id, offset) }
}

/// Sets a metric.
pub fn record_metric(id: u32, value: u64) -> u32 {
    unsafe { import::proxy_record_metric(id, value) }
}

/// Status and value.
pub fn metric(id: u32) -> (u32, u64) {
    let mut value = u64::MAX;
    (unsafe { import::proxy_get_metric(id, &mut value) }, value)
}

fn slice(bytes: &[u8]) -> (*const u8, usize) {
    (bytes.as_ptr(), bytes.len())
}
