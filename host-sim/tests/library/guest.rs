//! Guests for these tests: a module is put together from callbacks, and a callback from steps, which are lines of WAT.
//!
//! A guest tells what it was answered by logging it: `get(..)` logs `get x-one = 0 value`, status first. Texts stand in a step as
//! `@68656c6c6f@`, their bytes in hexadecimal, and become pointer and length when the module is put together.

use std::collections::BTreeMap;

use host_sim::Module;

/// `proxy_on_` and this: how many parameters, and what it returns unless a step says otherwise (`None` = it returns nothing).
const CALLBACKS: [(&str, usize, Option<u32>); 19] = [
    ("configure", 2, Some(1)),
    ("context_create", 2, None),
    ("delete", 1, None),
    ("done", 1, Some(1)),
    ("grpc_close", 3, None),
    ("grpc_receive", 3, None),
    ("grpc_receive_initial_metadata", 3, None),
    ("grpc_receive_trailing_metadata", 3, None),
    ("http_call_response", 5, None),
    ("log", 1, None),
    ("queue_ready", 2, None),
    ("request_body", 3, Some(0)),
    ("request_headers", 3, Some(0)),
    ("request_trailers", 2, Some(0)),
    ("response_body", 3, Some(0)),
    ("response_headers", 3, Some(0)),
    ("response_trailers", 2, Some(0)),
    ("tick", 1, None),
    ("vm_start", 2, Some(1)),
];

/// `proxy_` and this: the types of its parameters, `i` for 32 and `I` for 64 bits. All return a status.
pub const HOSTCALLS: [(&str, &str); 39] = [
    ("add_header_map_value", "iiiii"),
    ("call_foreign_function", "iiiiii"),
    ("close_stream", "i"),
    ("continue_stream", "i"),
    ("define_metric", "iiii"),
    ("dequeue_shared_queue", "iii"),
    ("done", ""),
    ("enqueue_shared_queue", "iii"),
    ("get_buffer_bytes", "iiiii"),
    ("get_buffer_status", "iii"),
    ("get_current_time_nanoseconds", "i"),
    ("get_header_map_pairs", "iii"),
    ("get_header_map_size", "ii"),
    ("get_header_map_value", "iiiii"),
    ("get_log_level", "i"),
    ("get_metric", "ii"),
    ("get_property", "iiii"),
    ("get_shared_data", "iiiii"),
    ("get_status", "iii"),
    ("grpc_call", "iiiiiiiiiiii"),
    ("grpc_cancel", "i"),
    ("grpc_close", "i"),
    ("grpc_send", "iiii"),
    ("grpc_stream", "iiiiiiiii"),
    ("http_call", "iiiiiiiiii"),
    ("increment_metric", "iI"),
    ("log", "iii"),
    ("record_metric", "iI"),
    ("register_shared_queue", "iii"),
    ("remove_header_map_value", "iii"),
    ("replace_header_map_value", "iiiii"),
    ("resolve_shared_queue", "iiiii"),
    ("send_local_response", "iiiiiiii"),
    ("set_buffer_bytes", "iiiii"),
    ("set_effective_context", "i"),
    ("set_header_map_pairs", "iii"),
    ("set_property", "iiii"),
    ("set_shared_data", "iiiii"),
    ("set_tick_period_milliseconds", "i"),
];

/// Where the host puts a pointer or a 32-bit number for the guest.
pub const OUT: &str = "(i32.const 16)";
/// Where the host puts a length.
pub const OUT_SIZE: &str = "(i32.const 20)";
/// Where the host puts a 64-bit number.
pub const OUT_WIDE: &str = "(i32.const 24)";

/// A module in the making.
#[derive(Clone)]
pub struct Guest {
    marker: &'static str,
    allocator: &'static str,
    callbacks: BTreeMap<&'static str, String>,
    more: String,
}

impl Guest {
    /// A module of ABI 0.2.1 that does nothing.
    pub fn new() -> Guest {
        Guest {
            marker: "proxy_abi_version_0_2_1",
            allocator: "malloc",
            callbacks: BTreeMap::new(),
            more: String::new(),
        }
    }

    /// The name of the allocator's export.
    pub fn allocator(mut self, export: &'static str) -> Guest {
        self.allocator = export;
        self
    }

