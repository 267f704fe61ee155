//! The endpoint against a plane that the test writes: one request at a time, event by event. Each answer that is looked at must
//! tell nothing of the statement, the token and the plane's address.

mod eras;
mod results;
mod tools;
mod transport;
mod waits;

use std::rc::Rc;

use serde_json::{Value, json};

use super::*;
use crate::config::{Config, McpConfig};
use crate::control_plane::{Credential, PlaneAnswer, PlaneCall};
use crate::event::{News, Pace};
use crate::identity::Peer;
use crate::listener::Secrets;
use crate::mcp::MODERN;
use crate::request::HeaderNames;

const ID: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";
const TOKEN: &str = "hsc_secret";
const PLANE: &str = "plane.internal:8009";
const STATEMENT: &str = "POST /payments 4711";

fn listener() -> Listener {
    listener_with("")
}

fn listener_with(keys: &str) -> Listener {
    let text = format!(
        r#"{{"listener_name":"agents","control_plane":{{"cluster":"c","authority":"{PLANE}"}},"max_body_bytes":600,"mcp":{{"path":"/mcp"{keys}}}}}"#
    );
    let secrets = Secrets {
        credential: Credential::parse(TOKEN).ok(),
        redaction_key: None,
    };
    Listener::new(Config::parse(text.as_bytes()).expect("valid"), secrets)
}

/// One request, as its host hands it over.
#[derive(Clone, Debug)]
struct Request {
    method: &'static str,
    target: &'static str,
    authority: &'static str,
    headers: Headers,
    body: Vec<u8>,
    is_paced: bool,
}

impl Surroundings for Request {
    fn moment_ns(&self) -> u64 {
        7
    }

    fn headers(&self) -> Headers {
        self.headers.clone()
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        Some(b"127.0.0.1:8765".to_vec())
    }

    fn route_metadata(&self, namespace: &str, key: &str) -> Option<Vec<u8>> {
        let is_asked = (namespace, key) == ("hoop", "mcp_stream");
        (self.is_paced && is_asked).then(|| b"paced".to_vec())
    }
}

impl Request {
    fn post(body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: "POST",
            target: "/mcp",
            authority: "127.0.0.1:8765",
            headers: Vec::new(),
            body: body.into(),
            is_paced: false,
        }
        .with("content-type", "application/json")
        .with("accept", "application/json, text/event-stream")
    }

    /// A request of the earlier era.
    fn legacy(method: &str, params: &Value) -> Self {
        Self::post(
            json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string(),
        )
    }

    /// A request of the later era, with all that it must have.
    fn modern(method: &str, params: &Value) -> Self {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = Self::legacy(method, &params)
            .with("mcp-protocol-version", MODERN)
            .with("mcp-method", method);
        match params["name"].as_str() {
            Some(name) => request.with("mcp-name", name),
            None => request,
        }
    }

    fn call(tool: &str, arguments: &Value) -> Self {
        Self::legacy("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// A wait that asks for progress, on a route that paces answers.
    fn paced_wait(token: &Value) -> Self {
        let params = json!({"name": "approval_wait", "arguments": {"id": ID}, "_meta": {"progressToken": token}});
        let mut request = Self::legacy("tools/call", &params);
        request.is_paced = true;
        request
    }

    /// With one more header.
    fn and(mut self, name: &str, value: &str) -> Self {
        self.headers
            .push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// With this header in the place of any of its name.
    fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| found != name);
        self
    }

    fn head(&self) -> RequestHead {
        let headers = [
            (":method", self.method),
            (":path", self.target),
            (":authority", self.authority),
        ];
        let headers = headers.map(|(name, value)| (name, value.as_bytes()));
        RequestHead::parse(headers.into_iter(), &HeaderNames::default()).expect("readable")
    }

    fn open(&self, listener: &Listener, end_of_stream: bool) -> (Option<Endpoint>, Vec<Effect>) {
        let McpConfig::Served(served) = &listener.mcp else {
            panic!("serves no tools");
        };
        open(listener, served, &self.head(), end_of_stream, self)
    }

    /// The request, whole.
    fn send(&self, listener: &Listener) -> (Option<Endpoint>, Vec<Effect>) {
        match self.open(listener, false) {
            (Some(endpoint), effects) => {
                assert_eq!(effects, [], "before the body");
                endpoint.handle(listener, self.whole_body())
            }
            refused => refused,
        }
    }

    fn whole_body(&self) -> Event {
        Event::RequestBody {
            chunk: self.body.clone(),
            end_of_stream: true,
        }
    }

    /// The answer to a request that needs nobody else.
    fn answered(&self) -> Told {
        let (endpoint, effects) = self.send(&listener());
        assert!(
            endpoint.is_none(),
            "asks the plane: {}",
            String::from_utf8_lossy(&self.body)
        );
        Told::of(&effects)
    }

    /// The answer to a call that asks the plane once, and what it asked.
    fn answered_by(&self, plane: Result<PlaneAnswer, PlaneFault>) -> (String, Told) {
        let listener = listener();
        let (endpoint, effects) = self.send(&listener);
        let asked = asked(&effects);
        let endpoint = endpoint.unwrap_or_else(|| panic!("answered at once: {effects:?}"));
        assert!(!endpoint.may_continue());
        let (_, effects) = endpoint.handle(&listener, Event::PlaneAnswered(plane));
        (asked, Told::of(&effects))
    }
}

