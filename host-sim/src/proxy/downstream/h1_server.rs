//! Clients that speak HTTP/1.1: one request after the other on a connection, both ways of it at once.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;

use super::{Connection, FOR_EVER, Server};
use crate::abi::Direction;
use crate::header_map::HeaderMap;
use crate::proxy::driver::Lanes;
use crate::proxy::h1::{
    self, BodyFault, BodyReader, Framing, Incoming, Io, Limits, Outgoing, Part, RequestFault,
};
use crate::proxy::lane::Order;
use crate::proxy::manager::EarlyAnswer;
use crate::proxy::settings::Underscores;
use crate::proxy::{manager, reasons};
use crate::stream::{Protocol, StreamId, asks_for_grpc};

/// How a request ended for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The next one may come.
    Reusable,
    /// Everything was sent, and the connection closes.
    Closing,
    /// It is of no more use.
    Broken,
}

/// How the way from the client ended while the answer was still on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Gone,
    /// What it sent gets this status, unless an answer is on its way.
    Refused(u16),
}

/// A request whose head was read.
struct Request {
    headers: HeaderMap,
    framing: Framing,
    to_head: bool,
    closes: bool,
    upgrade: bool,
}

impl Server {
    pub(super) async fn serve_h1(
        self: &Rc<Server>,
        io: Box<dyn Io>,
        read: BytesMut,
        connection: Connection,
    ) {
        let (mut incoming, mut outgoing) = h1::split(io, read);
        loop {
            let head = match self.next_request(&mut incoming, &connection).await {
                Ok(head) => head,
                Err(RequestFault::Gone) => return,
                Err(RequestFault::Refused(status)) => {
                    self.stats.requests.add(1);
                    let (headers, text) = refusal(status);
                    self.log_unread(&connection, status, headers.clone());
                    refuse(&mut outgoing, &headers, text).await;
                    return linger(&mut incoming).await;
                }
            };
            self.stats.requests.add(1);
            // Not counted any more while the end of the connection is awaited.
            let active = self.stats.active_requests.hold();
            let ended = self
                .serve_request(head, &mut incoming, &mut outgoing, &connection)
                .await;
            drop(active);
            match ended {
                Ended::Reusable => {}
                Ended::Closing => {
                    // The answer is out; a client that still sends gets a moment to see it.
                    let _gone_already = outgoing.flush().await;
                    return;
                }
                Ended::Broken => return linger(&mut incoming).await,
            }
        }
    }

