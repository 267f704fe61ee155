//! HTTP/2 by prior knowledge or over TLS, frame by frame: DATA frames of any size, trailers, several streams on one connection.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use tokio::net::TcpStream;

use super::{Answer, Answers, Io};
use crate::wait;

/// One HTTP/2 connection to the gate.
#[derive(Clone)]
pub struct H2Connection {
    sender: SendRequest<Bytes>,
    scheme: &'static str,
    address: SocketAddr,
    answers: Answers,
}

/// A request as its parts.
#[derive(Clone, Debug, Default)]
pub struct H2Request {
    /// Method.
    pub method: String,
    /// Value of `:path`.
    pub target: String,
    /// Value of `:authority`; `None`: the address of the gate.
    pub authority: Option<String>,
    /// Header fields.
    pub headers: Vec<(String, Vec<u8>)>,
    /// One DATA frame each. None at all: the HEADERS frame ends the stream.
    pub frames: Vec<Vec<u8>>,
    /// Trailer fields; none: the last DATA frame ends the stream.
    pub trailers: Vec<(String, Vec<u8>)>,
}

impl H2Request {
    /// A request with `body` in one DATA frame, or without any.
    pub fn new(method: &str, target: &str, body: Option<&[u8]>) -> H2Request {
        H2Request {
            method: method.to_owned(),
            target: target.to_owned(),
            frames: body.map(<[u8]>::to_vec).into_iter().collect(),
            ..H2Request::default()
        }
    }
}

impl H2Connection {
    /// Connects to `address`.
    pub async fn open(address: SocketAddr, answers: Answers) -> H2Connection {
        let stream = TcpStream::connect(address)
            .await
            .expect("the gate's listener");
        H2Connection::over(Box::new(stream), "http", address, answers).await
    }

    /// Speaks HTTP/2 over `io`, which leads to `address`.
    pub async fn over(
        io: Box<dyn Io>,
        scheme: &'static str,
        address: SocketAddr,
        answers: Answers,
    ) -> H2Connection {
        let (sender, connection) = h2::client::handshake(io).await.expect("HTTP/2");
        tokio::spawn(connection);
        H2Connection {
            sender,
            scheme,
            address,
            answers,
        }
    }

    /// Sends `request` on a stream of its own and reads the answer.
    pub async fn send(&self, request: &H2Request) -> Answer {
        let name = format!(
            "h2 {} {} in {} frames",
            request.method,
            request.target,
            request.frames.len()
        );
        match wait::within(&name, self.try_send(request)).await {
            Ok(answer) => answer,
            Err(cause) => panic!("no answer to {name}: {cause}"),
        }
    }

    /// Sends `request` on a stream of its own and reads the answer, unless the stream or the connection ends first.
    pub async fn try_send(&self, request: &H2Request) -> Result<Answer, h2::Error> {
        let answer = self.exchange(request).await?;
        let name = format!("h2 {} {}", request.method, request.target);
        self.answers.note(name, &answer);
        Ok(answer)
    }

    async fn exchange(&self, request: &H2Request) -> Result<Answer, h2::Error> {
        let address = self.address.to_string();
        let authority = request.authority.as_ref().unwrap_or(&address);
        let mut head = Request::builder()
            .version(http::Version::HTTP_2)
            .method(request.method.as_str())
            .uri(format!("{}://{authority}{}", self.scheme, request.target))
            .body(())
            .expect("a request that the http crate can carry");
        *head.headers_mut() = fields(&request.headers);
        let mut sender = self.sender.clone().ready().await?;
        let ends = request.frames.is_empty() && request.trailers.is_empty();
        let (response, mut stream) = sender.send_request(head, ends)?;
        let body = async {
            for (index, frame) in request.frames.iter().enumerate() {
                let last = index + 1 == request.frames.len() && request.trailers.is_empty();
                // A gate that has refused already ends the stream while we still send.
                if stream.send_data(Bytes::from(frame.clone()), last).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            if !request.trailers.is_empty() {
                let _stream_may_have_ended = stream.send_trailers(fields(&request.trailers));
            }
        };
        let ((), response) = tokio::join!(body, response);
        let response = response?;
        let lower = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.as_str().to_owned(), value.as_bytes().to_vec())
        };
        let mut answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().iter().map(lower).collect(),
            ..Answer::default()
        };
        let mut data = response.into_body();
        while let Some(chunk) = data.data().await {
            // A refusal ends with RST_STREAM(NO_ERROR) when the request was not read to its end.
            let Ok(chunk) = chunk else { break };
            let _window = data.flow_control().release_capacity(chunk.len());
            answer.body.extend_from_slice(&chunk);
        }
        if let Ok(Some(trailers)) = data.trailers().await {
            answer.trailers = trailers.iter().map(lower).collect();
        }
        Ok(answer)
    }
}

fn fields(fields: &[(String, Vec<u8>)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name: HeaderName = name.parse().expect("a field name");
        let value = HeaderValue::from_bytes(value).expect("a field value");
        map.append(name, value);
    }
    map
}
