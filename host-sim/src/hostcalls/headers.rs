//! Header maps: which one is meant, whether it is there in this phase, and what the answer is when it is not.
//! Source: `Context::getMap` and `getConstMap` of Envoy's `source/extensions/common/wasm/context.cc`.

use crate::abi::{AbiVersion, MapType, Status, pairs};
use crate::header_map::HeaderMap;
use crate::phases::{MISSING_MAP, MISSING_MAP_IN_LOG, MissingMap};
use crate::stream::{BodyView, Half};
use crate::vm::VmState;
use crate::vm::guest::{Answer, Failure, Guest};

pub(super) fn value(
    guest: &mut Guest<'_, '_>,
    map: u32,
    key: u32,
    key_size: u32,
    value_out: u32,
    size_out: u32,
) -> Answer {
    let map_type = map_type(map)?;
    let key = guest.read(key, key_size)?;
    guest.show(|| format!("{map_type:?}, {}", shown(&key)));
    let missing = missing(guest.state_mut());
    let Some(map) = readable(guest.state(), map_type) else {
        return Err(missing.value.into());
    };
    let value = first(map, &key).map(<[u8]>::to_vec);
    let value = match value {
        Some(value) => value,
        // Version 0.1.0 has no word for a missing key.
        None if abi(guest.state()) == AbiVersion::V0_1_0 => Vec::new(),
        None => return Err(Status::NotFound.into()),
    };
    guest.give(&value, value_out, size_out)
}

pub(super) fn pairs(guest: &mut Guest<'_, '_>, map: u32, pairs_out: u32, size_out: u32) -> Answer {
    let map_type = map_type(map)?;
    guest.show(|| format!("{map_type:?}"));
    let Some(map) = readable(guest.state(), map_type) else {
        return guest.give(&[], pairs_out, size_out);
    };
    let entries: Vec<_> = map.iter().collect();
    if entries.is_empty() {
        return guest.give(&[], pairs_out, size_out);
    }
    let bytes = pairs::encode(entries.into_iter());
    guest.give(&bytes, pairs_out, size_out)
}

pub(super) fn size(guest: &mut Guest<'_, '_>, map: u32, size_out: u32) -> Answer {
    let map_type = map_type(map)?;
    guest.show(|| format!("{map_type:?}"));
    // Envoy asks for the map as if it were to be changed, so a map that can only be read has no size.
    let map = writable(guest.state_mut(), map_type).ok_or(MISSING_MAP.size)?;
    let size = u32::try_from(map.byte_size()).unwrap_or(u32::MAX);
    guest.write_u32(size_out, size)
}

pub(super) fn add(
    guest: &mut Guest<'_, '_>,
    map: u32,
    key: u32,
    key_size: u32,
    value: u32,
    value_size: u32,
) -> Answer {
    change(
        guest,
        map,
        (key, key_size),
        (value, value_size),
        HeaderMap::add,
    )
}

pub(super) fn replace(
    guest: &mut Guest<'_, '_>,
    map: u32,
    key: u32,
    key_size: u32,
    value: u32,
    value_size: u32,
) -> Answer {
    change(
        guest,
        map,
        (key, key_size),
        (value, value_size),
        HeaderMap::set,
    )
}

pub(super) fn remove(guest: &mut Guest<'_, '_>, map: u32, key: u32, key_size: u32) -> Answer {
    let map_type = map_type(map)?;
    let key = guest.read(key, key_size)?;
    guest.show(|| format!("{map_type:?}, {}", shown(&key)));
    let map = writable(guest.state_mut(), map_type).ok_or(MISSING_MAP.change)?;
    map.remove(alias(map_type, &key));
    Ok(())
}

pub(super) fn set_pairs(guest: &mut Guest<'_, '_>, map: u32, pairs: u32, size: u32) -> Answer {
    let map_type = map_type(map)?;
    let bytes = guest.read(pairs, size)?;
    let new = pairs::decode(&bytes);
    guest.show(|| format!("{map_type:?}, {} pairs", new.len()));
    let map = writable(guest.state_mut(), map_type).ok_or(MISSING_MAP.change)?;
    map.replace_all(new);
    Ok(())
}