/// The one call to the plane among the effects, as method and path.
fn asked(effects: &[Effect]) -> String {
    let calls: Vec<&PlaneCall> = effects.iter().filter_map(call_of).collect();
    let [call] = calls.as_slice() else {
        panic!("not one call: {effects:?}");
    };
    let header = |wanted: &str| {
        let mut all = call.headers.iter();
        all.find(|(name, _)| *name == wanted)
            .map_or("", |(_, value)| value.as_str())
    };
    assert_eq!((header(":method"), &call.body), ("GET", &None));
    header(":path").to_owned()
}

fn call_of(effect: &Effect) -> Option<&PlaneCall> {
    if let Effect::CallPlane(call) = effect {
        Some(call)
    } else {
        None
    }
}

fn answer_of(effect: &Effect) -> Option<&Answer> {
    if let Effect::Answer(answer) = effect {
        Some(answer)
    } else {
        None
    }
}

/// What a client is told: status code and message.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    status: u16,
    message: Value,
}

impl Told {
    fn of(effects: &[Effect]) -> Self {
        let answer = answer(effects);
        keeps_secrets(&answer.body);
        let message = if answer.body.is_empty() {
            Value::Null
        } else {
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert!(!answer.body.contains(&b'\n'), "more than one line");
            serde_json::from_slice(&answer.body).expect("JSON")
        };
        Self {
            status: answer.status,
            message,
        }
    }

    /// Status and code of an error.
    fn code(&self) -> (u16, i64) {
        let code = self.message["error"]["code"].as_i64();
        (
            self.status,
            code.unwrap_or_else(|| panic!("no error: {self:?}")),
        )
    }

    /// The result of the request with id 7.
    fn result(&self) -> &Value {
        assert_eq!(
            (self.status, &self.message["id"]),
            (200, &json!(7)),
            "{self:?}"
        );
        assert!(self.message["error"].is_null(), "{self:?}");
        &self.message["result"]
    }

    /// What a tool told, the same in both forms.
    fn structured(&self) -> &Value {
        let result = self.result();
        let structured = &result["structuredContent"];
        assert!(
            structured.is_object() && result.get("isError").is_none(),
            "{self:?}"
        );
        let text = result["content"][0]["text"].as_str().expect("a text");
        let text: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(text, *structured);
        structured
    }

    /// The text of a tool's failure.
    fn failure(&self) -> &str {
        let result = self.result();
        assert_eq!(result["isError"], true, "{self:?}");
        assert!(result.get("structuredContent").is_none());
        result["content"][0]["text"].as_str().expect("a text")
    }
}

/// The one answer among the effects.
fn answer(effects: &[Effect]) -> &Answer {
    let answers: Vec<&Answer> = effects.iter().filter_map(answer_of).collect();
    let [answer] = answers.as_slice() else {
        panic!("not one answer: {effects:?}");
    };
    assert!(answer.header("cache-control").is_some());
    answer
}

fn keeps_secrets(told: &[u8]) {
    let told = String::from_utf8_lossy(told);
    for secret in [TOKEN, PLANE, STATEMENT] {
        assert!(!told.contains(secret), "{told}");
    }
}

fn counts(effects: &[Effect], counter: Counter) -> usize {
    let counted = |effect: &&Effect| **effect == Effect::Count(counter);
    effects.iter().filter(counted).count()
}

fn said(status: &str, content_type: &str, body: &str) -> Result<PlaneAnswer, PlaneFault> {
    let headers = [
        (":status", status.as_bytes()),
        ("content-type", content_type.as_bytes()),
    ];
    let body = Some(body.as_bytes().to_vec());
    Ok(PlaneAnswer::new(headers.into_iter(), body))
}

/// An approval as the plane tells of it, with more than anybody here is to be told.
fn stands(status: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{ID}","status":"{status}","listener_name":"billing","approval_rule":"r","created_at":"2026-09-29T14:02:11Z","payload":"{STATEMENT}"{more}}}"#
    )
}

fn reads(status: &str, more: &str) -> Result<PlaneAnswer, PlaneFault> {
    said("200", "application/json", &stands(status, more))
}

/// What the poller tells of an approval.
fn news(status: &str, left_ms: u64) -> Event {
    let id = ApprovalId::parse_canonical(ID).expect("an id");
    let view = read_approval(&reads(status, "").expect("an answer"), &id).expect("a view");
    Event::Watched(News::Read {
        read: Ok(Rc::new(view)),
        left_ms,
    })
}
