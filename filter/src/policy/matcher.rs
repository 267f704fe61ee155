//! One request held against rules. What a condition needs is read when the first rule asks for it, and then kept.

use std::cell::{OnceCell, RefCell};

use super::body::BodyReading;
use super::compile::Index;
use super::header::Headers;
use super::{Doubt, Policy, Rule, Subject, usable_name};
use crate::config::conditions::{
    HeaderCondition, MetadataCondition, QueryCondition, ROUTE_NAMESPACE, TextTest,
};
use crate::config::{Action, RuleConfig};
use crate::glob::{Case, PathGlob, Steps, segments};
use crate::limits;
use crate::request::host_of;
use crate::request::path::{Finder, PathReading};
use crate::request::query::{QueryReading, Said};
use crate::table::Table;

/// Whether something holds, from the surest no to the surest yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meets {
    No,
    /// Under some reading of the request.
    Maybe(Doubt),
    Yes,
}

impl Meets {
    /// Whether both hold; of two doubts the first stays.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Maybe(doubt), _) => Self::Maybe(doubt),
            (Self::Yes, other) => other,
        }
    }
}

impl From<bool> for Meets {
    fn from(meets: bool) -> Self {
        if meets { Self::Yes } else { Self::No }
    }
}

/// A request while it is decided on.
pub(super) struct Evaluation<'s> {
    subject: &'s Subject<'s>,
    policy: &'s Policy,
    method: Vec<u8>,
    /// `None` where it is spelled so that servers may read another host.
    host: Option<&'s [u8]>,
    path: PathView<'s>,
    headers: OnceCell<Headers<'s>>,
    /// What comparisons of headers and parameters may still take.
    steps: Steps,
    query: OnceCell<QueryReading>,
    body: OnceCell<BodyReading<'s>>,
    route: RefCell<Table<String, RouteValues>>,
}

/// Values of one namespace that were asked for, by key.
type RouteValues = Table<String, Option<Vec<u8>>>;

