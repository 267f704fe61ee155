//! `envoy/envoy.yaml`, `envoy/grpc.yaml` and `envoy/mcp.yaml` as documents that `host-sim up` and the tests adapt: other addresses, another module,
//! another policy.
//!
//! The files that an operator copies are those that are run here, so they cannot go stale unnoticed. This module knows where in an
//! Envoy bootstrap the gate's settings lie and nothing about what they mean.

mod places;

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::document::{self, DocumentError};
use places::Places;

/// The bootstrap that an operator copies, as it was when this program was built.
pub const SHIPPED: &str = include_str!("../../../envoy/envoy.yaml");

/// The one to copy for a gRPC service.
pub const SHIPPED_GRPC: &str = include_str!("../../../envoy/grpc.yaml");

/// The one to copy for the approval tools.
pub const SHIPPED_MCP: &str = include_str!("../../../envoy/mcp.yaml");

/// An Envoy bootstrap with exactly one gate in it: one wasm HTTP filter in a listener.
///
/// Every setter fails only when an earlier [`edit`](Bootstrap::edit) removed the place it writes to.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    document: Value,
    origin: String,
}

impl Bootstrap {
    /// The bootstrap of `envoy/envoy.yaml`.
    ///
    /// Fails only when the shipped file is broken, which a unit test rules out.
    pub fn shipped() -> Result<Bootstrap, BootstrapError> {
        Bootstrap::parse(SHIPPED, "envoy/envoy.yaml")
    }

    /// The bootstrap of `envoy/grpc.yaml`.
    ///
    /// Fails only when the shipped file is broken, which a unit test rules out.
    pub fn shipped_grpc() -> Result<Bootstrap, BootstrapError> {
        Bootstrap::parse(SHIPPED_GRPC, "envoy/grpc.yaml")
    }

    /// The bootstrap of `envoy/mcp.yaml`.
    ///
    /// Fails only when the shipped file is broken, which a unit test rules out.
    pub fn shipped_mcp() -> Result<Bootstrap, BootstrapError> {
        Bootstrap::parse(SHIPPED_MCP, "envoy/mcp.yaml")
    }

    /// Reads the operator's own bootstrap from `path`, YAML or JSON.
    pub fn load(path: &Path) -> Result<Bootstrap, BootstrapError> {
        let (document, origin) = document::load(path)?;
        Bootstrap::of(document, &origin)
    }

    /// Parses `yaml`; `origin` names it in messages. Fails when a place that the setters write to is missing.
    pub fn parse(yaml: &str, origin: &str) -> Result<Bootstrap, BootstrapError> {
        Bootstrap::of(document::parse(yaml, origin)?, origin)
    }

    fn of(document: Value, origin: &str) -> Result<Bootstrap, BootstrapError> {
        let bootstrap = Bootstrap {
            document,
            origin: origin.to_owned(),
        };
        Places::find(&bootstrap.document, origin)?;
        Ok(bootstrap)
    }

    /// Lets the gate's listener listen on `address`. Port 0 is allowed: the running Envoy tells the port that it took.
    pub fn set_listener(&mut self, address: SocketAddr) -> Result<&mut Bootstrap, BootstrapError> {
        let listener = self.places()?.listener;
        self.write_address(&format!("{listener}/address"), address)
    }

    /// Lets the admin interface listen on `address`. Port 0 is allowed.
    pub fn set_admin(&mut self, address: SocketAddr) -> Result<&mut Bootstrap, BootstrapError> {
        self.write_address("/admin/address", address)
    }

    /// Points the first endpoint of `cluster` at `address`.
    pub fn set_cluster(
        &mut self,
        cluster: &str,
        address: SocketAddr,
    ) -> Result<&mut Bootstrap, BootstrapError> {
        let place = places::cluster_address(&self.document, &self.origin, cluster)?;
        self.write_address(&place, address)
    }

    /// Loads the module from `file`, whatever the file said before (`local` or `remote`).
    pub fn set_wasm_module(&mut self, file: &Path) -> Result<&mut Bootstrap, BootstrapError> {
        let place = format!("{}/vm_config/code", self.places()?.plugin);
        self.write(&place, json!({ "local": { "filename": file } }))
    }

    /// Names the VM. Give every configuration an id of its own, for equal ids share memory.
    pub fn set_vm_id(&mut self, vm_id: &str) -> Result<&mut Bootstrap, BootstrapError> {
        let place = format!("{}/vm_config/vm_id", self.places()?.plugin);
        self.write(&place, json!(vm_id))
    }

    /// Takes the filter that unpacks gRPC-Web out of the gate's listener, if it is there: the simulator has none. Without it the
    /// gate holds such calls by their bytes.
    pub fn leave_out_grpc_web(&mut self) -> Result<&mut Bootstrap, BootstrapError> {
        let place = self.places()?.http_filters;
        if let Some(Value::Array(filters)) = self.document.pointer_mut(&place) {
            filters
                .retain(|filter| filter.pointer("/typed_config/@type") != Some(&json!(GRPC_WEB)));
        }
        Ok(self)
    }

