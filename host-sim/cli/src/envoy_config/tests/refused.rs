//! Each message about a file that the simulator does not run as Envoy would.

use serde_json::json;

use super::*;

fn refusal(document: &Value) -> String {
    let error = EnvoyConfig::parse(&document.to_string(), "my.yaml").expect_err("refused");
    Failure::from(error).to_string()
}

/// Changes each place of the shipped file and compares what is said.
fn check_refusals(base: &Value, cases: &[(&str, Value, &str)]) {
    for (place, value, expected) in cases {
        let mut document = base.clone();
        set(&mut document, &long(place), value.clone());
        assert_eq!(
            refusal(&document),
            format!("my.yaml: {}", long(expected)),
            "{place}"
        );
    }
}

#[test]
fn err_no_yaml() {
    let error = EnvoyConfig::parse("admin: [\n", "my.yaml").expect_err("refused");
    let message = Failure::from(error).to_string();
    assert!(
        message.starts_with("my.yaml: not valid YAML: "),
        "{message}"
    );
    assert!(
        message.ends_with("; hint: compare the file with envoy/envoy.yaml"),
        "{message}"
    );
}

#[test]
fn err_no_file() {
    let error = EnvoyConfig::load(Path::new("/nowhere/envoy.yaml")).expect_err("refused");
    assert_eq!(
        Failure::from(error).to_string(),
        "/nowhere/envoy.yaml: cannot read the Envoy configuration: No such file or directory (os error 2); hint: check the \
         path after `--config`"
    );
}

#[test]
fn err_whole_file() {
    assert_eq!(
        refusal(&json!([])),
        long("my.yaml: the whole file: found [], understood: an object; hint: SEE ENVOY")
    );
    assert_eq!(
        refusal(&json!({})),
        long(
            "my.yaml: /static_resources: found nothing, understood: a value, which Envoy needs too; hint: SEE ENVOY"
        )
    );
}

