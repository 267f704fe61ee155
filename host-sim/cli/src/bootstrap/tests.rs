//! What the setters write, and each message about a file that cannot be used.

use super::*;

fn shipped() -> Bootstrap {
    Bootstrap::shipped().expect("the shipped bootstrap has every place")
}

fn at<'a>(bootstrap: &'a Bootstrap, place: &str) -> &'a Value {
    bootstrap
        .document
        .pointer(place)
        .unwrap_or_else(|| panic!("nothing at {place}"))
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

const PLUGIN: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0/typed_config/config";

#[test]
fn every_setter_writes_to_its_place() {
    let mut bootstrap = shipped();
    bootstrap
        .set_listener(address("127.0.0.1:1"))
        .and_then(|it| it.set_admin(address("127.0.0.1:2")))
        .and_then(|it| it.set_cluster("control_plane", address("127.0.0.1:3")))
        .and_then(|it| it.set_cluster("billing_upstream", address("[::1]:4")))
        .and_then(|it| it.set_wasm_module(Path::new("/tmp/gate.wasm")))
        .and_then(|it| it.set_vm_id("other"))
        .and_then(|it| it.set_plugin_configuration(&json!({ "listener_name": "x" })))
        .expect("all places are there");
    let endpoint = "load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address";
    for (place, expected) in [
        (
            "/static_resources/listeners/0/address/socket_address/port_value".to_owned(),
            json!(1),
        ),
        (
            "/admin/address/socket_address/port_value".to_owned(),
            json!(2),
        ),
        (
            format!("/static_resources/clusters/0/{endpoint}/port_value"),
            json!(3),
        ),
        (
            format!("/static_resources/clusters/1/{endpoint}/address"),
            json!("::1"),
        ),
        (
            format!("{PLUGIN}/vm_config/code/local/filename"),
            json!("/tmp/gate.wasm"),
        ),
        (format!("{PLUGIN}/vm_config/vm_id"), json!("other")),
    ] {
        assert_eq!(at(&bootstrap, &place), &expected, "{place}");
    }
    assert_eq!(
        bootstrap.plugin_configuration(),
        Some(json!({ "listener_name": "x" }))
    );
    assert_eq!(bootstrap.listener_name().expect("a name"), "billing-api");
}

#[test]
fn a_text_configuration_reaches_the_filter_as_it_is() {
    let mut bootstrap = shipped();
    bootstrap
        .set_plugin_configuration_text("{not json")
        .expect("the place is there");
    assert_eq!(
        at(&bootstrap, &format!("{PLUGIN}/configuration/value")),
        &json!("{not json")
    );
    assert_eq!(bootstrap.plugin_configuration(), None);
}

#[test]
fn the_shipped_file_keeps_the_settings_that_the_gate_relies_on() {
    let bootstrap = shipped();
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    for (place, expected) in [
        (
            format!("{PLUGIN}/allow_on_headers_stop_iteration"),
            json!(true),
        ),
        (format!("{PLUGIN}/failure_policy"), json!("FAIL_RELOAD")),
        (
            format!("{PLUGIN}/vm_config/environment_variables/host_env_keys"),
            json!(["HOOP_SIDECAR_TOKEN"]),
        ),
        (format!("{manager}/normalize_path"), json!(false)),
        (format!("{manager}/merge_slashes"), json!(false)),
        (format!("{manager}/use_remote_address"), json!(true)),
        (
            format!("{manager}/path_with_escaped_slashes_action"),
            json!("KEEP_UNCHANGED"),
        ),
        (format!("{manager}/stream_idle_timeout"), json!("1860s")),
        (
            format!("{manager}/route_config/virtual_hosts/0/routes/0/route/timeout"),
            json!("0s"),
        ),
    ] {
        assert_eq!(at(&bootstrap, &place), &expected, "{place}");
    }
    let route = at(
        &bootstrap,
        &format!("{manager}/route_config/virtual_hosts/0/routes/0/route"),
    );
    assert!(
        route.get("retry_policy").is_none(),
        "a retry would be a second send on one approval"
    );
}

