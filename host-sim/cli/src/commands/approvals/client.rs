//! The people's API of the plane, called with the approver token of a data directory. Each way to fail has its own line.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use host_sim_plane::{Token, TokenError, TokenKind, tokens};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::commands::copyable::approvals_flags;
use crate::failure::Failure;

/// One plane and the right to decide on it.
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    token: Token,
    /// What a command that a hint names needs to reach this plane again.
    flags: String,
}

/// What a person decides.
pub(super) enum Decision {
    Approve,
    Reject { reason: String },
    Revoke,
}

impl Client {
    /// Reads the token; calls nobody yet.
    pub(super) fn new(plane: &str, data_dir: &Path) -> Result<Client, Failure> {
        let base = base_url(plane)?;
        let flags = approvals_flags(plane, data_dir);
        let token = tokens::read(data_dir, TokenKind::Approver).map_err(|error| {
            if let TokenError::Missing { path } = error {
                Failure::user(
                    format_args!("no approver token: {} does not exist", path.display()),
                    "start `make run` (or `host-sim up`, `host-sim plane`) first, and start it again if its data directory \
                     was deleted; name a directory elsewhere with `--data-dir`",
                )
            } else {
                Failure::told(&error)
            }
        })?;
        let http = reqwest::Client::builder()
            .no_proxy()
            // A redirect would carry the token to somebody else.
            .redirect(reqwest::redirect::Policy::none())
            .timeout(CALL_WITHIN)
            .build()
            .map_err(|error| {
                Failure::ours(format_args!("cannot set up the HTTP client: {error}"))
            })?;
        Ok(Client {
            http,
            base,
            token,
            flags,
        })
    }

    /// The newest `limit` approval requests, newest first.
    pub(super) async fn list(&self, status: Option<&str>, limit: u16) -> Result<Value, Failure> {
        let mut url = self.url(None);
        url.query_pairs_mut()
            .append_pair("limit", &limit.to_string());
        if let Some(status) = status {
            url.query_pairs_mut().append_pair("status", status);
        }
        self.call(self.http.request(Method::GET, url), None).await
    }

    /// The sidecars that the plane knows.
    pub(super) async fn sidecars(&self) -> Result<Value, Failure> {
        let url = self.url_of(&["api", "sidecars"]);
        self.call(self.http.request(Method::GET, url), None).await
    }

    /// One approval request.
    pub(super) async fn show(&self, id: &str) -> Result<Value, Failure> {
        let id = self.checked_id(id)?;
        self.call(
            self.http.request(Method::GET, self.url(Some(&id))),
            Some(&id),
        )
        .await
    }

    /// Decides one; the answer is the request as it stands now.
    pub(super) async fn decide(&self, id: &str, decision: &Decision) -> Result<Value, Failure> {
        let id = self.checked_id(id)?;
        let body = match decision {
            Decision::Approve => json!({ "status": "APPROVED" }),
            Decision::Reject { reason } => {
                json!({ "status": "REJECTED", "rejection_reason": reason })
            }
            Decision::Revoke => json!({ "status": "REVOKED" }),
        };
        self.call(
            self.http
                .request(Method::PUT, self.url(Some(&id)))
                .json(&body),
            Some(&id),
        )
        .await
    }

    /// The id in its canonical form, so that nothing else ever becomes part of a path.
    fn checked_id(&self, id: &str) -> Result<String, Failure> {
        canonical_id(id).ok_or_else(|| {
            Failure::user(
                format_args!("`{id}` is no approval id"),
                format_args!(
                    "an id looks like 7d1c0b8e-5a3f-4c7e-9b1d-2f6a8c4e0d35; `host-sim approvals{} list` shows them",
                    self.flags
                ),
            )
        })
    }

    /// What the plane answered, as what it was asked for.
    pub(super) fn read<T: DeserializeOwned>(&self, answer: &Value) -> Result<T, Failure> {
        T::deserialize(answer).map_err(|error| {
            self.no_plane(format_args!("it answered with something else ({error})"))
        })
    }

    /// Somebody answers, and not as a plane does: most likely Envoy or the upstream, whose ports are easy to mix up.
    fn no_plane(&self, how: impl Display) -> Failure {
        Failure::user(
            format_args!("{} does not answer as a plane: {how}", self.base),
            "give the plane's address with `--plane URL`, not Envoy's; if it is the plane's, run a plane of this program's version",
        )
    }

    fn url(&self, id: Option<&str>) -> Url {
        let mut segments = vec!["api", "reviews"];
        segments.extend(id);
        self.url_of(&segments)
    }

