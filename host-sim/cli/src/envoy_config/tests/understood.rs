//! What files that are understood become.

use std::time::Duration;

use host_sim::proxy::{
    DirectBody, EscapedSlashes, RouteAction, RouteMatcher, Underscores, UpstreamProtocol,
};
use host_sim::{FailurePolicy, Metadata, MetadataValue};
use serde_json::json;

use super::*;
use crate::bootstrap::Bootstrap;

fn accepted(document: &Value) -> EnvoyConfig {
    EnvoyConfig::parse(&document.to_string(), "my.yaml").expect("understood")
}

#[test]
fn the_shipped_file_is_understood_whole() {
    let config = EnvoyConfig::parse(SHIPPED, "envoy/envoy.yaml").expect("understood");
    assert_eq!(config.admin, "127.0.0.1:9901".parse().ok());
    let [GatedListener { listener, plugin }] = config.listeners.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(listener.name, "billing-api");
    assert_eq!(
        listener.address,
        "127.0.0.1:18080".parse().expect("an address")
    );
    assert_eq!(listener.stat_prefix, "billing_api");
    let host = &listener.virtual_hosts[0];
    assert_eq!((host.name.as_str(), host.domains.len()), ("billing", 1));
    assert!(listener.access_log.is_some());
    assert_eq!(listener.limits.buffer_limit_bytes, 1_048_576);
    assert_eq!(
        listener.limits.idle_timeout,
        Some(Duration::from_secs(1860))
    );
    assert_eq!(
        listener.limits.request_timeout,
        Some(Duration::from_secs(60))
    );
    assert_eq!(listener.virtual_hosts[0].routes[0].timeout, None);
    assert!(listener.http.use_remote_address);
    assert!(!listener.http.enable_trailers);
    assert_eq!(listener.http.underscores, Underscores::RejectRequest);
    assert_eq!(listener.http.max_concurrent_streams, 1000);
    assert_eq!(listener.http.initial_stream_window, 1_048_576);
    assert_eq!(
        listener.http.request_headers_timeout,
        Some(Duration::from_secs(10))
    );
    assert_eq!(listener.http.idle_timeout, Some(Duration::from_secs(3600)));
    assert_eq!(host.request_headers_to_remove.len(), 26);
    assert_eq!(
        listener.virtual_hosts[0].routes[0].matcher,
        RouteMatcher::Prefix("/".to_owned())
    );

    let plugin = plugin.as_ref().expect("a filter");
    assert_eq!(
        (plugin.name.as_str(), plugin.root_id.as_str()),
        ("hoop", "hoop_filter")
    );
    assert_eq!(plugin.vm_id, "hoop-billing-api");
    assert_eq!(
        plugin.code,
        Code::File("/etc/envoy/hoop_filter.wasm".into())
    );
    assert_eq!(plugin.failure_policy, FailurePolicy::FailReload);
    assert!(plugin.allow_on_headers_stop_iteration);
    assert_eq!(plugin.host_environment, ["HOOP_SIDECAR_TOKEN"]);
    assert!(serde_json::from_slice::<Value>(&plugin.configuration).is_ok());

    let [plane, upstream] = config.clusters.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(
        (plane.name.as_str(), plane.endpoints.as_slice()),
        ("control_plane", ["127.0.0.1:8009".to_owned()].as_slice())
    );
    assert_eq!(plane.connect_timeout, Duration::from_secs(2));
    assert_eq!(plane.idle_timeout, Some(Duration::from_secs(3600)));
    assert_eq!(upstream.idle_timeout, Some(Duration::from_secs(3)));
    assert_eq!(upstream.protocol, UpstreamProtocol::Http1);
}

/// The filter for gRPC-Web is refused, so that no test passes because calls were never unpacked.
#[test]
fn the_shipped_file_for_grpc_is_understood_but_for_grpc_web() {
    let mut bootstrap = Bootstrap::shipped_grpc().expect("a bootstrap");
    let refused = EnvoyConfig::parse(&bootstrap.to_json(), "envoy/grpc.yaml");
    let message = refused.expect_err("refused").to_string();
    assert!(message.contains("grpc_web.v3.GrpcWeb"), "{message}");

    bootstrap.leave_out_grpc_web().expect("the gate's place");
    let config = EnvoyConfig::parse(&bootstrap.to_json(), "envoy/grpc.yaml").expect("understood");
    let [GatedListener { listener, plugin }] = config.listeners.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(listener.name, "ledger");
    assert_eq!(
        listener.limits.idle_timeout,
        Some(Duration::from_secs(1860))
    );
    assert_eq!(listener.virtual_hosts[0].routes[0].timeout, None);
    assert_eq!(plugin.as_ref().expect("a filter").vm_id, "hoop-ledger");
    assert_eq!(config.clusters[1].protocol, UpstreamProtocol::Http2);
}

