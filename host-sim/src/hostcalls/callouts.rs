//! HTTP callouts. Source: `Context::httpCall` of Envoy.

use std::time::Duration;

use bytes::Bytes;

use crate::abi::{Status, pairs};
use crate::callout::Kind;
use crate::header_map::{HeaderMap, Joining};
use crate::host::ClusterHealth;
use crate::output::{HttpCallout, Output};
use crate::vm::VmState;
use crate::vm::guest::{Answer, Failure, Guest};

#[expect(clippy::too_many_arguments, reason = "the ABI's signature")]
pub(super) fn http_call(
    guest: &mut Guest<'_, '_>,
    cluster: u32,
    cluster_size: u32,
    headers: u32,
    headers_size: u32,
    body: u32,
    body_size: u32,
    trailers: u32,
    trailers_size: u32,
    timeout: u32,
    token_out: u32,
) -> Answer {
    let cluster = guest.text(cluster, cluster_size)?;
    let headers = pairs::decode(&guest.read(headers, headers_size)?).joined(Joining::Request);
    let body = Bytes::from(guest.read(body, body_size)?);
    let trailers = pairs::decode(&guest.read(trailers, trailers_size)?);
    guest.show(|| {
        let target = headers.first(":path").unwrap_or_default();
        format!(
            "{cluster:?}, \"{}\", {} bytes, {timeout} ms",
            target.escape_ascii(),
            body.len()
        )
    });
    let timeout = (timeout > 0).then(|| Duration::from_millis(timeout.into()));
    let started = start(guest.state_mut(), cluster, headers, body, trailers, timeout);
    guest.write_u32(token_out, started.unwrap_or(0))?;
    started.map(drop).map_err(Failure::Status)
}

/// The token of a callout that has started.
fn start(
    state: &mut VmState,
    cluster: String,
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
    timeout: Option<Duration>,
) -> Result<u32, Status> {
    let health = state.host.0.cluster(&cluster).ok_or(Status::BadArgument)?;
    let head = [":path", ":method", ":authority"];
    if !head.into_iter().all(|name| headers.contains(name)) {
        return Err(Status::BadArgument);
    }
    let root = state.acting_root();
    let now = state.host.clock().now();
    let deadline = timeout.map(|timeout| now.after(timeout));
    let id = state.callouts.add(root, Kind::Http, deadline);
    if health == ClusterHealth::NoHealthyHost {
        state.callouts.remove(id.token);
        return Err(Status::InternalFailure);
    }
    state.outbox.push_back(Output::HttpCallout(HttpCallout {
        id,
        cluster,
        headers,
        body,
        trailers,
        timeout,
    }));
    Ok(id.token)
}
