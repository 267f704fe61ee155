//! Connections of clients: accepted, told apart by protocol, and served until they end or the proxy stops.

mod h1_server;
mod h2_server;
mod stream;

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::rustls::ProtocolVersion;

use super::driver::Driver;
use super::h1::Io;
use super::settings::Listener;
use super::stats::{Gauge, Stats};
use super::{certificate, tls};
use crate::stream::Certificate;

/// A listener as one worker thread serves it.
pub(super) struct Server {
    pub(super) listener: Arc<Listener>,
    pub(super) driver: Rc<Driver>,
    pub(super) tls: Option<tls::Acceptor>,
    pub(super) machine: IpAddr,
    /// Numbers the connections of the whole process.
    pub(super) connection_ids: Arc<AtomicU64>,
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) stats: ServerStats,
    /// Connections that this thread serves.
    pub(super) open: Cell<usize>,
}

/// What a listener counts.
pub(super) struct ServerStats {
    active_connections: Gauge,
    connections: Gauge,
    active_requests: Gauge,
    requests: Gauge,
}

impl ServerStats {
    pub(super) fn new(stats: &Stats, prefix: &str) -> ServerStats {
        let name = |suffix: &str| format!("http.{prefix}.{suffix}");
        ServerStats {
            active_connections: stats.gauge(&name("downstream_cx_active")),
            connections: stats.counter(&name("downstream_cx_total")),
            active_requests: stats.gauge(&name("downstream_rq_active")),
            requests: stats.counter(&name("downstream_rq_total")),
        }
    }
}

/// What is known of a connection.
#[derive(Clone, Debug)]
struct Connection {
    id: u64,
    peer: SocketAddr,
    local: SocketAddr,
    tls: bool,
    server_name: String,
    certificate: Option<Certificate>,
    local_certificate: Option<Certificate>,
    tls_version: String,
}

impl Server {
    /// Accepts connections until the proxy stops.
    pub(super) async fn accept(self: Rc<Server>, listener: TcpListener) {
        let mut stopping = self.stopping.clone();
        loop {
            let accepted = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let server = self.clone();
                    tokio::task::spawn_local(async move { server.serve(stream, peer).await });
                }
                // Without file descriptors left there is nothing to do but to wait until some connection ends.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn serve(self: Rc<Server>, stream: TcpStream, peer: SocketAddr) {
        let _active = self.stats.active_connections.hold();
        self.stats.connections.add(1);
        self.open.set(self.open.get() + 1);
        if let Ok(local) = stream.local_addr() {
            let connection = Connection {
                id: self.connection_ids.fetch_add(1, Ordering::Relaxed),
                peer,
                local,
                tls: self.tls.is_some(),
                server_name: String::new(),
                certificate: None,
                local_certificate: None,
                tls_version: String::new(),
            };
            // Small answers should not wait for more; a system that cannot is served more slowly.
            let _slower_without = stream.set_nodelay(true);
            self.serve_stream(stream, connection).await;
        }
        self.open.set(self.open.get() - 1);
    }

    async fn serve_stream(self: &Rc<Server>, stream: TcpStream, mut connection: Connection) {
        let Some(acceptor) = &self.tls else {
            return self.serve_plain(Box::new(stream), connection).await;
        };
        let mut stopping = self.stopping.clone();
        let handshake = async {
            let mut read = BytesMut::with_capacity(16 * 1024);
            let mut io: Box<dyn Io> = Box::new(stream);
            while read.len() < RECORD_HEAD
                && io.read_buf(&mut read).await.is_ok_and(|count| count > 0)
            {}
            let without_tls = PLAIN_BEGINNINGS.iter().any(|word| read.starts_with(word));
            if without_tls {
                return None;
            }
            acceptor.tls.accept(Rewound { read, io }).await.ok()
        };
        // Nothing has been asked yet, so a stop need not wait for what may never end.
        let stream = tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return,
            stream = handshake => stream,
        };
        let Some(stream) = stream else {
            return;
        };
        let (_, session) = stream.get_ref();
        connection.server_name = session.server_name().unwrap_or_default().to_owned();
        let chain = session.peer_certificates().unwrap_or_default();
        connection.certificate = chain.first().map(|shown| certificate::read(shown));
        connection.local_certificate = Some(acceptor.own.clone());
        connection.tls_version = session.protocol_version().map(version).unwrap_or_default();
        self.serve_plain(Box::new(stream), connection).await;
    }

    /// Tells HTTP/2 from HTTP/1.1 by its preface.
    async fn serve_plain(self: &Rc<Server>, mut io: Box<dyn Io>, connection: Connection) {
        let mut read = BytesMut::with_capacity(16 * 1024);
        let mut stopping = self.stopping.clone();
        let idle = self.listener.http.idle_timeout.unwrap_or(FOR_EVER);
        while read.len() < PREFACE.len() && PREFACE.starts_with(&read) {
            let more = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return,
                more = tokio::time::timeout(idle, io.read_buf(&mut read)) => more,
            };
            if !matches!(more, Ok(Ok(count)) if count > 0) {
                break;
            }
        }
        if read.starts_with(PREFACE) {
            self.serve_h2(Rewound { read, io }, connection).await;
        } else if !read.is_empty() {
            self.serve_h1(io, read, connection).await;
        }
    }
}

/// A version of TLS in the words of Envoy's library.
fn version(version: ProtocolVersion) -> String {
    // There are only these two with this library.
    match version == ProtocolVersion::TLSv1_2 {
        true => "TLSv1.2".to_owned(),
        false => "TLSv1.3".to_owned(),
    }
}

/// A connection whose first bytes have been read already.
struct Rewound {
    read: BytesMut,
    io: Box<dyn Io>,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.io).poll_read(context, buffer);
        }
        let count = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read[..count]);
        self.read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Where a TLS record says what it is. That much is awaited before it is judged, as in Envoy.
const RECORD_HEAD: usize = 5;
/// What a client begins with that speaks HTTP without TLS. Source: BoringSSL, which sends no alert then.
const PLAIN_BEGINNINGS: [&[u8]; 5] = [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"CONNE"];
/// Longer than any process lives.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
