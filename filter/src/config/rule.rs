//! One rule of the policy: what it meets and what it does, without a contradiction.

use serde_json::{Map, Value};

use super::approval_rule::{ApprovalRule, approval_rule};
use super::check::{child, text_of};
use super::conditions::{self, Conditions};
use super::error::ConfigError;
use super::numbers::Numbers;
use super::targets;
use crate::glob::{PathGlob, WordGlob};
use crate::request::mode::Mode;

/// One rule of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleConfig {
    /// For the operator's log.
    pub name: String,
    /// Upper-case methods; empty means every method.
    pub methods: Vec<String>,
    /// Host globs; empty means every host.
    pub hosts: Vec<WordGlob>,
    /// Path globs; empty means every path.
    pub paths: Vec<PathGlob>,
    /// Globs on the paths of gRPC methods; empty means every path.
    pub grpc: Vec<PathGlob>,
    /// What else must hold.
    pub conditions: Conditions,
    /// What happens to a request that the rule meets.
    pub action: Action,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request passes.
    Allow,
    /// The request is refused.
    Deny {
        /// The whole text of the refusal.
        message: String,
    },
    /// The request waits for a person.
    RequireApproval {
        /// The Control Plane's rule that says who approves.
        approval_rule: ApprovalRule,
        /// First words of the denial.
        message: String,
        /// How the request waits.
        mode: Mode,
    },
}

const DEFAULT_DENY_MESSAGE: &str = "denied by policy";

/// What a rule needs to know of its surroundings.
pub(super) struct RuleContext<'c> {
    pub at: usize,
    pub listener_message: &'c str,
    pub listener_mode: Mode,
    pub has_plane: bool,
    pub numbers: &'c Numbers,
}

pub(super) fn rule(
    entries: &Map<String, Value>,
    context: &RuleContext<'_>,
) -> Result<RuleConfig, ConfigError> {
    let place = format!("/rules/{}", context.at);
    let action = action(entries, context, &place)?;
    let empty = Map::new();
    let conditions = entries
        .get("match")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let match_place = child(&place, "match");
    let name =
        text_of(entries, "name").map_or_else(|| format!("rules[{}]", context.at), str::to_owned);
    Ok(RuleConfig {
        name,
        methods: targets::methods(conditions, &match_place)?,
        hosts: targets::hosts(conditions, &match_place)?,
        paths: targets::paths(conditions, &match_place)?,
        grpc: targets::grpc_methods(conditions, &match_place)?,
        conditions: conditions::conditions(conditions, context.numbers, &match_place)?,
        action,
    })
}

fn action(
    entries: &Map<String, Value>,
    context: &RuleContext<'_>,
    place: &str,
) -> Result<Action, ConfigError> {
    let mode = mode_of(entries, place)?;
    let approval_rule = approval_rule(entries, place)?;
    let message = text_of(entries, "message");
    let word = text_of(entries, "action").unwrap_or_default();
    if word == "allow" || word == "deny" {
        for (key, present) in [
            ("approval_rule", entries.contains_key("approval_rule")),
            (
                "approval_rule_from_route",
                entries.contains_key("approval_rule_from_route"),
            ),
            ("approval_mode", mode.is_some()),
        ] {
            if present {
                return Err(ConfigError::new(
                    &child(place, key),
                    format!("this key has no meaning with \"action\": {word:?}"),
                    format!("remove {key}, or set action to \"require_approval\""),
                ));
            }
        }
    }
    if word == "deny" {
        return Ok(Action::Deny {
            message: message.unwrap_or(DEFAULT_DENY_MESSAGE).to_owned(),
        });
    }
    if word == "allow" {
        return match message {
            None => Ok(Action::Allow),
            Some(_) => Err(ConfigError::new(
                &child(place, "message"),
                "a request that passes gets no message",
                "remove message, or choose another action",
            )),
        };
    }
    let Some(approval_rule) = approval_rule else {
        return Err(ConfigError::new(
            &child(place, "approval_rule"),
            "this key is required with \"action\": \"require_approval\" and missing: nobody could decide",
            "name the Control Plane's approval rule, such as \"billing-approvers\"",
        ));
    };
    if !context.has_plane {
        return Err(ConfigError::new(
            "/control_plane",
            format!(
                "this key is missing, but {place} requires an approval that only a Control Plane can give"
            ),
            "add control_plane with cluster and authority",
        ));
    }
    Ok(Action::RequireApproval {
        approval_rule,
        message: message.unwrap_or(context.listener_message).to_owned(),
        mode: mode.unwrap_or(context.listener_mode),
    })
}

/// The mode under either of its two names; both at once must agree (contract 3.1).
pub(super) fn mode_of(
    entries: &Map<String, Value>,
    place: &str,
) -> Result<Option<Mode>, ConfigError> {
    let (new, old) = (
        text_of(entries, "approval_mode"),
        text_of(entries, "review_mode"),
    );
    if let (Some(new), Some(old)) = (new, old)
        && new != old
    {
        return Err(ConfigError::new(
            &child(place, "review_mode"),
            format!("found {old:?}, but approval_mode says {new:?}"),
            "set approval_mode or review_mode, not both",
        ));
    }
    Ok(new.or(old).map(|word| match word {
        "return" => Mode::Return,
        _ => Mode::Hold,
    }))
}
