//! Calls each WASI function once at configuration and logs what the host answered.

use std::ptr;

use guests::abi;

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// Imports of module `wasi_snapshot_preview1` with the parameters that WASI defines.
mod wasi {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        pub fn args_get(list: *mut *mut u8, text: *mut u8) -> i32;
        pub fn args_sizes_get(count: *mut usize, size: *mut usize) -> i32;
        pub fn clock_res_get(id: u32, resolution: *mut u64) -> i32;
        pub fn clock_time_get(id: u32, precision: u64, time: *mut u64) -> i32;
        pub fn environ_get(list: *mut *mut u8, text: *mut u8) -> i32;
        pub fn environ_sizes_get(count: *mut usize, size: *mut usize) -> i32;
        pub fn fd_close(file: u32) -> i32;
        pub fn fd_fdstat_get(file: u32, status: *mut u8) -> i32;
        pub fn fd_fdstat_set_flags(file: u32, flags: u32) -> i32;
        pub fn fd_prestat_dir_name(file: u32, path: *mut u8, size: usize) -> i32;
        pub fn fd_prestat_get(file: u32, status: *mut u8) -> i32;
        pub fn fd_read(file: u32, parts: *const u8, count: usize, read: *mut usize) -> i32;
        pub fn fd_seek(file: u32, offset: i64, whence: u32, position: *mut u64) -> i32;
        pub fn fd_write(file: u32, parts: *const u8, count: usize, written: *mut usize) -> i32;
        pub fn path_filestat_get(
            file: u32,
            flags: u32,
            path: *const u8,
            size: usize,
            status: *mut u8,
        ) -> i32;
        pub fn path_open(
            file: u32,
            lookup: u32,
            path: *const u8,
            size: usize,
            flags: u32,
            rights: u64,
            inherited: u64,
            more: u32,
            opened: *mut u32,
        ) -> i32;
        pub fn poll_oneoff(
            wanted: *const u8,
            events: *mut u8,
            count: usize,
            happened: *mut usize,
        ) -> i32;
        pub fn random_get(bytes: *mut u8, size: usize) -> i32;
        pub fn sched_yield() -> i32;
    }
}

/// Says which ABI this guest speaks.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_abi_version_0_2_1() {}

/// Runs before all else.
#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    // SAFETY: the host calls this once.
    unsafe { __wasm_call_ctors() };
}

/// Memory for what the host hands over.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    abi::allocate(size)
}

/// A context came.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_context_create(_context: u32, _parent: u32) {}

/// The VM starts.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_vm_start(_context: u32, _size: usize) -> u32 {
    1
}

/// Asks all questions.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_configure(_context: u32, _size: usize) -> u32 {
    for (name, answer) in questions() {
        abi::log(&format!("| wasi {name} -> {answer}"));
    }
    let mut variables: Vec<(String, String)> = std::env::vars().collect();
    variables.sort(); // Envoy keeps no order.
    abi::log(&format!("| wasi environment {variables:?}"));
    println!("to standard output");
    eprintln!("to standard error");
    print!("unfinished, ");
    println!("finished");
    1
}