    /// Replaces the whole plugin configuration by `configuration`.
    pub fn set_plugin_configuration(
        &mut self,
        configuration: &Value,
    ) -> Result<&mut Bootstrap, BootstrapError> {
        self.set_plugin_configuration_text(&format!("{configuration:#}"))
    }

    /// Replaces the whole plugin configuration by `text`, handed to the filter byte for byte: also what is no JSON at all.
    pub fn set_plugin_configuration_text(
        &mut self,
        text: &str,
    ) -> Result<&mut Bootstrap, BootstrapError> {
        // Not a Struct: Envoy 1.40 hands that over undecoded.
        let any = json!({ "@type": STRING_VALUE, "value": text });
        let place = format!("{}/configuration", self.places()?.plugin);
        self.write(&place, any)
    }

    /// The plugin configuration; `None` when it is no JSON in a `StringValue`.
    pub fn plugin_configuration(&self) -> Option<Value> {
        let plugin = self.places().ok()?.plugin;
        let any = self.document.pointer(&format!("{plugin}/configuration"))?;
        if any.get("@type")? != STRING_VALUE {
            return None;
        }
        serde_json::from_str(any.get("value")?.as_str()?).ok()
    }

    /// The name of the gate's listener in the bootstrap, as the admin interface lists it.
    pub fn listener_name(&self) -> Result<String, BootstrapError> {
        let name = self.places()?.listener_name;
        Ok(name)
    }

    /// Changes anything else in the document.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) -> &mut Bootstrap {
        change(&mut self.document);
        self
    }

    /// The document as JSON, which Envoy accepts in a file whose name ends in `.json`.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", self.document)
    }

    fn places(&self) -> Result<Places, BootstrapError> {
        Places::find(&self.document, &self.origin)
    }

    fn write_address(
        &mut self,
        place: &str,
        address: SocketAddr,
    ) -> Result<&mut Bootstrap, BootstrapError> {
        let socket_address =
            json!({ "address": address.ip().to_string(), "port_value": address.port() });
        self.write(place, json!({ "socket_address": socket_address }))
    }

    /// Writes `value` to `place`, whose parent has to be there.
    fn write(&mut self, place: &str, value: Value) -> Result<&mut Bootstrap, BootstrapError> {
        let (parent, key) = place.rsplit_once('/').unwrap_or(("", place));
        let Some(Value::Object(members)) = self.document.pointer_mut(parent) else {
            return Err(BootstrapError::PlaceMissing {
                origin: self.origin.clone(),
                place: parent.to_owned(),
                wanted: "an object",
            });
        };
        members.insert(key.to_owned(), value);
        Ok(self)
    }
}

/// Why a bootstrap cannot be used. Each is the operator's to mend, in the file that the message names.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// There is no document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A place that has to be there is not.
    #[error("{origin}: {place}: found nothing usable, need {wanted}")]
    PlaceMissing {
        /// The file.
        origin: String,
        /// JSON pointer to the place.
        place: String,
        /// What has to stand there.
        wanted: &'static str,
    },
    /// No cluster of that name.
    #[error("{origin}: /static_resources/clusters: found no cluster `{cluster}`, only: {found}")]
    ClusterMissing {
        /// The file.
        origin: String,
        /// The name that was looked for.
        cluster: String,
        /// The names that are there.
        found: String,
    },
    /// More than one wasm filter, so it is not clear which one is the gate.
    #[error("{origin}: found {count} wasm HTTP filters ({places}), need exactly one")]
    SecondGate {
        /// The file.
        origin: String,
        /// How many.
        count: usize,
        /// JSON pointers to them.
        places: String,
    },
}

impl BootstrapError {
    /// What the operator can do about it; `flag` is the one that names the file.
    pub fn hint(&self, flag: &str) -> String {
        let hint = match self {
            BootstrapError::Document(error) => return error.hint(flag),
            BootstrapError::PlaceMissing { .. } => {
                "start from a copy of envoy/envoy.yaml, which has every place"
            }
            BootstrapError::ClusterMissing { .. } => {
                "keep the names of the clusters in envoy/envoy.yaml, envoy/grpc.yaml and envoy/mcp.yaml"
            }
            BootstrapError::SecondGate { .. } => "leave one wasm HTTP filter in the file",
        };
        hint.to_owned()
    }
}

const GRPC_WEB: &str = "type.googleapis.com/envoy.extensions.filters.http.grpc_web.v3.GrpcWeb";
const STRING_VALUE: &str = "type.googleapis.com/google.protobuf.StringValue";

#[cfg(test)]
mod tests;
