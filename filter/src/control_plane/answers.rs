//! The strict reading of the Control Plane's answers, and the only maker of a [`Release`].

use serde_json::{Map, Value};

use crate::approval::{ApprovalId, SafeToken, Status};
use crate::json;
use crate::limits;
use crate::metrics::PlaneFailure;

/// The right to forward one held request once. Made here and nowhere else, from `forward: true`; not to be copied.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    id: ApprovalId,
    pending: Option<PendingSettlement>,
}

/// A release that is not spent yet: the plane awaits how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSettlement {
    /// Which release of the approval it is, where the plane names it.
    pub release_id: Option<String>,
}

impl Release {
    /// The approval that was spent for it.
    #[must_use]
    pub const fn id(&self) -> &ApprovalId {
        &self.id
    }

    /// What is to be settled once the request's end is known; `None` where the release has spent the approval.
    #[must_use]
    pub const fn pending(&self) -> Option<&PendingSettlement> {
        self.pending.as_ref()
    }
}

/// An answer as it came, not yet believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneAnswer {
    status: Option<u16>,
    is_json: bool,
    body: Option<Vec<u8>>,
}

impl PlaneAnswer {
    /// Takes an answer from the host: its headers (none after a reset), and its body; `None` for a body over
    /// [`limits::PLANE_ANSWER_BYTES`].
    #[must_use]
    pub fn new<'h>(
        headers: impl Iterator<Item = (&'h str, &'h [u8])>,
        body: Option<Vec<u8>>,
    ) -> Self {
        let (mut status, mut is_json) = (None, false);
        for (name, value) in headers {
            match name {
                ":status" => {
                    status = std::str::from_utf8(value)
                        .ok()
                        .and_then(|text| text.parse().ok())
                }
                "content-type" => is_json = is_json_type(value),
                _ => {}
            }
        }
        Self {
            status,
            is_json,
            body,
        }
    }
}

fn is_json_type(value: &[u8]) -> bool {
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
}

/// Why an answer releases and reports nothing. For the operator's log; a client never reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaneFault {
    /// `forward: true` without a canonical id beside it.
    #[error("the answer forwards without naming a canonical approval id")]
    ForwardWithoutId,
    /// A field is missing or has the wrong type.
    #[error("the answer has no usable field {0:?}")]
    FieldMissing(&'static str),
    /// The connection ended before an answer.
    #[error("no answer: the connection was reset")]
    NoAnswer,
    /// Not `application/json`, or not a JSON object without repeated keys.
    #[error("the answer is no JSON object")]
    NotJson,
    /// The answer is about another approval.
    #[error("the answer is about another approval")]
    OtherApproval,
    /// A status that is no answer to this call; with the plane's own words where it gave some. Envoy itself answers 503
    /// for a plane that is down and 504 for one that is late.
    #[error("answered with status {status}{}{}", quoted(.message.as_deref()), remedy(*.status, .message.is_some()))]
    Status {
        /// The status code.
        status: u16,
        /// The plane's `message`, cleaned and bounded.
        message: Option<String>,
    },
    /// More than [`limits::PLANE_ANSWER_BYTES`].
    #[error("the answer is larger than {} bytes", limits::PLANE_ANSWER_BYTES)]
    TooLarge,
    /// The host would not send the call: unknown cluster, no healthy host, unresolved name.
    #[error("the call could not be sent: check that the cluster exists and has a healthy host")]
    Unsent,
}

impl PlaneFault {
    fn of_status(answer: &PlaneAnswer, status: u16) -> Self {
        let message = object_of(answer)
            .ok()
            .and_then(|entries| text(&entries, "message").map(cleaned));
        Self::Status { status, message }
    }

    /// Whether it is the plane's own word that no more approval requests may wait. The 429 of a proxy in between has no
    /// message, and says nothing about them.
    #[must_use]
    pub const fn says_too_many_wait(&self) -> bool {
        matches!(
            self,
            Self::Status {
                status: 429,
                message: Some(_)
            }
        )
    }

    /// What kind it is. Envoy answers 503 and 504 as text for a plane that is down or late; the plane's own are JSON.
    #[must_use]
    pub const fn kind(&self) -> PlaneFailure {
        match self {
            Self::ForwardWithoutId
            | Self::FieldMissing(_)
            | Self::NotJson
            | Self::OtherApproval
            | Self::TooLarge => PlaneFailure::BadAnswer,
            Self::NoAnswer | Self::Unsent => PlaneFailure::Unreachable,
            Self::Status {
                status: 401 | 403, ..
            } => PlaneFailure::Credential,
            Self::Status {
                status: 503,
                message: None,
            } => PlaneFailure::Unreachable,
            Self::Status {
                status: 504,
                message: None,
            } => PlaneFailure::TimedOut,
            Self::Status { .. } => PlaneFailure::Refused,
        }
    }
}

