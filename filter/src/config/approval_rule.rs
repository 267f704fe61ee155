//! Who approves what a rule holds: a rule of the Control Plane, named in the configuration or by the Envoy route.

use serde_json::{Map, Value};

use super::check::{child, text_of};
use super::error::ConfigError;

/// Where the name of the Control Plane's approval rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalRule {
    /// Under this key of the route's metadata in namespace `hoop`. A route that names none refuses what the rule holds.
    FromRoute {
        /// The key.
        key: String,
    },
    /// In the configuration.
    Named(String),
}

/// The approval rule under either of its two keys.
pub(super) fn approval_rule(
    entries: &Map<String, Value>,
    place: &str,
) -> Result<Option<ApprovalRule>, ConfigError> {
    match (
        text_of(entries, "approval_rule"),
        text_of(entries, "approval_rule_from_route"),
    ) {
        (Some(_), Some(_)) => Err(ConfigError::new(
            &child(place, "approval_rule_from_route"),
            "found approval_rule and approval_rule_from_route, allowed is one of them",
            "remove one; write a rule for each where some routes name their own",
        )),
        (Some(name), None) => Ok(Some(ApprovalRule::Named(name.to_owned()))),
        (None, Some(key)) => Ok(Some(ApprovalRule::FromRoute {
            key: key.to_owned(),
        })),
        (None, None) => Ok(None),
    }
}