#[test]
fn the_shipped_file_for_grpc_keeps_the_settings_that_the_gate_relies_on() {
    let bootstrap = Bootstrap::shipped_grpc().expect("the shipped bootstrap has every place");
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let plugin = format!("{manager}/http_filters/1/typed_config/config");
    for (place, expected) in [
        (
            format!("{manager}/http_filters/0/typed_config/@type"),
            json!(GRPC_WEB),
        ),
        (
            format!("{plugin}/allow_on_headers_stop_iteration"),
            json!(true),
        ),
        (format!("{plugin}/failure_policy"), json!("FAIL_RELOAD")),
        (
            format!("{plugin}/vm_config/environment_variables/host_env_keys"),
            json!(["HOOP_SIDECAR_TOKEN"]),
        ),
        (
            format!("{manager}/path_with_escaped_slashes_action"),
            json!("KEEP_UNCHANGED"),
        ),
        (format!("{manager}/stream_idle_timeout"), json!("1860s")),
    ] {
        assert_eq!(at(&bootstrap, &place), &expected, "{place}");
    }
    let manager = at(&bootstrap, manager);
    assert!(
        manager.get("request_timeout").is_none(),
        "it would end clients that stream"
    );
    let route = manager.pointer("/route_config/virtual_hosts/0/routes/0/route");
    assert_eq!(
        route,
        Some(&json!({ "cluster": "ledger_upstream", "timeout": "0s" })),
        "no second send, and the client's own deadline"
    );
}

#[test]
fn without_the_filter_for_grpc_web_the_gate_is_found_where_it_then_stands() {
    let mut bootstrap = Bootstrap::shipped_grpc().expect("the shipped bootstrap has every place");
    bootstrap
        .leave_out_grpc_web()
        .and_then(Bootstrap::leave_out_grpc_web)
        .and_then(|it| it.set_vm_id("other"))
        .expect("all places are there");
    assert_eq!(
        at(&bootstrap, &format!("{PLUGIN}/vm_config/vm_id")),
        &json!("other")
    );
    let mut other = shipped();
    other.leave_out_grpc_web().expect("nothing to leave out");
    assert_eq!(other.document, shipped().document);
}

#[test]
fn the_json_is_the_same_document() {
    let bootstrap = shipped();
    let again: Value = serde_json::from_str(&bootstrap.to_json()).expect("JSON");
    assert_eq!(again, bootstrap.document);
}

fn refusal(yaml: &str) -> String {
    let error = Bootstrap::parse(yaml, "my.yaml").expect_err("refused");
    format!("{error}; hint: {}", error.hint("--envoy-config"))
}

#[test]
fn err_not_yaml() {
    let message = refusal("admin: [\n");
    assert!(
        message.starts_with("my.yaml: not valid YAML: "),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn err_no_admin() {
    assert_eq!(
        refusal("static_resources: {}"),
        "my.yaml: /admin: found nothing usable, need an object with the admin address; \
         hint: start from a copy of envoy/envoy.yaml, which has every place"
    );
}

#[test]
fn err_no_gate() {
    assert_eq!(
        refusal("admin: {}\nstatic_resources: {listeners: []}"),
        "my.yaml: /static_resources/listeners: found nothing usable, need a listener whose http_connection_manager has a wasm \
         HTTP filter with its settings under `config`; hint: start from a copy of envoy/envoy.yaml, which has every place"
    );
}

#[test]
fn err_second_gate() {
    let mut bootstrap = shipped();
    bootstrap.edit(|document| {
        let listeners = document
            .pointer_mut("/static_resources/listeners")
            .and_then(Value::as_array_mut);
        let listeners = listeners.expect("listeners");
        listeners.push(listeners[0].clone());
    });
    let message = refusal(&bootstrap.to_json());
    assert!(
        message.starts_with("my.yaml: found 2 wasm HTTP filters (/static_resources/listeners/0/"),
        "{message}"
    );
    assert!(
        message.ends_with("need exactly one; hint: leave one wasm HTTP filter in the file"),
        "{message}"
    );
}

#[test]
fn err_unknown_cluster() {
    let error = shipped()
        .set_cluster("payments", address("127.0.0.1:1"))
        .expect_err("refused")
        .to_string();
    assert_eq!(
        error,
        "envoy/envoy.yaml: /static_resources/clusters: found no cluster `payments`, only: control_plane, billing_upstream"
    );
}
