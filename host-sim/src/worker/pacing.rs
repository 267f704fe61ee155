//! Direct responses, whose bytes may reach the filter bit by bit.

use bytes::Bytes;

use super::Worker;
use crate::HeaderMap;
use crate::abi::Direction;
use crate::clock::Moment;
use crate::stream::{DirectResponse, LocalReply, PacedBody, StreamId};

impl Worker {
    /// The route answers the request by itself, as Envoy's router does for a `direct_response`.
    pub fn answer_directly(&mut self, id: StreamId, response: DirectResponse) {
        let Some(stream) = self.awaits_upstream(id) else {
            return;
        };
        stream.attempts = 0;
        stream.pace = response.pace;
        let mut reply = LocalReply::of_envoy(response.status.into(), "", "direct_response");
        reply.body = response.body.into();
        self.reply(id, reply);
    }

    /// The body of an answer of our own begins to go on.
    pub(super) fn begin_body(&mut self, id: StreamId, body: Bytes) {
        let now = self.host.clock().now();
        let Some(stream) = self.live(id) else {
            return;
        };
        match stream.pace.take() {
            Some(pace) => {
                stream.response.trailers_ahead = pace.ends_with_trailers;
                stream.paced = Some(PacedBody::new(body, pace, now));
            }
            None => self.receive_data(id, Direction::Response, body, true),
        }
    }

    /// Lets the bytes go on that are due.
    pub(super) fn let_out(&mut self, id: StreamId, now: Moment) {
        let Some(stream) = self.live(id) else {
            return;
        };
        let Some(paced) = &mut stream.paced else {
            return;
        };
        let (data, last) = paced.release(now);
        let trailers = paced.ends_with_trailers();
        if last {
            stream.paced = None;
        }
        self.receive_data(id, Direction::Response, data, last && !trailers);
        if last && trailers {
            self.receive_trailers(id, Direction::Response, HeaderMap::new());
        }
    }

    /// A filter that goes on after a pause sends the trailers that Envoy has by now, although the body before them is still behind the
    /// filter. Source: `ActiveStreamFilterBase::commonContinue` of Envoy's `source/common/http/filter_manager.cc`.
    pub(super) fn let_trailers_overtake(&mut self, id: StreamId, direction: Direction) {
        let Some(stream) = self.live(id) else {
            return;
        };
        let half = stream.half_mut(direction);
        if !half.trailers_ahead || half.complete {
            return;
        }
        half.trailers = Some(HeaderMap::new());
        half.complete = true;
        // A filter that has not seen the headers on their way yet is called for the trailers too.
        half.trailers_shown = !half.iteration.stops_all();
        stream.paced = None;
    }
}
