//! The service behind the gate: it counts what arrives at its socket, keeps every request byte for byte, and answers 200.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::http1::{Body, Message, Reader};

/// A recording upstream. It lives as long as the runtime of its case.
#[derive(Clone)]
pub struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

/// What the upstream does with a request that it has read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaction {
    /// Answers 200 with a short text.
    #[default]
    Answer,
    /// Answers 503, which clients like to have retried.
    Fail,
    /// Answers with these bytes and keeps the connection.
    Raw(&'static [u8]),
    /// Answers with these bytes and closes the connection.
    RawAndClose(&'static [u8]),
    /// Closes the connection without an answer.
    Hangup,
    /// Keeps the connection and never answers.
    Silence,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    bytes: usize,
    requests: Vec<Message>,
    reaction: Reaction,
}

impl Upstream {
    /// Listens on a free loopback port.
    pub async fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        let seen = Arc::new(Mutex::new(Seen::default()));
        tokio::spawn(accept(listener, Arc::clone(&seen)));
        Upstream { address, seen }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it accepted so far.
    pub fn connections(&self) -> usize {
        locked(&self.seen).connections
    }

    /// How many bytes arrived at its socket so far.
    pub fn bytes(&self) -> usize {
        locked(&self.seen).bytes
    }

    /// Every request so far that came in whole, oldest first.
    pub fn requests(&self) -> Vec<Message> {
        locked(&self.seen).requests.clone()
    }

    /// Every whole request but the first `count`, oldest first.
    pub fn requests_after(&self, count: usize) -> Vec<Message> {
        let seen = locked(&self.seen);
        seen.requests.get(count..).unwrap_or_default().to_vec()
    }

    /// How many requests came in whole so far.
    pub fn request_count(&self) -> usize {
        locked(&self.seen).requests.len()
    }

    /// The newest request.
    pub fn last(&self) -> Message {
        let requests = self.requests();
        requests
            .last()
            .expect("the upstream has had a request")
            .clone()
    }

    /// From now on every request meets `reaction`.
    pub fn react(&self, reaction: Reaction) {
        locked(&self.seen).reaction = reaction;
    }
}

async fn accept(listener: TcpListener, seen: Arc<Mutex<Seen>>) {
    while let Ok((stream, _)) = listener.accept().await {
        locked(&seen).connections += 1;
        tokio::spawn(serve(stream, Arc::clone(&seen)));
    }
}

async fn serve(stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    let (read, mut write) = stream.into_split();
    let counter = Arc::clone(&seen);
    let mut reader = Reader::counting(read, move |count| locked(&counter).bytes += count);
    while let Ok(mut request) = reader.head().await {
        let expects = request.header("expect").is_some();
        if expects && write.write_all(CONTINUE).await.is_err() {
            return;
        }
        if reader.body_of(&mut request, Body::AsRequest).await.is_err() {
            return;
        }
        let head = request.start_word(0) == "HEAD";
        let reaction = {
            let mut seen = locked(&seen);
            seen.requests.push(request);
            seen.reaction
        };
        let answer = match reaction {
            Reaction::Answer if head => ANSWER_HEAD,
            Reaction::Answer => ANSWER,
            Reaction::Fail => FAILURE,
            Reaction::Raw(bytes) | Reaction::RawAndClose(bytes) => bytes,
            Reaction::Hangup => return,
            Reaction::Silence => std::future::pending().await,
        };
        let closes = matches!(reaction, Reaction::RawAndClose(_));
        if write.write_all(answer).await.is_err() || closes {
            return;
        }
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of every answer of the upstream.
pub const ANSWER_TEXT: &str = "the upstream has run it\n";

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 24\r\n\r\nthe upstream has run it\n";
const ANSWER_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 24\r\n\r\n";
const FAILURE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
