//! A plugin as an Envoy configuration describes it: the module, its settings, and what happens when it crashes.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::module::Module;

/// What happens to requests once the VM of their worker has crashed. The request that crashed it gets 503 with each of them.
/// Source: `failure_policy` of Envoy's `PluginConfig`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// 503 for every further request of that worker.
    #[default]
    FailClosed,
    /// The filter is skipped. For a filter that guards something this is a bypass.
    FailOpen,
    /// 503 until the back-off is over, then a new VM.
    FailReload,
}

/// A module and everything that an operator sets for it. Source: Envoy's `PluginConfig` and `VmConfig`.
///
/// ```
/// use host_sim::{FailurePolicy, Module, Plugin};
///
/// # fn main() -> Result<(), host_sim::LoadError> {
/// let module = Module::from_bytes("tiny", br#"(module
///     (memory (export "memory") 1)
///     (func (export "malloc") (param i32) (result i32) i32.const 0)
///     (func (export "proxy_abi_version_0_2_1")))"#)?;
/// let plugin = Plugin::new(module)
///     .configuration(r#"{"greeting": "hello"}"#)
///     .failure_policy(FailurePolicy::FailReload);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Plugin {
    pub(crate) module: Module,
    pub(crate) name: String,
    pub(crate) root_id: String,
    pub(crate) vm_id: String,
    pub(crate) configuration: Vec<u8>,
    pub(crate) vm_configuration: Vec<u8>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) reload_backoff: Duration,
    pub(crate) allow_on_headers_stop_iteration: bool,
    pub(crate) allowed_capabilities: Option<BTreeSet<String>>,
    pub(crate) memory_limit_bytes: usize,
}

impl Plugin {
    /// A plugin without configuration, with the settings that Envoy takes where its file says nothing.
    pub fn new(module: Module) -> Plugin {
        Plugin {
            module,
            name: String::new(),
            root_id: String::new(),
            vm_id: String::new(),
            configuration: Vec::new(),
            vm_configuration: Vec::new(),
            environment: Vec::new(),
            failure_policy: FailurePolicy::default(),
            reload_backoff: Duration::from_secs(1),
            allow_on_headers_stop_iteration: false,
            allowed_capabilities: None,
            memory_limit_bytes: MEMORY_LIMIT_BYTES,
        }
    }

    /// The name in log lines and statistics.
    #[must_use]
    pub fn name(mut self, name: &str) -> Plugin {
        name.clone_into(&mut self.name);
        self
    }

    /// Which root context of the module is meant.
    #[must_use]
    pub fn root_id(mut self, root_id: &str) -> Plugin {
        root_id.clone_into(&mut self.root_id);
        self
    }

    /// The namespace of shared data and queues.
    #[must_use]
    pub fn vm_id(mut self, vm_id: &str) -> Plugin {
        vm_id.clone_into(&mut self.vm_id);
        self
    }

    /// What `proxy_on_configure` can read.
    #[must_use]
    pub fn configuration(mut self, bytes: impl Into<Vec<u8>>) -> Plugin {
        self.configuration = bytes.into();
        self
    }

    /// What `proxy_on_vm_start` can read.
    #[must_use]
    pub fn vm_configuration(mut self, bytes: impl Into<Vec<u8>>) -> Plugin {
        self.vm_configuration = bytes.into();
        self
    }

    /// One more environment variable of the VM. It sees no others.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Plugin {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What happens after a crash.
    #[must_use]
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Plugin {
        self.failure_policy = policy;
        self
    }

    /// With [`FailurePolicy::FailReload`]: how long after a crash the next request may start a new VM.
    #[must_use]
    pub fn reload_backoff(mut self, backoff: Duration) -> Plugin {
        self.reload_backoff = backoff;
        self
    }

    /// Whether a pause in the headers callback pauses only the headers, so that body callbacks still come. Otherwise such a pause
    /// stops everything until the filter resumes.
    #[must_use]
    pub fn allow_on_headers_stop_iteration(mut self, allow: bool) -> Plugin {
        self.allow_on_headers_stop_iteration = allow;
        self
    }

    /// Restricts the module to these host functions and callbacks. All others: a hostcall answers `InternalFailure`, a callback
    /// is never made.
    #[must_use]
    pub fn allowed_capabilities<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Plugin {
        self.allowed_capabilities = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    /// The most memory that the guest may grow to. Envoy: 1 GiB.
    #[must_use]
    pub fn memory_limit_bytes(mut self, limit: usize) -> Plugin {
        self.memory_limit_bytes = limit;
        self
    }

    /// Whether the module may use `capability`, a host function or callback.
    pub(crate) fn allows(&self, capability: &str) -> bool {
        match &self.allowed_capabilities {
            Some(allowed) => allowed.contains(capability),
            None => true,
        }
    }
}

/// Source: `proxy-wasm-cpp-host`, `limits.h`.
const MEMORY_LIMIT_BYTES: usize = 1 << 30;
