//! MCP clients of other makers, each a process that prints what its library shows of a server as JSON lines, and the server that
//! they speak to: the gate's own endpoint.
//!
//! The programs are in `tests/clients/mcp-*` and have one command line, so that a case is written once for all of them.
//! [`conformance`] runs the official suite, [`inspector`] the official inspector's command line. [`wire`] does without a library.

pub mod conformance;
pub mod inspector;
pub mod wire;

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::scene::Scene;
use crate::{binaries, wait};

/// Where `scene` serves them.
pub fn url(scene: &Scene) -> String {
    format!("http://{}/mcp", scene.address())
}

/// A client library with its way to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The official Python SDK, 1.x.
    Python1,
    /// The official Python SDK, 2.x, which asks `server/discover` first.
    Python2,
    /// The same, told to shake hands.
    Python2Legacy,
    /// The official Rust SDK, told to ask `server/discover` first.
    Rust,
    /// The same, which shakes hands unless it is told otherwise.
    RustLegacy,
    /// The official TypeScript SDK, 1.x.
    TypeScript1,
    /// The official TypeScript SDK, 2.x, told to ask `server/discover` first.
    TypeScript2,
    /// The same, which shakes hands unless it is told otherwise.
    TypeScript2Legacy,
}

impl Client {
    /// Every one.
    pub const ALL: [Client; 8] = [
        Client::Python1,
        Client::Python2,
        Client::Python2Legacy,
        Client::Rust,
        Client::RustLegacy,
        Client::TypeScript1,
        Client::TypeScript2,
        Client::TypeScript2Legacy,
    ];

    /// The revision that it agrees on with a server that speaks all of them.
    pub fn revision(self) -> &'static str {
        match self {
            Client::Python2 | Client::Rust | Client::TypeScript2 => MODERN,
            Client::Python1
            | Client::Python2Legacy
            | Client::RustLegacy
            | Client::TypeScript1
            | Client::TypeScript2Legacy => LEGACY,
        }
    }

    /// Has it list the tools of the server at `url`.
    pub fn list(self, url: &str) -> Running {
        self.start(url, &["list".to_owned()])
    }

    /// Has it call `tool` of the server at `url`.
    pub fn call(self, url: &str, tool: &str, arguments: &Value) -> Running {
        self.start(url, &call_words(tool, arguments))
    }

    /// The same, with progress.
    pub fn call_with_progress(self, url: &str, tool: &str, arguments: &Value) -> Running {
        let mut words = call_words(tool, arguments);
        words.push("--progress".to_owned());
        self.start(url, &words)
    }

    /// The same, until so many notifications have come: then it cancels in its library's own way.
    pub fn call_and_cancel(
        self,
        url: &str,
        tool: &str,
        arguments: &Value,
        notifications: u32,
    ) -> Running {
        let mut words = call_words(tool, arguments);
        words.extend(["--progress", "--cancel-after"].map(str::to_owned));
        words.push(notifications.to_string());
        self.start(url, &words)
    }

    fn start(self, url: &str, words: &[String]) -> Running {
        let mut command = self.program();
        command.arg(url).args(words);
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the client starts");
        let output = child.stdout.take().expect("a pipe");
        Running {
            client: self,
            child,
            lines: BufReader::new(output).lines(),
            seen: Vec::new(),
        }
    }

    /// The program with the words that choose among its ways.
    fn program(self) -> Command {
        match self {
            Client::Python1 => python(&["1", "2"], "legacy"),
            Client::Python2 => python(&["2"], "auto"),
            Client::Python2Legacy => python(&["2"], "legacy"),
            Client::Rust => rust("auto"),
            Client::RustLegacy => rust("legacy"),
            Client::TypeScript1 => typescript("1", "legacy"),
            Client::TypeScript2 => typescript("2", "auto"),
            Client::TypeScript2Legacy => typescript("2", "legacy"),
        }
    }
}

fn call_words(tool: &str, arguments: &Value) -> Vec<String> {
    vec!["call".to_owned(), tool.to_owned(), arguments.to_string()]
}

/// The client in Python with the SDK from these folders, of which the first counts.
fn python(folders: &[&str], lifecycle: &str) -> Command {
    let packages = binaries::mcp_python();
    let path = std::env::join_paths(folders.iter().map(|folder| packages.join(folder)));
    let mut command = Command::new(binaries::python());
    command
        .env("PYTHONPATH", path.expect("folders without a colon"))
        .arg(binaries::workspace().join("tests/clients/mcp-python/client.py"))
        .arg(lifecycle);
    command
}

fn rust(lifecycle: &str) -> Command {
    let mut command = Command::new(binaries::mcp_rust());
    command.arg(lifecycle);
    command
}

fn typescript(major: &str, lifecycle: &str) -> Command {
    let mut command = Command::new(binaries::node());
    command
        .env("NODE_PATH", binaries::mcp_node_modules())
        .arg(binaries::workspace().join("tests/clients/mcp-typescript/client.cjs"))
        .args([major, lifecycle]);
    command
}

/// A client at work. Dropping it ends it.
pub struct Running {
    client: Client,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Running {
    /// Which one it is.
    pub fn client(&self) -> Client {
        self.client
    }

    /// The next thing that it tells, which has to be this.
    pub async fn expect(&mut self, event: &str) -> Value {
        let told = self.next().await;
        assert_eq!(told["event"], event, "{}", self.story());
        told
    }

    /// The result of its call, after any number of progress notifications.
    pub async fn result(&mut self) -> Value {
        loop {
            let told = self.next().await;
            if told["event"] != "progress" {
                assert_eq!(told["event"], "result", "{}", self.story());
                return told["result"].clone();
            }
        }
    }

    /// Waits for its end, and gives all that it told. More progress may come before: a library may hand it out after the result.
    pub async fn closed(mut self) -> String {
        loop {
            let told = self.next().await;
            if told["event"] == "closed" {
                break;
            }
            assert_eq!(told["event"], "progress", "{}", self.story());
        }
        let ended = wait::within("the client's end", self.child.wait()).await;
        let ended = ended.expect("a child");
        assert!(ended.success(), "{ended}: {}", self.story());
        self.seen.join("\n")
    }

    /// The next thing that it tells of the server. What a library notices outside of any request is left out.
    async fn next(&mut self) -> Value {
        loop {
            let line = wait::within("the client's next line", self.lines.next_line()).await;
            let Some(line) = line.expect("UTF-8 from the client") else {
                panic!("{}\n{}", self.story(), self.complaint().await);
            };
            let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            self.seen.push(line);
            if told["event"] != "noticed" {
                return told;
            }
        }
    }

    /// What it wrote on its standard error, once it has ended.
    async fn complaint(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(mut error) = self.child.stderr.take() {
            let read = wait::within("the client's last words", error.read_to_end(&mut text)).await;
            read.expect("a pipe");
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn story(&self) -> String {
        format!("{:?} told:\n{}", self.client, self.seen.join("\n"))
    }
}

/// The revision without a handshake.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with a handshake.
pub const LEGACY: &str = "2025-11-25";
