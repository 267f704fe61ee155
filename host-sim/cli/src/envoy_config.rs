//! An Envoy bootstrap read as settings of the simulator: the file that an operator gives to Envoy runs here too, or is refused.
//!
//! The simulator understands a part of what Envoy does. A field that is not read by one of these modules is refused with its
//! place, so a test never passes because a setting was left out in silence. Nothing here starts anything: modules are named and
//! not loaded, while certificates are read because their places stand in the file.

mod access_log;
mod cluster;
mod connection_manager;
mod listener;
mod node;
mod plugin;
mod refusal;
mod route;
mod shaping;
mod transport_socket;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use host_sim::NodeInfo;
use host_sim::proxy::{Cluster, Listener};
use serde_json::Value;

use crate::document::{self, DocumentError};
use crate::failure::Failure;
use node::Node;

pub use plugin::PluginConfig;
pub use refusal::Refusal;

/// What a bootstrap asks for.
#[derive(Clone, Debug)]
pub struct EnvoyConfig {
    /// Who this process is.
    pub node: NodeInfo,
    /// Where the admin interface listens.
    pub admin: Option<SocketAddr>,
    /// Where clients come in.
    pub listeners: Vec<GatedListener>,
    /// Where requests and callouts go.
    pub clusters: Vec<Cluster>,
}

/// A listener and the filter that belongs into it.
#[derive(Clone, Debug)]
pub struct GatedListener {
    /// Everything but the filter.
    pub listener: Listener,
    /// The filter, whose module is not loaded yet.
    pub plugin: Option<PluginConfig>,
}

/// Where a module comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Code {
    /// A file, `.wasm` or `.wat`.
    File(PathBuf),
    /// The bytes themselves.
    Inline(Vec<u8>),
}

/// Why a bootstrap cannot be used. Each is the operator's to mend.
#[derive(Debug, thiserror::Error)]
pub enum EnvoyConfigError {
    /// There is no document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A place in it is not understood.
    #[error("{origin}: {refusal}")]
    Refused {
        /// The file.
        origin: String,
        /// Where, what was found and what is understood.
        refusal: Refusal,
    },
}

impl EnvoyConfig {
    /// Reads `path`, YAML or JSON.
    pub fn load(path: &Path) -> Result<EnvoyConfig, EnvoyConfigError> {
        let (document, origin) = document::load(path)?;
        EnvoyConfig::of(&document, origin)
    }

    /// Reads `text`; `origin` names it in messages.
    pub fn parse(text: &str, origin: &str) -> Result<EnvoyConfig, EnvoyConfigError> {
        EnvoyConfig::of(&document::parse(text, origin)?, origin.to_owned())
    }

    fn of(document: &Value, origin: String) -> Result<EnvoyConfig, EnvoyConfigError> {
        read(document).map_err(|refusal| EnvoyConfigError::Refused { origin, refusal })
    }
}

impl From<EnvoyConfigError> for Failure {
    fn from(error: EnvoyConfigError) -> Failure {
        let hint = match &error {
            EnvoyConfigError::Document(error) => error.hint("--config"),
            EnvoyConfigError::Refused { refusal, .. } => refusal.hint().to_owned(),
        };
        Failure::user(error, hint)
    }
}

/// `envoy.config.bootstrap.v3.Bootstrap`
fn read(document: &Value) -> Result<EnvoyConfig, Refusal> {
    let mut bootstrap = Node::root(document).message()?;
    let node = bootstrap.read("node", read_node)?;
    let admin = bootstrap.read("admin", read_admin)?.flatten();
    let mut resources = bootstrap.required("static_resources")?.message()?;
    let clusters = resources.read("clusters", cluster::read_all)?;
    let clusters = clusters.unwrap_or_default();
    let listeners = resources.read("listeners", |node| listener::read_all(node, &clusters))?;
    resources.end()?;
    bootstrap.end()?;
    Ok(EnvoyConfig {
        node: node.unwrap_or_default(),
        admin,
        listeners: listeners.unwrap_or_default(),
        clusters,
    })
}

/// `envoy.config.core.v3.Node`
fn read_node(node: &Node<'_>) -> Result<NodeInfo, Refusal> {
    let mut fields = node.message()?;
    let id = fields.text("id")?;
    let cluster = fields.text("cluster")?;
    let mut region = String::new();
    if let Some(locality) = fields.optional("locality") {
        let mut locality = locality.message()?;
        region = locality.text("region")?;
        locality.end()?;
    }
    let mut metadata = Vec::new();
    if let Some(values) = fields.optional("metadata") {
        for (name, value) in values.message()?.entries() {
            metadata.push((name.to_owned(), value.text()?.to_owned()));
        }
    }
    fields.end()?;
    Ok(NodeInfo {
        id,
        cluster,
        region,
        metadata,
    })
}

/// `envoy.config.bootstrap.v3.Admin`
fn read_admin(node: &Node<'_>) -> Result<Option<SocketAddr>, Refusal> {
    let mut admin = node.message()?;
    let address = admin.read("address", listener::socket)?;
    admin.end()?;
    Ok(address)
}

#[cfg(test)]
mod tests;
