//! What the configuration says of the approval tools.

use serde_json::{Map, Value};

use super::check::{child, text_of, texts_of, whole_of};
use super::error::ConfigError;
use super::flag_of;
use crate::limits;
use crate::request::host_of;
use crate::request::path::{self, PathReading};

/// Whether there are approval tools for the agents of this listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum McpConfig {
    /// There are none that it knows of.
    #[default]
    Absent,
    /// Another listener serves them: what is refused here names them.
    Advertised,
    /// This listener serves them, and nothing else.
    Served(McpEndpoint),
}

/// The endpoint of the approval tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpEndpoint {
    /// The path that is served.
    pub path: String,
    /// Names by which it may be called, without port; empty takes any.
    pub hosts: Vec<String>,
    /// How many waits of a minute are answered by a worker with progress at a time; any more get one answer at their end.
    pub max_streams: usize,
}

const PLACE: &str = "/mcp";

/// Reads the `mcp` block.
pub(super) fn mcp(
    entries: &Map<String, Value>,
    has_plane: bool,
    has_rules: bool,
) -> Result<McpConfig, ConfigError> {
    let Some(block) = entries.get("mcp").and_then(Value::as_object) else {
        return Ok(McpConfig::Absent);
    };
    if !has_plane {
        return Err(ConfigError::new(
            PLACE,
            "there are approval tools, but no Control Plane whose approvals they could tell of",
            "add control_plane, or remove mcp",
        ));
    }
    let Some(path) = text_of(block, "path") else {
        for key in ["hosts", "max_streams"] {
            if block.contains_key(key) {
                return Err(ConfigError::new(
                    &child(PLACE, key),
                    "this listener serves no approval tools, so the key means nothing",
                    "add path, or remove this key",
                ));
            }
        }
        return if flag_of(block, "advertise") {
            Ok(McpConfig::Advertised)
        } else {
            Err(ConfigError::new(
                PLACE,
                "found neither path nor \"advertise\": true",
                "write path where the tools are served, \"advertise\": true on a listener whose agents find them elsewhere",
            ))
        };
    };
    if block.contains_key("advertise") {
        return Err(ConfigError::new(
            &child(PLACE, "advertise"),
            "this listener serves the approval tools and refuses no calls that could name them",
            "remove advertise here, and set it on the listeners whose calls wait for approvals",
        ));
    }
    if has_rules {
        return Err(ConfigError::new(
            "/rules",
            "a listener that serves the approval tools forwards nothing, so no rule could ever meet a call",
            "move the rules to the listener of the calls, and set \"mcp\": {\"advertise\": true} there",
        ));
    }
    let max_streams = whole_of(block, "max_streams").and_then(|most| usize::try_from(most).ok());
    Ok(McpConfig::Served(McpEndpoint {
        path: path_of(path)?,
        hosts: hosts(block)?,
        max_streams: max_streams.unwrap_or(limits::DEFAULT_MCP_STREAMS),
    }))
}

/// A path that can be read in one way, so that nobody is served under another name.
fn path_of(path: &str) -> Result<String, ConfigError> {
    let is_plain = matches!(path::read(path.as_bytes()), PathReading::Plain(plain) if plain == path.as_bytes());
    let is_ours = path.starts_with("/.well-known/hoop/");
    if path.starts_with('/') && is_plain && !is_ours && !path.contains(['?', '#', '%']) {
        return Ok(path.to_owned());
    }
    Err(ConfigError::new(
        &child(PLACE, "path"),
        format!(
            "found {path:?}, allowed is a plain path that does not begin with \"/.well-known/hoop/\""
        ),
        "write a path such as \"/mcp\", without query, escapes or dot segments",
    ))
}

fn hosts(block: &Map<String, Value>) -> Result<Vec<String>, ConfigError> {
    let hosts = texts_of(block, "hosts");
    for (at, host) in hosts.iter().enumerate() {
        if host_of(host.as_bytes()) != Some(host.as_bytes()) {
            return Err(ConfigError::new(
                &child(&child(PLACE, "hosts"), &at.to_string()),
                format!("found {host:?}, which is no host name without port"),
                "write a name such as \"approvals.agents.svc\" or an address",
            ));
        }
    }
    Ok(hosts.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