#[test]
fn ok_both_spellings_and_null() {
    let json = r#"{"admin": null, "node": {"id": "me", "locality": {"region": "eu"}, "metadata": {"K": "v"}}, "staticResources": {"clusters": [
        {"name": "a", "type": "STATIC", "connectTimeout": "0.25s", "loadAssignment": {"clusterName": "a", "endpoints": [
            {"lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "::1", "portValue": "9000"}}}}]}]}}]}}"#;
    let config = EnvoyConfig::parse(json, "my.json").expect("understood");
    assert_eq!(config.clusters[0].endpoints, ["[::1]:9000"]);
    assert_eq!(
        config.clusters[0].connect_timeout,
        Duration::from_millis(250)
    );
    assert_eq!(
        (config.node.id.as_str(), config.node.region.as_str()),
        ("me", "eu")
    );
    assert_eq!(config.node.metadata, [("K".to_owned(), "v".to_owned())]);
    assert!(config.admin.is_none() && config.listeners.is_empty());
}

#[test]
fn ok_settings_of_the_connection_manager() {
    let document = changed([
        ("MANAGER/normalize_path", json!(true)),
        (
            "MANAGER/path_with_escaped_slashes_action",
            json!("UNESCAPE_AND_FORWARD"),
        ),
        (
            "MANAGER/http_protocol_options",
            json!({"enable_trailers": true}),
        ),
        (
            "MANAGER/common_http_protocol_options/max_headers_count",
            json!(1500),
        ),
        ("MANAGER/max_request_headers_kb", json!(8)),
        ("MANAGER/stream_idle_timeout", json!("0s")),
        (
            "MANAGER/upgrade_configs",
            json!([{"upgrade_type": "websocket"}, {"upgrade_type": "CONNECT"}]),
        ),
        ("MANAGER/access_log", json!([])),
        (
            "HOST/routes/0",
            json!({
                "match": {"connect_matcher": {}},
                "route": {"cluster": "billing_upstream", "timeout": "0s", "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}]},
            }),
        ),
        (
            "HOST/routes/1",
            json!({
                "name": "health", "match": {"path": "/healthz"},
                "direct_response": {"status": 200, "body": {"inline_string": "fine"}},
            }),
        ),
    ]);
    let config = accepted(&document);
    let listener = &config.listeners[0].listener;
    assert!(
        listener.http.normalize_path
            && listener.http.enable_trailers
            && listener.access_log.is_none()
    );
    assert_eq!(
        listener.http.escaped_slashes,
        EscapedSlashes::UnescapeAndForward
    );
    assert_eq!(listener.http.max_headers_count, 1500);
    assert_eq!(listener.http.max_request_headers_bytes, 8192);
    assert_eq!(listener.limits.idle_timeout, None);
    assert_eq!(listener.http.upgrades, ["websocket", "connect"]);
    assert_eq!(
        listener.virtual_hosts[0].routes[0].matcher,
        RouteMatcher::Connect
    );
    assert_eq!(
        listener.virtual_hosts[0].routes[0].action,
        RouteAction::Forward {
            cluster: "billing_upstream".to_owned(),
            upgrades: Some(vec!["connect".to_owned()]),
        }
    );
    assert_eq!(listener.virtual_hosts[0].routes[1].name, "health");
    assert_eq!(
        listener.virtual_hosts[0].routes[1].action,
        RouteAction::DirectResponse {
            status: 200,
            body: DirectBody::Bytes(b"fine".to_vec()),
            pace: None,
        }
    );
}

#[test]
fn a_route_without_a_timeout_has_envoys() {
    let route = json!({"cluster": "billing_upstream"});
    let config = accepted(&changed([("HOST/routes/0/route", route)]));
    assert_eq!(
        config.listeners[0].listener.virtual_hosts[0].routes[0].timeout,
        Some(Duration::from_secs(15))
    );
}

#[test]
fn ok_metadata_of_a_route() {
    let given = json!({"filter_metadata": {"hoop": {"tier": "gold", "all": [null, true, 1.5, {"a": "b"}]}, "empty": {}}});
    let config = accepted(&changed([("HOST/routes/0/metadata", given)]));
    let text = |text: &str| MetadataValue::Text(text.to_owned());
    let all = MetadataValue::List(vec![
        MetadataValue::Null,
        MetadataValue::Bool(true),
        MetadataValue::Number(1.5),
        MetadataValue::Group([("a".to_owned(), text("b"))].into()),
    ]);
    let hoop = [("tier".to_owned(), text("gold")), ("all".to_owned(), all)];
    let groups = [
        ("hoop".to_owned(), hoop.into()),
        ("empty".to_owned(), [].into()),
    ];
    let metadata = &config.listeners[0].listener.virtual_hosts[0].routes[0].metadata;
    assert_eq!(*metadata, Metadata(groups.into()));
}

#[test]
fn ok_what_a_module_reads() {
    let any = |kind: &str, value: &str| json!({"@type": format!("type.googleapis.com/google.protobuf.{kind}"), "value": value});
    let document = changed([
        ("PLUGIN/configuration", any("BytesValue", "AAH/")),
        ("PLUGIN/vm_config/configuration", any("StringValue", "vm")),
        (
            "PLUGIN/vm_config/code",
            json!({"local": {"inline_string": "(module)"}}),
        ),
        (
            "PLUGIN/vm_config/environment_variables",
            json!({"key_values": {"A": "1"}}),
        ),
        (
            "PLUGIN/reload_config",
            json!({"backoff": {"base_interval": "2s"}}),
        ),
        ("PLUGIN/failure_policy", json!("UNSPECIFIED")),
        ("PLUGIN/fail_open", json!(true)),
        (
            "PLUGIN/capability_restriction_config",
            json!({"allowed_capabilities": {"proxy_log": {}}}),
        ),
    ]);
    let config = accepted(&document);
    let plugin = config.listeners[0].plugin.as_ref().expect("a filter");
    assert_eq!(plugin.configuration, [0, 1, 255]);
    assert_eq!(plugin.vm_configuration, b"vm");
    assert_eq!(plugin.code, Code::Inline(b"(module)".to_vec()));
    assert_eq!(plugin.environment, [("A".to_owned(), "1".to_owned())]);
    assert!(plugin.host_environment.is_empty());
    assert_eq!(plugin.reload_backoff, Some(Duration::from_secs(2)));
    assert_eq!(plugin.failure_policy, FailurePolicy::FailOpen);
    assert_eq!(
        plugin.allowed_capabilities,
        Some(vec!["proxy_log".to_owned()])
    );
}

#[test]
fn ok_tls_on_both_sides() {
    let pem = |text: &str| json!({"inline_string": text});
    let client = json!({"name": "tls", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": true,
        "common_tls_context": {
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificates": [{"certificate_chain": pem("chain"), "private_key": {"inline_bytes": "a2V5"}}],
            "validation_context": {"trusted_ca": pem("ca")},
        },
    }});
    let server = json!({"name": "tls", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": "billing.example",
        "common_tls_context": {"validation_context": {"trusted_ca": pem("ca")}},
    }});
    let document = changed([
        ("CHAIN/transport_socket", client),
        ("UPSTREAM/transport_socket", server),
        (
            "UPSTREAM/OPTIONS/explicit_http_config",
            json!({"http2_protocol_options": {}}),
        ),
    ]);
    let config = accepted(&document);
    let tls = config.listeners[0].listener.tls.as_ref().expect("TLS");
    assert_eq!(tls.certificate_chain_pem, b"chain");
    assert_eq!(tls.private_key_pem, b"key");
    assert_eq!(tls.client_ca_pem.as_deref(), Some(b"ca".as_slice()));
    let tls = config.clusters[1].tls.as_ref().expect("TLS");
    assert_eq!(tls.sni.as_deref(), Some("billing.example"));
    assert_eq!(tls.ca_pem.as_deref(), Some(b"ca".as_slice()));
    assert_eq!(config.clusters[1].protocol, UpstreamProtocol::Http2);
}
