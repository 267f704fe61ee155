//! Steering the stream of the acting context: go on, close, answer. All of it happens when the callback is over.

use crate::abi::{Direction, Status, pairs};
use crate::stream::{BodyView, LocalReply, StreamId};
use crate::vm::guest::{Answer, Guest};
use crate::vm::{Deferred, VmState};

pub(super) fn continue_stream(guest: &mut Guest<'_, '_>, stream: u32) -> Answer {
    match stream {
        0 => resume(guest, Direction::Request),
        1 => resume(guest, Direction::Response),
        // The two ways of a TCP connection, which an HTTP filter does not have.
        2 => Ok(()),
        3 => Err(Status::Unimplemented.into()),
        _ => Err(Status::BadArgument.into()),
    }
}

pub(super) fn continue_request(guest: &mut Guest<'_, '_>) -> Answer {
    resume(guest, Direction::Request)
}

pub(super) fn continue_response(guest: &mut Guest<'_, '_>) -> Answer {
    resume(guest, Direction::Response)
}

pub(super) fn clear_route_cache(_guest: &mut Guest<'_, '_>) -> Answer {
    Ok(())
}

pub(super) fn close_stream(guest: &mut Guest<'_, '_>, stream: u32) -> Answer {
    let direction = match stream {
        0 => Direction::Request,
        1 => Direction::Response,
        2 | 3 => return Ok(()),
        _ => return Err(Status::BadArgument.into()),
    };
    let state = guest.state_mut();
    state.stop_iteration = true;
    if let Some(stream) = stream_id(state) {
        state.deferred.push_back(Deferred::Close(stream, direction));
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the ABI's signature")]
pub(super) fn send_local_response(
    guest: &mut Guest<'_, '_>,
    status: u32,
    details: u32,
    details_size: u32,
    body: u32,
    body_size: u32,
    headers: u32,
    headers_size: u32,
    grpc_status: i32,
) -> Answer {
    let details = guest.text(details, details_size)?;
    let body = guest.read(body, body_size)?;
    let bytes = guest.read(headers, headers_size)?;
    let headers = pairs::read(&bytes).unwrap_or_default();
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect();
    guest.show(|| format!("{status}, {} bytes", body.len()));
    let reply = LocalReply {
        status,
        body,
        headers,
        grpc_status: (grpc_status >= 0).then_some(grpc_status),
        details: details.replace(' ', "_"),
        flag: 0,
    };
    let state = guest.state_mut();
    state.stop_iteration = true;
    // For a root context, Envoy answers Ok and does nothing.
    let Some(id) = stream_id(state) else {
        return Ok(());
    };
    state.deferred.push_back(Deferred::LocalReply(id, reply));
    Ok(())
}

/// Once it has resumed a stream, a filter does not see the request any more, whichever way it resumed. The response stays to be
/// seen. Source: `Context::continueStream` of Envoy, which forgets the request only.
fn resume(guest: &mut Guest<'_, '_>, direction: Direction) -> Answer {
    let state = guest.state_mut();
    let Some(id) = stream_id(state) else {
        return Ok(());
    };
    state.deferred.push_back(Deferred::Continue(id, direction));
    if let Some(stream) = state.acting_stream() {
        let request = &mut stream.request;
        request.headers_visible = false;
        request.trailers_visible = false;
        // A body that is being collected stays readable until it has gone on.
        if !request.buffering {
            request.body_view = BodyView::Hidden;
        }
    }
    Ok(())
}

fn stream_id(state: &VmState) -> Option<StreamId> {
    state.contexts.get(&state.acting()).copied()
}