/// What the operator can do about a status.
const fn remedy(status: u16, is_own_word: bool) -> &'static str {
    match status {
        401 | 403 => "; hint: check the sidecar token that Envoy was started with",
        413 => "; hint: the statement is larger than the plane takes, lower max_body_bytes",
        422 => "; hint: the plane must know this listener_name and approval_rule",
        429 if is_own_word => {
            "; hint: decide some of the requests that wait, or see to the client that files them; the local plane's limits are \
             max_waiting and max_waiting_per_requester"
        }
        503 | 504 => {
            "; hint: Envoy answers so for a plane that is down or late, check its cluster and control_plane.timeout_ms"
        }
        _ => "",
    }
}

fn quoted(message: Option<&str>) -> String {
    message
        .map(|text| format!(": {text:?}"))
        .unwrap_or_default()
}

/// What the plane says to a filing.
#[derive(Debug, PartialEq, Eq)]
pub enum Filing {
    /// The statement is not released.
    Held {
        /// The approval; `None` where the plane named none that is safe to repeat.
        id: Option<SafeToken>,
        /// Where it stands.
        status: Status,
        /// Whether this call filed it, rather than one before.
        is_new: bool,
    },
    /// The approval was spent for this request.
    Released(Release),
}

/// Reads the answer to a filing (contract 1.4).
///
/// # Errors
///
/// When the answer cannot be trusted to be the plane's word. The request must be refused.
pub fn read_filing(answer: &PlaneAnswer) -> Result<Filing, PlaneFault> {
    read_release(answer, &[200, 201], None)
}

/// Reads the answer to a claim of `asked` (contract 1.5).
///
/// # Errors
///
/// When the answer cannot be trusted to be the plane's word about this very approval. Whoever waits for it must be refused.
pub fn read_claim(answer: &PlaneAnswer, asked: &ApprovalId) -> Result<Filing, PlaneFault> {
    read_release(answer, &[200], Some(asked))
}

fn read_release(
    answer: &PlaneAnswer,
    statuses: &[u16],
    asked: Option<&ApprovalId>,
) -> Result<Filing, PlaneFault> {
    let entries = trusted_object(answer, statuses)?;
    let forward = entries
        .get("forward")
        .and_then(Value::as_bool)
        .ok_or(PlaneFault::FieldMissing("forward"))?;
    let review = entries.get("review").and_then(Value::as_object);
    let id = review.and_then(|review| text(review, "id"));
    let status = review
        .and_then(|review| text(review, "status"))
        .map_or(Status::Unknown(None), Status::parse);
    if forward {
        let id = id
            .and_then(ApprovalId::parse_canonical)
            .ok_or(PlaneFault::ForwardWithoutId)?;
        if asked.is_some_and(|asked| *asked != id) {
            return Err(PlaneFault::OtherApproval);
        }
        let pending = (status == Status::Processing).then(|| pending(&entries));
        let pending = pending.transpose()?;
        return Ok(Filing::Released(Release { id, pending }));
    }
    review.ok_or(PlaneFault::FieldMissing("review"))?;
    if let Some(asked) = asked
        && id != Some(asked.as_str())
    {
        return Err(PlaneFault::OtherApproval);
    }
    Ok(Filing::Held {
        id: id.and_then(SafeToken::parse),
        status,
        is_new: answer.status == Some(201),
    })
}

/// What is to be settled. A name of the release that could not be given back to the plane would let a word about one release end
/// another.
fn pending(entries: &Map<String, Value>) -> Result<PendingSettlement, PlaneFault> {
    let release_id = match entries.get("release_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if (1..=limits::RELEASE_ID_BYTES).contains(&id.len()) => {
            Some(id.clone())
        }
        Some(_) => return Err(PlaneFault::FieldMissing("release_id")),
    };
    Ok(PendingSettlement { release_id })
}

/// Why a list could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    /// The plane has no such route for a sidecar: it is older, or it takes the call for somebody else's (contract 1.2).
    #[error("the control plane does not list approvals for a sidecar")]
    NoRoute,
    /// The answer cannot be trusted.
    #[error(transparent)]
    Plane(#[from] PlaneFault),
}

