//! Owns what the plane serves: which listeners exist, which approval rules they may use, and how long a rule's
//! approvals live. `PlaneConfig::parse` reads it from `plane.yaml`, once, into a value that cannot be wrong. It must
//! not know files, the database or the wire.

mod error;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

pub use self::error::ConfigError;
use crate::limits::{
    NAME_MAX_BYTES, PROCESSING_TTL_SEC, PROCESSING_TTL_SEC_DEFAULT, TTL_SEC, WAITING,
    WAITING_DEFAULT, WAITING_PER_REQUESTER_DEFAULT,
};

/// The plane's configuration, checked.
#[derive(Clone, Debug)]
pub struct PlaneConfig {
    /// Listener -> names of the rules it may use.
    listeners: BTreeMap<String, BTreeSet<String>>,
    rules: BTreeMap<String, ApprovalRule>,
    processing_ttl_sec: u32,
    max_waiting: u32,
    max_waiting_per_requester: u32,
}

impl PlaneConfig {
    /// Reads `plane.yaml`. `origin` is what messages call it: a path, mostly.
    ///
    /// # Errors
    ///
    /// On anything that is not exactly understood: bad YAML, an unknown key, a blank or a doubled name, a listener
    /// that names a rule which is not there, a rule without reviewers, a limit out of its range. A rule that
    /// nobody can decide would hold requests for ever, so it is refused here and not found out later.
    pub fn parse(yaml: &str, origin: &str) -> Result<Self, ConfigError> {
        let file: wire::PlaneFile =
            serde_saphyr::from_str(yaml).map_err(|cause| ConfigError::Syntax {
                origin: origin.to_owned(),
                problem: cause.without_snippet().to_string(),
            })?;
        let rules = rules(file.approval_rules, origin)?;
        let listeners = listeners(file.listeners, &rules, origin)?;
        let (max_waiting, max_waiting_per_requester) =
            waiting(file.max_waiting, file.max_waiting_per_requester, origin)?;
        Ok(Self {
            listeners,
            rules,
            processing_ttl_sec: processing_ttl(file.processing_ttl_sec, origin)?,
            max_waiting,
            max_waiting_per_requester,
        })
    }

    /// Each listener with the rules it may use, in the order of their names.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
        self.listeners
            .iter()
            .map(|(name, rules)| (name.as_str(), rules.iter().map(String::as_str)))
    }

    /// How long an approval may be in flight before it counts as spent.
    pub(crate) const fn processing_ttl_sec(&self) -> u32 {
        self.processing_ttl_sec
    }

    /// How many reviews may wait in all.
    pub(crate) const fn max_waiting(&self) -> u32 {
        self.max_waiting
    }

    /// How many of them may be of one requester.
    pub(crate) const fn max_waiting_per_requester(&self) -> u32 {
        self.max_waiting_per_requester
    }

    /// The rule, when this listener may use it. One answer for each way to miss, so that whoever holds the sidecar
    /// token cannot find out which names exist.
    pub(crate) fn authorised(&self, listener: &str, rule: &str) -> Option<&ApprovalRule> {
        self.listeners
            .get(listener)
            .filter(|allowed| allowed.contains(rule))
            .and_then(|_| self.rules.get(rule))
    }
}

/// One approval rule: who is asked, and how long an answer may take and last.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalRule {
    pub(crate) reviewers: Vec<String>,
    pub(crate) pending_ttl_sec: Option<u32>,
    pub(crate) approval_ttl_sec: Option<u32>,
}

fn rules(
    found: Vec<wire::ApprovalRule>,
    origin: &str,
) -> Result<BTreeMap<String, ApprovalRule>, ConfigError> {
    let mut rules = BTreeMap::new();
    for (index, rule) in found.into_iter().enumerate() {
        let at = Place {
            origin,
            key: format!("approval_rules[{index}]"),
        };
        let name = at.name("name", rule.name)?;
        let reviewers = reviewers(rule.reviewers, &at)?;
        let checked = ApprovalRule {
            reviewers,
            pending_ttl_sec: at.ttl("pending_ttl_sec", rule.pending_ttl_sec)?,
            approval_ttl_sec: at.ttl("approval_ttl_sec", rule.approval_ttl_sec)?,
        };
        if rules.insert(name.clone(), checked).is_some() {
            return Err(at.duplicate("name", name));
        }
    }
    Ok(rules)
}

fn processing_ttl(found: Option<u64>, origin: &str) -> Result<u32, ConfigError> {
    let Some(seconds) = found else {
        return Ok(PROCESSING_TTL_SEC_DEFAULT);
    };
    match u32::try_from(seconds) {
        Ok(seconds) if PROCESSING_TTL_SEC.contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err(ConfigError::ProcessingTimeLimit {
            origin: origin.to_owned(),
            found: seconds,
        }),
    }
}

