//! Server-sent events as MCP uses them. Source: WHATWG HTML, 9.2; contract 5.1.

/// One message as an event. JSON has no line break outside its strings, and none unescaped within them.
#[must_use]
pub fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}
