//! A Control Plane that answers whatever a case scripts, true or not, and remembers what it was asked.
//!
//! A script is for every call ([`LyingPlane::always`], [`LyingPlane::once`]) or for one [`Kind`] of call
//! ([`LyingPlane::on`], [`LyingPlane::next`]); the one for the kind comes first.

mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::http1::{Body, Message, Reader};
use crate::wait;
pub use reply::{Latch, Reply, path_id, read_document, statement};

/// A scripted plane. It lives as long as the runtime of its case.
#[derive(Clone)]
pub struct LyingPlane {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: Arc<Mutex<Option<JoinHandle<()>>>>,
    gone: Arc<watch::Sender<u32>>,
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `POST /api/sidecars/reviews/{id}/claim`
    Claim,
    /// `POST /api/sidecars/reviews`
    Filing,
    /// `POST /api/sidecars/handshake`
    Handshake,
    /// `GET /api/sidecars/reviews?...`
    List,
    /// Anything else; among it a read of one approval.
    Other,
}

impl Kind {
    /// The kind of a call, by its method and path.
    pub fn of(call: &Message) -> Kind {
        let (method, target) = (call.start_word(0), call.start_word(1));
        let path = target.split('?').next().unwrap_or_default();
        match (method.as_str(), path) {
            ("GET", "/api/sidecars/reviews") => Kind::List,
            ("POST", "/api/sidecars/handshake") => Kind::Handshake,
            ("POST", "/api/sidecars/reviews") => Kind::Filing,
            ("POST", path) if path.ends_with("/claim") => Kind::Claim,
            _ => Kind::Other,
        }
    }
}

#[derive(Default)]
struct State {
    calls: Vec<Message>,
    for_all: Script,
    for_kind: BTreeMap<Kind, Script>,
}

#[derive(Default)]
struct Script {
    next: VecDeque<Reply>,
    standing: Option<Reply>,
}

impl Script {
    fn take(&mut self) -> Option<Reply> {
        let next = self.next.pop_front();
        next.or_else(|| self.standing.clone())
    }
}

impl State {
    fn reply(&mut self, call: &Message) -> Reply {
        let for_kind = self.for_kind.get_mut(&Kind::of(call));
        let reply = for_kind.and_then(Script::take);
        reply
            .or_else(|| self.for_all.take())
            .unwrap_or_else(|| Reply::typed(500, "text/plain", "no script"))
    }
}

impl LyingPlane {
    /// Listens on a free loopback port. Until a case says otherwise it answers 500.
    pub async fn start() -> LyingPlane {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)));
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
        locked(&self.state).for_all = Script {
            next: VecDeque::new(),
            standing: Some(reply),
        };
    }

    /// The next call without an own reply meets `reply`, before the standing one.
    pub fn once(&self, reply: Reply) {
        locked(&self.state).for_all.next.push_back(reply);
    }

    /// From now on every call of that kind meets `reply`.
    pub fn on(&self, kind: Kind, reply: Reply) {
        let script = Script {
            next: VecDeque::new(),
            standing: Some(reply),
        };
        locked(&self.state).for_kind.insert(kind, script);
    }

    /// The next call of that kind without an own reply meets `reply`, before the standing one.
    pub fn next(&self, kind: Kind, reply: Reply) {
        let mut state = locked(&self.state);
        let script = state.for_kind.entry(kind).or_default();
        script.next.push_back(reply);
    }

    /// From now on filings open `id`, which nobody has decided.
    pub fn undecided(&self, id: &str) {
        self.on(Kind::Filing, Reply::review(201, false, id, "PENDING"));
        self.on(Kind::List, Reply::list(&[(id, "PENDING")]));
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

    /// The calls of one kind so far, oldest first.
    pub fn calls_of(&self, kind: Kind) -> Vec<Message> {
        let mut calls = self.calls();
        calls.retain(|call| Kind::of(call) == kind);
        calls
    }

    /// How many calls of one kind came so far.
    pub fn count(&self, kind: Kind) -> usize {
        self.calls_of(kind).len()
    }

    /// Waits until at least so many calls of one kind have come.
    pub async fn until_asked(&self, kind: Kind, count: usize) {
        let what = format!("{count} calls of the plane: {kind:?}");
        wait::until(&what, async || (self.count(kind) >= count).then_some(())).await;
    }

    /// The statements that were filed so far, decoded.
    pub fn filed(&self) -> Vec<Vec<u8>> {
        let filings = self.calls_of(Kind::Filing);
        filings.iter().map(statement).collect()
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
        let listener = listen(self.address);
        let task = tokio::spawn(accept(
            listener,
            Arc::clone(&self.state),
            self.gone.subscribe(),
        ));
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }
}

/// With room for a thousand connections that come at once: a case has one thread for all its parties.
fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option of sockets");
    socket
        .bind(address)
        .expect("a free loopback port, or the one that was ours");
    socket.listen(4_096).expect("a socket that listens")
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
            let reply = state.reply(&call);
            state.calls.push(call.clone());
            reply
        };
        if !reply.carry_out(&call, &mut write, (local, peer)).await {
            return;
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
