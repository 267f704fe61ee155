//! Guests: small proxy-wasm modules that ask a host questions and print what it answered.
//!
//! A guest proves nothing by itself. The scenarios in `tests/cases/guests/scenarios` run each one on a host and compare its
//! transcript, line by line, with the one recorded on Envoy. So a rule of the simulator is Envoy's rule, and a changed rule shows
//! as one differing line.
//!
//! # The guests
//!
//! | guest | written with | asks |
//! | --- | --- | --- |
//! | `scripted` | raw imports | whatever its plugin configuration and the header `x-do` say, in every callback |
//! | `wasi` | raw imports | every WASI function once |
//! | `hello_world`, `http_auth`, `grpc_auth` | SDK | the SDK's own examples, re-created without chance |
//! | `body_rewriter`, `ticks_counter` | SDK | what filters of other authors do: bodies; ticks, metrics, a queue |
//! | `wat/*.wat` | WAT | what no SDK can build: ABI versions, missing exports, unknown imports, early traps |
//!
//! # Building
//!
//! ```text
//! cargo build --release --target wasm32-wasip1 --examples
//! ```
//!
//! Modules lie in `target/wasm32-wasip1/release/examples/<guest>.wasm`; `GUESTS_DIR` tells the cases where. WAT files go to a
//! host through any WAT compiler; wasmtime reads them as they are.
//!
//! # Transcripts
//!
//! Each line starts with `|`, so that a runner finds it in a host's log. `scripted` adds the number of the VM, the context, and
//! what was asked: `| 3.2   get reqh x-one -> 0 "1"` is status 0 with a value, in context 2 of the third VM that started.
//! A guest never prints a value that two runs cannot share: [`text`] hides the known headers, and the operations `prop?` (size
//! only) and `prop!` (status only) ask for volatile properties.
//!
//! # Reading order
//!
//! [`script`] (the language), [`operation`] (what each word does), [`guest`] (callbacks and transcript), [`matrix`] (long
//! lists), [`names`], [`text`], [`abi`] (the imports).
//!
//! Nothing here knows a host; `abi` alone is unsafe.

pub mod abi;
pub mod guest;
pub mod matrix;
pub mod names;
pub mod operation;
pub mod script;
pub mod text;
