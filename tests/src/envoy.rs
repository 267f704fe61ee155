//! One Envoy process of a case: started on free ports, asked over its admin interface, ended by its id.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::binaries;
use crate::http1::{self, Body, Message, Reader};
use crate::wait;

/// A running Envoy. Dropping it kills the process.
pub struct Envoy {
    child: Child,
    admin: SocketAddr,
    listener: SocketAddr,
    log: PathBuf,
}

/// What an Envoy is started with.
pub struct Launch<'a> {
    /// Folder for its configuration, its log and its admin address.
    pub dir: &'a Path,
    /// Bootstrap as JSON. Listener and admin interface stand at port 0.
    pub bootstrap: &'a str,
    /// Worker threads.
    pub concurrency: u32,
    /// Value of `HOOP_SIDECAR_TOKEN`; `None` leaves it unset.
    pub token: Option<&'a str>,
}

/// An Envoy that ended instead of serving.
#[derive(Debug)]
pub struct Refused {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything that it wrote.
    pub log: String,
}

impl Envoy {
    /// Starts Envoy and waits until it serves, or until it has refused its configuration.
    pub async fn start(launch: Launch<'_>) -> Result<Envoy, Refused> {
        let admin_file = launch.dir.join("admin");
        let log = launch.dir.join("envoy.log");
        let mut child = spawn(&launch, &admin_file, &log);
        let ended = |status| Refused {
            status,
            log: read(&log),
        };
        let ready = wait::until("Envoy serves or ends", async || {
            if let Some(status) = child.try_wait().expect("a child process") {
                return Some(Err(ended(status)));
            }
            let admin: SocketAddr = read(&admin_file).parse().ok()?;
            let live = admin_get(admin, "/ready").await?;
            if live.text().trim() != "LIVE" {
                return None;
            }
            let listeners = admin_get(admin, "/listeners?format=json").await?;
            Some(Ok((admin, first_listener(&listeners)?)))
        });
        let (admin, listener) = ready.await?;
        Ok(Envoy {
            child,
            admin,
            listener,
            log,
        })
    }

    /// Where the gate's listener listens.
    pub fn listener(&self) -> SocketAddr {
        self.listener
    }

    /// Everything that Envoy and the filter wrote so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// The value of a counter or gauge; 0 when Envoy has not made it yet.
    pub async fn stat(&self, name: &str) -> u64 {
        let found = admin_get(self.admin, &format!("/stats?filter=^{name}$")).await;
        let found = found.map(|message| message.text()).unwrap_or_default();
        let value = found.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            (found == name).then(|| value.trim().parse().ok())?
        });
        value.unwrap_or(0)
    }

    /// What the admin interface answers under `target`.
    pub async fn admin(&self, target: &str) -> String {
        let message = admin_get(self.admin, target).await;
        message.expect("the admin interface").text()
    }

    /// Ends Envoy now.
    pub async fn kill(&mut self) {
        let _ended_already = self.child.kill().await;
    }
}

/// Whether Envoy accepts `bootstrap` in its validation mode, and what it wrote.
pub async fn validate(dir: &Path, bootstrap: &str, token: &str) -> (bool, String) {
    let file = write_bootstrap(dir, bootstrap);
    let output = Command::new(binaries::envoy())
        .arg("--config-path")
        .arg(file)
        .args(["--mode", "validate", "--use-dynamic-base-id"])
        .env("HOOP_SIDECAR_TOKEN", token)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = wait::within("envoy --mode validate", output)
        .await
        .expect("Envoy starts");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

fn spawn(launch: &Launch<'_>, admin_file: &Path, log: &Path) -> Child {
    let file = write_bootstrap(launch.dir, launch.bootstrap);
    let out = File::create(log).expect("a log file in the case's folder");
    let err = out.try_clone().expect("a second handle");
    let mut command = Command::new(binaries::envoy());
    command
        .arg("--config-path")
        .arg(file)
        .arg("--admin-address-path")
        .arg(admin_file)
        .arg("--concurrency")
        .arg(launch.concurrency.to_string())
        .args(["--use-dynamic-base-id", "--log-level", "warning"])
        .args(["--component-log-level", "wasm:debug"])
        .args(["--file-flush-interval-msec", "50"])
        .env_remove("HOOP_SIDECAR_TOKEN")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .kill_on_drop(true);
    if let Some(token) = launch.token {
        command.env("HOOP_SIDECAR_TOKEN", token);
    }
    command.spawn().expect("Envoy starts")
}

fn write_bootstrap(dir: &Path, bootstrap: &str) -> PathBuf {
    let file = dir.join("envoy.json");
    std::fs::write(&file, bootstrap).expect("a file in the case's folder");
    file
}

async fn admin_get(admin: SocketAddr, target: &str) -> Option<Message> {
    use tokio::io::AsyncWriteExt;
    let mut stream = TcpStream::connect(admin).await.ok()?;
    let request = http1::request("GET", target, &[("connection", "close")], None);
    stream.write_all(&request).await.ok()?;
    Reader::new(stream).message(Body::AsResponse).await.ok()
}

fn first_listener(listeners: &Message) -> Option<SocketAddr> {
    let document: serde_json::Value = serde_json::from_slice(&listeners.body).ok()?;
    let address = document.pointer("/listener_statuses/0/local_address/socket_address")?;
    let port = u16::try_from(address.get("port_value")?.as_u64()?).ok()?;
    let ip = address.get("address")?.as_str()?.parse().ok()?;
    Some(SocketAddr::new(ip, port))
}

fn read(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
