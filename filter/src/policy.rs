//! What the operator's rules say of one request: the first that meets it decides. Knows nothing of approvals and Envoy.
//!
//! A condition holds, does not, or *may* hold: where a request has more than one reading. A rule that denies or holds and may
//! meet a request refuses it, and a rule that allows lets it pass only when it surely meets it. So no spelling makes the gate
//! milder.

mod body;
mod compile;
mod header;
mod matcher;

use std::borrow::Cow;

use crate::config::conditions::TextTest;
use crate::config::{Action, ApprovalRule, RuleConfig};
use crate::json::pointer::Pointers;
use crate::limits;
use crate::request::mode::Mode;
use crate::request::query::FormNames;
use crate::request::{HeaderNames, RequestHead};
use compile::Index;
use matcher::{Evaluation, Meets};

/// The rules of one listener, in order, made ready to be asked.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    index: Index,
    pointers: Pointers,
    /// The names that the pointers begin with.
    form_names: FormNames,
    wanted_headers: HeaderNames,
    looks_at_route: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    config: RuleConfig,
    /// The number of each JSON condition's pointer.
    pointers: Vec<usize>,
}

/// What a decision is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The request's head, read with [`Policy::wanted_headers`].
    pub head: &'a RequestHead,
    /// The whole body; `None` while it is not there.
    pub body: Option<&'a [u8]>,
    /// The Envoy route that the request takes.
    pub route: &'a dyn RouteMetadata,
}

/// The metadata of an Envoy route. It is asked only when a rule needs it, and for each key once in a decision.
pub trait RouteMetadata {
    /// The value under a key of a namespace, a text as its bytes.
    fn value(&self, namespace: &str, key: &str) -> Option<Vec<u8>>;
}

/// A route without metadata.
#[derive(Clone, Copy, Debug)]
pub struct NoMetadata;

impl RouteMetadata for NoMetadata {
    fn value(&self, _namespace: &str, _key: &str) -> Option<Vec<u8>> {
        None
    }
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'p> {
    /// The request has more than one reading, and under one of them this denying or holding rule decides. A wrong yes here
    /// costs an odd client a 400; a wrong no would let a held call run.
    Ambiguous {
        /// The rule.
        rule: &'p RuleConfig,
        /// What of the request has more than one reading.
        doubt: Doubt,
    },
    /// A rule refuses the request.
    Deny {
        /// The rule that does.
        rule: &'p RuleConfig,
        /// The whole text of the refusal.
        message: &'p str,
    },
    /// What happens depends on the body: collect it and decide again.
    NeedsBody {
        /// The rule that looks into it.
        rule: &'p RuleConfig,
    },
    /// No rule stands against the request.
    Pass,
    /// The request waits for a person.
    RequireApproval(Hold<'p>),
}

/// What of a request has more than one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// The body is no strict JSON, or holds a value that readers take in different ways.
    Body,
    /// A header that has too many parts, or is too long for the rules that look at it.
    Header,
    /// The path or the host.
    PathOrHost,
    /// A query parameter.
    Query,
    /// The metadata of the route, which are no text.
    RouteMetadata,
}

/// Which approval a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold<'p> {
    /// The operator's name of the rule.
    pub rule_name: &'p str,
    /// The Control Plane's rule that says who approves; `None` where the route was to name it and names none that can be
    /// used, so that nobody can approve and the request must be refused.
    pub approval_rule: Option<Cow<'p, str>>,
    /// First words of the denial.
    pub message: &'p str,
    /// How the request waits.
    pub mode: Mode,
}

impl Policy {
    /// Makes the rules of a configuration ready.
    #[must_use]
    pub fn new(rules: Vec<RuleConfig>) -> Self {
        let index = Index::of(&rules);
        let looks_at_route = rules.iter().any(looks_at_route);
        let mut pointers = Pointers::default();
        let mut form_names = Vec::new();
        let mut wanted_headers = HeaderNames::default();
        // What a gRPC call says of itself, and in which form a refusal is read.
        if !rules.is_empty() {
            GRPC_HEADERS
                .iter()
                .for_each(|name| wanted_headers.insert(name));
        }
        let mut compiled = Vec::with_capacity(rules.len());
        for mut config in rules {
            let has_case = config.action == Action::Allow;
            for condition in &mut config.conditions.headers {
                wanted_headers.insert(&condition.name);
                if let TextTest::OneOf(values) = &mut condition.test
                    && !has_case
                {
                    values
                        .iter_mut()
                        .for_each(|value| value.make_ascii_lowercase());
                }
            }
            let conditions = &config.conditions;
            if !conditions.json.is_empty() {
                body::HEADERS
                    .iter()
                    .for_each(|name| wanted_headers.insert(name));
            }
            let numbers = conditions.json.iter().map(|condition| {
                let known = pointers.len();
                let number = pointers.add(&condition.pointer);
                if let Some(name) = condition.pointer.first().filter(|_| number == known) {
                    form_names.push((name.to_owned(), number));
                }
                number
            });
            compiled.push(Rule {
                pointers: numbers.collect(),
                config,
            });
        }
        Self {
            rules: compiled,
            index,
            pointers,
            form_names: FormNames::of(&form_names),
            wanted_headers,
            looks_at_route,
        }
    }