/// A path as the globs want it.
enum PathView<'a> {
    /// It could be any path.
    Any,
    Letters(Finder<'a>),
    /// `None` for what is no path, such as `*`.
    Segments(Option<Vec<&'a [u8]>>),
}

impl<'a> PathView<'a> {
    fn of(reading: &'a PathReading) -> Self {
        match reading {
            PathReading::Ambiguous(letters) => Self::Letters(Finder::new(letters)),
            // Globs take time with the number of segments, and no real path comes near the bound.
            PathReading::Plain(path) => match segments(path) {
                Some(segments) if segments.len() > limits::PATH_SEGMENTS => Self::Any,
                segments => Self::Segments(segments),
            },
            PathReading::Unknown => Self::Any,
        }
    }
}

impl<'s> Evaluation<'s> {
    pub fn new(subject: &'s Subject<'s>, policy: &'s Policy) -> Self {
        let head = subject.head;
        Self {
            subject,
            policy,
            method: head.method.to_ascii_uppercase(),
            host: host_of(&head.authority),
            path: PathView::of(&head.reading),
            headers: OnceCell::new(),
            steps: Steps::new(limits::COMPARISON_STEPS),
            query: OnceCell::new(),
            body: OnceCell::new(),
            route: RefCell::default(),
        }
    }

    /// The places of all rules that could meet the request; `None` where any could.
    pub fn candidates(&self, index: &Index) -> Option<Vec<usize>> {
        let segments = match &self.path {
            PathView::Segments(segments) => Some(segments.as_deref().unwrap_or_default()),
            PathView::Any | PathView::Letters(_) => None,
        };
        index.candidates(&self.method, self.host, segments)
    }

    /// Whether all conditions of a rule hold but those on the body.
    pub fn meets_head(&self, rule: &RuleConfig) -> Meets {
        let method = rule.methods.is_empty()
            || rule
                .methods
                .iter()
                .any(|method| method.as_bytes() == self.method);
        if !method {
            return Meets::No;
        }
        let case = case_of(rule);
        let conditions = &rule.conditions;
        // From the cheap to the dear, and no further than the first no.
        let mut meets = self.meets_host(rule);
        let parts: [&dyn Fn() -> Meets; 4] = [
            &|| {
                self.meets_path(&rule.paths, case)
                    .and(self.meets_path(&rule.grpc, case))
            },
            &|| {
                all(&conditions.headers, |condition| {
                    self.meets_header(condition, case)
                })
            },
            &|| {
                all(&conditions.query, |condition| {
                    self.meets_query(condition, case)
                })
            },
            &|| {
                all(&conditions.route_metadata, |condition| {
                    self.meets_metadata(condition)
                })
            },
        ];
        for part in parts {
            if meets == Meets::No {
                break;
            }
            meets = meets.and(part());
        }
        meets
    }

    /// Whether the conditions of a rule on the body hold; `None` where there are some and the body is not there.
    pub fn meets_body(&self, rule: &Rule) -> Option<Meets> {
        let conditions = &rule.config.conditions.json;
        if conditions.is_empty() {
            return Some(Meets::Yes);
        }
        let bytes = self.subject.body?;
        let Policy {
            pointers,
            form_names,
            ..
        } = self.policy;
        let body = self
            .body
            .get_or_init(|| BodyReading::of(self.subject.head, bytes, pointers, form_names));
        let numbered = conditions.iter().zip(&rule.pointers);
        Some(all(numbered, |(condition, pointer)| {
            body.passes(*pointer, &condition.test)
        }))
    }

    #[cfg(test)]
    pub const fn steps_left(&self) -> usize {
        self.steps.left()
    }

    /// The approval rule that the route names.
    pub fn approval_rule_of_route(&self, key: &str) -> Option<String> {
        self.with_route_value(ROUTE_NAMESPACE, key, |value| value.and_then(usable_name))
    }

    fn meets_host(&self, rule: &RuleConfig) -> Meets {
        match self.host {
            _ if rule.hosts.is_empty() => Meets::Yes,
            Some(host) => rule
                .hosts
                .iter()
                .any(|glob| glob.matches(host, Case::Insensitive))
                .into(),
            None => Meets::Maybe(Doubt::PathOrHost),
        }
    }

    fn meets_path(&self, globs: &[PathGlob], case: Case) -> Meets {
        match &self.path {
            _ if globs.is_empty() => Meets::Yes,
            PathView::Segments(Some(segments)) => {
                globs.iter().any(|glob| glob.matches(segments, case)).into()
            }
            PathView::Segments(None) => Meets::No,
            PathView::Letters(letters) => {
                let may_meet = |glob: &PathGlob| glob.words().all(|word| letters.may_hold(word));
                if globs.iter().any(may_meet) {
                    Meets::Maybe(Doubt::PathOrHost)
                } else {
                    Meets::No
                }
            }
            PathView::Any => Meets::Maybe(Doubt::PathOrHost),
        }
    }

    /// Of a repeated header, rules that stand against a request take any value or part of one that fits, and rules that allow want
    /// all values to: upstreams take the first, the last or all.
    fn meets_header(&self, condition: &HeaderCondition, case: Case) -> Meets {
        let values = self.subject.head.header(&condition.name);
        let passes = match (&condition.test, case) {
            (TextTest::Exists(wanted), _) => Some(*wanted != values.is_empty()),
            (_, Case::Insensitive) => {
                let headers = self.headers.get_or_init(|| Headers::of(self.subject.head));
                match headers.parts(&condition.name) {
                    Some(parts) => parts.any_passes(&condition.test, &self.steps),
                    None => Some(false),
                }
            }
            (test, Case::Sensitive) => {
                let mut passes = Some(!values.is_empty());
                for value in values {
                    if passes == Some(true) {
                        passes = test.passes(value, case, &self.steps);
                    }
                }
                passes
            }
        };
        passes.map_or(Meets::Maybe(Doubt::Header), Into::into)
    }

    fn meets_query(&self, condition: &QueryCondition, case: Case) -> Meets {
        let query = self
            .query
            .get_or_init(|| QueryReading::of(self.subject.head));
        match (query.said(&condition.name), &condition.test) {
            (Said::Absent, TextTest::Exists(wanted)) => (!wanted).into(),
            (Said::Absent, TextTest::Glob(_) | TextTest::OneOf(_)) => Meets::No,
            (Said::Plain(value), test) => test
                .passes(value, case, &self.steps)
                .map_or(Meets::Maybe(Doubt::Query), Into::into),
            (Said::Doubtful { surely_there: true }, TextTest::Exists(wanted))
                if case == Case::Insensitive =>
            {
                (*wanted).into()
            }
            (Said::Doubtful { .. }, _) => Meets::Maybe(Doubt::Query),
        }
    }

    fn meets_metadata(&self, condition: &MetadataCondition) -> Meets {
        self.with_route_value(&condition.namespace, &condition.key, |value| {
            match (value, &condition.test) {
                // A number, a list and the like reach the gate as bytes of the host's own: what the operator wrote there cannot
                // be told.
                (Some(value), TextTest::Glob(_) | TextTest::OneOf(_)) if !is_text(value) => {
                    Meets::Maybe(Doubt::RouteMetadata)
                }
                // The operator's own texts need no bound.
                (Some(value), test) => test
                    .passes(value, Case::Sensitive, &Steps::new(usize::MAX))
                    .map_or(Meets::Maybe(Doubt::RouteMetadata), Into::into),
                (None, test) => (*test == TextTest::Exists(false)).into(),
            }
        })
    }

    fn with_route_value<T>(
        &self,
        namespace: &str,
        key: &str,
        read: impl FnOnce(Option<&[u8]>) -> T,
    ) -> T {
        let mut asked = self.route.borrow_mut();
        let known = asked.get(namespace).and_then(|values| values.get(key));
        if let Some(value) = known {
            return read(value.as_deref());
        }
        let value = self.subject.route.value(namespace, key);
        let result = read(value.as_deref());
        asked.change(namespace.to_owned(), Table::new, |values| {
            values.insert(key.to_owned(), value);
        });
        result
    }
}

/// Rules that stand against a request compare paths, headers and query values without letter case, since many upstreams
/// do; rules that allow compare them exactly. So a change of case can only ever make the gate stricter.
const fn case_of(rule: &RuleConfig) -> Case {
    match rule.action {
        Action::Allow => Case::Sensitive,
        Action::Deny { .. } | Action::RequireApproval { .. } => Case::Insensitive,
    }
}

/// Whether all conditions hold, asking no further than the first that does not.
fn all<T>(conditions: impl IntoIterator<Item = T>, holds: impl Fn(T) -> Meets) -> Meets {
    let mut meets = Meets::Yes;
    for condition in conditions {
        meets = meets.and(holds(condition));
        if meets == Meets::No {
            break;
        }
    }
    meets
}

fn is_text(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| !text.chars().any(char::is_control))
}
