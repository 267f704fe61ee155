//! `envoy.config.route.v3.RouteConfiguration`: virtual hosts by authority, and their routes.

use std::time::Duration;

use host_sim::Metadata;
use host_sim::proxy::{Cluster, Route, RouteAction, RouteMatcher, VirtualHost};

use super::connection_manager;
use super::node::{Node, SEE_ENVOY};
use super::refusal::{LEAVE_OUT, Refusal, listed};
use super::transport_socket::data_source;

pub(super) fn read_configuration(
    node: &Node<'_>,
    clusters: &[Cluster],
) -> Result<Vec<VirtualHost>, Refusal> {
    let mut configuration = node.message()?;
    configuration.text("name")?;
    let removed = configuration.read("request_headers_to_remove", header_names)?;
    let removed = removed.unwrap_or_default();
    let list = configuration.required("virtual_hosts")?;
    configuration.end()?;
    let mut hosts: Vec<VirtualHost> = Vec::new();
    for item in list.list()? {
        let mut host = virtual_host(&item, &hosts, clusters)?;
        host.request_headers_to_remove.extend_from_slice(&removed);
        hosts.push(host);
    }
    Ok(hosts)
}

fn virtual_host(
    node: &Node<'_>,
    others: &[VirtualHost],
    clusters: &[Cluster],
) -> Result<VirtualHost, Refusal> {
    let mut host = node.message()?;
    let name = host.required("name")?.text()?.to_owned();
    let domains = domains(&host.required("domains")?, others)?;
    let removed = host.read("request_headers_to_remove", header_names)?;
    let list = host.required("routes")?;
    host.end()?;
    let mut routes = Vec::new();
    for item in list.list()? {
        routes.push(read_route(&item, clusters)?);
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

fn read_route(node: &Node<'_>, clusters: &[Cluster]) -> Result<Route, Refusal> {
    let mut fields = node.message()?;
    let name = fields.text("name")?;
    let matcher = matcher(&fields.required("match")?)?;
    let metadata = fields.read("metadata", metadata)?;
    let removed = fields.read("request_headers_to_remove", header_names)?;
    let (kind, action) = fields.one_of(&["route", "direct_response"])?;
    fields.end()?;
    let (action, timeout) = if kind == "route" {
        forward(&action, clusters)?
    } else {
        (direct_response(&action)?, None)
    };
    Ok(Route {
        name,
        metadata: metadata.unwrap_or_default(),
        matcher,
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
fn matcher(node: &Node<'_>) -> Result<RouteMatcher, Refusal> {
    let mut fields = node.message()?;
    let (kind, value) = fields.one_of(&["prefix", "path", "connect_matcher"])?;
    fields.end()?;
    Ok(match kind {
        "prefix" => RouteMatcher::Prefix(value.text()?.to_owned()),
        "path" => RouteMatcher::Path(value.text()?.to_owned()),
        _ => {
            value.empty_message(LEAVE_OUT)?;
            RouteMatcher::Connect
        }
    })
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
fn direct_response(node: &Node<'_>) -> Result<RouteAction, Refusal> {
    let mut fields = node.message()?;
    let status = fields.required("status")?.number(200, 599)?;
    let body = fields.read("body", data_source)?;
    fields.end()?;
    Ok(RouteAction::DirectResponse {
        status: u16::try_from(status).unwrap_or_default(),
        body: body.unwrap_or_default(),
    })
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
