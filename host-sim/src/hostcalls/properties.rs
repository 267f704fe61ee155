//! Properties by path.

use crate::abi::Status;
use crate::stream::properties;
use crate::vm::guest::{Answer, Guest};

pub(super) fn get(
    guest: &mut Guest<'_, '_>,
    path: u32,
    path_size: u32,
    value_out: u32,
    size_out: u32,
) -> Answer {
    let path = guest.read(path, path_size)?;
    guest.show(|| format!("\"{}\"", path.escape_ascii()));
    let value = properties::value(guest.state(), &path)?;
    guest.give(&value, value_out, size_out)
}

pub(super) fn set(
    guest: &mut Guest<'_, '_>,
    path: u32,
    path_size: u32,
    value: u32,
    value_size: u32,
) -> Answer {
    let path = guest.read(path, path_size)?;
    let value = guest.read(value, value_size)?;
    guest.show(|| format!("\"{}\", {} bytes", path.escape_ascii(), value.len()));
    let stream = guest.state_mut().acting_stream().ok_or(Status::NotFound)?;
    stream.own_properties.insert(path, value);
    Ok(())
}
