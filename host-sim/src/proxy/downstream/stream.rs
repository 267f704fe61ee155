//! What streams of both protocols share: they are opened on the worker, and their requests are routed once the filter lets them.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::{Connection, Server};
use crate::abi::Direction;
use crate::header_map::HeaderMap;
use crate::proxy::access_log::Ended;
use crate::proxy::cluster::{Answer, Cluster};
use crate::proxy::driver::{Driver, Lanes};
use crate::proxy::lane::Order;
use crate::proxy::manager::{self, EarlyAnswer, Peer};
use crate::proxy::settings::{DirectBody, Route, RouteAction};
use crate::stream::{DirectResponse, Pace, Protocol, StreamId, StreamInfo, UpstreamInfo};
use crate::worker::{RefusedRequest, Worker};

impl Server {
    pub(super) fn peer(&self, connection: &Connection, protocol: Protocol) -> Peer {
        Peer {
            address: connection.peer,
            tls: connection.tls,
            protocol,
            machine: self.machine,
        }
    }

    /// Opens a stream on the worker. The request goes on when its filter lets it.
    pub(super) fn open(
        self: &Rc<Server>,
        connection: &Connection,
        protocol: Protocol,
        headers: HeaderMap,
        end_stream: bool,
    ) -> (StreamId, Rc<Lanes>) {
        let route = manager::route(&self.listener, &headers);
        let info = self.info(connection, protocol, &headers, route);
        let mut limits = self.listener.limits;
        if let Some(route) = route {
            limits.route_timeout = route.timeout;
        }
        if protocol == Protocol::Http2 {
            limits.buffer_limit_bytes =
                usize::try_from(self.listener.http.initial_stream_window).unwrap_or(usize::MAX);
        }
        let (id, lanes) = self.driver.open(info, limits, headers, end_stream);
        // A request without an upstream is answered before more of it is read, so that its connection ends as in Envoy.
        let routed = lanes.to_upstream.take().map(|order| self.route(id, order));
        let task = tokio::task::spawn_local(self.clone().forward(id, lanes.clone(), routed));
        lanes.upstream.replace(Some(task.abort_handle()));
        (id, lanes)
    }

    fn info(
        &self,
        connection: &Connection,
        protocol: Protocol,
        headers: &HeaderMap,
        route: Option<&Route>,
    ) -> StreamInfo {
        let virtual_host = manager::virtual_host(&self.listener, headers);
        StreamInfo {
            source: manager::client(headers, &self.listener.http, connection.peer),
            destination: connection.local,
            protocol,
            connection_id: connection.id,
            peer_certificate: connection.certificate.clone(),
            local_certificate: connection.local_certificate.clone(),
            tls_version: connection.tls_version.clone(),
            server_name: connection.server_name.clone(),
            cluster: route.and_then(cluster_of).unwrap_or_default().to_owned(),
            route: route.map(|route| route.name.clone()).unwrap_or_default(),
            route_metadata: route.map(|route| route.metadata.clone()),
            virtual_host: virtual_host
                .map(|host| host.name.clone())
                .unwrap_or_default(),
        }
    }

    /// Lets the guest log a request that was answered with `response` before it.
    pub(super) fn log_early(
        &self,
        connection: &Connection,
        protocol: Protocol,
        early: &EarlyAnswer,
        response: &HeaderMap,
    ) {
        self.log_refused(RefusedRequest {
            info: self.info(connection, protocol, &early.request, None),
            request: (!early.by_codec).then(|| early.request.clone()),
            response: response.clone(),
            details: early.details,
            malformed: early.by_codec,
        });
    }

    /// Lets the guest log a request that the codec refused with `status` and `response`.
    pub(super) fn log_unread(&self, connection: &Connection, status: u16, response: HeaderMap) {
        let details = match status {
            403 => "http1.https_url_on_plaintext_connection",
            408 => "request_header_timeout",
            426 => "low_version",
            431 => "http1.headers_too_large",
            501 => "http1.invalid_transfer_encoding",
            _ => "http1.codec_error",
        };
        self.log_refused(RefusedRequest {
            info: self.info(connection, Protocol::Http11, &HeaderMap::new(), None),
            request: None,
            response,
            details,
            malformed: status != 408,
        });
    }

    fn log_refused(&self, refused: RefusedRequest) {
        // Without a filter and an access log, nobody logs.
        if self.listener.plugin.is_some() || self.listener.access_log.is_some() {
            self.driver.tell(|worker| worker.refused(refused));
        }
    }

