//! gRPC callouts: a call with one message, or a stream. Source: `Context::grpcCall` and `grpcStream` of Envoy.

use std::time::Duration;

use bytes::Bytes;

use crate::abi::{Status, pairs, protobuf};
use crate::callout::{CalloutId, Kind};
use crate::host::ClusterHealth;
use crate::output::{GrpcCallout, Output};
use crate::vm::Deferred;
use crate::vm::guest::{Answer, Failure, Guest};

#[expect(clippy::too_many_arguments, reason = "the ABI's signature")]
pub(super) fn call(
    guest: &mut Guest<'_, '_>,
    service: u32,
    service_size: u32,
    name: u32,
    name_size: u32,
    method: u32,
    method_size: u32,
    metadata: u32,
    metadata_size: u32,
    message: u32,
    message_size: u32,
    timeout: u32,
    token_out: u32,
) -> Answer {
    let mut callout = callout(
        guest,
        (service, service_size),
        (name, name_size),
        (method, method_size),
        (metadata, metadata_size),
    )?;
    callout.message = Some(Bytes::from(guest.read(message, message_size)?));
    callout.timeout = (timeout > 0).then(|| Duration::from_millis(timeout.into()));
    open(guest, callout, Kind::GrpcCall { message: None }, token_out)
}

#[expect(clippy::too_many_arguments, reason = "the ABI's signature")]
pub(super) fn stream(
    guest: &mut Guest<'_, '_>,
    service: u32,
    service_size: u32,
    name: u32,
    name_size: u32,
    method: u32,
    method_size: u32,
    metadata: u32,
    metadata_size: u32,
    token_out: u32,
) -> Answer {
    let callout = callout(
        guest,
        (service, service_size),
        (name, name_size),
        (method, method_size),
        (metadata, metadata_size),
    )?;
    let kind = Kind::GrpcStream {
        local_closed: false,
        remote_closed: false,
    };
    open(guest, callout, kind, token_out)
}

pub(super) fn send(
    guest: &mut Guest<'_, '_>,
    token: u32,
    message: u32,
    message_size: u32,
    end: u32,
) -> Answer {
    let message = Bytes::from(guest.read(message, message_size)?);
    let end_stream = end != 0;
    let state = guest.state_mut();
    let waiting = state.callouts.get_mut(token);
    match waiting.map(|waiting| &mut waiting.kind) {
        // Behind its own end, a message goes nowhere.
        Some(Kind::GrpcStream {
            local_closed: true, ..
        }) => return Ok(()),
        Some(Kind::GrpcStream { local_closed, .. }) => *local_closed = end_stream,
        Some(Kind::Http | Kind::GrpcCall { .. }) => return Err(Status::BadArgument.into()),
        None => return Err(unknown(token)),
    }
    let callout = state.callouts.id(token);
    state.outbox.push_back(Output::GrpcSend {
        callout,
        message: Some(message),
        end_stream,
    });
    Ok(())
}

pub(super) fn close(guest: &mut Guest<'_, '_>, token: u32) -> Answer {
    let state = guest.state_mut();
    let callout = state.callouts.id(token);
    let waiting = state.callouts.get_mut(token);
    let over = match waiting.map(|waiting| &mut waiting.kind) {
        // A call cannot be half closed, so this gives it up.
        Some(Kind::GrpcCall { .. }) => true,
        Some(Kind::GrpcStream {
            local_closed,
            remote_closed,
        }) => {
            *local_closed = true;
            *remote_closed
        }
        Some(Kind::Http) => return Err(Status::BadArgument.into()),
        None => return Err(unknown(token)),
    };
    let call = token & 3 == Kind::GrpcCall { message: None }.bits();
    state.outbox.push_back(if call {
        Output::CalloutCancelled(callout)
    } else {
        Output::GrpcSend {
            callout,
            message: None,
            end_stream: true,
        }
    });
    if over {
        state.callouts.remove(token);
    }
    Ok(())
}

pub(super) fn cancel(guest: &mut Guest<'_, '_>, token: u32) -> Answer {
    let state = guest.state_mut();
    match state.callouts.get(token).map(|waiting| &waiting.kind) {
        Some(Kind::GrpcCall { .. } | Kind::GrpcStream { .. }) => {}
        Some(Kind::Http) => return Err(Status::BadArgument.into()),
        None => return Err(unknown(token)),
    }
    state.callouts.remove(token);
    let callout = state.callouts.id(token);
    state.outbox.push_back(Output::CalloutCancelled(callout));
    Ok(())
}

/// A token of a gRPC callout that is over is not found; any other number is a bad argument.
fn unknown(token: u32) -> Failure {
    let grpc = matches!(token & 3, 1 | 2);
    let status = if grpc {
        Status::NotFound
    } else {
        Status::BadArgument
    };
    Failure::Status(status)
}

/// Pointer and size of something in the guest's memory.
type Part = (u32, u32);

fn callout(
    guest: &mut Guest<'_, '_>,
    service: Part,
    name: Part,
    method: Part,
    metadata: Part,
) -> Result<GrpcCallout, Failure> {
    let target = guest.read(service.0, service.1)?;
    let service = guest.text(name.0, name.1)?;
    let method = guest.text(method.0, method.1)?;
    let initial_metadata = pairs::decode(&guest.read(metadata.0, metadata.1)?);
    let cluster = cluster_of(&target).ok_or(Status::ParseFailure)?;
    guest.show(|| format!("{cluster:?}, {service}/{method}"));
    let known = guest.state().host.0.cluster(&cluster).is_some();
    // Plain text that names no cluster is taken for a broken message.
    if !known && cluster.as_bytes() == target {
        return Err(Status::ParseFailure.into());
    }
    Ok(GrpcCallout {
        id: CalloutId { vm: 0, token: 0 },
        cluster,
        service,
        method,
        initial_metadata,
        message: None,
        timeout: None,
    })
}

fn open(guest: &mut Guest<'_, '_>, mut callout: GrpcCallout, kind: Kind, token_out: u32) -> Answer {
    let state = guest.state_mut();
    let root = state.acting_root();
    let now = state.host.clock().now();
    let deadline = callout.timeout.map(|timeout| now.after(timeout));
    let health = state.host.0.cluster(&callout.cluster);
    callout.id = state.callouts.add(root, kind, deadline);
    let token = callout.id.token;
    if health != Some(ClusterHealth::Serving) {
        // The guest is told twice: here, and by a close.
        state.deferred.push_back(Deferred::GrpcFailed(token));
        return Err(Status::InternalFailure.into());
    }
    state.outbox.push_back(Output::GrpcCallout(callout));
    guest.write_u32(token_out, token)
}

/// The cluster in an `envoy.config.core.v3.GrpcService`, or the name of a cluster as plain text, which Envoy takes too.
fn cluster_of(target: &[u8]) -> Option<String> {
    let envoy_grpc = protobuf::field(target, 1).and_then(|message| protobuf::field(message, 1));
    let name = envoy_grpc.unwrap_or(target);
    let name = std::str::from_utf8(name).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}
