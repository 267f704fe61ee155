//! The official inspector's command line, which people use to look at a server by hand.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::{binaries, wait};

/// Lists the tools in `era` (`legacy` or `modern`), which fails on a schema that some client could not use.
pub async fn list(url: &str, era: &str, home: &Path) -> Value {
    let words = ["--strict", "--method", "tools/list"];
    let (code, shown) = run(url, era, home, &words).await;
    assert_eq!(code, Some(0), "{shown}");
    shown
}

/// Calls a tool; gives the exit code, which is not 0 for a result that says it is an error, and what was shown.
pub async fn call(
    url: &str,
    era: &str,
    home: &Path,
    tool: &str,
    arguments: &Value,
) -> (Option<i32>, Value) {
    let arguments = arguments.to_string();
    let words = [
        "--method",
        "tools/call",
        "--tool-name",
        tool,
        "--tool-args-json",
        &arguments,
    ];
    run(url, era, home, &words).await
}

/// It keeps a folder in the home of whoever runs it, hence `home`.
async fn run(url: &str, era: &str, home: &Path, words: &[&str]) -> (Option<i32>, Value) {
    let package = binaries::mcp_node_modules().join("@modelcontextprotocol/inspector");
    let output = Command::new(binaries::node())
        .env("HOME", home)
        .arg(package.join("clients/cli/build/index.js"))
        .arg(url)
        .args(["--transport", "http", "--protocol-era", era])
        .args(["--format", "json", "--quiet"])
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = wait::within("the inspector", output).await;
    let output = output.expect("node starts");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{output:?}");
    });
    (output.status.code(), shown["result"].clone())
}

/// How it exits after a result that says it is an error.
pub const TOOL_ERROR: Option<i32> = Some(5);
