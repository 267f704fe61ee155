//! `envoy.config.route.v3.RouteConfiguration`: virtual hosts by authority, and their routes.

use std::time::Duration;

use host_sim::proxy::{
    AccessLogFormat, Cluster, DirectBody, HeaderMatcher, Route, RouteAction, RouteMatcher,
    VirtualHost, WantedHeader,
};
use host_sim::{Metadata, Pace};

use super::access_log;
use super::connection_manager;
use super::node::{Node, SEE_ENVOY};
use super::refusal::{LEAVE_OUT, Refusal, listed};
use super::shaping::{self, Shapers};
use super::transport_socket::data_source;

pub(super) fn read_configuration(
    node: &Node<'_>,
    clusters: &[Cluster],
    shapers: &Shapers,
) -> Result<Vec<VirtualHost>, Refusal> {
    let mut configuration = node.message()?;
    configuration.text("name")?;
    let removed = configuration.read("request_headers_to_remove", header_names)?;
    let removed = removed.unwrap_or_default();
    let list = configuration.required("virtual_hosts")?;
    configuration.end()?;
    let mut hosts: Vec<VirtualHost> = Vec::new();
    for item in list.list()? {
        let mut host = virtual_host(&item, &hosts, clusters, shapers)?;
        host.request_headers_to_remove.extend_from_slice(&removed);
        hosts.push(host);
    }
    Ok(hosts)
}

fn virtual_host(
    node: &Node<'_>,
    others: &[VirtualHost],
    clusters: &[Cluster],
    shapers: &Shapers,
) -> Result<VirtualHost, Refusal> {
    let mut host = node.message()?;
    let name = host.required("name")?.text()?.to_owned();
    let domains = domains(&host.required("domains")?, others)?;
    let removed = host.read("request_headers_to_remove", header_names)?;
    let list = host.required("routes")?;
    host.end()?;
    let mut routes = Vec::new();
    for item in list.list()? {
        routes.push(read_route(&item, clusters, shapers)?);
    }
    Ok(VirtualHost {
        name,
        domains,
        request_headers_to_remove: removed.unwrap_or_default(),
        routes,
    })
}

/// Authorities in lower case, none of them in another virtual host, too.
fn domains(node: &Node<'_>, others: &[VirtualHost]) -> Result<Vec<String>, Refusal> {
    let mut domains: Vec<String> = Vec::new();
    for item in node.list()? {
        let domain = item.text()?.to_ascii_lowercase();
        let known = others.iter().flat_map(|host| &host.domains);
        if known.chain(&domains).any(|known| *known == domain) {
            return Err(item.refuse(
                "each domain once",
                "keep it in one virtual host, as Envoy wants it",
            ));
        }
        let inner = domain.strip_prefix('*').unwrap_or(&domain);
        let inner = inner.strip_suffix('*').unwrap_or(inner);
        if domain.is_empty() || inner.contains('*') || (domain.len() > inner.len() + 1) {
            return Err(item.refuse(
                "a host, with its port where clients send one, or a part of it behind or before one `*`",
                SEE_ENVOY,
            ));
        }
        domains.push(domain);
    }
    if domains.is_empty() {
        return Err(node.refuse("one domain at least", SEE_ENVOY));
    }
    Ok(domains)
}

fn read_route(node: &Node<'_>, clusters: &[Cluster], shapers: &Shapers) -> Result<Route, Refusal> {
    let mut fields = node.message()?;
    let name = fields.text("name")?;
    let (matcher, headers) = matcher(&fields.required("match")?)?;
    let metadata = fields.read("metadata", metadata)?;
    let removed = fields.read("request_headers_to_remove", header_names)?;
    let per_filter = fields.optional("typed_per_filter_config");
    let (kind, action) = fields.one_of(&["route", "direct_response"])?;
    fields.end()?;
    let pace = match &per_filter {
        Some(settings) => shaping::of_route(settings, shapers)?,
        None => None,
    };
    let (action, timeout) = match (kind, per_filter) {
        ("route", Some(settings)) if pace.is_some() => {
            return Err(settings.refuse(
                "filters that shape answers on routes with a `direct_response` only",
                LEAVE_OUT,
            ));
        }
        ("route", _) => forward(&action, clusters)?,
        _ => (direct_response(&action, pace)?, None),
    };
    Ok(Route {
        name,
        metadata: metadata.unwrap_or_default(),
        matcher,
        headers,
        action,
        timeout,
        request_headers_to_remove: removed.unwrap_or_default(),
    })
}

