//! One HTTP stream as Envoy's filter manager keeps it: what has arrived, what the filter may see, what has gone on.

mod direct_response;
pub(crate) mod local_reply;
pub(crate) mod properties;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::abi::Direction;
use crate::clock::Moment;
use crate::header_map::HeaderMap;
use crate::metadata::Metadata;

pub(crate) use direct_response::PacedBody;
pub use direct_response::{DirectResponse, Pace};
pub(crate) use local_reply::LocalReply;

/// Names one stream of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub(crate) u64);

/// The version of HTTP that the client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http2,
}

impl Protocol {
    /// The name that `request.protocol` shows.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http10 => "HTTP/1.0",
            Protocol::Http11 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
        }
    }
}

/// Where a request comes from and goes to: what a filter reads as properties.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// The client's address.
    pub source: SocketAddr,
    /// The listener's address, as the client reached it.
    pub destination: SocketAddr,
    /// The client's protocol.
    pub protocol: Protocol,
    /// The number of the client's connection.
    pub connection_id: u64,
    /// The certificate that the client has shown, if any.
    pub peer_certificate: Option<Certificate>,
    /// The certificate that the listener has shown, if it speaks TLS.
    pub local_certificate: Option<Certificate>,
    /// The version of TLS, as in `TLSv1.3`; empty without.
    pub tls_version: String,
    /// The server name that the client asked for in TLS; empty without.
    pub server_name: String,
    /// The cluster of the route; empty where the route has none.
    pub cluster: String,
    /// The name of the route.
    pub route: String,
    /// The metadata of the route. `None`: no route takes the request.
    pub route_metadata: Option<Metadata>,
    /// The name of the virtual host; empty where none serves the authority.
    pub virtual_host: String,
}

/// The connection that a request went to its upstream on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamInfo {
    /// The upstream's address.
    pub address: SocketAddr,
    /// Our own end of the connection.
    pub local_address: SocketAddr,
}

/// What is told of a certificate: of a client, one that the listener has verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The subject, in RFC 2253 form.
    pub subject: String,
    /// The first URI among the alternative names.
    pub uri_san: String,
    /// The first DNS name among the alternative names.
    pub dns_san: String,
    /// The SHA-256 digest of the whole, in hexadecimal. It is told of clients only.
    pub sha256_digest: String,
}

impl Default for StreamInfo {
    fn default() -> StreamInfo {
        StreamInfo {
            source: SocketAddr::from(([127, 0, 0, 1], 50_000)),
            destination: SocketAddr::from(([127, 0, 0, 1], 8080)),
            protocol: Protocol::default(),
            connection_id: 1,
            peer_certificate: None,
            local_certificate: None,
            tls_version: String::new(),
            server_name: String::new(),
            cluster: "upstream".to_owned(),
            route: String::new(),
            route_metadata: Some(Metadata::default()),
            virtual_host: "upstream".to_owned(),
        }
    }
}

/// What an HTTP connection manager and its route are set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// `per_connection_buffer_limit_bytes`: what a paused body may hold before the answer is 413 or the sender has to wait.
    pub buffer_limit_bytes: usize,
    /// `stream_idle_timeout`: after so long without a byte either way, the answer is 504. `None` = never.
    pub idle_timeout: Option<Duration>,
    /// `request_timeout`: so long may a request take to come in whole. `None` = for ever.
    pub request_timeout: Option<Duration>,
    /// `timeout` of the route: so long may the upstream take to answer, once the request has gone out whole. `None` = for ever.
    pub route_timeout: Option<Duration>,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits {
            buffer_limit_bytes: 1024 * 1024,
            idle_timeout: Some(Duration::from_secs(300)),
            request_timeout: None,
            route_timeout: Some(Duration::from_secs(15)),
        }
    }
}

/// Who looks at the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// A context of the VM.
    Active(u32),
    /// Nobody: the VM has failed and the policy is to go on without.
    Bypassed,
    /// The VM that had its context has failed.
    Dead,
    /// Its context is gone, the stream is over.
    Deleted,
}

/// How far the filter lets one way of the stream go on. Source: `IterationState` of Envoy's filter manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Iteration {
    /// What arrives goes on.
    #[default]
    Continue,
    /// What arrived waits; what arrives next is shown to the filter.
    StopSingle,
    /// Nothing is shown until the filter resumes; over the limit the answer is 413.
    StopAllBuffer,
    /// Nothing is shown until the filter resumes; over the limit the sender waits.
    StopAllWatermark,
}

impl Iteration {
    pub(crate) fn stops_all(self) -> bool {
        matches!(self, Iteration::StopAllBuffer | Iteration::StopAllWatermark)
    }
}

