//! Why there is no usable Envoy: what `stack` tells its callers, and `failure` turns into a line with a remedy.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why there is no usable Envoy.
#[derive(Debug, thiserror::Error)]
pub enum EnvoyError {
    /// The directory or a file in it could not be written.
    #[error("{}: cannot write the files of {who}: {source}", .path.display())]
    Directory {
        /// What messages call it.
        who: &'static str,
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The binary could not be started.
    #[error("{}: cannot start Envoy: {source}", .binary.display())]
    NotStarted {
        /// The binary.
        binary: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system could start what was to become the binary, and not the binary itself.
    #[error("{}: cannot start Envoy: {reason}", .binary.display())]
    NotExecuted {
        /// The binary.
        binary: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The program ended without a single line of the form in which Envoy logs.
    #[error("{} does not behave like Envoy: it ended with {status}: {}", .binary.display(), joined(.lines))]
    NotEnvoy {
        /// The binary.
        binary: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it printed.
        lines: Vec<String>,
    },
    /// Envoy ended by itself.
    #[error("{who} ended with {status}: {}; its log: {}", joined(.lines), .log.display())]
    Died {
        /// What messages call it.
        who: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The log file.
        log: PathBuf,
        /// The lines of the log that say why.
        lines: Vec<String>,
    },
    /// Envoy runs but did not become ready in time.
    #[error("{who} was not ready within {} s: {}; its log: {}", .within.as_secs(), joined(.lines), .log.display())]
    NotReady {
        /// What messages call it.
        who: &'static str,
        /// How long was waited.
        within: Duration,
        /// The log file.
        log: PathBuf,
        /// The lines of the log that may say why.
        lines: Vec<String>,
    },
    /// The running Envoy has no such listener.
    #[error("{who} does not listen as `{listener}`")]
    ListenerUnknown {
        /// What messages call it.
        who: &'static str,
        /// The name that was asked for.
        listener: String,
    },
    /// The system lost track of the process.
    #[error("cannot wait for {who} (process {id}): {source}")]
    Lost {
        /// What messages call it.
        who: &'static str,
        /// The process id.
        id: u32,
        /// What the system said.
        source: std::io::Error,
    },
}

fn joined(lines: &[String]) -> String {
    if lines.is_empty() {
        "it said nothing".to_owned()
    } else {
        lines.join(" | ")
    }
}
