//! The parts that `host-sim up` and the end-to-end tests start: a real Envoy as a child, and the demo upstream.
//!
//! Each part is started, awaited and stopped by whoever holds it; nothing here looks for processes by name.

mod envoy;
mod envoy_log;
mod upstream;

pub use envoy::{EnvoyError, EnvoyLaunch, EnvoyProcess};
pub use upstream::{ReceivedRequest, serve_upstream};
