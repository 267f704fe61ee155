//! The common part of a scripted guest: which callback came, what its script says, and the lines of the transcript.
//!
//! Each line starts with `|`, then the VM, the context that the host named, and the callback:
//!
//! ```text
//! | 3.2 request_headers(8,eos=1)
//! | 3.2   get resh x -> 1 null
//! ```
//!
//! The VM's number is its turn at starting, counted in shared data: one host starts VMs in the same order each time.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use crate::operation::{self, Outcome};
use crate::script::Script;
use crate::{abi, text};

/// All that a guest remembers.
#[derive(Default)]
struct State {
    /// The number of this VM.
    vm: u32,
    /// What the plugin configuration says.
    script: Script,
    /// Streams by context id.
    streams: BTreeMap<u32, Stream>,
    known: Known,
}

/// What earlier answers of the host gave, for later operations.
#[derive(Clone, Default)]
pub struct Known {
    /// Which context sent a callout, by token.
    pub owners: BTreeMap<u32, u32>,
    /// The newest stream.
    pub last_stream: u32,
    /// The newest token of a callout.
    pub token: u32,
    /// The newest id of a queue.
    pub queue: u32,
    /// The newest compare-and-swap number.
    pub cas: u32,
    /// Metrics by name.
    pub metrics: BTreeMap<String, u32>,
}

/// One context.
#[derive(Default)]
pub struct Stream {
    script: Script,
    turns: BTreeMap<&'static str, u32>,
}

/// One callback.
pub struct Frame {
    /// The context that the host named.
    pub context: u32,
    /// The context that sent the callout which is answered; else the same.
    pub owner: u32,
    /// The callback's name, as scripts write it.
    pub callback: &'static str,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// A callback with its arguments as text; returns what the script says, else `default`.
pub fn callback(context: u32, name: &'static str, arguments: &str, default: u32) -> u32 {
    act(
        Frame {
            context,
            owner: context,
            callback: name,
        },
        arguments,
        default,
    )
}

/// The same for the answer to a callout, whose script is that of the context that sent it.
pub fn answer(context: u32, token: u32, name: &'static str, arguments: &str) -> u32 {
    let owner = STATE.with_borrow(|state| state.known.owners.get(&token).copied());
    act(
        Frame {
            context,
            owner: owner.unwrap_or(context),
            callback: name,
        },
        arguments,
        0,
    )
}

/// No state is borrowed while the host is called: it may call back before it returns.
fn act(frame: Frame, arguments: &str, default: u32) -> u32 {
    prepare(&frame);
    let (vm, operations) = STATE.with_borrow_mut(|state| (state.vm, state.operations(&frame)));
    let head = format!("| {vm}.{}", frame.context);
    abi::log(&format!("{head} {}({arguments})", frame.callback));
    let mut result = default;
    let mut waiting = VecDeque::from(operations);
    while let Some(line) = waiting.pop_front() {
        let mut known = STATE.with_borrow(|state| state.known.clone());
        let outcome = operation::perform(&mut known, &frame, &line);
        STATE.with_borrow_mut(|state| state.known = known);
        match outcome {
            Outcome::Answer(answer) => {
                abi::log(&format!("{head}   {line} -> {answer}"));
            }
            Outcome::Return(number) => {
                abi::log(&format!("{head}   {line}"));
                result = number;
            }
            Outcome::Expanded(lines) => {
                lines
                    .into_iter()
                    .rev()
                    .for_each(|line| waiting.push_front(line));
            }
        }
    }
    if frame.callback == "delete" {
        STATE.with_borrow_mut(|state| state.streams.remove(&frame.context));
    }
    result
}

impl State {
    fn operations(&mut self, frame: &Frame) -> Vec<String> {
        let stream = self.streams.entry(frame.owner).or_default();
        let turn = stream.turns.entry(frame.callback).or_default();
        *turn += 1;
        let mut operations = self.script.operations(frame.callback, *turn);
        operations.extend(stream.script.operations(frame.callback, *turn));
        operations
    }
}

/// Learns what a callback brings before its script is looked up.
fn prepare(frame: &Frame) {
    match frame.callback {
        "vm_start" => {
            let vm = next_vm();
            STATE.with_borrow_mut(|state| state.vm = vm);
            read_script(6);
        }
        "configure" => read_script(7),
        "context_create" => {
            STATE.with_borrow_mut(|state| state.known.last_stream = frame.context);
        }
        "request_headers" => {
            let (_, told) = abi::value(0, b"x-do");
            let told = told.unwrap_or_default();
            STATE.with_borrow_mut(|state| {
                let stream = state.streams.entry(frame.context).or_default();
                stream
                    .script
                    .extend_from_header(&String::from_utf8_lossy(&told));
            });
        }
        _ => {}
    }
}

/// Reads a script from the VM's configuration or the plugin's.
fn read_script(buffer: u32) {
    let (_, data) = abi::buffer(buffer, 0, usize::MAX >> 1);
    let script = Script::from_lines(&String::from_utf8_lossy(&data.unwrap_or_default()));
    STATE.with_borrow_mut(|state| state.script = script);
}

/// Counts VMs in shared data.
fn next_vm() -> u32 {
    loop {
        let (_, data, cas) = abi::shared_data(b"guests.vm");
        let number = data.and_then(|data| String::from_utf8(data).ok()?.parse().ok());
        let number = number.unwrap_or(0_u32) + 1;
        if abi::set_shared_data(b"guests.vm", number.to_string().as_bytes(), cas_or_any(cas)) == 0 {
            return number;
        }
    }
}

fn cas_or_any(cas: u32) -> u32 {
    if cas == u32::MAX { 0 } else { cas }
}

/// Shows a panic as a line of the transcript before the trap.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        abi::log(&format!(
            "| panic: {}",
            text::show(panic.to_string().as_bytes())
        ));
    }));
}
