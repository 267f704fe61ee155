//! Clients that write requests byte for byte, and the answers they read.
//!
//! Everything an agent could receive goes through [`Answers`], so that the scene can search it for what must never leave the gate.

pub mod curl;
pub mod h2;
pub mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;

use crate::http1::{Body, Broken, Message, Reader};
use crate::wait;

/// One answer as a client saw it, over any HTTP version.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header fields in order, names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Trailer fields in order, names in lower case.
    pub trailers: Vec<(String, Vec<u8>)>,
}

impl Answer {
    /// The value of the only header field of that name; fails the case when it comes twice.
    pub fn header(&self, name: &str) -> Option<String> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "{name} comes twice: {self}");
        value.map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(cause) => panic!("no JSON ({cause}) in {self}"),
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(out, "{name}: {}", String::from_utf8_lossy(value))?;
        }
        write!(out, "\n{}", self.text())
    }
}

impl From<Message> for Answer {
    fn from(message: Message) -> Answer {
        let lower = |(name, value): (String, Vec<u8>)| (name.to_ascii_lowercase(), value);
        Answer {
            status: message.status(),
            headers: message.headers.into_iter().map(lower).collect(),
            body: message.body,
            trailers: message.trailers.into_iter().map(lower).collect(),
        }
    }
}

/// Every request and answer of a scene, in the order in which they ended.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Vec<(String, Answer)>>>);

impl Answers {
    /// Notes one exchange.
    pub fn note(&self, request: impl Into<String>, answer: &Answer) {
        let mut exchanges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.push((request.into(), answer.clone()));
    }

    /// All exchanges so far.
    pub fn all(&self) -> Vec<(String, Answer)> {
        let exchanges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.clone()
    }
}

/// A connection of bytes, plain or with TLS.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// One HTTP/1.1 connection to the gate, kept open between requests.
pub struct Connection {
    reader: Reader<ReadHalf<Box<dyn Io>>>,
    writer: WriteHalf<Box<dyn Io>>,
    answers: Answers,
}

impl Connection {
    /// Connects to `address`.
    pub async fn open(address: SocketAddr, answers: Answers) -> Connection {
        let stream = TcpStream::connect(address)
            .await
            .expect("the gate's listener");
        stream.set_nodelay(true).expect("a TCP option");
        Connection::over(Box::new(stream), answers)
    }

    /// Speaks HTTP/1.1 over `io`.
    pub fn over(io: Box<dyn Io>, answers: Answers) -> Connection {
        let (read, writer) = tokio::io::split(io);
        Connection {
            reader: Reader::new(read),
            writer,
            answers,
        }
    }

    /// Writes `bytes`. The gate may answer and close early, so a failed write is no failure of the case.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _closed_by_the_gate = self.writer.write_all(bytes).await;
    }

    /// Writes `bytes` one at a time, each in a write of its own.
    pub async fn write_singly(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let _closed_by_the_gate = self.writer.write_all(&[*byte]).await;
            tokio::task::yield_now().await;
        }
    }

    /// Reads the next message, interim answers included; `request` describes what it answers.
    pub async fn next(&mut self, request: &str, body: Body) -> Result<Answer, Broken> {
        next_answer(&mut self.reader, &self.answers, request, body).await
    }

    /// Reads the final answer to `request`, past any interim one.
    pub async fn answer(&mut self, request: &str) -> Answer {
        final_answer(&mut self.reader, &self.answers, request).await
    }

    /// Reads the answer to `request` however long it takes, for what is measured.
    pub async fn late_answer(&mut self, request: &str) -> Answer {
        let message = self.reader.message(Body::AsResponse).await;
        let answer = Answer::from(message.expect("an answer"));
        self.answers.note(request, &answer);
        answer
    }

    /// Sends `request` whole and reads its answer, which may come before the last byte is written.
    pub async fn send(&mut self, request: &[u8]) -> Answer {
        let name = describe(request);
        let Connection {
            reader,
            writer,
            answers,
        } = self;
        let write = async {
            let _closed_by_the_gate = writer.write_all(request).await;
        };
        let ((), answer) = tokio::join!(write, final_answer(reader, answers, &name));
        answer
    }

    /// Sends a HEAD request and reads its answer, which has no body.
    pub async fn send_head(&mut self, request: &[u8]) -> Answer {
        self.write(request).await;
        let name = describe(request);
        let answer = self.next(&name, Body::Absent).await;
        answer.unwrap_or_else(|broken| panic!("no answer to {name}: {broken:?}"))
    }

    /// Whether not a byte has come that was not read yet, and the connection is open.
    pub async fn is_silent(&mut self) -> bool {
        self.reader.is_silent().await
    }

    /// Whether the gate has closed the connection and sent nothing more.
    pub async fn at_end(&mut self) -> bool {
        wait::within("the end of the connection", self.reader.at_end()).await
    }
}

async fn final_answer(
    reader: &mut Reader<ReadHalf<Box<dyn Io>>>,
    answers: &Answers,
    request: &str,
) -> Answer {
    loop {
        let answer = next_answer(reader, answers, request, Body::AsResponse).await;
        let answer = answer.unwrap_or_else(|broken| panic!("no answer to {request}: {broken:?}"));
        if answer.status >= 200 {
            return answer;
        }
    }
}

async fn next_answer(
    reader: &mut Reader<ReadHalf<Box<dyn Io>>>,
    answers: &Answers,
    request: &str,
    body: Body,
) -> Result<Answer, Broken> {
    let message = wait::within(request, reader.message(body)).await?;
    let answer = Answer::from(message);
    answers.note(request, &answer);
    Ok(answer)
}

/// A request for messages: its bytes as text, cut when long.
pub fn describe(request: &[u8]) -> String {
    let shown = &request[..request.len().min(SHOWN_BYTES)];
    let cut = if shown.len() < request.len() {
        format!("… ({} bytes)", request.len())
    } else {
        String::new()
    };
    format!("{}{cut}", shown.escape_ascii())
}

const SHOWN_BYTES: usize = 600;