/// Reads the answer to a list (contract 1.7): where each approval that it names stands. Entries without a canonical id are
/// about nothing that anybody waits for.
///
/// # Errors
///
/// When the plane has no list, or the answer cannot be trusted.
pub fn read_list(answer: &PlaneAnswer) -> Result<Vec<(ApprovalId, Status)>, ListFault> {
    let entries = listed(answer)?;
    let mut stand = Vec::new();
    for entry in entries.iter().filter_map(Value::as_object) {
        let id = text(entry, "id").and_then(ApprovalId::parse_canonical);
        if let (Some(id), Some(status)) = (id, text(entry, "status")) {
            stand.push((id, Status::parse(status)));
        }
    }
    Ok(stand)
}

/// Reads the answer to a list, each approval whole, and how many of them cannot be read.
///
/// # Errors
///
/// When the plane has no list, or the answer cannot be trusted.
pub fn read_views(answer: &PlaneAnswer) -> Result<(Vec<ApprovalView>, usize), ListFault> {
    let entries = listed(answer)?;
    let count = entries.len();
    let mut views = Vec::new();
    for entry in entries.iter().filter_map(Value::as_object) {
        views.extend(view(entry).ok());
    }
    let left_out = count.saturating_sub(views.len());
    Ok((views, left_out))
}

fn listed(answer: &PlaneAnswer) -> Result<Vec<Value>, ListFault> {
    let status = answer.status.ok_or(PlaneFault::NoAnswer)?;
    if matches!(status, 401 | 403 | 404) {
        return Err(ListFault::NoRoute);
    }
    if status != 200 {
        return Err(PlaneFault::of_status(answer, status).into());
    }
    match json_of(answer)? {
        Value::Array(entries) => Ok(entries),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(PlaneFault::NotJson.into())
        }
    }
}

/// Reads the answer to a settlement: any `200` of the plane's own.
///
/// # Errors
///
/// When it is not known whether the plane has taken it.
pub fn read_settlement(answer: &PlaneAnswer) -> Result<(), PlaneFault> {
    trusted_object(answer, &[200]).map(drop)
}

/// Reads the answer to a handshake: a `200` or an unchanged `304`.
///
/// # Errors
///
/// When the plane did not take it.
pub fn read_handshake(answer: &PlaneAnswer) -> Result<(), PlaneFault> {
    match answer.status {
        Some(200 | 304) => Ok(()),
        Some(status) => Err(PlaneFault::of_status(answer, status)),
        None => Err(PlaneFault::NoAnswer),
    }
}

/// One approval as the plane reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalView {
    /// Its id.
    pub id: ApprovalId,
    /// Where it stands.
    pub status: Status,
    /// The listener that filed it.
    pub listener_name: String,
    /// The rule that says who approves.
    pub approval_rule: String,
    /// When it was filed, RFC 3339.
    pub created_at: String,
    /// When it was decided, RFC 3339.
    pub decided_at: Option<String>,
    /// Why it was rejected.
    pub rejection_reason: Option<String>,
    /// When it ends, RFC 3339.
    pub expires_at: Option<String>,
}

/// Why an approval could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    /// The plane does not know this route: a 404 that is not its own JSON (contract 1.2).
    #[error("the control plane has no route to read an approval: it is older than this filter")]
    PlaneTooOld,
    /// The answer cannot be trusted.
    #[error(transparent)]
    Plane(#[from] PlaneFault),
    /// The plane's own word that there is no such approval of this sidecar.
    #[error("the approval is unknown on this sidecar")]
    Unknown,
    /// A time that RFC 3339 cannot write, such as a year above 9999.
    #[error("the answer holds a time that cannot be written")]
    Unwritable,
}

impl ReadFault {
    /// What kind of failure it is. That there is no such approval is none.
    #[must_use]
    pub const fn kind(&self) -> Option<PlaneFailure> {
        match self {
            Self::Plane(fault) => Some(fault.kind()),
            Self::PlaneTooOld | Self::Unwritable => Some(PlaneFailure::BadAnswer),
            Self::Unknown => None,
        }
    }
}

