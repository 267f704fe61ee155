//! `host-sim proxy`: the simulator on real sockets, started by the flags and files that start an Envoy.

mod log;
mod settings;

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use host_sim::proxy::{Proxy, Settings, StartError};
use host_sim::{Host, LogLevel, Worker};
use time::OffsetDateTime;
use tokio::sync::oneshot;

use super::signals::StopSignals;
use crate::args::{Mode, ProxyArguments};
use crate::failure::Failure;
use crate::output;
use log::Levels;

/// Serves until a signal or the admin interface asks it to stop; a second signal ends it at once.
pub(super) async fn run(arguments: &ProxyArguments) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    let (node, settings) = settings::read(arguments, &|name| std::env::var_os(name))?;
    let levels = Levels::new(arguments);
    let host = host(levels);
    host.set_node(node);
    if arguments.mode == Mode::Validate {
        return validate(&host, &settings);
    }

    let starting = in_thread("start", move || Proxy::start(host, settings))?;
    let started = tokio::select! {
        started = starting => started.map_err(|_| Failure::ours("the start of the proxy broke off"))?,
        // What has come up so far ends with this process.
        () = signals.received() => return Ok(()),
    };
    let proxy = started.map_err(start_failure)?;
    announce(&proxy, levels, arguments.admin_address_path.as_deref())?;

    let quit = proxy.quit_signal();
    let quitting = in_thread("quit", move || quit.wait())?;
    tokio::select! {
        // An error means that the thread is gone, which is a reason to stop as well.
        _ = quitting => {}
        () = signals.received() => {}
    }
    say(
        levels,
        LogLevel::Info,
        "stopping: no new connections, requests in progress have a moment to end",
    );
    let stopped = in_thread("stop", move || proxy.stop(GRACE))?;
    tokio::select! {
        _ = stopped => {}
        () = signals.received() => {}
    }
    Ok(())
}

/// The host of all VMs, whose lines go to the log as Envoy's do.
fn host(levels: Levels) -> Host {
    let host = Host::real(move |line| {
        if log::is_access(line) {
            output::raw(&line.message);
        } else if let Some(text) = levels.wasm_line(line, OffsetDateTime::now_utc()) {
            output::log(&text);
        }
    });
    host.set_log_level(levels.guest());
    host
}

/// Configures each plugin once, as the canary of a start does. No port is taken.
fn validate(host: &Host, settings: &Settings) -> Result<(), Failure> {
    for cluster in &settings.clusters {
        host.set_cluster(&cluster.name, host_sim::ClusterHealth::Serving);
    }
    for listener in &settings.listeners {
        if let Some(plugin) = &listener.plugin {
            Worker::start(host, &Arc::new(plugin.clone()), listener.limits)
                .map_err(|error| settings::load_failure(&error))?;
        }
    }
    output::data("the configuration is valid");
    Ok(())
}

/// Tells where it listens: in the log, and in the file that Envoy's flag names.
fn announce(
    proxy: &Proxy,
    levels: Levels,
    admin_address_path: Option<&Path>,
) -> Result<(), Failure> {
    for (name, address) in proxy.listener_addresses() {
        say(
            levels,
            LogLevel::Info,
            &format!("listener {name} listens on {address}"),
        );
    }
    let Some(admin) = proxy.admin_address() else {
        return Ok(());
    };
    say(
        levels,
        LogLevel::Info,
        &format!("the admin interface listens on {admin}"),
    );
    let Some(path) = admin_address_path else {
        return Ok(());
    };
    std::fs::write(path, admin.to_string()).map_err(|error| {
        Failure::user(
            format_args!(
                "{}: cannot write the admin address: {error}",
                path.display()
            ),
            "check the path after `--admin-address-path`",
        )
    })
}

fn say(levels: Levels, level: LogLevel, message: &str) {
    if let Some(text) = levels.main_line(level, message, OffsetDateTime::now_utc()) {
        output::log(&text);
    }
}

/// Runs `work` beside the signals. The thread is not waited for, so that a second signal ends the process at once.
fn in_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, Failure> {
    let (done, result) = oneshot::channel();
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        // Nobody listens any more once the process is ending.
        let _ = done.send(work());
    });
    match started {
        Ok(_) => Ok(result),
        Err(error) => Err(Failure::ours(format_args!(
            "cannot start a thread: {error}"
        ))),
    }
}

fn start_failure(error: StartError) -> Failure {
    let hint = match &error {
        StartError::AddressUnusable { .. } => {
            "stop what listens there, or give another address in the file or with `--listen` and `--admin-listen`"
        }
        StartError::PluginRefused { source, .. } => return settings::load_failure(source),
        StartError::Tls { .. } => {
            "give certificate and key in PEM form, and the key that belongs to the certificate"
        }
        StartError::NoThread { .. } | _ => return Failure::internal(&error),
    };
    Failure::told_or(&error, hint)
}

/// Shorter than what `host-sim up` and the tests wait before they kill.
const GRACE: Duration = Duration::from_secs(3);
