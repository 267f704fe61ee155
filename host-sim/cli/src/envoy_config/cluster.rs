//! `envoy.config.cluster.v3.Cluster`: servers that do the same.

use std::net::IpAddr;

use host_sim::proxy::{Cluster, UpstreamProtocol};

use super::listener::socket_address;
use super::node::Node;
use super::refusal::{LEAVE_OUT, Refusal};
use super::transport_socket;

pub(super) fn read_all(node: &Node<'_>) -> Result<Vec<Cluster>, Refusal> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for node in node.list()? {
        let cluster = read(&node)?;
        if clusters.iter().any(|other| other.name == cluster.name) {
            return Err(Refusal::new(
                &format!("{}/name", node.pointer()),
                format!("{:?} a second time", cluster.name),
                "a name of its own for each cluster",
                "rename one of the two",
            ));
        }
        clusters.push(cluster);
    }
    Ok(clusters)
}

/// How the addresses of a cluster are found.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Discovery {
    Static,
    LogicalDns,
    StrictDns,
}

fn read(node: &Node<'_>) -> Result<Cluster, Refusal> {
    let mut fields = node.message()?;
    let mut cluster = Cluster::new(fields.required("name")?.text()?, []);
    let discovery = fields.read("type", |node| node.choice(&DISCOVERIES))?;
    let discovery = discovery.unwrap_or(Discovery::Static);
    if let Some(timeout) = fields.optional("connect_timeout") {
        cluster.connect_timeout = timeout.duration()?;
        if cluster.connect_timeout.is_zero() {
            return Err(timeout.refuse("more than zero, as in Envoy", LEAVE_OUT));
        }
    }
    fields.read("lb_policy", |node| {
        node.must_be(&"ROUND_ROBIN".into(), LEAVE_OUT)
    })?;
    let assignment = fields.required("load_assignment")?;
    cluster.endpoints = endpoints(&assignment, discovery)?;
    fields.read("typed_extension_protocol_options", |node| {
        protocol_options(node, &mut cluster)
    })?;
    cluster.tls = fields.read("transport_socket", transport_socket::upstream)?;
    fields.end()?;
    Ok(cluster)
}

/// `envoy.config.endpoint.v3.ClusterLoadAssignment`
fn endpoints(node: &Node<'_>, discovery: Discovery) -> Result<Vec<String>, Refusal> {
    let mut assignment = node.message()?;
    assignment.text("cluster_name")?;
    let localities = assignment
        .read("endpoints", Node::list)?
        .unwrap_or_default();
    assignment.end()?;
    let mut endpoints = Vec::new();
    for locality in localities {
        let mut locality = locality.message()?;
        for item in locality
            .read("lb_endpoints", Node::list)?
            .unwrap_or_default()
        {
            let mut fields = item.message()?;
            let mut endpoint = fields.required("endpoint")?.message()?;
            fields.end()?;
            let address = endpoint.required("address")?;
            endpoint.end()?;
            endpoints.push(server(&address, discovery)?);
        }
        locality.end()?;
    }
    if discovery == Discovery::LogicalDns && endpoints.len() != 1 {
        return Err(Refusal::new(
            &format!("{}/endpoints", node.pointer()),
            format!("{} endpoints", endpoints.len()),
            "one endpoint in a cluster of type LOGICAL_DNS, as in Envoy",
            "make it STRICT_DNS",
        ));
    }
    Ok(endpoints)
}

/// `HOST:PORT`, with the brackets that an IPv6 address needs.
fn server(node: &Node<'_>, discovery: Discovery) -> Result<String, Refusal> {
    let (host, port) = socket_address(node)?;
    let name = host.text()?;
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => Ok(format!("[{ip}]:{port}")),
        Ok(IpAddr::V4(ip)) => Ok(format!("{ip}:{port}")),
        Err(_) if discovery == Discovery::Static => Err(host.refuse(
            "an IP address in a cluster of type STATIC, as in Envoy",
            "make the cluster STRICT_DNS to have the name resolved",
        )),
        Err(_) => Ok(format!("{name}:{port}")),
    }
}

fn protocol_options(node: &Node<'_>, cluster: &mut Cluster) -> Result<(), Refusal> {
    let mut extensions = node.message()?;
    let options = extensions.optional(HTTP_OPTIONS);
    extensions.end()?;
    let Some(options) = options else {
        return Ok(());
    };
    let (_, mut options) = options.any(&[HTTP_OPTIONS])?;
    if let Some(common) = options.optional("common_http_protocol_options") {
        let mut common = common.message()?;
        if let Some(timeout) = common.read("idle_timeout", Node::limit)? {
            cluster.idle_timeout = timeout;
        }
        common.end()?;
    }
    let (_, explicit) = options.one_of(&["explicit_http_config"])?;
    options.end()?;
    let mut explicit = explicit.message()?;
    let (protocol, settings) =
        explicit.one_of(&["http_protocol_options", "http2_protocol_options"])?;
    explicit.end()?;
    let mut settings = settings.message()?;
    if protocol == "http2_protocol_options" {
        cluster.protocol = UpstreamProtocol::Http2;
    } else {
        cluster.protocol = UpstreamProtocol::Http1;
        cluster.enable_trailers = settings.flag("enable_trailers")?;
    }
    settings.end()
}

const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

const DISCOVERIES: [(&str, Discovery); 3] = [
    ("STATIC", Discovery::Static),
    ("STRICT_DNS", Discovery::StrictDns),
    ("LOGICAL_DNS", Discovery::LogicalDns),
];