    /// What `proxy_on_{callback}` does.
    pub fn on(mut self, callback: &'static str, steps: impl IntoIterator<Item = String>) -> Guest {
        let steps: Vec<String> = steps.into_iter().collect();
        let body = self.callbacks.entry(callback).or_default();
        body.push_str(&steps.join("\n"));
        self
    }

    /// More of the module's WAT.
    pub fn with(mut self, wat: &str) -> Guest {
        self.more.push_str(wat);
        self
    }

    /// The module, loaded.
    pub fn module(self) -> Module {
        let wat = self.wat();
        Module::from_bytes("guest", wat.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{wat}"))
    }

    /// The module as text.
    pub fn wat(self) -> String {
        let mut wat = String::from("(module\n");
        for (name, parameters) in HOSTCALLS {
            let types: String = parameters.chars().map(wide).collect();
            wat.push_str(&format!(
                "(import \"env\" \"proxy_{name}\" (func ${name} (param{types}) (result i32)))\n"
            ));
        }
        wat.push_str(&format!("(func (export \"{}\"))\n", self.marker));
        wat.push_str(&RUNTIME.replace("ALLOCATOR", self.allocator));
        for (name, steps) in &self.callbacks {
            wat.push_str(&callback(name, steps));
        }
        wat.push_str(&self.more);
        place_texts(&wat)
    }
}

fn wide(kind: char) -> &'static str {
    if kind == 'I' { " i64" } else { " i32" }
}