#[test]
fn err_fields_that_nobody_reads() {
    let retry = json!({"retry_on": "5xx"});
    check_refusals(
        &shipped(),
        &[
            (
                "/dynamic_resources",
                json!({}),
                "/dynamic_resources: found an object, understood: `node`, `admin`, `static_resources`; hint: LEAVE OUT",
            ),
            (
                "/node",
                json!({"id": "x", "locality": {"zone": "z"}}),
                "/node/locality/zone: found \"z\", understood: `region`; hint: LEAVE OUT",
            ),
            (
                "/node",
                json!({"metadata": {"N": 1}}),
                "/node/metadata/N: found 1, understood: a text; hint: put it in quotation marks",
            ),
            (
                "/admin/profile_path",
                json!("/tmp/p"),
                "/admin/profile_path: found \"/tmp/p\", understood: `address`; hint: LEAVE OUT",
            ),
            (
                "/static_resources/secrets",
                json!([]),
                "/static_resources/secrets: found [], understood: `clusters`, `listeners`; hint: LEAVE OUT",
            ),
            (
                "LISTENER/enable_reuse_port",
                json!(false),
                "LISTENER/enable_reuse_port: found false, understood: `name`, `address`, `per_connection_buffer_limit_bytes`, \
             `filter_chains`; hint: LEAVE OUT",
            ),
            (
                "CHAIN/filter_chain_match",
                json!({}),
                "CHAIN/filter_chain_match: found an object, understood: `name`, `transport_socket`, `filters`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/server_name",
                json!("x"),
                "MANAGER/server_name: found \"x\", understood: `stat_prefix`, `codec_type`, `normalize_path`, `merge_slashes`, \
             `use_remote_address`, `path_with_escaped_slashes_action`, `max_request_headers_kb`, `request_headers_timeout`, \
             `common_http_protocol_options`, `http_protocol_options`, `http2_protocol_options`, `upgrade_configs`, \
             `stream_idle_timeout`, `request_timeout`, `access_log`, `http_filters`, `route_config`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/common_http_protocol_options/max_stream_duration",
                json!("5s"),
                "MANAGER/common_http_protocol_options/max_stream_duration: found \"5s\", understood: `idle_timeout`, \
             `max_headers_count`, `headers_with_underscores_action`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/http_protocol_options/accept_http_10",
                json!(true),
                "MANAGER/http_protocol_options/accept_http_10: found true, understood: `enable_trailers`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/http2_protocol_options/allow_connect",
                json!(true),
                "MANAGER/http2_protocol_options/allow_connect: found true, understood: `max_concurrent_streams`, \
             `initial_stream_window_size`, `initial_connection_window_size`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/upgrade_configs",
                json!([{"upgrade_type": "websocket", "enabled": false}]),
                "MANAGER/upgrade_configs/0/enabled: found false, understood: `upgrade_type`, `connect_config`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/route_config/most_specific_header_mutations_wins",
                json!(true),
                "MANAGER/route_config/most_specific_header_mutations_wins: found true, understood: `name`, \
             `request_headers_to_remove`, `virtual_hosts`; hint: LEAVE OUT",
            ),
            (
                "HOST/retry_policy",
                retry.clone(),
                "HOST/retry_policy: found an object, understood: `name`, `domains`, `request_headers_to_remove`, `routes`; hint: \
             LEAVE OUT",
            ),
            (
                "HOST/routes/0/route/retry_policy",
                retry,
                "HOST/routes/0/route/retry_policy: found an object, understood: `cluster`, `timeout`, `upgrade_configs`; hint: \
             LEAVE OUT",
            ),
            (
                "HOST/routes/0/match/query_parameters",
                json!([]),
                "HOST/routes/0/match/query_parameters: found [], understood: `prefix`, `path`, `connect_matcher`, `headers`; hint: \
             LEAVE OUT",
            ),
            (
                "HOST/routes/0/response_headers_to_add",
                json!([]),
                "HOST/routes/0/response_headers_to_add: found [], understood: `name`, `match`, `metadata`, \
             `request_headers_to_remove`, `typed_per_filter_config`, `route`, `direct_response`; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/circuit_breakers",
                json!({}),
                "UPSTREAM/circuit_breakers: found an object, understood: `name`, `type`, `connect_timeout`, `lb_policy`, \
             `load_assignment`, `typed_extension_protocol_options`, `transport_socket`; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/load_assignment/policy",
                json!({}),
                "UPSTREAM/load_assignment/policy: found an object, understood: `cluster_name`, `endpoints`; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/load_assignment/endpoints/0/priority",
                json!(1),
                "UPSTREAM/load_assignment/endpoints/0/priority: found 1, understood: `lb_endpoints`; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/load_assignment/endpoints/0/lb_endpoints/0/load_balancing_weight",
                json!(2),
                "UPSTREAM/load_assignment/endpoints/0/lb_endpoints/0/load_balancing_weight: found 2, understood: `endpoint`; \
             hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/OPTIONS/http_filters",
                json!([]),
                "UPSTREAM/OPTIONS/http_filters: found [], understood: `common_http_protocol_options`, `explicit_http_config`; \
             hint: LEAVE OUT",
            ),
            (
                "PLUGIN/precompiled",
                json!(1),
                "PLUGIN/precompiled: found 1, understood: `name`, `root_id`, `vm_config`, `configuration`, `failure_policy`, \
             `fail_open`, `reload_config`, `allow_on_headers_stop_iteration`, `capability_restriction_config`; hint: LEAVE OUT",
            ),
            (
                "PLUGIN/vm_config/allow_precompiled",
                json!(true),
                "PLUGIN/vm_config/allow_precompiled: found true, understood: `vm_id`, `runtime`, `code`, `configuration`, \
             `environment_variables`; hint: LEAVE OUT",
            ),
        ],
    );
}

