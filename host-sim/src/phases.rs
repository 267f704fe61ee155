//! Envoy's answers as data: which maps and buffers a callback can read, and what is said about those that are not there.
//!
//! Measured on Envoy 1.40 (V8) by the guests in `tests/guests`; the same guests check this host against Envoy. Maps of a stream that
//! is paused stay readable from other callbacks by way of `proxy_set_effective_context`, until the filter resumes that way.

use crate::abi::{BufferType, MapType, Status};

/// What the header functions answer about a map that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingMap {
    /// `proxy_get_header_map_value`
    pub value: Status,
    /// `proxy_get_header_map_pairs`: it hands over no bytes.
    pub pairs: Status,
    /// `proxy_get_header_map_size`
    pub size: Status,
    /// Adding, replacing, removing and setting.
    pub change: Status,
}

/// Outside of the map's own phase.
pub const MISSING_MAP: MissingMap = MissingMap {
    value: Status::BadArgument,
    pairs: Status::Ok,
    size: Status::BadArgument,
    change: Status::BadArgument,
};

/// During `proxy_on_log`, where the maps of the whole stream can be read and none can be changed.
pub const MISSING_MAP_IN_LOG: MissingMap = MissingMap {
    value: Status::NotFound,
    pairs: Status::Ok,
    size: Status::BadArgument,
    change: Status::BadArgument,
};

/// The maps that can be read in a callback, if the request or answer has them. In all callbacks that are not listed here, none.
pub const MAPS: [(&str, &[MapType]); 8] = [
    ("proxy_on_request_headers", &[MapType::RequestHeaders]),
    ("proxy_on_request_trailers", &[MapType::RequestTrailers]),
    ("proxy_on_response_headers", &[MapType::ResponseHeaders]),
    ("proxy_on_response_trailers", &[MapType::ResponseTrailers]),
    (
        "proxy_on_http_call_response",
        &[
            MapType::HttpCallResponseHeaders,
            MapType::HttpCallResponseTrailers,
        ],
    ),
    (
        "proxy_on_grpc_receive_initial_metadata",
        &[MapType::GrpcInitialMetadata],
    ),
    (
        "proxy_on_grpc_receive_trailing_metadata",
        &[MapType::GrpcTrailingMetadata],
    ),
    (
        "proxy_on_log",
        &[
            MapType::RequestHeaders,
            MapType::ResponseHeaders,
            MapType::ResponseTrailers,
        ],
    ),
];

/// What the buffer functions answer about a buffer that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingBuffer {
    /// `proxy_get_buffer_status` and `proxy_get_buffer_bytes`: with [`Status::Ok`], it reads as an empty one.
    pub read: Status,
    /// `proxy_set_buffer_bytes`
    pub change: Status,
}

/// What is said about `buffer` outside of its own callback.
pub fn missing_buffer(buffer: BufferType) -> MissingBuffer {
    let (read, change) = match buffer {
        BufferType::RequestBody
        | BufferType::ResponseBody
        | BufferType::DownstreamData
        | BufferType::UpstreamData
        | BufferType::GrpcReceiveMessage
        | BufferType::VmConfiguration
        | BufferType::CallData => (Status::Ok, Status::BadArgument),
        BufferType::HttpCallResponseBody | BufferType::PluginConfiguration => {
            (Status::NotFound, Status::NotFound)
        }
    };
    MissingBuffer { read, change }
}
