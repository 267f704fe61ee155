//! What the operator's rules say of one request. Knows paths and hosts, and nothing of bodies, approvals or Envoy.

use crate::config::{Action, RuleConfig};
use crate::glob::Case;
use crate::request::path::PathReading;
use crate::request::{RequestHead, host_of};

/// The rules of one listener, in order.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<RuleConfig>,
    /// Whether any rule looks at the path: where none does, the path need not be read.
    reads_path: bool,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'p> {
    /// The path has more than one reading and one of them meets this denying or holding rule. A wrong no here costs an
    /// odd client a 400; a wrong yes would let a held call run.
    Ambiguous(&'p RuleConfig),
    /// A rule refuses the request.
    Deny {
        /// The rule that does.
        rule: &'p RuleConfig,
        /// The whole text of the refusal.
        message: &'p str,
    },
    /// No rule stands against the request.
    Pass,
    /// The request waits for a person.
    RequireApproval(Hold<'p>),
}

/// Which approval a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold<'p> {
    /// The operator's name of the rule.
    pub rule_name: &'p str,
    /// The Control Plane's rule that says who approves.
    pub approval_rule: &'p str,
    /// First words of the denial.
    pub message: &'p str,
}

/// What is known of the path when the rules are asked.
#[derive(Clone, Copy)]
enum PathView<'a> {
    Known(&'a [u8]),
    /// It could be any path.
    Unknown,
}

impl Policy {
    /// Takes the rules of a configuration.
    #[must_use]
    pub fn new(rules: Vec<RuleConfig>) -> Self {
        let reads_path = rules.iter().any(|rule| !rule.paths.is_empty());
        Self { rules, reads_path }
    }

    /// Decides on a request by its head alone: the first rule that matches, and nothing where none does.
    #[must_use]
    pub fn decide(&self, head: &RequestHead) -> Verdict<'_> {
        if self.rules.is_empty() {
            return Verdict::Pass;
        }
        let request = Request {
            method: head.method.to_ascii_uppercase(),
            host: host_of(&head.authority),
        };
        if !self.reads_path {
            return self
                .first(&request, PathView::Unknown)
                .map_or(Verdict::Pass, verdict_of);
        }
        match &head.reading {
            PathReading::Plain(canonical) => self
                .first(&request, PathView::Known(canonical))
                .map_or(Verdict::Pass, verdict_of),
            PathReading::Ambiguous(readings) => {
                let met = readings
                    .iter()
                    .map(|reading| self.first(&request, PathView::Known(reading)));
                self.strictest(met)
            }
            PathReading::Unbounded => self.strictest(self.all_possible(&request)),
        }
    }

    fn first(&self, request: &Request<'_>, path: PathView<'_>) -> Option<&RuleConfig> {
        self.rules.iter().find(|rule| request.meets(rule, path))
    }

    /// Every rule that a path could meet: all that look at it, up to the first that does not.
    fn all_possible<'p>(
        &'p self,
        request: &Request<'_>,
    ) -> impl Iterator<Item = Option<&'p RuleConfig>> {
        let possible: Vec<&RuleConfig> = self
            .rules
            .iter()
            .filter(|rule| request.meets(rule, PathView::Unknown))
            .collect();
        let certain = possible.iter().position(|rule| rule.paths.is_empty());
        let end = certain.map_or(possible.len(), |at| at.saturating_add(1));
        let unmatched = certain.is_none().then_some(None);
        possible.into_iter().take(end).map(Some).chain(unmatched)
    }

    /// The verdict over all readings. Where every one meets the same rule and that rule does not look at the path,
    /// the path is not what the decision rests on, so its spelling does not matter.
    fn strictest<'p>(
        &'p self,
        mut met: impl Iterator<Item = Option<&'p RuleConfig>>,
    ) -> Verdict<'p> {
        let Some(first) = met.next() else {
            return Verdict::Pass;
        };
        let mut all_alike = true;
        let mut against = first.filter(|rule| rule.action != Action::Allow);
        for rule in met {
            all_alike = all_alike && rule == first;
            against = against.or_else(|| rule.filter(|rule| rule.action != Action::Allow));
        }
        match against {
            None => Verdict::Pass,
            Some(rule) if all_alike && rule.paths.is_empty() => verdict_of(rule),
            Some(rule) => Verdict::Ambiguous(rule),
        }
    }
}

fn verdict_of(rule: &RuleConfig) -> Verdict<'_> {
    match &rule.action {
        Action::Allow => Verdict::Pass,
        Action::Deny { message } => Verdict::Deny { rule, message },
        Action::RequireApproval {
            approval_rule,
            message,
        } => Verdict::RequireApproval(Hold {
            rule_name: &rule.name,
            approval_rule,
            message,
        }),
    }
}

struct Request<'a> {
    method: Vec<u8>,
    host: &'a [u8],
}

impl Request<'_> {
    /// Denying and holding rules compare paths without letter case, since many upstreams do; rules that allow compare
    /// them exactly. So a change of case can only ever make the gate stricter.
    fn meets(&self, rule: &RuleConfig, path: PathView<'_>) -> bool {
        let case = match rule.action {
            Action::Allow => Case::Sensitive,
            Action::Deny { .. } | Action::RequireApproval { .. } => Case::Insensitive,
        };
        let methods = rule.methods.is_empty()
            || rule
                .methods
                .iter()
                .any(|method| method.as_bytes() == self.method);
        let hosts = || {
            rule.hosts.is_empty()
                || rule
                    .hosts
                    .iter()
                    .any(|glob| glob.matches(self.host, Case::Insensitive))
        };
        let paths = || match path {
            PathView::Known(path) => {
                rule.paths.is_empty() || rule.paths.iter().any(|glob| glob.matches(path, case))
            }
            PathView::Unknown => true,
        };
        methods && hosts() && paths()
    }
}

#[cfg(test)]
mod tests;
