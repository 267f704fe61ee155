//! Requests to the Control Plane: which headers, which body. Sends nothing itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::approval::{ApprovalId, SpendOn};
use crate::config::ControlPlaneConfig;
use crate::identity::{Correlation, Requester};
use crate::json::Object;
use crate::limits;
use crate::secret::Secret;
use crate::statement::Statement;

/// A Control Plane and the credential for it.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    config: ControlPlaneConfig,
    credential: Option<Credential>,
    spend_on: SpendOn,
}

/// What is filed.
#[derive(Clone, Copy, Debug)]
pub struct FilingRequest<'f> {
    /// The listener's name, as the plane knows it.
    pub listener_name: &'f str,
    /// The plane's rule that says who approves.
    pub approval_rule: &'f str,
    /// The bytes.
    pub statement: &'f Statement,
    /// Who asks, as far as it is known.
    pub requester: Option<&'f Requester>,
    /// What ties the call to the request.
    pub correlation: &'f Correlation,
    /// When a release spends the approval.
    pub spend_on: SpendOn,
}

/// How a release that the upstream's answer decides about ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The request did not run: the approval may be used again.
    Returned,
    /// It ran, or may have run.
    Spent,
}

impl Settlement {
    /// The word on the wire and in the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Spent => "spent",
        }
    }
}

/// The raw sidecar token, fit for a header.
#[derive(Clone, Debug)]
pub struct Credential(Secret);

/// A token that could not be sent as a header value. The token itself is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialUnfit {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// A space, a line break or a byte that is no visible ASCII.
    #[error("it holds a character that is not visible ASCII")]
    NotVisibleAscii,
}

impl Credential {
    /// Takes a token as an environment variable holds it; white space around it (a line break of a file) is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be a header value.
    pub fn parse(token: &str) -> Result<Self, CredentialUnfit> {
        let token = token.trim();
        if token.is_empty() {
            return Err(CredentialUnfit::Empty);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CredentialUnfit::NotVisibleAscii);
        }
        Ok(Self(Secret::new(token.to_owned())))
    }

    /// The token as the key that binds redacted query values.
    #[must_use]
    pub const fn as_key(&self) -> &Secret {
        &self.0
    }
}

/// One request to the Control Plane, for the host to send. Its headers hold the credential: it must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaneCall {
    /// Envoy cluster to send it to.
    pub cluster: String,
    /// Pseudo-headers and headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body; `None` sends none.
    pub body: Option<Vec<u8>>,
    /// When to give up, in milliseconds; never 0.
    pub timeout_ms: u32,
}

impl std::fmt::Debug for PlaneCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[redacted plane call]")
    }
}

impl ControlPlane {
    /// Joins the configuration and its credential; `None` where another filter on the cluster adds it.
    #[must_use]
    pub const fn new(
        config: ControlPlaneConfig,
        credential: Option<Credential>,
        spend_on: SpendOn,
    ) -> Self {
        Self {
            config,
            credential,
            spend_on,
        }
    }

    /// When a release spends an approval, as the operator has it.
    #[must_use]
    pub const fn spend_on(&self) -> SpendOn {
        self.spend_on
    }

    /// Time that a call may take, in milliseconds.
    #[must_use]
    pub const fn timeout_ms(&self) -> u32 {
        self.config.timeout_ms
    }

    /// Files a statement, or asks again for one that is filed (contract 1.4).
    #[must_use]
    pub fn file(&self, filing: &FilingRequest<'_>) -> PlaneCall {
        let mut body = Object::new();
        body.text("approval_rule", filing.approval_rule);
        body.text("listener_name", filing.listener_name);
        body.text("payload", &STANDARD.encode(filing.statement.bytes()));
        if let Some(requester) = filing.requester {
            body.json("requester", &requester.json());
        }
        body.known_text("spend_on", spend_on_word(filing.spend_on));
        self.call(
            "POST",
            "/api/sidecars/reviews",
            Some(body),
            filing.correlation,
        )
    }

