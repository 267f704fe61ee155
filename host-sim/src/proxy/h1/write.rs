//! Heads and bodies on their way out. Source: `StreamEncoderImpl` of Envoy's `http1/codec_impl.cc`.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use super::{Framing, Outgoing};
use crate::header_map::HeaderMap;
use crate::proxy::reasons;

/// How a body that goes out is framed.
#[derive(Debug)]
pub(in crate::proxy) struct BodyWriter {
    framing: Framing,
    trailers: bool,
}

/// The head of a request, and how its body follows.
pub(in crate::proxy) fn request_head(
    headers: &HeaderMap,
    end_stream: bool,
    trailers: bool,
) -> (Vec<u8>, BodyWriter) {
    let method = headers.first(":method").unwrap_or(b"GET");
    let connect = method == b"CONNECT";
    let target = if connect {
        headers.first(":authority")
    } else {
        headers.first(":path")
    };
    let mut head = Vec::with_capacity(512);
    line(
        &mut head,
        &[method, b" ", target.unwrap_or(b"/"), b" HTTP/1.1"],
    );
    if let Some(authority) = headers.first(":authority") {
        line(&mut head, &[b"host: ", authority]);
    }
    fields(&mut head, headers);
    let bodiless = matches!(method, b"GET" | b"HEAD" | b"DELETE" | b"TRACE" | b"CONNECT");
    let framing = if connect || is_upgrade(headers) {
        Framing::UntilClose
    } else if headers.contains("content-length") {
        Framing::Length(0)
    } else if !end_stream {
        line(&mut head, &[b"transfer-encoding: chunked"]);
        Framing::Chunked
    } else {
        if !bodiless {
            line(&mut head, &[b"content-length: 0"]);
        }
        Framing::Empty
    };
    head.extend_from_slice(b"\r\n");
    (head, BodyWriter { framing, trailers })
}

/// The head of a response to a request with `HEAD` or another method, and how its body follows.
pub(in crate::proxy) fn response_head(
    headers: &HeaderMap,
    end_stream: bool,
    to_head: bool,
    trailers: bool,
) -> (Vec<u8>, BodyWriter) {
    let status: u16 = headers
        .text(":status")
        .and_then(|text| text.parse().ok())
        .unwrap_or(503);
    let mut head = Vec::with_capacity(512);
    line(
        &mut head,
        &[
            b"HTTP/1.1 ",
            status.to_string().as_bytes(),
            b" ",
            reasons::reason(status).as_bytes(),
        ],
    );
    fields(&mut head, headers);
    let bodiless = status < 200 || status == 204;
    let framing = if status == 101 {
        Framing::UntilClose
    } else if headers.contains("content-length") || bodiless {
        Framing::Length(0)
    } else if end_stream && !to_head {
        if status != 304 {
            line(&mut head, &[b"content-length: 0"]);
        }
        Framing::Empty
    } else {
        line(&mut head, &[b"transfer-encoding: chunked"]);
        if to_head {
            Framing::Empty
        } else {
            Framing::Chunked
        }
    };
    head.extend_from_slice(b"\r\n");
    let framing = if to_head && framing != Framing::UntilClose {
        Framing::Empty
    } else {
        framing
    };
    (head, BodyWriter { framing, trailers })
}

impl BodyWriter {
    /// Writes bytes of the body.
    pub(in crate::proxy) async fn data(
        &self,
        outgoing: &mut Outgoing,
        data: &Bytes,
        end_stream: bool,
    ) -> io::Result<()> {
        match self.framing {
            Framing::Empty => return Ok(()),
            Framing::Length(_) | Framing::UntilClose => outgoing.write_all(data).await?,
            Framing::Chunked => {
                if !data.is_empty() {
                    outgoing
                        .write_all(format!("{:x}\r\n", data.len()).as_bytes())
                        .await?;
                    outgoing.write_all(data).await?;
                    outgoing.write_all(b"\r\n").await?;
                }
                if end_stream {
                    outgoing.write_all(b"0\r\n\r\n").await?;
                }
            }
        }
        outgoing.flush().await?;
        if end_stream && self.framing == Framing::UntilClose {
            outgoing.shutdown().await?;
        }
        Ok(())
    }

    /// Ends the body with trailers, where the framing has room for them and they are allowed.
    pub(in crate::proxy) async fn trailers(
        &self,
        outgoing: &mut Outgoing,
        trailers: &HeaderMap,
    ) -> io::Result<()> {
        if self.framing != Framing::Chunked {
            return Ok(());
        }
        let mut end = b"0\r\n".to_vec();
        if self.trailers {
            fields(&mut end, trailers);
        }
        end.extend_from_slice(b"\r\n");
        outgoing.write_all(&end).await?;
        outgoing.flush().await
    }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains("upgrade")
        && headers
            .all("connection")
            .any(|value| super::head::has_token(value, b"upgrade"))
}

fn fields(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers.iter().filter(|(name, _)| !name.starts_with(b":")) {
        line(head, &[name, b": ", value]);
    }
}

fn line(head: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        head.extend_from_slice(part);
    }
    head.extend_from_slice(b"\r\n");
}
