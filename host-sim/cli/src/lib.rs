//! The `host-sim` command as a library: what its commands are made of, for `main.rs` and for the end-to-end tests.
//!
//! * [`document`] is the file of an Envoy bootstrap, read and not yet understood.
//! * [`bootstrap`] reads `envoy/envoy.yaml` or `envoy/grpc.yaml` and changes addresses, module and plugin configuration in it.
//! * [`envoy_config`] reads any Envoy bootstrap as settings of the simulator, or refuses it.
//! * [`stack`] starts Envoy and the demo upstream, waits until they are ready and stops them by id.
//! * [`args`] are the flags, [`commands`] does what they ask for, [`failure`] is how a command fails, and only [`output`] prints.
//!
//! Nothing here knows how the filter decides; approvals are known only as what the plane's API answers.

pub mod args;
pub mod bootstrap;
pub mod commands;
pub mod document;
pub mod envoy_config;
pub mod failure;
pub mod output;
pub mod stack;