/// Reads the answer to a read of one approval (contract 1.6).
///
/// # Errors
///
/// When there is no such approval, or the answer cannot be trusted.
pub fn read_approval(answer: &PlaneAnswer, asked: &ApprovalId) -> Result<ApprovalView, ReadFault> {
    if answer.status == Some(404) {
        let own_word = object_of(answer).is_ok_and(|entries| text(&entries, "message").is_some());
        return Err(if own_word {
            ReadFault::Unknown
        } else {
            ReadFault::PlaneTooOld
        });
    }
    let view = view(&trusted_object(answer, &[200])?)?;
    if view.id != *asked {
        return Err(PlaneFault::OtherApproval.into());
    }
    Ok(view)
}

/// One approval of an answer.
fn view(entries: &Map<String, Value>) -> Result<ApprovalView, ReadFault> {
    let id = text(entries, "id")
        .and_then(ApprovalId::parse_canonical)
        .ok_or(PlaneFault::FieldMissing("id"))?;
    let status = text(entries, "status")
        .map(Status::parse)
        .ok_or(PlaneFault::FieldMissing("status"))?;
    Ok(ApprovalView {
        id,
        status,
        listener_name: required_text(entries, "listener_name")?,
        approval_rule: required_text(entries, "approval_rule")?,
        created_at: time(entries, "created_at")?.ok_or(PlaneFault::FieldMissing("created_at"))?,
        decided_at: time(entries, "decided_at")?,
        rejection_reason: text(entries, "rejection_reason")
            .filter(|reason| !reason.is_empty())
            .map(str::to_owned),
        expires_at: time(entries, "expires_at")?,
    })
}

/// A JSON object under one of the statuses that answer this call; anything else is not the plane's word.
fn trusted_object(
    answer: &PlaneAnswer,
    statuses: &[u16],
) -> Result<Map<String, Value>, PlaneFault> {
    let status = answer.status.ok_or(PlaneFault::NoAnswer)?;
    if !statuses.contains(&status) {
        return Err(PlaneFault::of_status(answer, status));
    }
    object_of(answer)
}

fn object_of(answer: &PlaneAnswer) -> Result<Map<String, Value>, PlaneFault> {
    match json_of(answer)? {
        Value::Object(entries) => Ok(entries),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(PlaneFault::NotJson)
        }
    }
}

fn json_of(answer: &PlaneAnswer) -> Result<Value, PlaneFault> {
    let body = answer.body.as_deref().ok_or(PlaneFault::TooLarge)?;
    if !answer.is_json {
        return Err(PlaneFault::NotJson);
    }
    json::parse(body).map_err(|_fault| PlaneFault::NotJson)
}

fn cleaned(message: &str) -> String {
    let mut text = String::new();
    for character in message.chars().filter(|character| !character.is_control()) {
        if text.len().saturating_add(character.len_utf8()) > limits::PLANE_MESSAGE_BYTES {
            break;
        }
        text.push(character);
    }
    text
}

fn text<'v>(entries: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    entries.get(name).and_then(Value::as_str)
}

fn required_text(entries: &Map<String, Value>, name: &'static str) -> Result<String, PlaneFault> {
    text(entries, name)
        .map(str::to_owned)
        .ok_or(PlaneFault::FieldMissing(name))
}

/// A time as the plane wrote it, when it is one; `None` where it is null or absent.
fn time(entries: &Map<String, Value>, name: &'static str) -> Result<Option<String>, ReadFault> {
    match entries.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if is_rfc3339(text) => Ok(Some(text.clone())),
        Some(Value::String(text)) if has_long_year(text) => Err(ReadFault::Unwritable),
        Some(
            Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
        ) => Err(PlaneFault::FieldMissing(name).into()),
    }
}

/// The shape of RFC 3339, 5.6; the values of its fields are the plane's business.
fn is_rfc3339(text: &str) -> bool {
    let shape_of_start = b"dddd-dd-ddTdd:dd:dd";
    let Some((start, rest)) = text.as_bytes().split_at_checked(shape_of_start.len()) else {
        return false;
    };
    let fits = |shape: &[u8], text: &[u8]| {
        shape.len() == text.len()
            && shape.iter().zip(text).all(|(wanted, found)| match wanted {
                b'd' => found.is_ascii_digit(),
                other => other.eq_ignore_ascii_case(found),
            })
    };
    let zone = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return false;
            }
            fraction.get(digits..).unwrap_or_default()
        }
        None => rest,
    };
    let zone_fits = fits(b"Z", zone) || fits(b"+dd:dd", zone) || fits(b"-dd:dd", zone);
    fits(shape_of_start, start) && zone_fits
}

fn has_long_year(text: &str) -> bool {
    let digits = text
        .trim_start_matches('+')
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    digits > 4
}

#[cfg(test)]
mod tests;
