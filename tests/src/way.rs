//! The ways in which a client can put the same request with a body on the wire. A gate has to make the same of all of them.

use crate::client::Answer;
use crate::client::h2::H2Request;
use crate::http1::request;
use crate::scene::Scene;

/// How a client puts a request on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// HTTP/1.1 with a length.
    Length,
    /// HTTP/1.1, one byte in each write.
    SingleBytes,
    /// HTTP/1.1 in chunks of this size.
    Chunks(usize),
    /// HTTP/1.1 in chunks, with trailers.
    ChunksAndTrailers(usize),
    /// HTTP/2 in DATA frames of this size.
    Frames(usize),
    /// HTTP/2 in DATA frames, with trailers.
    FramesAndTrailers(usize),
}

impl Way {
    /// Sends a POST with `body` on a connection of its own.
    pub async fn post(self, scene: &Scene, target: &str, body: &[u8]) -> Answer {
        self.post_with(scene, target, &[], body).await
    }

    /// Sends a POST with more header fields and `body` on a connection of its own.
    pub async fn post_with(
        self,
        scene: &Scene,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let over_h2 = async |size: usize, trailers: &[(&str, &str)]| {
            let mut call = H2Request::new("POST", target, None);
            call.headers = owned(headers);
            call.frames = body.chunks(size).map(<[u8]>::to_vec).collect();
            call.trailers = owned(trailers);
            scene.connect_h2().await.send(&call).await
        };
        match self {
            Way::Length => {
                scene
                    .send(&request("POST", target, headers, Some(body)))
                    .await
            }
            Way::SingleBytes => {
                let mut connection = scene.connect().await;
                let call = request("POST", target, headers, Some(body));
                connection.write_singly(&call).await;
                connection.answer("a POST in single bytes").await
            }
            Way::Chunks(size) => {
                scene
                    .send(&chunked("POST", target, headers, body, size, &[]))
                    .await
            }
            Way::ChunksAndTrailers(size) => {
                scene
                    .send(&chunked("POST", target, headers, body, size, TRAILERS))
                    .await
            }
            Way::Frames(size) => over_h2(size, &[]).await,
            Way::FramesAndTrailers(size) => over_h2(size, TRAILERS).await,
        }
    }
}

/// An HTTP/1.1 request in chunks of `size` bytes.
pub fn chunked(
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    size: usize,
    trailers: &[(&str, &str)],
) -> Vec<u8> {
    let mut all = vec![("transfer-encoding", "chunked")];
    all.extend_from_slice(headers);
    let mut bytes = request(method, target, &all, None);
    for chunk in body.chunks(size) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn owned(fields: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect()
}

const TRAILERS: &[(&str, &str)] = &[("x-checksum", "7")];