    /// Waits for the request to leave the filter, and sends it where its route says.
    async fn forward(
        self: Rc<Server>,
        id: StreamId,
        lanes: Rc<Lanes>,
        routed: Option<Option<Routed>>,
    ) {
        let routed = match routed {
            Some(routed) => routed,
            None => {
                let order = lanes.to_upstream.next().await;
                order.and_then(|order| self.route(id, order))
            }
        };
        let Some(Routed {
            cluster,
            headers,
            end_stream,
        }) = routed
        else {
            return;
        };
        let answer = ToWorker {
            driver: &self.driver,
            id,
            lanes: &lanes,
        };
        let exchange = cluster.exchange(headers, end_stream, &lanes.to_upstream, &answer);
        if let Err(failure) = exchange.await {
            self.driver
                .tell(|worker| worker.upstream_failed(id, &failure));
        }
    }

    /// Answers a request that has just left the filter and goes to no upstream: before more of it is read, so that its connection
    /// ends as in Envoy.
    pub(super) fn answer_at_once(&self, id: StreamId, lanes: &Lanes) {
        let without_upstream = |order: &Order| match order {
            Order::Headers { headers, .. } => {
                let route = manager::route(&self.listener, headers);
                route.is_none_or(|route| cluster_of(route).is_none())
            }
            Order::Data { .. } | Order::Trailers(_) | Order::Reset => false,
        };
        if lanes.to_upstream.begins_with(without_upstream)
            && let Some(order) = lanes.to_upstream.take()
        {
            let _answered_here = self.route(id, order);
        }
    }

    /// Where a request goes that has left the filter; `None` where it was answered here. The filter may have changed what routes
    /// look at, so the route is looked up anew, as in Envoy.
    fn route(&self, id: StreamId, order: Order) -> Option<Routed> {
        let Order::Headers {
            mut headers,
            end_stream,
        } = order
        else {
            return None;
        };
        let answer = |status: u16, body: &str, details: &str| {
            self.driver
                .tell(|worker| worker.answer_locally(id, status, body, details));
        };
        let Some(route) = manager::route(&self.listener, &headers) else {
            answer(404, "", "route_not_found");
            return None;
        };
        self.driver.tell(|worker| {
            let cluster = cluster_of(route).unwrap_or_default();
            worker.rerouted(id, cluster, &route.name, &route.metadata);
        });
        let cluster = match &route.action {
            RouteAction::DirectResponse { status, body, pace } => {
                self.driver
                    .tell(|worker| answer_directly(worker, id, *status, body, *pace));
                return None;
            }
            RouteAction::Forward { .. } if headers.first(":method") == Some(b"CONNECT") => {
                answer(501, "", "no_tunnels");
                return None;
            }
            RouteAction::Forward { cluster, .. } => self.driver.clusters.named(cluster),
        };
        let Some(cluster) = cluster else {
            answer(503, "", "cluster_not_found");
            return None;
        };
        manager::to_upstream(&mut headers, &self.listener, route);
        self.driver
            .tell(|worker| worker.request_routed(id, headers.clone()));
        Some(Routed {
            cluster,
            headers,
            end_stream,
        })
    }
}

/// A request on its way to a cluster.
struct Routed {
    cluster: Rc<Cluster>,
    headers: HeaderMap,
    end_stream: bool,
}

/// Answers with what the route has, or makes of what the filter has set.
fn answer_directly(
    worker: &mut Worker,
    id: StreamId,
    status: u16,
    body: &DirectBody,
    pace: Option<Pace>,
) {
    let body = match body {
        DirectBody::Bytes(bytes) => bytes.clone(),
        DirectBody::Format(format) => worker
            .stream(id)
            .map(|stream| {
                let duration = Duration::ZERO;
                format.bytes(Ended { stream, duration })
            })
            .unwrap_or_default(),
    };
    let body = body.into();
    worker.answer_directly(id, DirectResponse { status, body, pace });
}

fn cluster_of(route: &Route) -> Option<&str> {
    match &route.action {
        RouteAction::Forward { cluster, .. } => Some(cluster),
        RouteAction::DirectResponse { .. } => None,
    }
}

/// An upstream's answer on its way to the filter.
struct ToWorker<'a> {
    driver: &'a Rc<Driver>,
    id: StreamId,
    lanes: &'a Rc<Lanes>,
}

impl Answer for ToWorker<'_> {
    fn connected(&self, upstream: &UpstreamInfo) {
        self.driver
            .tell(|worker| worker.upstream_connected(self.id, upstream.clone()));
    }

    fn headers(&self, headers: HeaderMap, end_stream: bool) {
        self.driver
            .tell(|worker| worker.response_headers(self.id, headers, end_stream));
    }

    fn data(&self, data: Bytes, end_stream: bool) {
        self.driver
            .tell(|worker| worker.response_data(self.id, data, end_stream));
    }

    fn trailers(&self, trailers: HeaderMap) {
        self.driver
            .tell(|worker| worker.response_trailers(self.id, trailers));
    }

    async fn room(&self) {
        self.driver
            .room(self.id, Direction::Response, self.lanes)
            .await;
    }
}
