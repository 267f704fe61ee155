//! One Envoy process: started with its own directory and log, awaited through its admin interface, stopped by id.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::envoy_error::EnvoyError;
use super::envoy_log::{decisive_lines, is_envoys, why_not_executed};
use crate::bootstrap::Bootstrap;

/// How to start an Envoy.
pub struct EnvoyLaunch {
    /// The Envoy binary, or a program that takes Envoy's flags.
    pub binary: PathBuf,
    /// Arguments in front of Envoy's own: `proxy` makes `host-sim` that program.
    pub leading_arguments: Vec<String>,
    /// The `host-sim` program, through which Envoy is started so that the system ends it even when this process is killed. Its
    /// thread counts as the parent, so spawn from one that lives as long as Envoy shall. `None` = start Envoy directly.
    pub exec_child: Option<PathBuf>,
    /// Where its configuration, its log and its admin address are written. Made when missing.
    pub directory: PathBuf,
    /// Variables that the child sees besides ours; the sidecar token goes here and never onto the command line.
    pub environment: Vec<(String, String)>,
    /// Worker threads; `None` = one for each core.
    pub concurrency: Option<u32>,
    /// More arguments of Envoy's command line.
    pub arguments: Vec<String>,
    /// Envoy's log level: `trace`, `debug`, `info`, `warning`, `error` or `critical`.
    pub log_level: String,
}

impl EnvoyLaunch {
    /// What messages call it.
    fn who(&self) -> &'static str {
        match self.leading_arguments.as_slice() {
            [] => "Envoy",
            [..] => "the simulator",
        }
    }

    /// Envoy, or what becomes it, without Envoy's own arguments.
    fn command(&self) -> Command {
        let mut command = match &self.exec_child {
            None => Command::new(&self.binary),
            Some(exec_child) => {
                let mut command = Command::new(exec_child);
                command
                    .arg("exec-child")
                    .args(["--parent", &std::process::id().to_string()]);
                command.arg("--").arg(&self.binary);
                command
            }
        };
        command.args(&self.leading_arguments);
        command
    }
}

/// A running Envoy. Dropping it kills the process; [`stop`](EnvoyProcess::stop) ends it in order.
#[derive(Debug)]
pub struct EnvoyProcess {
    who: &'static str,
    binary: PathBuf,
    child: Child,
    id: u32,
    log: PathBuf,
    /// How long the log was before this run; what stands there says nothing about it.
    log_start: u64,
    admin_address_file: PathBuf,
    admin: Option<SocketAddr>,
    http: reqwest::Client,
}

impl EnvoyProcess {
    /// Writes `bootstrap` to the directory of `launch` and starts Envoy on it.
    ///
    /// Envoy runs in a process group of its own, so that Ctrl-C in a terminal reaches us alone and we stop it in order.
    pub fn spawn(launch: &EnvoyLaunch, bootstrap: &Bootstrap) -> Result<EnvoyProcess, EnvoyError> {
        let who = launch.who();
        let directory = &launch.directory;
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| EnvoyError::Directory { who, path, source }
        };
        std::fs::create_dir_all(directory).map_err(unwritable(directory))?;
        let configuration = directory.join("envoy.json");
        private(&configuration, OpenOptions::new().truncate(true))
            .and_then(|mut file| file.write_all(bootstrap.to_json().as_bytes()))
            .map_err(unwritable(&configuration))?;
        // An address of an earlier run would send the readiness check to a stranger.
        let admin_address_file = directory.join("envoy-admin-address.txt");
        std::fs::write(&admin_address_file, "").map_err(unwritable(&admin_address_file))?;
        let log = directory.join("envoy.log");
        // Appended to: an operator looks for what an earlier run did, and Envoy opens the file a second time for its access
        // log, which without this mode would write over its own lines.
        let log_file = private(&log, OpenOptions::new().append(true)).map_err(unwritable(&log))?;
        let log_start = log_file.metadata().map_err(unwritable(&log))?.len();
        let second_handle = log_file.try_clone().map_err(unwritable(&log))?;

