//! Bodies, configurations and messages as byte ranges. Source: `BufferBase` of proxy-wasm-cpp-host and `Buffer` of Envoy.

use crate::abi::{BufferType, Direction, Status};
use crate::phases::missing_buffer;
use crate::stream::{BodyView, Half};
use crate::vm::VmState;
use crate::vm::guest::{Answer, Failure, Guest};

pub(super) fn status(
    guest: &mut Guest<'_, '_>,
    buffer: u32,
    length_out: u32,
    flags_out: u32,
) -> Answer {
    let buffer = buffer_type(buffer)?;
    guest.show(|| format!("{buffer:?}"));
    let length = content(guest.state(), buffer)?.len();
    guest.write_u32(length_out, u32::try_from(length).unwrap_or(u32::MAX))?;
    guest.write_u32(flags_out, 0)
}

pub(super) fn bytes(
    guest: &mut Guest<'_, '_>,
    buffer: u32,
    start: u32,
    length: u32,
    bytes_out: u32,
    size_out: u32,
) -> Answer {
    let buffer = buffer_type(buffer)?;
    guest.show(|| format!("{buffer:?}, {start}, {length}"));
    let content = content(guest.state(), buffer)?;
    let (start, length) = (start as usize, length as usize);
    let end = start.saturating_add(length).min(content.len());
    let part = content.get(start..end).unwrap_or_default().to_vec();
    guest.give(&part, bytes_out, size_out)
}

pub(super) fn set(
    guest: &mut Guest<'_, '_>,
    buffer: u32,
    start: u32,
    length: u32,
    bytes: u32,
    size: u32,
) -> Answer {
    let buffer = buffer_type(buffer)?;
    let bytes = guest.read(bytes, size)?;
    guest.show(|| format!("{buffer:?}, {start}, {length}, {} bytes", bytes.len()));
    let body = match buffer {
        BufferType::RequestBody => body_mut(guest, Direction::Request)?,
        BufferType::ResponseBody => body_mut(guest, Direction::Response)?,
        BufferType::GrpcReceiveMessage => {
            let message = guest.state_mut().delivery.grpc_message.as_mut();
            message.ok_or(Status::BadArgument)?
        }
        BufferType::DownstreamData
        | BufferType::UpstreamData
        | BufferType::HttpCallResponseBody
        | BufferType::VmConfiguration
        | BufferType::PluginConfiguration
        | BufferType::CallData => {
            // What cannot be changed is told apart from what is not there.
            content(guest.state(), buffer)?;
            return Err(Status::BadArgument.into());
        }
    };
    let (start, length) = (start as usize, length as usize);
    if start == 0 {
        let replaced = length.min(body.len());
        let _removed: Vec<u8> = body.splice(..replaced, bytes).collect();
    } else if start >= body.len() {
        body.extend_from_slice(&bytes);
    } else {
        return Err(Status::BadArgument.into());
    }
    Ok(())
}

/// Version 0.1.0: whichever configuration the running callback is about.
pub(super) fn configuration(guest: &mut Guest<'_, '_>, bytes_out: u32, size_out: u32) -> Answer {
    let content = content(guest.state(), BufferType::CallData)?.to_vec();
    guest.give(&content, bytes_out, size_out)
}

fn buffer_type(number: u32) -> Result<BufferType, Failure> {
    BufferType::from_number(number).ok_or(Failure::Status(Status::BadArgument))
}

/// What can be read now. A body that is not there reads as an empty one; a callout's answer and the plugin's configuration are
/// only there in their own callbacks; the VM's configuration always is.
fn content(state: &VmState, buffer: BufferType) -> Result<&[u8], Status> {
    let stream = state
        .contexts
        .get(&state.acting())
        .and_then(|stream| state.streams.get(stream));
    let plugin = state.plugin();
    let vm_configuration = plugin.map_or(&[][..], |plugin| &plugin.vm_configuration);
    let configuration = plugin.filter(|_| state.callback == "proxy_on_configure");
    let configuration = configuration.map(|plugin| &plugin.configuration[..]);
    match buffer {
        BufferType::RequestBody => Ok(stream.map_or(&[], |stream| body(&stream.request))),
        BufferType::ResponseBody => Ok(stream.map_or(&[], |stream| body(&stream.response))),
        BufferType::HttpCallResponseBody => {
            let missing = missing_buffer(buffer).read;
            state.delivery.http_body.as_deref().ok_or(missing)
        }
        BufferType::GrpcReceiveMessage => {
            Ok(state.delivery.grpc_message.as_deref().unwrap_or_default())
        }
        BufferType::VmConfiguration => Ok(vm_configuration),
        BufferType::PluginConfiguration => configuration.ok_or(missing_buffer(buffer).read),
        BufferType::DownstreamData | BufferType::UpstreamData => Ok(&[]),
        // Envoy has no such buffer for a filter and shows the configuration that it read last.
        BufferType::CallData => Ok(configuration.unwrap_or(vm_configuration)),
    }
}

fn body(half: &Half) -> &[u8] {
    match half.body_view {
        BodyView::Hidden => &[],
        BodyView::Chunk => &half.chunk,
        BodyView::Buffered => half.buffer.as_deref().unwrap_or_default(),
    }
}

fn body_mut<'a>(
    guest: &'a mut Guest<'_, '_>,
    direction: Direction,
) -> Result<&'a mut Vec<u8>, Status> {
    let stream = guest
        .state_mut()
        .acting_stream()
        .ok_or(Status::BadArgument)?;
    let half = stream.half_mut(direction);
    let body = match half.body_view {
        BodyView::Hidden => None,
        BodyView::Chunk => Some(&mut half.chunk),
        BodyView::Buffered => half.buffer.as_mut(),
    };
    body.ok_or(Status::BadArgument)
}
