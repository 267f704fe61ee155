//! Clusters as one worker thread sees them: connections that can be used again, and new ones.

mod h1_exchange;
mod h2_exchange;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::h1::{self, Incoming, Io, Outgoing};
use super::lane::Lane;
use super::settings::{self, UpstreamProtocol};
use super::stats::{Gauge, Held, Stats};
use super::tls;
use crate::header_map::HeaderMap;
use crate::stream::UpstreamInfo;
use crate::worker::UpstreamFailure;

/// The clusters of one worker thread. Connections are not shared between threads, as in Envoy.
pub(super) struct Clusters(BTreeMap<String, Rc<Cluster>>);

/// One cluster with its connections.
pub(super) struct Cluster {
    settings: settings::Cluster,
    tls: Option<TlsConnector>,
    turn: Cell<usize>,
    idle: RefCell<Vec<Idle>>,
    http2: RefCell<Option<Http2>>,
    active_connections: Gauge,
    connection_failures: Gauge,
    active_requests: Gauge,
    requests: Gauge,
}

/// A connection that many requests share.
#[derive(Clone)]
struct Http2 {
    sender: h2::client::SendRequest<Bytes>,
    upstream: Option<UpstreamInfo>,
}

/// A connection without a request.
struct Idle {
    connection: Connection,
    since: Instant,
}

struct Connection {
    incoming: Incoming,
    outgoing: Outgoing,
    upstream: Option<UpstreamInfo>,
    _counted: Held,
}

/// Where an answer goes while it comes in.
pub(super) trait Answer {
    /// A connection was found for the request.
    fn connected(&self, upstream: &UpstreamInfo);
    /// The headers.
    fn headers(&self, headers: HeaderMap, end_stream: bool);
    /// Bytes of the body.
    fn data(&self, data: Bytes, end_stream: bool);
    /// The trailers, which end it.
    fn trailers(&self, trailers: HeaderMap);
    /// Waits until more of the body is wanted.
    async fn room(&self);
}

impl Clusters {
    pub(super) fn new(
        clusters: &[settings::Cluster],
        stats: &Stats,
    ) -> Result<Clusters, tls::TlsFault> {
        let mut by_name = BTreeMap::new();
        for settings in clusters {
            let name = |suffix: &str| format!("cluster.{}.{suffix}", settings.name);
            let tls = settings.tls.as_ref();
            let cluster = Cluster {
                tls: tls
                    .map(|tls| tls::connector(tls, settings.protocol))
                    .transpose()?,
                settings: settings.clone(),
                turn: Cell::new(0),
                idle: RefCell::default(),
                http2: RefCell::default(),
                active_connections: stats.gauge(&name("upstream_cx_active")),
                connection_failures: stats.counter(&name("upstream_cx_connect_fail")),
                active_requests: stats.gauge(&name("upstream_rq_active")),
                requests: stats.counter(&name("upstream_rq_total")),
            };
            by_name.insert(settings.name.clone(), Rc::new(cluster));
        }
        Ok(Clusters(by_name))
    }

    pub(super) fn named(&self, name: &str) -> Option<Rc<Cluster>> {
        self.0.get(name).cloned()
    }
}

impl Cluster {
    /// Sends a request whose body follows in `lane`, and hands over its answer. An error tells why none came, or none whole.
    pub(super) async fn exchange(
        &self,
        headers: HeaderMap,
        end_stream: bool,
        lane: &Lane,
        answer: &impl Answer,
    ) -> Result<(), UpstreamFailure> {
        let _active = self.active_requests.hold();
        self.requests.add(1);
        match self.settings.protocol {
            UpstreamProtocol::Http1 => self.exchange_h1(headers, end_stream, lane, answer).await,
            UpstreamProtocol::Http2 => self.exchange_h2(headers, end_stream, lane, answer).await,
        }
    }

