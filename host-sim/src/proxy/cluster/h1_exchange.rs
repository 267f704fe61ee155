//! One request and its answer on an HTTP/1.1 connection.

use std::pin::pin;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use super::{Answer, Cluster, add_service_time};
use crate::header_map::HeaderMap;
use crate::proxy::h1::{
    self, BodyFault, BodyReader, BodyWriter, Framing, Incoming, Outgoing, Part, ResponseFault,
};
use crate::proxy::lane::{Lane, Order};
use crate::proxy::manager;
use crate::worker::UpstreamFailure;

impl Cluster {
    pub(super) async fn exchange_h1(
        &self,
        headers: HeaderMap,
        end_stream: bool,
        lane: &Lane,
        answer: &impl Answer,
    ) -> Result<(), UpstreamFailure> {
        let mut connection = self.connection().await?;
        if let Some(upstream) = &connection.upstream {
            answer.connected(upstream);
        }
        let trailers = self.settings.enable_trailers;
        let (head, writer) = h1::request_head(&headers, end_stream, trailers);
        let mut request_sent = false;
        let reusable = {
            let mut sending = pin!(send(
                &mut connection.outgoing,
                head,
                writer,
                end_stream,
                lane
            ));
            let mut receiving = pin!(receive(
                &mut connection.incoming,
                &headers,
                trailers,
                answer
            ));
            loop {
                tokio::select! {
                    biased;
                    // A connection that takes no more may still hold an answer, so only reading tells how it ends.
                    sent = &mut sending, if !request_sent => request_sent = sent || { receiving.as_mut().await?; return Ok(()) },
                    received = &mut receiving => break received?,
                }
            }
        };
        if reusable && request_sent && connection.incoming.buffer.is_empty() {
            self.keep(connection);
        }
        Ok(())
    }
}

/// Sends a request to its end; `false` where the connection takes no more.
async fn send(
    outgoing: &mut Outgoing,
    head: Vec<u8>,
    writer: BodyWriter,
    end_stream: bool,
    lane: &Lane,
) -> bool {
    if outgoing.write_all(&head).await.is_err() || outgoing.flush().await.is_err() {
        return false;
    }
    if end_stream {
        return true;
    }
    while let Some(order) = lane.next().await {
        let (sent, end) = match order {
            Order::Data { data, end_stream } => {
                (writer.data(outgoing, &data, end_stream).await, end_stream)
            }
            Order::Trailers(trailers) => (writer.trailers(outgoing, &trailers).await, true),
            Order::Headers { .. } => continue,
            Order::Reset => return false,
        };
        if sent.is_err() || end {
            return sent.is_ok();
        }
    }
    false
}

/// Receives an answer to its end; whether the connection can be used again.
async fn receive(
    incoming: &mut Incoming,
    request: &HeaderMap,
    trailers_pass: bool,
    answer: &impl Answer,
) -> Result<bool, UpstreamFailure> {
    let start = Instant::now();
    let method = request.first(":method").unwrap_or_default();
    let head = h1::read_response(incoming, method, manager::is_upgrade(request)).await;
    let mut head = head.map_err(|fault| match fault {
        ResponseFault::Gone => UpstreamFailure::Disconnected,
        ResponseFault::Malformed => UpstreamFailure::ProtocolError,
    })?;
    if head.headers.len() > MAX_RESPONSE_FIELDS {
        return Err(UpstreamFailure::ProtocolError);
    }
    // The answer to an upgrade shows none.
    if !manager::is_upgrade(request) {
        add_service_time(&mut head.headers, start);
    }
    let mut body = BodyReader::new(head.framing);
    let ends = matches!(head.framing, Framing::Empty | Framing::Length(0));
    answer.headers(head.headers, ends);
    if ends {
        return Ok(!head.closes);
    }
    loop {
        answer.room().await;
        match incoming.part(&mut body).await {
            Ok(Part::Data(data)) => answer.data(data, false),
            Ok(Part::Trailers(trailers)) if trailers_pass => {
                answer.trailers(trailers);
                break;
            }
            Ok(Part::Trailers(_) | Part::End) => {
                answer.data(Bytes::new(), true);
                break;
            }
            Err(BodyFault::Cut) => return Err(UpstreamFailure::Disconnected),
            Err(BodyFault::Malformed | BodyFault::TrailersTooLarge) => {
                return Err(UpstreamFailure::ProtocolError);
            }
        }
    }
    Ok(!head.closes)
}

/// With `:status`. Source: `max_headers_count` of an Envoy cluster, which is 100 unless configured.
pub(super) const MAX_RESPONSE_FIELDS: usize = 101;
