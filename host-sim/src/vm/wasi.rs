//! The part of WASI that modules import: output goes to the log, time and randomness come from the host, there are no files.
//! Source: `wasi_snapshot_preview1` and, for ABI 0.1.0, `wasi_unstable`; answers as in `exports.cc` of proxy-wasm-cpp-host.

use wasmtime::{Caller, Linker};

use super::VmState;
use super::guest::{Failure, Guest};
use crate::abi::LogLevel;
use crate::trace::Entry;

/// Links all functions under both names of the module.
pub(crate) fn link(linker: &mut Linker<VmState>) -> wasmtime::Result<()> {
    for module in ["wasi_snapshot_preview1", "wasi_unstable"] {
        link_as(linker, module)?;
    }
    // Emscripten's modules tell when their memory grows, and compare threads that are always the same one.
    linker.func_wrap("env", "emscripten_notify_memory_growth", |_: u32| {})?;
    linker.func_wrap("env", "pthread_equal", |left: u32, right: u32| {
        u32::from(left == right)
    })?;
    Ok(())
}

/// An error number of WASI.
type Errno = u32;

const SUCCESS: Errno = 0;
const BAD_DESCRIPTOR: Errno = 8;
const FAULT: Errno = 21;
const INVALID: Errno = 28;
const NO_ENTRY: Errno = 44;
const NOT_IMPLEMENTED: Errno = 52;
const NOT_SUPPORTED: Errno = 58;

/// Envoy stops a guest that calls one of these before `_initialize` or `_start` has returned. The others may be called.
const NOT_WHILE_STARTING: [&str; 6] = [
    "fd_close",
    "fd_read",
    "fd_seek",
    "path_open",
    "proc_exit",
    "sched_yield",
];

/// More random bytes than this are refused, as in Envoy.
const MAX_RANDOM_BYTES: u32 = 64 * 1024;

macro_rules! wasi {
    ($($name:literal ($($argument:ident: $ty:ty),*) => $body:expr;)*) => {
        fn link_as(linker: &mut Linker<VmState>, module: &str) -> wasmtime::Result<()> {
            $(linker.func_wrap(module, $name, |mut caller: Caller<'_, VmState>, $($argument: $ty),*| {
                around(&mut caller, $name, |guest| {
                    let body: fn(&mut Guest<'_, '_>, $($ty),*) -> Result<Errno, Failure> = $body;
                    body(guest, $($argument),*)
                })
            })?;)*
            // Envoy lets the guest run on, into the `unreachable` that compilers put behind the call.
            linker.func_wrap(module, "proc_exit", |mut caller: Caller<'_, VmState>, _code: u32| {
                around(&mut caller, "proc_exit", |_| Ok(SUCCESS)).map(|_| ())
            })?;
            Ok(())
        }
    };
}

wasi! {
    "args_get" (_argv: u32, _buffer: u32) => |_, _, _| Ok(SUCCESS);
    "args_sizes_get" (count_out: u32, size_out: u32) => |guest, count_out, size_out| sizes(guest, count_out, size_out, 0, 0);
    "clock_res_get" (_clock: u32, _out: u32) => |_, _, _| Ok(SUCCESS);
    "clock_time_get" (clock: u32, _precision: u64, time_out: u32) => |guest, clock, _, time_out| time(guest, clock, time_out);
    "environ_get" (array: u32, buffer: u32) => environment;
    "environ_sizes_get" (count_out: u32, size_out: u32) => environment_sizes;
    "fd_close" (_fd: u32) => |_, _| Ok(SUCCESS);
    "fd_fdstat_get" (fd: u32, out: u32) => descriptor_status;
    "fd_fdstat_set_flags" (_fd: u32, _flags: u32) => |_, _, _| Ok(NOT_IMPLEMENTED);
    "fd_prestat_dir_name" (_fd: u32, _path: u32, _size: u32) => |_, _, _, _| Ok(NOT_IMPLEMENTED);
    "fd_prestat_get" (_fd: u32, _out: u32) => |_, _, _| Ok(BAD_DESCRIPTOR);
    "fd_read" (_fd: u32, _vectors: u32, _count: u32, _out: u32) => |_, _, _, _, _| Ok(NOT_IMPLEMENTED);
    "fd_readdir" (_fd: u32, _buffer: u32, _size: u32, _cookie: u64, _out: u32) => |_, _, _, _, _, _| Ok(NOT_IMPLEMENTED);
    "fd_seek" (_fd: u32, _offset: i64, _whence: u32, _out: u32) => |_, _, _, _, _| Ok(SUCCESS);
    "fd_write" (fd: u32, vectors: u32, count: u32, out: u32) => write;
    "path_create_directory" (_fd: u32, _path: u32, _size: u32) => |_, _, _, _| Ok(NOT_IMPLEMENTED);
    "path_filestat_get" (_fd: u32, _flags: u32, _path: u32, _size: u32, _out: u32) => |_, _, _, _, _, _| Ok(NOT_SUPPORTED);
    "path_open" (
        _fd: u32, _dirflags: u32, _path: u32, _size: u32, _oflags: u32, _rights: i64, _inheriting: i64, _fdflags: u32, _out: u32
    ) => |_, _, _, _, _, _, _, _, _, _| Ok(NO_ENTRY);
    "path_remove_directory" (_fd: u32, _path: u32, _size: u32) => |_, _, _, _| Ok(NOT_IMPLEMENTED);
    "path_rename" (_fd: u32, _old: u32, _old_size: u32, _to: u32, _new: u32, _new_size: u32) => |_, _, _, _, _, _, _| Ok(NOT_IMPLEMENTED);
    "path_unlink_file" (_fd: u32, _path: u32, _size: u32) => |_, _, _, _| Ok(NOT_IMPLEMENTED);
    "poll_oneoff" (_in: u32, _out: u32, _count: u32, _events: u32) => |_, _, _, _, _| Ok(SUCCESS);
    "random_get" (buffer: u32, size: u32) => random;
    "sched_yield" () => |_| Ok(SUCCESS);
}

