//! Requests and responses as one of the two sides has received them, and answers that a test writes.

use bytes::Bytes;

use crate::header_map::HeaderMap;

/// A request or response as far as it has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The headers, pseudo-headers included.
    pub headers: HeaderMap,
    /// The bytes of the body so far.
    pub body: Vec<u8>,
    /// The trailers, if there were any.
    pub trailers: Option<HeaderMap>,
    /// Whether it has ended.
    pub complete: bool,
}

impl Message {
    /// `:status` as a number; 0 for a request.
    pub fn status(&self) -> u16 {
        self.headers
            .text(":status")
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }

    /// The first value of a header, where it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.text(name)
    }

    /// The first value of a trailer, where it is UTF-8.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.as_ref()?.text(name)
    }

    /// The body as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An answer that a test gives, as the upstream or as a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Response {
    /// An answer with this status and nothing else.
    pub fn new(status: u16) -> Response {
        Response {
            headers: HeaderMap::new().with(":status", status.to_string()),
            body: Bytes::new(),
            trailers: HeaderMap::new(),
        }
    }

    /// One more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Response {
        self.headers.add(name.as_bytes(), value.as_ref());
        self
    }

    /// The body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Response {
        self.body = Bytes::from(body.into());
        self
    }

    /// A body of JSON and its content type.
    #[must_use]
    pub fn json(self, text: &str) -> Response {
        self.header("content-type", "application/json").body(text)
    }

    /// One more trailer.
    #[must_use]
    pub fn trailer(mut self, name: &str, value: impl AsRef<[u8]>) -> Response {
        self.trailers.add(name.as_bytes(), value.as_ref());
        self
    }
}
