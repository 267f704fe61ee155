//! Plugin configurations that several cases start from.

use host_sim_cli::bootstrap::Bootstrap;
use serde_json::{Value, json};

/// The configuration of `envoy/envoy.yaml`: POST, PUT, PATCH and DELETE under `/payments/` need a person.
pub fn advertising_tools() -> Value {
    let bootstrap = Bootstrap::shipped().expect("envoy/envoy.yaml");
    bootstrap
        .plugin_configuration()
        .expect("a plugin configuration")
}

/// The same where agents have no approval tools.
pub fn shipped() -> Value {
    let mut policy = advertising_tools();
    let entries = policy.as_object_mut().expect("an object");
    entries.remove("mcp").expect("the shipped file has the key");
    policy
}

/// The configuration of `envoy/mcp.yaml`, with the shortest time between two looks at the plane.
pub fn tools() -> Value {
    let bootstrap = Bootstrap::shipped_mcp().expect("envoy/mcp.yaml");
    let mut policy = bootstrap
        .plugin_configuration()
        .expect("a plugin configuration");
    policy["poll_interval_ms"] = 100.into();
    policy
}

/// The shipped configuration with other rules. A mode says how calls are held, so without a rule that holds there is none.
pub fn with_rules(rules: Value) -> Value {
    let holds = rules.to_string().contains("require_");
    let mut policy = if holds {
        shipped()
    } else {
        without("approval_mode")
    };
    policy["rules"] = rules;
    policy
}

/// The shipped configuration in hold mode, with the shortest time between two looks at the plane.
pub fn holding() -> Value {
    let mut policy = with("approval_mode", json!("hold"));
    policy["poll_interval_ms"] = 100.into();
    policy
}

/// [`holding`] with the shortest time that a request can be held: a second.
pub fn holding_for_a_second() -> Value {
    let mut policy = holding();
    policy["hold_timeout_ms"] = 1_000.into();
    policy
}

/// The shipped configuration with `key` set to `value`.
pub fn with(key: &str, value: Value) -> Value {
    let mut policy = shipped();
    policy[key] = value;
    policy
}

/// The shipped configuration without `key`.
pub fn without(key: &str) -> Value {
    let mut policy = shipped();
    if let Some(members) = policy.as_object_mut() {
        members.remove(key);
    }
    policy
}

/// A rule that holds everything.
pub fn hold_everything() -> Value {
    json!([{"name": "all", "action": "require_approval", "approval_rule": "billing-approvers"}])
}

/// The name under which the shipped configuration files.
pub const LISTENER: &str = "billing-api";
/// The approval rule of the shipped configuration.
pub const APPROVAL_RULE: &str = "billing-approvers";
