//! `host-sim up`: the plane and the services behind the gates in this process, an Envoy or a simulator for each gate as a
//! child; all of it ends with this command.

mod addresses;
mod data_dir;
mod envoys;
mod lanes;
mod parts;
mod settings;
mod welcome;

use std::time::Duration;

use super::copyable::{self, approvals_flags};
use super::plane;
use super::signals::StopSignals;
use crate::args::{HostArgument, LEDGER, UpArguments};
use crate::failure::Failure;
use crate::output;
use data_dir::InUse;
use envoys::Envoys;
use parts::{Parts, Sockets};
use settings::Settings;
use welcome::{Grpc, Mcp, Welcome};

/// Starts everything, waits for a signal or for the first part that ends, and stops everything.
pub(super) async fn run(arguments: &UpArguments) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    let lanes = lanes::lanes(arguments);
    addresses::check_apart(arguments, &lanes)?;
    let settings = Settings::read(arguments, &lanes)?;
    // Before the ports, so that a second `up` with the very same flags is told what is wrong and not only which port is
    // taken; until the end of this function, when the processes have ended.
    let _in_use = InUse::claim(&arguments.data_dir)?;
    let sockets = Sockets::take(arguments, &lanes).await?;
    let plane = plane::open(&arguments.data_dir, settings.plane.clone()).await?;
    let host = host_name(arguments);
    output::progress(format_args!(
        "starting the plane, the demo services and {host} ..."
    ));
    if arguments.host == HostArgument::Sim && !arguments.without_grpc {
        output::progress(
            "the simulator does not unpack gRPC-Web: such calls are held by their bytes",
        );
    }
    let mut envoys = Envoys::spawn(&settings, &plane)?;
    let mut parts = Parts::start(sockets, plane);

    let outcome = tokio::select! {
        () = signals.received() => Ok(()),
        failure = parts.ended_by_itself() => Err(failure),
        failure = start_and_watch(arguments, &mut envoys) => Err(failure),
    };
    output::progress("stopping ...");
    let stopped = envoys.stop().await;
    parts.stop().await;
    outcome.and(stopped.map_err(Failure::from))
}

/// Greets once every gate is ready, then watches them. Returns only when something went wrong.
async fn start_and_watch(arguments: &UpArguments, envoys: &mut Envoys) -> Failure {
    if let Err(error) = envoys.wait_until_ready(READY_WITHIN).await {
        return error.into();
    }
    output::data(welcome(arguments).text());
    envoys.died_by_itself().await.into()
}

fn welcome(arguments: &UpArguments) -> Welcome<'_> {
    let plane = format!("http://{}", addresses::to_call(arguments.plane_listen));
    Welcome {
        host: host_name(arguments),
        listener: arguments.listen.to_string(),
        plane: arguments.plane_listen.to_string(),
        upstream: arguments.upstream_listen.to_string(),
        admin: arguments.admin_listen.to_string(),
        grpc: (!arguments.without_grpc).then(|| grpc(arguments)),
        mcp: (!arguments.without_mcp).then(|| Mcp {
            listener: addresses::to_call(arguments.mcp_listen).to_string(),
            admin: arguments.mcp_admin_listen.to_string(),
        }),
        data_dir: &arguments.data_dir,
        program: copyable::word(&program()),
        approvals_flags: approvals_flags(&plane, &arguments.data_dir),
    }
}

fn grpc(arguments: &UpArguments) -> Grpc {
    let listener = addresses::to_call(arguments.grpc_listen).to_string();
    Grpc {
        address_flag: if listener == LEDGER {
            String::new()
        } else {
            format!(" --address {listener}")
        },
        listener: arguments.grpc_listen.to_string(),
        upstream: arguments.ledger_listen.to_string(),
        admin: arguments.grpc_admin_listen.to_string(),
    }
}

/// What runs the filter, as messages call it.
fn host_name(arguments: &UpArguments) -> &'static str {
    match arguments.host {
        HostArgument::Envoy => "Envoy",
        HostArgument::Sim => "the simulator",
    }
}

/// How this program is called from here: relative to the current directory when it lies below it.
fn program() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "host-sim".into());
    let here = std::env::current_dir().unwrap_or_default();
    program
        .strip_prefix(&here)
        .unwrap_or(&program)
        .display()
        .to_string()
}

/// Envoy compiles the module once for each thread; on a busy machine with two cores that takes a few seconds.
const READY_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// `host-sim up` with the flags of `line`, for the tests of its parts.
#[cfg(test)]
fn up_arguments(line: &str) -> UpArguments {
    use clap::Parser;

    use crate::args::{Arguments, Command};

    let words = ["host-sim", "up"]
        .into_iter()
        .chain(line.split_whitespace());
    match Arguments::try_parse_from(words).expect("parses").command {
        Command::Up(arguments) => *arguments,
        Command::Approvals(_)
        | Command::Descriptors(_)
        | Command::ExecChild(_)
        | Command::Ledger(_)
        | Command::Plane(_)
        | Command::Proxy(_)
        | Command::Sidecars(_) => {
            panic!("another command")
        }
    }
}
