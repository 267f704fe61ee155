//! Where the simulator differs from Envoy on purpose or for now, each with its reason. It is kept short, and it cannot go stale: a
//! listed difference that is gone fails the suite.

use crate::host::Host;

/// Cases that fail on the simulator, as `module::case`.
const CASES: &[(&str, &str)] = &[];

/// What the simulator does otherwise with requests that `cases/differential.rs` makes up.
pub const EXCHANGES: &[ExchangeDifference] = &[
    ExchangeDifference {
        reason: "Envoy passes over a tab in the request line; the simulator refuses what RFC 9112 forbids",
        plan: "no HTTP",
        explains: |exchange, _, sim| exchange.contains(r"POST\t /") && refused(sim),
    },
    ExchangeDifference {
        reason: "Envoy drops what a chunk has beyond its size; the simulator refuses it",
        plan: "no HTTP",
        explains: |exchange, _, sim| exchange.contains("1\n    xx\n") && refused(sim),
    },
];

fn refused(sim: &[&str]) -> bool {
    sim.iter()
        .any(|line| line.contains("HTTP/1.1 400 Bad Request"))
}

/// What guests are answered otherwise: the scenario, what such a line contains, and why.
pub const GUESTS: &[(&str, &str, &str)] = &[
    (
        "general",
        "foreign expr_",
        "there is no CEL: no expression is taken",
    ),
    (
        "phases_properties",
        "upstream",
        "the upstream is known when its connection is there; Envoy knows it as soon as a pooled connection is picked",
    ),
];

/// One such difference.
pub struct ExchangeDifference {
    /// Why it stays.
    pub reason: &'static str,
    /// The plan in which it comes up. One that does not is gone and has to be taken out here.
    pub plan: &'static str,
    /// Whether it explains a mismatch whole: the exchange as it is told, the lines that only Envoy's outcome has, and those that
    /// only the simulator's has.
    pub explains: fn(exchange: &str, envoy: &[&str], sim: &[&str]) -> bool,
}

/// Why the case `name` fails on `host`; `None` when it has to pass.
pub fn of_case(host: Host, name: &str) -> Option<&'static str> {
    match host {
        Host::Envoy => None,
        Host::Sim => {
            let mut listed = CASES.iter().filter(|(case, _)| *case == name);
            listed.next().map(|(_, reason)| *reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binaries::workspace;

    #[test]
    fn every_listed_case_exists_and_has_a_reason() {
        assert_eq!(unfounded(CASES), [""; 0]);
        let invented = [
            ("requester::no_such_case", "a reason"),
            ("requester::a_client_certificate_names_who_asks", ""),
            ("requester::a_client_certificate_names_who_asks", "a reason"),
        ];
        assert_eq!(unfounded(&invented), [invented[0].0, invented[1].0]);
    }

    /// The listed cases that do not exist, or whose reason is missing.
    fn unfounded<'a>(listed: &[(&'a str, &str)]) -> Vec<&'a str> {
        let founded = |case: &str, reason: &str| {
            let (module, name) = case.rsplit_once("::").expect("module::case");
            let file = workspace().join(format!("tests/cases/{}.rs", module.replace("::", "/")));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.contains(&format!("async fn {name}(host: Host)")) && !reason.is_empty()
        };
        let unfounded = listed
            .iter()
            .filter(|(case, reason)| !founded(case, reason));
        unfounded.map(|(case, _)| *case).collect()
    }
}
