//! Guest modules that ask a host questions: each scenario runs on a host and must give the recorded transcript.
//!
//! The transcripts were recorded on Envoy, so they are Envoy's rules and not our reading of them. A host gets the same
//! bootstrap document and the same flags as Envoy. `GUESTS_RECORD=1` writes the transcripts anew.
//!
//! `make guests` builds the modules; `GUESTS_DIR` names the folder that they are in.

mod certificates;
mod grpc_upstream;
mod host;
mod moments;
mod scenario;
mod transcript;
mod upstream;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::binaries;
pub use certificates::told_of;
pub use host::Host;
use scenario::Scenario;

/// Runs every scenario on `host`, two at a time, and reports all that differ together.
///
/// Lines that `excused` lists are left out on both sides: the scenario, what such a line contains, and the reason.
pub fn run_all(host: &Host, excused: &[(&str, &str, &str)]) {
    let folder = binaries::workspace().join("tests/cases/guests/scenarios");
    let files = scenario_files(&folder);
    let next = AtomicUsize::new(0);
    let differing = Mutex::new(Vec::new());
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(difference) = run(host, file, excused) {
                let mut all = differing.lock().expect("no holder panicked");
                all.push(format!("{}: {difference}", file.display()));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let differing = differing.into_inner().expect("no holder panicked");
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

/// What `host` makes of each module under `tests/guests/wat`, in the order of their names: `serves` with the status of a request,
/// or `refuses`.
pub fn verdicts(host: &Host) -> Vec<(String, String)> {
    let folder = std::env::temp_dir().join(format!("guests.wat.{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the modules");
    let sources = std::fs::read_dir(binaries::workspace().join("tests/guests/wat"));
    let mut names: Vec<String> = sources
        .expect("the modules")
        .filter_map(|entry| {
            let name = entry.expect("a module").file_name();
            Some(name.to_str()?.strip_suffix(".wat")?.to_owned())
        })
        .collect();
    names.sort();
    let verdict = |name: &String| {
        let source = binaries::workspace().join(format!("tests/guests/wat/{name}.wat"));
        let module = wat::parse_file(&source).expect("the text of a module");
        std::fs::write(folder.join(format!("{name}.wasm")), module).expect("the folder above");
        let scenario = Scenario::of(serde_json::json!({
            "guest": name,
            "exchanges": [{"head": ["GET /direct HTTP/1.1", "host: example.com"]}],
        }));
        let text = transcript::run(host, &scenario, &folder);
        let status = text
            .lines()
            .find_map(|line| line.strip_prefix("< HTTP/1.1 "));
        let verdict = match status {
            Some(status) => format!("serves {}", status.split(' ').next().unwrap_or_default()),
            None => "refuses".to_owned(),
        };
        (name.clone(), verdict)
    };
    let verdicts = names.iter().map(verdict).collect();
    let _removed = std::fs::remove_dir_all(&folder);
    verdicts
}

/// Runs one scenario; where its transcript differs from the recorded one.
fn run(host: &Host, file: &Path, excused: &[(&str, &str, &str)]) -> Option<String> {
    let scenario = Scenario::read(file);
    let found = transcript::run(host, &scenario, &guests());
    let recorded = file.with_extension("txt");
    if std::env::var_os("GUESTS_RECORD").is_some() {
        std::fs::write(&recorded, &found).expect("a transcript can be written");
        return None;
    }
    let expected = std::fs::read_to_string(&recorded).unwrap_or_default();
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    for (scenario, text, reason) in excused {
        let picked = |all: &str| -> Vec<String> {
            let lines = all.lines().filter(|line| line.contains(text));
            lines.map(str::to_owned).collect()
        };
        if *scenario == name && picked(&expected) == picked(&found) {
            return Some(format!(
                "the difference in {text:?} is gone; it was: {reason}"
            ));
        }
    }
    let compared = |all: &str| -> String {
        let excused = |line: &str| {
            let mut listed = excused.iter();
            listed.any(|(scenario, text, _)| *scenario == name && line.contains(text))
        };
        let lines: Vec<&str> = all.lines().filter(|line| !excused(line)).collect();
        lines.join("\n")
    };
    first_difference(&compared(&expected), &compared(&found))
}

fn scenario_files(folder: &Path) -> Vec<PathBuf> {
    let only = std::env::var("GUESTS_ONLY").unwrap_or_default();
    let entries = std::fs::read_dir(folder).expect("the scenarios");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a scenario").path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.retain(|file| file.to_string_lossy().contains(&only));
    files.sort();
    files
}

fn guests() -> PathBuf {
    let folder = std::env::var_os("GUESTS_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| {
        binaries::workspace().join("target/guests/wasm32-wasip1/release/examples")
    })
}

/// The first line in which two texts differ, with what came before.
fn first_difference(expected: &str, found: &str) -> Option<String> {
    let (expected, found) = (lines(expected), lines(found));
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let before = found[at.saturating_sub(4)..at.min(found.len())].join("\n    ");
    let end = "(end)";
    let (wanted, got) = (
        expected.get(at).unwrap_or(&end),
        found.get(at).unwrap_or(&end),
    );
    Some(format!(
        "line {}\n    {before}\n  recorded {wanted}\n  found    {got}",
        at + 1
    ))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}