fn callback(name: &str, steps: &str) -> String {
    let (_, parameters, result) = CALLBACKS
        .into_iter()
        .find(|(known, _, _)| *known == name)
        .unwrap_or_else(|| panic!("no callback {name}"));
    let named: String = (0..parameters)
        .map(|n| format!(" (param $p{n} i32)"))
        .collect();
    let (declared, returned) = match result {
        Some(_) => (" (result i32)", "(local.get $result)"),
        None => ("", ""),
    };
    let default = result.unwrap_or(0);
    format!(
        "(global $times_{name} (mut i32) (i32.const 0))
         (func $on_{name} (export \"proxy_on_{name}\"){named}{declared}
           (local $result i32) (local $times i32)
           (local.set $result (i32.const {default}))
           (global.set $times_{name} (i32.add (global.get $times_{name}) (i32.const 1)))
           (local.set $times (global.get $times_{name}))
           {steps}
           {returned})\n"
    )
}

/// Puts each text behind the others into one data segment.
fn place_texts(wat: &str) -> String {
    const START: usize = 2048;
    let mut placed = String::new();
    let mut data = String::new();
    let mut size = 0;
    for (index, part) in wat.split('@').enumerate() {
        if index % 2 == 0 {
            placed.push_str(part);
            continue;
        }
        let length = part.len() / 2;
        placed.push_str(&format!(
            "(i32.const {}) (i32.const {length})",
            START + size
        ));
        for byte in part.as_bytes().chunks(2) {
            data.push('\\');
            data.push_str(std::str::from_utf8(byte).expect("hexadecimal"));
        }
        size += length;
    }
    assert!(START + size < 0x8000, "{size} bytes of texts are too many");
    format!("{placed}\n(data (i32.const {START}) \"{data}\"))")
}

/// Pointer and length of these bytes, as two arguments.
pub fn text(bytes: impl AsRef<[u8]>) -> String {
    let digits: String = bytes
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("@{digits}@")
}

/// Pointer and length of these pairs in the ABI's form.
pub fn pairs(pairs: &[(&str, &str)]) -> String {
    let size = |size: usize| u32::try_from(size).expect("small").to_le_bytes();
    let mut bytes = size(pairs.len()).to_vec();
    for (name, value) in pairs {
        bytes.extend(size(name.len()));
        bytes.extend(size(value.len()));
    }
    for (name, value) in pairs {
        bytes.extend(name.bytes().chain([0]).chain(value.bytes()).chain([0]));
    }
    text(bytes)
}

/// Logs `words` at info.
pub fn say(words: &str) -> String {
    say_at(2, words)
}

/// Logs `words` at a level.
pub fn say_at(level: u32, words: &str) -> String {
    format!("(drop (call $log (i32.const {level}) {}))", text(words))
}

/// Logs `label = NUMBER`.
pub fn say_number(label: &str, number: &str) -> String {
    format!("(call $report {} {number})", text(label))
}

/// What the callback returns.
pub fn give(number: u32) -> String {
    format!("(local.set $result (i32.const {number}))")
}

/// Only where the condition holds.
pub fn when(condition: &str, steps: impl IntoIterator<Item = String>) -> String {
    let steps: Vec<String> = steps.into_iter().collect();
    format!("(if {condition} (then {}))", steps.join("\n"))
}

/// Only in the call of this number, counted from 1 in each VM.
pub fn nth(number: u32, steps: impl IntoIterator<Item = String>) -> String {
    when(
        &format!("(i32.eq (local.get $times) (i32.const {number}))"),
        steps,
    )
}

/// Only in the call that is the last of its direction.
pub fn at_end(steps: impl IntoIterator<Item = String>) -> String {
    when("(local.get $p2)", steps)
}

/// Only for this context.
pub fn for_context(context: u32, steps: impl IntoIterator<Item = String>) -> String {
    when(
        &format!("(i32.eq (local.get $p0) (i32.const {context}))"),
        steps,
    )
}

/// A host function: `name` without `proxy_`, and its arguments. Logs `label = STATUS`.
pub fn ask(label: &str, name: &str, arguments: &str) -> String {
    format!("(call $report {} (call ${name} {arguments}))", text(label))
}

/// Like [`ask`], and the bytes that came back: `label = 0 bytes`, or `label = 0 null`.
pub fn ask_bytes(label: &str, name: &str, arguments: &str) -> String {
    format!(
        "(call $report_bytes {} (call ${name} {arguments} {OUT} {OUT_SIZE}))",
        text(label)
    )
}

/// Like [`ask`], and the 32-bit number that came back.
pub fn ask_number(label: &str, name: &str, arguments: &str) -> String {
    format!(
        "(call $report_number {} (call ${name} {arguments} {OUT}))",
        text(label)
    )
}

/// Like [`ask`], and the 64-bit number that came back.
pub fn ask_wide(label: &str, name: &str, arguments: &str) -> String {
    format!(
        "(call $report_wide {} (call ${name} {arguments} {OUT_WIDE}))",
        text(label)
    )
}

pub const REQUEST_HEADERS: u32 = 0;
pub const REQUEST_TRAILERS: u32 = 1;
pub const RESPONSE_HEADERS: u32 = 2;
pub const RESPONSE_TRAILERS: u32 = 3;
pub const GRPC_INITIAL_METADATA: u32 = 4;
pub const GRPC_TRAILING_METADATA: u32 = 5;
pub const CALL_HEADERS: u32 = 6;
pub const CALL_TRAILERS: u32 = 7;

pub const REQUEST_BODY: u32 = 0;
pub const RESPONSE_BODY: u32 = 1;
pub const CALL_BODY: u32 = 4;
pub const GRPC_MESSAGE: u32 = 5;
pub const VM_CONFIGURATION: u32 = 6;
pub const CONFIGURATION: u32 = 7;

pub const REQUEST: u32 = 0;
pub const RESPONSE: u32 = 1;

/// `get NAME = STATUS value`
pub fn get(map: u32, name: &str) -> String {
    let arguments = format!("(i32.const {map}) {}", text(name));
    ask_bytes(&format!("get {name}"), "get_header_map_value", &arguments)
}

/// `pairs = STATUS COUNT`; no bytes count as none.
pub fn count_pairs(map: u32) -> String {
    format!(
        "(call $report_count {} (call $get_header_map_pairs (i32.const {map}) {OUT} {OUT_SIZE}))",
        text("pairs")
    )
}

/// `size = STATUS BYTES`
pub fn map_size(map: u32) -> String {
    ask_number("size", "get_header_map_size", &format!("(i32.const {map})"))
}

/// `add NAME = STATUS`
pub fn add(map: u32, name: &str, value: &str) -> String {
    let arguments = format!("(i32.const {map}) {} {}", text(name), text(value));
    ask(&format!("add {name}"), "add_header_map_value", &arguments)
}

/// `replace NAME = STATUS`
pub fn replace(map: u32, name: &str, value: &str) -> String {
    let arguments = format!("(i32.const {map}) {} {}", text(name), text(value));
    ask(
        &format!("replace {name}"),
        "replace_header_map_value",
        &arguments,
    )
}

/// `remove NAME = STATUS`
pub fn remove(map: u32, name: &str) -> String {
    let arguments = format!("(i32.const {map}) {}", text(name));
    ask(
        &format!("remove {name}"),
        "remove_header_map_value",
        &arguments,
    )
}

/// `set pairs = STATUS`
pub fn set_pairs(map: u32, pairs: &str) -> String {
    ask(
        "set pairs",
        "set_header_map_pairs",
        &format!("(i32.const {map}) {pairs}"),
    )
}

/// `buffer = STATUS bytes`
pub fn buffer(kind: u32, start: u32, length: u32) -> String {
    let arguments = format!("(i32.const {kind}) (i32.const {start}) (i32.const {length})");
    ask_bytes("buffer", "get_buffer_bytes", &arguments)
}

/// `set buffer = STATUS`
pub fn set_buffer(kind: u32, start: u32, length: u32, bytes: &str) -> String {
    let range = format!("(i32.const {start}) (i32.const {length})");
    let arguments = format!("(i32.const {kind}) {range} {}", text(bytes));
    ask("set buffer", "set_buffer_bytes", &arguments)
}

/// `PATH = STATUS value`
pub fn property(path: &str) -> String {
    ask_bytes(path, "get_property", &text(path.replace('.', "\0")))
}

/// `PATH = STATUS NUMBER`, for values of eight bytes.
pub fn property_number(path: &str) -> String {
    let path_bytes = text(path.replace('.', "\0"));
    format!(
        "(call $report_pointed {} (call $get_property {path_bytes} {OUT} {OUT_SIZE}))",
        text(path)
    )
}

/// `reply = STATUS`
pub fn reply(status: u32, body: &str, headers: &[(&str, &str)]) -> String {
    reply_grpc(status, body, headers, -1)
}

/// `reply = STATUS`, with a gRPC status.
pub fn reply_grpc(status: u32, body: &str, headers: &[(&str, &str)], grpc_status: i32) -> String {
    let arguments = format!(
        "(i32.const {status}) {} {} {} (i32.const {grpc_status})",
        text(""),
        text(body),
        pairs(headers)
    );
    ask("reply", "send_local_response", &arguments)
}

/// `resume = STATUS`
pub fn resume(direction: u32) -> String {
    ask(
        "resume",
        "continue_stream",
        &format!("(i32.const {direction})"),
    )
}

/// `close = STATUS`
pub fn close(direction: u32) -> String {
    ask("close", "close_stream", &format!("(i32.const {direction})"))
}

/// `tick period = STATUS`
pub fn tick(milliseconds: u32) -> String {
    ask(
        "tick period",
        "set_tick_period_milliseconds",
        &format!("(i32.const {milliseconds})"),
    )
}

/// The pseudo-headers that a callout needs.
pub const HEAD: [(&str, &str); 3] = [
    (":method", "GET"),
    (":path", "/plane"),
    (":authority", "plane"),
];

/// `call = STATUS TOKEN`, with [`HEAD`]. The calling context is remembered for [`act_for_caller`].
pub fn call(cluster: &str, milliseconds: u32) -> String {
    call_with(cluster, &HEAD, "", milliseconds)
}

/// `call = STATUS TOKEN`
pub fn call_with(cluster: &str, headers: &[(&str, &str)], body: &str, milliseconds: u32) -> String {
    let arguments = format!(
        "{} {} {} {} (i32.const {milliseconds})",
        text(cluster),
        pairs(headers),
        text(body),
        pairs(&[])
    );
    format!(
        "{}\n(i32.store (i32.add (i32.const 0x8000) (i32.load {OUT})) (local.get $p0))",
        ask_number("call", "http_call", &arguments)
    )
}

/// `act = STATUS`: acts for another context until the callback ends.
pub fn act_for(context: u32) -> String {
    ask(
        "act",
        "set_effective_context",
        &format!("(i32.const {context})"),
    )
}

/// In a callout's callback: acts for the context that made it, without a word.
pub fn act_for_caller() -> String {
    "(drop (call $set_effective_context (i32.load (i32.add (i32.const 0x8000) (local.get $p1)))))"
        .to_owned()
}

/// Ends the VM.
pub fn trap() -> String {
    "(unreachable)".to_owned()
}

/// Memory, allocator and the functions that write what was answered.
const RUNTIME: &str = r#"
(memory (export "memory") 4)
(global $heap (mut i32) (i32.const 0x20000))
(global $line (mut i32) (i32.const 0))
(func $allocate (export "ALLOCATOR") (param $size i32) (result i32) (local $at i32) (local $held i32)
  (local.set $at (global.get $heap))
  (global.set $heap (i32.and (i32.add (i32.add (local.get $at) (local.get $size)) (i32.const 7)) (i32.const -8)))
  (local.set $held (i32.mul (memory.size) (i32.const 65536)))
  (if (i32.gt_u (global.get $heap) (local.get $held))
    (then (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1)
        (i32.div_u (i32.sub (global.get $heap) (local.get $held)) (i32.const 65536)))))
      (then (unreachable)))))
  (local.get $at))
