//! The two hosts of the gate: real Envoy, and `host-sim proxy`, which takes Envoy's flags, bootstrap and admin calls.
//!
//! A case gets a [`Host`] and never asks which one it is. Only `envoy` and `sim` know how each is started; where the two may
//! differ stands in [`crate::differences`].

mod envoy;
mod sim;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use host_sim_cli::bootstrap::Bootstrap;
use host_sim_cli::stack::{EnvoyError, EnvoyLaunch, EnvoyProcess};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::http1::{self, Body, Message, Reader};
use crate::wait;

/// What runs the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Real Envoy.
    Envoy,
    /// `host-sim proxy`.
    Sim,
}

/// The program of a host.
struct Program {
    binary: PathBuf,
    /// In front of the flags that both hosts share.
    leading_arguments: Vec<String>,
}

impl Host {
    fn program(self) -> Program {
        match self {
            Host::Envoy => envoy::program(),
            Host::Sim => sim::program(),
        }
    }

    /// Takes out of a shipped bootstrap what this host does not have.
    pub fn adapt(self, bootstrap: &mut Bootstrap) {
        match self {
            Host::Envoy => {}
            Host::Sim => sim::adapt(bootstrap),
        }
    }

    /// The flags with which `host-sim up` runs the stack on this host.
    pub fn up_flags(self) -> Vec<String> {
        match self {
            Host::Envoy => envoy::up_flags(),
            Host::Sim => sim::up_flags(),
        }
    }
}

/// A running host with the gate in it. Dropping it kills the process.
pub struct Proxy {
    /// `None` once it was stopped.
    process: Option<EnvoyProcess>,
    admin: SocketAddr,
    listener: SocketAddr,
    log: PathBuf,
}

/// What a host is started with.
pub struct Launch<'a> {
    /// Which one.
    pub host: Host,
    /// Folder for its configuration, its log and its admin address.
    pub dir: &'a Path,
    /// Listener and admin interface stand at port 0.
    pub bootstrap: &'a Bootstrap,
    /// Worker threads.
    pub concurrency: u32,
    /// Value of `HOOP_SIDECAR_TOKEN`; `None` leaves it unset.
    pub token: Option<&'a str>,
}

/// A host that ended instead of serving.
#[derive(Debug)]
pub struct Refused {
    /// What the operator is told.
    pub error: EnvoyError,
    /// Everything that it wrote.
    pub log: String,
}

impl Proxy {
    /// Starts the host and waits until it serves, or until it has refused its configuration.
    pub async fn start(launch: Launch<'_>) -> Result<Proxy, Refused> {
        let token = launch.token.map(|token| ("HOOP_SIDECAR_TOKEN", token));
        let environment = token.into_iter();
        let program = launch.host.program();
        let settings = EnvoyLaunch {
            binary: program.binary,
            leading_arguments: program.leading_arguments,
            exec_child: None,
            directory: launch.dir.to_owned(),
            environment: environment
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            concurrency: Some(launch.concurrency),
            arguments: vec!["--component-log-level".to_owned(), "wasm:debug".to_owned()],
            log_level: "warning".to_owned(),
        };
        let mut process =
            EnvoyProcess::spawn(&settings, launch.bootstrap).expect("the host can be started");
        let log = process.log().to_owned();
        if let Err(error) = process.wait_until_ready(wait::PATIENCE).await {
            let log = read(&log);
            return Err(Refused { error, log });
        }
        let name = launch.bootstrap.listener_name();
        let name = name.expect("a bootstrap with a gate");
        let listener = process.listener_address(&name).await;
        Ok(Proxy {
            admin: process.admin().expect("a ready host has told it"),
            listener: listener.expect("the gate's listener"),
            log,
            process: Some(process),
        })
    }

    /// Where the gate's listener listens.
    pub fn listener(&self) -> SocketAddr {
        self.listener
    }

    /// Everything that the host and the filter wrote so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// The value of a counter or gauge; 0 when the host has not made it yet.
    pub async fn stat(&self, name: &str) -> u64 {
        let found = admin_get(self.admin, &format!("/stats?filter=^{name}$")).await;
        let found = found.map(|message| message.text()).unwrap_or_default();
        let value = found.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            (found == name).then(|| value.trim().parse().ok())?
        });
        value.unwrap_or(0)
    }

    /// How many requests are between client and upstream.
    pub async fn active_requests(&self) -> u64 {
        let gauges = [
            "http.billing_api.downstream_rq_active",
            "http.mcp.downstream_rq_active",
            "cluster.billing_upstream.upstream_rq_active",
        ];
        let mut active = 0;
        for gauge in gauges {
            active += self.stat(gauge).await;
        }
        active
    }

    /// The process, for what the system knows of it.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(EnvoyProcess::id)
    }

    /// What the admin interface answers under `target`.
    pub async fn admin(&self, target: &str) -> String {
        let message = admin_get(self.admin, target).await;
        message.expect("the admin interface").text()
    }

    /// Kills the host with SIGKILL, as a crash would.
    pub fn kill(&mut self) {
        drop(self.process.take());
    }

    /// Ends the host; its log is complete afterwards.
    pub async fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await.expect("the host can be ended");
        }
    }
}

/// Whether `host` accepts `bootstrap` in its validation mode, and what it wrote.
pub async fn validate(
    host: Host,
    dir: &Path,
    bootstrap: &Bootstrap,
    token: &str,
) -> (bool, String) {
    let file = dir.join("envoy.json");
    std::fs::write(&file, bootstrap.to_json()).expect("a file in the case's folder");
    let program = host.program();
    let output = Command::new(program.binary)
        .args(program.leading_arguments)
        .arg("--config-path")
        .arg(file)
        .args(["--mode", "validate", "--use-dynamic-base-id"])
        .env("HOOP_SIDECAR_TOKEN", token)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = wait::within("--mode validate", output)
        .await
        .expect("the host starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

async fn admin_get(admin: SocketAddr, target: &str) -> Option<Message> {
    use tokio::io::AsyncWriteExt;
    let mut stream = TcpStream::connect(admin).await.ok()?;
    let request = http1::request("GET", target, &[("connection", "close")], None);
    stream.write_all(&request).await.ok()?;
    Reader::new(stream).message(Body::AsResponse).await.ok()
}

fn read(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
