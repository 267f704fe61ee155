//! Properties: what a path means, when it can be read, and how its value is packed.
//! Source: the attributes of Envoy's documentation, and what Envoy 1.40 answered.

use std::time::Duration;

use crate::abi::{Status, pairs};
use crate::header_map::HeaderMap;
use crate::host::NodeInfo;
use crate::plugin::Plugin;
use crate::stream::{Stream, StreamInfo, local_reply};
use crate::vm::VmState;

/// The value under `path`, whose parts end with zero bytes.
pub(crate) fn value(state: &VmState, path: &[u8]) -> Result<Vec<u8>, Status> {
    let path = path.strip_suffix(b"\0").unwrap_or(path);
    let parts: Option<Vec<&str>> = path
        .split(|byte| *byte == 0)
        .map(|part| std::str::from_utf8(part).ok())
        .collect();
    let parts = parts.ok_or(Status::NotFound)?;
    let stream = state
        .contexts
        .get(&state.acting())
        .and_then(|stream| state.streams.get(stream));
    if matches!(parts.as_slice(), [""] | ["xds"]) {
        return Err(Status::SerializationFailure);
    }
    if let Some(value) = state.plugin().and_then(|plugin| of_plugin(plugin, &parts)) {
        return Ok(value);
    }
    if let ["xds", "node", rest @ ..] = parts.as_slice() {
        return of_node(&state.host.0.node(), rest).ok_or(Status::NotFound);
    }
    let stream = stream.ok_or(Status::NotFound)?;
    if is_group(stream, &parts) {
        return Err(Status::SerializationFailure);
    }
    if let ["xds", "route_metadata", rest @ ..] = parts.as_slice() {
        let metadata = stream.info.route_metadata.as_ref();
        return metadata.ok_or(Status::NotFound)?.read(rest);
    }
    let value = match parts.as_slice() {
        ["request", name] => of_request(state, stream, name),
        ["request", "headers", name] => header(visible_request(stream), name),
        ["response", name] => of_response(stream, name),
        ["response", "headers", name] => header(visible_response(stream), name),
        ["response", "trailers", name] => header(visible_response_trailers(stream), name),
        ["source" | "destination" | "connection", ..] | ["connection_id"] => {
            of_connection(&stream.info, &parts)
        }
        ["upstream", name] => of_upstream(stream, name),
        ["xds", name] => of_configuration(&stream.info, name),
        ["metadata"] => Some(Vec::new()),
        ["metadata", "filter_metadata"] => Some(pairs::encode([].into_iter())),
        // What the filter has set itself cannot hide what Envoy knows, and a name of several parts is never found again.
        [_] => stream.own_properties.get(path).cloned(),
        _ => None,
    };
    value.ok_or(Status::NotFound)
}

/// A path that ends before a value: it is there, and there are no bytes for it.
fn is_group(stream: &Stream, parts: &[&str]) -> bool {
    match parts {
        [
            "request" | "response" | "source" | "destination" | "connection" | "upstream"
            | "filter_state",
        ]
        | [
            "request" | "response" | "source" | "destination" | "connection" | "upstream",
            "",
        ] => true,
        ["upstream_filter_state"]
        | [
            "xds",
            "upstream_host_metadata" | "upstream_host_locality_metadata",
        ] => stream.upstream.is_some(),
        _ => false,
    }
}

/// The identity of the process, as far as one is configured.
fn of_node(node: &NodeInfo, parts: &[&str]) -> Option<Vec<u8>> {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    match parts {
        // The whole message; nobody can rely on more than that it is there.
        [] => Some(locality(node)),
        ["user_agent_name"] => text("envoy"),
        ["id"] => text(&node.id),
        ["cluster"] => text(&node.cluster),
        ["locality"] => Some(locality(node)),
        ["locality", "region"] => text(&node.region),
        ["metadata"] => {
            let entries = node.metadata.iter();
            let entries: Vec<_> = entries
                .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                .collect();
            Some(pairs::encode(entries.into_iter()))
        }
        ["metadata", name] => {
            let found = node.metadata.iter().find(|(found, _)| found == name);
            found.and_then(|(_, value)| text(value))
        }
        _ => None,
    }
}

