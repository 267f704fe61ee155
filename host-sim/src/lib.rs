//! A native host for proxy-wasm filters that behaves as Envoy does. It runs the very `.wasm` file that Envoy would load, inside
//! `cargo test` and without a socket, or as a [local proxy](#a-local-proxy).
//!
//! # From nothing to a passing test in five minutes
//!
//! You need Rust and its WebAssembly target: `rustup target add wasm32-wasip1`. Make a filter, `cargo new --lib hello-filter`,
//! and let its `Cargo.toml` say:
//!
//! ```toml
//! [package]
//! name = "hello-filter"
//! version = "0.1.0"
//! edition = "2024"
//!
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! log = "0.4"
//! proxy-wasm = "0.2"
//!
//! [target.'cfg(not(target_family = "wasm"))'.dev-dependencies]
//! host-sim = { path = "/path/to/this/repository/host-sim" }
//! ```
//!
//! The filter asks a cluster `auth` about each request, and answers 403 where that says no. `src/lib.rs`:
//!
//! ```ignore
#![doc = include_str!("../examples/hello-filter/src/lib.rs")]
//! ```
//!
//! The test loads the compiled filter and plays everything around it: the client, the cluster, the upstream and the clock.
//! `tests/hello.rs`:
//!
//! ```no_run
#![doc = include_str!("../examples/hello-filter/tests/hello.rs")]
//! ```
//!
//! Build the module, then run the test:
//!
//! ```console
//! $ cargo build --release --target wasm32-wasip1
//! $ cargo test
//! ```
//!
//! The first build of this library takes some minutes, since it brings a WebAssembly compiler; later ones take seconds, and compiled
//! modules are kept in `~/.cache/host-sim` (or where `HOST_SIM_CACHE_DIR` says).
//!
//! # What a test can do
//!
//! | | |
//! | --- | --- |
//! | send a request whole, or piece by piece | [`sim::Request`], [`sim::Stream::send_body`], [`sim::Stream::send_trailers`] |
//! | see what became of it | [`sim::Stream::is_paused`], [`upstream_request`](sim::Stream::upstream_request), [`response`](sim::Stream::response), [`was_reset`](sim::Stream::was_reset) |
//! | answer as the upstream, or fail as it | [`sim::Stream::respond`], [`sim::Stream::fail_upstream`] |
//! | answer callouts: late, never, out of order, broken | [`sim::Sim::callout`], [`sim::Callout::answer`], [`refuse_connection`](sim::Callout::refuse_connection), [`reset`](sim::Callout::reset) |
//! | speak gRPC to the filter | [`sim::Sim::grpc_calls`] |
//! | let time pass: ticks and time-outs happen by themselves, in order | [`sim::Sim::advance`] |
//! | let a client leave | [`sim::Stream::disconnect`] |
//! | run several workers, lose a compare-and-swap, jump the clock | [`sim::SimBuilder::workers`], [`sim::Sim::lose_shared_writes`], [`sim::Sim::jump_wall_clock`] |
//! | crash a VM and see what its policy does | [`sim::Sim::trap_in`], [`FailurePolicy`], [`sim::Sim::failure`] |
//! | give a new configuration | [`sim::Sim::reconfigure`] |
//! | read logs, metrics, shared data, memory | [`sim::Sim::log`], [`sim::Sim::metric`], [`Host::shared_data`], [`sim::Sim::memory_bytes`] |
//! | count host functions, or keep the whole trace and compare it | [`sim::Sim::trace`], [`sim::SimBuilder::record_trace`] |
//!
//! # What "as Envoy does" means
//!
//! The rules were measured on Envoy 1.40 with V8, not read from the specification: which map, buffer and property can be read in
//! which callback and with which status, what a pause in each callback does to headers, bodies and trailers, in which order
//! contexts end, what a local reply looks like to an HTTP and to a gRPC client. The guests that measure them are in `tests/guests`
//! of the repository; its tests run the same guests here and on a real Envoy and compare line by line.
//!
//! Three of the rules that surprise most authors:
//!
//! * With the default settings, a pause in the headers callback stops the body too: no body callback comes until the filter
//!   resumes. [`Plugin::allow_on_headers_stop_iteration`] changes that, and then a filter has to pause in its body and trailers
//!   callbacks as well, or the request goes on.
//! * A request with trailers has no body callback with `end_of_stream`. The trailers callback is its end.
//! * A local reply passes the filter's own response callbacks.
//!
//! # A local proxy
//!
//! With the feature `proxy`, the same code serves real sockets: see the module `proxy`, and `host-sim proxy --help` for the
//! command that needs no code at all.
//!
//! # What it does not do
//!
//! TCP filters (`proxy_on_new_connection` and what belongs to it) and several filters in one chain, but for what lets a route's own answer
//! reach the guest bit by bit ([`Pace`]). A guest that never returns is
//! not interrupted; neither does Envoy. Of Envoy's foreign functions the CEL expressions (`expr_create` and its siblings) answer
//! `BadArgument` and signatures too; no filter state but what the filter itself sets.
//!
//! Where a guest makes Envoy 1.40 crash (a local reply from `proxy_on_log` or later, resuming the response in the request's headers,
//! a gRPC callout to an empty name, a module without memory), this host refuses the module or leaves the call without effect.
//! What the proxy does otherwise stands in a table on its own page.

mod abi;
mod callout;
mod clock;
mod error;
mod header_map;
mod host;
mod hostcalls;
mod metadata;
mod module;
mod output;
pub mod phases;
mod plugin;
#[cfg(feature = "proxy")]
pub mod proxy;
pub mod sim;
mod stream;
mod topology;
mod trace;
mod vm;
mod worker;

pub use abi::{AbiVersion, BufferType, Direction, LogLevel, MapType, MetricType, Status};
pub use callout::{CalloutId, CalloutOutcome, GrpcEvent};
pub use clock::{Clock, Moment};
pub use error::{GuestFailure, LoadError};
pub use header_map::HeaderMap;
pub use host::{ClusterHealth, Host, LogLine, Metric, Metrics, NodeInfo};
pub use metadata::{Metadata, MetadataValue};
pub use module::Module;
pub use output::{GrpcCallout, HttpCallout, Output};
pub use plugin::{FailurePolicy, Plugin};
pub use stream::{
    Certificate, DirectResponse, Pace, Protocol, StreamId, StreamInfo, StreamLimits, UpstreamInfo,
};
pub use trace::{Difference, Entry, Trace};
pub use worker::{UpstreamFailure, Worker};
