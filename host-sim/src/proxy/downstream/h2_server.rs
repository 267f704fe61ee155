//! Clients that speak HTTP/2: many streams on a connection.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};

use super::{Connection, Rewound, Server};
use crate::abi::Direction;
use crate::header_map::HeaderMap;
use crate::proxy::driver::Lanes;
use crate::proxy::lane::Order;
use crate::proxy::manager::EarlyAnswer;
use crate::proxy::settings::Underscores;
use crate::proxy::{h2_wire, manager};
use crate::stream::{Protocol, StreamId, asks_for_grpc};

impl Server {
    pub(super) async fn serve_h2(self: &Rc<Server>, io: Rewound, connection: Connection) {
        let http = &self.listener.http;
        let header_bytes = u32::try_from(http.max_request_headers_bytes).unwrap_or(u32::MAX);
        let handshake = h2::server::Builder::new()
            .max_concurrent_streams(http.max_concurrent_streams)
            .initial_window_size(http.initial_stream_window)
            .initial_connection_window_size(http.initial_connection_window)
            .max_header_list_size(header_bytes)
            .data_frame_budget(h2_wire::DATA_FRAME_BUDGET)
            .handshake::<_, Bytes>(io);
        let Ok(mut accepting) = handshake.await else {
            return;
        };
        let mut stopping = self.stopping.clone();
        let mut told = false;
        loop {
            let accepted = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping), if !told => {
                    told = true;
                    accepting.graceful_shutdown();
                    continue;
                }
                accepted = accepting.accept() => accepted,
            };
            let Some(Ok((request, respond))) = accepted else {
                return;
            };
            let (server, connection) = (self.clone(), connection.clone());
            tokio::task::spawn_local(async move {
                server.serve_h2_stream(request, respond, connection).await
            });
        }
    }

    async fn serve_h2_stream(
        self: Rc<Server>,
        request: http::Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        connection: Connection,
    ) {
        self.stats.requests.add(1);
        let _active = self.stats.active_requests.hold();
        let (head, body) = request.into_parts();
        let mut headers = h2_wire::request_headers(&head);
        if let Some(reason) = self.refusal(&mut headers) {
            respond.send_reset(reason);
            return;
        }
        // Envoy answers `expect: 100-continue` itself; over HTTP/2 too.
        if headers
            .first("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
        {
            headers.remove(b"expect");
            let interim = http::Response::builder().status(100).body(()).ok();
            let _the_client_left = interim.map(|interim| respond.send_informational(interim));
        }
        let peer = self.peer(&connection, Protocol::Http2);
        let grpc = asks_for_grpc(&headers);
        let headers = match manager::accept(headers, &self.listener.http, peer) {
            Ok(headers) => headers,
            Err(early) => return self.answer_h2_early(&mut respond, &early, grpc, &connection),
        };
        if headers.first(":method") == Some(b"CONNECT")
            && manager::route(&self.listener, &headers).is_none()
        {
            let early = EarlyAnswer::closing(404, "route_not_found", &headers);
            return self.answer_h2_early(&mut respond, &early, grpc, &connection);
        }
        let complete = Cell::new(body.is_end_stream());
        let status = Cell::new(0);
        let (id, lanes) = self.open(&connection, Protocol::Http2, headers, complete.get());
        let stream = Http2Stream {
            server: &self,
            id,
            lanes: &lanes,
            complete: &complete,
            status: &status,
        };
        let answered = {
            let mut answering = pin!(stream.answer(&mut respond));
            let mut asking = pin!(stream.ask(body));
            tokio::select! {
                biased;
                answered = &mut answering => answered,
                () = &mut asking => None,
            }
        };
        if answered.is_none() {
            self.driver.tell(|worker| worker.client_gone(id));
        }
    }

    fn answer_h2_early(
        &self,
        respond: &mut SendResponse<Bytes>,
        early: &EarlyAnswer,
        grpc: bool,
        connection: &Connection,
    ) {
        let mut headers = early.headers(grpc);
        manager::to_client(&mut headers, false);
        self.log_early(connection, Protocol::Http2, early, &headers);
        // A client that has left meanwhile needs no answer.
        let _the_client_left = respond.send_response(h2_wire::response(&headers), true);
    }

    /// Why Envoy's codec would reset a stream instead of reading it.
    fn refusal(&self, headers: &mut HeaderMap) -> Option<Reason> {
        let odd: Vec<Vec<u8>> = headers
            .iter()
            .filter(|(name, _)| name.contains(&b'_'))
            .map(|(name, _)| name.to_vec())
            .collect();
        match self.listener.http.underscores {
            Underscores::Allow => {}
            Underscores::RejectRequest if !odd.is_empty() => return Some(Reason::INTERNAL_ERROR),
            Underscores::RejectRequest => {}
            Underscores::DropHeader => {
                for name in odd {
                    headers.remove(&name);
                }
            }
        }
        (headers.len() > self.listener.http.max_headers_count).then_some(Reason::INTERNAL_ERROR)
    }
}

