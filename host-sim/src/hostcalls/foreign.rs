//! Functions that Envoy offers beyond the ABI.

use crate::abi::Status;
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
    let _arguments = guest.read(arguments, arguments_size)?;
    guest.show(|| format!("{name:?}"));
    match name.as_str() {
        // There is one route, so there is no cached choice to forget.
        "clear_route_cache" => guest.give(&[], results_out, size_out),
        _ => Err(Status::NotFound.into()),
    }
}
