//! One request and its answer on an HTTP/2 connection, which many requests share.

use std::cell::Cell;
use std::pin::pin;
use std::time::Instant;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::ResponseFuture;

use super::h1_exchange::MAX_RESPONSE_FIELDS;
use super::{Answer, Cluster, Http2, add_service_time};
use crate::header_map::HeaderMap;
use crate::proxy::h2_wire;
use crate::proxy::lane::{Lane, Order};
use crate::worker::UpstreamFailure;

impl Cluster {
    pub(super) async fn exchange_h2(
        &self,
        headers: HeaderMap,
        end_stream: bool,
        lane: &Lane,
        answer: &impl Answer,
    ) -> Result<(), UpstreamFailure> {
        let Http2 {
            mut sender,
            upstream,
        } = self.http2_connection().await?;
        if let Some(upstream) = &upstream {
            answer.connected(upstream);
        }
        let request = h2_wire::request(&headers).ok_or(UpstreamFailure::ProtocolError)?;
        let (response, mut stream) = sender.send_request(request, end_stream).map_err(failure)?;
        let request_sent = Cell::new(end_stream);
        let mut sending = pin!(send(&mut stream, lane));
        let mut receiving = pin!(receive(response, &request_sent, answer));
        loop {
            tokio::select! {
                biased;
                _ = &mut sending, if !request_sent.get() => request_sent.set(true),
                received = &mut receiving => return received,
            }
        }
    }

    /// The connection that is open, or a new one.
    async fn http2_connection(&self) -> Result<Http2, UpstreamFailure> {
        let open = self.http2.borrow().clone();
        if let Some(Http2 { sender, upstream }) = open
            && let Ok(sender) = sender.ready().await
        {
            return Ok(Http2 { sender, upstream });
        }
        let counted = self.active_connections.hold();
        let (io, upstream) = self.connect().await?;
        let builder = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .data_frame_budget(h2_wire::DATA_FRAME_BUDGET)
            .handshake(io);
        let (sender, connection) = builder.await.map_err(failure)?;
        tokio::task::spawn_local(async move {
            // How the connection ended, each of its streams learns for itself.
            let _told_elsewhere = connection.await;
            drop(counted);
        });
        self.http2.replace(Some(Http2 {
            sender: sender.clone(),
            upstream: upstream.clone(),
        }));
        let sender = sender.ready().await.map_err(failure)?;
        Ok(Http2 { sender, upstream })
    }
}

async fn send(stream: &mut h2::SendStream<Bytes>, lane: &Lane) -> Option<()> {
    while let Some(order) = lane.next().await {
        match order {
            Order::Data { data, end_stream } => {
                h2_wire::send_data(stream, data, end_stream).await?;
                if end_stream {
                    break;
                }
            }
            Order::Trailers(trailers) => {
                return stream.send_trailers(h2_wire::fields(&trailers)).ok();
            }
            Order::Headers { .. } => {}
            Order::Reset => {
                stream.send_reset(h2::Reason::CANCEL);
                break;
            }
        }
    }
    Some(())
}

async fn receive(
    response: ResponseFuture,
    request_sent: &Cell<bool>,
    answer: &impl Answer,
) -> Result<(), UpstreamFailure> {
    let start = Instant::now();
    let (head, body) = response.await.map_err(failure)?.into_parts();
    let mut headers = HeaderMap::new().with(":status", head.status.as_str());
    h2_wire::add_fields(&mut headers, &head.headers);
    if headers.len() > MAX_RESPONSE_FIELDS {
        return Err(UpstreamFailure::ProtocolError);
    }
    // The time counts from the end of the request, so an answer that comes before it has none.
    if request_sent.get() {
        add_service_time(&mut headers, start);
    }
    let ends = body.is_end_stream();
    answer.headers(headers, ends);
    if ends {
        Ok(())
    } else {
        receive_body(body, answer).await
    }
}

async fn receive_body(mut body: RecvStream, answer: &impl Answer) -> Result<(), UpstreamFailure> {
    while let Some(data) = body.data().await {
        let data = data.map_err(failure)?;
        let length = data.len();
        let ends = body.is_end_stream();
        answer.data(data, ends);
        if ends {
            return Ok(());
        }
        answer.room().await;
        body.flow_control()
            .release_capacity(length)
            .map_err(failure)?;
    }
    match body.trailers().await.map_err(failure)? {
        Some(fields) => {
            let mut trailers = HeaderMap::new();
            h2_wire::add_fields(&mut trailers, &fields);
            answer.trailers(trailers);
        }
        None => answer.data(Bytes::new(), true),
    }
    Ok(())
}

fn failure(error: h2::Error) -> UpstreamFailure {
    if error.is_reset() {
        UpstreamFailure::Reset
    } else {
        UpstreamFailure::Disconnected
    }
}

/// Envoy's default for a stream is 256 MiB; a smaller window changes nothing but the moment at which a sender waits.
const WINDOW: u32 = 1024 * 1024;
