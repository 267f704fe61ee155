//! Asks a gRPC service before a request goes on: a unary call, or a stream when the request says so.

#![expect(missing_docs, reason = "the SDK's macro makes the entry point")]

use std::time::Duration;

use log::info;
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::{Action, LogLevel};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_http_context(|_, _| -> Box<dyn HttpContext> { Box::new(Auth { stream: None }) });
}}

/// `GrpcService { envoy_grpc { cluster_name: "h2up" } }`: Envoy takes no bare cluster name here.
const UPSTREAM: &str = "\n\x06\n\x04h2up";

struct Auth {
    stream: Option<u32>,
}

impl HttpContext for Auth {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        let method = self
            .get_http_request_header("x-method")
            .unwrap_or_else(|| "Unary".to_owned());
        let metadata = vec![("x-meta", &b"m"[..])];
        if method.starts_with("Stream") {
            let opened = self.open_grpc_stream(UPSTREAM, "guests.Auth", &method, metadata);
            self.stream = opened.ok();
            if let Some(stream) = self.stream {
                self.send_grpc_stream_message(stream, Some(b"question"), false);
            }
            return if self.stream.is_some() {
                Action::Pause
            } else {
                Action::Continue
            };
        }
        let sent = self.dispatch_grpc_call(
            UPSTREAM,
            "guests.Auth",
            &method,
            metadata,
            Some(b"question"),
            Duration::from_millis(400),
        );
        match sent {
            Ok(_) => Action::Pause,
            Err(status) => {
                info!("| no call: {status:?}");
                Action::Continue
            }
        }
    }
}

impl Context for Auth {
    fn on_grpc_call_response(&mut self, _token: u32, status: u32, size: usize) {
        let message = self
            .get_grpc_call_response_body(0, size)
            .unwrap_or_default();
        info!(
            "| call answered: status {status}, {}",
            message.escape_ascii()
        );
        if status == 0 {
            self.resume_http_request();
        } else {
            self.send_http_response(403, vec![], Some(b"refused\n"));
        }
    }

    fn on_grpc_stream_initial_metadata(&mut self, _token: u32, count: u32) {
        let value = self.get_grpc_stream_initial_metadata_value("x-initial");
        info!("| initial metadata: {count}, x-initial {value:?}");
    }

    fn on_grpc_stream_message(&mut self, token: u32, size: usize) {
        let message = self.get_grpc_stream_message(0, size).unwrap_or_default();
        info!("| message: {}", message.escape_ascii());
        self.send_grpc_stream_message(token, None, true);
    }

    fn on_grpc_stream_trailing_metadata(&mut self, _token: u32, count: u32) {
        let value = self.get_grpc_stream_trailing_metadata_value("x-trailing");
        info!("| trailing metadata: {count}, x-trailing {value:?}");
    }

    fn on_grpc_stream_close(&mut self, _token: u32, status: u32) {
        info!("| stream closed: status {status}");
        if self.stream.take().is_some() {
            self.resume_http_request();
        }
    }
}
