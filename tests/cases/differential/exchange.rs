//! Runs one exchange on one host and notes what client, upstream and plane saw.

use std::time::Duration;

use hoop_tests::client::h2::H2Request;
use hoop_tests::client::{Answer, describe};
use hoop_tests::http1::{Body, Broken, Message, Reader, request};
use hoop_tests::scene::Scene;
use hoop_tests::upstream::Reaction;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::calls::{Call, Exchange, Http1Body, Http1Call};
use super::outcome::Outcome;

/// Runs `exchange` on the host of `scene`.
pub(super) async fn run(scene: &Scene, exchange: &Exchange) -> Outcome {
    let calls_before = scene.lies().call_count();
    let requests_before = scene.upstream.request_count();
    scene.lies().always(exchange.plane.value.clone());
    scene.upstream.react(exchange.upstream.value);

    let mut outcome = Outcome::default();
    match &exchange.call {
        Call::Http1(call) => http1(scene, call, &mut outcome).await,
        Call::Http2(call) => http2(scene, call, &mut outcome).await,
    }
    if timeout(PATIENCE, scene.idle()).await.is_err() {
        outcome.note("the request never ends");
    }
    let upstream = scene.upstream.address();
    for message in scene.upstream.requests_after(requests_before) {
        outcome.message("upstream", &message, upstream);
    }
    let plane = scene.lies().address();
    for message in scene.lies().calls_after(calls_before) {
        outcome.message("plane", &message, plane);
    }
    outcome
}

async fn http2(scene: &Scene, call: &H2Request, outcome: &mut Outcome) {
    let connection = scene.connect_h2().await;
    match timeout(PATIENCE, connection.try_send(call)).await {
        Ok(Ok(answer)) => outcome.answer(answer.status.to_string().as_bytes(), &answer),
        Ok(Err(cause)) => outcome.note(match cause.reason() {
            Some(reason) => format!("client got no answer: {reason:?}"),
            None => "client got no answer: the connection ends".to_owned(),
        }),
        Err(_) => outcome.note("client waits in vain"),
    }
}

async fn http1(scene: &Scene, call: &Http1Call, outcome: &mut Outcome) {
    let stream = TcpStream::connect(scene.address()).await;
    let stream = stream.expect("the gate's listener");
    stream.set_nodelay(true).expect("a TCP option");
    let (read, write) = stream.into_split();
    let mut client = Client {
        reader: Reader::new(read),
        write,
        write_bytes: call.write_bytes,
    };
    let name = describe(&call.head());
    client.write(&call.head()).await;
    if !matches!(call.body, Http1Body::Expecting(_)) {
        client.write(&call.body()).await;
    }
    loop {
        let body = match call.method {
            "HEAD" => Body::Absent,
            _ => Body::AsResponse,
        };
        let Some(message) = client.next(body, outcome).await else {
            return;
        };
        let status = message.status();
        let start = message.start.clone();
        let mut answer = Answer::from(message);
        scene.answers().note(&name, &answer);
        let closes = is_closing(&answer);
        if call.is_raced() {
            answer.headers.retain(|(name, _)| name != "connection");
        }
        outcome.answer(&start, &answer);
        if status == 100 && matches!(call.body, Http1Body::Expecting(_)) {
            client.write(&call.body()).await;
        }
        if status >= 200 {
            if !closes && !call.is_raced() {
                client.probe(scene, outcome).await;
            }
            return;
        }
    }
}

fn is_closing(answer: &Answer) -> bool {
    let closes = |(name, value): &(String, Vec<u8>)| {
        name == "connection" && value.eq_ignore_ascii_case(b"close")
    };
    answer.headers.iter().any(closes)
}

/// A client that takes whatever comes, unlike [`hoop_tests::client::Connection`], which fails the case.
struct Client {
    reader: Reader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    write_bytes: usize,
}

impl Client {
    async fn write(&mut self, bytes: &[u8]) {
        let size = match self.write_bytes {
            0 => bytes.len().max(1),
            size => size,
        };
        for piece in bytes.chunks(size) {
            // The gate may have answered and closed already; the answer says so.
            if self.write.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn next(&mut self, body: Body, outcome: &mut Outcome) -> Option<Message> {
        match timeout(PATIENCE, self.reader.message(body)).await {
            Ok(Ok(message)) => return Some(message),
            Ok(Err(Broken::Closed)) => outcome.note("client sees the end of the connection"),
            Ok(Err(Broken::Halfway(bytes))) => {
                outcome.note(format!("client got half an answer: {}", describe(&bytes)));
            }
            Err(_) => outcome.note("client waits in vain"),
        }
        None
    }

    /// Whether the connection is still in step: another request on it is answered.
    async fn probe(&mut self, scene: &Scene, outcome: &mut Outcome) {
        scene.upstream.react(Reaction::Answer);
        let probe = request("GET", "/invoices/next", &[], None);
        self.write(&probe).await;
        if let Some(message) = self.next(Body::AsResponse, outcome).await {
            outcome.note(format!(
                "the next request gets {}",
                message.start.escape_ascii()
            ));
        }
    }
}

/// Longer than the time-out of the policy, shorter than a person's patience with a hundred mismatches.
const PATIENCE: Duration = Duration::from_secs(3);
