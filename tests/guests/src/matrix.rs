//! Long lists of operations that each callback performs alike.

use crate::names::{BUFFERS, MAPS};

/// The operations of a list.
pub fn operations(list: &str) -> Vec<String> {
    match list {
        "maps" => maps(),
        "mapwrites" => map_writes(),
        "buffers" => buffers(),
        "bufferwrites" => buffer_writes(),
        "properties" => properties(),
        _ => vec![format!("note no list {list}")],
    }
}

fn maps() -> Vec<String> {
    let mut all = Vec::new();
    for map in MAPS.iter().chain(&["8", "4294967295"]) {
        for key in ["x-one", "x-absent"] {
            all.push(format!("get {map} {key}"));
        }
        all.push(format!("count {map}"));
        all.push(format!("size? {map}"));
    }
    all
}

fn map_writes() -> Vec<String> {
    let mut all = Vec::new();
    for map in MAPS.iter().chain(&["8"]) {
        all.push(format!("add {map} x-added 1"));
        all.push(format!("replace {map} x-added 2"));
        all.push(format!("get {map} x-added"));
        all.push(format!("remove {map} x-added"));
        all.push(format!("remove {map} x-absent"));
    }
    all
}

fn buffers() -> Vec<String> {
    let mut all = Vec::new();
    for buffer in BUFFERS.iter().chain(&["9"]) {
        all.push(format!("bufstatus {buffer}"));
        for range in ["0 max", "1 2", "0 0", "1000000 1", "1 max"] {
            all.push(format!("buf {buffer} {range}"));
        }
    }
    all
}

fn buffer_writes() -> Vec<String> {
    let mut all = Vec::new();
    for buffer in BUFFERS.iter().chain(&["9"]) {
        for write in ["0 0 \"\"", "0 0 <", "max 0 >"] {
            all.push(format!("setbuf {buffer} {write}"));
        }
    }
    all
}

fn properties() -> Vec<String> {
    let shown = SHOWN.split_whitespace().map(|path| format!("prop {path}"));
    let measured = MEASURED
        .split_whitespace()
        .map(|path| format!("prop? {path}"));
    let asked = ASKED.split_whitespace().map(|path| format!("prop! {path}"));
    shown.chain(measured).chain(asked).collect()
}

/// Properties with the same value in each run.
const SHOWN: &str = "
    request request.path request.url_path request.query request.host request.scheme request.method request.protocol
    request.headers.x-one request.headers.X-One request.headers.x-absent request.headers.:path request.referer request.useragent
    request.size request.total_size request.unknown
    response response.code response.code_details response.flags response.grpc_status response.size
    response.headers.x-up response.trailers.x-absent response.trailers.x-trailer response.unknown
    source source.unknown destination.unknown
    connection connection.mtls connection.requested_server_name connection.tls_version connection.subject_local_certificate
    connection.uri_san_peer_certificate connection.termination_details connection.transport_failure_reason connection.unknown
    upstream upstream.transport_failure_reason upstream.tls_version upstream.request_attempt_count upstream.unknown
    plugin_name plugin_root_id plugin_vm_id cluster_name route_name listener_direction node cluster_metadata route_metadata
    xds xds.cluster_name xds.cluster_metadata xds.route_name xds.route_metadata xds.virtual_host_name xds.virtual_host_metadata
    xds.listener_direction xds.listener_metadata xds.filter_chain_name xds.upstream_host_metadata
    xds.upstream_host_locality_metadata xds.node.id xds.node.cluster xds.node.metadata xds.node.metadata.kind
    xds.node.locality xds.node.locality.region xds.node.user_agent_name xds.unknown
    metadata metadata.filter_metadata metadata.filter_metadata.envoy.lb filter_state filter_state.absent upstream_filter_state
    wasm.absent set.by.wasm unknown unknown.path connection_id_unknown \"\" .request request.
";

/// Properties that are there or not, of a size that tells their form, but whose value differs between runs.
const MEASURED: &str = "
    request.id request.time request.duration response.backend_latency request.headers response.trailers
    source.port destination.port connection.id connection_id connection.start_time upstream.port upstream.cx_pool_ready_duration
";

/// Properties whose size differs between runs.
const ASKED: &str = "
    source.address destination.address upstream.address upstream.local_address response.headers response.total_size xds.node xds
";