    /// Asks for the release of one approval (contract 1.5). Never files.
    #[must_use]
    pub fn claim(&self, id: &ApprovalId, spend_on: SpendOn) -> PlaneCall {
        let body = spend_on_word(spend_on).map(|word| {
            let mut body = Object::new();
            body.text("spend_on", word);
            body
        });
        let path = format!("/api/sidecars/reviews/{id}/claim");
        self.call("POST", &path, body, &Correlation::default())
    }

    /// Reads the newest approvals of this sidecar, all or those that stand so (contract 1.7). Changes nothing.
    #[must_use]
    pub fn list(&self, status: Option<&str>) -> PlaneCall {
        self.newest(limits::LIST_LIMIT, status, &Correlation::default())
    }

    /// Reads so many of the newest approvals. The status is a word, fit to stand in a query.
    #[must_use]
    pub fn newest(&self, limit: u32, status: Option<&str>, correlation: &Correlation) -> PlaneCall {
        let mut path = format!("/api/sidecars/reviews?limit={limit}");
        if let Some(status) = status {
            path.push_str("&status=");
            path.push_str(status);
        }
        self.call("GET", &path, None, correlation)
    }

    /// Reads one approval (contract 1.6). Changes nothing.
    #[must_use]
    pub fn read(&self, id: &ApprovalId, correlation: &Correlation) -> PlaneCall {
        let path = format!("/api/sidecars/reviews/{id}");
        self.call("GET", &path, None, correlation)
    }

    /// Tells how the release `release_id` of an approval ended (design 7).
    #[must_use]
    pub fn settle(
        &self,
        id: &ApprovalId,
        release_id: Option<&str>,
        settlement: Settlement,
    ) -> PlaneCall {
        let mut body = Object::new();
        body.text("outcome", settlement.word());
        body.known_text("release_id", release_id);
        let path = format!("/api/sidecars/reviews/{id}/settle");
        self.call("POST", &path, Some(body), &Correlation::default())
    }

    /// Shows this sidecar as connected (contract 1.8). Never needed for approvals.
    #[must_use]
    pub fn handshake(&self) -> PlaneCall {
        let mut body = Object::new();
        body.text("last_outcome", "applied");
        body.text("version", env!("CARGO_PKG_VERSION"));
        let mut call = self.call(
            "POST",
            "/api/sidecars/handshake",
            Some(body),
            &Correlation::default(),
        );
        call.headers
            .push(("hoop-sidecar-capabilities", CAPABILITIES.to_owned()));
        call
    }

    fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<Object>,
        correlation: &Correlation,
    ) -> PlaneCall {
        let mut headers = vec![
            (":method", method.to_owned()),
            (":path", format!("{}{path}", self.config.path_prefix)),
            (":authority", self.config.authority.clone()),
            ("accept", "application/json".to_owned()),
            (
                "user-agent",
                concat!(
                    "hoop-sidecar/",
                    env!("CARGO_PKG_VERSION"),
                    " (hoop-filter; wasm32)"
                )
                .to_owned(),
            ),
        ];
        if body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        headers.extend_from_slice(correlation.headers());
        if let Some(Credential(token)) = &self.credential {
            headers.push(("hoop-sidecar-token", token.expose().to_owned()));
        }
        PlaneCall {
            cluster: self.config.cluster.clone(),
            headers,
            body: body.map(|body| body.written().into_bytes()),
            timeout_ms: self.config.timeout_ms,
        }
    }
}

/// What this gate can do, in the plane's words.
const CAPABILITIES: &str = "approval_mode,review_mode,protocol:http";

/// The word that asks the plane to wait for the upstream's answer; a plane that does not know it spends at release.
const fn spend_on_word(spend_on: SpendOn) -> Option<&'static str> {
    match spend_on {
        SpendOn::Accepted => Some("accepted"),
        SpendOn::Release => None,
    }
}

#[cfg(test)]
mod tests;