/// The region as a protobuf message: field 1, its length, its bytes.
fn locality(node: &NodeInfo) -> Vec<u8> {
    let mut message = Vec::new();
    if let Ok(size @ 1..128) = u8::try_from(node.region.len()) {
        message.extend_from_slice(&[0x0a, size]);
        message.extend_from_slice(node.region.as_bytes());
    }
    message
}

fn of_plugin(plugin: &Plugin, parts: &[&str]) -> Option<Vec<u8>> {
    match parts {
        ["plugin_name"] => Some(plugin.name.clone().into_bytes()),
        ["plugin_root_id"] => Some(plugin.root_id.clone().into_bytes()),
        ["plugin_vm_id"] => Some(plugin.vm_id.clone().into_bytes()),
        _ => None,
    }
}

fn of_request(state: &VmState, stream: &Stream, name: &str) -> Option<Vec<u8>> {
    // These do not need the headers.
    match name {
        "time" => return Some(number(stream.started_wall_nanoseconds)),
        "duration" => {
            let ended = stream.over || stream.logging;
            let elapsed = state.host.clock().now().since(stream.started);
            return ended.then(|| number(nanoseconds(elapsed)));
        }
        "size" => return Some(number(stream.request.body_bytes)),
        "protocol" => return Some(stream.info.protocol.name().as_bytes().to_vec()),
        _ => {}
    }
    let visible = visible_request(stream);
    match name {
        "headers" => return Some(map(visible)),
        "total_size" => {
            let size = visible.map_or(0, HeaderMap::byte_size) as u64;
            return Some(number(stream.request.body_bytes + size));
        }
        _ => {}
    }
    let headers = visible?;
    let text = |name| header(Some(headers), name);
    let (url_path, query) = split_target(headers.first(":path"));
    match name {
        "path" => text(":path"),
        "url_path" => Some(url_path.to_vec()),
        "query" => Some(query.to_vec()),
        "host" => text(":authority"),
        "scheme" => text(":scheme"),
        "method" => text(":method"),
        "referer" => text("referer"),
        "useragent" => text("user-agent"),
        "id" => text("x-request-id"),
        _ => None,
    }
}

fn of_response(stream: &Stream, name: &str) -> Option<Vec<u8>> {
    let headers = stream.response.headers.as_ref();
    let trailers = visible_response_trailers(stream);
    match name {
        "code" => stream.code.map(number),
        "code_details" => stream.details.clone().map(String::into_bytes),
        "flags" => Some(number(stream.flags)),
        "size" => Some(number(stream.response.sent_bytes)),
        "total_size" => {
            let maps = [visible_response(stream), trailers];
            let size: usize = maps.into_iter().flatten().map(HeaderMap::byte_size).sum();
            Some(number(stream.response.sent_bytes + size as u64))
        }
        "grpc_status" => {
            let headers = headers?;
            let trailers = stream.response.trailers.as_ref();
            let named = trailers.and_then(|map| map.text("grpc-status"));
            let named = named.or_else(|| headers.text("grpc-status"));
            let named = named.and_then(|status| status.parse().ok());
            // Without a gRPC status, the HTTP status says what a gRPC client would make of it.
            let status = u32::try_from(status(headers)?).unwrap_or_default();
            Some(number(named.unwrap_or_else(|| {
                local_reply::grpc_status(status).unsigned_abs().into()
            })))
        }
        "backend_latency" => stream
            .backend_latency
            .map(|latency| number(nanoseconds(latency))),
        "headers" => Some(map(visible_response(stream))),
        "trailers" => Some(map(trailers)),
        _ => None,
    }
}

fn of_upstream(stream: &Stream, name: &str) -> Option<Vec<u8>> {
    let upstream = stream.upstream.as_ref();
    match name {
        "request_attempt_count" => Some(number(stream.attempts)),
        "transport_failure_reason" => upstream.map(|_| Vec::new()),
        "address" => Some(upstream?.address.to_string().into_bytes()),
        "port" => Some(number(upstream?.address.port().into())),
        "local_address" => Some(upstream?.local_address.to_string().into_bytes()),
        _ => None,
    }
}

fn status(headers: &HeaderMap) -> Option<u64> {
    headers.text(":status")?.parse().ok()
}

