//! Both hosts get the same generated requests, plane replies and upstream reactions, and everybody has to see the same on both:
//! the client its answers, the upstream and the plane what reaches them, byte for byte and in order.
//!
//! The numbers come from a fixed seed. `DIFFERENTIAL_EXCHANGES` sets how many exchanges are tried, `DIFFERENTIAL_SEED` another
//! seed. A mismatch is made smaller before it is told; those that are known stand in [`hoop_tests::differences`].

mod calls;
mod exchange;
mod generate;
mod outcome;
mod parties;

use std::collections::{BTreeMap, BTreeSet};

use hoop_tests::differences::EXCHANGES;
use hoop_tests::host::Host;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::{Scene, SceneBuilder};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use calls::Exchange;
use outcome::Outcome;

/// The same scene on two hosts.
struct Pair(Scene, Scene);

/// An exchange that two hosts did not do alike.
struct Mismatch {
    /// The lines that differ. What differs in the same way is told once.
    kind: String,
    text: String,
}

/// How alike two hosts did an exchange.
enum Agreement {
    /// All that differs is the difference with this index in [`EXCHANGES`].
    Explained(usize),
    Full,
    Missing(Mismatch),
}

/// What a run is about.
struct Plan {
    /// How [`EXCHANGES`] calls it.
    name: &'static str,
    exchanges: usize,
    requests: Requests,
    seed: u8,
    change: fn(SceneBuilder) -> SceneBuilder,
    /// Statuses that have to come up, each in one of twenty answers. Else the requests prove nothing.
    statuses: &'static [u16],
}

/// Which generator.
#[derive(Clone, Copy)]
enum Requests {
    Malformed,
    WellFormed,
}

const ANY_REQUEST: Plan = Plan {
    name: "any request",
    exchanges: 300,
    requests: Requests::WellFormed,
    seed: 1,
    change: |scene| scene,
    statuses: &[200, 400, 403],
};
const OTHER_OPTIONS: Plan = Plan {
    name: "other options",
    exchanges: 150,
    seed: 2,
    change: with_other_options,
    ..ANY_REQUEST
};
const NO_HTTP: Plan = Plan {
    name: "no HTTP",
    exchanges: 120,
    requests: Requests::Malformed,
    seed: 3,
    statuses: &[200, 400],
    ..ANY_REQUEST
};

#[tokio::test]
async fn both_hosts_do_the_same_with_any_request() {
    compare(Host::Envoy, Host::Sim, ANY_REQUEST).await;
}

#[tokio::test]
async fn both_hosts_do_the_same_when_trailers_pass_and_paths_are_normalised() {
    compare(Host::Envoy, Host::Sim, OTHER_OPTIONS).await;
}

#[tokio::test]
async fn both_hosts_do_the_same_with_what_is_no_http() {
    compare(Host::Envoy, Host::Sim, NO_HTTP).await;
}

/// Else the comparison would find chance and not hosts.
#[tokio::test]
async fn one_host_does_the_same_twice() {
    for plan in [ANY_REQUEST, OTHER_OPTIONS, NO_HTTP] {
        let exchanges = plan.exchanges / 4;
        compare(Host::Envoy, Host::Envoy, Plan { exchanges, ..plan }).await;
    }
}

fn with_other_options(scene: SceneBuilder) -> SceneBuilder {
    scene.edit_manager(|manager| {
        manager["http_protocol_options"] = json!({"enable_trailers": true});
        manager["normalize_path"] = true.into();
        manager["merge_slashes"] = true.into();
        manager["path_with_escaped_slashes_action"] = "UNESCAPE_AND_FORWARD".into();
    })
}