/// What body bytes the filter sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BodyView {
    /// None.
    #[default]
    Hidden,
    /// Those that came just now.
    Chunk,
    /// All that wait.
    Buffered,
}

/// One way of a stream.
#[derive(Debug, Default)]
pub(crate) struct Half {
    pub(crate) headers: Option<HeaderMap>,
    pub(crate) trailers: Option<HeaderMap>,
    /// What waits for the filter, or for it to resume.
    pub(crate) buffer: Option<Vec<u8>>,
    /// What came just now.
    pub(crate) chunk: Vec<u8>,
    pub(crate) headers_visible: bool,
    pub(crate) trailers_visible: bool,
    /// The filter has seen the trailers, or has made them.
    pub(crate) trailers_shown: bool,
    /// There are trailers already, although the body before them has not come in whole.
    pub(crate) trailers_ahead: bool,
    pub(crate) body_view: BodyView,
    /// The end-of-stream flag of the last headers or body callback.
    pub(crate) end_seen: bool,
    pub(crate) iteration: Iteration,
    /// The filter wants the whole body: the next callback sees all that waits.
    pub(crate) buffering: bool,
    /// A pause that makes the sender wait instead of answering 413.
    pub(crate) watermarked: bool,
    pub(crate) headers_continued: bool,
    /// The sender has ended this way.
    pub(crate) complete: bool,
    /// The end was sent on.
    pub(crate) sent_complete: bool,
    /// Bytes of the body that have come in so far.
    pub(crate) body_bytes: u64,
    /// Bytes of the body that have gone on so far.
    pub(crate) sent_bytes: u64,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) filter: Filter,
    /// The root context of its filter.
    pub(crate) root: u32,
    pub(crate) info: StreamInfo,
    pub(crate) limits: StreamLimits,
    pub(crate) request: Half,
    pub(crate) response: Half,
    pub(crate) started: Moment,
    pub(crate) started_wall_nanoseconds: u64,
    /// The original request asked for gRPC, so local replies are trailers-only.
    pub(crate) grpc: bool,
    pub(crate) head: bool,
    /// Envoy answers, or has answered, by itself: the filter sees no more of the request.
    pub(crate) answered_locally: bool,
    /// The client's connection cannot be used again: we answer before the request has come in whole.
    pub(crate) closes_connection: bool,
    /// The 503 of a crashed VM was sent.
    pub(crate) failed: bool,
    /// Within `proxy_on_log`.
    pub(crate) logging: bool,
    /// Nothing more happens.
    pub(crate) over: bool,
    /// When the whole request had gone out, and how long the whole answer then took.
    pub(crate) sent_at: Option<Moment>,
    pub(crate) backend_latency: Option<Duration>,
    /// How often the request went to an upstream.
    pub(crate) attempts: u64,
    /// The connection to the upstream, once there is one.
    pub(crate) upstream: Option<UpstreamInfo>,
    /// `response.code`: of what is being answered, in the end of what was.
    pub(crate) code: Option<u64>,
    /// `response.code_details`
    pub(crate) details: Option<String>,
    /// `response.flags`
    pub(crate) flags: u64,
    /// What the filter has set with `proxy_set_property`.
    pub(crate) own_properties: BTreeMap<Vec<u8>, Vec<u8>>,
    /// How slowly the body of the answer that is being made goes on.
    pub(crate) pace: Option<Pace>,
    /// What is left of a body that goes on slowly.
    pub(crate) paced: Option<PacedBody>,
    pub(crate) idle_deadline: Option<Moment>,
    pub(crate) request_deadline: Option<Moment>,
    pub(crate) route_deadline: Option<Moment>,
}

impl Stream {
    pub(crate) fn half(&self, direction: Direction) -> &Half {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }

    pub(crate) fn half_mut(&mut self, direction: Direction) -> &mut Half {
        match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        }
    }

    pub(crate) fn context(&self) -> Option<u32> {
        match self.filter {
            Filter::Active(context) => Some(context),
            Filter::Bypassed | Filter::Dead | Filter::Deleted => None,
        }
    }

    /// The next of its deadlines.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        let deadlines = [
            self.idle_deadline,
            self.request_deadline,
            self.route_deadline,
            self.paced.as_ref().map(|paced| paced.due),
        ];
        deadlines.into_iter().flatten().min()
    }
}

/// Whether `headers` ask for gRPC. Source: `Grpc::Common::hasGrpcContentType` of Envoy.
pub(crate) fn asks_for_grpc(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.first("content-type") else {
        return false;
    };
    let rest = content_type.strip_prefix(b"application/grpc".as_slice());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"+"))
}
