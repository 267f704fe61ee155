//! The index of the rules: for a request, the few that could meet it, by host, method and the literal segments with which
//! a path begins. It leaves out only rules that surely do not meet, so that it changes no decision.

use std::collections::BinaryHeap;

use crate::config::RuleConfig;
use crate::glob::PathGlob;
use crate::places::{Place, Places};

/// Where each rule is found.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Places of rules by [`Key`].
    places: Places,
    rules: usize,
    /// Most leading segments of a key.
    deepest: usize,
    /// Whether some rule looks at the host, or at the path: then a request whose host or path is doubtful could meet it.
    looks_at_host: bool,
    looks_at_path: bool,
}

/// With no more rules than these, going through all of them is as fast.
const FEW: usize = 8;

/// A rule stands under one key for each combination of its hosts, methods and paths; where there would be more than these,
/// it stands under fewer, wider ones.
const KEYS_OF_A_RULE: usize = 16;

impl Index {
    pub fn of(rules: &[RuleConfig]) -> Self {
        let mut keys = Vec::new();
        let mut deepest = 0;
        for (place, rule) in rules.iter().enumerate() {
            deepest = add_keys(place, rule, &mut keys).max(deepest);
        }
        Self {
            rules: rules.len(),
            deepest,
            places: Places::of(keys),
            looks_at_host: rules.iter().any(|rule| !rule.hosts.is_empty()),
            looks_at_path: rules.iter().any(|rule| !path_globs(rule).is_empty()),
        }
    }

    /// The places of all rules that could meet a request, ascending; `None` where that could be any.
    ///
    /// Host and segments are `None` where they have more than one reading.
    pub fn candidates(
        &self,
        method: &[u8],
        host: Option<&[u8]>,
        segments: Option<&[&[u8]]>,
    ) -> Option<Vec<usize>> {
        let any_host = self.looks_at_host && host.is_none();
        let any_path = self.looks_at_path && segments.is_none();
        if self.rules <= FEW || any_host || any_path {
            return None;
        }
        let mut found = Vec::new();
        let own_host = host.filter(|_| self.looks_at_host);
        for host in std::iter::once(ANY).chain(own_host) {
            for method in [ANY, method] {
                let mut key = Key::new(host, method);
                self.collect(&key, &mut found);
                for segment in segments.unwrap_or_default().iter().take(self.deepest) {
                    key.push(segment);
                    self.collect(&key, &mut found);
                }
            }
        }
        let mut found = BinaryHeap::from(found).into_sorted_vec();
        found.dedup();
        Some(found)
    }

    #[cfg(test)]
    pub fn keys(&self) -> usize {
        self.places.keys()
    }

    fn collect(&self, key: &Key, found: &mut Vec<usize>) {
        let places = self.places.get(&key.0).iter();
        found.extend(places.map(|(_, place)| *place));
    }
}

/// Adds the keys of a rule, and tells the most leading segments of one.
fn add_keys(place: usize, rule: &RuleConfig, keys: &mut Vec<Place>) -> usize {
    let paths: Vec<Vec<&[u8]>> = one_at_least(
        path_globs(rule)
            .iter()
            .map(|glob| glob.leading_segments().collect()),
    );
    let mut hosts: Vec<&[u8]> =
        one_at_least(rule.hosts.iter().map(|glob| glob.literal().unwrap_or(ANY)));
    let mut methods: Vec<&[u8]> = one_at_least(rule.methods.iter().map(|method| method.as_bytes()));
    if paths.len().saturating_mul(hosts.len()) > KEYS_OF_A_RULE.max(hosts.len()) {
        hosts = vec![ANY];
    }
    let combinations = paths.len().saturating_mul(hosts.len());
    if combinations.saturating_mul(methods.len()) > KEYS_OF_A_RULE.max(combinations) {
        methods = vec![ANY];
    }
    for host in &hosts {
        for method in &methods {
            for path in &paths {
                let mut key = Key::new(host, method);
                path.iter().for_each(|segment| key.push(segment));
                keys.push((key.0, place));
            }
        }
    }
    paths.iter().map(Vec::len).max().unwrap_or_default()
}

/// Host, method and leading segments of a path in lower case, joined by signs that stand in none of them. An empty host or
/// method means any.
struct Key(Vec<u8>);

const ANY: &[u8] = b"";

impl Key {
    fn new(host: &[u8], method: &[u8]) -> Self {
        let mut key = Self(Vec::with_capacity(64));
        for part in [host, method] {
            key.0.extend(part.iter().map(u8::to_ascii_lowercase));
            key.0.push(0);
        }
        key
    }

    fn push(&mut self, segment: &[u8]) {
        self.0.extend(segment.iter().map(u8::to_ascii_lowercase));
        self.0.push(b'/');
    }
}

/// What a rule says of the path, or of the method of gRPC, which is one. Where it says both, both must hold, and either finds it.
fn path_globs(rule: &RuleConfig) -> &[PathGlob] {
    if rule.paths.is_empty() {
        &rule.grpc
    } else {
        &rule.paths
    }
}

fn one_at_least<T: Default>(items: impl Iterator<Item = T>) -> Vec<T> {
    let items: Vec<T> = items.collect();
    if items.is_empty() {
        vec![T::default()]
    } else {
        items
    }
}