fn change(
    guest: &mut Guest<'_, '_>,
    map: u32,
    key: (u32, u32),
    value: (u32, u32),
    how: fn(&mut HeaderMap, &[u8], &[u8]),
) -> Answer {
    let map_type = map_type(map)?;
    let key = guest.read(key.0, key.1)?;
    let value = guest.read(value.0, value.1)?;
    guest.show(|| format!("{map_type:?}, {}, {}", shown(&key), shown(&value)));
    let map = writable(guest.state_mut(), map_type).ok_or(MISSING_MAP.change)?;
    how(map, alias(map_type, &key), &value);
    Ok(())
}

fn map_type(number: u32) -> Result<MapType, Failure> {
    MapType::from_number(number).ok_or(Failure::Status(Status::BadArgument))
}

/// `host` is another name for `:authority`, in the request's headers.
fn alias(map: MapType, key: &[u8]) -> &[u8] {
    if map == MapType::RequestHeaders && key.eq_ignore_ascii_case(b"host") {
        return b":authority";
    }
    key
}

fn first<'a>(map: &'a HeaderMap, key: &[u8]) -> Option<&'a [u8]> {
    let key = std::str::from_utf8(key).ok()?;
    map.first(key).or_else(|| {
        if key.eq_ignore_ascii_case("host") {
            map.first(":authority")
        } else {
            None
        }
    })
}

fn abi(state: &VmState) -> AbiVersion {
    state
        .plugin()
        .map_or(AbiVersion::V0_2_1, |plugin| plugin.module.abi())
}

fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// What is said about maps that are not there.
fn missing(state: &mut VmState) -> MissingMap {
    match state.acting_stream() {
        Some(stream) if stream.logging => MISSING_MAP_IN_LOG,
        Some(_) | None => MISSING_MAP,
    }
}

/// The map that can be read now, if it can.
fn readable(state: &VmState, map: MapType) -> Option<&HeaderMap> {
    let delivery = &state.delivery;
    let stream = state
        .contexts
        .get(&state.acting())
        .and_then(|stream| state.streams.get(stream));
    match map {
        MapType::RequestHeaders => {
            let stream = stream?;
            let visible = stream.logging || stream.request.headers_visible;
            stream.request.headers.as_ref().filter(|_| visible)
        }
        MapType::RequestTrailers => {
            let stream = stream?;
            let visible = !stream.logging && stream.request.trailers_visible;
            stream.request.trailers.as_ref().filter(|_| visible)
        }
        MapType::ResponseHeaders => {
            let stream = stream?;
            let visible = stream.logging || stream.response.headers_visible;
            stream.response.headers.as_ref().filter(|_| visible)
        }
        MapType::ResponseTrailers => {
            let stream = stream?;
            let visible = stream.logging || stream.response.trailers_visible;
            stream.response.trailers.as_ref().filter(|_| visible)
        }
        MapType::GrpcInitialMetadata => delivery.grpc_initial_metadata.as_ref(),
        MapType::GrpcTrailingMetadata => delivery.grpc_trailing_metadata.as_ref(),
        MapType::HttpCallResponseHeaders => delivery.http_headers.as_ref(),
        MapType::HttpCallResponseTrailers => delivery.http_trailers.as_ref(),
    }
}

/// The map that can be changed now, if one can.
fn writable(state: &mut VmState, map: MapType) -> Option<&mut HeaderMap> {
    let stream = state.acting_stream().filter(|stream| !stream.logging)?;
    match map {
        MapType::RequestHeaders => headers_of(&mut stream.request),
        MapType::RequestTrailers => trailers_of(&mut stream.request),
        MapType::ResponseHeaders => headers_of(&mut stream.response),
        MapType::ResponseTrailers => trailers_of(&mut stream.response),
        MapType::GrpcInitialMetadata
        | MapType::GrpcTrailingMetadata
        | MapType::HttpCallResponseHeaders
        | MapType::HttpCallResponseTrailers => None,
    }
}

fn headers_of(half: &mut Half) -> Option<&mut HeaderMap> {
    let visible = half.headers_visible;
    half.headers.as_mut().filter(|_| visible)
}

/// Trailers come into being when they are asked for at the end of a body.
fn trailers_of(half: &mut Half) -> Option<&mut HeaderMap> {
    if !half.trailers_visible && half.body_view != BodyView::Hidden && half.end_seen {
        half.trailers_visible = true;
        half.trailers_shown = true;
        half.trailers.get_or_insert_default();
    }
    let visible = half.trailers_visible;
    half.trailers.as_mut().filter(|_| visible)
}
