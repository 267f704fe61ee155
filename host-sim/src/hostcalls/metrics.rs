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
    let host = guest.state().host.clone();
    let metrics = &mut locked(&host.0.metrics);
    let id = guest.state_mut().metrics.define(metrics, name, kind);
    guest.write_u32(id_out, id)
}

pub(super) fn increment(guest: &mut Guest<'_, '_>, metric: u32, offset: i64) -> Answer {
    let state = guest.state();
    let metrics = &mut locked(&state.host.0.metrics);
    Ok(state.metrics.increment(metrics, metric, offset)?)
}

pub(super) fn record(guest: &mut Guest<'_, '_>, metric: u32, value: u64) -> Answer {
    let state = guest.state();
    let metrics = &mut locked(&state.host.0.metrics);
    Ok(state.metrics.record(metrics, metric, value)?)
}

pub(super) fn get(guest: &mut Guest<'_, '_>, metric: u32, value_out: u32) -> Answer {
    let state = guest.state();
    let value = state
        .metrics
        .get(&mut locked(&state.host.0.metrics), metric)?;
    guest.write_u64(value_out, value)
}
