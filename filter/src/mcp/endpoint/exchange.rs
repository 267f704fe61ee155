//! How an answer to one request is written: by its era, with its id, in the form that its client takes.

use crate::answer::Answer;
use crate::identity::Headers;
use crate::mcp::json_rpc::{self, Id, RpcError};
use crate::mcp::{Era, headers, sse};

/// What a client takes for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    /// JSON.
    pub takes_json: bool,
    /// Server-sent events.
    pub takes_events: bool,
}

impl Reader {
    pub fn of(sent: &Headers) -> Self {
        Self {
            takes_json: headers::accepts(sent, "application", "json"),
            takes_events: headers::accepts(sent, "text", "event-stream"),
        }
    }
}

/// One request that awaits its answer.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub era: Era,
    pub id: Id,
    pub reader: Reader,
}

/// How long a client may keep an answer that is the same for everybody: it changes with the version of the filter alone.
const KEPT: &str = r#","ttlMs":3600000,"cacheScope":"public""#;

/// Who answers. A client of the earlier era learns it once, one of the later era with each result.
pub(super) const SERVER: &str = concat!(
    r#"{"name":"hoop-sidecar","title":"Approval tools","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

impl Exchange {
    /// The message with a result, of which these are the members.
    pub fn message(&self, members: &str, is_kept: bool) -> String {
        let result = match self.era {
            Era::Legacy => format!("{{{members}}}"),
            Era::Modern => {
                let comma = if members.is_empty() { "" } else { "," };
                let kept = if is_kept { KEPT } else { "" };
                format!(
                    r#"{{{members}{comma}"resultType":"complete"{kept},"_meta":{{"io.modelcontextprotocol/serverInfo":{SERVER}}}}}"#
                )
            }
        };
        json_rpc::result(&self.id, &result)
    }

    /// The answer with a result that is the same for everybody.
    pub fn result(&self, members: &str) -> Answer {
        self.write(200, &self.message(members, true))
    }

    /// The answer with the result of a tool.
    pub fn tool_result(&self, members: &str) -> Answer {
        self.write(200, &self.message(members, false))
    }

    /// The answer that refuses.
    pub fn error(&self, status: u16, error: &RpcError) -> Answer {
        self.write(status, &json_rpc::error(Some(&self.id), error))
    }

    /// Errors have a status code for clients that look no further, so they are JSON whatever the client takes.
    fn write(&self, status: u16, message: &str) -> Answer {
        if self.reader.takes_json || status != 200 {
            json(status, message)
        } else {
            events(sse::event(message))
        }
    }
}

/// One message as JSON.
pub(super) fn json(status: u16, message: &str) -> Answer {
    Answer {
        status,
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("cache-control", "no-store".to_owned()),
        ],
        body: message.as_bytes().to_vec(),
    }
}

/// Events that are there at once.
fn events(events: String) -> Answer {
    Answer {
        status: 200,
        headers: event_headers(),
        body: events.into_bytes(),
    }
}

/// The headers of an answer that is a stream of events.
pub(super) fn event_headers() -> Vec<(&'static str, String)> {
    vec![
        ("content-type", "text/event-stream".to_owned()),
        ("cache-control", "no-cache, no-transform".to_owned()),
        ("x-accel-buffering", "no".to_owned()),
    ]
}

/// Nothing, as a notification gets it.
pub(super) fn accepted() -> Answer {
    Answer {
        status: 202,
        headers: vec![("cache-control", "no-store".to_owned())],
        body: Vec::new(),
    }
}