        let mut command = launch.command();
        command
            .arg("--config-path")
            .arg(&configuration)
            .arg("--admin-address-path")
            .arg(&admin_address_file)
            // A shared memory id of its own, so that several Envoys run side by side.
            .arg("--use-dynamic-base-id")
            .args(["--log-level", &launch.log_level])
            // So that a call is in the access log when one looks for it, and not ten seconds later.
            .args(["--file-flush-interval-msec", "500"])
            .args(&launch.arguments)
            // A token in our own environment belongs to another plane.
            .env_remove("HOOP_SIDECAR_TOKEN")
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log_file)
            .stderr(second_handle)
            .process_group(0)
            .kill_on_drop(true);
        if let Some(threads) = launch.concurrency {
            command.args(["--concurrency", &threads.to_string()]);
        }
        let child = command.spawn().map_err(|source| EnvoyError::NotStarted {
            binary: launch.binary.clone(),
            source,
        })?;
        let id = child.id().unwrap_or_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(ADMIN_CALL)
            .build()
            .unwrap_or_default();
        Ok(EnvoyProcess {
            who,
            binary: launch.binary.clone(),
            child,
            id,
            log,
            log_start,
            admin_address_file,
            admin: None,
            http,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The file that holds what Envoy printed: its own log, the filter's lines and the access log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The address of the admin interface; `None` until [`wait_until_ready`](EnvoyProcess::wait_until_ready) succeeded.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Waits until the admin interface answers `/ready` with 200.
    ///
    /// Fails at once when Envoy ends, with the lines of its log that say why, and after `within` when it is still not ready; the
    /// process then goes on running.
    pub async fn wait_until_ready(&mut self, within: Duration) -> Result<(), EnvoyError> {
        let deadline = Instant::now() + within;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.died(status));
            }
            if let Some(admin) = self.announced_admin()
                && self.is_ready(admin).await
            {
                self.admin = Some(admin);
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(EnvoyError::NotReady {
                    who: self.who,
                    within,
                    log: self.log.clone(),
                    lines: decisive_lines(&self.own_log()),
                });
            }
            sleep(READY_INTERVAL).await;
        }
    }

    /// The address on which `listener` really listens: the port that the system chose when the bootstrap said 0.
    pub async fn listener_address(&self, listener: &str) -> Result<SocketAddr, EnvoyError> {
        let unknown = || EnvoyError::ListenerUnknown {
            who: self.who,
            listener: listener.to_owned(),
        };
        let admin = self.admin.ok_or_else(unknown)?;
        let listeners = self
            .http
            .get(format!("http://{admin}/listeners?format=json"))
            .send()
            .await;
        let listeners: Value = match listeners {
            Ok(answer) => answer.json().await.map_err(|_| unknown())?,
            Err(_) => return Err(unknown()),
        };
        let statuses = listeners.get("listener_statuses").and_then(Value::as_array);
        let status = statuses
            .into_iter()
            .flatten()
            .find(|status| status.get("name").is_some_and(|name| name == listener));
        let socket = status
            .and_then(|status| status.pointer("/local_address/socket_address"))
            .ok_or_else(unknown)?;
        let ip = socket
            .get("address")
            .and_then(Value::as_str)
            .and_then(|ip| ip.parse().ok())
            .ok_or_else(unknown)?;
        let port = socket
            .get("port_value")
            .and_then(Value::as_u64)
            .and_then(|port| u16::try_from(port).ok());
        Ok(SocketAddr::new(ip, port.ok_or_else(unknown)?))
    }

    /// Waits until Envoy ends by itself, which nobody asked for: the answer is always [`EnvoyError::Died`].
    pub async fn died_by_itself(&mut self) -> EnvoyError {
        match self.child.wait().await {
            Ok(status) => self.died(status),
            Err(source) => EnvoyError::Lost {
                who: self.who,
                id: self.id,
                source,
            },
        }
    }

    /// Ends Envoy: asks the admin interface first, and kills this very process when it has not ended within five seconds.
    pub async fn stop(mut self) -> Result<(), EnvoyError> {
        if let Some(admin) = self.admin {
            // The answer does not matter: Envoy may be gone before it is written.
            let _ = self
                .http
                .post(format!("http://{admin}/quitquitquit"))
                .send()
                .await;
            if timeout(STOP_WITHIN, self.child.wait())
                .await
                .is_ok_and(|ended| ended.is_ok())
            {
                return Ok(());
            }
        }
        self.child.kill().await.map_err(|source| EnvoyError::Lost {
            who: self.who,
            id: self.id,
            source,
        })
    }

    fn announced_admin(&self) -> Option<SocketAddr> {
        std::fs::read_to_string(&self.admin_address_file)
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    async fn is_ready(&self, admin: SocketAddr) -> bool {
        let answer = self.http.get(format!("http://{admin}/ready")).send().await;
        answer.is_ok_and(|answer| answer.status() == reqwest::StatusCode::OK)
    }

    fn died(&self, status: ExitStatus) -> EnvoyError {
        let log = self.own_log();
        let binary = || self.binary.clone();
        if let Some(reason) = why_not_executed(&log) {
            return EnvoyError::NotExecuted {
                binary: binary(),
                reason: reason.to_owned(),
            };
        }
        let lines = decisive_lines(&log);
        // One that was ready is an Envoy, and one that a signal ended may have had no time to say a word.
        if self.admin.is_none() && status.code().is_some() && !is_envoys(&log) {
            return EnvoyError::NotEnvoy {
                binary: binary(),
                status,
                lines,
            };
        }
        EnvoyError::Died {
            who: self.who,
            status,
            log: self.log.clone(),
            lines,
        }
    }

    /// The end of what this run wrote to the log, empty when it cannot be read.
    fn own_log(&self) -> String {
        let mut bytes = Vec::new();
        // A log that cannot be read must not hide that Envoy ended, so the failure costs the lines and no more.
        let _ = File::open(&self.log).and_then(|mut file| {
            let length = file.metadata()?.len();
            let start = self
                .log_start
                .max(length.saturating_sub(LOG_READ_MAX_BYTES));
            // Somebody who emptied the file meanwhile made all of it ours.
            let start = if start > length { 0 } else { start };
            file.seek(SeekFrom::Start(start))?;
            file.take(LOG_READ_MAX_BYTES).read_to_end(&mut bytes)
        });
        // It may hold any byte that a client sent, so it need not be UTF-8.
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Opens `path` for writing with `options`, for its owner only: the log shows what clients sent, and the bootstrap may hold
/// what an operator wrote into it. One that is there from earlier gets the mode too.
fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.create(true).write(true).mode(PRIVATE).open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    Ok(file)
}

/// An admin call goes over loopback and is answered by the main thread, which may be busy compiling the module.
const ADMIN_CALL: Duration = Duration::from_secs(2);
const READY_INTERVAL: Duration = Duration::from_millis(50);
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// What is read of a log to find the lines that count. They stand at its end, behind an access log of any length.
const LOG_READ_MAX_BYTES: u64 = 1024 * 1024;
const PRIVATE: u32 = 0o600;

#[cfg(test)]
mod tests;