(func $put (param $from i32) (param $size i32)
  (if (i32.gt_u (local.get $size) (i32.const 20000)) (then (local.set $size (i32.const 20000))))
  (memory.copy (i32.add (i32.const 0x10000) (global.get $line)) (local.get $from) (local.get $size))
  (global.set $line (i32.add (global.get $line) (local.get $size))))
(func $put_byte (param $byte i32)
  (i32.store8 (i32.add (i32.const 0x10000) (global.get $line)) (local.get $byte))
  (global.set $line (i32.add (global.get $line) (i32.const 1))))
(func $put_number (param $number i64)
  (if (i64.ge_u (local.get $number) (i64.const 10))
    (then (call $put_number (i64.div_u (local.get $number) (i64.const 10)))))
  (call $put_byte (i32.wrap_i64 (i64.add (i64.rem_u (local.get $number) (i64.const 10)) (i64.const 48)))))
(func $put_null
  (call $put_byte (i32.const 110)) (call $put_byte (i32.const 117))
  (call $put_byte (i32.const 108)) (call $put_byte (i32.const 108)))
(func $end_line
  (drop (call $log (i32.const 2) (i32.const 0x10000) (global.get $line)))
  (global.set $line (i32.const 0)))
(func $begin (param $label i32) (param $size i32) (param $status i32)
  (call $put (local.get $label) (local.get $size))
  (call $put_byte (i32.const 32)) (call $put_byte (i32.const 61)) (call $put_byte (i32.const 32))
  (call $put_number (i64.extend_i32_u (local.get $status)))
  (if (i32.eqz (local.get $status)) (then (call $put_byte (i32.const 32)))))
