//! One scene: agent, host with the gate, plane and upstream, for one case.
//!
//! A case ends with [`Scene::finish`], which checks what must hold whatever the case is about: the number of requests that
//! the upstream got, no crash in the gate, no secret in an answer or a log. A failing case prints the whole scene.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use host_sim_cli::bootstrap::Bootstrap;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::client::h2::H2Connection;
use crate::client::{Answer, Answers, Connection, curl};
use crate::host::{Host, Launch, Proxy, Refused};
use crate::lying_plane::LyingPlane;
use crate::real_plane::RealPlane;
use crate::report::Report;
use crate::upstream::Upstream;
use crate::{binaries, faulty_module, http1, policy, wait};

/// What stands where the Control Plane should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneKind {
    /// A [`LyingPlane`].
    Lying,
    /// `host-sim plane`.
    Real,
    /// The same on a clock that the case moves.
    Clocked,
}

/// A change of the bootstrap document.
type Edit = Box<dyn FnOnce(&mut Value)>;

/// What a lying plane is told before the host starts.
type Script = Box<dyn FnOnce(&LyingPlane)>;

/// How a scene is built.
pub struct SceneBuilder {
    host: Host,
    policy: Value,
    plane: PlaneKind,
    plane_yaml: &'static str,
    concurrency: u32,
    token: Option<String>,
    edits: Vec<Edit>,
    scripts: Vec<Script>,
    crashing_answer: Option<u32>,
    serves_tools: bool,
}

/// A running scene.
pub struct Scene {
    /// The process with the gate.
    pub proxy: Proxy,
    /// The service behind the gate.
    pub upstream: Upstream,
    /// A word that no other scene uses. Put it into bodies: it must never come back in an answer or a log.
    pub marker: String,
    host: Host,
    plane: Plane,
    policy: String,
    bootstrap: Bootstrap,
    answers: Answers,
    token: String,
    dir: Folder,
    crashing: bool,
    finished: bool,
    _turn: SemaphorePermit<'static>,
}

enum Plane {
    Lying(LyingPlane),
    Real(RealPlane),
}

impl Scene {
    /// A scene with the shipped policy, a real plane and one worker.
    pub fn real(host: Host) -> SceneBuilder {
        SceneBuilder::new(host, PlaneKind::Real)
    }

    /// [`Scene::real`] with a plane whose time limits pass when the case says so.
    pub fn clocked(host: Host) -> SceneBuilder {
        SceneBuilder::new(host, PlaneKind::Clocked)
    }

    /// A scene with the shipped policy, a lying plane and one worker.
    pub fn lying(host: Host) -> SceneBuilder {
        SceneBuilder::new(host, PlaneKind::Lying)
    }

    /// A scene with this policy whose plane files as `id` and lists it as pending.
    pub async fn undecided(host: Host, policy: Value, id: &str) -> Scene {
        let scene = Scene::lying(host).policy(policy).start().await;
        scene.lies().undecided(id);
        scene
    }

    /// Where agents connect.
    pub fn address(&self) -> SocketAddr {
        self.proxy.listener()
    }

    /// The lying plane of this scene.
    pub fn lies(&self) -> &LyingPlane {
        match &self.plane {
            Plane::Lying(plane) => plane,
            Plane::Real(_) => panic!("this scene has a real plane"),
        }
    }

    /// The real plane of this scene.
    pub fn plane(&self) -> &RealPlane {
        match &self.plane {
            Plane::Real(plane) => plane,
            Plane::Lying(_) => panic!("this scene has a lying plane"),
        }
    }

    /// The real plane of this scene, to stop or restart it.
    pub fn plane_mut(&mut self) -> &mut RealPlane {
        match &mut self.plane {
            Plane::Real(plane) => plane,
            Plane::Lying(_) => panic!("this scene has a lying plane"),
        }
    }

    /// Another host with the same configuration: a replica, with the same plane and the same upstream.
    pub async fn replica(&self) -> Proxy {
        let dir = self.dir.path().join("replica");
        std::fs::create_dir_all(&dir).expect("a folder in the case's folder");
        let launch = Launch {
            host: self.host,
            dir: &dir,
            bootstrap: &self.bootstrap,
            concurrency: 2,
            token: Some(&self.token),
        };
        Proxy::start(launch).await.expect("a second host")
    }