fn questions() -> Vec<(&'static str, String)> {
    let (mut count, mut size) = (9_usize, 9_usize);
    let (mut time, mut word) = (0_u64, 0_u32);
    let mut bytes = [0_u8; 64];
    let mut pointers = [ptr::null_mut::<u8>(); 16];
    let part = [(b"one ".as_ptr(), 4_usize), (b"two".as_ptr(), 3)];
    let mut large = vec![0_u8; 65_537];
    let path = b"/etc/hostname";
    // SAFETY: all pointers are to our own memory, with the sizes that WASI defines.
    unsafe {
        vec![
            ("args_sizes_get", {
                let errno = wasi::args_sizes_get(&mut count, &mut size);
                format!("{errno} count={count} size={size}")
            }),
            (
                "args_get",
                wasi::args_get(pointers.as_mut_ptr(), bytes.as_mut_ptr()).to_string(),
            ),
            ("environ_sizes_get", {
                let errno = wasi::environ_sizes_get(&mut count, &mut size);
                format!("{errno} count={count} size={size}")
            }),
            ("environ_get", {
                let mut text = vec![0_u8; size + 1];
                wasi::environ_get(pointers.as_mut_ptr(), text.as_mut_ptr()).to_string()
            }),
            ("clock_time_get realtime", {
                let errno = wasi::clock_time_get(0, 0, &mut time);
                format!("{errno} after 2023: {}", time > 1_700_000_000_000_000_000)
            }),
            ("clock_time_get monotonic", {
                time = 0;
                let errno = wasi::clock_time_get(1, 0, &mut time);
                format!("{errno} set: {}", time > 0)
            }),
            (
                "clock_time_get process",
                wasi::clock_time_get(2, 0, &mut time).to_string(),
            ),
            (
                "clock_time_get 9",
                wasi::clock_time_get(9, 0, &mut time).to_string(),
            ),
            (
                "clock_res_get realtime",
                wasi::clock_res_get(0, &mut time).to_string(),
            ),
            ("random_get 16", {
                let errno = wasi::random_get(bytes.as_mut_ptr(), 16);
                format!("{errno} set: {}", bytes[..16].iter().any(|byte| *byte != 0))
            }),
            (
                "random_get 0",
                wasi::random_get(bytes.as_mut_ptr(), 0).to_string(),
            ),
            (
                "random_get 65536",
                wasi::random_get(large.as_mut_ptr(), 65_536).to_string(),
            ),
            (
                "random_get 65537",
                wasi::random_get(large.as_mut_ptr(), 65_537).to_string(),
            ),
            (
                "random_get outside",
                wasi::random_get(abi::OUTSIDE as *mut u8, 16).to_string(),
            ),
            ("sched_yield", wasi::sched_yield().to_string()),
            ("fd_write 1", {
                let errno = wasi::fd_write(1, part.as_ptr().cast(), 2, &mut size);
                format!("{errno} written={size}")
            }),
            ("fd_write 2", {
                let errno = wasi::fd_write(2, part.as_ptr().cast(), 2, &mut size);
                format!("{errno} written={size}")
            }),
            (
                "fd_write 3",
                wasi::fd_write(3, part.as_ptr().cast(), 2, &mut size).to_string(),
            ),
            (
                "fd_write outside",
                wasi::fd_write(1, abi::OUTSIDE as *const u8, 2, &mut size).to_string(),
            ),
            (
                "fd_read 0",
                wasi::fd_read(0, part.as_ptr().cast(), 1, &mut size).to_string(),
            ),
            ("fd_close 1", wasi::fd_close(1).to_string()),
            ("fd_seek 1", wasi::fd_seek(1, 0, 0, &mut time).to_string()),
            ("fd_fdstat_get 1", {
                let errno = wasi::fd_fdstat_get(1, bytes.as_mut_ptr());
                format!("{errno} {:?}", &bytes[..24])
            }),
            (
                "fd_fdstat_get 0",
                wasi::fd_fdstat_get(0, bytes.as_mut_ptr()).to_string(),
            ),
            (
                "fd_fdstat_get 3",
                wasi::fd_fdstat_get(3, bytes.as_mut_ptr()).to_string(),
            ),
            (
                "fd_fdstat_set_flags 1",
                wasi::fd_fdstat_set_flags(1, 0).to_string(),
            ),
            (
                "fd_prestat_get 3",
                wasi::fd_prestat_get(3, bytes.as_mut_ptr()).to_string(),
            ),
            (
                "fd_prestat_dir_name 3",
                wasi::fd_prestat_dir_name(3, bytes.as_mut_ptr(), 8).to_string(),
            ),
            (
                "path_open",
                wasi::path_open(3, 0, path.as_ptr(), path.len(), 0, 0, 0, 0, &mut word).to_string(),
            ),
            (
                "path_filestat_get",
                wasi::path_filestat_get(3, 0, path.as_ptr(), path.len(), bytes.as_mut_ptr())
                    .to_string(),
            ),
            (
                "poll_oneoff",
                wasi::poll_oneoff([0_u8; 48].as_ptr(), [0_u8; 32].as_mut_ptr(), 1, &mut size)
                    .to_string(),
            ),
        ]
    }
}