    async fn next_request(
        &self,
        incoming: &mut Incoming,
        connection: &Connection,
    ) -> Result<h1::RequestHead, RequestFault> {
        let mut stopping = self.stopping.clone();
        if incoming.buffer.is_empty() {
            let idle = self.listener.http.idle_timeout.unwrap_or(FOR_EVER);
            let more = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => false,
                more = tokio::time::timeout(idle, incoming.fill()) => more.unwrap_or(false),
            };
            if !more {
                return Err(RequestFault::Gone);
            }
        }
        let limits = Limits {
            bytes: self.listener.http.max_request_headers_bytes,
            fields: self.listener.http.max_headers_count,
            underscores: self.listener.http.underscores,
            https_targets: connection.tls || !self.listener.http.use_remote_address,
        };
        let patience = self
            .listener
            .http
            .request_headers_timeout
            .unwrap_or(FOR_EVER);
        let head = tokio::time::timeout(patience, h1::read_request(incoming, limits)).await;
        head.unwrap_or(Err(RequestFault::Refused(408)))
    }

    async fn serve_request(
        self: &Rc<Server>,
        head: h1::RequestHead,
        incoming: &mut Incoming,
        outgoing: &mut Outgoing,
        connection: &Connection,
    ) -> Ended {
        let mut headers = head.headers;
        if headers
            .first("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
        {
            headers.remove(b"expect");
            if outgoing
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .is_err()
            {
                return Ended::Broken;
            }
        }
        let asks_to_close = |name| {
            headers
                .all(name)
                .any(|value| h1::has_token(value, b"close"))
        };
        let mut request = Request {
            to_head: headers.first(":method") == Some(b"HEAD"),
            closes: asks_to_close("connection") || asks_to_close("proxy-connection"),
            upgrade: manager::upgrade_type(&headers).is_some(),
            framing: head.framing,
            headers: HeaderMap::new(),
        };
        match manager::accept(
            headers,
            &self.listener.http,
            self.peer(connection, Protocol::Http11),
        ) {
            Ok(headers) => request.headers = headers,
            Err(early) => {
                return self
                    .answer_early(outgoing, &early, &request, connection)
                    .await;
            }
        }
        let upgrade = manager::upgrade_type(&request.headers);
        request.upgrade = upgrade.is_some();
        if let Some(upgrade) = upgrade {
            let route = manager::route(&self.listener, &request.headers);
            let status = match route {
                None => Some(404),
                Some(route) if manager::allows_upgrade(&self.listener, route, &upgrade) => None,
                Some(_) => Some(403),
            };
            if let Some(status) = status {
                let details = "upgrade_failed";
                let early = EarlyAnswer::closing(status, details, &request.headers);
                return self
                    .answer_early(outgoing, &early, &request, connection)
                    .await;
            }
            request.framing = Framing::UntilClose;
        }
        self.run_stream(request, incoming, outgoing, connection)
            .await
    }

    /// The answer of the connection manager to a request that it does not give to any filter.
    async fn answer_early(
        &self,
        outgoing: &mut Outgoing,
        early: &EarlyAnswer,
        request: &Request,
        connection: &Connection,
    ) -> Ended {
        if early.by_codec {
            let (headers, text) = refusal(early.status);
            self.log_early(connection, Protocol::Http11, early, &headers);
            refuse(outgoing, &headers, text).await;
            return Ended::Broken;
        }
        let mut headers = early.headers(asks_for_grpc(&request.headers));
        manager::to_client(&mut headers, false);
        let complete = matches!(request.framing, Framing::Empty | Framing::Length(0));
        let closes = early.closes || request.closes || !complete;
        if closes {
            headers.add(b"connection", b"close");
        }
        self.log_early(connection, Protocol::Http11, early, &headers);
        let (head, _) = h1::response_head(&headers, true, request.to_head, false);
        if outgoing.write_all(&head).await.is_err() || outgoing.flush().await.is_err() {
            return Ended::Broken;
        }
        // What the client still sends is dropped for a while before the connection closes.
        if closes {
            Ended::Broken
        } else {
            Ended::Reusable
        }
    }

    async fn run_stream(
        self: &Rc<Server>,
        request: Request,
        incoming: &mut Incoming,
        outgoing: &mut Outgoing,
        connection: &Connection,
    ) -> Ended {
        let complete = Cell::new(matches!(
            request.framing,
            Framing::Empty | Framing::Length(0)
        ));
        let (id, lanes) = self.open(
            connection,
            Protocol::Http11,
            request.headers,
            complete.get(),
        );
        let status = Cell::new(0);
        let exchange = Exchange {
            server: self,
            lanes: &lanes,
            id,
            to_head: request.to_head,
            closes: request.closes,
            upgrade: request.upgrade,
            complete: &complete,
            status: &status,
        };
        let ended = {
            let mut answering = pin!(exchange.answer(outgoing));
            let mut asking = pin!(exchange.ask(incoming, request.framing));
            tokio::select! {
                biased;
                ended = &mut answering => Ok(ended),
                left = &mut asking => Err(left),
            }
        };
        match ended {
            Ok(ended) => {
                if ended == Ended::Broken {
                    self.driver.tell(|worker| worker.client_gone(id));
                }
                ended
            }
            Err(left) => {
                self.driver.tell(|worker| worker.client_gone(id));
                if let Left::Refused(refusal) = left
                    && status.get() == 0
                {
                    let (headers, text) = self::refusal(refusal);
                    refuse(outgoing, &headers, text).await;
                }
                Ended::Broken
            }
        }
    }
}

/// One request and its answer.
struct Exchange<'a> {
    server: &'a Rc<Server>,
    lanes: &'a Rc<Lanes>,
    id: StreamId,
    to_head: bool,
    closes: bool,
    upgrade: bool,
    /// Whether the request has come in whole.
    complete: &'a Cell<bool>,
    /// The status of the answer; 0 before.
    status: &'a Cell<u16>,
}