fn around(
    caller: &mut Caller<'_, VmState>,
    name: &'static str,
    body: impl FnOnce(&mut Guest<'_, '_>) -> Result<Errno, Failure>,
) -> wasmtime::Result<Errno> {
    let mut guest = Guest::new(caller);
    let state = guest.state_mut();
    state.trace.counted(state.callback, name);
    let outcome = if state.starting && NOT_WHILE_STARTING.contains(&name) {
        Err(Failure::too_early(name, state.callback))
    } else {
        body(&mut guest)
    };
    let errno = match outcome {
        Ok(errno) => errno,
        // The only status here: a pointer outside of the memory.
        Err(Failure::Status(_)) => FAULT,
        Err(Failure::Stop(reason)) => {
            guest.state_mut().misused = Some(name);
            return Err(wasmtime::Error::msg(reason));
        }
    };
    let state = guest.state_mut();
    if state.trace.is_recording() {
        state.trace.push(Entry::Hostcall {
            name,
            arguments: String::new(),
            answer: errno.to_string(),
        });
    }
    Ok(errno)
}

fn sizes(
    guest: &mut Guest<'_, '_>,
    count_out: u32,
    size_out: u32,
    count: usize,
    size: usize,
) -> Result<Errno, Failure> {
    guest.write_u32(count_out, u32::try_from(count).unwrap_or(u32::MAX))?;
    guest.write_u32(size_out, u32::try_from(size).unwrap_or(u32::MAX))?;
    Ok(SUCCESS)
}

fn variables(guest: &Guest<'_, '_>) -> Vec<Vec<u8>> {
    let variables = guest.state().environment.iter();
    variables
        .map(|(name, value)| format!("{name}={value}\0").into_bytes())
        .collect()
}

fn environment_sizes(
    guest: &mut Guest<'_, '_>,
    count_out: u32,
    size_out: u32,
) -> Result<Errno, Failure> {
    let variables = variables(guest);
    let size = variables.iter().map(Vec::len).sum();
    sizes(guest, count_out, size_out, variables.len(), size)
}

fn environment(guest: &mut Guest<'_, '_>, array: u32, buffer: u32) -> Result<Errno, Failure> {
    let (mut place, mut content) = (array, buffer);
    for variable in variables(guest) {
        guest.write_u32(place, content)?;
        guest.write(content, &variable)?;
        place = place.wrapping_add(4);
        content = content.wrapping_add(u32::try_from(variable.len()).unwrap_or(u32::MAX));
    }
    Ok(SUCCESS)
}

fn time(guest: &mut Guest<'_, '_>, clock: u32, time_out: u32) -> Result<Errno, Failure> {
    let clocks = guest.state().host.clock();
    let time = match clock {
        0 => clocks.wall_nanoseconds(),
        1 => clocks.now().0,
        _ => return Ok(NOT_SUPPORTED),
    };
    guest.write_u64(time_out, time)?;
    Ok(SUCCESS)
}

fn random(guest: &mut Guest<'_, '_>, buffer: u32, size: u32) -> Result<Errno, Failure> {
    if size > MAX_RANDOM_BYTES {
        return Ok(INVALID);
    }
    let mut bytes = vec![0; size as usize];
    if !guest.state().host.0.fill_random(&mut bytes) {
        return Ok(NOT_IMPLEMENTED);
    }
    guest.write(buffer, &bytes)?;
    Ok(SUCCESS)
}

fn descriptor_status(guest: &mut Guest<'_, '_>, fd: u32, out: u32) -> Result<Errno, Failure> {
    if fd != 1 && fd != 2 {
        return Ok(BAD_DESCRIPTOR);
    }
    // Of an unknown kind, with the right to write.
    guest.write_u64(out, 0)?;
    guest.write_u64(out.wrapping_add(8), 64)?;
    guest.write_u64(out.wrapping_add(16), 0)?;
    Ok(SUCCESS)
}

/// Standard output becomes log lines at `info`, standard error at `error`.
fn write(
    guest: &mut Guest<'_, '_>,
    fd: u32,
    vectors: u32,
    count: u32,
    out: u32,
) -> Result<Errno, Failure> {
    let level = match fd {
        1 => LogLevel::Info,
        2 => LogLevel::Error,
        _ => return Ok(BAD_DESCRIPTOR),
    };
    let mut text = Vec::new();
    for index in 0..count {
        let vector = guest.read(vectors.wrapping_add(index.wrapping_mul(8)), 8)?;
        let number = |bytes: &[u8]| {
            let bytes = bytes.try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let (pointer, size) = (number(&vector[..4]), number(&vector[4..]));
        text.extend(guest.read(pointer, size)?);
    }
    let written = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let text = String::from_utf8_lossy(&text);
    guest.state_mut().log(level, text.trim_end_matches('\n'));
    guest.write_u32(out, written)?;
    Ok(SUCCESS)
}
