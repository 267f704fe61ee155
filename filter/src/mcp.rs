//! The Model Context Protocol: its revisions, its frames and the rules of its transport. Source: contract `mcp.md`, part 1.
//!
//! There are two eras. Up to 2025-11-25 a client opens with `initialize`; from 2026-07-28 on each request says by itself in
//! `params._meta` which revision it is of.

pub mod endpoint;
pub mod headers;
pub mod json_rpc;
pub mod origin;
pub mod sse;

/// The revision of the modern era.
pub const MODERN: &str = "2026-07-28";

/// Revisions that begin with `initialize`, newest first.
pub const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Which rules a request goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Those of the revisions with `initialize`.
    Legacy,
    /// Those of 2026-07-28.
    Modern,
}
