//! The official conformance suite against one server. Which of its scenarios apply, and why the others cannot, is data:
//! `tests/clients/mcp-conformance/scenarios.json`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::{binaries, wait};

/// Runs everything that the suite asks of servers for `revision`, with its reports in `dir`, and gives what fails against
/// expectation: a check of a scenario that applies, a message that the revision's schema forbids, an exception that is none any
/// more, a scenario that nobody has sorted.
pub async fn of_revision(url: &str, revision: &str, dir: &Path) -> Vec<String> {
    let known = scenarios();
    let set = &known["requirements"][revision];
    run(url, dir, &["--requirements", revision]).await;
    let reports = reports(dir);
    let mut wrong = Vec::new();
    let mut sorted = BTreeSet::new();
    for (scenario, exceptions) in members(&set["applies"]) {
        sorted.insert(scenario.clone());
        match reports.iter().find(|report| report.scenario == *scenario) {
            Some(report) => wrong.extend(report.against(Some(exceptions))),
            None => wrong.push(format!("{scenario}: did not run")),
        }
    }
    for group in set["does_not_apply"].as_array().into_iter().flatten() {
        for scenario in group["scenarios"].as_array().into_iter().flatten() {
            let scenario = scenario.as_str().expect("a name");
            sorted.insert(scenario.to_owned());
            match reports.iter().find(|report| report.scenario == scenario) {
                Some(report) => wrong.extend(report.against(None)),
                None => wrong.push(format!("{scenario}: did not run")),
            }
        }
    }
    for report in &reports {
        if !sorted.contains(&report.scenario) {
            wrong.push(format!("{}: not in scenarios.json", report.scenario));
        }
    }
    wrong
}

/// Runs the scenarios that apply to an older `revision`, for which the suite has no set.
pub async fn single(url: &str, revision: &str, dir: &Path) -> Vec<String> {
    let known = scenarios();
    let named = known["single"][revision].as_array();
    let mut wrong = Vec::new();
    for scenario in named.expect("a list in scenarios.json") {
        let scenario = scenario.as_str().expect("a name");
        let words = ["--scenario", scenario, "--spec-version", revision];
        run(url, dir, &words).await;
        match reports(dir)
            .iter()
            .find(|report| report.scenario == scenario)
        {
            Some(report) => wrong.extend(report.against(Some(&Value::Null))),
            None => wrong.push(format!("{scenario}: did not run")),
        }
    }
    wrong
}

/// The suite's exit code counts scenarios that cannot apply, so it is the reports that are judged.
async fn run(url: &str, dir: &Path, words: &[&str]) {
    std::fs::create_dir_all(dir).expect("a folder in the case's folder");
    let suite = binaries::mcp_node_modules().join("@modelcontextprotocol/conformance");
    let output = Command::new(binaries::node())
        .arg(suite.join("dist/index.js"))
        .args(["server", "--url", url, "--output-dir"])
        .arg(dir)
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = wait::within("the conformance suite", output).await;
    let output = output.expect("node starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let ran = said.contains("Results saved to");
    assert!(ran, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// What the suite found in one scenario.
struct Report {
    scenario: String,
    checks: Vec<Value>,
}

impl Report {
    /// What is against expectation. Without `exceptions` the scenario does not apply: then only the form of the messages counts.
    fn against(&self, exceptions: Option<&Value>) -> Vec<String> {
        let mut wrong = Vec::new();
        for check in &self.checks {
            let id = check["id"].as_str().unwrap_or_default();
            let excepted = exceptions.is_none_or(|checks| checks.get(id).is_some());
            if check["status"] == "FAILURE" && (id == SCHEMA || !excepted) {
                let said = check["errorMessage"].as_str().unwrap_or_default();
                wrong.push(format!("{}: {id}: {said}", self.scenario));
            }
        }
        for (id, because) in exceptions.map(members).into_iter().flatten() {
            let fails = |check: &Value| check["id"] == **id && check["status"] == "FAILURE";
            if !self.checks.iter().any(fails) {
                wrong.push(format!("{}: {id} passes ({because})", self.scenario));
            }
        }
        wrong
    }
}

/// Reads `server-<scenario>-<time>/checks.json` of every scenario that ran.
fn reports(dir: &Path) -> Vec<Report> {
    let entries = std::fs::read_dir(dir).expect("the suite's folder");
    let report = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let scenario = name.strip_prefix("server-")?;
        let end = scenario
            .len()
            .checked_sub("-2026-07-28T00-00-00-000Z".len())?;
        let text = std::fs::read(entry.path().join("checks.json")).ok()?;
        let checks = serde_json::from_slice(&text).expect("JSON from the suite");
        let scenario = scenario.get(..end)?.to_owned();
        Some(Report { scenario, checks })
    };
    entries.flatten().filter_map(report).collect()
}

fn scenarios() -> Value {
    let file = binaries::workspace().join("tests/clients/mcp-conformance/scenarios.json");
    let text = std::fs::read_to_string(file).expect("scenarios.json");
    serde_json::from_str(&text).expect("JSON in scenarios.json")
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// The check that every message of the server had the form that the revision's schema prescribes.
const SCHEMA: &str = "wire-schema-valid";
