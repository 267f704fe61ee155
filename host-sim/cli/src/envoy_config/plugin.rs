//! `envoy.extensions.wasm.v3.PluginConfig`: the module, its configuration and what happens when it crashes.

use std::path::PathBuf;
use std::time::Duration;

use host_sim::FailurePolicy;

use super::Code;
use super::node::{Message, Node};
use super::refusal::{LEAVE_OUT, Refusal};

/// A filter as the file describes it; nothing is loaded yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PluginConfig {
    /// The name in log lines.
    pub name: String,
    /// Which root context is meant.
    pub root_id: String,
    /// The namespace of shared data and queues.
    pub vm_id: String,
    /// The module.
    pub code: Code,
    /// What `proxy_on_configure` reads.
    pub configuration: Vec<u8>,
    /// What `proxy_on_vm_start` reads.
    pub vm_configuration: Vec<u8>,
    /// Variables that the VM sees as far as the process has them.
    pub host_environment: Vec<String>,
    /// Variables of the VM with their values.
    pub environment: Vec<(String, String)>,
    /// What happens after a crash.
    pub failure_policy: FailurePolicy,
    /// How long after a crash a new VM may start.
    pub reload_backoff: Option<Duration>,
    /// Whether a pause at the headers leaves the body running.
    pub allow_on_headers_stop_iteration: bool,
    /// The host functions and callbacks that the module may use; `None` = all.
    pub allowed_capabilities: Option<Vec<String>>,
}

/// Reads the typed configuration of the filter `envoy.filters.http.wasm`.
pub(super) fn read_filter(mut filter: Message<'_>) -> Result<PluginConfig, Refusal> {
    let plugin = filter.required("config")?;
    filter.end()?;
    read(&plugin)
}

fn read(node: &Node<'_>) -> Result<PluginConfig, Refusal> {
    let mut plugin = node.message()?;
    let name = plugin.text("name")?;
    let root_id = plugin.text("root_id")?;
    let vm = read_vm(&plugin.required("vm_config")?)?;
    let configuration = plugin.read("configuration", bytes)?;
    let failure_policy = failure_policy(&mut plugin)?;
    let reload_backoff = plugin.read("reload_config", reload_backoff)?.flatten();
    let allow_on_headers_stop_iteration = plugin.flag("allow_on_headers_stop_iteration")?;
    let allowed_capabilities = plugin.read("capability_restriction_config", capabilities)?;
    plugin.end()?;
    Ok(PluginConfig {
        name,
        root_id,
        vm_id: vm.id,
        code: vm.code,
        configuration: configuration.unwrap_or_default(),
        vm_configuration: vm.configuration,
        host_environment: vm.host_environment,
        environment: vm.environment,
        failure_policy,
        reload_backoff,
        allow_on_headers_stop_iteration,
        // Envoy restricts nothing where the map is empty.
        allowed_capabilities: allowed_capabilities.filter(|allowed| !allowed.is_empty()),
    })
}

struct Vm {
    id: String,
    code: Code,
    configuration: Vec<u8>,
    host_environment: Vec<String>,
    environment: Vec<(String, String)>,
}

/// `envoy.extensions.wasm.v3.VmConfig`
fn read_vm(node: &Node<'_>) -> Result<Vm, Refusal> {
    let mut vm = node.message()?;
    let id = vm.text("vm_id")?;
    // The module runs on the simulator's own engine, whatever Envoy would take.
    vm.read("runtime", |runtime| runtime.choice(&RUNTIMES))?;
    let code = read_code(&vm.required("code")?)?;
    let configuration = vm.read("configuration", bytes)?;
    let mut host_environment = Vec::new();
    let mut environment = Vec::new();
    if let Some(node) = vm.optional("environment_variables") {
        let mut variables = node.message()?;
        let names = variables.read("host_env_keys", Node::texts)?;
        host_environment = names.unwrap_or_default();
        if let Some(values) = variables.optional("key_values") {
            for (name, value) in values.message()?.entries() {
                environment.push((name.to_owned(), value.text()?.to_owned()));
            }
        }
        variables.end()?;
    }
    vm.end()?;
    Ok(Vm {
        id,
        code,
        configuration: configuration.unwrap_or_default(),
        host_environment,
        environment,
    })
}

