//! Functions that Envoy offers beyond the ABI. Source: `source/extensions/common/wasm/foreign.cc`.

use crate::abi::{Status, protobuf};
use crate::vm::guest::{Answer, Guest};

pub(super) fn call(
    guest: &mut Guest<'_, '_>,
    name: u32,
    name_size: u32,
    arguments: u32,
    arguments_size: u32,
    results_out: u32,
    size_out: u32,
) -> Answer {
    let name = guest.text(name, name_size)?;
    let arguments = guest.read(arguments, arguments_size)?;
    guest.show(|| format!("{name:?}, {} bytes", arguments.len()));
    let results = match name.as_str() {
        // There is one route, so there is no cached choice to forget.
        "clear_route_cache" => Vec::new(),
        "compress" => miniz_oxide::deflate::compress_to_vec_zlib(&arguments, ZLIB_LEVEL),
        "uncompress" => uncompress(&arguments)?,
        "declare_property" => declare_property(guest, &arguments)?,
        // The kinds of filter state that Envoy's own extensions know; this host has none of them.
        "set_envoy_filter_state" if protobuf::is_message(&arguments) => {
            return Err(Status::NotFound.into());
        }
        // This host has no CEL, so it takes no expression; and no keys to sign with.
        "expr_create" | "set_envoy_filter_state" | "sign" | "verify_signature" => {
            return Err(Status::BadArgument.into());
        }
        _ => return Err(Status::NotFound.into()),
    };
    guest.give(&results, results_out, size_out)
}

fn uncompress(bytes: &[u8]) -> Result<Vec<u8>, Status> {
    miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, MAX_UNCOMPRESSED_BYTES)
        .map_err(|_| Status::SerializationFailure)
}

/// Declares a property that filters set. A name can be declared once.
fn declare_property(guest: &mut Guest<'_, '_>, arguments: &[u8]) -> Result<Vec<u8>, Status> {
    if !protobuf::is_message(arguments) {
        return Err(Status::BadArgument);
    }
    let name = protobuf::field(arguments, 1).unwrap_or_default();
    if !guest.state_mut().declared_properties.insert(name.to_vec()) {
        return Err(Status::BadArgument);
    }
    Ok(Vec::new())
}

const ZLIB_LEVEL: u8 = 6;
/// Keeps a small input from filling this process.
const MAX_UNCOMPRESSED_BYTES: usize = 64 << 20;
