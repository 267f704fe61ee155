//! HTTP callouts. Source: `Context::httpCall` of Envoy.

use std::time::Duration;

use bytes::Bytes;

use crate::abi::{Status, pairs};
use crate::callout::Kind;
use crate::header_map::HeaderMap;
use crate::host::ClusterHealth;
use crate::output::{HttpCallout, Output};
use crate::vm::guest::{Answer, Guest};

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
    let headers = pairs::decode(&guest.read(headers, headers_size)?);
    let body = Bytes::from(guest.read(body, body_size)?);
    let trailers = pairs::decode(&guest.read(trailers, trailers_size)?);
    guest.show(|| {
        let target = headers
            .first(":path")
            .unwrap_or_default()
            .escape_ascii()
            .to_string();
        format!(
            "{cluster:?}, {target:?}, {} bytes, {timeout} ms",
            body.len()
        )
    });
    let health = guest
        .state()
        .host
        .0
        .cluster(&cluster)
        .ok_or(Status::BadArgument)?;
    require_request_head(&headers)?;
    if health == ClusterHealth::NoHealthyHost {
        return Err(Status::InternalFailure.into());
    }
    let timeout = (timeout > 0).then(|| Duration::from_millis(timeout.into()));
    let state = guest.state_mut();
    let root = state.acting_root();
    let now = state.host.clock().now();
    let deadline = timeout.map(|timeout| now.after(timeout));
    let id = state.callouts.add(root, Kind::Http, deadline);
    state.outbox.push_back(Output::HttpCallout(HttpCallout {
        id,
        cluster,
        headers,
        body,
        trailers,
        timeout,
    }));
    guest.write_u32(token_out, id.token)
}

fn require_request_head(headers: &HeaderMap) -> Result<(), Status> {
    let there = |name| headers.first(name).is_some_and(|value| !value.is_empty());
    let whole = [":path", ":method", ":authority"].into_iter().all(there);
    if whole {
        Ok(())
    } else {
        Err(Status::BadArgument)
    }
}
