//! One configured listener: everything that outlives a single request, ready to be asked. Made once per configuration,
//! shared by all its streams.

use std::cell::Cell;
use std::rc::Rc;

pub use crate::config::Enforcement;
use crate::config::{Config, GrpcConfig, McpConfig};
use crate::control_plane::{ControlPlane, Credential};
use crate::identity::IdentitySource;
use crate::limits;
use crate::policy::Policy;
use crate::request::query::SensitiveNames;
use crate::secret::Secret;

/// A listener with its policy and its Control Plane.
#[derive(Debug)]
pub struct Listener {
    /// The name under which approvals are filed and read.
    pub name: String,
    /// The rules.
    pub policy: Policy,
    /// The Control Plane; `None` where none is configured.
    pub control_plane: Option<ControlPlane>,
    /// Largest body of a held request, in bytes.
    pub max_body_bytes: usize,
    /// Query parameters whose values nobody is shown.
    pub sensitive_names: SensitiveNames,
    /// The key that binds redacted values.
    pub redaction_key: Option<Secret>,
    /// Whether the policy is enforced.
    pub enforcement: Enforcement,
    /// How long a request is held, in milliseconds.
    pub hold_timeout_ms: u64,
    /// Time between two reads of the Control Plane's list while something is held, in milliseconds.
    pub poll_interval_ms: u64,
    /// Where to find who asks.
    pub identity: IdentitySource,
    /// How gRPC calls are shown and taken.
    pub grpc: GrpcConfig,
    /// What is kept back of gRPC messages.
    pub kept: KeptBytes,
    /// Whether agents find the approval tools, and where.
    pub mcp: McpConfig,
    /// Answers of the approval tools that are sent piece by piece.
    pub streams: StreamSlots,
    /// Whether the Control Plane shall show this sidecar as connected.
    pub heartbeat: bool,
}

/// What the VM keeps back of gRPC messages, for all its calls together.
#[derive(Clone, Debug, Default)]
pub struct KeptBytes(Rc<Cell<usize>>);

/// The part of it that is one call's. It is given back with the call.
#[derive(Debug)]
pub struct KeptShare {
    all: KeptBytes,
    own: usize,
}

impl KeptBytes {
    /// A share of nothing yet.
    #[must_use]
    pub fn share(&self) -> KeptShare {
        KeptShare {
            all: self.clone(),
            own: 0,
        }
    }
}

impl KeptShare {
    /// Takes more; `false` where the VM keeps too much already.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let all = self.all.0.get().saturating_add(bytes);
        let fits = all <= limits::GRPC_KEPT_BYTES;
        if fits {
            self.all.0.set(all);
            self.own = self.own.saturating_add(bytes);
        }
        fits
    }

    /// Gives all of it back.
    pub fn clear(&mut self) {
        let own = std::mem::take(&mut self.own);
        self.all.0.set(self.all.0.get().saturating_sub(own));
    }
}

impl Drop for KeptShare {
    fn drop(&mut self) {
        self.clear();
    }
}

/// How many answers of a VM may be sent piece by piece at a time. The host keeps memory by their length, so a long one counts as several.
#[derive(Clone, Debug, Default)]
pub struct StreamSlots(Rc<Cell<usize>>);

/// Some of them, given back with the answer.
#[derive(Debug)]
pub struct StreamSlot {
    all: StreamSlots,
    own: usize,
}

impl StreamSlots {
    fn new(most: usize) -> Self {
        Self(Rc::new(Cell::new(most)))
    }

    /// Takes so many; `None` where fewer are left.
    #[must_use]
    pub fn take(&self, own: usize) -> Option<StreamSlot> {
        self.0.set(self.0.get().checked_sub(own)?);
        Some(StreamSlot {
            all: self.clone(),
            own,
        })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let left = &self.all.0;
        left.set(left.get().saturating_add(self.own));
    }
}

/// The secrets that a configuration names and the environment holds.
#[derive(Debug, Default)]
pub struct Secrets {
    /// The sidecar token.
    pub credential: Option<Credential>,
    /// The key for redacted values, where it is not the token.
    pub redaction_key: Option<Secret>,
}

impl Listener {
    /// Whether a refusal is to name the approval tools, which another listener serves.
    #[must_use]
    pub fn names_the_tool(&self) -> bool {
        self.mcp == McpConfig::Advertised
    }

    /// Joins a configuration and its secrets.
    #[must_use]
    pub fn new(config: Config, secrets: Secrets) -> Self {
        let redaction_key = secrets.redaction_key.or_else(|| {
            secrets
                .credential
                .as_ref()
                .map(|credential| credential.as_key().clone())
        });
        Self {
            name: config.listener_name,
            policy: Policy::new(config.rules),
            heartbeat: config
                .control_plane
                .as_ref()
                .is_some_and(|plane| plane.heartbeat),
            control_plane: config
                .control_plane
                .map(|plane| ControlPlane::new(plane, secrets.credential, config.spend_on)),
            max_body_bytes: config.max_body_bytes,
            sensitive_names: config.sensitive_names,
            redaction_key,
            enforcement: config.enforcement,
            hold_timeout_ms: config.hold_timeout_ms,
            poll_interval_ms: config.poll_interval_ms,
            identity: config.identity,
            grpc: config.grpc,
            kept: KeptBytes::default(),
            streams: match &config.mcp {
                McpConfig::Served(endpoint) => StreamSlots::new(endpoint.max_streams),
                McpConfig::Absent | McpConfig::Advertised => StreamSlots::default(),
            },
            mcp: config.mcp,
        }
    }
}
