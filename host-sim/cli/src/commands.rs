//! One module for each command. A command gets its flags, prints through [`output`](crate::output) and returns its failure.

mod approvals;
mod copyable;
mod descriptors;
mod exec_child;
mod ledger;
mod plane;
mod ports;
mod proxy;
mod signals;
mod up;

use crate::args::Command;
use crate::failure::Failure;

/// How a command ended that did what it was asked to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// With the answer that was wanted, or without any.
    Done,
    /// With a no, which is printed: exit code 1 and no further word.
    Refused,
}

/// Runs `command` to its end.
pub async fn run(command: &Command) -> Result<Outcome, Failure> {
    let done = match command {
        Command::Up(arguments) => up::run(arguments).await,
        Command::Plane(arguments) => plane::run(arguments).await,
        Command::Proxy(arguments) => proxy::run(arguments).await,
        Command::Approvals(arguments) => approvals::run(arguments).await,
        Command::Sidecars(arguments) => approvals::sidecars::run(arguments).await,
        Command::Descriptors(arguments) => descriptors::run(arguments),
        Command::Ledger(arguments) => return ledger::run(arguments).await,
        Command::ExecChild(arguments) => exec_child::run(arguments),
    };
    done.map(|()| Outcome::Done)
}

/// A directory of one test, deleted with it.
#[cfg(test)]
pub(crate) struct TestDir(std::path::PathBuf);

#[cfg(test)]
impl TestDir {
    /// `name` is the test's own. Nothing is made yet.
    pub(crate) fn new(name: &str) -> TestDir {
        let directory = format!("host-sim-cli-{}-{name}", std::process::id());
        TestDir(std::env::temp_dir().join(directory))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

#[cfg(test)]
impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