impl Exchange<'_> {
    /// Sends the answer to its end.
    async fn answer(&self, outgoing: &mut Outgoing) -> Ended {
        let mut writer = None;
        let mut ended = Ended::Reusable;
        while let Some(order) = self.lanes.to_client.next().await {
            let (sent, end) = match order {
                Order::Headers {
                    mut headers,
                    end_stream,
                } => {
                    ended = self.prepare(&mut headers);
                    let trailers = self.server.listener.http.enable_trailers;
                    let (head, body) =
                        h1::response_head(&headers, end_stream, self.to_head, trailers);
                    writer = Some(body);
                    let sent = outgoing.write_all(&head).await;
                    (
                        if sent.is_ok() {
                            outgoing.flush().await
                        } else {
                            sent
                        },
                        end_stream,
                    )
                }
                Order::Data { data, end_stream } => match &writer {
                    Some(writer) => (writer.data(outgoing, &data, end_stream).await, end_stream),
                    None => return Ended::Broken,
                },
                Order::Trailers(trailers) => match &writer {
                    Some(writer) => (writer.trailers(outgoing, &trailers).await, true),
                    None => return Ended::Broken,
                },
                Order::Reset => return Ended::Broken,
            };
            if sent.is_err() {
                return Ended::Broken;
            }
            if end {
                let lingers = ended == Ended::Closing && !self.complete.get();
                return if lingers { Ended::Broken } else { ended };
            }
        }
        Ended::Broken
    }

    /// Puts what this protocol needs into the head of an answer.
    fn prepare(&self, headers: &mut HeaderMap) -> Ended {
        let status = headers
            .text(":status")
            .and_then(|status| status.parse().ok())
            .unwrap_or(503);
        self.status.set(status);
        let switches = self.upgrade && status == 101;
        // The answer may have been made before the end of the request came in, and says so.
        let early = headers.first("connection") == Some(b"close");
        manager::to_client(headers, switches);
        let closes = self.closes || early || !self.complete.get() || *self.server.stopping.borrow();
        if closes && !switches {
            headers.add(b"connection", b"close");
        }
        if closes {
            Ended::Closing
        } else {
            Ended::Reusable
        }
    }

    /// Reads the request to its end, then watches whether the client stays.
    async fn ask(&self, incoming: &mut Incoming, framing: Framing) -> Left {
        let limit = self.server.listener.http.max_request_headers_bytes;
        let mut body = BodyReader::new(framing).trailers_limit(limit);
        let driver = &self.server.driver;
        while !self.complete.get() {
            self.room(incoming).await;
            match incoming.part(&mut body).await {
                Ok(Part::Data(data)) => {
                    driver.tell(|worker| worker.request_data(self.id, data, false));
                    self.server.answer_at_once(self.id, self.lanes);
                }
                Ok(Part::Trailers(trailers)) if self.server.listener.http.enable_trailers => {
                    if let Some(status) = self.refusal(&trailers) {
                        return Left::Refused(status);
                    }
                    self.complete.set(true);
                    driver.tell(|worker| worker.request_trailers(self.id, trailers));
                }
                Ok(Part::Trailers(_) | Part::End) => {
                    self.complete.set(true);
                    driver.tell(|worker| worker.request_data(self.id, Bytes::new(), true));
                }
                Err(BodyFault::Cut) => return Left::Gone,
                Err(BodyFault::Malformed) => return Left::Refused(400),
                Err(BodyFault::TrailersTooLarge) => return Left::Refused(431),
            }
        }
        until_gone(incoming).await
    }

    /// What is no better behind a body than before it: too many fields, and names with an underscore.
    fn refusal(&self, trailers: &HeaderMap) -> Option<u16> {
        let http = &self.server.listener.http;
        let odd = http.underscores == Underscores::RejectRequest
            && trailers.iter().any(|(name, _)| name.contains(&b'_'));
        if trailers.len() > http.max_headers_count {
            Some(431)
        } else {
            odd.then_some(400)
        }
    }

    /// Waits until the body may go on. A client that leaves meanwhile is noticed as far as its bytes fit into the read-ahead.
    async fn room(&self, incoming: &mut Incoming) {
        let driver = &self.server.driver;
        let mut room = pin!(driver.room(self.id, Direction::Request, self.lanes));
        loop {
            if incoming.buffer.len() >= READ_AHEAD {
                return room.await;
            }
            tokio::select! {
                biased;
                () = &mut room => return,
                more = incoming.fill() => if !more {
                    driver.tell(|worker| worker.client_gone(self.id));
                    return;
                },
            }
        }
    }
}

/// Waits for the end of the connection. What comes before it belongs to the next request.
async fn until_gone(incoming: &mut Incoming) -> Left {
    while incoming.buffer.len() < READ_AHEAD {
        if !incoming.fill().await {
            return Left::Gone;
        }
    }
    std::future::pending().await
}

/// The answer of Envoy's codec to what is no request: the status as text, and the connection ends.
fn refusal(status: u16) -> (HeaderMap, &'static str) {
    let text = if status == 408 {
        "request header timeout"
    } else {
        reasons::reason(status)
    };
    let headers = HeaderMap::new()
        .with(":status", status.to_string())
        .with("content-length", text.len().to_string())
        .with("content-type", "text/plain")
        .with("date", manager::date(SystemTime::now()))
        .with("server", "envoy")
        .with("connection", "close");
    (headers, text)
}

async fn refuse(outgoing: &mut Outgoing, headers: &HeaderMap, text: &str) {
    let (mut head, _) = h1::response_head(headers, false, false, false);
    head.extend_from_slice(text.as_bytes());
    if outgoing.write_all(&head).await.is_ok() {
        // A client that has left meanwhile needs no answer.
        let _the_client_left = outgoing.flush().await;
    }
}

/// Envoy's delayed close: what the client still sends is dropped for a while, so that no reset destroys the answer on its way.
async fn linger(incoming: &mut Incoming) {
    let drain = async {
        loop {
            incoming.buffer.clear();
            if !incoming.fill().await {
                return;
            }
        }
    };
    let _closed_anyway = tokio::time::timeout(DELAYED_CLOSE, drain).await;
}

/// Source: `delayed_close_timeout`.
const DELAYED_CLOSE: Duration = Duration::from_secs(1);
/// What is read of a request that waits, to notice that its client leaves.
const READ_AHEAD: usize = 256 * 1024;