    fn url_of(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    async fn call(&self, request: RequestBuilder, id: Option<&str>) -> Result<Value, Failure> {
        let answer = request
            .bearer_auth(self.token.expose())
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = answer
            .bytes()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let body: Option<Value> = serde_json::from_slice(&body).ok();
        match body {
            Some(body) if status == StatusCode::OK => Ok(body),
            body => Err(self.refused(status, body.as_ref(), id)),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let reason = if error.is_timeout() {
            format!("no answer within {} s", CALL_WITHIN.as_secs())
        } else {
            innermost(error)
        };
        Failure::user(
            format_args!("cannot reach the plane at {}: {reason}", self.base),
            "start it with `host-sim up`, or name another with `--plane URL`",
        )
    }

    /// What the plane's refusal means to the person at the terminal.
    fn refused(&self, status: StatusCode, body: Option<&Value>, id: Option<&str>) -> Failure {
        let message = body
            .and_then(|body| body.get("message"))
            .and_then(Value::as_str);
        match (status, message, id) {
            (StatusCode::UNAUTHORIZED, _, _) => Failure::user(
                format_args!(
                    "the plane at {} does not accept this approver token",
                    self.base
                ),
                "the token belongs to another plane; name the data directory of this one with `--data-dir`",
            ),
            (StatusCode::NOT_FOUND, Some(_), Some(id)) => Failure::user(
                format_args!("no approval request has the id {id}"),
                format_args!("`host-sim approvals{} list` shows the ids", self.flags),
            ),
            (
                StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::GONE,
                Some(message),
                Some(id),
            ) => self.not_taken(status, message, standing(body), id),
            (status, Some(message), _) if status.is_server_error() => Failure::ours(format_args!(
                "the plane answered {}: {message}",
                status.as_u16()
            )),
            (status, message, _) => self.no_plane(format_args!(
                "it answered {} {}",
                status.as_u16(),
                message.unwrap_or("without a message")
            )),
        }
    }

    /// A decision that came too early or too late, in this program's words: what the plane calls a review, a person knows as
    /// an approval request.
    fn not_taken(
        &self,
        status: StatusCode,
        message: &str,
        standing: Option<&str>,
        id: &str,
    ) -> Failure {
        let flags = &self.flags;
        let show =
            || format!("`host-sim approvals{flags} show {id}` shows what was decided and when");
        match (status, standing) {
            (_, Some("EXPIRED")) => Failure::user(
                format_args!("{id}: the approval request has expired"),
                "when the agent sends the call again, it is filed anew",
            ),
            (StatusCode::CONFLICT, Some(standing)) => Failure::user(
                format_args!("{id}: the approval request is already decided: it is {standing}"),
                show(),
            ),
            // Only a revocation is refused so, for whatever waits can be approved and rejected.
            (_, Some("PENDING")) => Failure::user(
                format_args!("{id}: only an approval can be revoked, and this request is PENDING"),
                format_args!(
                    "refuse it with `host-sim approvals{flags} reject {id} --reason TEXT`"
                ),
            ),
            (StatusCode::BAD_REQUEST, Some(standing)) => Failure::user(
                format_args!(
                    "{id}: only an unused approval can be revoked, and this request is {standing}"
                ),
                show(),
            ),
            (_, Some(_) | None) => Failure::user(
                format_args!("{id}: {message}"),
                format_args!("`host-sim approvals{flags} --help` shows what can be decided"),
            ),
        }
    }
}

/// The plane names the state that stands (`status`) when it does not take a decision.
fn standing(body: Option<&Value>) -> Option<&str> {
    body?.get("status")?.as_str()
}

fn base_url(plane: &str) -> Result<Url, Failure> {
    let unusable = |reason: &str| {
        let message = format!("`--plane {plane}`: {reason}");
        Failure::user(
            message,
            "give the plane's base URL, such as http://127.0.0.1:8009",
        )
    };
    let url = Url::parse(plane).map_err(|error| unusable(&format!("not a URL: {error}")))?;
    // Without a host there is nobody to call, and credentials in the URL would end up in messages.
    let usable = url.scheme() == "http"
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    if usable && url.query().is_none() && url.fragment().is_none() {
        Ok(url)
    } else {
        Err(unusable("not a plain http:// URL"))
    }
}

/// `None` for what is no UUID in its usual form.
fn canonical_id(id: &str) -> Option<String> {
    let lower = id.to_ascii_lowercase();
    let groups: Vec<&str> = lower.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let hexadecimal = groups
        .iter()
        .all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (hexadecimal && lengths == [8, 4, 4, 4, 12]).then_some(lower)
}

/// The cause at the bottom, such as "Connection refused": what stands above it only repeats the URL.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The plane is on this machine or near; whoever waits longer waits for nothing.
const CALL_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
