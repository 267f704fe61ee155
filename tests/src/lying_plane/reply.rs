//! What a lying plane does with one call.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::watch;

use crate::http1::Message;
use crate::unread;

/// One thing that a plane can do with a call.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Does what the function makes of the call.
    Made(fn(&Message) -> Reply),
    /// Answers with these bytes and keeps the connection.
    Raw(Vec<u8>),
    /// Answers with these pieces, each in a write of its own after a short while, and keeps the connection.
    Slow(Vec<Vec<u8>>),
    /// Sends these bytes and closes the connection.
    Truncated(Vec<u8>),
    /// Never answers.
    Hang,
    /// Does something once the latch is open.
    Behind(Latch, Box<Reply>),
}

/// Keeps answers back until a case opens it.
#[derive(Clone, Debug)]
pub struct Latch(watch::Sender<bool>);

impl Default for Latch {
    fn default() -> Latch {
        Latch(watch::Sender::new(false))
    }
}

impl Latch {
    /// Lets every answer behind it go, now and from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn opened(&self) {
        let mut open = self.0.subscribe();
        // The sender lives in `self`, so this ends with the opening only.
        let _open = open.wait_for(|open| *open).await;
    }
}

impl Reply {
    /// An HTTP answer with this status, content type and body.
    pub fn typed(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Reply {
        Reply::with_headers(status, &[("content-type", content_type)], body)
    }

    /// An HTTP answer with these header fields and body.
    pub fn with_headers(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let body = body.as_ref();
        let mut bytes = format!("HTTP/1.1 {status} Scripted\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        Reply::Raw(bytes)
    }

    /// A JSON answer.
    pub fn json(status: u16, body: &Value) -> Reply {
        Reply::typed(status, "application/json; charset=utf-8", body.to_string())
    }

    /// An honest answer to a filing or claim.
    pub fn review(status: u16, forward: bool, id: &str, state: &str) -> Reply {
        Reply::json(
            status,
            &json!({"forward": forward, "review": {"id": id, "status": state}}),
        )
    }

    /// An honest answer to a read of one approval.
    pub fn read(id: &str, state: &str, listener: &str) -> Reply {
        Reply::json(200, &read_document(id, state, listener))
    }

    /// An honest list of approvals, each an id and where it stands.
    pub fn list(rows: &[(&str, &str)]) -> Reply {
        let rows = rows.iter();
        let rows = rows.map(|(id, state)| read_document(id, state, "billing-api"));
        Reply::json(200, &rows.collect())
    }

    /// This reply, once `latch` is open.
    pub fn behind(self, latch: &Latch) -> Reply {
        Reply::Behind(latch.clone(), Box::new(self))
    }

    /// Does it with `call`, which came over the connection between these two ends. `false` when the connection is over.
    pub(super) async fn carry_out(
        self,
        call: &Message,
        write: &mut OwnedWriteHalf,
        (local, peer): (SocketAddr, SocketAddr),
    ) -> bool {
        let mut reply = self;
        loop {
            reply = match reply {
                Reply::Behind(latch, then) => {
                    latch.opened().await;
                    *then
                }
                Reply::Hang => std::future::pending().await,
                Reply::Made(make) => make(call),
                Reply::Raw(bytes) => return write.write_all(&bytes).await.is_ok(),
                Reply::Slow(pieces) => {
                    for piece in pieces {
                        if write.write_all(&piece).await.is_err() {
                            return false;
                        }
                        unread::until_read(local, peer).await;
                    }
                    return true;
                }
                Reply::Truncated(bytes) => {
                    let _peer_may_be_gone = write.write_all(&bytes).await;
                    return false;
                }
            };
        }
    }
}

/// The object that the plane answers for one approval (contract 1.6).
pub fn read_document(id: &str, state: &str, listener: &str) -> Value {
    json!({
        "id": id,
        "status": state,
        "listener_name": listener,
        "approval_rule": "billing-approvers",
        "created_at": "2026-09-29T14:02:11Z",
        "decided_at": null,
    })
}

/// The statement in a filing.
pub fn statement(filing: &Message) -> Vec<u8> {
    let filing: Value = serde_json::from_slice(&filing.body).expect("a filing is JSON");
    let payload = filing["payload"].as_str().expect("a filing has a payload");
    STANDARD.decode(payload).expect("the payload is base64")
}

/// The approval that a claim or read is about.
pub fn path_id(call: &Message) -> String {
    let target = call.start_word(1);
    let path = target.strip_prefix("/api/sidecars/reviews/");
    let id = path.and_then(|path| path.split('/').next());
    id.unwrap_or_default().to_owned()
}
