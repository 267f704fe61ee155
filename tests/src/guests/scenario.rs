//! A scenario as its file says it, and the bootstrap document that a host gets.

use std::path::Path;

use serde_json::{Value, json};

/// One file of `scenarios/`.
pub struct Scenario {
    /// The guest's name, without extension.
    pub guest: String,
    /// What the client does, in order.
    pub exchanges: Vec<Exchange>,
    /// What the log must hold before the first exchange: ticks that must not fall among the streams' callbacks.
    pub ready: Option<Line>,
    /// What the log must hold before the host ends, besides an end of all requests.
    pub end: Option<Line>,
    /// Bodies come in pieces that time cuts, so neither their sizes nor their number are part of the transcript.
    pub pieces_vary: bool,
    document: Value,
}

/// A text, and how many lines of the log must hold it.
pub struct Line {
    /// The text.
    pub text: String,
    /// How many lines.
    pub times: usize,
}

/// One connection of the client.
pub struct Exchange {
    /// The bytes that go out, in pieces that the host reads one by one.
    pub pieces: Vec<Vec<u8>>,
    /// Closes the connection once the log holds this, instead of waiting for an answer.
    pub hang_up_after: Option<String>,
}

/// What a bootstrap document needs to know of the run.
pub struct Places<'a> {
    /// The module's file.
    pub module: &'a Path,
    /// Port of the upstream.
    pub upstream: u16,
    /// Port of the upstream that speaks gRPC.
    pub grpc_upstream: u16,
    /// A port where nobody listens.
    pub dead: u16,
}

impl Scenario {
    /// Reads a file; a file that cannot be read is a mistake of its author.
    pub fn read(file: &Path) -> Scenario {
        let text = std::fs::read_to_string(file).expect("a scenario");
        Scenario::of(serde_json::from_str(&text).expect("a scenario is JSON"))
    }

    /// A scenario that no file holds.
    pub fn of(document: Value) -> Scenario {
        let exchanges = document["exchanges"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        Scenario {
            guest: document["guest"].as_str().expect("a guest").to_owned(),
            exchanges: exchanges.iter().map(Exchange::from_value).collect(),
            ready: Line::from_value(&document["ready"]),
            end: Line::from_value(&document["end"]),
            pieces_vary: document["pieces_vary"] == true,
            document,
        }
    }

    /// The document for a host: admin and listener on port 0.
    pub fn bootstrap(&self, places: &Places<'_>) -> Value {
        let mut manager = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "in",
            "stream_idle_timeout": "1s",
            "http_protocol_options": {"enable_trailers": true},
            "route_config": {"name": "routes", "virtual_hosts": [{"name": "vhost", "domains": ["*"], "routes": [
                {"match": {"prefix": "/dead"}, "route": {"cluster": "dead"}},
                {"match": {"prefix": "/direct"}, "direct_response": {"status": 200, "body": {"inline_string": "direct"}}},
                {"name": "main", "match": {"prefix": "/"}, "route": {"cluster": "up"}},
            ]}]},
        });
        let behind = self.document["behind"].as_array().cloned();
        let router = json!({"name": "envoy.filters.http.router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}});
        let mut filters = vec![self.filter(places.module)];
        filters.extend(behind.unwrap_or_default());
        filters.push(router);
        manager["http_filters"] = filters.into();
        merge(&mut manager, &self.document["manager"]);
        let mut listener = json!({
            "name": "main",
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
            "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}],
        });
        merge(&mut listener, &self.document["listener"]);
        json!({
            "node": {"id": "node-id", "cluster": "node-cluster"},
            "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
            "static_resources": {
                "listeners": [listener],
                "clusters": [
                    cluster("up", Some(places.upstream)), cluster("dead", Some(places.dead)), cluster("empty", None),
                    http2(cluster("h2up", Some(places.grpc_upstream))), http2(cluster("h2dead", Some(places.dead))),
                ],
            },
        })
    }

    fn filter(&self, module: &Path) -> Value {
        let text = |key: &str| {
            let lines = self.document[key].as_array().cloned().unwrap_or_default();
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            json!({"@type": "type.googleapis.com/google.protobuf.StringValue", "value": lines.join("\n")})
        };
        let mut plugin = json!({
            "name": "guest",
            "root_id": "root",
            "vm_config": {
                "vm_id": "vm",
                "runtime": "envoy.wasm.runtime.v8",
                "code": {"local": {"filename": module}},
                "configuration": text("vm_configuration"),
            },
            "configuration": text("configuration"),
        });
        merge(&mut plugin, &self.document["plugin"]);
        json!({"name": "guest", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm", "config": plugin}})
    }
}

impl Line {
    fn from_value(value: &Value) -> Option<Line> {
        Some(Line {
            text: value["text"].as_str()?.to_owned(),
            times: usize::try_from(value["times"].as_u64()?).ok()?,
        })
    }
}

impl Exchange {
    fn from_value(value: &Value) -> Exchange {
        let head = value["head"].as_array().expect("a head");
        let head: Vec<&str> = head.iter().filter_map(Value::as_str).collect();
        let mut first = head.join("\r\n");
        first.push_str("\r\n\r\n");
        let mut pieces = vec![first.into_bytes()];
        for piece in value["pieces"].as_array().into_iter().flatten() {
            pieces.push(piece.as_str().expect("a piece is text").as_bytes().to_vec());
        }
        Exchange {
            pieces,
            hang_up_after: value["hang_up_after"].as_str().map(str::to_owned),
        }
    }
}

fn cluster(name: &str, port: Option<u16>) -> Value {
    let endpoints = port.map(|port| {
        json!({"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}]})
    });
    json!({
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": name, "endpoints": endpoints.into_iter().collect::<Vec<_>>()},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http_protocol_options": {"enable_trailers": true}}}},
    })
}

/// `cluster` over HTTP/2.
fn http2(mut cluster: Value) -> Value {
    let options = "/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/explicit_http_config";
    if let Some(options) = cluster.pointer_mut(options) {
        *options = json!({"http2_protocol_options": {}});
    }
    cluster
}

/// Lays `more` over `base`, object by object.
fn merge(base: &mut Value, more: &Value) {
    let Some(more) = more.as_object() else {
        return;
    };
    for (key, value) in more {
        let slot = &mut base[key];
        if slot.is_object() && value.is_object() {
            merge(slot, value);
        } else {
            *slot = value.clone();
        }
    }
}
