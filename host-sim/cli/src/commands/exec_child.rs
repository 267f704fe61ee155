//! `host-sim exec-child`: the moment between fork and exec, as a program of its own.
//!
//! A child that is to end with its parent has to ask the system for it by itself. Doing that between fork and exec takes unsafe
//! code; doing it here, before this process becomes the child, does not.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::args::ExecChildArguments;
use crate::failure::Failure;
use crate::stack::NOT_EXECUTED;

/// Becomes the program; returns only when that failed.
pub(super) fn run(arguments: &ExecChildArguments) -> Result<(), Failure> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::ours("no program to become"));
    };
    end_with_parent(arguments.parent)?;
    let error = Command::new(program).args(rest).exec();
    // Whoever started us reads this line from the log and adds the name and the remedy, which it knows better.
    Err(Failure::ours(format_args!("{NOT_EXECUTED}{error}")))
}

#[cfg(target_os = "linux")]
fn end_with_parent(parent: u32) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::internal(&error))?;
    // A parent that ended before this line sends no signal any more.
    let alive =
        getppid().is_some_and(|found| found.as_raw_nonzero().get().unsigned_abs() == parent);
    if alive {
        Ok(())
    } else {
        Err(Failure::ours("the process that started this one has ended"))
    }
}

/// Elsewhere there is no such request; a parent that is killed leaves the child behind.
#[cfg(not(target_os = "linux"))]
fn end_with_parent(_parent: u32) -> Result<(), Failure> {
    Ok(())
}