    /// A new HTTP/1.1 connection to `proxy`, one of this scene.
    pub async fn connect_to(&self, proxy: &Proxy) -> Connection {
        Connection::open(proxy.listener(), self.answers.clone()).await
    }

    /// Asserts that neither the sidecar token nor a statement's body stands in `text`, which `what` wrote.
    pub fn assert_discreet(&self, what: &str, text: &str) {
        for secret in [&self.token, &self.marker] {
            assert!(!text.contains(secret.as_str()), "a secret in {what}");
        }
    }

    /// A new HTTP/1.1 connection to the gate.
    pub async fn connect(&self) -> Connection {
        Connection::open(self.address(), self.answers.clone()).await
    }

    /// A new HTTP/2 connection to the gate.
    pub async fn connect_h2(&self) -> H2Connection {
        H2Connection::open(self.address(), self.answers.clone()).await
    }

    /// Where every exchange is noted, for clients that a case brings itself.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Sends `request` on a connection of its own.
    pub async fn send(&self, request: &[u8]) -> Answer {
        self.connect().await.send(request).await
    }

    /// Sends a POST with `body` on a connection of its own.
    pub async fn post(&self, target: &str, body: &[u8]) -> Answer {
        self.send(&http1::request("POST", target, &[], Some(body)))
            .await
    }

    /// Sends a GET on a connection of its own.
    pub async fn get(&self, target: &str) -> Answer {
        self.send(&http1::request("GET", target, &[], None)).await
    }

    /// Runs curl against `target` with more `arguments`.
    pub async fn curl(&self, target: &str, arguments: &[&str]) -> Answer {
        let url = format!("http://{}{target}", self.address());
        let mut all = vec!["--path-as-is"];
        all.extend_from_slice(arguments);
        all.push(&url);
        let request = format!("curl {}", all.join(" "));
        let answer = curl::run(&all).await;
        let answer = answer.unwrap_or_else(|| panic!("no answer to {request}"));
        self.answers.note(request, &answer);
        answer
    }

    /// A JSON body that holds this scene's marker.
    pub fn body(&self) -> Vec<u8> {
        format!("{{\"amount\":100,\"memo\":\"{}\"}}", self.marker).into_bytes()
    }

    /// Checks what must hold in every case. `upstream_requests` is how many requests reached the upstream in all.
    pub async fn finish(mut self, upstream_requests: usize) {
        wait::until("the requests that the upstream got are known", async || {
            (self.upstream.requests().len() == upstream_requests).then_some(())
        })
        .await;
        self.idle().await;
        assert_eq!(
            self.upstream.requests().len(),
            upstream_requests,
            "requests that reached the upstream"
        );
        if upstream_requests == 0 {
            assert_eq!(
                (self.upstream.connections(), self.upstream.bytes()),
                (0, 0),
                "connections and bytes at the socket of an upstream that should have seen nothing"
            );
        }
        self.check_answers();
        self.proxy.stop().await;
        self.check_log();
        self.finished = true;
    }

    /// Waits until the host holds no request any more, so that whatever it was to send has been sent.
    pub async fn idle(&self) {
        wait::until("the host has ended every request", async || {
            (self.proxy.active_requests().await == 0).then_some(())
        })
        .await;
    }

    /// The value of one of the gate's counters, named without prefix and suffix.
    pub async fn counter(&self, name: &str) -> u64 {
        let name = format!("wasmcustom.hoop_filter_{name}_total");
        self.proxy.stat(&name).await
    }

    /// Waits until one of the gate's counters has come to `value`.
    pub async fn until_counter(&self, name: &str, value: u64) {
        let what = format!("the counter {name} is {value}");
        wait::until(&what, async || {
            (self.counter(name).await == value).then_some(())
        })
        .await;
    }

    /// Waits until the gate holds so many requests.
    pub async fn until_held(&self, count: u64) {
        let gauge = "wasmcustom.hoop_filter_requests_held";
        wait::until(&format!("{count} requests are held"), async || {
            (self.proxy.stat(gauge).await == count).then_some(())
        })
        .await;
    }

    /// Waits until the log of the host has a line that holds each of `parts`, and gives it.
    pub async fn until_logged(&self, parts: &[&str]) -> String {
        wait::until(&format!("a log line with {parts:?}"), async || {
            let log = self.proxy.log();
            let mut lines = log.lines();
            let line = lines.find(|line| parts.iter().all(|part| line.contains(part)))?;
            Some(line.to_owned())
        })
        .await
    }

