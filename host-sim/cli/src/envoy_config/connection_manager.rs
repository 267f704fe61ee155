//! `HttpConnectionManager`: protocol options, times, and the chain of the filter and the router.

use host_sim::StreamLimits;
use host_sim::proxy::{
    AccessLogFormat, Cluster, EscapedSlashes, HttpOptions, Underscores, VirtualHost,
};

use super::access_log;
use super::node::{Message, Node};
use super::plugin::{self, PluginConfig};
use super::refusal::{LEAVE_OUT, Refusal};
use super::route;
use super::shaping::{self, BANDWIDTH, FAULT, Shapers};

/// A connection manager without the listener that it belongs to.
pub(super) struct ConnectionManager {
    pub(super) stat_prefix: String,
    pub(super) limits: StreamLimits,
    pub(super) http: HttpOptions,
    pub(super) access_log: Option<AccessLogFormat>,
    pub(super) plugin: Option<PluginConfig>,
    pub(super) virtual_hosts: Vec<VirtualHost>,
}

pub(super) fn read(
    mut manager: Message<'_>,
    clusters: &[Cluster],
) -> Result<ConnectionManager, Refusal> {
    let stat_prefix = manager.required("stat_prefix")?.text()?.to_owned();
    let codec = |node: &Node<'_>| {
        let hint = "leave it out: the simulator takes HTTP/1.1 and HTTP/2 on each listener";
        node.must_be(&"AUTO".into(), hint)
    };
    manager.read("codec_type", codec)?;
    let http = http_options(&mut manager)?;
    let limits = stream_limits(&mut manager)?;
    let access_log = manager.read("access_log", access_log::read)?;
    let filters = http_filters(&manager.required("http_filters")?)?;
    let routes = manager.required("route_config")?;
    let virtual_hosts = route::read_configuration(&routes, clusters, &filters.shapers)?;
    manager.end()?;
    Ok(ConnectionManager {
        stat_prefix,
        limits,
        http,
        access_log: access_log.flatten(),
        plugin: filters.plugin,
        virtual_hosts,
    })
}

fn stream_limits(manager: &mut Message<'_>) -> Result<StreamLimits, Refusal> {
    let mut limits = StreamLimits::default();
    if let Some(timeout) = manager.read("stream_idle_timeout", Node::limit)? {
        limits.idle_timeout = timeout;
    }
    if let Some(timeout) = manager.read("request_timeout", Node::limit)? {
        limits.request_timeout = timeout;
    }
    Ok(limits)
}

fn http_options(manager: &mut Message<'_>) -> Result<HttpOptions, Refusal> {
    let mut options = HttpOptions {
        normalize_path: manager.flag("normalize_path")?,
        merge_slashes: manager.flag("merge_slashes")?,
        use_remote_address: manager.flag("use_remote_address")?,
        ..HttpOptions::default()
    };
    let slashes = |node: &Node<'_>| node.choice(&ESCAPED_SLASHES);
    if let Some(action) = manager.read("path_with_escaped_slashes_action", slashes)? {
        options.escaped_slashes = action;
    }
    if let Some(kilobytes) = manager.read("max_request_headers_kb", |node| node.number(1, 8192))? {
        options.max_request_headers_bytes = size(kilobytes).saturating_mul(1024);
    }
    if let Some(timeout) = manager.read("request_headers_timeout", Node::limit)? {
        options.request_headers_timeout = timeout;
    }
    manager.read("common_http_protocol_options", |node| {
        common_options(node, &mut options)
    })?;
    if let Some(http1) = manager.optional("http_protocol_options") {
        let mut http1 = http1.message()?;
        options.enable_trailers = http1.flag("enable_trailers")?;
        http1.end()?;
    }
    manager.read("http2_protocol_options", |node| {
        http2_options(node, &mut options)
    })?;
    if let Some(upgrades) = manager.read("upgrade_configs", upgrades)? {
        options.upgrades = upgrades;
    }
    Ok(options)
}

/// `envoy.config.core.v3.HttpProtocolOptions`
fn common_options(node: &Node<'_>, options: &mut HttpOptions) -> Result<(), Refusal> {
    let mut common = node.message()?;
    if let Some(timeout) = common.read("idle_timeout", Node::limit)? {
        options.idle_timeout = timeout;
    }
    if let Some(count) = common.read("max_headers_count", |node| node.number(1, u32::MAX))? {
        options.max_headers_count = size(count);
    }
    let underscores = |node: &Node<'_>| node.choice(&UNDERSCORES);
    if let Some(action) = common.read("headers_with_underscores_action", underscores)? {
        options.underscores = action;
    }
    common.end()
}

