//! Requests to the Control Plane: which headers, which body. Sends nothing itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::approval::ApprovalId;
use crate::config::ControlPlaneConfig;
use crate::secret::Secret;
use crate::statement::Statement;

/// A Control Plane and the credential for it.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    config: ControlPlaneConfig,
    credential: Option<Credential>,
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
    pub const fn new(config: ControlPlaneConfig, credential: Option<Credential>) -> Self {
        Self { config, credential }
    }

    /// Files a statement, or asks again for one that is filed (contract 1.4).
    #[must_use]
    pub fn file(
        &self,
        listener_name: &str,
        approval_rule: &str,
        statement: &Statement,
    ) -> PlaneCall {
        let body = json!({
            "approval_rule": approval_rule,
            "listener_name": listener_name,
            "payload": STANDARD.encode(statement.bytes()),
        });
        self.call(
            "POST",
            "/api/sidecars/reviews",
            Some(body.to_string().into_bytes()),
        )
    }

    /// Reads one approval (contract 1.6). Changes nothing.
    #[must_use]
    pub fn read(&self, id: &ApprovalId) -> PlaneCall {
        self.call("GET", &format!("/api/sidecars/reviews/{id}"), None)
    }

    fn call(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> PlaneCall {
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
        if let Some(Credential(token)) = &self.credential {
            headers.push(("hoop-sidecar-token", token.expose().to_owned()));
        }
        PlaneCall {
            cluster: self.config.cluster.clone(),
            headers,
            body,
            timeout_ms: self.config.timeout_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane() -> ControlPlane {
        let config = ControlPlaneConfig {
            cluster: "plane".to_owned(),
            authority: "plane.example:8009".to_owned(),
            path_prefix: "/hoop".to_owned(),
            token_env: Some("T".to_owned()),
            timeout_ms: 5,
        };
        ControlPlane::new(config, Some(Credential::parse("hsc_x\n").expect("fit")))
    }

    fn header<'c>(call: &'c PlaneCall, name: &str) -> Option<&'c str> {
        call.headers
            .iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_filing_carries_the_statement_in_padded_base64_and_the_raw_token() {
        let call = plane().file("l", "r", &Statement::http(b"POST", b"/a", b"\xff\xfe\xfd1"));

        assert_eq!(header(&call, ":method"), Some("POST"));
        assert_eq!(header(&call, ":path"), Some("/hoop/api/sidecars/reviews"));
        assert_eq!(header(&call, "hoop-sidecar-token"), Some("hsc_x"));
        assert_eq!(
            call.body.as_deref(),
            Some(
                &br#"{"approval_rule":"r","listener_name":"l","payload":"UE9TVCAvYQoK//79MQ=="}"#[..]
            )
        );
    }

    #[test]
    fn a_read_has_no_body_and_no_content_type() {
        let id = ApprovalId::parse(b"9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b").expect("an id");

        let call = plane().read(&id);

        assert_eq!(
            header(&call, ":path"),
            Some("/hoop/api/sidecars/reviews/9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b")
        );
        assert_eq!((header(&call, "content-type"), &call.body), (None, &None));
    }

    #[test]
    fn a_call_never_prints_its_token() {
        assert!(
            !format!(
                "{:?} {:?}",
                plane(),
                plane().file("l", "r", &Statement::http(b"A", b"/", b""))
            )
            .contains("hsc_x")
        );
    }

    #[test]
    fn a_token_that_cannot_be_a_header_is_refused() {
        assert_eq!(Credential::parse(" \n").err(), Some(CredentialUnfit::Empty));
        assert_eq!(
            Credential::parse("a\nb").err(),
            Some(CredentialUnfit::NotVisibleAscii)
        );
        assert_eq!(
            Credential::parse("é").err(),
            Some(CredentialUnfit::NotVisibleAscii)
        );
    }
}