(func $report (param $label i32) (param $size i32) (param $status i32)
  (call $begin (local.get $label) (local.get $size) (local.get $status))
  (if (i32.eqz (local.get $status)) (then (global.set $line (i32.sub (global.get $line) (i32.const 1)))))
  (call $end_line))
(func $report_bytes (param $label i32) (param $size i32) (param $status i32)
  (call $begin (local.get $label) (local.get $size) (local.get $status))
  (if (i32.eqz (local.get $status)) (then
    (if (i32.load (i32.const 16))
      (then (call $put (i32.load (i32.const 16)) (i32.load (i32.const 20))))
      (else (call $put_null)))))
  (call $end_line))
(func $report_number (param $label i32) (param $size i32) (param $status i32)
  (call $begin (local.get $label) (local.get $size) (local.get $status))
  (if (i32.eqz (local.get $status)) (then (call $put_number (i64.extend_i32_u (i32.load (i32.const 16))))))
  (call $end_line))
(func $report_wide (param $label i32) (param $size i32) (param $status i32)
  (call $begin (local.get $label) (local.get $size) (local.get $status))
  (if (i32.eqz (local.get $status)) (then (call $put_number (i64.load (i32.const 24)))))
  (call $end_line))
(func $report_pointed (param $label i32) (param $size i32) (param $status i32)
  (call $begin (local.get $label) (local.get $size) (local.get $status))
  (if (i32.eqz (local.get $status)) (then (call $put_number (i64.load (i32.load (i32.const 16))))))
  (call $end_line))
(func $report_count (param $label i32) (param $size i32) (param $status i32)
  (call $begin (local.get $label) (local.get $size) (local.get $status))
  (if (i32.eqz (local.get $status)) (then
    (if (i32.load (i32.const 20))
      (then (call $put_number (i64.extend_i32_u (i32.load (i32.load (i32.const 16))))))
      (else (call $put_null)))))
  (call $end_line))
"#;
