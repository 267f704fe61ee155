//! Owns the scene of every case: a plane on a directory of its own, a clock that is moved by hand, and what must hold of
//! every answer and of the log. The cases drive it. It must not know any case.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderValue, Method, Request, StatusCode},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use host_sim_plane::{Clock, ManualClock, Plane, PlaneConfig, Timestamp};
use serde_json::{Value, json};
use tower::ServiceExt;

pub const LANE: &str = "billing-api";
pub const RULE: &str = "billing-approvers";
pub const UNLIMITED: &str = "ops-approvers";

pub const PENDING_TTL: u32 = 100;
pub const APPROVAL_TTL: u32 = 60;

pub const PROCESSING_TTL: u32 = 90;

pub const CONFIG: &str = "
processing_ttl_sec: 90
listeners:
  - name: billing-api
    approval_rules: [billing-approvers, ops-approvers]
  - name: other-api
    approval_rules: [billing-approvers]
approval_rules:
  - name: billing-approvers
    reviewers: [billing, finance]
    pending_ttl_sec: 100
    approval_ttl_sec: 60
  - name: ops-approvers
    reviewers: [ops]
  - name: lonely
    reviewers: [ops]
";

/// Every statement of every case begins so, and no log may show it, nor its base64.
pub const MARK: &str = "DELETE /marker-7f3a";

pub fn statement(name: &str) -> Vec<u8> {
    format!("{MARK}/{name}").into_bytes()
}

pub struct Scene {
    pub plane: Plane,
    pub router: Router,
    pub clock: Arc<ManualClock>,
    pub dir: PathBuf,
    config: String,
}

impl Scene {
    pub async fn new() -> Self {
        Self::configured("").await
    }

    pub async fn at(dir: PathBuf, now: Timestamp) -> Self {
        Self::with(dir, now, CONFIG.to_owned()).await
    }

    /// A plane with more lines in its configuration.
    pub async fn configured(lines: &str) -> Self {
        let name = uuid::Uuid::new_v4().simple();
        let dir = std::env::temp_dir().join(format!("plane-{name}"));
        let now = Timestamp::from_unix_sec(1_700_000_000);
        Self::with(dir, now, format!("{CONFIG}{lines}")).await
    }

    /// Another plane on the same data.
    pub async fn beside(&self) -> Self {
        Self::with(self.dir.clone(), self.clock.now(), self.config.clone()).await
    }

    async fn with(dir: PathBuf, now: Timestamp, config: String) -> Self {
        log();
        let clock = Arc::new(ManualClock::new(now));
        let plane = open_with(&dir, clock.clone(), &config).await;
        Self {
            router: plane.router(),
            plane,
            clock,
            dir,
            config,
        }
    }

    /// The same plane after a stop and a start.
    pub async fn restart(&mut self) {
        self.plane.close().await;
        self.plane = open_with(&self.dir, self.clock.clone(), &self.config).await;
        self.router = self.plane.router();
    }

    pub fn sidecar(&self) -> (&'static str, String) {
        (
            "hoop-sidecar-token",
            self.plane.sidecar_token().expose().to_owned(),
        )
    }

    pub fn approver(&self) -> (&'static str, String) {
        (
            "authorization",
            format!("Bearer {}", self.plane.approver_token().expose()),
        )
    }

