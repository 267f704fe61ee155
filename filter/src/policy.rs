//! What the operator's rules say of one request. Knows paths and hosts, and nothing of bodies, approvals or Envoy.

use crate::config::{Action, RuleConfig};
use crate::glob::{Case, PathGlob, segments};
use crate::limits;
use crate::request::mode::Mode;
use crate::request::path::{Letters, PathReading};
use crate::request::{RequestHead, host_of};

/// The rules of one listener, in order.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<RuleConfig>,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'p> {
    /// The path or the host has more than one reading, and under one of them this denying or holding rule decides. A
    /// wrong yes here costs an odd client a 400; a wrong no would let a held call run.
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
    /// How the request waits.
    pub mode: Mode,
}

impl Policy {
    /// Takes the rules of a configuration.
    #[must_use]
    pub const fn new(rules: Vec<RuleConfig>) -> Self {
        Self { rules }
    }

    /// Decides on a request by its head alone: the first rule that matches, and nothing where none does.
    ///
    /// Where a spelling leaves open whether a rule matches, every rule that may be the first decides with: if they all
    /// let the request pass, it passes; if one of them does not, the request is ambiguous.
    #[must_use]
    pub fn decide(&self, head: &RequestHead) -> Verdict<'_> {
        let request = Request {
            method: head.method.to_ascii_uppercase(),
            host: host_of(&head.authority),
            path: PathView::of(&head.reading),
        };
        let mut against: Option<&RuleConfig> = None;
        for rule in &self.rules {
            let meets = request.meets(rule);
            let stands_against = rule.action != Action::Allow;
            if meets != Meets::No && stands_against && against.is_none() {
                if meets == Meets::Yes {
                    return verdict_of(rule);
                }
                against = Some(rule);
            }
            if meets == Meets::Yes {
                break;
            }
        }
        against.map_or(Verdict::Pass, Verdict::Ambiguous)
    }
}

fn verdict_of(rule: &RuleConfig) -> Verdict<'_> {
    match &rule.action {
        Action::Allow => Verdict::Pass,
        Action::Deny { message } => Verdict::Deny { rule, message },
        Action::RequireApproval {
            approval_rule,
            message,
            mode,
        } => Verdict::RequireApproval(Hold {
            rule_name: &rule.name,
            approval_rule,
            message,
            mode: *mode,
        }),
    }
}

/// Whether a rule meets a request, from the surest no to the surest yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meets {
    No,
    /// Under some reading of it.
    Maybe,
    Yes,
}

impl From<bool> for Meets {
    fn from(meets: bool) -> Self {
        if meets { Self::Yes } else { Self::No }
    }
}

struct Request<'a> {
    method: Vec<u8>,
    /// `None` where it is spelled so that servers may read another host.
    host: Option<&'a [u8]>,
    path: PathView<'a>,
}

/// A path as the globs want it.
enum PathView<'a> {
    /// It could be any path.
    Any,
    Letters(&'a Letters),
    /// `None` for what is no path, such as `*`.
    Segments(Option<Vec<&'a [u8]>>),
}

impl<'a> PathView<'a> {
    fn of(reading: &'a PathReading) -> Self {
        match reading {
            PathReading::Ambiguous(letters) => Self::Letters(letters),
            // Globs take time with the number of segments, and no real path comes near the bound.
            PathReading::Plain(path) => match segments(path) {
                Some(segments) if segments.len() > limits::PATH_SEGMENTS => Self::Any,
                segments => Self::Segments(segments),
            },
            PathReading::Unknown => Self::Any,
        }
    }
}

impl Request<'_> {
    fn meets(&self, rule: &RuleConfig) -> Meets {
        let method = rule.methods.is_empty()
            || rule
                .methods
                .iter()
                .any(|method| method.as_bytes() == self.method);
        if !method {
            return Meets::No;
        }
        self.meets_host(rule).min(self.meets_path(rule))
    }

    fn meets_host(&self, rule: &RuleConfig) -> Meets {
        match self.host {
            _ if rule.hosts.is_empty() => Meets::Yes,
            Some(host) => rule
                .hosts
                .iter()
                .any(|glob| glob.matches(host, Case::Insensitive))
                .into(),
            None => Meets::Maybe,
        }
    }

    /// Denying and holding rules compare paths without letter case, since many upstreams do; rules that allow compare
    /// them exactly. So a change of case can only ever make the gate stricter.
    fn meets_path(&self, rule: &RuleConfig) -> Meets {
        let case = match rule.action {
            Action::Allow => Case::Sensitive,
            Action::Deny { .. } | Action::RequireApproval { .. } => Case::Insensitive,
        };
        match &self.path {
            _ if rule.paths.is_empty() => Meets::Yes,
            PathView::Segments(Some(segments)) => rule
                .paths
                .iter()
                .any(|glob| glob.matches(segments, case))
                .into(),
            PathView::Segments(None) => Meets::No,
            PathView::Letters(letters) => {
                let may_meet = |glob: &PathGlob| glob.words().all(|word| letters.may_hold(word));
                if rule.paths.iter().any(may_meet) {
                    Meets::Maybe
                } else {
                    Meets::No
                }
            }
            PathView::Any => Meets::Maybe,
        }
    }
}

#[cfg(test)]
mod tests;