    /// The headers that a request's head must keep for a decision.
    #[must_use]
    pub const fn wanted_headers(&self) -> &HeaderNames {
        &self.wanted_headers
    }

    /// Whether a decision can depend on the route that a request takes.
    #[must_use]
    pub const fn looks_at_route(&self) -> bool {
        self.looks_at_route
    }

    /// Decides on a request: the first rule that meets it, and nothing where none does.
    ///
    /// Gives [`Verdict::NeedsBody`] only while the subject has no body. A request that surely ends without one has an empty
    /// body, not none.
    #[must_use]
    pub fn decide(&self, subject: &Subject<'_>) -> Verdict<'_> {
        let evaluation = Evaluation::new(subject, self);
        match evaluation.candidates(&self.index) {
            Some(places) => decided(
                &evaluation,
                places.into_iter().filter_map(|at| self.rules.get(at)),
            ),
            None => decided(&evaluation, self.rules.iter()),
        }
    }

    /// The same decision without the index, which must not change it.
    #[cfg(test)]
    fn decide_by_all_rules(&self, subject: &Subject<'_>) -> Verdict<'_> {
        decided(&Evaluation::new(subject, self), self.rules.iter())
    }
}

fn decided<'p>(evaluation: &Evaluation<'_>, rules: impl Iterator<Item = &'p Rule>) -> Verdict<'p> {
    // The first allowing rule that would need the body. It matters only when something behind it stands against the request.
    let mut allowing: Option<&RuleConfig> = None;
    for rule in rules {
        let config = &rule.config;
        let stands_against = config.action != Action::Allow;
        let meets = evaluation.meets_head(config);
        let is_out = match meets {
            Meets::No => true,
            Meets::Maybe(_) => !stands_against,
            Meets::Yes => false,
        };
        if is_out {
            continue;
        }
        let verdict = match evaluation.meets_body(rule).map(|body| meets.and(body)) {
            Some(Meets::No) => continue,
            Some(Meets::Maybe(_)) if !stands_against => continue,
            Some(Meets::Maybe(doubt)) => Verdict::Ambiguous {
                rule: config,
                doubt,
            },
            Some(Meets::Yes) => verdict_of(config, evaluation),
            None if stands_against => Verdict::NeedsBody { rule: config },
            None => {
                allowing = allowing.or(Some(config));
                continue;
            }
        };
        return match allowing {
            Some(rule) if verdict != Verdict::Pass => Verdict::NeedsBody { rule },
            Some(_) | None => verdict,
        };
    }
    Verdict::Pass
}

fn verdict_of<'p>(rule: &'p RuleConfig, evaluation: &Evaluation<'_>) -> Verdict<'p> {
    match &rule.action {
        Action::Allow => Verdict::Pass,
        Action::Deny { message } => Verdict::Deny { rule, message },
        Action::RequireApproval {
            approval_rule,
            message,
            mode,
        } => Verdict::RequireApproval(Hold {
            rule_name: &rule.name,
            approval_rule: match approval_rule {
                ApprovalRule::Named(name) => Some(Cow::Borrowed(name)),
                ApprovalRule::FromRoute { key } => {
                    evaluation.approval_rule_of_route(key).map(Cow::Owned)
                }
            },
            message,
            mode: *mode,
        }),
    }
}

fn looks_at_route(rule: &RuleConfig) -> bool {
    let named_by_it = matches!(
        rule.action,
        Action::RequireApproval {
            approval_rule: ApprovalRule::FromRoute { .. },
            ..
        }
    );
    named_by_it || !rule.conditions.route_metadata.is_empty()
}

const GRPC_HEADERS: [&str; 3] = ["content-type", "grpc-encoding", "grpc-timeout"];

/// A name that the route gives; `None` for what the configuration would refuse as a name, too.
fn usable_name(value: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(value).ok()?;
    let usable = !name.trim().is_empty()
        && name.len() <= limits::NAME_BYTES
        && !name.chars().any(char::is_control);
    usable.then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