/// How many reviews may wait, in all and of one requester.
fn waiting(
    in_all: Option<u64>,
    per_requester: Option<u64>,
    origin: &str,
) -> Result<(u32, u32), ConfigError> {
    let bounded = |key, found: Option<u64>, default| {
        let Some(found) = found else {
            return Ok(default);
        };
        match u32::try_from(found) {
            Ok(number) if WAITING.contains(&number) => Ok(number),
            Ok(_) | Err(_) => Err(ConfigError::WaitingLimit {
                origin: origin.to_owned(),
                key,
                found,
            }),
        }
    };
    let max_waiting = bounded("max_waiting", in_all, WAITING_DEFAULT)?;
    let max_waiting_per_requester = bounded(
        "max_waiting_per_requester",
        per_requester,
        WAITING_PER_REQUESTER_DEFAULT,
    )?;
    if max_waiting_per_requester > max_waiting {
        return Err(ConfigError::WaitingLimitsCrossed {
            origin: origin.to_owned(),
            max_waiting,
            max_waiting_per_requester,
        });
    }
    Ok((max_waiting, max_waiting_per_requester))
}

fn reviewers(found: Vec<String>, at: &Place<'_>) -> Result<Vec<String>, ConfigError> {
    if found.is_empty() {
        return Err(ConfigError::NoReviewers {
            origin: at.origin.to_owned(),
            key: at.key("reviewers"),
        });
    }
    let mut reviewers: Vec<String> = Vec::with_capacity(found.len());
    for (index, group) in found.into_iter().enumerate() {
        let key = format!("reviewers[{index}]");
        let group = at.name(&key, group)?;
        if reviewers.contains(&group) {
            return Err(at.duplicate(&key, group));
        }
        reviewers.push(group);
    }
    Ok(reviewers)
}

fn listeners(
    found: Vec<wire::Listener>,
    rules: &BTreeMap<String, ApprovalRule>,
    origin: &str,
) -> Result<BTreeMap<String, BTreeSet<String>>, ConfigError> {
    let mut listeners = BTreeMap::new();
    for (index, listener) in found.into_iter().enumerate() {
        let at = Place {
            origin,
            key: format!("listeners[{index}]"),
        };
        let name = at.name("name", listener.name)?;
        let mut allowed = BTreeSet::new();
        for (index, rule) in listener.approval_rules.into_iter().enumerate() {
            let key = format!("approval_rules[{index}]");
            let rule = at.name(&key, rule)?;
            if !rules.contains_key(&rule) {
                return Err(ConfigError::UnknownRule {
                    origin: origin.to_owned(),
                    key: at.key(&key),
                    found: rule,
                    known: rules.keys().cloned().collect(),
                });
            }
            if let Some(twice) = allowed.replace(rule) {
                return Err(at.duplicate(&key, twice));
            }
        }
        if listeners.insert(name.clone(), allowed).is_some() {
            return Err(at.duplicate("name", name));
        }
    }
    Ok(listeners)
}

/// Where in which file a value stands, for the messages.
struct Place<'a> {
    origin: &'a str,
    key: String,
}

impl Place<'_> {
    fn key(&self, inner: &str) -> String {
        format!("{}.{inner}", self.key)
    }

    /// A name as it may be shown anywhere: in a log line, an answer, a page.
    fn name(&self, inner: &str, found: String) -> Result<String, ConfigError> {
        let fine = !found.is_empty()
            && found.trim() == found
            && found.len() <= NAME_MAX_BYTES
            && !found.chars().any(char::is_control);
        if fine {
            return Ok(found);
        }
        Err(ConfigError::BadName {
            origin: self.origin.to_owned(),
            key: self.key(inner),
            found,
        })
    }

    fn ttl(&self, inner: &str, found: Option<u64>) -> Result<Option<u32>, ConfigError> {
        let Some(seconds) = found else {
            return Ok(None);
        };
        match u32::try_from(seconds) {
            Ok(seconds) if TTL_SEC.contains(&seconds) => Ok(Some(seconds)),
            Ok(_) | Err(_) => Err(ConfigError::TimeLimit {
                origin: self.origin.to_owned(),
                key: self.key(inner),
                found: seconds,
            }),
        }
    }

    fn duplicate(&self, inner: &str, found: String) -> ConfigError {
        ConfigError::DuplicateName {
            origin: self.origin.to_owned(),
            key: self.key(inner),
            found,
        }
    }
}

/// `plane.yaml` as an operator writes it.
mod wire {
    use super::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct PlaneFile {
        pub(super) listeners: Vec<Listener>,
        pub(super) approval_rules: Vec<ApprovalRule>,
        pub(super) processing_ttl_sec: Option<u64>,
        pub(super) max_waiting: Option<u64>,
        pub(super) max_waiting_per_requester: Option<u64>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Listener {
        pub(super) name: String,
        pub(super) approval_rules: Vec<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct ApprovalRule {
        pub(super) name: String,
        pub(super) reviewers: Vec<String>,
        pub(super) pending_ttl_sec: Option<u64>,
        pub(super) approval_ttl_sec: Option<u64>,
    }
}

#[cfg(test)]
mod tests;
