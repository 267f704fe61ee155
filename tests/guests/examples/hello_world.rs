//! The SDK's `hello_world`, re-created: a tick now and then, and a greeting at the start.

#![expect(missing_docs, reason = "the SDK's macro makes the entry point")]

use std::time::Duration;

use log::info;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{ContextType, LogLevel};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Trace);
    proxy_wasm::set_root_context(|_| -> Box<dyn RootContext> { Box::new(HelloWorld { ticks: 0 }) });
}}

struct HelloWorld {
    ticks: u32,
}

impl Context for HelloWorld {}

impl RootContext for HelloWorld {
    fn on_vm_start(&mut self, _size: usize) -> bool {
        info!("| hello, world");
        self.set_tick_period(Duration::from_millis(100));
        true
    }

    fn on_tick(&mut self) {
        self.ticks += 1;
        let known = self
            .get_current_time()
            .duration_since(std::time::UNIX_EPOCH)
            .is_ok();
        info!("| tick {}, the time is known: {known}", self.ticks);
        if self.ticks == 3 {
            self.set_tick_period(Duration::ZERO);
        }
    }

    fn create_http_context(&self, context: u32) -> Option<Box<dyn HttpContext>> {
        info!("| stream {context}");
        Some(Box::new(Stream))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Stream;

impl Context for Stream {}

impl HttpContext for Stream {}
