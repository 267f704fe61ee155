//! gRPC callouts: a call with one message, or a stream. Source: `Context::grpcCall` and `grpcStream` of Envoy.

use std::time::Duration;

use bytes::Bytes;

use crate::abi::{Status, pairs};
use crate::callout::{CalloutId, Kind};
use crate::host::ClusterHealth;
use crate::output::{GrpcCallout, Output};
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
    open(guest, callout, Kind::GrpcCall, token_out)
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
        Some(Kind::GrpcStream { local_closed, .. }) => *local_closed |= end_stream,
        Some(Kind::Http | Kind::GrpcCall) => return Err(Status::BadArgument.into()),
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
        Some(Kind::GrpcCall) => true,
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
    let call = state
        .callouts
        .get(token)
        .is_some_and(|waiting| waiting.kind == Kind::GrpcCall);
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
    match state.callouts.get(token).map(|waiting| waiting.kind) {
        Some(Kind::GrpcCall | Kind::GrpcStream { .. }) => {}
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
    let health = guest
        .state()
        .host
        .0
        .cluster(&cluster)
        .ok_or(Status::ParseFailure)?;
    if health == ClusterHealth::NoHealthyHost {
        return Err(Status::InternalFailure.into());
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
    callout.id = state.callouts.add(root, kind, deadline);
    let token = callout.id.token;
    state.outbox.push_back(Output::GrpcCallout(callout));
    guest.write_u32(token_out, token)
}

/// The cluster in an `envoy.config.core.v3.GrpcService`, or the name of a cluster as plain text, which Envoy takes too.
fn cluster_of(target: &[u8]) -> Option<String> {
    let envoy_grpc = field(target, 1).and_then(|message| field(message, 1));
    let name = envoy_grpc.unwrap_or(target);
    let name = std::str::from_utf8(name).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The bytes of a length-delimited field of a protobuf message. `None` where it is not there or the bytes are no message.
fn field(message: &[u8], number: u64) -> Option<&[u8]> {
    let mut rest = message;
    let mut found = None;
    while !rest.is_empty() {
        let (key, after) = varint(rest)?;
        rest = after;
        match key & 7 {
            0 => rest = varint(rest)?.1,
            1 => rest = rest.get(8..)?,
            2 => {
                let (size, after) = varint(rest)?;
                let (part, after) = after.split_at_checked(usize::try_from(size).ok()?)?;
                if key >> 3 == number {
                    found = Some(part);
                }
                rest = after;
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    found
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(index).ok()? * 7)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}
