//! What a proxy is set to: its listeners, its clusters, and what Envoy's connection manager is told about each of them.
//!
//! These types are already valid: whoever reads a file or a command line turns it into them. The defaults are those of Envoy 1.40.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::access_log::AccessLogFormat;
use crate::metadata::Metadata;
use crate::plugin::Plugin;
use crate::stream::{Pace, StreamLimits};

/// All that a [`Proxy`](super::Proxy) needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many worker threads there are (Envoy's `--concurrency`). Each has a VM of its own for each plugin.
    pub workers: usize,
    /// Where clients come in.
    pub listeners: Vec<Listener>,
    /// Where requests and callouts go.
    pub clusters: Vec<Cluster>,
    /// Where the admin interface listens. It has no authentication and can end the process, so it belongs on loopback.
    pub admin: Option<SocketAddr>,
}

/// A socket with one connection manager behind it.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The name, as the admin interface shows it.
    pub name: String,
    /// Where it listens. Port 0 = the system chooses; see [`Proxy::listener_addresses`](super::Proxy::listener_addresses).
    pub address: SocketAddr,
    /// `stat_prefix`: statistics of this listener begin with `http.<stat_prefix>.`.
    pub stat_prefix: String,
    /// Sizes and times of streams. Each route has its own time-out, which takes the place of `limits.route_timeout`.
    pub limits: StreamLimits,
    /// The filter. `None` = requests go straight to the router.
    pub plugin: Option<Plugin>,
    /// TLS towards the client. `None` = plain text.
    pub tls: Option<ListenerTls>,
    /// What the connection manager does around the filter.
    pub http: HttpOptions,
    /// Who serves which `:authority`. Without one that does, the answer is 404.
    pub virtual_hosts: Vec<VirtualHost>,
    /// What is logged of each request, as a [`LogLine`](crate::LogLine) of the host at level info with the prefix `access`. Its message
    /// ends with a line break only where the format does. `None` = nothing.
    pub access_log: Option<AccessLogFormat>,
}

/// What a listener shows its clients, and what it wants to see of them.
#[derive(Clone)]
pub struct ListenerTls {
    /// The certificate chain as PEM, the listener's own first.
    pub certificate_chain_pem: Vec<u8>,
    /// Its private key as PEM.
    pub private_key_pem: Vec<u8>,
    /// Client certificates must come from these authorities (PEM). `None` = clients show none.
    pub client_ca_pem: Option<Vec<u8>>,
}

/// A certificate is public, its key is not.
impl fmt::Debug for ListenerTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wants_client_certificate = self.client_ca_pem.is_some();
        formatter
            .debug_struct("ListenerTls")
            .field("private_key_pem", &"[redacted]")
            .field("wants_client_certificate", &wants_client_certificate)
            .finish_non_exhaustive()
    }
}

/// What the connection manager does around the filter. Source: `HttpConnectionManager` and its protocol options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// `http_protocol_options.enable_trailers`: HTTP/1.1 trailers pass, both ways. Otherwise they are dropped.
    pub enable_trailers: bool,
    /// `common_http_protocol_options.max_headers_count`. More than these is 431.
    pub max_headers_count: usize,
    /// `max_request_headers_kb` in bytes. More than these is 431.
    pub max_request_headers_bytes: usize,
    /// `common_http_protocol_options.headers_with_underscores_action`
    pub underscores: Underscores,
    /// `normalize_path`
    pub normalize_path: bool,
    /// `merge_slashes`
    pub merge_slashes: bool,
    /// `path_with_escaped_slashes_action`
    pub escaped_slashes: EscapedSlashes,
    /// `upgrade_configs`, in lower case: `websocket`, `connect`, ...
    pub upgrades: Vec<String>,
    /// `use_remote_address`: the peer is the client. Otherwise `x-forwarded-for` tells it.
    pub use_remote_address: bool,
    /// `http2_protocol_options.max_concurrent_streams`
    pub max_concurrent_streams: u32,
    /// `http2_protocol_options.initial_stream_window_size`
    pub initial_stream_window: u32,
    /// `http2_protocol_options.initial_connection_window_size`
    pub initial_connection_window: u32,
    /// `request_headers_timeout`: so long may the head of a request take. `None` = for ever.
    pub request_headers_timeout: Option<Duration>,
    /// `common_http_protocol_options.idle_timeout`: a connection without a request is closed after this. `None` = never.
    pub idle_timeout: Option<Duration>,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            enable_trailers: false,
            max_headers_count: 100,
            max_request_headers_bytes: 60 * 1024,
            underscores: Underscores::Allow,
            normalize_path: false,
            merge_slashes: false,
            escaped_slashes: EscapedSlashes::KeepUnchanged,
            upgrades: Vec::new(),
            use_remote_address: false,
            max_concurrent_streams: 1024,
            initial_stream_window: 16 * 1024 * 1024,
            initial_connection_window: 24 * 1024 * 1024,
            request_headers_timeout: None,
            idle_timeout: Some(Duration::from_secs(3600)),
        }
    }
}

