//! Counters, gauges and histograms.

use crate::abi::{MetricType, Status};
use crate::host::locked;
use crate::vm::guest::{Answer, Guest};

pub(super) fn define(
    guest: &mut Guest<'_, '_>,
    kind: u32,
    name: u32,
    name_size: u32,
    id_out: u32,
) -> Answer {
    let kind = MetricType::from_number(kind).ok_or(Status::BadArgument)?;
    let name = guest.text(name, name_size)?;
    guest.show(|| format!("{kind:?}, {name:?}"));
    let id = locked(&guest.state().host.0.metrics).define(name, kind);
    guest.write_u32(id_out, id)
}

pub(super) fn increment(guest: &mut Guest<'_, '_>, metric: u32, offset: i64) -> Answer {
    Ok(locked(&guest.state().host.0.metrics).increment(metric, offset)?)
}

pub(super) fn record(guest: &mut Guest<'_, '_>, metric: u32, value: u64) -> Answer {
    Ok(locked(&guest.state().host.0.metrics).record(metric, value)?)
}

pub(super) fn get(guest: &mut Guest<'_, '_>, metric: u32, value_out: u32) -> Answer {
    let value = locked(&guest.state().host.0.metrics).get(metric)?;
    guest.write_u64(value_out, value)
}