    /// A connection that waits, or a new one.
    async fn connection(&self) -> Result<Connection, UpstreamFailure> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            let Some(mut idle) = idle else {
                break;
            };
            let too_old = self
                .settings
                .idle_timeout
                .is_some_and(|timeout| idle.since.elapsed() >= timeout);
            if !too_old && is_open(&mut idle.connection).await {
                return Ok(idle.connection);
            }
        }
        let counted = self.active_connections.hold();
        let (io, upstream) = self.connect().await?;
        let (incoming, outgoing) = h1::split(io, BytesMut::new());
        Ok(Connection {
            incoming,
            outgoing,
            upstream,
            _counted: counted,
        })
    }

    /// Keeps a connection for the next request, and closes those that nobody has used for too long.
    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.borrow_mut();
        if let Some(timeout) = self.settings.idle_timeout {
            idle.retain(|idle| idle.since.elapsed() < timeout);
        }
        idle.push(Idle {
            connection,
            since: Instant::now(),
        });
    }

    /// Closes the connections that have waited too long. The thread calls it from time to time.
    pub(super) fn close_idle(&self) {
        if let Some(timeout) = self.settings.idle_timeout {
            self.idle
                .borrow_mut()
                .retain(|idle| idle.since.elapsed() < timeout);
        }
    }

    async fn connect(&self) -> Result<(Box<dyn Io>, Option<UpstreamInfo>), UpstreamFailure> {
        let connecting = self.connect_to_next();
        let outcome = match tokio::time::timeout(self.settings.connect_timeout, connecting).await {
            Ok(outcome) => outcome.map_err(|error| UpstreamFailure::ConnectionFailed {
                reason: words(&error),
            }),
            Err(_elapsed) => Err(UpstreamFailure::ConnectionTimedOut),
        };
        if outcome.is_err() {
            self.connection_failures.add(1);
        }
        outcome
    }

    async fn connect_to_next(&self) -> io::Result<(Box<dyn Io>, Option<UpstreamInfo>)> {
        let endpoints = &self.settings.endpoints;
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        let endpoint = endpoints
            .get(turn % endpoints.len().max(1))
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        let stream = TcpStream::connect(endpoint.as_str()).await?;
        stream.set_nodelay(true)?;
        let addresses = stream.peer_addr().ok().zip(stream.local_addr().ok());
        let upstream = addresses.map(|(address, local_address)| UpstreamInfo {
            address,
            local_address,
        });
        let (Some(connector), Some(tls)) = (&self.tls, &self.settings.tls) else {
            return Ok((Box::new(stream), upstream));
        };
        let host = endpoint
            .rsplit_once(':')
            .map_or(endpoint.as_str(), |(host, _)| host);
        let name = tls.sni.as_deref().unwrap_or(host).to_owned();
        let name = name
            .try_into()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok((Box::new(connector.connect(name, stream).await?), upstream))
    }
}

impl Clusters {
    /// Closes the connections of all clusters that have waited too long.
    pub(super) fn close_idle(&self) {
        self.0.values().for_each(|cluster| cluster.close_idle());
    }
}

/// Whether the peer has neither closed a waiting connection nor sent anything on it.
async fn is_open(connection: &mut Connection) -> bool {
    let mut byte = [0u8; 1];
    poll_fn(|context| {
        let mut buffer = ReadBuf::new(&mut byte);
        match Pin::new(connection.incoming.raw()).poll_read(context, &mut buffer) {
            Poll::Pending => Poll::Ready(true),
            Poll::Ready(_) => Poll::Ready(false),
        }
    })
    .await
}

/// A failed connection in Envoy's words.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("delayed connect error: {text}")
}

/// Milliseconds since `start`, as `x-envoy-upstream-service-time` shows them.
fn add_service_time(headers: &mut HeaderMap, start: Instant) {
    let elapsed = start.elapsed().as_millis().to_string();
    headers.set_in_place("x-envoy-upstream-service-time", elapsed.as_bytes());
}