    /// Sends a request and checks what holds of every answer of a route.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: impl Into<Body>,
    ) -> Answer {
        let (status, kind, text) = self.send_plain(method, path, headers, body).await;
        assert_eq!(kind, "application/json", "{path}: {text}");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        // What a gate must know to settle stands beside a release that is settled, and nowhere else.
        let in_flight = json["forward"] == true && json["review"]["status"] == "PROCESSING";
        assert_eq!(in_flight, json["release_id"].is_string(), "{path}: {text}");
        assert_eq!(
            status.is_success(),
            json.get("message").is_none(),
            "{path}: {text}"
        );
        assert!(
            status.is_success() || json["message"].is_string(),
            "{path}: {text}"
        );
        Answer { status, json }
    }

    /// Sends a request; the answer's status, content type and text, which shows no token.
    pub async fn send_plain(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: impl Into<Body>,
    ) -> (StatusCode, HeaderValue, String) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(body.into()).expect("a request");
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("infallible");
        let status = response.status();
        let kind = response.headers().get("content-type").cloned();
        let bytes = to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        assert!(
            !text.contains(self.plane.sidecar_token().expose()),
            "{path} shows a token"
        );
        assert!(
            !text.contains(self.plane.approver_token().expose()),
            "{path} shows a token"
        );
        (status, kind.expect("a content type"), text)
    }

    pub async fn post(&self, body: &Value) -> Answer {
        self.send(
            Method::POST,
            "/api/sidecars/reviews",
            &[self.sidecar()],
            body.to_string(),
        )
        .await
    }

    pub async fn file(&self, statement: &[u8]) -> Answer {
        self.post(&filing(LANE, RULE, statement)).await
    }

    pub async fn file_unlimited(&self, statement: &[u8]) -> Answer {
        self.post(&filing(LANE, UNLIMITED, statement)).await
    }

    pub async fn claim(&self, id: &str) -> Answer {
        let path = format!("/api/sidecars/reviews/{id}/claim");
        self.send(Method::POST, &path, &[self.sidecar()], Body::empty())
            .await
    }

    /// A filing that lets the upstream's answer spend the approval.
    pub async fn file_accepted(&self, statement: &[u8]) -> Answer {
        let mut body = filing(LANE, RULE, statement);
        body["spend_on"] = json!("accepted");
        self.post(&body).await
    }

    pub async fn claim_with(&self, id: &str, body: impl Into<Body>) -> Answer {
        let path = format!("/api/sidecars/reviews/{id}/claim");
        self.send(Method::POST, &path, &[self.sidecar()], body)
            .await
    }

    /// A claim that lets the upstream's answer spend the approval.
    pub async fn claim_accepted(&self, id: &str) -> Answer {
        self.claim_with(id, r#"{"spend_on":"accepted"}"#).await
    }

    pub async fn settle_with(&self, id: &str, body: &Value) -> Answer {
        let path = format!("/api/sidecars/reviews/{id}/settle");
        self.send(Method::POST, &path, &[self.sidecar()], body.to_string())
            .await
    }

    /// The upstream's word on one release, or without one on whatever is in flight.
    pub async fn settle(&self, id: &str, outcome: &str, release_id: Option<&str>) -> Answer {
        let mut body = json!({ "outcome": outcome });
        if let Some(release_id) = release_id {
            body["release_id"] = json!(release_id);
        }
        self.settle_with(id, &body).await
    }

    pub async fn read(&self, id: &str) -> Answer {
        let path = format!("/api/sidecars/reviews/{id}");
        self.send(Method::GET, &path, &[self.sidecar()], Body::empty())
            .await
    }

    pub async fn list(&self, query: &str) -> Answer {
        let path = format!("/api/sidecars/reviews{query}");
        self.send(Method::GET, &path, &[self.sidecar()], Body::empty())
            .await
    }

    pub async fn put(&self, id: &str, body: &Value) -> Answer {
        let path = format!("/api/reviews/{id}");
        self.send(Method::PUT, &path, &[self.approver()], body.to_string())
            .await
    }

    pub async fn decide(&self, id: &str, status: &str) -> Answer {
        self.put(id, &json!({ "status": status })).await
    }

    pub async fn people(&self, path: &str) -> Answer {
        self.send(
            Method::GET,
            &format!("/api/reviews{path}"),
            &[self.approver()],
            Body::empty(),
        )
        .await
    }

    /// Files a statement and approves it.
    pub async fn approved(&self, statement: &[u8]) -> String {
        let id = self.file(statement).await.id();
        self.decide(&id, "APPROVED").await.is(StatusCode::OK);
        id
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let logged = String::from_utf8_lossy(&log().lock().expect("the log")).into_owned();
        for secret in [
            self.plane.sidecar_token().expose(),
            self.plane.approver_token().expose(),
            MARK,
            &STANDARD.encode(&MARK.as_bytes()[..18]),
        ] {
            assert!(!logged.contains(secret), "the log shows a secret");
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub json: Value,
}

impl Answer {
    #[track_caller]
    pub fn is(self, status: StatusCode) -> Self {
        assert_eq!(self.status, status, "{}", self.json);
        self
    }

    /// An error with exactly this message.
    #[track_caller]
    pub fn says(self, status: StatusCode, message: &str) {
        assert_eq!(
            (self.status, self.json["message"].as_str()),
            (status, Some(message))
        );
    }

    /// Whether it releases, and how the review stands.
    #[track_caller]
    pub fn asked(&self) -> (bool, &str) {
        (
            self.json["forward"].as_bool().expect("forward"),
            self.json["review"]["status"].as_str().expect("a status"),
        )
    }

    #[track_caller]
    pub fn id(&self) -> String {
        self.json["review"]["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    /// What settles this release.
    #[track_caller]
    pub fn release_id(&self) -> String {
        self.json["release_id"]
            .as_str()
            .expect("a release in flight")
            .to_owned()
    }

    /// A 409 that names the state that stands.
    #[track_caller]
    pub fn conflicts(&self, standing: &str) {
        assert_eq!(
            (self.status, self.status_word()),
            (StatusCode::CONFLICT, standing)
        );
        assert!(
            self.json["message"]
                .as_str()
                .is_some_and(|text| text.ends_with(standing))
        );
    }

    pub fn status_word(&self) -> &str {
        self.json["status"].as_str().unwrap_or_default()
    }
}

pub fn filing(listener: &str, rule: &str, statement: &[u8]) -> Value {
    json!({ "listener_name": listener, "approval_rule": rule, "payload": STANDARD.encode(statement) })
}

pub async fn open(dir: &Path, clock: Arc<ManualClock>) -> Plane {
    open_with(dir, clock, CONFIG).await
}

async fn open_with(dir: &Path, clock: Arc<ManualClock>, config: &str) -> Plane {
    let config = PlaneConfig::parse(config, "plane.yaml").expect("a good configuration");
    Plane::open_with_clock(dir, config, clock)
        .await
        .expect("a plane")
}

/// All that any case has logged so far, at every level.
pub fn log() -> &'static Mutex<Vec<u8>> {
    static LOG: OnceLock<Mutex<Vec<u8>>> = OnceLock::new();
    LOG.get_or_init(|| {
        let installed = tracing_subscriber::fmt()
            .with_env_filter("debug")
            .with_writer(|| LogWriter)
            .try_init();
        assert!(installed.is_ok(), "another subscriber is there");
        Mutex::new(Vec::new())
    })
}

struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        log().lock().expect("the log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