    /// Begins to send a POST with `body` on a connection of its own, for an answer that is to come later.
    pub async fn begin(&self, target: &str, body: &[u8]) -> Connection {
        let mut connection = self.connect().await;
        let request = http1::request("POST", target, &[], Some(body));
        connection.write(&request).await;
        connection
    }

    fn check_answers(&self) {
        let plane = match &self.plane {
            Plane::Lying(plane) => plane.address(),
            Plane::Real(plane) => plane.address(),
        };
        let secrets = [
            ("the sidecar token", self.token.clone()),
            ("the plane's address", plane.to_string()),
            ("the plane's port", format!(":{}", plane.port())),
            ("the plane's cluster", "control_plane".to_owned()),
            ("a statement's body", self.marker.clone()),
        ];
        for (request, answer) in self.answers.all() {
            let shown = answer.to_string();
            for (what, secret) in &secrets {
                assert!(
                    !shown.contains(secret.as_str()),
                    "{what} in the answer to {request}\n{shown}"
                );
            }
        }
    }

    fn check_log(&self) {
        let log = self.proxy.log();
        self.assert_discreet("the host's log", &log);
        let crash = |line: &&str| CRASHES.iter().any(|sign| line.contains(sign));
        let crashed = log.lines().find(crash);
        if self.crashing {
            assert!(crashed.is_some(), "the gate was to crash and did not");
        } else {
            assert_eq!(crashed, None, "the gate crashed");
        }
    }

    fn report(&self) -> String {
        let (calls, plane_log) = match &self.plane {
            Plane::Lying(plane) => (plane.calls(), String::new()),
            Plane::Real(plane) => (Vec::new(), plane.log()),
        };
        let report = Report {
            policy: &self.policy,
            exchanges: &self.answers.all(),
            upstream: &self.upstream.requests(),
            plane: &calls,
            plane_log: &plane_log,
            host_log: &self.proxy.log(),
        };
        report.to_string()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.report());
        } else {
            assert!(self.finished, "a case has to end with Scene::finish");
        }
    }
}

impl SceneBuilder {
    fn new(host: Host, plane: PlaneKind) -> SceneBuilder {
        SceneBuilder {
            host,
            policy: policy::shipped(),
            plane,
            plane_yaml: "",
            concurrency: 1,
            token: None,
            edits: Vec::new(),
            scripts: Vec::new(),
            crashing_answer: None,
            serves_tools: false,
        }
    }

    /// Lets the host serve the approval tools as `envoy/mcp.yaml` does, in the place of the gate of `envoy/envoy.yaml`.
    pub fn serving_tools(mut self) -> SceneBuilder {
        self.policy = policy::tools();
        self.serves_tools = true;
        self
    }

    /// Has the gate crash on each answer of its plane whose body is `length` bytes long.
    pub fn crashing_on_answers_of(mut self, length: u32) -> SceneBuilder {
        self.crashing_answer = Some(length);
        self
    }

    /// Scripts a lying plane before the host starts, for what a gate asks by itself.
    pub fn script(mut self, script: impl FnOnce(&LyingPlane) + 'static) -> SceneBuilder {
        self.scripts.push(Box::new(script));
        self
    }

    /// Replaces the plugin configuration. The plane's authority in it becomes the address of this scene's plane.
    pub fn policy(mut self, policy: Value) -> SceneBuilder {
        self.policy = policy;
        self
    }

    /// Adds lines to the `plane.yaml` of a real plane.
    pub fn plane_yaml(mut self, lines: &'static str) -> SceneBuilder {
        self.plane_yaml = lines;
        self
    }

    /// Starts the host with so many workers.
    pub fn workers(mut self, concurrency: u32) -> SceneBuilder {
        self.concurrency = concurrency;
        self
    }

    /// Gives the gate this sidecar token instead of one of its own, which a real plane would not take.
    pub fn token(mut self, token: &str) -> SceneBuilder {
        self.token = Some(token.to_owned());
        self
    }

    /// Changes the bootstrap document once everything else is in it.
    pub fn edit(mut self, change: impl FnOnce(&mut Value) + 'static) -> SceneBuilder {
        self.edits.push(Box::new(change));
        self
    }

    /// Changes the HTTP connection manager of the gate's listener.
    pub fn edit_manager(self, change: impl FnOnce(&mut Value) + 'static) -> SceneBuilder {
        self.edit(|document| {
            let manager = document.pointer_mut(MANAGER);
            change(manager.expect("the connection manager of envoy/envoy.yaml"));
        })
    }

