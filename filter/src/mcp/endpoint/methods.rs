//! What a request asks: by which era's rules it goes, and which of its methods it is. Source: contract `mcp.md`, C.2 and C.3.

use serde_json::Value;

use super::exchange::{self, Exchange, Reader, SERVER};
use super::tools::{self, Family, Refused, Tool};
use crate::answer::Answer;
use crate::identity::Headers;
use crate::json::{Members, quoted};
use crate::limits;
use crate::mcp::headers::{Sent, sent};
use crate::mcp::json_rpc::{
    self, Call, Frame, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Id, METHOD_NOT_FOUND,
    RpcError, UNSUPPORTED_VERSION, clipped, value_of,
};
use crate::mcp::{Era, LEGACY, MODERN};

/// What became of a request.
#[derive(Debug)]
pub(super) enum Asked {
    /// It needs nobody else.
    Answered(Answer),
    /// The same, and it is a client's first.
    Opened(Answer),
    /// Its client has given up the request with this id.
    Cancelled(Id),
    /// A tool is called, and the Control Plane is to be asked.
    Tool(Box<ToolCall>),
}

/// A call of a tool that can be answered.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub exchange: Exchange,
    pub family: Family,
    pub tool: Tool,
    /// By which its progress is to be told, as JSON.
    pub progress_token: Option<String>,
}

/// Reads a whole body.
pub(super) fn read(headers: &Headers, body: &[u8], reader: Reader) -> Asked {
    let frame = match json_rpc::read(body) {
        Ok(frame) => frame,
        Err(fault) => {
            let message = json_rpc::error(fault.id.as_ref(), &fault.error);
            return Asked::Answered(exchange::json(400, &message));
        }
    };
    let (id, call) = match frame {
        Frame::Request { id, call } => (id, call),
        Frame::Notification(call) => {
            return match (cancelled(&call), notified(headers, &call)) {
                (Some(id), Ok(())) => Asked::Cancelled(id),
                (_, checked) => Asked::Answered(accepted_if(checked)),
            };
        }
        Frame::Response => return Asked::Answered(responded(headers)),
    };
    let ruled = era(headers, &call);
    let exchange = Exchange {
        era: match &ruled {
            Ok(era) => *era,
            Err(_) => Era::Modern,
        },
        id,
        reader,
    };
    match ruled {
        Err(error) => Asked::Answered(exchange.error(400, &error)),
        Ok(era) => dispatch(era, exchange, &call),
    }
}