/// What happens to a header whose name has an underscore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underscores {
    /// It passes.
    #[default]
    Allow,
    /// The request is refused.
    RejectRequest,
    /// The header is dropped.
    DropHeader,
}

/// What happens to a path with an escaped `/` or `\`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EscapedSlashes {
    /// It passes as it is.
    #[default]
    KeepUnchanged,
    /// The request is refused.
    RejectRequest,
    /// The client is sent to the path without escapes.
    UnescapeAndRedirect,
    /// The request goes on with the path without escapes.
    UnescapeAndForward,
}

/// Routes for some authorities.
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualHost {
    /// The name, which a filter can read as `xds.virtual_host_name`.
    pub name: String,
    /// Authorities in lower case, as Envoy writes them: whole, `*.suffix`, `prefix.*` or `*`.
    pub domains: Vec<String>,
    /// `request_headers_to_remove`, in lower case. They go after the filter has seen them.
    pub request_headers_to_remove: Vec<String>,
    /// The routes; the first that matches is taken.
    pub routes: Vec<Route>,
}

/// Which requests go where.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The name, which a filter can read as `xds.route_name`.
    pub name: String,
    /// What a filter can read under `xds.route_metadata`.
    pub metadata: Metadata,
    /// Which requests.
    pub matcher: RouteMatcher,
    /// What their headers must be like, too.
    pub headers: Vec<HeaderMatcher>,
    /// Where they go.
    pub action: RouteAction,
    /// `timeout`: so long may the upstream take to answer. `None` = for ever.
    pub timeout: Option<Duration>,
    /// `request_headers_to_remove` of the route itself, in lower case.
    pub request_headers_to_remove: Vec<String>,
}

/// Which requests a route takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteMatcher {
    /// `CONNECT` requests.
    Connect,
    /// This path, without its query.
    Path(String),
    /// Paths that begin so.
    Prefix(String),
}

/// What a header of a request must be like. A filter may write it: the route is chosen anew when the request leaves the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatcher {
    /// The name, in lower case.
    pub name: String,
    /// What is wanted of it.
    pub wanted: WantedHeader,
}

/// What is wanted of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedHeader {
    /// `string_match.exact`: this value, or several of which this is one.
    Exact(String),
    /// `present_match`: that it is there, or that it is not.
    Present(bool),
}

/// What a route does with its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteAction {
    /// Answers them itself.
    DirectResponse {
        /// The status.
        status: u16,
        /// The body.
        body: DirectBody,
        /// How slowly filters behind the guest let the body go on. `None` = at once.
        pace: Option<Pace>,
    },
    /// Sends them to a cluster.
    Forward {
        /// The cluster's name.
        cluster: String,
        /// Upgrades of this route, in lower case; `None` = those of the listener.
        upgrades: Option<Vec<String>>,
    },
}

/// The body of a direct response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectBody {
    /// `body`: these bytes.
    Bytes(Vec<u8>),
    /// `body_format`: a text that is made for each request. Only what the filter has set (`%FILTER_STATE(wasm.NAME:PLAIN)%`) has the
    /// same value then as in Envoy; see [`AccessLogFormat::reads_properties_only`].
    Format(AccessLogFormat),
}

/// A group of servers that do the same.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The name that routes and callouts use.
    pub name: String,
    /// `HOST:PORT` of each server. They are taken in turn.
    pub endpoints: Vec<String>,
    /// What they speak.
    pub protocol: UpstreamProtocol,
    /// So long may making a connection take.
    pub connect_timeout: Duration,
    /// A connection without a request is closed after this. `None` = never.
    pub idle_timeout: Option<Duration>,
    /// TLS towards the servers. `None` = plain text.
    pub tls: Option<UpstreamTls>,
    /// `http_protocol_options.enable_trailers` of the cluster: HTTP/1.1 trailers pass, both ways. Otherwise they are dropped.
    pub enable_trailers: bool,
}

impl Cluster {
    /// A cluster of HTTP/1.1 servers with what Envoy takes where its file says nothing.
    pub fn new(name: &str, endpoints: impl IntoIterator<Item = String>) -> Cluster {
        Cluster {
            name: name.to_owned(),
            endpoints: endpoints.into_iter().collect(),
            protocol: UpstreamProtocol::default(),
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Some(Duration::from_secs(3600)),
            tls: None,
            enable_trailers: false,
        }
    }
}

/// The version of HTTP towards a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1
    #[default]
    Http1,
    /// HTTP/2, with prior knowledge where there is no TLS.
    Http2,
}

/// How the servers of a cluster prove who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Their certificates must come from these authorities (PEM). `None` = any certificate is taken, as Envoy does without a
    /// validation context.
    pub ca_pem: Option<Vec<u8>>,
    /// The name that is asked for. `None` = the host of the endpoint.
    pub sni: Option<String>,
}
