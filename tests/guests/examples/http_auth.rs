//! The SDK's `http_auth_random`, re-created without chance: asks cluster `up` and lets the request through or refuses it.
//!
//! The callout's path is that of the request, so a case decides the answer.

#![expect(missing_docs, reason = "the SDK's macro makes the entry point")]

use std::time::Duration;

use log::info;
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::{Action, LogLevel};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_http_context(|_, _| -> Box<dyn HttpContext> { Box::new(Auth) });
}}

struct Auth;

impl HttpContext for Auth {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        let answer = self
            .get_http_request_header("x-auth-answer")
            .unwrap_or_default();
        let cluster = self.get_http_request_header("x-auth-cluster");
        let headers = vec![
            (":method", "GET"),
            (":path", "/auth"),
            (":authority", "auth"),
            ("x-up", answer.as_str()),
        ];
        let sent = self.dispatch_http_call(
            cluster.as_deref().unwrap_or("up"),
            headers,
            None,
            vec![],
            Duration::from_millis(400),
        );
        match sent {
            Ok(_) => Action::Pause,
            Err(status) => {
                info!("| no callout: {status:?}");
                self.send_http_response(500, vec![], Some(b"no callout\n"));
                Action::Pause
            }
        }
    }

    fn on_http_response_headers(&mut self, _count: usize, _end: bool) -> Action {
        self.set_http_response_header("powered-by", Some("proxy-wasm"));
        Action::Continue
    }
}

impl Context for Auth {
    fn on_http_call_response(
        &mut self,
        _token: u32,
        headers: usize,
        size: usize,
        _trailers: usize,
    ) {
        let status = self.get_http_call_response_header(":status");
        let body = self
            .get_http_call_response_body(0, size)
            .unwrap_or_default();
        info!(
            "| answer {status:?}, {headers} headers, {}",
            body.escape_ascii()
        );
        if status.as_deref() == Some("200") {
            info!("| access granted");
            self.resume_http_request();
        } else {
            info!("| access refused");
            self.send_http_response(
                403,
                vec![("powered-by", "proxy-wasm")],
                Some(b"access refused\n"),
            );
        }
    }
}
