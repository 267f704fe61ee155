//! A Control Plane that answers whatever a case scripts, true or not, and remembers what it was asked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::http1::{Body, Message, Reader};
use crate::unread;

/// A scripted plane. It lives as long as the runtime of its case.
#[derive(Clone)]
pub struct LyingPlane {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: Arc<Mutex<Option<JoinHandle<()>>>>,
    gone: Arc<watch::Sender<u32>>,
}

/// One thing that a plane can do with a call.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers with these bytes and keeps the connection.
    Raw(Vec<u8>),
    /// Answers with these pieces, each in a write of its own after a short while, and keeps the connection.
    Slow(Vec<Vec<u8>>),
    /// Sends these bytes and closes the connection.
    Truncated(Vec<u8>),
    /// Never answers.
    Hang,
}

#[derive(Default)]
struct State {
    calls: Vec<Message>,
    next: VecDeque<Reply>,
    standing: Option<Reply>,
}

impl LyingPlane {
    /// Listens on a free loopback port. Until a case says otherwise it answers 500.
    pub async fn start() -> LyingPlane {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        let state = Arc::new(Mutex::new(State::default()));
        let gone = Arc::new(watch::Sender::new(0));
        let task = tokio::spawn(accept(listener, Arc::clone(&state), gone.subscribe()));
        LyingPlane {
            address,
            state,
            server: Arc::new(Mutex::new(Some(task))),
            gone,
        }
    }

    /// Where it listens, or listened before [`LyingPlane::stop`].
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on every call meets `reply`.
    pub fn always(&self, reply: Reply) {
        let mut state = locked(&self.state);
        state.next.clear();
        state.standing = Some(reply);
    }

    /// The next call without an own reply meets `reply`, before the standing one.
    pub fn once(&self, reply: Reply) {
        locked(&self.state).next.push_back(reply);
    }

    /// Every call so far, oldest first.
    pub fn calls(&self) -> Vec<Message> {
        locked(&self.state).calls.clone()
    }

    /// Every call but the first `count`, oldest first.
    pub fn calls_after(&self, count: usize) -> Vec<Message> {
        let state = locked(&self.state);
        state.calls.get(count..).unwrap_or_default().to_vec()
    }

    /// How many calls came so far.
    pub fn call_count(&self) -> usize {
        locked(&self.state).calls.len()
    }

    /// The statements that were filed so far, decoded.
    pub fn filed(&self) -> Vec<Vec<u8>> {
        let filings = self.calls();
        filings
            .iter()
            .filter(|call| call.start_word(0) == "POST")
            .filter(|call| call.start_word(1) == "/api/sidecars/reviews")
            .map(|call| statement(&call.body))
            .collect()
    }

    /// Closes the listening socket and every connection: from now on nobody is there.
    pub async fn stop(&self) {
        let task = self
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            task.abort();
            let _aborted = task.await;
        }
        self.gone.send_modify(|times| *times += 1);
    }

    /// Listens again on the same port.
    pub async fn resume(&self) {
        let listener = TcpListener::bind(self.address)
            .await
            .expect("the port that was ours");
        let task = tokio::spawn(accept(
            listener,
            Arc::clone(&self.state),
            self.gone.subscribe(),
        ));
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
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

/// The statement in the body of a filing.
fn statement(filing: &[u8]) -> Vec<u8> {
    let filing: Value = serde_json::from_slice(filing).expect("a filing is JSON");
    let payload = filing["payload"].as_str().expect("a filing has a payload");
    STANDARD.decode(payload).expect("the payload is base64")
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>, gone: watch::Receiver<u32>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let mut gone = gone.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = serve(stream, state) => {}
                _ = gone.changed() => {}
            }
        });
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else {
        return;
    };
    let _small_pieces_go_out_at_once = stream.set_nodelay(true);
    let (read, mut write) = stream.into_split();
    let mut reader = Reader::new(read);
    while let Ok(call) = reader.message(Body::AsRequest).await {
        let reply = {
            let mut state = locked(&state);
            state.calls.push(call);
            let next = state.next.pop_front();
            next.or_else(|| state.standing.clone())
        };
        match reply.unwrap_or_else(|| Reply::typed(500, "text/plain", "no script")) {
            Reply::Raw(bytes) => {
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Reply::Slow(pieces) => {
                for piece in pieces {
                    if write.write_all(&piece).await.is_err() {
                        return;
                    }
                    unread::until_read(local, peer).await;
                }
            }
            Reply::Truncated(bytes) => {
                let _peer_may_be_gone = write.write_all(&bytes).await;
                return;
            }
            Reply::Hang => std::future::pending().await,
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
