//! The parts that `host-sim up` and the end-to-end tests start: a real Envoy as a child, and the demo upstream.
//!
//! Each part is started, awaited and stopped by whoever holds it; nothing here looks for processes by name.

mod envoy;
mod envoy_error;
mod envoy_log;
mod upstream;

pub use envoy::{EnvoyLaunch, EnvoyProcess};
pub use envoy_error::EnvoyError;
pub use envoy_log::NOT_EXECUTED;
pub use upstream::{ReceivedRequest, serve_upstream};
