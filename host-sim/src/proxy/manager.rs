//! What Envoy's connection manager does to headers before the filter sees a request, and before a client sees a response.
//!
//! Pure functions over header maps. Source: `ConnectionManagerUtility` of Envoy's `source/common/http/conn_manager_utility.cc`, and
//! what Envoy 1.40 answered.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::SystemTime;

use super::h1::has_token;
use super::path;
use super::settings::{
    HeaderMatcher, HttpOptions, Listener, Route, RouteAction, RouteMatcher, VirtualHost,
    WantedHeader,
};
use crate::header_map::{HeaderMap, Joining};
use crate::stream::{LocalReply, Protocol};

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) tls: bool,
    pub(super) protocol: Protocol,
    /// This machine's own address, which Envoy writes in place of a loopback peer.
    pub(super) machine: IpAddr,
}

/// An answer that a request gets before any filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EarlyAnswer {
    pub(super) status: u16,
    pub(super) location: Option<Vec<u8>>,
    /// Whether the codec answers, whose body is the words for the status.
    pub(super) by_codec: bool,
    /// Whether the connection ends with it.
    pub(super) closes: bool,
    /// `response.code_details`
    pub(super) details: &'static str,
    /// The request, as far as it was prepared; it is what a filter logs.
    pub(super) request: HeaderMap,
}

impl EarlyAnswer {
    /// An answer without a body to `request`, behind which the connection closes.
    pub(super) fn closing(status: u16, details: &'static str, request: &HeaderMap) -> EarlyAnswer {
        EarlyAnswer {
            status,
            location: None,
            by_codec: false,
            closes: true,
            details,
            request: request.clone(),
        }
    }

    /// The headers; there is no body. A gRPC client reads the status from where it looks for one.
    pub(super) fn headers(&self, grpc: bool) -> HeaderMap {
        let reply = LocalReply::of_envoy(self.status.into(), "", "");
        let (mut headers, _) = reply.render(grpc, false);
        if let Some(location) = &self.location {
            headers.add(b"location", location);
        }
        headers
    }
}

/// Turns what a client sent into what the filter sees, or into an answer.
pub(super) fn accept(
    headers: HeaderMap,
    options: &HttpOptions,
    peer: Peer,
) -> Result<HeaderMap, EarlyAnswer> {
    let mut headers = headers.joined(Joining::Request);
    let connect = headers.first(":method") == Some(b"CONNECT");
    if peer.protocol != Protocol::Http2 {
        strip_nominated(&mut headers)?;
    }
    if !headers.contains(":authority") {
        return Err(EarlyAnswer::closing(400, "missing_host_header", &headers));
    }
    if !connect {
        check_path(&mut headers, options)?;
    }
    let upgrade = is_upgrade(&headers);
    if !upgrade {
        headers.remove(b"connection");
        headers.remove(b"upgrade");
        keep_only_te_trailers(&mut headers);
    }
    for name in ["keep-alive", "proxy-connection", "transfer-encoding"] {
        headers.remove(name.as_bytes());
    }
    join_cookies(&mut headers, peer.protocol);
    let scheme: &[u8] = if peer.tls { b"https" } else { b"http" };
    if !headers.contains(":scheme") && !connect {
        headers.add(b":scheme", scheme);
    }
    let edge = options.use_remote_address;
    if edge {
        let shown = if peer.address.ip().is_loopback() {
            peer.machine
        } else {
            peer.address.ip()
        };
        let chain = match headers.first("x-forwarded-for") {
            Some(chain) if !chain.is_empty() => {
                [chain, b",", shown.to_string().as_bytes()].concat()
            }
            _ => shown.to_string().into_bytes(),
        };
        headers.set_in_place("x-forwarded-for", &chain);
    }
    if edge || !headers.contains("x-forwarded-proto") {
        headers.set_in_place("x-forwarded-proto", scheme);
    }
    for name in INTERNAL {
        headers.remove(name.as_bytes());
    }
    if edge {
        for name in EDGE_INTERNAL {
            headers.remove(name.as_bytes());
        }
        headers.set_in_place(
            "x-envoy-external-address",
            peer.address.ip().to_string().as_bytes(),
        );
    }
    headers.remove(b"x-forwarded-client-cert");
    if edge || !headers.contains("x-request-id") {
        headers.set_in_place("x-request-id", request_id().as_bytes());
    }
    Ok(headers)
}

/// Who the client is taken to be: the peer, or without `use_remote_address` the last of `x-forwarded-for`, where that is an address.
/// Its port is not known then. Source: `Utility::getLastAddressFromXFF`.
pub(super) fn client(headers: &HeaderMap, options: &HttpOptions, peer: SocketAddr) -> SocketAddr {
    let chain = headers.text("x-forwarded-for");
    let last = chain.and_then(|chain| chain.rsplit(',').next());
    let named: Option<IpAddr> = last.and_then(|last| last.trim().parse().ok());
    match named {
        Some(address) if !options.use_remote_address => SocketAddr::new(address, 0),
        _ => peer,
    }
}

