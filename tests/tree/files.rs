//! Reads the source files; and the rules that hold for each of them: opens with a module doc, at most 600 lines.

use std::path::{Path, PathBuf};

/// One source file.
pub(crate) struct SourceFile {
    /// Path from the workspace's root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// Every `.rs` file under these folders of the workspace.
pub(crate) fn sources(folders: &[&str]) -> Vec<SourceFile> {
    let root = hoop_tests::binaries::workspace();
    let mut files = Vec::new();
    for folder in folders {
        collect(&root, &root.join(folder), &mut files);
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    for path in paths {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.push(SourceFile {
                path: relative.to_string_lossy().replace('\\', "/"),
                text: std::fs::read_to_string(&path).expect("a source file"),
            });
        }
    }
}

const ALL: [&str; 3] = ["filter/src", "host-sim", "tests"];

#[test]
fn every_file_says_first_what_it_owns() {
    let silent: Vec<String> = sources(&ALL)
        .into_iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert!(silent.is_empty(), "no `//!` on the first line: {silent:#?}");
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let long: Vec<String> = sources(&ALL)
        .into_iter()
        .filter(|file| file.text.lines().count() > LONGEST)
        .map(|file| format!("{}: {} lines", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "longer than {LONGEST} lines: {long:#?}");
}

#[test]
fn no_test_sleeps_hides_or_needs_an_order() {
    let mut found = Vec::new();
    for file in sources(&[
        "filter",
        "host-sim",
        "tests/cases",
        "tests/src",
        "tests/bench",
    ]) {
        let may_sleep = file.path == WAITS_FOR_CONDITIONS;
        for (index, line) in file.text.lines().enumerate() {
            let code = line.trim_start();
            let sleeps = !may_sleep
                && (code.contains("thread::sleep(")
                    || (file.path.starts_with("tests/") && code.contains("sleep(")));
            if sleeps || FORBIDDEN_IN_TESTS.iter().any(|word| code.starts_with(word)) {
                found.push(format!("{}:{}: {code}", file.path, index + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

const FORBIDDEN_IN_TESTS: [&str; 3] = ["#[ignore", "#[should_panic", "#[serial"];
/// The one place that looks again after a while, until a condition holds.
const WAITS_FOR_CONDITIONS: &str = "tests/src/wait.rs";
const LONGEST: usize = 600;
