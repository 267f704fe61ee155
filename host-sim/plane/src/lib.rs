//! Owns the local Control Plane of an approval gate, as a library: the Sidecar review API and the people's API on SQLite.
//! The command line and tests drive it. It must not know the filter or the simulator: it shares their wire, and no code,
//! so that one wrong reading of the contract cannot hide on both sides.
//!
//! ```text
//!  sidecar ──▶ api::sidecar ─┐              ┌─ lifecycle   statuses, transitions, deadlines: pure
//!                  auth      ├─▶ store ─────┤
//!  person  ──▶ api::reviews ─┘  (sqlite)    └─ clock       what time it is
//!                  └─ render: a statement made safe to look at
//! ```
//!
//! What always holds:
//! - an approval releases one request, once: one conditional write decides who won;
//! - nothing is released without a person's word that is still within its deadline;
//! - the sidecar's token decides nothing, and the approver's token files and spends nothing;
//! - no token, statement or payload is in a log, and no token is in the database;
//! - every answer of a route is JSON; only a route that is not there is answered in plain text (contract 1.2).

pub mod clock;
pub mod tokens;

mod api;
mod auth;
mod config;
mod lifecycle;
mod limits;
mod render;
mod requester;
mod server;
mod store;

pub use self::{
    clock::{Clock, ManualClock, SystemClock, Timestamp},
    config::{ConfigError, PlaneConfig},
    server::{OpenError, Plane, ServeError},
    tokens::{Token, TokenError, TokenKind},
};
