//! The approval gate: a proxy-wasm filter whose decisions are plain Rust.
//!
//! ```text
//! config ─▶ policy ─▶ statement ─▶ gate ─▶ control_plane ─▶ denial | answer
//!                                   ▲ events      │ effects
//!                                   └── adapter ◀─┘   (the only part that knows proxy-wasm)
//! ```
//!
//! The core does no I/O. A [`stream::Stream`] takes one closed [`event::Event`] at a time and gives back
//! [`effect::Effect`]s for its driver to carry out in order. So the same source runs in unit tests, property tests
//! and in Envoy.
//!
//! What is absent on purpose:
//!
//! - no clock, randomness, environment or socket outside `adapter`;
//! - no way to forward a held request without a [`control_plane::Release`], which only the reader of the Control
//!   Plane's answers can make;
//! - no panic: an impossible state refuses the stream and is counted.

pub mod limits;
pub mod metrics;
pub mod places;
pub mod secret;
pub mod table;

pub mod glob;
pub mod json;

pub mod approval;
pub mod grpc;
pub mod identity;
pub mod request;

pub mod config;

pub mod policy;
pub mod statement;

pub mod control_plane;

pub mod answer;
pub mod denial;

pub mod effect;
pub mod event;

pub mod approval_request;
pub mod listener;
pub mod poller;

pub mod gate;
pub mod mcp;
pub mod reserved_path;

pub mod stream;

#[cfg(target_os = "wasi")]
mod adapter;
