//! The plugin configuration: read once, refused as a whole when anything in it is wrong, valid from then on.
//!
//! A configuration that arms a gate which nobody can decide is refused: a bad policy must never become no policy.
//! This is the only module that knows the operator's JSON.

mod approval_rule;
mod check;
pub mod conditions;
mod error;
mod grpc;
mod keys;
mod mcp;
mod numbers;
mod rule;
mod schema;
mod targets;

use serde_json::{Map, Value};

pub use approval_rule::ApprovalRule;
pub use error::ConfigError;
pub use grpc::{GrpcConfig, Streaming};
pub use mcp::{McpConfig, McpEndpoint};
pub use rule::{Action, RuleConfig};
pub use schema::json_schema;

use crate::approval::SpendOn;
use crate::identity::IdentitySource;
use crate::json;
use crate::limits;
use crate::request::mode::Mode;
use crate::request::query::SensitiveNames;
use check::{child, objects_of, text_of, texts_of, whole_of};
use numbers::Numbers;
use rule::{RuleContext, mode_of, rule};

/// A configuration without a contradiction.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name under which approvals are filed and read.
    pub listener_name: String,
    /// How the Control Plane is reached; `None` means there is none.
    pub control_plane: Option<ControlPlaneConfig>,
    /// Largest body of a held request, in bytes.
    pub max_body_bytes: usize,
    /// Query parameters whose values nobody is shown.
    pub sensitive_names: SensitiveNames,
    /// Environment variable with the key that binds redacted values where there is no sidecar token.
    pub redaction_key_env: Option<String>,
    /// The policy, in order.
    pub rules: Vec<RuleConfig>,
    /// Whether the policy is enforced.
    pub enforcement: Enforcement,
    /// How long a request is held, in milliseconds.
    pub hold_timeout_ms: u64,
    /// Time between two reads of the list, in milliseconds.
    pub poll_interval_ms: u64,
    /// When an approval is spent.
    pub spend_on: SpendOn,
    /// Where to find who asks.
    pub identity: IdentitySource,
    /// How gRPC calls are shown and taken.
    pub grpc: GrpcConfig,
    /// Whether agents find the approval tools.
    pub mcp: McpConfig,
}

/// Whether the policy is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// It is.
    #[default]
    Enforce,
    /// Nothing is filed and nothing refused; what would have happened is counted and logged.
    Observe,
}

/// How the Control Plane is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPlaneConfig {
    /// Envoy cluster name.
    pub cluster: String,
    /// Host header of the calls.
    pub authority: String,
    /// Kept in front of `/api/...`; empty or `/x` without a trailing slash.
    pub path_prefix: String,
    /// Environment variable with the raw sidecar token; `None` where another filter adds the credential.
    pub token_env: Option<String>,
    /// Time a call may take, in milliseconds; never 0.
    pub timeout_ms: u32,
    /// Whether the plane shall show this sidecar as connected.
    pub heartbeat: bool,
}

const DEFAULT_MODE: Mode = Mode::Hold;
const DEFAULT_MESSAGE: &str = "statement held for human approval";
const DEFAULT_TOKEN_ENV: &str = "HOOP_SIDECAR_TOKEN";

impl Config {
    /// Reads a plugin configuration.
    ///
    /// # Errors
    ///
    /// With the first thing that is wrong: its place, what was found, what is allowed, and the remedy.
    pub fn parse(text: &[u8]) -> Result<Self, ConfigError> {
        let document = document(text)?;
        check::object(&document, &keys::ROOT, "")?;
        let Value::Object(entries) = &document else {
            return Err(ConfigError::new(
                "",
                "found no object",
                "write a JSON object",
            ));
        };
        let mode = mode_of(entries, "")?;
        let control_plane = entries
            .get("control_plane")
            .and_then(Value::as_object)
            .map(control_plane)
            .transpose()?;
        let numbers = Numbers::of(&document, text)?;
        let listener_message = text_of(entries, "message").unwrap_or(DEFAULT_MESSAGE);
        let mut rules = Vec::new();
        for (at, rule_entries) in objects_of(entries, "rules") {
            let context = RuleContext {
                at,
                listener_message,
                listener_mode: mode.unwrap_or(DEFAULT_MODE),
                has_plane: control_plane.is_some(),
                numbers: &numbers,
            };
            rules.push(rule(rule_entries, &context)?);
        }
        let holds = |rule: &RuleConfig| matches!(rule.action, Action::RequireApproval { .. });
        if mode.is_some() && !rules.iter().any(holds) {
            return Err(ConfigError::new(
                "/approval_mode",
                "a mode is set, but no rule requires an approval",
                "remove approval_mode, or add a rule with \"action\": \"require_approval\"",
            ));
        }
        let mcp = mcp::mcp(entries, control_plane.is_some(), !rules.is_empty())?;
        let (grpc, max_payload_bytes) = grpc::grpc(entries)?;
        let max_body_bytes = max_body_bytes(entries, max_payload_bytes)?;
        Ok(Self {
            listener_name: text_of(entries, "listener_name")
                .unwrap_or_default()
                .to_owned(),
            control_plane,
            max_body_bytes,
            sensitive_names: SensitiveNames::with(&texts_of(entries, "sensitive_query_params")),
            redaction_key_env: variable_name(entries, "redaction_key_env", "")?,
            rules,
            enforcement: match text_of(entries, "enforcement") {
                Some("observe") => Enforcement::Observe,
                _ => Enforcement::Enforce,
            },
            hold_timeout_ms: whole_of(entries, "hold_timeout_ms")
                .unwrap_or(limits::DEFAULT_HOLD_TIMEOUT_MS),
            poll_interval_ms: whole_of(entries, "poll_interval_ms")
                .unwrap_or(limits::DEFAULT_POLL_INTERVAL_MS),
            spend_on: match text_of(entries, "spend_approval_on") {
                Some("accepted") => SpendOn::Accepted,
                _ => SpendOn::Release,
            },
            identity: identity(entries)?,
            grpc,
            mcp,
        })
    }
}