/// `envoy.config.core.v3.Metadata`
fn metadata(node: &Node<'_>) -> Result<Metadata, Refusal> {
    let mut fields = node.message()?;
    let groups = fields.optional("filter_metadata");
    fields.end()?;
    let mut metadata = Metadata::default();
    if let Some(groups) = groups {
        for (namespace, values) in groups.message()?.entries() {
            let values = values.message()?.entries().into_iter();
            let values = values.map(|(name, value)| (name.to_owned(), value.metadata()));
            metadata.0.insert(namespace.to_owned(), values.collect());
        }
    }
    Ok(metadata)
}

/// `envoy.config.route.v3.RouteMatch`
fn matcher(node: &Node<'_>) -> Result<(RouteMatcher, Vec<HeaderMatcher>), Refusal> {
    let mut fields = node.message()?;
    let (kind, value) = fields.one_of(&["prefix", "path", "connect_matcher"])?;
    let headers = fields.read("headers", |node| {
        node.list()?.iter().map(header_matcher).collect()
    })?;
    fields.end()?;
    let matcher = match kind {
        "prefix" => RouteMatcher::Prefix(value.text()?.to_owned()),
        "path" => RouteMatcher::Path(value.text()?.to_owned()),
        _ => {
            value.empty_message(LEAVE_OUT)?;
            RouteMatcher::Connect
        }
    };
    Ok((matcher, headers.unwrap_or_default()))
}

/// `envoy.config.route.v3.HeaderMatcher`
fn header_matcher(node: &Node<'_>) -> Result<HeaderMatcher, Refusal> {
    let mut fields = node.message()?;
    let name = fields.required("name")?.text()?.to_ascii_lowercase();
    let (kind, value) = fields.one_of(&["string_match", "present_match"])?;
    fields.end()?;
    let wanted = if kind == "present_match" {
        WantedHeader::Present(value.boolean()?)
    } else {
        let mut text = value.message()?;
        let (_, exact) = text.one_of(&["exact"])?;
        text.end()?;
        WantedHeader::Exact(exact.text()?.to_owned())
    };
    Ok(HeaderMatcher { name, wanted })
}

/// `envoy.config.route.v3.RouteAction`. A time-out that is not given is Envoy's 15 s.
fn forward(
    node: &Node<'_>,
    clusters: &[Cluster],
) -> Result<(RouteAction, Option<Duration>), Refusal> {
    let mut fields = node.message()?;
    let (_, cluster) = fields.one_of(&["cluster"])?;
    let timeout = fields.read("timeout", Node::limit)?;
    let upgrades = fields.read("upgrade_configs", connection_manager::upgrades)?;
    fields.end()?;
    let name = cluster.text()?;
    if !clusters.iter().any(|known| known.name == name) {
        let known = match clusters {
            [] => "no cluster, for there is none".to_owned(),
            clusters => listed(clusters.iter().map(|cluster| cluster.name.as_str())),
        };
        return Err(cluster.refuse(known, "add the cluster under /static_resources/clusters"));
    }
    let action = RouteAction::Forward {
        cluster: name.to_owned(),
        upgrades,
    };
    Ok((action, timeout.unwrap_or(Some(ROUTE_TIMEOUT))))
}

/// `envoy.config.route.v3.DirectResponseAction`
fn direct_response(node: &Node<'_>, pace: Option<Pace>) -> Result<RouteAction, Refusal> {
    let mut fields = node.message()?;
    let status = fields.required("status")?.number(200, 599)?;
    let bytes = fields.read("body", data_source)?;
    let format = fields.optional("body_format");
    fields.end()?;
    let body = match (bytes, format) {
        (Some(_), Some(format)) => {
            return Err(format.refuse("only one of `body`, `body_format`", LEAVE_OUT));
        }
        (bytes, None) => DirectBody::Bytes(bytes.unwrap_or_default()),
        (None, Some(format)) => DirectBody::Format(body_format(&format)?),
    };
    Ok(RouteAction::DirectResponse {
        status: u16::try_from(status).unwrap_or_default(),
        body,
        pace,
    })
}

/// `envoy.config.core.v3.SubstitutionFormatString` of a body.
fn body_format(node: &Node<'_>) -> Result<AccessLogFormat, Refusal> {
    let format = access_log::text_format(node)?;
    if format.reads_properties_only() {
        return Ok(format);
    }
    Err(node.refuse(
        "a text with no operator but `%FILTER_STATE(wasm.NAME:PLAIN)%`",
        LEAVE_OUT,
    ))
}

/// Names of headers to remove, in lower case.
fn header_names(node: &Node<'_>) -> Result<Vec<String>, Refusal> {
    let mut names = Vec::new();
    for item in node.list()? {
        let name = item.text()?.to_ascii_lowercase();
        if name.is_empty() || name.starts_with(':') || name == "host" {
            return Err(item.refuse(
                "the name of a header that is neither `host` nor begins with a colon",
                LEAVE_OUT,
            ));
        }
        names.push(name);
    }
    Ok(names)
}

const ROUTE_TIMEOUT: Duration = Duration::from_secs(15);
