//! An HTTP/2 service that answers as the last part of the path says, so that a guest can meet each end of a gRPC call.

use std::net::{TcpListener, TcpStream};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// A running service; it ends with the process.
pub struct GrpcUpstream {
    /// Where it listens.
    pub port: u16,
}

impl GrpcUpstream {
    /// Starts one.
    pub fn start() -> GrpcUpstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                std::thread::spawn(move || serve(connection));
            }
        });
        GrpcUpstream { port }
    }
}

fn serve(connection: TcpStream) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let _always_works = connection.set_nonblocking(true);
        let Ok(connection) = tokio::net::TcpStream::from_std(connection) else {
            return;
        };
        let Ok(mut connection) = h2::server::handshake(connection).await else {
            return;
        };
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::task::spawn_local(answer(request, respond));
        }
    });
}

async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Option<()> {
    let (head, mut body) = request.into_parts();
    let method = head
        .uri
        .path()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    if method == "Stream" {
        let mut stream = respond.send_response(opening(), false).ok()?;
        while let Some(Ok(data)) = body.data().await {
            let _taken = body.flow_control().release_capacity(data.len());
            stream.send_data(data, false).ok()?;
        }
        return stream.send_trailers(trailers("0", "")).ok();
    }
    let mut received = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _taken = body.flow_control().release_capacity(data.len());
        received.extend_from_slice(&data);
    }
    match method.as_str() {
        "Hang" => std::future::pending().await,
        "Http503" => {
            let response = Response::builder()
                .status(503)
                .header("content-type", "text/plain");
            let mut stream = respond.send_response(response.body(()).ok()?, false).ok()?;
            stream.send_data(Bytes::from_static(b"plain"), true).ok()
        }
        "Reset" => {
            respond.send_reset(Reason::INTERNAL_ERROR);
            Some(())
        }
        "TrailersOnly" => {
            let mut response = opening();
            response.headers_mut().remove("x-initial");
            response.headers_mut().extend(trailers("7", "no%20way"));
            respond.send_response(response, true).ok().map(drop)
        }
        method => {
            let mut stream = respond.send_response(opening(), false).ok()?;
            if method == "Error" {
                return stream.send_trailers(trailers("9", "failed")).ok();
            }
            if method != "NoMessage" {
                stream.send_data(Bytes::from(received), false).ok()?;
            }
            stream.send_trailers(trailers("0", "")).ok()
        }
    }
}

fn opening() -> Response<()> {
    let response = Response::builder()
        .header("content-type", "application/grpc")
        .header("x-initial", "i");
    response.body(()).expect("valid headers")
}

fn trailers(status: &'static str, message: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    if !message.is_empty() {
        trailers.insert("grpc-message", HeaderValue::from_static(message));
    }
    trailers.insert("x-trailing", HeaderValue::from_static("t"));
    trailers
}
