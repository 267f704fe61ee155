//! Logging, time, ticks, contexts.

use std::time::Duration;

use crate::abi::{LogLevel, Status};
use crate::vm::Deferred;
use crate::vm::guest::{Answer, Guest};

pub(super) fn log(guest: &mut Guest<'_, '_>, level: u32, text: u32, text_size: u32) -> Answer {
    let level = LogLevel::from_number(level).ok_or(Status::BadArgument)?;
    let text = guest.text(text, text_size)?;
    guest.show(|| format!("{}, {text:?}", level.name()));
    guest.state_mut().log(level, &text);
    Ok(())
}

pub(super) fn log_level(guest: &mut Guest<'_, '_>, level_out: u32) -> Answer {
    let level = guest.state().host.0.log_level();
    guest.write_u32(level_out, level as u32)
}

pub(super) fn status(
    guest: &mut Guest<'_, '_>,
    code_out: u32,
    text_out: u32,
    text_size_out: u32,
) -> Answer {
    let code = guest.state().status;
    let text = guest.state().delivery.status_message.clone();
    guest.write_u32(code_out, code)?;
    guest.give(text.as_bytes(), text_out, text_size_out)
}

pub(super) fn current_time(guest: &mut Guest<'_, '_>, time_out: u32) -> Answer {
    let now = guest.state().host.clock().wall_nanoseconds();
    guest.write_u64(time_out, now)
}

pub(super) fn set_tick_period(guest: &mut Guest<'_, '_>, period: u32) -> Answer {
    let state = guest.state_mut();
    let now = state.host.clock().now();
    let root = state.acting_root();
    let root = state.roots.get_mut(&root).ok_or(Status::BadArgument)?;
    root.tick_period = Duration::from_millis(period.into());
    root.next_tick = (period > 0).then(|| now.after(root.tick_period));
    Ok(())
}

pub(super) fn set_effective_context(guest: &mut Guest<'_, '_>, context: u32) -> Answer {
    let state = guest.state_mut();
    // 0 means the callback's own context again.
    let known =
        context == 0 || state.contexts.contains_key(&context) || state.roots.contains_key(&context);
    if !known {
        return Err(Status::BadArgument.into());
    }
    state.effective = context;
    Ok(())
}

pub(super) fn done(guest: &mut Guest<'_, '_>) -> Answer {
    let state = guest.state_mut();
    let acting = state.acting();
    let lingering = state.roots.get(&acting).is_some_and(|root| root.lingering);
    if !lingering {
        return Err(Status::NotFound.into());
    }
    state.deferred.push_back(Deferred::Done(acting));
    Ok(())
}
