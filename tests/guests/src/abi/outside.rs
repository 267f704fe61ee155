//! Calls with pointers beyond the guest's memory: a host must answer with a status and touch nothing.

use std::ptr;

use super::{OUTSIDE, import};

/// Calls that point outside of the guest's memory: name and status.
pub fn outside_calls() -> Vec<(&'static str, u32)> {
    let far = OUTSIDE as *const u8;
    let mut data = ptr::null_mut();
    let mut size = 0_usize;
    let mut word = 0_u32;
    // SAFETY: the host must refuse these addresses; nothing of ours lies there.
    unsafe {
        vec![
            ("log text", import::proxy_log(2, far, 8)),
            (
                "get_log_level result",
                import::proxy_get_log_level(OUTSIDE as *mut u32),
            ),
            (
                "get_current_time result",
                import::proxy_get_current_time_nanoseconds(OUTSIDE as *mut u64),
            ),
            (
                "get_header_map_value key",
                import::proxy_get_header_map_value(0, far, 4, &mut data, &mut size),
            ),
            (
                "get_header_map_value result",
                import::proxy_get_header_map_value(
                    0,
                    c"x-one".as_ptr().cast(),
                    5,
                    OUTSIDE as *mut *mut u8,
                    &mut size,
                ),
            ),
            (
                "get_header_map_value result size",
                import::proxy_get_header_map_value(
                    0,
                    c"x-one".as_ptr().cast(),
                    5,
                    &mut data,
                    OUTSIDE as *mut usize,
                ),
            ),
            (
                "get_header_map_pairs result",
                import::proxy_get_header_map_pairs(0, OUTSIDE as *mut *mut u8, &mut size),
            ),
            (
                "set_header_map_pairs",
                import::proxy_set_header_map_pairs(0, far, 8),
            ),
            (
                "get_header_map_size result",
                import::proxy_get_header_map_size(0, OUTSIDE as *mut usize),
            ),
            (
                "add_header_map_value key",
                import::proxy_add_header_map_value(0, far, 4, c"v".as_ptr().cast(), 1),
            ),
            (
                "add_header_map_value value",
                import::proxy_add_header_map_value(0, c"x-one".as_ptr().cast(), 5, far, 1),
            ),
            (
                "replace_header_map_value value",
                import::proxy_replace_header_map_value(0, c"x-one".as_ptr().cast(), 5, far, 1),
            ),
            (
                "remove_header_map_value key",
                import::proxy_remove_header_map_value(0, far, 1),
            ),
            (
                "get_buffer_bytes result",
                import::proxy_get_buffer_bytes(7, 0, 10, OUTSIDE as *mut *mut u8, &mut size),
            ),
            (
                "get_buffer_status result",
                import::proxy_get_buffer_status(7, OUTSIDE as *mut usize, &mut word),
            ),
            (
                "set_buffer_bytes data",
                import::proxy_set_buffer_bytes(0, 0, 0, far, 4),
            ),
            (
                "get_property path",
                import::proxy_get_property(far, 4, &mut data, &mut size),
            ),
            (
                "get_property result",
                import::proxy_get_property(
                    c"plugin_name".as_ptr().cast(),
                    11,
                    OUTSIDE as *mut *mut u8,
                    &mut size,
                ),
            ),
            (
                "set_property value",
                import::proxy_set_property(c"outside".as_ptr().cast(), 7, far, 4),
            ),
            (
                "get_shared_data key",
                import::proxy_get_shared_data(far, 4, &mut data, &mut size, &mut word),
            ),
            (
                "set_shared_data value",
                import::proxy_set_shared_data(c"outside".as_ptr().cast(), 7, far, 4, 0),
            ),
            (
                "register_shared_queue name",
                import::proxy_register_shared_queue(far, 4, &mut word),
            ),
            (
                "resolve_shared_queue vm",
                import::proxy_resolve_shared_queue(far, 4, c"q".as_ptr().cast(), 1, &mut word),
            ),
            (
                "enqueue_shared_queue data",
                import::proxy_enqueue_shared_queue(0, far, 4),
            ),
            (
                "define_metric name",
                import::proxy_define_metric(0, far, 4, &mut word),
            ),
            (
                "define_metric result",
                import::proxy_define_metric(0, c"outside".as_ptr().cast(), 7, OUTSIDE as *mut u32),
            ),
            (
                "get_metric result",
                import::proxy_get_metric(0, OUTSIDE as *mut u64),
            ),
            (
                "http_call upstream",
                import::proxy_http_call(
                    far,
                    4,
                    c"".as_ptr().cast(),
                    0,
                    c"".as_ptr().cast(),
                    0,
                    c"".as_ptr().cast(),
                    0,
                    100,
                    &mut word,
                ),
            ),
            (
                "grpc_call service",
                import::proxy_grpc_call(far, 4, far, 4, far, 4, far, 4, far, 4, 100, &mut word),
            ),
            (
                "grpc_stream service",
                import::proxy_grpc_stream(far, 4, far, 4, far, 4, far, 4, &mut word),
            ),
            ("grpc_send message", import::proxy_grpc_send(0, far, 4, 0)),
            (
                "get_status result",
                import::proxy_get_status(OUTSIDE as *mut u32, &mut data, &mut size),
            ),
            (
                "call_foreign_function name",
                import::proxy_call_foreign_function(
                    far,
                    4,
                    c"".as_ptr().cast(),
                    0,
                    &mut data,
                    &mut size,
                ),
            ),
            (
                "send_local_response body",
                import::proxy_send_local_response(
                    200,
                    c"".as_ptr().cast(),
                    0,
                    far,
                    4,
                    c"".as_ptr().cast(),
                    0,
                    -1,
                ),
            ),
        ]
    }
}