fn of_connection(info: &StreamInfo, parts: &[&str]) -> Option<Vec<u8>> {
    let certificate = info.peer_certificate.as_ref();
    let local = info.local_certificate.as_ref();
    match parts {
        ["source", "address"] => Some(info.source.to_string().into_bytes()),
        ["source", "port"] => Some(number(info.source.port().into())),
        ["destination", "address"] => Some(info.destination.to_string().into_bytes()),
        ["destination", "port"] => Some(number(info.destination.port().into())),
        ["connection", "id"] | ["connection_id"] => Some(number(info.connection_id)),
        ["connection", "requested_server_name"] => Some(info.server_name.clone().into_bytes()),
        ["connection", "mtls"] => Some(vec![u8::from(certificate.is_some())]),
        // With TLS these are there, and empty where nobody shows a certificate or one without a subject.
        ["connection", "subject_peer_certificate"] => {
            of_tls(info, certificate.map(|shown| &shown.subject))
        }
        ["connection", "uri_san_peer_certificate"] => filled(&certificate?.uri_san),
        ["connection", "dns_san_peer_certificate"] => filled(&certificate?.dns_san),
        ["connection", "sha256_peer_certificate_digest"] => filled(&certificate?.sha256_digest),
        ["connection", "subject_local_certificate"] => {
            of_tls(info, local.map(|shown| &shown.subject))
        }
        ["connection", "uri_san_local_certificate"] => filled(&local?.uri_san),
        ["connection", "dns_san_local_certificate"] => filled(&local?.dns_san),
        ["connection", "tls_version"] => filled(&info.tls_version),
        _ => None,
    }
}

/// Something of a certificate that is a text with any connection over TLS.
fn of_tls(info: &StreamInfo, text: Option<&String>) -> Option<Vec<u8>> {
    let tls = text.is_some() || !info.tls_version.is_empty();
    tls.then(|| {
        text.map(|text| text.clone().into_bytes())
            .unwrap_or_default()
    })
}

fn of_configuration(info: &StreamInfo, name: &str) -> Option<Vec<u8>> {
    match name {
        "cluster_name" => filled(&info.cluster),
        "cluster_metadata" => filled(&info.cluster).map(|_| Vec::new()),
        "route_name" => {
            let routed = info.route_metadata.is_some();
            routed.then(|| info.route.clone().into_bytes())
        }
        "virtual_host_name" => filled(&info.virtual_host),
        "virtual_host_metadata" => filled(&info.virtual_host).map(|_| Vec::new()),
        // An inbound listener is 1; one that says nothing is 0.
        "listener_direction" => Some(number(0)),
        "listener_metadata" | "filter_chain_name" => Some(Vec::new()),
        _ => None,
    }
}

fn visible_request(stream: &Stream) -> Option<&HeaderMap> {
    let visible = stream.logging || stream.request.headers_visible;
    stream.request.headers.as_ref().filter(|_| visible)
}

fn visible_response(stream: &Stream) -> Option<&HeaderMap> {
    let visible = stream.logging || stream.response.headers_visible;
    stream.response.headers.as_ref().filter(|_| visible)
}

fn visible_response_trailers(stream: &Stream) -> Option<&HeaderMap> {
    let visible = stream.logging || stream.response.trailers_visible;
    stream.response.trailers.as_ref().filter(|_| visible)
}

fn header(headers: Option<&HeaderMap>, name: &str) -> Option<Vec<u8>> {
    Some(headers?.first(name)?.to_vec())
}

/// A map that cannot be read now looks empty.
fn map(headers: Option<&HeaderMap>) -> Vec<u8> {
    let entries: Vec<_> = headers.into_iter().flat_map(HeaderMap::iter).collect();
    pairs::encode(entries.into_iter())
}

fn split_target(target: Option<&[u8]>) -> (&[u8], &[u8]) {
    let target = target.unwrap_or_default();
    match target.iter().position(|byte| *byte == b'?') {
        Some(place) => (&target[..place], &target[place + 1..]),
        None => (target, &[]),
    }
}

fn filled(text: &str) -> Option<Vec<u8>> {
    (!text.is_empty()).then(|| text.as_bytes().to_vec())
}

fn number(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
