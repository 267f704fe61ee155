//! Where in a bootstrap the gate's settings lie, as JSON pointers. Reads the document, changes nothing.

use serde_json::Value;

use super::BootstrapError;

/// JSON pointers into one bootstrap document.
pub(super) struct Places {
    /// The listener that the gate's filter belongs to.
    pub(super) listener: String,
    /// Its name.
    pub(super) listener_name: String,
    /// The filters of its connection manager.
    pub(super) http_filters: String,
    /// The filter's `PluginConfig` (`envoy.extensions.wasm.v3.PluginConfig`).
    pub(super) plugin: String,
}

impl Places {
    /// Looks for the one wasm HTTP filter, wherever it stands: an operator's file may have more listeners than ours.
    pub(super) fn find(document: &Value, origin: &str) -> Result<Places, BootstrapError> {
        let missing = |place: &str, wanted: &'static str| BootstrapError::PlaceMissing {
            origin: origin.to_owned(),
            place: place.to_owned(),
            wanted,
        };
        if !document.pointer("/admin").is_some_and(Value::is_object) {
            return Err(missing("/admin", "an object with the admin address"));
        }
        let mut gates = wasm_filters(document);
        if gates.len() > 1 {
            let places: Vec<&str> = gates.iter().map(|gate| gate.plugin.as_str()).collect();
            return Err(BootstrapError::SecondGate {
                origin: origin.to_owned(),
                count: gates.len(),
                places: places.join(", "),
            });
        }
        let wanted = "a listener whose http_connection_manager has a wasm HTTP filter with its settings under `config`";
        let gate = gates.pop().ok_or_else(|| missing(LISTENERS, wanted))?;
        let vm_config = format!("{}/vm_config", gate.plugin);
        if !document.pointer(&vm_config).is_some_and(Value::is_object) {
            return Err(missing(&vm_config, "an object with `vm_id` and `code`"));
        }
        Ok(gate)
    }
}

/// The address of the first endpoint of `cluster`.
pub(super) fn cluster_address(
    document: &Value,
    origin: &str,
    cluster: &str,
) -> Result<String, BootstrapError> {
    let mut found = Vec::new();
    for (place, value) in elements(document, CLUSTERS) {
        let name = value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or("(no name)");
        if name != cluster {
            found.push(name);
            continue;
        }
        let endpoint = format!("{place}/load_assignment/endpoints/0/lb_endpoints/0/endpoint");
        return match document.pointer(&endpoint) {
            Some(Value::Object(_)) => Ok(format!("{endpoint}/address")),
            _ => Err(BootstrapError::PlaceMissing {
                origin: origin.to_owned(),
                place: endpoint,
                wanted: "an endpoint",
            }),
        };
    }
    Err(BootstrapError::ClusterMissing {
        origin: origin.to_owned(),
        cluster: cluster.to_owned(),
        found: found.join(", "),
    })
}

fn wasm_filters(document: &Value) -> Vec<Places> {
    let mut gates = Vec::new();
    for (listener, listener_value) in elements(document, LISTENERS) {
        let name = listener_value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        for (chain, _) in elements(document, &format!("{listener}/filter_chains")) {
            for (filter, _) in elements(document, &format!("{chain}/filters")) {
                let http_filters = format!("{filter}/typed_config/http_filters");
                for (http_filter, value) in elements(document, &http_filters) {
                    let kind = value.pointer("/typed_config/@type").and_then(Value::as_str);
                    if kind.is_some_and(|kind| kind.ends_with(WASM_FILTER))
                        && value.pointer("/typed_config/config").is_some()
                    {
                        gates.push(Places {
                            listener: listener.clone(),
                            listener_name: name.to_owned(),
                            http_filters: http_filters.clone(),
                            plugin: format!("{http_filter}/typed_config/config"),
                        });
                    }
                }
            }
        }
    }
    gates
}

/// The elements of the array at `place`, each with its own pointer; none when there is no array.
fn elements<'a>(document: &'a Value, place: &str) -> Vec<(String, &'a Value)> {
    let array = document.pointer(place).and_then(Value::as_array);
    array
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, value)| (format!("{place}/{index}"), value))
        .collect()
}

const LISTENERS: &str = "/static_resources/listeners";
const CLUSTERS: &str = "/static_resources/clusters";
const WASM_FILTER: &str = "envoy.extensions.filters.http.wasm.v3.Wasm";
