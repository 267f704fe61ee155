//! A plugin configuration that is wrong: the host refuses to start, and its log names the place and the remedy.

use std::net::SocketAddr;

use hoop_tests::binaries;
use hoop_tests::host::{Host, Launch, Proxy};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Folder;
use host_sim_cli::bootstrap::Bootstrap;
use host_sim_cli::stack::EnvoyError;
use serde_json::{Value, json};

on_both_hosts! {
    an_unknown_key_is_refused_with_the_key_that_was_probably_meant,
    a_wrong_type_is_refused,
    a_missing_key_is_refused,
    a_gate_that_nobody_can_decide_is_refused,
    a_value_that_is_not_allowed_is_refused,
    a_condition_that_could_never_hold_or_is_no_glob_is_refused,
    what_is_no_json_object_is_refused,
    a_missing_or_malformed_token_is_refused,
}

const TOKEN: &str = "hsc_0123456789012345678901234567890123456789";

/// The plugin configuration of one try.
enum Plugin {
    Document(Value),
    Text(String),
}

/// Starts the host with this plugin configuration and asserts that it refuses, with `place` and a hint in its log.
async fn refused(host: Host, plugin: Plugin, place: &str, token: Option<&str>) {
    let folder = Folder::create();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut bootstrap = Bootstrap::shipped().expect("envoy/envoy.yaml");
    let edited = bootstrap
        .set_admin(any_port)
        .and_then(|bootstrap| bootstrap.set_listener(any_port))
        .and_then(|bootstrap| bootstrap.set_wasm_module(&binaries::filter_module()))
        .and_then(|bootstrap| match &plugin {
            Plugin::Document(document) => bootstrap.set_plugin_configuration(document),
            Plugin::Text(text) => bootstrap.set_plugin_configuration_text(text),
        });
    edited.expect("the places of envoy/envoy.yaml");
    let shown = match &plugin {
        Plugin::Document(document) => document.to_string(),
        Plugin::Text(text) => text.clone(),
    };
    let launch = Launch {
        host,
        dir: folder.path(),
        bootstrap: &bootstrap,
        concurrency: 1,
        token,
    };
    match Proxy::start(launch).await {
        Ok(_) => panic!("the host serves with {shown}"),
        Err(refused) => {
            let log = &refused.log;
            assert!(
                matches!(refused.error, EnvoyError::Died { .. }),
                "{shown}\n{log}"
            );
            let line = log
                .lines()
                .find(|line| line.contains("hint:") && line.contains(place));
            assert!(
                line.is_some(),
                "no line with {place:?} and `hint:` for {shown}\n{log}"
            );
            assert!(!log.contains("panicked"), "{shown}\n{log}");
            assert!(
                !log.contains(TOKEN),
                "the token is in the log for {shown}\n{log}"
            );
        }
    }
}

/// The shipped configuration with `value` at `pointer`, whose parent is there.
fn changed(pointer: &str, value: Value) -> Plugin {
    let mut document = policy::shipped();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = document.pointer_mut(parent).expect("a parent");
    match (parent.as_array_mut(), key.parse::<usize>()) {
        (Some(items), Ok(index)) => items[index] = value,
        _ => parent[key] = value,
    }
    Plugin::Document(document)
}

fn removed(pointer: &str) -> Plugin {
    let mut document = policy::shipped();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = document.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.expect("an object").remove(key);
    Plugin::Document(document)
}

async fn an_unknown_key_is_refused_with_the_key_that_was_probably_meant(host: Host) {
    refused(
        host,
        changed("/listner_name", json!("x")),
        "listner_name",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/control_plane/clustr", json!("x")),
        "clustr",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/approvalrule", json!("x")),
        "approvalrule",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/match/path", json!(["/x"])),
        "did you mean \"paths\"",
        Some(TOKEN),
    )
    .await;
}

async fn a_wrong_type_is_refused(host: Host) {
    refused(
        host,
        changed("/listener_name", json!(7)),
        "listener_name",
        Some(TOKEN),
    )
    .await;
    refused(host, changed("/rules", json!({})), "rules", Some(TOKEN)).await;
    refused(
        host,
        changed("/max_body_bytes", json!("64k")),
        "max_body_bytes",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/match/methods", json!("POST")),
        "methods",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/control_plane", json!("plane:8009")),
        "control_plane",
        Some(TOKEN),
    )
    .await;
}

async fn a_missing_key_is_refused(host: Host) {
    refused(
        host,
        removed("/listener_name"),
        "listener_name",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        removed("/control_plane/cluster"),
        "cluster",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        removed("/control_plane/authority"),
        "authority",
        Some(TOKEN),
    )
    .await;
    refused(host, removed("/rules/0/action"), "action", Some(TOKEN)).await;
}

async fn a_gate_that_nobody_can_decide_is_refused(host: Host) {
    refused(
        host,
        removed("/rules/0/approval_rule"),
        "approval_rule",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        removed("/control_plane"),
        "control_plane",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/action", json!("allow")),
        "approval_rule",
        Some(TOKEN),
    )
    .await;
}

async fn a_value_that_is_not_allowed_is_refused(host: Host) {
    refused(
        host,
        changed("/rules/0/action", json!("aprove")),
        "action",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/hold_timeout_ms", json!(10)),
        "hold_timeout_ms",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/enforcement", json!("off")),
        "enforcement",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/approval_mode", json!("wait")),
        "approval_mode",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/max_body_bytes", json!(0)),
        "max_body_bytes",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/max_body_bytes", json!(1.5)),
        "max_body_bytes",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/control_plane/timeout_ms", json!(0)),
        "timeout_ms",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/control_plane/authority", json!("http://h")),
        "authority",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/listener_name", json!(" ")),
        "listener_name",
        Some(TOKEN),
    )
    .await;
}

async fn a_condition_that_could_never_hold_or_is_no_glob_is_refused(host: Host) {
    refused(
        host,
        changed("/rules/0/match/paths", json!([])),
        "paths",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/match/paths/0", json!("payments/**")),
        "paths",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/match/paths/0", json!("/pay**ments")),
        "paths",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/match/methods/0", json!("PO ST")),
        "methods",
        Some(TOKEN),
    )
    .await;
    refused(
        host,
        changed("/rules/0/match/hosts", json!(["http://h"])),
        "hosts",
        Some(TOKEN),
    )
    .await;
}

async fn what_is_no_json_object_is_refused(host: Host) {
    for text in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{\"listener_name\":\"a\",\"listener_name\":\"b\"}",
        "{\"listener_name\":\"a\"} x",
    ] {
        refused(host, Plugin::Text(text.to_owned()), "", Some(TOKEN)).await;
    }
}

async fn a_missing_or_malformed_token_is_refused(host: Host) {
    let shipped = || Plugin::Document(policy::shipped());
    refused(host, shipped(), "HOOP_SIDECAR_TOKEN", None).await;
    refused(host, shipped(), "HOOP_SIDECAR_TOKEN", Some("")).await;
    refused(host, shipped(), "HOOP_SIDECAR_TOKEN", Some("two\nlines")).await;
}