fn document(text: &[u8]) -> Result<Value, ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::new(
            "",
            "the plugin configuration is empty",
            "set `configuration` of the wasm filter to a google.protobuf.StringValue that holds the JSON",
        ));
    }
    if text.len() > limits::CONFIG_BYTES {
        let problem = format!(
            "found {} bytes, at most {} are read",
            text.len(),
            limits::CONFIG_BYTES
        );
        return Err(ConfigError::new(
            "",
            problem,
            "split the policy over several listeners",
        ));
    }
    // A `google.protobuf.Struct` reaches a filter as protobuf bytes on Envoy 1.40, although Envoy's API documentation
    // promises JSON; such bytes begin with the tag of field 1.
    if text.first() == Some(&b'\n') && json::parse(text).is_err() {
        return Err(ConfigError::new(
            "",
            "this is not JSON but looks like a protobuf message: Envoy hands over a google.protobuf.Struct undecoded",
            "write the JSON as text, in a google.protobuf.StringValue",
        ));
    }
    json::parse(text).map_err(|fault| {
        ConfigError::new(
            "",
            format!("this is not JSON that can be trusted: {fault}"),
            "correct the JSON, each key once",
        )
    })
}

fn control_plane(entries: &Map<String, Value>) -> Result<ControlPlaneConfig, ConfigError> {
    let place = "/control_plane";
    let authority = text_of(entries, "authority").unwrap_or_default();
    if !authority.bytes().all(|byte| byte.is_ascii_graphic())
        || authority.contains(['/', '@', '?', '#'])
    {
        return Err(ConfigError::new(
            &child(place, "authority"),
            format!("found {authority:?}, allowed is a host with an optional port"),
            "write host or host:port, without scheme, path or user",
        ));
    }
    let prefix = text_of(entries, "path_prefix")
        .unwrap_or_default()
        .trim_end_matches('/');
    let good_prefix = prefix.is_empty()
        || (prefix.starts_with('/')
            && prefix.bytes().all(|byte| byte.is_ascii_graphic())
            && !prefix.contains(['?', '#', '\\']));
    if !good_prefix {
        return Err(ConfigError::new(
            &child(place, "path_prefix"),
            format!("found {prefix:?}, allowed is a path that begins with \"/\""),
            "write a path such as \"/hoop\", without query or fragment",
        ));
    }
    let sends_token = text_of(entries, "credential") != Some("none");
    let token_env = variable_name(entries, "token_env", place)?;
    if !sends_token && token_env.is_some() {
        return Err(ConfigError::new(
            &child(place, "token_env"),
            "credential is \"none\", so the token would not be used",
            "remove token_env, or set credential to \"token\"",
        ));
    }
    let timeout_ms = whole_of(entries, "timeout_ms").and_then(|time| u32::try_from(time).ok());
    Ok(ControlPlaneConfig {
        cluster: text_of(entries, "cluster").unwrap_or_default().to_owned(),
        authority: authority.to_owned(),
        path_prefix: prefix.to_owned(),
        token_env: sends_token.then(|| token_env.unwrap_or_else(|| DEFAULT_TOKEN_ENV.to_owned())),
        timeout_ms: timeout_ms.unwrap_or(limits::DEFAULT_PLANE_TIMEOUT_MS),
        heartbeat: flag_of(entries, "heartbeat"),
    })
}

/// The bound under either of its names.
fn max_body_bytes(
    entries: &Map<String, Value>,
    max_payload_bytes: Option<u64>,
) -> Result<usize, ConfigError> {
    let max_body_bytes = whole_of(entries, "max_body_bytes");
    if let (Some(new), Some(old)) = (max_body_bytes, max_payload_bytes)
        && new != old
    {
        return Err(ConfigError::new(
            "/grpc/max_payload_bytes",
            format!("found {old}, but max_body_bytes is {new}"),
            "set max_body_bytes or grpc.max_payload_bytes, not both",
        ));
    }
    let bytes = max_body_bytes.or(max_payload_bytes);
    Ok(bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(limits::DEFAULT_MAX_BODY_BYTES))
}

fn identity(entries: &Map<String, Value>) -> Result<IdentitySource, ConfigError> {
    let Some(identity) = entries.get("identity").and_then(Value::as_object) else {
        return Ok(IdentitySource::default());
    };
    let header = text_of(identity, "header");
    if let Some(name) = header
        && !check::is_token(name)
    {
        return Err(ConfigError::new(
            "/identity/header",
            format!("found {name:?}, which cannot name a header"),
            "write a header name such as \"x-user\"",
        ));
    }
    Ok(IdentitySource {
        header: header.map(str::to_ascii_lowercase),
        certificate: flag_of(identity, "client_certificate"),
    })
}

fn flag_of(entries: &Map<String, Value>, key: &str) -> bool {
    entries
        .get(key)
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

fn variable_name(
    entries: &Map<String, Value>,
    key: &str,
    place: &str,
) -> Result<Option<String>, ConfigError> {
    let Some(name) = text_of(entries, key) else {
        return Ok(None);
    };
    if name.contains('=') || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ConfigError::new(
            &child(place, key),
            "found a text that cannot name an environment variable",
            "write the variable's name here, never the secret itself",
        ));
    }
    Ok(Some(name.to_owned()))
}

#[cfg(test)]
mod tests;
