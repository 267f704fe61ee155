//! One module for each command. A command gets its flags, prints through [`output`](crate::output) and returns its failure.

mod approvals;
mod exec_child;
mod plane;
mod ports;
mod signals;
mod up;

use crate::args::Command;
use crate::failure::Failure;

/// Runs `command` to its end.
pub async fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Up(arguments) => up::run(arguments).await,
        Command::Plane(arguments) => plane::run(arguments).await,
        Command::Approvals(arguments) => approvals::run(arguments).await,
        Command::ExecChild(arguments) => exec_child::run(arguments),
    }
}
