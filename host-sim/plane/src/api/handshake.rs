//! Owns the handshake (contract 1.8): what the plane serves a sidecar as its configuration, what the sidecar says of
//! itself, and what people see of it. `api` routes to it. No approval may depend on it.

use axum::{
    Json,
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Api,
    body::{self, Received},
    caller::{Approver, Sidecar},
    error::ApiError,
};
use crate::{
    config::PlaneConfig,
    limits::{
        CAPABILITIES_MAX, CAPABILITY_MAX_BYTES, CONNECTED_WITHIN_SEC, HANDSHAKE_ERROR_MAX_BYTES,
        HANDSHAKE_VALUE_MAX_BYTES,
    },
    render,
    store::{Handshake, Seen},
    tokens::{self, TokenKind},
};

/// `POST /api/sidecars/handshake`
pub(super) async fn handshake(
    _: Sidecar,
    State(api): State<Api>,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, ApiError> {
    let wire: HandshakeBody = body::object(&body::bytes(received)?)?;
    let version = wire
        .version
        .filter(|version| !version.is_empty())
        .ok_or(ApiError::MissingField("version"))?;
    let said = Handshake {
        version: bounded(version, HANDSHAKE_VALUE_MAX_BYTES),
        applied_revision: present(wire.applied_revision, HANDSHAKE_VALUE_MAX_BYTES),
        last_outcome: wire.last_outcome.as_deref().and_then(outcome),
        last_error: present(wire.last_error, HANDSHAKE_ERROR_MAX_BYTES),
        capabilities: capabilities(&headers),
    };
    api.store
        .record_handshake(api.credentials.sidecar_id, &said)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "recording sidecar handshake",
            cause,
        })?;
    let document = Document::of(&api.config);
    tracing::debug!(
        version = %render::line(&said.version),
        outcome = said.last_outcome.as_deref(),
        "sidecar handshake"
    );
    Ok(
        if wire.served_revision.as_ref() == Some(&document.revision) {
            (StatusCode::NOT_MODIFIED, document.headers()).into_response()
        } else {
            document.into_response()
        },
    )
}

/// `GET /api/sidecars/configuration`: the same document, and nothing is recorded.
pub(super) async fn configuration(_: Sidecar, State(api): State<Api>) -> Response {
    Document::of(&api.config).into_response()
}

/// `GET /api/sidecars`
pub(super) async fn list(
    _: Approver,
    State(api): State<Api>,
) -> Result<Json<[SidecarBody; 1]>, ApiError> {
    let id = api.credentials.sidecar_id;
    let seen = api
        .store
        .seen(id)
        .await
        .map_err(|cause| ApiError::Internal {
            doing: "listing sidecars",
            cause,
        })?;
    // This plane issues one sidecar token, and one token is one sidecar, however many gates share it.
    Ok(Json([SidecarBody::new(id.to_string(), seen)]))
}

/// The configuration as it is served.
struct Document {
    body: String,
    revision: String,
}

impl Document {
    /// The gate's own settings stay where it is deployed. What the plane knows is which listeners it lets file, and on
    /// which rules. The revision is made of the document's bytes, so it changes exactly when they do.
    fn of(config: &PlaneConfig) -> Self {
        let listeners: Vec<ListenerBody<'_>> = config
            .listeners()
            .map(|(name, rules)| ListenerBody {
                name,
                approval_rules: rules.collect(),
            })
            .collect();
        let body =
            serde_json::json!({ "listeners": listeners, "load_from_disk": true }).to_string();
        let mut revision = tokens::hex(&Sha256::digest(body.as_bytes()));
        revision.truncate(REVISION_CHARS);
        Self { body, revision }
    }

    fn headers(&self) -> [(HeaderName, HeaderValue); 3] {
        // Hexadecimal digits are a header value; an empty one would be refused by a sidecar, not misread.
        let revision =
            HeaderValue::from_str(&self.revision).unwrap_or_else(|_| HeaderValue::from_static(""));
        [
            (LICENSE_MANAGED, HeaderValue::from_static("true")),
            (CONFIG_REVISION, revision),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ]
    }
}

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (self.headers(), json, self.body).into_response()
    }
}

fn present(value: Option<String>, max_bytes: usize) -> Option<String> {
    value
        .map(|value| bounded(value, max_bytes))
        .filter(|value| !value.is_empty())
}

fn bounded(mut value: String, max_bytes: usize) -> String {
    value.truncate(value.floor_char_boundary(max_bytes));
    value
}

/// A word that a later sidecar may know and this plane does not must not cost the heartbeat.
fn outcome(word: &str) -> Option<String> {
    let known = ["applied", "unchanged", "refused", "restart-required"];
    match word {
        "" => None,
        word if known.contains(&word) => Some(word.to_owned()),
        _ => Some("unrecognized".to_owned()),
    }
}

/// The names in `hoop-sidecar-capabilities`, each once. What is no name is left out.
fn capabilities(headers: &HeaderMap) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let sent = headers
        .get_all(CAPABILITIES)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect::<Vec<_>>();
    for name in sent
        .iter()
        .flat_map(|value| value.split(','))
        .map(str::trim)
    {
        let is_name = (1..=CAPABILITY_MAX_BYTES).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/*".contains(&byte));
        if is_name && names.len() < CAPABILITIES_MAX && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[derive(Deserialize)]
struct HandshakeBody {
    version: Option<String>,
    applied_revision: Option<String>,
    last_outcome: Option<String>,
    last_error: Option<String>,
    served_revision: Option<String>,
}

#[derive(Serialize)]
struct ListenerBody<'a> {
    name: &'a str,
    approval_rules: Vec<&'a str>,
}

/// A sidecar as a person sees it, safe to look at.
#[derive(Serialize)]
pub(super) struct SidecarBody {
    id: String,
    name: &'static str,
    connected: bool,
    last_seen: Option<String>,
    version: Option<String>,
    applied_revision: Option<String>,
    last_outcome: Option<String>,
    last_error: Option<String>,
    capabilities: Vec<String>,
}

impl SidecarBody {
    fn new(id: String, seen: Option<Seen>) -> Self {
        let name = TokenKind::Sidecar.as_str();
        let Some(Seen { said, at, now }) = seen else {
            return Self {
                id,
                name,
                connected: false,
                last_seen: None,
                version: None,
                applied_revision: None,
                last_outcome: None,
                last_error: None,
                capabilities: Vec::new(),
            };
        };
        let line = |value: Option<String>| value.map(|value| render::line(&value));
        Self {
            id,
            name,
            connected: now <= at.plus_sec(CONNECTED_WITHIN_SEC),
            last_seen: Some(at.to_string()),
            version: Some(render::line(&said.version)),
            applied_revision: line(said.applied_revision),
            last_outcome: said.last_outcome,
            last_error: line(said.last_error),
            capabilities: said.capabilities,
        }
    }
}

const CAPABILITIES: HeaderName = HeaderName::from_static("hoop-sidecar-capabilities");
const CONFIG_REVISION: HeaderName = HeaderName::from_static("hoop-sidecar-config-revision");
const LICENSE_MANAGED: HeaderName = HeaderName::from_static("hoop-sidecar-license-managed");

/// Hexadecimal digits of a revision: the contract's number (1.8).
const REVISION_CHARS: usize = 32;