/// Holds, denies, allows and passes; by path, method and host.
fn every_kind_of_rule() -> serde_json::Value {
    let rules = json!([
        {"match": {"paths": ["/payments/dry-run"]}, "action": "allow"},
        {"match": {"paths": ["/admin/**"]}, "action": "deny"},
        {"match": {"methods": ["POST", "PUT", "PATCH", "DELETE"], "paths": ["/payments/**"]},
            "action": "require_approval", "approval_rule": APPROVAL_RULE},
        {"match": {"hosts": ["pay.example"], "paths": ["/invoices/**"]},
            "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let mut policy = policy::with_rules(rules);
    policy["max_body_bytes"] = calls::MAX_BODY_BYTES.into();
    policy["control_plane"]["timeout_ms"] = 1_000.into();
    policy
}

async fn scene(host: Host, plan: &Plan) -> Scene {
    let scene = Scene::lying(host).policy(every_kind_of_rule()).token(TOKEN);
    (plan.change)(scene).start().await
}

async fn compare(left: Host, right: Host, plan: Plan) {
    let exchanges = number("DIFFERENTIAL_EXCHANGES").unwrap_or(plan.exchanges);
    let strategy = match plan.requests {
        Requests::Malformed => generate::malformed().boxed(),
        Requests::WellFormed => generate::exchanges().boxed(),
    };
    let mut runner = TestRunner::new_with_rng(Config::default(), random(&plan));
    let (one, other) = tokio::join!(scene(left, &plan), scene(right, &plan));
    let pair = Pair(one, other);
    let mut told = BTreeMap::new();
    let mut explained = BTreeSet::new();
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for _ in 0..exchanges {
        let tree = strategy.new_tree(&mut runner).expect("an exchange");
        let (status, agreement) = pair.run(&tree.current()).await;
        *statuses.entry(status).or_default() += 1;
        match agreement {
            Agreement::Explained(index) => {
                explained.insert(index);
            }
            Agreement::Full => {}
            Agreement::Missing(mismatch) => {
                let smallest = pair.smallest(tree, mismatch).await;
                told.insert(smallest.kind, smallest.text);
            }
        }
        if told.len() >= MISMATCHES {
            break;
        }
    }
    // Told before the scenes end, so that nothing they find hides it, and outside them, so that their logs do not bury it.
    for mismatch in told.values() {
        eprintln!("{mismatch}");
    }
    eprintln!("statuses of {}: {statuses:?}", plan.name);
    pair.finish().await;
    assert!(told.is_empty(), "{} kinds of mismatch", told.len());
    for status in plan.statuses {
        let count = statuses.get(status).copied().unwrap_or(0);
        assert!(count > exchanges / 20, "{status} in {statuses:?}");
    }
    let is_whole = exchanges == plan.exchanges && number("DIFFERENTIAL_SEED").is_none();
    if right == Host::Sim && is_whole {
        gone(plan.name, &explained);
    }
}

/// Fails when a listed difference of this plan explained nothing.
fn gone(plan: &str, explained: &BTreeSet<usize>) {
    for (index, difference) in EXCHANGES.iter().enumerate() {
        assert!(
            difference.plan != plan || explained.contains(&index),
            "the difference is gone: take it out of tests/src/differences.rs ({})",
            difference.reason
        );
    }
}

fn random(plan: &Plan) -> TestRng {
    let mut seed = [plan.seed; 32];
    seed[..8].copy_from_slice(&number("DIFFERENTIAL_SEED").unwrap_or(0).to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &seed)
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

impl Pair {
    /// Runs `exchange` on both; gives the status on the first.
    async fn run(&self, exchange: &Exchange) -> (u16, Agreement) {
        let Pair(left, right) = self;
        let (left, right) = tokio::join!(
            exchange::run(left, exchange),
            exchange::run(right, exchange)
        );
        (left.status, agreement(exchange, &left, &right))
    }

    /// The smallest exchange near `tree` that still does not match; `found` is `tree` itself.
    async fn smallest(
        &self,
        mut tree: impl ValueTree<Value = Exchange>,
        mut found: Mismatch,
    ) -> Mismatch {
        let mut more = tree.simplify();
        for _ in 0..SHRINKS {
            if !more {
                break;
            }
            let (_, agreement) = self.run(&tree.current()).await;
            more = match agreement {
                Agreement::Explained(_) | Agreement::Full => tree.complicate(),
                Agreement::Missing(smaller) => {
                    found = smaller;
                    tree.simplify()
                }
            };
        }
        found
    }

    async fn finish(self) {
        for scene in [self.0, self.1] {
            let requests = scene.upstream.request_count();
            scene.finish(requests).await;
        }
    }
}

fn agreement(exchange: &Exchange, left: &Outcome, right: &Outcome) -> Agreement {
    if left == right {
        return Agreement::Full;
    }
    let shown = exchange.to_string();
    let lines = compared(left, right);
    let only = |sign| -> Vec<&str> {
        let marked = lines.iter().filter(|(found, _)| *found == sign);
        marked.map(|(_, line)| *line).collect()
    };
    let (left, right) = (only('-'), only('+'));
    let found = EXCHANGES
        .iter()
        .position(|difference| (difference.explains)(&shown, &left, &right));
    if let Some(index) = found {
        return Agreement::Explained(index);
    }
    let mut mismatch = Mismatch {
        kind: String::new(),
        text: format!("=== {shown}\n  outcome\n"),
    };
    for (sign, line) in lines {
        let line = format!("  {sign} {line}\n");
        mismatch.text.push_str(&line);
        if sign != ' ' {
            mismatch.kind.push_str(&line);
        }
    }
    Agreement::Missing(mismatch)
}

/// All lines of `left` in order, `-` in front of those that `right` does not have there, with those that only `right` has, after a `+`.
fn compared<'a>(left: &'a Outcome, right: &'a Outcome) -> Vec<(char, &'a str)> {
    let mut lines = Vec::new();
    let mut rest = right.lines.as_slice();
    for line in &left.lines {
        match rest.iter().position(|other| other == line) {
            Some(index) => {
                lines.extend(rest[..index].iter().map(|other| ('+', other.as_str())));
                lines.push((' ', line));
                rest = &rest[index + 1..];
            }
            None => lines.push(('-', line)),
        }
    }
    lines.extend(rest.iter().map(|other| ('+', other.as_str())));
    lines
}

/// The same on both hosts, because the digest of a query secret hangs on it.
const TOKEN: &str = "hsc_0123456789012345678901234567890123456789";
/// So many kinds of mismatch are told; a person mends some first.
const MISMATCHES: usize = 12;
/// How often a mismatch is tried to be made smaller.
const SHRINKS: usize = 40;
