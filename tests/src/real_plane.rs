//! The local Control Plane as a process of its own: `host-sim plane`, and the people who decide with `host-sim approvals`. For cases
//! about its time limits it runs within the case.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use host_sim_plane::{Clock, ManualClock, Plane, PlaneConfig, SystemClock};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::{binaries, policy, wait};

/// A running plane with its own data directory. Dropping it ends the plane.
pub struct RealPlane {
    serving: Serving,
    address: SocketAddr,
    dir: PathBuf,
}

/// How a plane runs.
enum Serving {
    /// The command `host-sim plane`, as for users.
    Process(Child),
    /// The same plane within the case, on a clock that the case moves.
    Clocked(Arc<ManualClock>),
}

impl RealPlane {
    /// Starts the plane on a free port, with the demo's listener and approval rule and `more` lines of `plane.yaml`.
    pub async fn start(dir: &Path, more: &str) -> RealPlane {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let config = format!("{CONFIG}{more}");
        std::fs::write(dir.join("plane.yaml"), config).expect("a file in the case's folder");
        let serving = Serving::Process(spawn(dir, address));
        let mut plane = RealPlane {
            serving,
            address,
            dir: dir.to_owned(),
        };
        plane.ready().await;
        plane
    }

    /// The same plane within the case, so that its time limits are over when [`RealPlane::advance_sec`] says so. It lives as
    /// long as the runtime of the case.
    pub async fn start_on_a_clock(dir: &Path, more: &str) -> RealPlane {
        let config = format!("{CONFIG}{more}");
        let config = PlaneConfig::parse(&config, "plane.yaml").expect("a configuration");
        let now = SystemClock.now();
        let clock = Arc::new(ManualClock::new(now));
        let plane = Plane::open_with_clock(dir, config, clock.clone()).await;
        let plane = plane.expect("a plane in the case's folder");
        let any_port = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = any_port.expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        tokio::spawn(async move { plane.serve(listener, std::future::pending()).await });
        RealPlane {
            serving: Serving::Clocked(clock),
            address,
            dir: dir.to_owned(),
        }
    }

    /// Moves the clock of a plane that was started on one.
    pub fn advance_sec(&self, seconds: u32) {
        match &self.serving {
            Serving::Clocked(clock) => clock.advance_sec(seconds),
            Serving::Process(_) => panic!("this plane goes by the machine's clock"),
        }
    }

