//! What a worker wants done outside: bytes to the two sides of a stream, and callouts.

use std::time::Duration;

use bytes::Bytes;

use crate::abi::Direction;
use crate::callout::CalloutId;
use crate::header_map::HeaderMap;
use crate::stream::StreamId;

/// An order to whoever drives a worker. Orders come in the order in which Envoy would carry them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Stop a callout: its answer is not wanted any more.
    CalloutCancelled(CalloutId),
    /// The stream is over. Nothing follows for it.
    Ended(StreamId),
    /// Open a gRPC callout.
    GrpcCallout(GrpcCallout),
    /// Send a message on a gRPC callout that is a stream, or end this side of it.
    GrpcSend {
        /// The callout.
        callout: CalloutId,
        /// The message; `None` where only the end is sent.
        message: Option<Bytes>,
        /// Whether this side ends.
        end_stream: bool,
    },
    /// Send headers: of a request to the upstream, of a response to the client. What Envoy adds behind the filter is in them:
    /// `x-envoy-expected-rq-timeout-ms` to a request, `date` and `server` to a response.
    Headers {
        /// The stream.
        stream: StreamId,
        /// Which way.
        direction: Direction,
        /// The headers, pseudo-headers included.
        headers: HeaderMap,
        /// Whether nothing follows.
        end_stream: bool,
    },
    /// Send bytes of a body.
    Data {
        /// The stream.
        stream: StreamId,
        /// Which way.
        direction: Direction,
        /// The bytes; may be empty where only the end is sent.
        data: Bytes,
        /// Whether nothing follows.
        end_stream: bool,
    },
    /// Send an HTTP callout.
    HttpCallout(HttpCallout),
    /// Give up the request to the upstream, if there is one.
    ResetUpstream(StreamId),
    /// Break off the response: what was sent so far is all that the client gets.
    ResetDownstream(StreamId),
    /// Send trailers, which end the way.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// Which way.
        direction: Direction,
        /// The trailers.
        trailers: HeaderMap,
    },
}

/// An HTTP request that a guest sends to a cluster of the host (`proxy_http_call`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCallout {
    /// Name it by this when its answer is there.
    pub id: CalloutId,
    /// The cluster, as the guest named it. It is known and has an endpoint.
    pub cluster: String,
    /// Headers with `:method`, `:path` and `:authority`.
    pub headers: HeaderMap,
    /// The body, possibly empty.
    pub body: Bytes,
    /// The trailers, mostly none.
    pub trailers: HeaderMap,
    /// After this time the guest gets 504, and a later answer is dropped. `None` = it waits for ever.
    pub timeout: Option<Duration>,
}

/// A gRPC call that a guest makes to a cluster of the host (`proxy_grpc_call` and `proxy_grpc_stream`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCallout {
    /// Name it by this when something came back.
    pub id: CalloutId,
    /// The cluster.
    pub cluster: String,
    /// Full name of the service.
    pub service: String,
    /// Name of the method.
    pub method: String,
    /// Metadata to send first.
    pub initial_metadata: HeaderMap,
    /// The one message of a call; `None` for a stream, whose messages follow as [`Output::GrpcSend`].
    pub message: Option<Bytes>,
    /// The deadline of a call.
    pub timeout: Option<Duration>,
}
