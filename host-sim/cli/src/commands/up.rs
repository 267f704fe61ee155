//! `host-sim up`: plane and demo upstream in this process, Envoy or the simulator as a child; all of it ends with this command.

mod addresses;
mod data_dir;
mod settings;
mod welcome;

use std::net::SocketAddr;
use std::time::Duration;

use host_sim_plane::Plane;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::copyable::{self, approvals_flags};
use super::plane;
use super::ports::{self, Port};
use super::signals::StopSignals;
use crate::args::{HostArgument, UpArguments};
use crate::failure::Failure;
use crate::output;
use crate::stack::{EnvoyLaunch, EnvoyProcess, serve_upstream};
use data_dir::InUse;
use settings::Settings;
use welcome::Welcome;

/// Starts everything, waits for a signal or for the first part that ends, and stops everything.
pub(super) async fn run(arguments: &UpArguments) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    addresses::check_apart(arguments)?;
    let settings = Settings::read(arguments)?;
    // Before the ports, so that a second `up` with the very same flags is told what is wrong and not only which port is
    // taken; until the end of this function, when Envoy has ended.
    let _in_use = InUse::claim(&arguments.data_dir)?;
    let sockets = Sockets::take(arguments).await?;
    let plane = plane::open(&arguments.data_dir, settings.plane.clone()).await?;
    let host = host_name(arguments);
    output::progress(format_args!(
        "starting the plane, the upstream and {host} ..."
    ));
    let mut envoy = spawn_envoy(arguments, &settings, &plane)?;
    let mut parts = Parts::start(sockets, plane);

    let outcome = tokio::select! {
        () = signals.received() => Ok(()),
        failure = parts.ended_by_itself() => Err(failure),
        failure = start_and_watch(arguments, &mut envoy) => Err(failure),
    };
    output::progress("stopping ...");
    let stopped = envoy.stop().await;
    parts.stop().await;
    outcome.and(stopped.map_err(Failure::from))
}

/// Greets once Envoy is ready, then watches it. Returns only when something went wrong.
async fn start_and_watch(arguments: &UpArguments, envoy: &mut EnvoyProcess) -> Failure {
    if let Err(error) = envoy.wait_until_ready(READY_WITHIN).await {
        return error.into();
    }
    output::data(welcome(arguments).text());
    envoy.died_by_itself().await.into()
}

fn spawn_envoy(
    arguments: &UpArguments,
    settings: &Settings,
    plane: &Plane,
) -> Result<EnvoyProcess, Failure> {
    let token = plane.sidecar_token().expose().to_owned();
    let launch = EnvoyLaunch {
        binary: settings.program.binary.clone(),
        leading_arguments: settings.program.leading_arguments.clone(),
        exec_child: std::env::current_exe().ok(),
        directory: arguments.data_dir.clone(),
        environment: vec![("HOOP_SIDECAR_TOKEN".to_owned(), token)],
        concurrency: None,
        arguments: Vec::new(),
        log_level: "info".to_owned(),
    };
    Ok(EnvoyProcess::spawn(&launch, &settings.bootstrap)?)
}

/// The two ports that we serve ourselves. Envoy's two are only known to be free.
struct Sockets {
    plane: TcpListener,
    upstream: TcpListener,
}

impl Sockets {
    async fn take(arguments: &UpArguments) -> Result<Sockets, Failure> {
        let port = |what, flag, address: SocketAddr| Port {
            what,
            flag,
            address,
        };
        // Envoy would share its port with another Envoy without a word, so both are tried here first.
        ports::check_free(&port(
            "the listener billing-api",
            "--listen",
            arguments.listen,
        ))
        .await?;
        ports::check_free(&port(
            "the admin interface",
            "--admin-listen",
            arguments.admin_listen,
        ))
        .await?;
        let plane =
            ports::bind(&port("the plane", "--plane-listen", arguments.plane_listen)).await?;
        let upstream = ports::bind(&port(
            "the demo upstream",
            "--upstream-listen",
            arguments.upstream_listen,
        ))
        .await?;
        Ok(Sockets { plane, upstream })
    }
}

/// The parts that run in this process.
struct Parts {
    stop: watch::Sender<bool>,
    plane: JoinHandle<Result<(), Failure>>,
    upstream: JoinHandle<Result<(), Failure>>,
}

impl Parts {
    fn start(sockets: Sockets, plane: Plane) -> Parts {
        let (stop, stopped) = watch::channel(false);
        let wait = |mut stopped: watch::Receiver<bool>| async move {
            // An error means that the sender is gone, which is a reason to stop as well.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let plane_stop = wait(stopped.clone());
        let plane = tokio::spawn(async move {
            plane
                .serve(sockets.plane, plane_stop)
                .await
                .map_err(|error| Failure::internal(&error))
        });
        let upstream_stop = wait(stopped);
        let upstream = tokio::spawn(async move {
            let received = |request: &_| output::data(request);
            serve_upstream(sockets.upstream, received, upstream_stop)
                .await
                .map_err(|error| Failure::internal(&error))
        });
        Parts {
            stop,
            plane,
            upstream,
        }
    }

    /// Waits until one of them ends, which nobody asked for.
    async fn ended_by_itself(&mut self) -> Failure {
        let (what, ended) = tokio::select! {
            ended = &mut self.plane => ("the plane", ended),
            ended = &mut self.upstream => ("the demo upstream", ended),
        };
        let reason = match ended {
            Ok(Ok(())) => "it ended without a reason".to_owned(),
            Ok(Err(failure)) => failure.to_string(),
            Err(error) => error.to_string(),
        };
        Failure::ours(format_args!("{what} stopped: {reason}"))
    }

    /// Lets calls in flight finish for a moment, then ends both.
    async fn stop(mut self) {
        let _ = self.stop.send(true);
        for part in [&mut self.plane, &mut self.upstream] {
            if !part.is_finished() && timeout(STOP_WITHIN, &mut *part).await.is_err() {
                part.abort();
            }
        }
    }
}

fn welcome(arguments: &UpArguments) -> Welcome<'_> {
    let plane = format!("http://{}", addresses::to_call(arguments.plane_listen));
    Welcome {
        host: host_name(arguments),
        listener: arguments.listen.to_string(),
        plane: arguments.plane_listen.to_string(),
        upstream: arguments.upstream_listen.to_string(),
        admin: arguments.admin_listen.to_string(),
        data_dir: &arguments.data_dir,
        program: copyable::word(&program()),
        approvals_flags: approvals_flags(&plane, &arguments.data_dir),
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
        Command::Up(arguments) => arguments,
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
