//! From flags to the settings of the proxy: the file or the one filter is read, modules are loaded, variables looked up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use host_sim::proxy::{
    Cluster, HttpOptions, Listener, ListenerTls, Route, RouteAction, RouteMatcher, Settings,
    UpstreamProtocol, VirtualHost,
};
use host_sim::{FailurePolicy, LoadError, Metadata, Module, NodeInfo, Plugin, StreamLimits};

use crate::args::{
    EnvironmentArgument, FilterArguments, PolicyArgument, ProtocolArgument, ProxyArguments,
    UPSTREAM,
};
use crate::envoy_config::{Code, EnvoyConfig, GatedListener, PluginConfig};
use crate::failure::Failure;

/// Reads what `arguments` name: who this process is, and what it runs.
///
/// `variable` looks up a variable of this process: modules see only those that the configuration hands to them.
pub(super) fn read(
    arguments: &ProxyArguments,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(NodeInfo, Settings), Failure> {
    let mut config = match &arguments.config {
        Some(file) => EnvoyConfig::load(file)?,
        None => one_filter(&arguments.filter)?,
    };
    let mut modules = Modules::default();
    let mut listeners = Vec::new();
    for GatedListener { listener, plugin } in config.listeners {
        let plugin = match plugin {
            Some(plugin) => Some(load(plugin, &mut modules, variable)?),
            None => None,
        };
        listeners.push(Listener { plugin, ..listener });
    }
    // As in Envoy, the flags win.
    if let Some(id) = &arguments.service_node {
        id.clone_into(&mut config.node.id);
    }
    if let Some(cluster) = &arguments.service_cluster {
        cluster.clone_into(&mut config.node.cluster);
    }
    let settings = Settings {
        workers: workers(arguments.concurrency),
        listeners,
        clusters: config.clusters,
        admin: config.admin,
    };
    Ok((config.node, settings))
}

/// As Envoy: one for each core unless told otherwise.
fn workers(concurrency: Option<u32>) -> usize {
    match concurrency {
        Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Loaded modules by their file: two listeners may run the same one.
type Modules = BTreeMap<PathBuf, Module>;

fn load(
    config: PluginConfig,
    modules: &mut Modules,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Plugin, Failure> {
    let module = match config.code {
        Code::Inline(bytes) => {
            Module::from_bytes("the inline module", &bytes).map_err(|error| load_failure(&error))?
        }
        Code::File(file) => match modules.get(&file) {
            Some(module) => module.clone(),
            None => {
                let module = Module::from_file(&file).map_err(|error| load_failure(&error))?;
                modules.insert(file, module.clone());
                module
            }
        },
    };
    let mut plugin = Plugin::new(module)
        .name(&config.name)
        .root_id(&config.root_id)
        .vm_id(&config.vm_id)
        .configuration(config.configuration)
        .vm_configuration(config.vm_configuration)
        .failure_policy(config.failure_policy)
        .allow_on_headers_stop_iteration(config.allow_on_headers_stop_iteration);
    if let Some(backoff) = config.reload_backoff {
        plugin = plugin.reload_backoff(backoff);
    }
    if let Some(allowed) = &config.allowed_capabilities {
        plugin = plugin.allowed_capabilities(allowed.iter().map(String::as_str));
    }
    for name in &config.host_environment {
        let Some(value) = variable(name) else {
            continue;
        };
        let value = value.into_string().map_err(|_| {
            Failure::user(
                format_args!("the variable {name}, which the module may see, is not UTF-8"),
                "set it to text",
            )
        })?;
        plugin = plugin.environment(name, &value);
    }
    for (name, value) in &config.environment {
        plugin = plugin.environment(name, value);
    }
    Ok(plugin)
}

/// A module that cannot be loaded is the user's to mend, and its message may lack a remedy of its own.
pub(super) fn load_failure(error: &LoadError) -> Failure {
    let hint = match error {
        LoadError::Unreadable { .. } => "check the path of the module and its mode",
        LoadError::ConfigurationRefused { .. } => {
            "mend what the module says; what it logged below warning is shown with `--component-log-level wasm:debug`"
        }
        LoadError::StartFailed { .. } => {
            "the functions that were running are named innermost first; mend the module"
        }
        LoadError::AbiVersionMissing { .. }
        | LoadError::ExportMissing { .. }
        | LoadError::Invalid { .. }
        | LoadError::UnknownImport { .. }
        | LoadError::WrongType { .. }
        | _ => "build the module for proxy-wasm ABI 0.1.0, 0.2.0 or 0.2.1",
    };
    Failure::told_or(error, hint)
}

/// One filter in front of one upstream, with Envoy's settings wherever a flag says nothing.
fn one_filter(arguments: &FilterArguments) -> Result<EnvoyConfig, Failure> {
    let (Some(wasm), Some(listen), Some(upstream)) =
        (&arguments.wasm, arguments.listen, &arguments.upstream)
    else {
        return Err(Failure::ours("the flags of one filter came apart"));
    };
    let cluster = |name: &str, endpoint: &str, protocol| Cluster {
        protocol: match protocol {
            ProtocolArgument::Http1 => UpstreamProtocol::Http1,
            ProtocolArgument::Http2 => UpstreamProtocol::Http2,
        },
        ..Cluster::new(name, [endpoint.to_owned()])
    };
    let mut clusters = vec![cluster(UPSTREAM, upstream, arguments.upstream_protocol)];
    for more in &arguments.cluster {
        if clusters.iter().any(|known| known.name == more.name) {
            return Err(Failure::user(
                format_args!("`--cluster` names `{}` twice", more.name),
                "give each cluster a name of its own",
            ));
        }
        clusters.push(cluster(&more.name, &more.endpoint, more.protocol));
    }
    let mut limits = StreamLimits::default();
    if let Some(bytes) = arguments.buffer_limit_bytes {
        limits.buffer_limit_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    let all = Route {
        name: String::new(),
        metadata: Metadata::default(),
        matcher: RouteMatcher::Prefix("/".to_owned()),
        headers: Vec::new(),
        action: RouteAction::Forward {
            cluster: UPSTREAM.to_owned(),
            upgrades: None,
        },
        timeout: limits.route_timeout,
        request_headers_to_remove: Vec::new(),
    };
    let listener = Listener {
        name: UPSTREAM.to_owned(),
        address: listen,
        stat_prefix: UPSTREAM.to_owned(),
        limits,
        plugin: None,
        tls: tls(arguments)?,
        http: HttpOptions {
            use_remote_address: true,
            ..HttpOptions::default()
        },
        virtual_hosts: vec![VirtualHost {
            name: UPSTREAM.to_owned(),
            domains: vec!["*".to_owned()],
            request_headers_to_remove: Vec::new(),
            routes: vec![all],
        }],
        access_log: None,
    };
    let plugin = Some(plugin(arguments, wasm)?);
    Ok(EnvoyConfig {
        node: NodeInfo::default(),
        admin: arguments.admin_listen,
        listeners: vec![GatedListener { listener, plugin }],
        clusters,
    })
}

fn plugin(arguments: &FilterArguments, wasm: &Path) -> Result<PluginConfig, Failure> {
    let configuration = match (&arguments.configuration, &arguments.configuration_text) {
        (Some(file), _) => read_file(file, "--configuration")?,
        (None, Some(text)) => text.clone().into_bytes(),
        (None, None) => Vec::new(),
    };
    let (mut host_environment, mut environment) = (Vec::new(), Vec::new());
    for argument in arguments.environment.iter().cloned() {
        match argument {
            EnvironmentArgument::OfHost(name) => host_environment.push(name),
            EnvironmentArgument::Set(name, value) => environment.push((name, value)),
        }
    }
    Ok(PluginConfig {
        name: String::new(),
        root_id: arguments.root_id.clone(),
        vm_id: arguments.vm_id.clone(),
        code: Code::File(wasm.to_owned()),
        configuration,
        vm_configuration: Vec::new(),
        host_environment,
        environment,
        failure_policy: match arguments.failure_policy {
            PolicyArgument::FailClosed => FailurePolicy::FailClosed,
            PolicyArgument::FailOpen => FailurePolicy::FailOpen,
            PolicyArgument::FailReload => FailurePolicy::FailReload,
        },
        reload_backoff: None,
        allow_on_headers_stop_iteration: arguments.allow_on_headers_stop_iteration,
        allowed_capabilities: None,
    })
}

fn tls(arguments: &FilterArguments) -> Result<Option<ListenerTls>, Failure> {
    let (Some(certificate), Some(key)) = (&arguments.tls_certificate, &arguments.tls_key) else {
        return Ok(None);
    };
    Ok(Some(ListenerTls {
        certificate_chain_pem: read_file(certificate, "--tls-certificate")?,
        private_key_pem: read_file(key, "--tls-key")?,
        client_ca_pem: None,
    }))
}

fn read_file(file: &Path, flag: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| {
        Failure::user(
            format_args!("{}: cannot read the file: {error}", file.display()),
            format_args!("check the path after `{flag}`"),
        )
    })
}
