//! gRPC callouts: messages in frames, and the status that ends a call. Source: the gRPC protocol over HTTP/2, and Envoy's
//! `source/common/grpc/async_client_impl.cc`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::callout::{CalloutId, GrpcEvent};
use crate::header_map::HeaderMap;
use crate::output::GrpcCallout;
use crate::proxy::cluster::Answer;
use crate::proxy::driver::Driver;
use crate::proxy::lane::{Lane, Order};
use crate::stream::UpstreamInfo;

/// Makes a gRPC call. For a stream, further messages come in `messages`.
pub(in crate::proxy) async fn run(driver: Rc<Driver>, callout: GrpcCallout, messages: Rc<Lane>) {
    let id = callout.id;
    if let Some(message) = &callout.message {
        messages.push(Order::Data {
            data: frame(message),
            end_stream: true,
        });
    }
    let events = Events {
        driver: driver.clone(),
        id,
        buffer: RefCell::default(),
        closed: Cell::new(false),
    };
    let Some(cluster) = driver.clusters.named(&callout.cluster) else {
        events.close(UNAVAILABLE, "Cluster not available");
        return;
    };
    let headers = request_headers(&callout);
    match cluster.exchange(headers, false, &messages, &events).await {
        Ok(()) => events.close(UNKNOWN, ""),
        Err(failure) => {
            let details = super::reset_details(&failure);
            let text = super::reset_text(&failure);
            events.close(UNAVAILABLE, &format!("{text}{{{details}}}"));
        }
    }
    driver.callout_over(id);
}

fn request_headers(callout: &GrpcCallout) -> HeaderMap {
    let mut headers = HeaderMap::new()
        .with(":method", "POST")
        .with(":path", format!("/{}/{}", callout.service, callout.method))
        .with(":authority", &callout.cluster)
        .with(":scheme", "http")
        .with("te", "trailers");
    if let Some(timeout) = callout.timeout {
        headers.add(
            b"grpc-timeout",
            format!("{}m", timeout.as_millis()).as_bytes(),
        );
    }
    headers.add(b"content-type", b"application/grpc");
    for (name, value) in callout.initial_metadata.iter() {
        headers.add(name, value);
    }
    headers.add(b"x-envoy-internal", b"true");
    headers
}

/// A message as it goes over the wire: not compressed, its length, its bytes.
pub(in crate::proxy) fn frame(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(FRAME_HEADER + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

/// Turns an answer into events while it comes in.
struct Events {
    driver: Rc<Driver>,
    id: CalloutId,
    buffer: RefCell<BytesMut>,
    closed: Cell<bool>,
}

impl Events {
    fn tell(&self, event: GrpcEvent) {
        self.driver.tell(|worker| worker.grpc_event(self.id, event));
    }

    /// Only the first end counts.
    fn close(&self, status: u32, message: &str) {
        if !self.closed.replace(true) {
            self.tell(GrpcEvent::Closed {
                status,
                message: message.to_owned(),
            });
        }
    }

    /// The status in the trailers ends the call.
    fn end(&self, trailers: &HeaderMap) {
        let status = trailers
            .text("grpc-status")
            .and_then(|status| status.parse().ok())
            .unwrap_or(UNKNOWN);
        // Envoy tells where the status comes from as well.
        let message = match trailers.text("grpc-message") {
            Some(message) if !message.is_empty() => format!("{message}{{{VIA_UPSTREAM}}}"),
            Some(_) | None => VIA_UPSTREAM.to_owned(),
        };
        self.tell(GrpcEvent::TrailingMetadata(trailers.clone()));
        self.close(status, &message);
    }
}

impl Answer for Events {
    fn connected(&self, _upstream: &UpstreamInfo) {}

    fn headers(&self, headers: HeaderMap, end_stream: bool) {
        if headers.first(":status") != Some(b"200") {
            let status = headers
                .text(":status")
                .and_then(|status| status.parse().ok())
                .unwrap_or(503);
            self.close(grpc_status(status), VIA_UPSTREAM);
            return;
        }
        if end_stream {
            // Nothing but trailers: the metadata before them is there, and empty.
            self.tell(GrpcEvent::InitialMetadata(HeaderMap::new()));
            self.end(&headers);
        } else {
            self.tell(GrpcEvent::InitialMetadata(headers));
        }
    }

    fn data(&self, data: Bytes, end_stream: bool) {
        if self.closed.get() {
            return;
        }
        self.buffer.borrow_mut().extend_from_slice(&data);
        loop {
            let message = take_message(&mut self.buffer.borrow_mut());
            let Some(message) = message else {
                break;
            };
            self.tell(GrpcEvent::Message(message));
        }
        if end_stream {
            self.close(UNKNOWN, "");
        }
    }

    fn trailers(&self, trailers: HeaderMap) {
        self.end(&trailers);
    }

    async fn room(&self) {}
}

/// `response.code_details` of what an upstream has said itself.
const VIA_UPSTREAM: &str = "via_upstream";

/// The next message that is there whole.
fn take_message(buffer: &mut BytesMut) -> Option<Bytes> {
    let length = buffer.get(1..FRAME_HEADER)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    if buffer.len() < FRAME_HEADER + length {
        return None;
    }
    buffer.advance(FRAME_HEADER);
    Some(buffer.split_to(length).freeze())
}

/// Source: `Grpc::Utility::httpToGrpcStatus`.
fn grpc_status(status: u16) -> u32 {
    match status {
        400 => INTERNAL,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

const FRAME_HEADER: usize = 5;
const UNKNOWN: u32 = 2;
const INTERNAL: u32 = 13;
const UNAVAILABLE: u32 = 14;
