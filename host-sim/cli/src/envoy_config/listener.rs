//! `envoy.config.listener.v3.Listener`: one address with one connection manager behind it.

use std::net::SocketAddr;

use host_sim::proxy::{Cluster, Listener};

use super::GatedListener;
use super::connection_manager;
use super::node::Node;
use super::refusal::{LEAVE_OUT, Refusal};
use super::transport_socket;

pub(super) fn read_all(
    node: &Node<'_>,
    clusters: &[Cluster],
) -> Result<Vec<GatedListener>, Refusal> {
    let mut listeners: Vec<GatedListener> = Vec::new();
    for node in node.list()? {
        let gated = read(&node, clusters)?;
        let name = &gated.listener.name;
        if listeners.iter().any(|other| other.listener.name == *name) {
            return Err(Refusal::new(
                &format!("{}/name", node.pointer()),
                format!("{name:?} a second time"),
                "a name of its own for each listener",
                "rename one of the two",
            ));
        }
        listeners.push(gated);
    }
    Ok(listeners)
}

fn read(node: &Node<'_>, clusters: &[Cluster]) -> Result<GatedListener, Refusal> {
    let mut fields = node.message()?;
    let name = fields.text("name")?;
    let address = socket(&fields.required("address")?)?;
    let limit = fields.read("per_connection_buffer_limit_bytes", |node| {
        node.number(1, u32::MAX)
    })?;
    let chain = fields.required("filter_chains")?.only("filter chain")?;
    fields.end()?;

    let mut chain = chain.message()?;
    chain.text("name")?;
    let tls = chain.read("transport_socket", transport_socket::downstream)?;
    let filter = chain.required("filters")?.only("http_connection_manager")?;
    chain.end()?;

    let mut filter = filter.message()?;
    filter.text("name")?;
    let (_, manager) = filter
        .required("typed_config")?
        .any(&[CONNECTION_MANAGER])?;
    filter.end()?;
    let mut manager = connection_manager::read(manager, clusters)?;
    if let Some(limit) = limit {
        manager.limits.buffer_limit_bytes = usize::try_from(limit).unwrap_or(usize::MAX);
    }
    Ok(GatedListener {
        listener: Listener {
            name,
            address,
            stat_prefix: manager.stat_prefix,
            limits: manager.limits,
            plugin: None,
            tls,
            http: manager.http,
            virtual_hosts: manager.virtual_hosts,
            access_log: manager.access_log,
        },
        plugin: manager.plugin,
    })
}

/// An address to listen on, which is no name.
pub(super) fn socket(node: &Node<'_>) -> Result<SocketAddr, Refusal> {
    let (address, port) = socket_address(node)?;
    match address.text()?.parse() {
        Ok(ip) => Ok(SocketAddr::new(ip, port)),
        Err(_) => Err(address.refuse(
            "an IP address",
            "write the address of an interface, such as 127.0.0.1",
        )),
    }
}

/// `envoy.config.core.v3.Address`: the node of the host, and the port.
pub(super) fn socket_address<'d>(node: &Node<'d>) -> Result<(Node<'d>, u16), Refusal> {
    let mut kinds = node.message()?;
    let (_, socket) = kinds.one_of(&["socket_address"])?;
    kinds.end()?;
    let mut socket = socket.message()?;
    socket.read("protocol", |node| node.must_be(&"TCP".into(), LEAVE_OUT))?;
    let address = socket.required("address")?;
    let port = socket.required("port_value")?.number(0, u16::MAX.into())?;
    socket.end()?;
    Ok((address, u16::try_from(port).unwrap_or_default()))
}

const CONNECTION_MANAGER: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
