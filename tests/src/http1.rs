//! HTTP/1.1 messages as bytes: a small reader for both ends of a scene, which keeps what it read.
//!
//! It is strict enough to notice what a gate might spoil and knows nothing about the gate.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

/// One request or response as it came over the socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// First line, without its line end.
    pub start: Vec<u8>,
    /// Header fields in order, names as spelled.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body after transfer decoding.
    pub body: Vec<u8>,
    /// Trailer fields of a chunked body.
    pub trailers: Vec<(String, Vec<u8>)>,
    /// Every byte of the message.
    pub raw: Vec<u8>,
}

impl Message {
    /// The word at `index` of the first line, lossily as text.
    pub fn start_word(&self, index: usize) -> String {
        let word = self.start.split(|byte| *byte == b' ').nth(index);
        String::from_utf8_lossy(word.unwrap_or_default()).into_owned()
    }

    /// The value of the first header field of that name, lossily as text.
    pub fn header(&self, name: &str) -> Option<String> {
        self.header_bytes(name)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The value of the first header field of that name.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        self.header_values(name).next()
    }

    /// The values of every header field of that name.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.headers
            .iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// The body, lossily as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The status code, for a response.
    pub fn status(&self) -> u16 {
        self.start_word(1).parse().unwrap_or_default()
    }
}

/// Where the body of a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// As the header fields say; without a length there is none (requests).
    AsRequest,
    /// As the header fields say; without a length it ends with the connection (responses).
    AsResponse,
    /// There is none, whatever the header fields say (the answer to HEAD).
    Absent,
}

/// Why no message came.
#[derive(Debug)]
pub enum Broken {
    /// The connection ended before the first byte of a message.
    Closed,
    /// The connection ended inside a message, or the bytes are no HTTP/1.1; what was read so far.
    Halfway(Vec<u8>),
}

/// Reads messages from one socket. Bytes behind a message stay for the next one.
pub struct Reader<R> {
    source: R,
    pending: Vec<u8>,
    on_bytes: Box<dyn FnMut(usize) + Send>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// A reader of `source`.
    pub fn new(source: R) -> Reader<R> {
        Reader::counting(source, |_| ())
    }

    /// A reader of `source` that tells `on_bytes` how many bytes each read brought.
    pub fn counting(source: R, on_bytes: impl FnMut(usize) + Send + 'static) -> Reader<R> {
        Reader {
            source,
            pending: Vec::new(),
            on_bytes: Box::new(on_bytes),
        }
    }

    /// Reads one message whole.
    pub async fn message(&mut self, body: Body) -> Result<Message, Broken> {
        let mut message = self.head().await?;
        self.body_of(&mut message, body).await?;
        Ok(message)
    }

    /// Reads first line and header fields only; [`Reader::body_of`] reads the rest.
    pub async fn head(&mut self) -> Result<Message, Broken> {
        let mut message = Message::default();
        message.start = self.line(&mut message.raw).await?;
        message.headers = self.fields(&mut message.raw).await?;
        Ok(message)
    }

    /// Reads the body that belongs to the head in `message`.
    pub async fn body_of(&mut self, message: &mut Message, body: Body) -> Result<(), Broken> {
        if body == Body::Absent || matches!(message.status(), 100..=199 | 204 | 304) {
            return Ok(());
        }
        let chunked = message
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        if chunked {
            return self.chunks(message).await;
        }
        match message.header("content-length") {
            Some(length) => {
                let length: usize = match length.parse() {
                    Ok(length) => length,
                    Err(_) => return Err(Broken::Halfway(message.raw.clone())),
                };
                message.body = self.take(length, &mut message.raw).await?;
            }
            None if body == Body::AsResponse => {
                while self.fill().await? {}
                message.body = std::mem::take(&mut self.pending);
                message.raw.extend_from_slice(&message.body);
            }
            None => {}
        }
        Ok(())
    }

    /// Whether the connection is at its end: no byte is pending and none comes.
    pub async fn at_end(&mut self) -> bool {
        self.pending.is_empty() && !matches!(self.fill().await, Ok(true))
    }

    /// Whether the connection is open and no byte waits to be read.
    pub async fn is_silent(&mut self) -> bool {
        let came = tokio::time::timeout(Duration::ZERO, self.fill()).await;
        came.is_err() && self.pending.is_empty()
    }

    async fn chunks(&mut self, message: &mut Message) -> Result<(), Broken> {
        loop {
            let line = self.line(&mut message.raw).await?;
            let digits = line
                .split(|byte| *byte == b';')
                .next()
                .map(|digits| String::from_utf8_lossy(digits).trim().to_owned())
                .unwrap_or_default();
            let Ok(length) = usize::from_str_radix(&digits, 16) else {
                return Err(Broken::Halfway(message.raw.clone()));
            };
            if length == 0 {
                message.trailers = self.fields(&mut message.raw).await?;
                return Ok(());
            }
            let chunk = self.take(length, &mut message.raw).await?;
            message.body.extend_from_slice(&chunk);
            self.line(&mut message.raw).await?;
        }
    }

    async fn fields(&mut self, raw: &mut Vec<u8>) -> Result<Vec<(String, Vec<u8>)>, Broken> {
        let mut fields = Vec::new();
        loop {
            let line = self.line(raw).await?;
            if line.is_empty() {
                return Ok(fields);
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                return Err(Broken::Halfway(raw.clone()));
            };
            let (name, value) = line.split_at(colon);
            let name = String::from_utf8_lossy(name).into_owned();
            fields.push((name, value[1..].trim_ascii().to_vec()));
        }
    }

    async fn line(&mut self, raw: &mut Vec<u8>) -> Result<Vec<u8>, Broken> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.pending.drain(..=end).collect();
                raw.extend_from_slice(&line);
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(line);
            }
            if !self.fill().await? {
                return Err(self.ended(raw));
            }
        }
    }

    async fn take(&mut self, length: usize, raw: &mut Vec<u8>) -> Result<Vec<u8>, Broken> {
        while self.pending.len() < length {
            if !self.fill().await? {
                return Err(self.ended(raw));
            }
        }
        let taken: Vec<u8> = self.pending.drain(..length).collect();
        raw.extend_from_slice(&taken);
        Ok(taken)
    }

    fn ended(&mut self, raw: &[u8]) -> Broken {
        if raw.is_empty() && self.pending.is_empty() {
            return Broken::Closed;
        }
        let mut read = raw.to_vec();
        read.append(&mut self.pending);
        Broken::Halfway(read)
    }

    /// Reads once. `false` at the end of the connection, a reset counts as an end.
    async fn fill(&mut self) -> Result<bool, Broken> {
        let mut buffer = vec![0; 16 * 1024];
        let count = self.source.read(&mut buffer).await.unwrap_or(0);
        (self.on_bytes)(count);
        self.pending.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }
}

/// A request in HTTP/1.1 bytes, with `host` and, for a body, `content-length`.
pub fn request(
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Vec<u8> {
    request_to("billing.example", method, target, headers, body)
}

/// [`request`] to another `host`.
pub fn request_to(
    host: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Vec<u8> {
    let mut bytes = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if let Some(body) = body {
        bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.unwrap_or_default());
    bytes
}