/// The path, or the answer to a path that is none. Source: `ActiveStream::decodeHeaders`.
fn check_path(headers: &mut HeaderMap, options: &HttpOptions) -> Result<(), EarlyAnswer> {
    let path = headers.first(":path").unwrap_or_default().to_vec();
    // Envoy's `http_reject_path_with_fragment`, on by default.
    // Seen on Envoy: a QUERY that does not say what its body is.
    let odd_method =
        headers.first(":method") == Some(b"QUERY") && !headers.contains("content-type");
    let fault = if path.is_empty() {
        Some("missing_path_rejected")
    } else if odd_method {
        Some("query_missing_content_type")
    } else {
        path.contains(&b'#').then_some(PATH_REFUSED)
    };
    if let Some(details) = fault {
        return Err(EarlyAnswer::closing(400, details, headers));
    }
    if !path.starts_with(b"/") {
        return Err(EarlyAnswer {
            closes: false,
            ..EarlyAnswer::closing(404, "absolute_path_rejected", headers)
        });
    }
    let (path, redirect) = path::prepared(&path, options)
        .ok_or_else(|| EarlyAnswer::closing(400, PATH_REFUSED, headers))?;
    if headers.first(":path") != Some(path.as_slice()) {
        headers.set_in_place(":path", &path);
    }
    if redirect {
        return Err(EarlyAnswer {
            location: Some(path),
            closes: false,
            ..EarlyAnswer::closing(307, PATH_REFUSED, headers)
        });
    }
    Ok(())
}

/// What Envoy says of a path that it does not prepare.
const PATH_REFUSED: &str = "path_normalization_failed";

/// Whether a request wants to leave HTTP.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers
        .first("upgrade")
        .is_some_and(|value| !value.is_empty())
        && headers
            .all("connection")
            .any(|value| has_token(value, b"upgrade"))
}

/// What a request wants to become: `connect`, or what its `upgrade` header names.
pub(super) fn upgrade_type(headers: &HeaderMap) -> Option<String> {
    if headers.first(":method") == Some(b"CONNECT") {
        return Some("connect".to_owned());
    }
    let named = is_upgrade(headers)
        .then(|| headers.first("upgrade"))
        .flatten()?;
    Some(String::from_utf8_lossy(named).to_ascii_lowercase())
}

/// Removes the headers that `connection` names, and `upgrade: h2c`. Source: `Utility::sanitizeConnectionHeader`.
fn strip_nominated(headers: &mut HeaderMap) -> Result<(), EarlyAnswer> {
    if is_upgrade(headers)
        && headers
            .first("upgrade")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"h2c"))
    {
        headers.remove(b"upgrade");
        headers.remove(b"http2-settings");
        headers.remove(b"connection");
    }
    if is_upgrade(headers) {
        return Ok(());
    }
    let Some(connection) = headers.first("connection").map(<[u8]>::to_vec) else {
        return Ok(());
    };
    for name in connection.split(|byte| *byte == b',') {
        let name = name.trim_ascii().to_ascii_lowercase();
        match name.as_slice() {
            b"" | b"close" | b"keep-alive" | b"upgrade" => {}
            b"te" => keep_only_te_trailers(headers),
            b"x-forwarded-for" | b"x-forwarded-host" | b"x-forwarded-proto" => {
                return Err(EarlyAnswer {
                    by_codec: true,
                    ..EarlyAnswer::closing(400, "http1.connection_header_rejected", headers)
                });
            }
            b"host" => {
                headers.remove(b":authority");
            }
            _ => {
                headers.remove(&name);
            }
        }
    }
    Ok(())
}

fn keep_only_te_trailers(headers: &mut HeaderMap) {
    if let Some(te) = headers.first("te").map(<[u8]>::to_vec) {
        if has_token(&te, b"trailers") {
            headers.set_in_place("te", b"trailers");
        } else {
            headers.remove(b"te");
        }
    }
}

/// HTTP/2 may cut a cookie into several fields; Envoy joins them.
fn join_cookies(headers: &mut HeaderMap, protocol: Protocol) {
    if protocol == Protocol::Http2 && headers.all("cookie").count() > 1 {
        let cookies: Vec<&[u8]> = headers.all("cookie").collect();
        let joined = cookies.join(b"; ".as_slice());
        headers.set(b"cookie", &joined);
    }
}

/// The route of a request.
pub(super) fn route<'a>(listener: &'a Listener, headers: &HeaderMap) -> Option<&'a Route> {
    // Envoy finds no route for a request whose filter has taken away what tells the scheme.
    if !headers.contains("x-forwarded-proto") {
        return None;
    }
    let connect = headers.first(":method") == Some(b"CONNECT");
    let path = headers.first(":path").unwrap_or_default();
    let without_query = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let routes = &virtual_host(listener, headers)?.routes;
    routes.iter().find(|route| {
        let path_fits = match &route.matcher {
            RouteMatcher::Connect => connect,
            RouteMatcher::Path(wanted) => !connect && without_query == wanted.as_bytes(),
            RouteMatcher::Prefix(wanted) => !connect && path.starts_with(wanted.as_bytes()),
        };
        path_fits && route.headers.iter().all(|wanted| fits(headers, wanted))
    })
}

