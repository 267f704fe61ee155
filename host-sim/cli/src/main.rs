//! The `host-sim` binary: reads the flags, runs one command, turns its failure into a line and an exit code.

use std::process::ExitCode;

use clap::Parser;
use host_sim_cli::args::Arguments;
use host_sim_cli::commands::{self, Outcome};
use host_sim_cli::failure::Failure;
use host_sim_cli::output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error),
    };
    output::start_log();
    let outcome = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(commands::run(&arguments.command)),
        Err(error) => Err(Failure::ours(format_args!(
            "cannot start the runtime: {error}"
        ))),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Refused) => ExitCode::from(1),
        Err(failure) => output::failure(&failure),
    }
}