    fn child(&mut self) -> &mut Child {
        match &mut self.serving {
            Serving::Process(child) => child,
            Serving::Clocked(_) => panic!("this plane is no process"),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The sidecar token that this plane made.
    pub fn sidecar_token(&self) -> String {
        self.token("sidecar-token")
    }

    /// Kills the process with SIGKILL, as a crash would.
    pub async fn kill(&mut self) {
        self.child().kill().await.expect("the plane was running");
    }

    /// Starts it again on the same port and the same data.
    pub async fn restart(&mut self) {
        self.serving = Serving::Process(spawn(&self.dir, self.address));
        self.ready().await;
    }

    /// What a person says yes to with `host-sim approvals approve`.
    pub async fn approve(&self, id: &str) {
        self.decide(&["approve", id]).await;
    }

    /// What a person says no to with `host-sim approvals reject`.
    pub async fn reject(&self, id: &str, reason: &str) {
        self.decide(&["reject", id, "--reason", reason]).await;
    }

    /// Takes an unused approval back.
    pub async fn revoke(&self, id: &str) {
        self.decide(&["revoke", id]).await;
    }

    /// Decides over the people's API, as the desk and any script would; gives the status code.
    pub async fn decide_over_http(&self, id: &str, decision: &Value) -> u16 {
        let request = client()
            .put(format!("http://{}/api/reviews/{id}", self.address))
            .bearer_auth(self.token("approver-token"))
            .json(decision);
        let response = request.send().await.expect("the plane answers");
        response.status().as_u16()
    }

    /// One row with its statement as people see it.
    pub async fn dossier(&self, id: &str) -> Value {
        let request = client()
            .get(format!("http://{}/api/reviews/{id}", self.address))
            .bearer_auth(self.token("approver-token"));
        let response = request.send().await.expect("the plane answers");
        response.json().await.expect("JSON from the plane")
    }

    /// What the plane knows of the gate that reports to it.
    pub async fn sidecar(&self) -> Value {
        let request = client()
            .get(format!("http://{}/api/sidecars", self.address))
            .bearer_auth(self.token("approver-token"));
        let response = request.send().await.expect("the plane answers");
        let all: Value = response.json().await.expect("JSON from the plane");
        all[0].clone()
    }

    /// Every row as the Sidecar API lists it, newest first.
    pub async fn rows(&self) -> Vec<Value> {
        let rows = self.get("/api/sidecars/reviews?limit=200").await;
        rows.as_array().expect("a list").clone()
    }

    /// One row as the Sidecar API reads it.
    pub async fn row(&self, id: &str) -> Value {
        self.get(&format!("/api/sidecars/reviews/{id}")).await
    }

    /// The id under which a statement waits for its decision, found by filing it once more: that gives the live one.
    pub async fn id_of(&self, statement: &[u8]) -> String {
        self.filed(statement, 200).await
    }

    /// Files a statement as a gate would, and gives the id under which it waits.
    pub async fn file(&self, statement: &[u8]) -> String {
        self.filed(statement, 201).await
    }

    async fn filed(&self, statement: &[u8], status: u16) -> String {
        let filing = serde_json::json!({
            "listener_name": policy::LISTENER,
            "approval_rule": policy::APPROVAL_RULE,
            "payload": STANDARD.encode(statement),
        });
        let request = client()
            .post(format!("http://{}/api/sidecars/reviews", self.address))
            .header("hoop-sidecar-token", self.sidecar_token())
            .json(&filing);
        let response = request.send().await.expect("the plane answers");
        assert_eq!(response.status(), status, "whether it was filed before");
        let document: Value = response.json().await.expect("JSON from the plane");
        let id = document["review"]["id"].as_str().expect("an id");
        id.to_owned()
    }

    /// Everything that the process wrote so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.dir.join("plane.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn get(&self, target: &str) -> Value {
        let request = client()
            .get(format!("http://{}{target}", self.address))
            .header("hoop-sidecar-token", self.sidecar_token());
        let response = request.send().await.expect("the plane answers");
        assert_eq!(response.status(), 200, "GET {target}");
        response.json().await.expect("JSON from the plane")
    }

    async fn decide(&self, arguments: &[&str]) {
        let output = self.approvals(arguments).await;
        assert!(
            output.status.success(),
            "host-sim approvals {arguments:?}: {output:?}"
        );
    }

    /// Runs `host-sim approvals` against this plane.
    pub async fn approvals(&self, arguments: &[&str]) -> Output {
        let output = Command::new(binaries::host_sim())
            .arg("approvals")
            .args(arguments)
            .arg("--plane")
            .arg(format!("http://{}", self.address))
            .arg("--data-dir")
            .arg(&self.dir)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        wait::within("host-sim approvals", output)
            .await
            .expect("host-sim starts")
    }

    async fn ready(&mut self) {
        let token = self.dir.join("sidecar-token");
        wait::until("the plane listens", async || {
            if let Some(status) = self.child().try_wait().expect("a child process") {
                panic!("host-sim plane ended with {status}: {}", self.log());
            }
            TcpStream::connect(self.address).await.ok()?;
            token.is_file().then_some(())
        })
        .await;
    }

    fn token(&self, file: &str) -> String {
        let token = std::fs::read_to_string(self.dir.join(file)).expect("a token file");
        token.trim().to_owned()
    }
}

fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy();
    builder.build().expect("a client")
}

fn spawn(dir: &Path, address: SocketAddr) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(dir.join("plane.log"));
    let out = log.expect("a log file in the case's folder");
    let err = out.try_clone().expect("a second handle");
    Command::new(binaries::host_sim())
        .arg("plane")
        .arg("--listen")
        .arg(address.to_string())
        .arg("--data-dir")
        .arg(dir)
        .arg("--config")
        .arg(dir.join("plane.yaml"))
        .env_remove("HOOP_SIDECAR_TOKEN")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .kill_on_drop(true)
        .spawn()
        .expect("host-sim starts")
}

/// A loopback port that is free now and that no outgoing connection takes by chance: below the system's ephemeral range.
/// For processes that have to keep a port over a restart or take it as a flag; everything else listens on port 0.
pub fn free_port() -> u16 {
    let mut tries = 0;
    loop {
        let step = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
        let start = u16::try_from(std::process::id() % 900).unwrap_or(0) * 10;
        let port = 20_000 + (start + step) % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
        tries += 1;
        assert!(tries < 10_000, "no free port below the ephemeral range");
    }
}

static NEXT_PORT: AtomicU16 = AtomicU16::new(0);

const CONFIG: &str = "\
listeners:
  - name: billing-api
    approval_rules: [billing-approvers]
approval_rules:
  - name: billing-approvers
    reviewers: [alice@example.com]
    pending_ttl_sec: 1800
    approval_ttl_sec: 600
";
