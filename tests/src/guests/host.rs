//! A host process: started on free ports with a bootstrap document, asked over its admin interface, ended by its id.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::wait;

/// A program that takes Envoy's flags.
pub struct Host {
    /// The program.
    pub program: PathBuf,
    /// Words before the flags, such as a subcommand.
    pub leading: Vec<&'static str>,
}

/// A running host. Dropping it kills the process.
pub struct Running {
    child: Child,
    log: PathBuf,
    admin: Option<SocketAddr>,
    /// Where clients connect; `None` when the host refused its configuration.
    pub listener: Option<SocketAddr>,
}

impl Host {
    /// Starts the host in `folder` and waits until it serves or has ended.
    pub fn start(&self, folder: &Path, bootstrap: &Value) -> Running {
        let config = folder.join("bootstrap.json");
        let log = folder.join("log");
        let admin = folder.join("admin");
        let text = serde_json::to_string_pretty(bootstrap).expect("JSON can be written");
        std::fs::write(&config, text).expect("the folder of the run");
        let output = File::create(&log).expect("the folder of the run");
        let child = Command::new(&self.program)
            .args(&self.leading)
            .arg("--config-path")
            .arg(&config)
            .arg("--admin-address-path")
            .arg(&admin)
            .args([
                "--use-dynamic-base-id",
                "--concurrency",
                "1",
                "--log-level",
                "warning",
            ])
            .args(["--component-log-level", "wasm:info"])
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("one more handle"))
            .stderr(output)
            .spawn()
            .expect("the host can be started");
        let mut running = Running {
            child,
            log,
            admin: None,
            listener: None,
        };
        running.wait_until_it_serves(&admin);
        running
    }
}

impl Running {
    /// Ends the process and hands back all that it wrote.
    pub fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        let mut kill = Command::new("kill");
        // It may have ended by itself.
        let _told = kill.arg(&pid).stderr(Stdio::null()).status();
        wait::blocking("the host ends", || {
            (!matches!(self.child.try_wait(), Ok(None))).then_some(())
        });
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn wait_until_it_serves(&mut self, admin: &Path) {
        wait::blocking("the host serves or ends", || {
            self.admin = address_in(admin);
            self.listener = self.admin.and_then(listener);
            let ended = !matches!(self.child.try_wait(), Ok(None));
            (ended || self.listener.is_some()).then_some(())
        });
    }

    /// Waits until the host has no request of a client in work.
    pub fn wait_until_let_go(&self) {
        self.wait_until_zero("downstream_rq_active");
    }

    /// Waits until the host has no request of a client and no call of its own in work.
    pub fn wait_until_idle(&self) {
        self.wait_until_zero("rq_active");
    }

    fn wait_until_zero(&self, gauges: &str) {
        let Some(admin) = self.admin else { return };
        wait::blocking(&format!("the host's {gauges} come down to 0"), || {
            let stats = ask(admin, &format!("/stats?filter={gauges}"))?;
            let mut active = stats
                .lines()
                .filter(|line| line.contains("rq_active: ") && !line.starts_with("http.admin."));
            active.all(|line| line.ends_with(": 0")).then_some(())
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn address_in(file: &Path) -> Option<SocketAddr> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The listener's address once the host is live.
fn listener(admin: SocketAddr) -> Option<SocketAddr> {
    if !ask(admin, "/ready")?.contains("LIVE") {
        return None;
    }
    let answer = ask(admin, "/listeners?format=json")?;
    let document: Value =
        serde_json::from_str(answer.get(answer.find('{')?..=answer.rfind('}')?)?).ok()?;
    let address = &document["listener_statuses"][0]["local_address"]["socket_address"];
    format!("{}:{}", address["address"].as_str()?, address["port_value"])
        .parse()
        .ok()
}

fn ask(admin: SocketAddr, target: &str) -> Option<String> {
    let mut stream = TcpStream::connect(admin).ok()?;
    stream.set_read_timeout(Some(wait::PATIENCE)).ok()?;
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