/// `envoy.config.core.v3.AsyncDataSource`
fn read_code(node: &Node<'_>) -> Result<Code, Refusal> {
    let mut source = node.message()?;
    let (_, local) = source.one_of(&["local"])?;
    source.end()?;
    let mut local = local.message()?;
    let (kind, value) = local.one_of(&["filename", "inline_bytes", "inline_string"])?;
    let code = match kind {
        "filename" => Code::File(PathBuf::from(value.text()?)),
        "inline_bytes" => Code::Inline(value.base64()?),
        _ => Code::Inline(value.text()?.as_bytes().to_vec()),
    };
    local.end()?;
    Ok(code)
}

/// What Envoy hands to the module for a `google.protobuf.Any`.
fn bytes(node: &Node<'_>) -> Result<Vec<u8>, Refusal> {
    const STRING: &str = "google.protobuf.StringValue";
    const BYTES: &str = "google.protobuf.BytesValue";
    const STRUCT: &str = "google.protobuf.Struct";
    let (kind, mut any) = node.any(&[STRING, BYTES, STRUCT])?;
    let bytes = match kind {
        STRING => any.text("value")?.into_bytes(),
        BYTES => any.read("value", Node::base64)?.unwrap_or_default(),
        _ => {
            let pointer = format!("{}/@type", any.pointer());
            return Err(Refusal::new(
                &pointer,
                format!("`{STRUCT}`"),
                format!("`{STRING}`, `{BYTES}`"),
                "write the object as JSON text in a StringValue: Envoy 1.40 hands a Struct over as protobuf bytes, which few \
                 modules can read",
            ));
        }
    };
    any.end()?;
    Ok(bytes)
}

fn failure_policy(plugin: &mut Message<'_>) -> Result<FailurePolicy, Refusal> {
    let policy = plugin.read("failure_policy", |node| node.choice(&FAILURE_POLICIES))?;
    let Some(fail_open) = plugin.optional("fail_open") else {
        return Ok(policy.flatten().unwrap_or_default());
    };
    match (fail_open.boolean()?, policy.flatten()) {
        (false, policy) => Ok(policy.unwrap_or_default()),
        (true, None) => Ok(FailurePolicy::FailOpen),
        (true, Some(_)) => Err(fail_open.refuse(
            "`false` beside `failure_policy`, as in Envoy",
            "leave `fail_open` out; `failure_policy` has taken its place",
        )),
    }
}

/// Only the base interval is used by Envoy's wasm filter.
fn reload_backoff(node: &Node<'_>) -> Result<Option<Duration>, Refusal> {
    let mut reload = node.message()?;
    let mut interval = None;
    if let Some(backoff) = reload.optional("backoff") {
        let mut backoff = backoff.message()?;
        interval = Some(backoff.required("base_interval")?.duration()?);
        backoff.end()?;
    }
    reload.end()?;
    Ok(interval)
}

/// `envoy.extensions.wasm.v3.CapabilityRestrictionConfig`
fn capabilities(node: &Node<'_>) -> Result<Vec<String>, Refusal> {
    let mut restriction = node.message()?;
    let mut allowed = Vec::new();
    if let Some(map) = restriction.optional("allowed_capabilities") {
        for (name, sanitation) in map.message()?.entries() {
            sanitation.empty_message(LEAVE_OUT)?;
            allowed.push(name.to_owned());
        }
    }
    restriction.end()?;
    Ok(allowed)
}

const RUNTIMES: [(&str, ()); 3] = [
    ("envoy.wasm.runtime.v8", ()),
    ("envoy.wasm.runtime.wamr", ()),
    ("envoy.wasm.runtime.wasmtime", ()),
];

const FAILURE_POLICIES: [(&str, Option<FailurePolicy>); 4] = [
    ("UNSPECIFIED", None),
    ("FAIL_CLOSED", Some(FailurePolicy::FailClosed)),
    ("FAIL_OPEN", Some(FailurePolicy::FailOpen)),
    ("FAIL_RELOAD", Some(FailurePolicy::FailReload)),
];
