//! One message of JSON-RPC 2.0, read strictly: a frame that two readers could take for two different messages is a fault.
//! Knows no method.

use serde_json::Value;

use crate::json::{self, Members};
use crate::limits;

/// The id of a request, in the letters in which it came: 1.0 is not given back as 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(String);

impl Id {
    /// Takes a text or a number of a bounded length, as JSON; nothing else is an id.
    #[must_use]
    pub fn parse(token: &str) -> Option<Self> {
        let is_one =
            token.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        (is_one && token.len() <= limits::RPC_ID_BYTES).then(|| Self(token.to_owned()))
    }

    /// The id as JSON.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.0
    }
}

/// A message.
#[derive(Debug)]
pub enum Frame<'t> {
    /// It is to be answered.
    Request {
        /// By which the answer is known.
        id: Id,
        /// What is asked.
        call: Call<'t>,
    },
    /// It is not to be answered.
    Notification(Call<'t>),
    /// The answer to a request of the other side.
    Response,
}

/// A method and what it is given.
#[derive(Debug)]
pub struct Call<'t> {
    /// The method.
    pub method: String,
    /// Its parameters; none where the message has none.
    pub params: Option<Members<'t>>,
}

impl Call<'_> {
    /// A parameter's value.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Value> {
        value_of(self.params.as_ref()?.get(name)?)
    }
}

/// A value of a frame that has been read.
#[must_use]
pub fn value_of(text: &str) -> Option<Value> {
    json::parse(text.as_bytes()).ok()
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// Its code.
    pub code: i32,
    /// What is wrong, for a person.
    pub message: String,
    /// More for a program, as JSON.
    pub data: Option<String>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// The text is no JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// The JSON is no message.
pub const INVALID_REQUEST: i32 = -32_600;
/// Nobody knows the method.
pub const METHOD_NOT_FOUND: i32 = -32_601;
/// The parameters are not those of the method.
pub const INVALID_PARAMS: i32 = -32_602;
/// Something is wrong here.
pub const INTERNAL_ERROR: i32 = -32_603;
/// Headers that repeat the body do not agree with it (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32_020;
/// The revision is not spoken here (2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32_022;

/// Why a text is no message, and the id of the request where it can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The id.
    pub id: Option<Id>,
    /// What to answer.
    pub error: RpcError,
}

const ENVELOPE: [&str; 6] = ["error", "id", "jsonrpc", "method", "params", "result"];
const PARAMS: [&str; 7] = [
    "_meta",
    "arguments",
    "cursor",
    "inputResponses",
    "name",
    "requestState",
    "uri",
];

/// Reads a text as one message.
///
/// # Errors
///
/// When it is none: no JSON, a batch, a frame with members that collide, an id that is no text and no number.
pub fn read(text: &[u8]) -> Result<Frame<'_>, Unreadable> {
    let refuse = |id: Option<&Id>, code, message: &str| {
        Err(Unreadable {
            id: id.cloned(),
            error: RpcError::new(code, message),
        })
    };
    // Before anything else, so that a broken batch reads as a batch.
    if text.trim_ascii_start().starts_with(b"[") {
        return refuse(
            None,
            INVALID_REQUEST,
            "batches are not served: send one message for each request",
        );
    }
    let whole = json::parse(text).map_err(|fault| Unreadable {
        id: None,
        error: RpcError::new(
            PARSE_ERROR,
            format!(
                "the body is no JSON that can be trusted: {}",
                clipped(&fault.to_string())
            ),
        ),
    })?;
    let (true, Ok(text)) = (whole.is_object(), std::str::from_utf8(text)) else {
        return refuse(
            None,
            INVALID_REQUEST,
            "the body is no JSON-RPC message: it must be one object",
        );
    };
    let Ok(members) = Members::of(text) else {
        return refuse(
            None,
            INVALID_REQUEST,
            "the message has more than 64 members, or one that is named __proto__",
        );
    };
    let id = match members.get("id") {
        None => None,
        Some(token) => match Id::parse(token) {
            Some(id) => Some(id),
            None => {
                return refuse(
                    None,
                    INVALID_REQUEST,
                    "id must be a text or a number of at most 1024 bytes; leave it out of a notification",
                );
            }
        },
    };
    if let Some(name) = members.look_alike(&ENVELOPE) {
        let message = format!(
            "the member {:?} can be taken for another one: write each once, in lower case",
            clipped(name)
        );
        return refuse(id.as_ref(), INVALID_REQUEST, &message);
    }
    if whole.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(id.as_ref(), INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    }
    let answers = members.get("result").is_some() || members.get("error").is_some();
    let method = match (whole.get("method"), answers) {
        (None, true) => return Ok(Frame::Response),
        (Some(Value::String(method)), false) => method.clone(),
        (Some(_), true) => {
            return refuse(
                id.as_ref(),
                INVALID_REQUEST,
                "a message is a request or a response, not both",
            );
        }
        (_, false) => {
            return refuse(id.as_ref(), INVALID_REQUEST, "method must be a text");
        }
    };
    let params = match members.get("params") {
        None | Some("null") => None,
        Some(text) => match Members::of(text) {
            Ok(params) => Some(params),
            Err(_) => {
                return refuse(
                    id.as_ref(),
                    INVALID_PARAMS,
                    "params must be an object with at most 64 members",
                );
            }
        },
    };
    if let Some(name) = params
        .as_ref()
        .and_then(|params| params.look_alike(&PARAMS))
    {
        let message = format!(
            "the member {:?} of params can be taken for another one: write each once, as the protocol spells it",
            clipped(name)
        );
        return refuse(id.as_ref(), INVALID_PARAMS, &message);
    }
    let call = Call { method, params };
    Ok(match id {
        Some(id) => Frame::Request { id, call },
        None => Frame::Notification(call),
    })
}

/// A client's own words, short enough to be repeated.
#[must_use]
pub fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The message that answers a request.
#[must_use]
pub fn result(id: &Id, result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        id.token()
    )
}

/// The message that refuses a request. Where its id is not known, the answer has none, as MCP's schemas ask; they take no null.
#[must_use]
pub fn error(id: Option<&Id>, error: &RpcError) -> String {
    let id = id.map(|id| format!(r#""id":{},"#, id.token()));
    let id = id.unwrap_or_default();
    let message = json::quoted(&error.message);
    let data = error.data.as_ref();
    let data = data
        .map(|data| format!(r#","data":{data}"#))
        .unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{},"message":{message}{data}}}}}"#,
        error.code
    )
}

#[cfg(test)]
mod tests;