/// `envoy.config.core.v3.Http2ProtocolOptions`, with the bounds that Envoy sets.
fn http2_options(node: &Node<'_>, options: &mut HttpOptions) -> Result<(), Refusal> {
    const MOST: u32 = 0x7fff_ffff;
    let mut http2 = node.message()?;
    let window = |node: &Node<'_>| node.number(65_535, MOST);
    if let Some(count) = http2.read("max_concurrent_streams", |node| node.number(1, MOST))? {
        options.max_concurrent_streams = count;
    }
    if let Some(bytes) = http2.read("initial_stream_window_size", window)? {
        options.initial_stream_window = bytes;
    }
    if let Some(bytes) = http2.read("initial_connection_window_size", window)? {
        options.initial_connection_window = bytes;
    }
    http2.end()
}

/// Kinds of upgrades, in lower case. Those of a route may say that a CONNECT request becomes a tunnel.
pub(super) fn upgrades(node: &Node<'_>) -> Result<Vec<String>, Refusal> {
    let mut kinds = Vec::new();
    for item in node.list()? {
        let mut upgrade = item.message()?;
        kinds.push(
            upgrade
                .required("upgrade_type")?
                .text()?
                .to_ascii_lowercase(),
        );
        upgrade.read("connect_config", |node| node.empty_message(LEAVE_OUT))?;
        upgrade.end()?;
    }
    Ok(kinds)
}

/// The filters of a listener.
#[derive(Default)]
struct Filters {
    plugin: Option<PluginConfig>,
    shapers: Shapers,
}

/// At most one of each, in this order: the wasm filter, what shapes answers behind it, the router.
fn http_filters(node: &Node<'_>) -> Result<Filters, Refusal> {
    let mut filters = Filters::default();
    let mut last = None;
    for item in node.list()? {
        let mut fields = item.message()?;
        let name = fields.text("name")?;
        let (kind, mut settings) = fields.required("typed_config")?.any(&CHAIN)?;
        fields.end()?;
        let place = CHAIN.iter().position(|known| *known == kind);
        if last >= place {
            return Err(Refusal::new(
                item.pointer(),
                "one filter too many, or one in another order",
                UNDERSTOOD_CHAIN,
                "test each filter on its own, or run this file on Envoy",
            ));
        }
        last = place;
        match kind {
            WASM => filters.plugin = Some(plugin::read_filter(settings)?),
            FAULT => {
                shaping::read_fault(settings)?;
                filters.shapers.fault = Some(name);
            }
            BANDWIDTH => {
                shaping::read_bandwidth(settings)?;
                filters.shapers.bandwidth = Some(name);
            }
            _ => {
                settings.read("suppress_envoy_headers", |node| {
                    node.must_be(&false.into(), LEAVE_OUT)
                })?;
                settings.end()?;
            }
        }
    }
    if last == CHAIN.iter().position(|known| *known == ROUTER) {
        return Ok(filters);
    }
    Err(Refusal::new(
        node.pointer(),
        "no router",
        UNDERSTOOD_CHAIN,
        "end the list with `envoy.filters.http.router`, as envoy/envoy.yaml does",
    ))
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

const WASM: &str = "envoy.extensions.filters.http.wasm.v3.Wasm";
const ROUTER: &str = "envoy.extensions.filters.http.router.v3.Router";
/// In the order in which they may stand.
const CHAIN: [&str; 4] = [WASM, FAULT, BANDWIDTH, ROUTER];
const UNDERSTOOD_CHAIN: &str = "at most one wasm filter, then `envoy.filters.http.fault`, then `envoy.filters.http.bandwidth_limit`, and \
     the router behind them";

const ESCAPED_SLASHES: [(&str, EscapedSlashes); 5] = [
    (
        "IMPLEMENTATION_SPECIFIC_DEFAULT",
        EscapedSlashes::KeepUnchanged,
    ),
    ("KEEP_UNCHANGED", EscapedSlashes::KeepUnchanged),
    ("REJECT_REQUEST", EscapedSlashes::RejectRequest),
    ("UNESCAPE_AND_REDIRECT", EscapedSlashes::UnescapeAndRedirect),
    ("UNESCAPE_AND_FORWARD", EscapedSlashes::UnescapeAndForward),
];

const UNDERSCORES: [(&str, Underscores); 3] = [
    ("ALLOW", Underscores::Allow),
    ("REJECT_REQUEST", Underscores::RejectRequest),
    ("DROP_HEADER", Underscores::DropHeader),
];
