//! What most tests begin with, and how they read what a guest has said and what it was called for.

use host_sim::sim::{Response, Sim, SimBuilder};
use host_sim::{Entry, HeaderMap, LogLine, Plugin};

use proptest::test_runner::Config as ProptestConfig;

use crate::guest::Guest;

/// One worker, a cluster `plane`, everything recorded.
pub fn start(guest: Guest) -> Sim {
    built(Plugin::new(guest.module()))
}

/// The same with settings of the plugin.
pub fn built(plugin: Plugin) -> Sim {
    started(builder(plugin))
}

/// The same, to be changed further.
pub fn builder(plugin: Plugin) -> SimBuilder {
    Sim::builder(plugin).cluster("plane").record_trace()
}

pub fn started(builder: SimBuilder) -> Sim {
    builder.start().unwrap_or_else(|error| panic!("{error}"))
}

/// What guests have logged, in order.
pub fn said(sim: &Sim) -> Vec<String> {
    let from_guest = |line: &LogLine| line.from_guest;
    sim.log()
        .into_iter()
        .filter(from_guest)
        .map(|line| line.message)
        .collect()
}

/// What guests have logged since there were `before` lines.
pub fn said_since(sim: &Sim, before: usize) -> Vec<String> {
    said(sim).split_off(before)
}

/// The callbacks of the first worker for contexts other than its root: `request_headers(2, 4, 1)`.
pub fn callbacks(sim: &Sim) -> Vec<String> {
    of_contexts(sim, |context| context != 1)
}

/// The callbacks of the first worker for its root.
pub fn root_callbacks(sim: &Sim) -> Vec<String> {
    of_contexts(sim, |context| context == 1)
}

pub fn of_contexts(sim: &Sim, wanted: impl Fn(u64) -> bool) -> Vec<String> {
    let trace = sim.trace(0);
    let entries = trace.entries().iter();
    let name = |entry: &Entry| match entry {
        Entry::Callback { name, arguments } if wanted(arguments[0]) => {
            let arguments: Vec<_> = arguments.iter().map(u64::to_string).collect();
            let name = name.strip_prefix("proxy_on_").unwrap_or(name);
            Some(format!("{name}({})", arguments.join(", ")))
        }
        Entry::Callback { .. }
        | Entry::Hostcall { .. }
        | Entry::Returned { .. }
        | Entry::Trapped { .. } => None,
    };
    entries.filter_map(name).collect()
}

/// 200 with a body.
pub fn ok(body: &str) -> Response {
    Response::new(200).body(body)
}

/// Trailers of one entry.
pub fn trailer(name: &str, value: &str) -> HeaderMap {
    HeaderMap::new().with(name, value)
}

/// So many cases of a property, since each starts several VMs; `PROPTEST_CASES` asks for another number.
pub fn cases(few: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.and_then(|number| number.parse().ok()).unwrap_or(few);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// What a guest is called for, from the first byte of a stream to its end.
pub const STREAM_CALLBACKS: [&str; 9] = [
    "request_headers",
    "request_body",
    "request_trailers",
    "response_headers",
    "response_body",
    "response_trailers",
    "log",
    "done",
    "delete",
];

/// Compares line by line; what a failing test prints is the difference and not two debug forms.
#[track_caller]
pub fn assert_lines(found: &[String], expected: &[&str]) {
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert!(
        found == expected,
        "found:\n  {}\nexpected:\n  {}",
        found.join("\n  "),
        expected.join("\n  ")
    );
}
