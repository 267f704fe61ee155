//! Shared data and queues.

use crate::host::locked;
use crate::vm::guest::{Answer, Guest};

pub(super) fn get_data(
    guest: &mut Guest<'_, '_>,
    key: u32,
    key_size: u32,
    value_out: u32,
    size_out: u32,
    cas_out: u32,
) -> Answer {
    let key = guest.read(key, key_size)?;
    guest.show(|| format!("\"{}\"", key.escape_ascii()));
    let vm_id = vm_id(guest);
    let (value, cas) = locked(&guest.state().host.0.data).get(&vm_id, &key)?;
    guest.give(&value, value_out, size_out)?;
    guest.write_u32(cas_out, cas)
}

pub(super) fn set_data(
    guest: &mut Guest<'_, '_>,
    key: u32,
    key_size: u32,
    value: u32,
    value_size: u32,
    cas: u32,
) -> Answer {
    let key = guest.read(key, key_size)?;
    let value = guest.read(value, value_size)?;
    guest.show(|| format!("\"{}\", {} bytes, {cas}", key.escape_ascii(), value.len()));
    let vm_id = vm_id(guest);
    Ok(locked(&guest.state().host.0.data).set(&vm_id, &key, value, cas)?)
}

pub(super) fn register_queue(
    guest: &mut Guest<'_, '_>,
    name: u32,
    name_size: u32,
    id_out: u32,
) -> Answer {
    let name = guest.read(name, name_size)?;
    guest.show(|| format!("\"{}\"", name.escape_ascii()));
    let vm_id = vm_id(guest);
    let state = guest.state();
    let reader = state.inbox.clone();
    let id = locked(&state.host.0.queues).register(&vm_id, &name, state.acting_root(), reader);
    guest.write_u32(id_out, id)
}

pub(super) fn resolve_queue(
    guest: &mut Guest<'_, '_>,
    vm: u32,
    vm_size: u32,
    name: u32,
    name_size: u32,
    id_out: u32,
) -> Answer {
    let other = guest.text(vm, vm_size)?;
    let name = guest.read(name, name_size)?;
    guest.show(|| format!("{other:?}, \"{}\"", name.escape_ascii()));
    // No id means the guest's own.
    let vm_id = if other.is_empty() {
        vm_id(guest)
    } else {
        other
    };
    let id = locked(&guest.state().host.0.queues).resolve(&vm_id, &name)?;
    guest.write_u32(id_out, id)
}

pub(super) fn enqueue(guest: &mut Guest<'_, '_>, queue: u32, message: u32, size: u32) -> Answer {
    let message = guest.read(message, size)?;
    Ok(locked(&guest.state().host.0.queues).enqueue(queue, message)?)
}

pub(super) fn dequeue(
    guest: &mut Guest<'_, '_>,
    queue: u32,
    message_out: u32,
    size_out: u32,
) -> Answer {
    let message = locked(&guest.state().host.0.queues).dequeue(queue)?;
    guest.give(&message, message_out, size_out)
}

fn vm_id(guest: &Guest<'_, '_>) -> String {
    let plugin = guest.state().plugin();
    plugin.map_or_else(String::new, |plugin| plugin.vm_id.clone())
}
