//! A request that a test sends.

use crate::header_map::HeaderMap;
use crate::stream::StreamInfo;

/// A request as a client sends it: all at once, or the headers first and the rest by [`Stream`](super::Stream)'s methods.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) headers: HeaderMap,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) unfinished: bool,
    pub(crate) info: StreamInfo,
}

impl Request {
    /// A request with the pseudo-headers that Envoy makes of an HTTP/1.1 request to `example.test`.
    pub fn new(method: &str, path: &str) -> Request {
        let headers = HeaderMap::new()
            .with(":authority", "example.test")
            .with(":path", path)
            .with(":method", method)
            .with(":scheme", "http");
        Request {
            headers,
            chunks: Vec::new(),
            trailers: None,
            unfinished: false,
            info: StreamInfo::default(),
        }
    }

    /// A GET.
    pub fn get(path: &str) -> Request {
        Request::new("GET", path)
    }

    /// A POST without a body so far.
    pub fn post(path: &str) -> Request {
        Request::new("POST", path)
    }

    /// One more header. A pseudo-header replaces the one that is there.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        if name.starts_with(':') {
            self.headers.set(name.as_bytes(), value.as_ref());
        } else {
            self.headers.add(name.as_bytes(), value.as_ref());
        }
        self
    }

    /// Leaves a header out.
    #[must_use]
    pub fn without(mut self, name: &str) -> Request {
        self.headers.remove(name.as_bytes());
        self
    }

    /// One more piece of the body. Each piece reaches the filter by itself.
    #[must_use]
    pub fn body(mut self, chunk: impl Into<Vec<u8>>) -> Request {
        self.chunks.push(chunk.into());
        self
    }

    /// One more trailer, behind the body.
    #[must_use]
    pub fn trailer(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        let trailers = self.trailers.get_or_insert_default();
        trailers.add(name.as_bytes(), value.as_ref());
        self
    }

    /// Does not end the request: more of the body follows later.
    #[must_use]
    pub fn unfinished(mut self) -> Request {
        self.unfinished = true;
        self
    }

    /// Where it comes from: addresses, protocol, certificate.
    #[must_use]
    pub fn from(mut self, info: StreamInfo) -> Request {
        self.info = info;
        self
    }
}
