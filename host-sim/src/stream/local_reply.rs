//! The answers that Envoy makes itself, for a filter or on its own, in the form that the client can read.
//! Source: `Utility::sendLocalReply` of Envoy's `source/common/http/utility.cc`.

use crate::header_map::{HeaderMap, Joining};

/// An answer before it takes the client's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalReply {
    pub(crate) status: u32,
    pub(crate) body: Vec<u8>,
    /// Headers that the filter wants.
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) grpc_status: Option<i32>,
    /// `response.code_details`; of a filter's own reply what it said, mostly nothing.
    pub(crate) details: String,
    /// Bit of `response.flags`.
    pub(crate) flag: u64,
}

impl LocalReply {
    pub(crate) fn of_envoy(status: u32, body: &str, details: &str) -> LocalReply {
        LocalReply {
            status,
            body: body.as_bytes().to_vec(),
            headers: Vec::new(),
            grpc_status: None,
            details: details.to_owned(),
            flag: 0,
        }
    }

    pub(crate) fn flagged(mut self, flag: u64) -> LocalReply {
        self.flag = flag;
        self
    }

    /// Headers and body as the client gets them. A gRPC client gets trailers-only.
    pub(crate) fn render(&self, grpc: bool, head: bool) -> (HeaderMap, Vec<u8>) {
        let status = self.status.to_string();
        let headers = HeaderMap::new().with(":status", &status);
        let mut headers = headers.joined(Joining::Response);
        for (name, value) in &self.headers {
            headers.add(name, value);
        }
        headers.set_in_place(":status", status.as_bytes());
        if grpc {
            headers.set_in_place(":status", b"200");
            headers.set_in_place("content-type", b"application/grpc");
            headers.remove(b"content-length");
            if !headers.contains("grpc-status") {
                let status = self.grpc_status.unwrap_or_else(|| grpc_status(self.status));
                headers.add(b"grpc-status", status.to_string().as_bytes());
            }
            if !self.body.is_empty() && !headers.contains("grpc-message") {
                headers.add(b"grpc-message", percent_encoded(&self.body).as_bytes());
            }
            return (headers, Vec::new());
        }
        if self.body.is_empty() {
            headers.remove(b"content-length");
            headers.remove(b"content-type");
            return (headers, Vec::new());
        }
        headers.set_in_place("content-length", self.body.len().to_string().as_bytes());
        if !headers.contains("content-type") {
            headers.add(b"content-type", b"text/plain");
        }
        let body = if head { Vec::new() } else { self.body.clone() };
        (headers, body)
    }
}

/// The gRPC status for an HTTP status. Source: `Grpc::Utility::httpToGrpcStatus`.
pub(crate) fn grpc_status(status: u32) -> i32 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    }
}

/// Source: `PercentEncoding::encode` with the default set, as the gRPC protocol wants it for `grpc-message`.
fn percent_encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if (b' '..=b'~').contains(byte) && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