    /// Starts everything.
    pub async fn start(self) -> Scene {
        let turn = TURNS.acquire().await.expect("never closed");
        let dir = Folder::create();
        let (plane, token) = match self.plane {
            PlaneKind::Lying => {
                let own = || format!("hsc_{}_{}", "T".repeat(40), dir.name());
                let token = self.token.unwrap_or_else(own);
                let plane = LyingPlane::start().await;
                for script in self.scripts {
                    script(&plane);
                }
                (Plane::Lying(plane), token)
            }
            PlaneKind::Real | PlaneKind::Clocked => {
                let (dir, more) = (dir.path(), self.plane_yaml);
                let plane = if self.plane == PlaneKind::Real {
                    RealPlane::start(dir, more).await
                } else {
                    RealPlane::start_on_a_clock(dir, more).await
                };
                let token = plane.sidecar_token();
                (Plane::Real(plane), token)
            }
        };
        let plane_address = match &plane {
            Plane::Lying(plane) => plane.address(),
            Plane::Real(plane) => plane.address(),
        };
        let upstream = Upstream::start().await;
        let mut policy = self.policy;
        if let Some(authority) = policy.pointer_mut("/control_plane/authority") {
            *authority = plane_address.to_string().into();
        }
        let module = self
            .crashing_answer
            .map_or_else(binaries::filter_module, |length| {
                let module = std::fs::read(binaries::filter_module()).expect("the filter's module");
                let file = dir.path().join("crashing.wasm");
                let module = faulty_module::trapping_on_answers_of(length, &module);
                std::fs::write(&file, module).expect("a file in the case's folder");
                file
            });
        let shipped = if self.serves_tools {
            Bootstrap::shipped_mcp().expect("envoy/mcp.yaml")
        } else {
            let mut shipped = Bootstrap::shipped().expect("envoy/envoy.yaml");
            let pointed = shipped.set_cluster("billing_upstream", upstream.address());
            pointed.expect("the upstream of envoy/envoy.yaml");
            shipped
        };
        let mut bootstrap = bootstrap(shipped, &policy, plane_address, self.edits);
        let module = bootstrap.set_wasm_module(&module);
        module.expect("the place of the module in envoy/envoy.yaml");
        let launch = Launch {
            host: self.host,
            dir: dir.path(),
            bootstrap: &bootstrap,
            concurrency: self.concurrency,
            token: Some(&token),
        };
        let policy = format!("{policy:#}");
        let proxy = match Proxy::start(launch).await {
            Ok(proxy) => proxy,
            Err(Refused { error, log }) => {
                panic!("{error}\n--- plugin configuration\n{policy}\n{log}")
            }
        };
        Scene {
            proxy,
            host: self.host,
            upstream,
            marker: format!("memo-{}-only-for-the-upstream", dir.name()),
            plane,
            policy,
            bootstrap,
            answers: Answers::default(),
            token,
            dir,
            crashing: self.crashing_answer.is_some(),
            finished: false,
            _turn: turn,
        }
    }
}

fn bootstrap(
    mut bootstrap: Bootstrap,
    policy: &Value,
    plane: SocketAddr,
    edits: Vec<Edit>,
) -> Bootstrap {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let edited = bootstrap
        .set_admin(any_port)
        .and_then(|bootstrap| bootstrap.set_listener(any_port))
        .and_then(|bootstrap| bootstrap.set_cluster("control_plane", plane))
        .and_then(|bootstrap| bootstrap.set_plugin_configuration(policy));
    edited.expect("the places of the shipped file");
    for edit in edits {
        bootstrap.edit(edit);
    }
    bootstrap
}

/// A temporary folder, gone when the case has passed and kept when it failed.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder that no other case uses.
    pub fn create() -> Folder {
        let number = NEXT_FOLDER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hoop-tests-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _left_by_an_older_run = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- kept: {}", self.0.display());
        } else {
            let _may_be_gone = std::fs::remove_dir_all(&self.0);
        }
    }
}

static NEXT_FOLDER: AtomicU32 = AtomicU32::new(0);
/// Bounds how many scenes run at once: each is a host with its own engine.
static TURNS: Semaphore = Semaphore::const_new(4);

const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
const CRASHES: [&str; 5] = [
    "panicked",
    "failed: Uncaught",
    "wasm vm failed",
    "VM failed",
    "[critical][wasm]",
];