#[test]
fn err_words_and_numbers() {
    check_refusals(
        &shipped(),
        &[
            (
                "/admin/address/socket_address/address",
                json!("localhost"),
                "/admin/address/socket_address/address: found \"localhost\", understood: an IP address; hint: write the address \
             of an interface, such as 127.0.0.1",
            ),
            (
                "LISTENER/address/socket_address/port_value",
                json!(70000),
                "LISTENER/address/socket_address/port_value: found 70000, understood: a whole number from 0 to 65535; hint: SEE \
             ENVOY",
            ),
            (
                "LISTENER/address",
                json!({"pipe": {"path": "/tmp/s"}}),
                "LISTENER/address/pipe: found an object, understood: `socket_address`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/codec_type",
                json!("HTTP3"),
                "MANAGER/codec_type: found \"HTTP3\", understood: only \"AUTO\"; hint: leave it out: the simulator takes HTTP/1.1 \
             and HTTP/2 on each listener",
            ),
            (
                "MANAGER/normalize_path",
                json!("yes"),
                "MANAGER/normalize_path: found \"yes\", understood: `true` or `false`; hint: SEE ENVOY",
            ),
            (
                "MANAGER/path_with_escaped_slashes_action",
                json!("UNESCAPE"),
                "MANAGER/path_with_escaped_slashes_action: found \"UNESCAPE\", understood: `IMPLEMENTATION_SPECIFIC_DEFAULT`, \
             `KEEP_UNCHANGED`, `REJECT_REQUEST`, `UNESCAPE_AND_REDIRECT`, `UNESCAPE_AND_FORWARD`; hint: LEAVE OUT",
            ),
            (
                "MANAGER/request_timeout",
                json!("1m"),
                "MANAGER/request_timeout: found \"1m\", understood: a duration in seconds such as \"60s\" or \"0.5s\"; hint: \
             write seconds, with up to nine decimals, and the letter s",
            ),
            (
                "MANAGER/http2_protocol_options/initial_stream_window_size",
                json!(1),
                "MANAGER/http2_protocol_options/initial_stream_window_size: found 1, understood: a whole number from 65535 to \
             2147483647; hint: SEE ENVOY",
            ),
            (
                "HOST/domains",
                json!(["a.example", "A.Example"]),
                "HOST/domains/1: found \"A.Example\", understood: each domain once; hint: keep it in one virtual host, as Envoy \
             wants it",
            ),
            (
                "HOST/domains",
                json!(["a.*.example"]),
                "HOST/domains/0: found \"a.*.example\", understood: a host, with its port where clients send one, or a part of it \
             behind or before one `*`; hint: SEE ENVOY",
            ),
            (
                "HOST/domains",
                json!([]),
                "HOST/domains: found [], understood: one domain at least; hint: SEE ENVOY",
            ),
            (
                "HOST/request_headers_to_remove",
                json!([":path"]),
                "HOST/request_headers_to_remove/0: found \":path\", understood: the name of a header that is neither `host` nor \
             begins with a colon; hint: LEAVE OUT",
            ),
            (
                "HOST/routes/0/route/cluster",
                json!("payments"),
                "HOST/routes/0/route/cluster: found \"payments\", understood: `control_plane`, `billing_upstream`; hint: add the \
             cluster under /static_resources/clusters",
            ),
            (
                "HOST/routes/0/match",
                json!({"safe_regex": {"regex": ".*"}}),
                "HOST/routes/0/match/safe_regex: found an object, understood: `prefix`, `path`, `connect_matcher`; hint: LEAVE OUT",
            ),
            (
                "HOST/routes/0/match/path",
                json!("/"),
                "HOST/routes/0/match: found 2 of the fields, understood: one of `prefix`, `path`, `connect_matcher`; hint: SEE \
             ENVOY",
            ),
            (
                "UPSTREAM/type",
                json!("EDS"),
                "UPSTREAM/type: found \"EDS\", understood: `STATIC`, `STRICT_DNS`, `LOGICAL_DNS`; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/connect_timeout",
                json!("0s"),
                "UPSTREAM/connect_timeout: found \"0s\", understood: more than zero, as in Envoy; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/name",
                json!("control_plane"),
                "UPSTREAM/name: found \"control_plane\" a second time, understood: a name of its own for each cluster; hint: \
             rename one of the two",
            ),
            (
                "UPSTREAM/OPTIONS/explicit_http_config/http_protocol_options",
                json!({"enable_trailers": true, "allow_chunked_length": true}),
                "UPSTREAM/OPTIONS/explicit_http_config/http_protocol_options/allow_chunked_length: found true, understood: \
             `enable_trailers`; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/OPTIONS/explicit_http_config",
                json!({"http2_protocol_options": {"max_concurrent_streams": 7}}),
                "UPSTREAM/OPTIONS/explicit_http_config/http2_protocol_options/max_concurrent_streams: found 7, understood: no field \
             here; hint: LEAVE OUT",
            ),
            (
                "UPSTREAM/OPTIONS/explicit_http_config",
                json!({"http3_protocol_options": {}}),
                "UPSTREAM/OPTIONS/explicit_http_config/http3_protocol_options: found an object, understood: \
             `http_protocol_options`, `http2_protocol_options`; hint: LEAVE OUT",
            ),
        ],
    );
}