fn dispatch(era: Era, exchange: Exchange, call: &Call<'_>) -> Asked {
    let answer = match (era, call.method.as_str()) {
        (Era::Legacy, "initialize") => return Asked::Opened(initialize(&exchange, call)),
        // An empty result, to the letter.
        (Era::Legacy, "ping") => exchange.result(""),
        (Era::Modern, "server/discover") => exchange.result(&format!(
            r#""supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}}"#
        )),
        (_, "tools/list") => exchange.result(&format!(r#""tools":{}"#, tools::list())),
        (_, "tools/call") => return tool_call(exchange, call),
        (_, _) => {
            let status = match era {
                Era::Legacy => 200,
                Era::Modern => 404,
            };
            let message = format!(
                "the method {:?} is not served: this server has tools only",
                clipped(&call.method)
            );
            exchange.error(status, &RpcError::new(METHOD_NOT_FOUND, message))
        }
    };
    Asked::Answered(answer)
}

/// The version that the client asks for, or the newest that begins so: the client decides whether it goes on.
fn initialize(exchange: &Exchange, call: &Call<'_>) -> Answer {
    let wanted = call.param("protocolVersion");
    let wanted = wanted.as_ref().and_then(Value::as_str);
    let [newest, ..] = LEGACY;
    let version = LEGACY
        .into_iter()
        .find(|version| wanted == Some(version))
        .unwrap_or(newest);
    exchange.result(&format!(
        r#""protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{SERVER}"#
    ))
}

fn tool_call(exchange: Exchange, call: &Call<'_>) -> Asked {
    let refuse = |exchange: &Exchange, message: &str| {
        let error = RpcError::new(INVALID_PARAMS, message);
        Asked::Answered(exchange.error(200, &error))
    };
    let Some(Value::String(name)) = call.param("name") else {
        return refuse(&exchange, "params.name must name a tool");
    };
    let arguments = match call.param("arguments") {
        None | Some(Value::Null) => serde_json::Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return refuse(&exchange, "params.arguments must be an object"),
    };
    match tools::read(&name, &arguments) {
        Ok((family, tool)) => Asked::Tool(Box::new(ToolCall {
            exchange,
            family,
            tool,
            progress_token: progress_token(call),
        })),
        Err(Refused::UnknownTool) => {
            let message = format!(
                "there is no tool {:?}; tools/list names those that there are",
                clipped(&name)
            );
            refuse(&exchange, &message)
        }
        Err(Refused::Result(result)) => Asked::Answered(exchange.tool_result(&result)),
    }
}

/// The token by which progress is asked for, in its own letters.
fn progress_token(call: &Call<'_>) -> Option<String> {
    let meta = Members::of(call.params.as_ref()?.get("_meta")?).ok()?;
    // A text or a number, as an id is.
    let token = Id::parse(meta.get("progressToken")?)?;
    let fits = token.token().len() <= limits::PROGRESS_TOKEN_BYTES;
    fits.then(|| token.token().to_owned())
}

/// The request that a notification gives up.
fn cancelled(call: &Call<'_>) -> Option<Id> {
    let id = call.params.as_ref()?.get("requestId")?;
    let gives_up = call.method == "notifications/cancelled";
    Id::parse(id).filter(|_| gives_up)
}

/// Whether a notification is taken. Any but the one above changes nothing here, as nothing is kept.
fn notified(headers: &Headers, call: &Call<'_>) -> Result<(), RpcError> {
    known_version(headers).and_then(|_| check_mirrors(headers, call, false))
}

/// Nobody was asked anything, so a response answers nothing. The later era does not have them at all.
fn responded(headers: &Headers) -> Answer {
    accepted_if(known_version(headers).and_then(|version| match version {
        Some(version) if version == MODERN => Err(RpcError::new(
            INVALID_REQUEST,
            "a client sends no responses: this server asks nothing",
        )),
        Some(_) | None => Ok(()),
    }))
}

/// The answer to what is no request.
fn accepted_if(checked: Result<(), RpcError>) -> Answer {
    match checked {
        Ok(()) => exchange::accepted(),
        Err(error) => exchange::json(400, &json_rpc::error(None, &error)),
    }
}

const VERSION_HEADER: &str = "mcp-protocol-version";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";

fn is_known(version: &str) -> bool {
    version == MODERN || LEGACY.contains(&version)
}

/// The version that the header states.
fn stated_version(headers: &Headers) -> Result<Option<String>, RpcError> {
    match sent(headers, VERSION_HEADER) {
        Sent::Absent => Ok(None),
        Sent::Text(version) => Ok(Some(version)),
        Sent::Unreadable => Err(RpcError::new(
            HEADER_MISMATCH,
            "MCP-Protocol-Version must stand there once, as a plain text",
        )),
    }
}

/// The version that the header states, if it is spoken here.
fn known_version(headers: &Headers) -> Result<Option<String>, RpcError> {
    match stated_version(headers)? {
        Some(version) if !is_known(&version) => Err(unsupported_header(&version)),
        version => Ok(version),
    }
}

/// By which rules a request goes, or why it goes by none.
fn era(headers: &Headers, call: &Call<'_>) -> Result<Era, RpcError> {
    let version = stated_version(headers)?;
    let meta = call.params.as_ref().and_then(|params| params.get("_meta"));
    let meta = meta.and_then(value_of);
    let claim = meta.as_ref().and_then(|meta| meta.get(VERSION_KEY));
    let is_modern_header = version.as_deref() == Some(MODERN);
    // A client of the earlier era that says more than it has to, or one that tries both at once.
    let opens = call.method == "initialize" && !is_modern_header;
    if !is_modern_header && (claim.is_none() || opens) {
        known_version(headers)?;
        return check_mirrors(headers, call, false).map(|()| Era::Legacy);
    }
    let missing =
        |what: &str| RpcError::new(INVALID_PARAMS, format!("params._meta must hold {what}"));
    let Some(Value::String(claim)) = claim else {
        return Err(missing(&format!("{VERSION_KEY:?}, a text")));
    };
    let entry = |key: &str| meta.as_ref().and_then(|meta| meta.get(key));
    if !entry(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(missing(&format!("{CAPABILITIES_KEY:?}, an object")));
    }
    if entry(CLIENT_KEY).is_some_and(|client| !client.is_object()) {
        return Err(missing(&format!(
            "{CLIENT_KEY:?} as an object, or not at all"
        )));
    }
    if version.as_deref() != Some(claim) {
        let message = format!(
            "MCP-Protocol-Version must say {:?}, as params._meta does",
            clipped(claim)
        );
        return Err(RpcError::new(HEADER_MISMATCH, message));
    }
    check_mirrors(headers, call, true)?;
    if claim != MODERN {
        return Err(unsupported(claim, &format!("[\"{MODERN}\"]")));
    }
    Ok(Era::Modern)
}

fn unsupported_header(version: &str) -> RpcError {
    let legacy = LEGACY.join("\",\"");
    unsupported(version, &format!("[\"{MODERN}\",\"{legacy}\"]"))
}

fn unsupported(version: &str, supported: &str) -> RpcError {
    let version = clipped(version);
    let requested = quoted(&version);
    RpcError {
        code: UNSUPPORTED_VERSION,
        message: format!("the protocol version {version:?} is not spoken here, but {supported}"),
        data: Some(format!(
            r#"{{"supported":{supported},"requested":{requested}}}"#
        )),
    }
}

/// The body decides. Headers that repeat it must agree, since whatever stands in front may go by them; the later era wants them sent.
fn check_mirrors(headers: &Headers, call: &Call<'_>, is_required: bool) -> Result<(), RpcError> {
    let mismatch = |name: &str| {
        let message = format!("{name} must stand there once and say what the body says");
        Err(RpcError::new(HEADER_MISMATCH, message))
    };
    match sent(headers, "mcp-method") {
        Sent::Text(method) if method == call.method => {}
        Sent::Absent if !is_required => {}
        Sent::Text(_) | Sent::Absent | Sent::Unreadable => return mismatch("Mcp-Method"),
    }
    let named = match call.method.as_str() {
        "tools/call" | "prompts/get" => call.param("name"),
        "resources/read" => call.param("uri"),
        _ => None,
    };
    match (sent(headers, "mcp-name"), &named) {
        (Sent::Text(name), Some(Value::String(named))) if name == *named => Ok(()),
        (Sent::Absent, None) => Ok(()),
        (Sent::Absent, Some(_)) if !is_required => Ok(()),
        (Sent::Text(_) | Sent::Absent | Sent::Unreadable, _) => mismatch("Mcp-Name"),
    }
}
