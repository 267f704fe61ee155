//! What goes over the wire in one exchange: the client's request byte for byte, the plane's reply and the upstream's reaction.

use hoop_tests::client::describe;
use hoop_tests::client::h2::H2Request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::upstream::Reaction;

/// One request, and what the others do about it.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) call: Call,
    /// What the plane does with every call that this request leads to.
    pub(super) plane: Named<Reply>,
    /// What the upstream does with it.
    pub(super) upstream: Named<Reaction>,
}

/// A choice and what to call it in a report.
#[derive(Clone, Debug)]
pub(super) struct Named<T> {
    pub(super) name: &'static str,
    pub(super) value: T,
}

/// A client's request.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Http1(Http1Call),
    Http2(H2Request),
}

/// An HTTP/1.1 request as it is written.
#[derive(Clone, Debug)]
pub(super) struct Http1Call {
    pub(super) method: &'static str,
    pub(super) target: Vec<u8>,
    /// Header lines without line ends, in order, `host` among them.
    pub(super) lines: Vec<Vec<u8>>,
    pub(super) body: Http1Body,
    /// Size of each write; 0: everything in one.
    pub(super) write_bytes: usize,
}

/// The body of an HTTP/1.1 request, which brings its own header line.
#[derive(Clone, Debug)]
pub(super) enum Http1Body {
    Absent,
    /// With a content-length.
    Length(Vec<u8>),
    /// With a content-length, and sent only after a 100, should one come.
    Expecting(Vec<u8>),
    Chunked {
        chunks: Vec<Vec<u8>>,
        /// Behind the size of each chunk.
        extension: &'static str,
        trailers: Vec<&'static [u8]>,
    },
    /// These bytes, whatever the header lines say about them.
    Raw(Vec<u8>),
}

impl Http1Call {
    /// First line and header fields.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut bytes = self.method.as_bytes().to_vec();
        bytes.push(b' ');
        bytes.extend_from_slice(&self.target);
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        for line in &self.lines {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(b"\r\n");
        }
        match &self.body {
            Http1Body::Absent | Http1Body::Raw(_) => {}
            Http1Body::Length(body) => {
                bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
            }
            Http1Body::Expecting(body) => {
                let length = format!("content-length: {}\r\n", body.len());
                bytes.extend_from_slice(length.as_bytes());
                bytes.extend_from_slice(b"expect: 100-continue\r\n");
            }
            Http1Body::Chunked { .. } => bytes.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// The body as it is written.
    pub(super) fn body(&self) -> Vec<u8> {
        match &self.body {
            Http1Body::Absent => Vec::new(),
            Http1Body::Length(body) | Http1Body::Expecting(body) | Http1Body::Raw(body) => {
                body.clone()
            }
            Http1Body::Chunked {
                chunks,
                extension,
                trailers,
            } => {
                let mut bytes = Vec::new();
                for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
                    let size = format!("{:x}{extension}\r\n", chunk.len());
                    bytes.extend_from_slice(size.as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n");
                for line in trailers {
                    bytes.extend_from_slice(line);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"\r\n");
                bytes
            }
        }
    }

    /// Whether it is chance how much of the body has come when the gate answers, and so whether the connection goes on: it asks
    /// the plane without waiting for the body, or the body is chunked and larger than a held call may be.
    pub(super) fn is_raced(&self) -> bool {
        let is_reserved = String::from_utf8_lossy(&self.target).contains(".well-known");
        match &self.body {
            Http1Body::Absent => false,
            Http1Body::Chunked { chunks, .. } => {
                is_reserved || chunks.iter().map(Vec::len).sum::<usize>() > MAX_BODY_BYTES
            }
            Http1Body::Expecting(body) | Http1Body::Length(body) | Http1Body::Raw(body) => {
                is_reserved && !body.is_empty()
            }
        }
    }
}

impl std::fmt::Display for Exchange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.call {
            Call::Http1(call) => {
                let bytes = [call.head(), call.body()].concat();
                let waits = matches!(call.body, Http1Body::Expecting(_));
                let how = if waits { ", the body after a 100" } else { "" };
                let text = describe(&bytes).replace("\\r\\n", "\n    ");
                write!(
                    out,
                    "HTTP/1.1 in writes of {}{how}\n    {text}",
                    call.write_bytes
                )?;
            }
            Call::Http2(call) => {
                let authority = call.authority.as_deref().unwrap_or_default();
                writeln!(out, "HTTP/2 {} {authority} {}", call.method, call.target)?;
                for (name, value) in &call.headers {
                    writeln!(out, "    {name}: {}", value.escape_ascii())?;
                }
                for frame in &call.frames {
                    writeln!(out, "    DATA {}", describe(frame))?;
                }
                for (name, value) in &call.trailers {
                    writeln!(out, "    trailer {name}: {}", value.escape_ascii())?;
                }
            }
        }
        writeln!(out, "\n  plane: {}", self.plane.name)?;
        write!(out, "  upstream: {}", self.upstream.name)
    }
}

/// `max_body_bytes` of the policy: small, so that generated bodies lie on both sides of it.
pub(super) const MAX_BODY_BYTES: usize = 1_000;
