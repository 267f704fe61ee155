//! The harness of the end-to-end cases: a host with the built filter, a plane, an upstream that remembers every byte, and clients.
//!
//! * [`case`] runs each case on real Envoy and on the simulator, [`differences`] is where the two may differ.
//! * [`scene`] builds one such arrangement for one case, checks what must hold in every case and, on a failure, prints everything.
//! * [`client`] sends requests byte for byte, [`http1`] is the message format that both ends of a scene read, [`way`] the ways to send one
//!   body.
//! * [`upstream`] ([`ledger`] for gRPC), [`lying_plane`] ([`numbered`] scripts it for many) and [`real_plane`] are the other parties, [`host`] the process
//!   between them, [`faulty_module`] a gate that crashes in it.
//! * [`mcp`] starts clients of other makers that speak MCP to the approval tools, and writes and reads such messages itself.
//! * [`answer`] says what an answer of the gate has to look like.
//!
//! The filter is known here only as the file `hoop_filter.wasm`, the plane only as the command `host-sim`: no case reaches into
//! their insides, so one wrong reading of the contract cannot hide in both.

pub mod answer;
pub mod binaries;
pub mod case;
pub mod client;
pub mod differences;
pub mod faulty_module;
pub mod guests;
pub mod host;
pub mod http1;
pub mod ledger;
pub mod lying_plane;
pub mod mcp;
pub mod numbered;
pub mod policy;
pub mod real_plane;
pub mod report;
pub mod scene;
pub mod unread;
pub mod upstream;
pub mod wait;
pub mod way;
