//! Collects both bodies and replaces them, as SDK filters do it: wait for the end, then one write.
//!
//! The request gets a frame around its body, the answer is turned to upper case. Lengths that no longer hold are removed.

#![expect(missing_docs, reason = "the SDK's macro makes the entry point")]

use log::info;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType, LogLevel};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| -> Box<dyn RootContext> { Box::new(Root) });
}}

struct Root;

impl Context for Root {}

impl RootContext for Root {
    fn create_http_context(&self, _context: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Rewriter))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Rewriter;

impl Context for Rewriter {}

impl HttpContext for Rewriter {
    fn on_http_request_headers(&mut self, count: usize, end: bool) -> Action {
        info!("| request headers: {count}, end {end}");
        self.set_http_request_header("content-length", None);
        Action::Continue
    }

    fn on_http_request_body(&mut self, size: usize, end: bool) -> Action {
        info!("| request body: {size}, end {end}");
        if !end {
            return Action::Pause;
        }
        let mut framed = b"<<".to_vec();
        framed.extend(self.get_http_request_body(0, size).unwrap_or_default());
        framed.extend(b">>");
        self.set_http_request_body(0, size, &framed);
        Action::Continue
    }

    fn on_http_response_headers(&mut self, count: usize, end: bool) -> Action {
        info!("| response headers: {count}, end {end}");
        self.set_http_response_header("content-length", None);
        self.add_http_response_header("x-rewritten", "yes");
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end: bool) -> Action {
        info!("| response body: {size}, end {end}");
        if !end {
            return Action::Pause;
        }
        let mut body = self.get_http_response_body(0, size).unwrap_or_default();
        body.make_ascii_uppercase();
        self.set_http_response_body(0, size, &body);
        Action::Continue
    }

    fn on_log(&mut self) {
        info!("| log");
    }
}
