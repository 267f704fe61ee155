//! The shipped file with changes, for the tests of what is understood and of what is refused.

mod refused;
mod shaping;
mod understood;

use super::*;
use crate::bootstrap::SHIPPED;

fn shipped() -> Value {
    serde_saphyr::from_str(SHIPPED).expect("YAML")
}

/// The shipped file with other values at some places, whose parents are there. `LISTENER` and so on stand for the places below.
fn changed<const N: usize>(changes: [(&str, Value); N]) -> Value {
    let mut document = shipped();
    for (place, value) in changes {
        set(&mut document, &long(place), value);
    }
    document
}

fn set(document: &mut Value, place: &str, value: Value) {
    let (parent, key) = place.rsplit_once('/').expect("a pointer");
    match document.pointer_mut(parent).expect("a parent") {
        Value::Object(members) => {
            members.insert(key.replace("~1", "/"), value);
        }
        Value::Array(items) => items.insert(key.parse().expect("an index"), value),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {
            panic!("{parent} holds nothing")
        }
    }
}

fn long(text: &str) -> String {
    text.replace(
        "CHAIN OF FILTERS",
        "at most one wasm filter, then `envoy.filters.http.fault`, then \
            `envoy.filters.http.bandwidth_limit`, and the router behind them",
    )
    .replace("PLUGIN", "MANAGER/http_filters/0/typed_config/config")
    .replace("HOST", "MANAGER/route_config/virtual_hosts/0")
    .replace("MANAGER", "CHAIN/filters/0/typed_config")
    .replace("CHAIN", "LISTENER/filter_chains/0")
    .replace("LISTENER", "/static_resources/listeners/0")
    .replace("UPSTREAM/", "/static_resources/clusters/1/")
    .replace(
        "OPTIONS",
        "typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    )
    .replace(
        "LEAVE OUT",
        "leave it out where your test does not depend on it, or run this file on Envoy",
    )
    .replace(
        "SEE ENVOY",
        "check the file with `envoy --mode validate`, or compare it with envoy/envoy.yaml",
    )
}
