//! libFuzzer target: see `hoop_filter_fuzz::mcp_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoop_filter_fuzz::mcp_request(bytes));