struct Http2Stream<'a> {
    server: &'a Rc<Server>,
    id: StreamId,
    lanes: &'a Rc<Lanes>,
    complete: &'a Cell<bool>,
    /// The status of the answer; 0 before.
    status: &'a Cell<u16>,
}

impl Http2Stream<'_> {
    /// Sends the answer to its end; `None` where the stream ended before. A client that still sends is told to stop (RFC 9113,
    /// section 8.1) when both handles are dropped, behind all that is queued; a reset of our own would overtake it.
    async fn answer(&self, respond: &mut SendResponse<Bytes>) -> Option<()> {
        let first = tokio::select! {
            biased;
            order = self.lanes.to_client.next() => order,
            _ = poll_fn(|context| respond.poll_reset(context)) => return None,
        };
        let Some(Order::Headers {
            mut headers,
            end_stream,
        }) = first
        else {
            respond.send_reset(Reason::INTERNAL_ERROR);
            return None;
        };
        manager::to_client(&mut headers, false);
        let status = headers
            .text(":status")
            .and_then(|status| status.parse().ok());
        self.status.set(status.unwrap_or(503));
        let mut stream = respond
            .send_response(h2_wire::response(&headers), end_stream)
            .ok()?;
        if end_stream {
            return Some(());
        }
        loop {
            let order = tokio::select! {
                biased;
                order = self.lanes.to_client.next() => order,
                _ = poll_fn(|context| stream.poll_reset(context)) => return None,
            };
            match order {
                Some(Order::Data { data, end_stream }) => {
                    h2_wire::send_data(&mut stream, data, end_stream).await?;
                    if end_stream {
                        return Some(());
                    }
                }
                Some(Order::Trailers(trailers)) => {
                    stream.send_trailers(h2_wire::fields(&trailers)).ok()?;
                    return Some(());
                }
                Some(Order::Headers { .. }) => {}
                Some(Order::Reset) | None => {
                    stream.send_reset(Reason::INTERNAL_ERROR);
                    return None;
                }
            }
        }
    }

    /// Reads the request; comes back only when its client has left.
    async fn ask(&self, mut body: RecvStream) {
        let driver = &self.server.driver;
        if self.complete.get() {
            return std::future::pending().await;
        }
        while let Some(data) = body.data().await {
            let Ok(data) = data else {
                return;
            };
            let length = data.len();
            let ends = body.is_end_stream();
            self.complete.set(ends);
            driver.tell(|worker| worker.request_data(self.id, data, ends));
            if ends {
                return std::future::pending().await;
            }
            driver.room(self.id, Direction::Request, self.lanes).await;
            if body.flow_control().release_capacity(length).is_err() {
                return;
            }
        }
        let Ok(trailers) = body.trailers().await else {
            return;
        };
        self.complete.set(true);
        match trailers {
            Some(fields) => {
                let mut trailers = HeaderMap::new();
                h2_wire::add_fields(&mut trailers, &fields);
                driver.tell(|worker| worker.request_trailers(self.id, trailers));
            }
            None => driver.tell(|worker| worker.request_data(self.id, Bytes::new(), true)),
        }
        std::future::pending().await
    }
}