/// Of several values one is enough. Source: `HeaderUtility::HeaderData` of Envoy's `source/common/http/header_utility.h`.
fn fits(headers: &HeaderMap, matcher: &HeaderMatcher) -> bool {
    let mut values = headers.all(&matcher.name);
    match &matcher.wanted {
        WantedHeader::Present(wanted) => values.next().is_some() == *wanted,
        WantedHeader::Exact(wanted) => values.any(|value| value == wanted.as_bytes()),
    }
}

/// Who serves the authority of a request: whoever names it whole, else the longest suffix or prefix, in this order. A port is part
/// of an authority.
pub(super) fn virtual_host<'a>(
    listener: &'a Listener,
    headers: &HeaderMap,
) -> Option<&'a VirtualHost> {
    let authority = headers.first(":authority").unwrap_or_default();
    let authority = authority.to_ascii_lowercase();
    let closeness = |domain: &str| {
        let domain = domain.as_bytes();
        match (domain.strip_prefix(b"*"), domain.strip_suffix(b"*")) {
            _ if domain == authority => Some((3, 0)),
            _ if domain == b"*" => Some((0, 0)),
            // What the asterisk stands for is not empty.
            _ if authority.len() < domain.len() => None,
            (Some(suffix), _) if authority.ends_with(suffix) => Some((2, suffix.len())),
            (None, Some(prefix)) if authority.starts_with(prefix) => Some((1, prefix.len())),
            _ => None,
        }
    };
    let hosts = listener.virtual_hosts.iter();
    let serving = hosts.filter_map(|host| {
        let domains = host.domains.iter();
        let closest = domains.filter_map(|domain| closeness(domain)).max()?;
        Some((closest, host))
    });
    let closest = serving.max_by_key(|(closeness, _)| *closeness);
    closest.map(|(_, host)| host)
}

/// Whether `route` lets requests become `upgrade`.
pub(super) fn allows_upgrade(listener: &Listener, route: &Route, upgrade: &str) -> bool {
    let own = match &route.action {
        RouteAction::Forward {
            upgrades: Some(upgrades),
            ..
        } => upgrades,
        RouteAction::Forward { upgrades: None, .. } | RouteAction::DirectResponse { .. } => {
            &listener.http.upgrades
        }
    };
    own.iter().any(|allowed| allowed == upgrade)
}

/// What the router does to a request on its way to the upstream.
pub(super) fn to_upstream(headers: &mut HeaderMap, listener: &Listener, route: &Route) {
    let host = virtual_host(listener, headers);
    let of_host = host.into_iter();
    let of_host = of_host.flat_map(|host| &host.request_headers_to_remove);
    for name in of_host.chain(&route.request_headers_to_remove) {
        headers.remove(name.as_bytes());
    }
}

/// What the connection manager does to a response on its way to the client.
pub(super) fn to_client(headers: &mut HeaderMap, upgraded: bool) {
    if !upgraded {
        headers.remove(b"connection");
        headers.remove(b"upgrade");
    }
    for name in ["keep-alive", "proxy-connection", "transfer-encoding"] {
        headers.remove(name.as_bytes());
    }
    if !headers.contains("date") {
        headers.add(b"date", date(SystemTime::now()).as_bytes());
    }
    headers.set_in_place("server", b"envoy");
}

/// A random UUID, as Envoy's default extension makes them.
fn request_id() -> String {
    let mut bytes = [0u8; 16];
    // Without randomness an id still has the form of one; it names a request in logs and nothing hangs on it.
    let _may_stay_zero = getrandom::fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

/// A date as RFC 9110 (5.6.7) wants it.
pub(super) fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let weekday =
        ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).unwrap_or(0)];
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = months[usize::try_from(month - 1).unwrap_or(0)];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// A date as ISO 8601 has it, to the second and without its zone, which is UTC.
pub(super) fn iso_date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a day counted from 1970. The method is Howard Hinnant's `civil_from_days`.
pub(super) fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// The address under which others reach this machine. No packet is sent: the system only picks the interface.
pub(super) fn machine_address() -> IpAddr {
    let probe = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    probe().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Headers that only Envoy's own side may set. Source: `ConnectionManagerUtility::cleanInternalHeaders`.
const INTERNAL: [&str; 14] = [
    "x-envoy-internal",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-force-trace",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-ip-tags",
    "x-envoy-max-retries",
    "x-envoy-original-url",
    "x-envoy-retriable-header-names",
    "x-envoy-retriable-status-codes",
    "x-envoy-retry-grpc-on",
    "x-envoy-retry-on",
    "x-envoy-upstream-alt-stat-name",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-upstream-rq-timeout-ms",
];

/// Those that go only where the peer is the client itself.
const EDGE_INTERNAL: [&str; 4] = [
    "x-envoy-decorator-operation",
    "x-envoy-downstream-service-cluster",
    "x-envoy-downstream-service-node",
    "x-envoy-original-path",
];

#[cfg(test)]
mod tests;
