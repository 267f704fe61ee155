//! The proxy-wasm adapter: callbacks in, hostcalls out. It translates and holds no rule; nothing imports it.
//!
//! It goes round the SDK's traits where they panic on what a client can send: whole header maps are read as bytes, and
//! every hostcall that can fail becomes a refusal of its one stream.

mod cancellations;
mod heartbeat;
mod hostcalls;
mod root;
mod stream;
mod vm;

use proxy_wasm::types::LogLevel;

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|id| Box::new(root::Root::new(id)));
}}
