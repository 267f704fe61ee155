//! Owns what the ledger promises to whoever calls it: each case has a server of its own on a real socket. It must not know
//! how the promises are kept.

mod calls;
mod client;
mod ending;
mod scripts;
mod served;
mod wire;