#[test]
fn err_names_in_a_static_cluster_and_many_in_a_logical_one() {
    let endpoint = "UPSTREAM/load_assignment/endpoints/0/lb_endpoints";
    let host = format!("{endpoint}/0/endpoint/address/socket_address/address");
    let of_type = |kind: &str| changed([("UPSTREAM/type", json!(kind))]);
    check_refusals(
        &of_type("STATIC"),
        &[(
            &host,
            json!("localhost"),
            &format!(
                "{host}: found \"localhost\", understood: an IP address in a cluster of type STATIC, as in Envoy; hint: make the \
             cluster STRICT_DNS to have the name resolved"
            ),
        )],
    );
    check_refusals(
        &of_type("LOGICAL_DNS"),
        &[(
            endpoint,
            json!([]),
            "UPSTREAM/load_assignment/endpoints: found 0 endpoints, understood: one endpoint in a cluster of type LOGICAL_DNS, as in \
         Envoy; hint: make it STRICT_DNS",
        )],
    );
}

#[test]
fn err_two_of_what_there_is_one() {
    let document = shipped();
    let copy = |place: &str| document.pointer(&long(place)).cloned().expect("a value");
    check_refusals(
        &document,
        &[
            (
                "/static_resources/listeners/1",
                copy("LISTENER"),
                "/static_resources/listeners/1/name: found \"billing-api\" a second time, understood: a name of its own for each \
             listener; hint: rename one of the two",
            ),
            (
                "LISTENER/filter_chains/1",
                copy("CHAIN"),
                "LISTENER/filter_chains: found 2 items, understood: one filter chain; hint: LEAVE OUT",
            ),
            (
                "MANAGER/http_filters/1",
                copy("MANAGER/http_filters/0"),
                "MANAGER/http_filters/1: found one filter too many, or one in another order, understood: CHAIN OF FILTERS; hint: test each filter on its own, or run this file on Envoy",
            ),
            (
                "MANAGER/http_filters",
                json!([copy("MANAGER/http_filters/0")]),
                "MANAGER/http_filters: found no router, understood: CHAIN OF FILTERS; hint: end \
             the list with `envoy.filters.http.router`, as envoy/envoy.yaml does",
            ),
            (
                "MANAGER/http_filters/0",
                json!({"name": "jwt", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"}}),
                "MANAGER/http_filters/0/typed_config/@type: found \
             \"type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication\", understood: \
             `envoy.extensions.filters.http.wasm.v3.Wasm`, `envoy.extensions.filters.http.fault.v3.HTTPFault`, \
             `envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit`, \
             `envoy.extensions.filters.http.router.v3.Router`; hint: LEAVE OUT",
            ),
        ],
    );
}

#[test]
fn a_long_text_is_shown_by_its_start() {
    let message = refusal(&changed([("MANAGER/server_name", json!("x".repeat(500)))]));
    let start = format!(
        "found a text that starts with \"{}\", understood",
        "x".repeat(120)
    );
    assert!(message.contains(&start), "{message}");
}

#[test]
fn err_access_log_with_what_is_not_understood() {
    let format = "MANAGER/access_log/0/typed_config/log_format/text_format_source/inline_string";
    let hint = "write it as in envoy/envoy.yaml, leave the operator out, or run this file on Envoy";
    check_refusals(
        &shipped(),
        &[
            (
                format,
                json!("%REQ(:PATH)% %RESPONSE_FLAGS%\n"),
                &format!(
                    "{format}: found the operator `RESPONSE_FLAGS` at byte 13, understood: `BYTES_RECEIVED`, `BYTES_SENT`, \
                     `DOWNSTREAM_REMOTE_ADDRESS`, `DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT`, `DURATION`, `FILTER_STATE`, `PATH`, \
                     `PROTOCOL`, `REQ`, `RESP`, `RESPONSE_CODE`, `RESPONSE_CODE_DETAILS`, `START_TIME`, \
                     `UPSTREAM_REQUEST_ATTEMPT_COUNT`; hint: {hint}"
                ),
            ),
            (
                format,
                json!("%PATH(QN)%"),
                &format!(
                    "{format}: found `%PATH(QN)` at byte 0 with something that it does not take, understood: \
                     `%PATH(WQ|NQ:PATH|ORIG|ORIG_OR_PATH):LENGTH%`; hint: {hint}"
                ),
            ),
            (
                format,
                json!("100%\n"),
                &format!(
                    "{format}: found `%` at byte 3, which starts no operator, understood: `%NAME%`, `%NAME(ARGUMENTS)%` or \
                     `%NAME(ARGUMENTS):LENGTH%`, and `%%` for the sign itself; hint: {hint}"
                ),
            ),
        ],
    );
}

#[test]
fn err_plugin_settings() {
    check_refusals(
        &shipped(),
        &[
            (
                "PLUGIN/configuration",
                json!({"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}}),
                "PLUGIN/configuration/@type: found `google.protobuf.Struct`, understood: `google.protobuf.StringValue`, \
             `google.protobuf.BytesValue`; hint: write the object as JSON text in a StringValue: Envoy 1.40 hands a Struct over \
             as protobuf bytes, which few modules can read",
            ),
            (
                "PLUGIN/fail_open",
                json!(true),
                "PLUGIN/fail_open: found true, understood: `false` beside `failure_policy`, as in Envoy; hint: leave `fail_open` \
             out; `failure_policy` has taken its place",
            ),
            (
                "PLUGIN/failure_policy",
                json!("FAIL"),
                "PLUGIN/failure_policy: found \"FAIL\", understood: `UNSPECIFIED`, `FAIL_CLOSED`, `FAIL_OPEN`, `FAIL_RELOAD`; \
             hint: LEAVE OUT",
            ),
            (
                "PLUGIN/vm_config/runtime",
                json!("envoy.wasm.runtime.null"),
                "PLUGIN/vm_config/runtime: found \"envoy.wasm.runtime.null\", understood: `envoy.wasm.runtime.v8`, \
             `envoy.wasm.runtime.wamr`, `envoy.wasm.runtime.wasmtime`; hint: LEAVE OUT",
            ),
            (
                "PLUGIN/vm_config/code",
                json!({"remote": {"sha256": "x"}}),
                "PLUGIN/vm_config/code/remote: found an object, understood: `local`; hint: LEAVE OUT",
            ),
            (
                "PLUGIN/vm_config/code",
                json!({"local": {"inline_bytes": "%"}}),
                "PLUGIN/vm_config/code/local/inline_bytes: found \"%\", understood: bytes in base64; hint: SEE ENVOY",
            ),
            (
                "PLUGIN/capability_restriction_config",
                json!({"allowed_capabilities": {"fd_write": {"x": 1}}}),
                "PLUGIN/capability_restriction_config/allowed_capabilities/fd_write: found an object, understood: only `{}`; hint: \
             LEAVE OUT",
            ),
        ],
    );
}

#[test]
fn err_tls_settings() {
    let pem = json!({"inline_string": "x"});
    let tls = |context: Value| {
        let mut context = context;
        context["@type"] = json!(
            "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
        );
        json!({"name": "tls", "typed_config": context})
    };
    let certificates = json!([{"certificate_chain": pem, "private_key": pem}]);
    let socket = "CHAIN/transport_socket";
    check_refusals(
        &shipped(),
        &[
            (
                socket,
                tls(
                    json!({"common_tls_context": {"tls_certificates": certificates, "alpn_protocols": ["h2"]}}),
                ),
                "CHAIN/transport_socket/typed_config/common_tls_context/alpn_protocols: found [\"h2\"], understood: only \
             [\"h2\",\"http/1.1\"]; hint: name both, in this order, or leave it out",
            ),
            (
                socket,
                tls(
                    json!({"common_tls_context": {"tls_certificates": certificates, "validation_context": {"trusted_ca": pem}}}),
                ),
                "CHAIN/transport_socket/typed_config/require_client_certificate: found false, understood: `true` together with \
             `validation_context`, or none of the two; hint: ask for client certificates with both, or leave both out",
            ),
            (
                socket,
                tls(
                    json!({"common_tls_context": {"tls_certificates": [{"certificate_chain": {"filename": "/nowhere/c.pem"}, "private_key": pem}]}}),
                ),
                "CHAIN/transport_socket/typed_config/common_tls_context/tls_certificates/0/certificate_chain/filename: found \
             \"/nowhere/c.pem\", which cannot be read (No such file or directory (os error 2)), understood: a file that this \
             process can read; hint: check the path and its mode",
            ),
        ],
    );
}
