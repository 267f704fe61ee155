//! Owns the demo gRPC service that stands behind a gate: a ledger in memory with one method of each of gRPC's four kinds, a
//! client that says its outcomes in words, and a record of what arrived. The command line and end-to-end tests drive it. It
//! must not know any gate, plane or simulator: for it, a gate is whatever its calls come through.
//!
//! ```text
//!  call ──▶ observe ──▶ service ──▶ books     what is booked: pure
//!              │            │
//!              ├── record ◀─┘                 what arrived, and how each call ended
//!              └── script                     answers of the test's choice
//! ```
//!
//! What always holds:
//! - there is no clock and no randomness in the books: the same calls in the same order are answered with the same bytes;
//! - every call that reaches the server is recorded, also one to a method that does not exist;
//! - what is kept is bounded, and so is a stop: calls that are under way are told `UNAVAILABLE`.
//!
//! The wire is `proto/ledger/v1/ledger.proto`; [`DESCRIPTORS`] is the same for machines, and the server tells it by reflection.

pub mod client;

mod books;
mod currency;
mod limits;
mod observe;
mod record;
mod script;
mod server;
mod service;

/// The tonic that this crate speaks, so that a caller needs no line of its own for `Code` and `Status`.
pub use tonic;

pub use self::{
    currency::UnknownCurrency,
    record::{Call, Ending, Message, Method},
    script::Script,
    server::{Ledger, ServeError, serve},
};

/// The messages, the client and the server of `ledger.v1`, as generated from the `.proto` file.
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    reason = "generated, and checked by its generators"
)]
pub mod proto {
    tonic::include_proto!("ledger.v1");
}

/// `ledger.proto` and all that it imports as an encoded `google.protobuf.FileDescriptorSet`, without comments: what
/// `protoc --include_imports --descriptor_set_out` writes.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ledger.v1.binpb"));

/// The service's full name.
pub const SERVICE: &str = "ledger.v1.Ledger";

/// The metadata that asks [`Method::Reconcile`] to speak first.
pub const GREET: &str = "x-demo-greet";
