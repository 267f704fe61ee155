//! Asks the cluster `auth` about each request, and refuses what it does not allow.

use std::time::Duration;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::{Action, LogLevel};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_http_context(|_, _| Box::new(Hello));
}}

struct Hello;

impl HttpContext for Hello {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        let path = self.get_http_request_header_bytes(":path").unwrap_or_default();
        let path = String::from_utf8_lossy(&path).into_owned();
        let question = vec![(":method", "GET"), (":path", path.as_str()), (":authority", "auth")];
        match self.dispatch_http_call("auth", question, None, vec![], Duration::from_secs(1)) {
            Ok(_) => Action::Pause,
            // Unknown cluster, no healthy host: nobody can be asked, so nothing passes.
            Err(_) => self.refuse(503),
        }
    }
}

impl Context for Hello {
    fn on_http_call_response(&mut self, _: u32, _: usize, _: usize, _: usize) {
        if self.get_http_call_response_header_bytes(":status").as_deref() == Some(b"200") {
            self.resume_http_request();
        } else {
            self.refuse(403);
        }
    }
}

impl Hello {
    fn refuse(&self, status: u32) -> Action {
        log::info!("refused with {status}");
        self.send_http_response(status, vec![], Some(b"not today\n"));
        Action::Pause
    }
}
