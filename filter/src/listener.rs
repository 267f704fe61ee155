//! One configured listener: everything that outlives a single request, ready to be asked. Made once per configuration,
//! shared by all its streams.

pub use crate::config::Enforcement;
use crate::config::{Config, GrpcConfig};
use crate::control_plane::{ControlPlane, Credential};
use crate::identity::IdentitySource;
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
    /// Whether the Control Plane shall show this sidecar as connected.
    pub heartbeat: bool,
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
        }
    }
}
