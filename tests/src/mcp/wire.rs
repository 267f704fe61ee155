//! The approval tools as messages on the wire, without anybody's library: requests to write, and answers to read.

use serde_json::{Value, json};

use crate::client::{Answer, Connection};
use crate::http1;
use crate::scene::Scene;

/// What every client sends.
pub const JSON: (&str, &str) = ("content-type", "application/json");
/// What a client sends that takes both forms of an answer.
pub const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

/// A call of a tool; with a token it asks for progress.
pub fn tool_call(tool: &str, arguments: Value, progress_token: Option<Value>) -> String {
    let mut params = json!({"name": tool, "arguments": arguments});
    if let Some(token) = progress_token {
        params["_meta"] = json!({"progressToken": token});
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// A call of `approval_wait`.
pub fn wait_call(id: &str, seconds: u32, progress_token: Option<Value>) -> String {
    let arguments = json!({"id": id, "timeout_seconds": seconds});
    tool_call("approval_wait", arguments, progress_token)
}

/// A POST to the tools of `scene`.
pub fn request(scene: &Scene, body: &str) -> Vec<u8> {
    let host = scene.address().to_string();
    http1::request_to(&host, "POST", "/mcp", &[JSON, BOTH], Some(body.as_bytes()))
}

/// Posts `body` on a connection of its own.
pub async fn post(scene: &Scene, body: &str) -> Answer {
    scene.send(&request(scene, body)).await
}

/// Begins to post `body`, for an answer that is to come later.
pub async fn begin(scene: &Scene, body: &str) -> Connection {
    let mut connection = scene.connect().await;
    connection.write(&request(scene, body)).await;
    connection
}

/// The messages of an answer: one of JSON, or those of its events.
pub fn messages(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer}");
    if answer.header("content-type").as_deref() == Some("application/json") {
        return vec![answer.json()];
    }
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("text/event-stream")
    );
    let text = answer.text();
    let events = text.split_terminator("\n\n");
    let message = |event: &str| {
        let data = event.strip_prefix("event: message\ndata: ");
        let data = data.unwrap_or_else(|| panic!("no event: {event:?}"));
        serde_json::from_str(data).expect("JSON")
    };
    events.map(message).collect()
}

/// What a tool's result tells, in both of its forms.
pub fn told(message: &Value) -> Value {
    let result = &message["result"];
    assert_eq!(result.get("isError"), None, "{message}");
    let told = result["structuredContent"].clone();
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), told);
    told
}

/// The text of a tool's result that says it is an error.
pub fn complaint(message: &Value) -> String {
    let result = &message["result"];
    assert_eq!(result["isError"], true, "{message}");
    assert_eq!(result.get("structuredContent"), None, "{message}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    text.to_owned()
}

/// Waits until the tools of `scene` have so many waits.
pub async fn until_waiting(scene: &Scene, count: u64) {
    let gauge = "wasmcustom.hoop_filter_mcp_waits";
    crate::wait::until(&format!("{count} wait"), async || {
        (scene.proxy.stat(gauge).await == count).then_some(())
    })
    .await;
}
