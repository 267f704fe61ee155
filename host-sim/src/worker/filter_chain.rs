//! Both ways through the filter: when it is called, what it sees, what goes on and what waits.
//!
//! The two ways are the same machine with other callbacks. Source: `FilterManager` of Envoy's `source/common/http/filter_manager.cc`
//! and `Context::decodeHeaders` and its siblings in `source/extensions/common/wasm/context.cc`.

use bytes::Bytes;

use super::{Worker, local_replies};
use crate::abi::Direction;
use crate::header_map::{HeaderMap, Joining};
use crate::output::Output;
use crate::stream::{BodyView, Filter, Iteration, Stream, StreamId};
use crate::vm::Called;

/// What becomes of headers after their callback. Source: `FilterHeadersStatus` of proxy-wasm-cpp-host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterHeaders {
    Continue,
    Stop(Iteration),
}

/// What becomes of bytes after their callback. Source: `FilterDataStatus` of proxy-wasm-cpp-host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterData {
    Continue,
    StopAndBuffer,
    StopAndWatermark,
    StopNoBuffer,
}

impl Worker {
    pub(super) fn receive_headers(
        &mut self,
        id: StreamId,
        direction: Direction,
        headers: HeaderMap,
        end_stream: bool,
    ) {
        let Some(stream) = self.live(id) else {
            return;
        };
        let half = stream.half_mut(direction);
        let joining = match direction {
            Direction::Request => Joining::Request,
            Direction::Response => Joining::Response,
        };
        half.headers = Some(headers.joined(joining));
        half.complete = end_stream;
        half.end_seen = end_stream;
        half.headers_visible = true;
        self.touch(id);
        self.note_answered(id, direction);
        if end_stream {
            self.request_was_shown(id, direction);
        }
        let after = match self.headers_callback(id, direction, end_stream) {
            Some(after) => after,
            None => return,
        };
        let Some(stream) = self.live(id) else {
            return;
        };
        let half = stream.half_mut(direction);
        match after {
            AfterHeaders::Continue => {
                half.headers_visible = false;
                if !half.headers_continued {
                    half.headers_continued = true;
                    self.send_headers(id, direction, end_stream);
                }
            }
            AfterHeaders::Stop(iteration) => {
                half.iteration = iteration;
                half.watermarked |= iteration == Iteration::StopAllWatermark;
            }
        }
    }

    /// `None` where nothing more is to be done, since the stream was answered or has ended meanwhile.
    fn headers_callback(
        &mut self,
        id: StreamId,
        direction: Direction,
        end_stream: bool,
    ) -> Option<AfterHeaders> {
        let stream = self.live(id)?;
        let count = stream
            .half(direction)
            .headers
            .as_ref()
            .map_or(0, HeaderMap::len);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let end = u32::from(end_stream);
        let Some(context) = self.context(id)? else {
            return Some(AfterHeaders::Continue);
        };
        let (vm, three, two) = (&mut self.vm, (context, count, end), (context, count));
        let mut called = match direction {
            Direction::Request => vm.call(|exports| &exports.on_request_headers, context, three),
            Direction::Response => vm.call(|exports| &exports.on_response_headers, context, three),
        };
        if called == Called::Absent {
            called = match direction {
                Direction::Request => {
                    vm.call(|exports| &exports.on_request_headers_0_1, context, two)
                }
                Direction::Response => {
                    vm.call(|exports| &exports.on_response_headers_0_1, context, two)
                }
            };
        }
        let stopped = self.vm.state().stop_iteration;
        let result = self.outcome(id, direction, called)?;
        let allowed = self.plugin.allow_on_headers_stop_iteration;
        Some(match result {
            _ if stopped => AfterHeaders::Stop(Iteration::StopAllWatermark),
            0 | 2 => AfterHeaders::Continue,
            1 if allowed => AfterHeaders::Stop(Iteration::StopSingle),
            3 => AfterHeaders::Stop(Iteration::StopAllBuffer),
            _ => AfterHeaders::Stop(Iteration::StopAllWatermark),
        })
    }

    /// The answer has come in whole.
    fn note_answered(&mut self, id: StreamId, direction: Direction) {
        let now = self.host.clock().now();
        if let Some(stream) = self.live(id)
            && direction == Direction::Response
            && stream.response.complete
        {
            stream.backend_latency = stream.sent_at.map(|sent| now.since(sent));
        }
    }

    pub(super) fn receive_data(
        &mut self,
        id: StreamId,
        direction: Direction,
        data: Bytes,
        end_stream: bool,
    ) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        half.body_bytes += data.len() as u64;
        half.complete = end_stream;
        self.touch(id);
        self.note_answered(id, direction);
        self.pass_data(id, direction, data.into(), end_stream);
    }

    /// Shows bytes to the filter, or lets them wait where it wants to see nothing.
    fn pass_data(&mut self, id: StreamId, direction: Direction, data: Vec<u8>, end_stream: bool) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        if half.iteration.stops_all() {
            half.buffer.get_or_insert_default().extend_from_slice(&data);
            if half.iteration == Iteration::StopAllBuffer {
                self.check_limit(id, direction);
            }
            return;
        }
        half.end_seen = end_stream;
        if end_stream {
            self.request_was_shown(id, direction);
        }
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        if half.buffering {
            half.buffer.get_or_insert_default().extend_from_slice(&data);
            half.body_view = BodyView::Buffered;
            // A response that is too large ends at once; the filter still sees such a request, but its answer stands.
            match direction {
                Direction::Request => self.too_large = self.limit_reply(id, direction),
                Direction::Response => self.check_limit(id, direction),
            }
        } else {
            half.chunk = data;
            half.body_view = BodyView::Chunk;
        }
        if self.receiving(id, direction).is_none() {
            return;
        }
        let Some(after) = self.data_callback(id, direction, end_stream) else {
            return;
        };
        self.after_data(id, direction, after);
    }

    fn data_callback(
        &mut self,
        id: StreamId,
        direction: Direction,
        end_stream: bool,
    ) -> Option<AfterData> {
        let stream = self.live(id)?;
        let half = stream.half(direction);
        let size = match half.body_view {
            BodyView::Buffered => half.buffer.as_ref().map_or(0, Vec::len),
            BodyView::Chunk => half.chunk.len(),
            BodyView::Hidden => 0,
        };
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let Some(context) = self.context(id)? else {
            return Some(AfterData::Continue);
        };
        let arguments = (context, size, u32::from(end_stream));
        let called = match direction {
            Direction::Request => {
                self.vm
                    .call(|exports| &exports.on_request_body, context, arguments)
            }
            Direction::Response => {
                self.vm
                    .call(|exports| &exports.on_response_body, context, arguments)
            }
        };
        let stopped = self.vm.state().stop_iteration;
        Some(match self.outcome(id, direction, called)? {
            _ if stopped => AfterData::StopNoBuffer,
            0 => AfterData::Continue,
            1 => AfterData::StopAndBuffer,
            2 => AfterData::StopAndWatermark,
            _ => AfterData::StopNoBuffer,
        })
    }

    fn after_data(&mut self, id: StreamId, direction: Direction, after: AfterData) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        let chunk = std::mem::take(&mut half.chunk);
        half.buffering = false;
        if after == AfterData::Continue {
            half.body_view = BodyView::Hidden;
            if half.iteration == Iteration::StopSingle {
                half.buffer.get_or_insert_default().extend(chunk);
                half.iteration = Iteration::Continue;
                self.let_trailers_overtake(id, direction);
                self.send_waiting(id, direction);
            } else {
                self.send_data(id, direction, chunk);
                self.send_trailers(id, direction);
            }
            return;
        }
        half.iteration = Iteration::StopSingle;
        if after == AfterData::StopNoBuffer {
            // The bytes are gone, as in Envoy; at the end of the stream the end itself must not be lost.
            if half.complete && half.trailers.is_none() {
                half.buffer.get_or_insert_default();
            }
            return;
        }
        half.buffer.get_or_insert_default().extend(chunk);
        half.buffering = after == AfterData::StopAndBuffer;
        half.body_view = if half.buffering {
            BodyView::Buffered
        } else {
            BodyView::Hidden
        };
        half.watermarked |= after == AfterData::StopAndWatermark;
        self.check_limit(id, direction);
    }

    pub(super) fn receive_trailers(
        &mut self,
        id: StreamId,
        direction: Direction,
        trailers: HeaderMap,
    ) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        half.trailers = Some(trailers);
        half.complete = true;
        let stopped = half.iteration.stops_all();
        self.touch(id);
        self.note_answered(id, direction);
        if !stopped {
            self.pass_trailers(id, direction);
        }
    }

    fn pass_trailers(&mut self, id: StreamId, direction: Direction) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        half.trailers_visible = true;
        half.trailers_shown = true;
        self.request_was_shown(id, direction);
        let Some(pause) = self.trailers_callback(id, direction) else {
            return;
        };
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        if pause {
            half.iteration = Iteration::StopSingle;
            return;
        }
        half.trailers_visible = false;
        half.iteration = Iteration::Continue;
        self.send_waiting(id, direction);
    }

    fn trailers_callback(&mut self, id: StreamId, direction: Direction) -> Option<bool> {
        let stream = self.live(id)?;
        let count = stream
            .half(direction)
            .trailers
            .as_ref()
            .map_or(0, HeaderMap::len);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let Some(context) = self.context(id)? else {
            return Some(false);
        };
        let arguments = (context, count);
        let called = match direction {
            Direction::Request => {
                self.vm
                    .call(|exports| &exports.on_request_trailers, context, arguments)
            }
            Direction::Response => {
                self.vm
                    .call(|exports| &exports.on_response_trailers, context, arguments)
            }
        };
        let stopped = self.vm.state().stop_iteration;
        Some(self.outcome(id, direction, called)? != 0 || stopped)
    }

    /// Lets a paused way go on, as the guest has asked.
    pub(super) fn resume(&mut self, id: StreamId, direction: Direction) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        if half.headers.is_none() {
            return;
        }
        self.let_trailers_overtake(id, direction);
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        let stopped_all = half.iteration.stops_all();
        half.iteration = Iteration::Continue;
        if !stopped_all {
            self.send_waiting(id, direction);
            return;
        }
        // What came during the pause has not been shown to the filter yet.
        self.send_waiting_headers(id, direction);
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        let end_stream = half.complete && half.trailers.is_none();
        if let Some(data) = half.buffer.take() {
            self.pass_data(id, direction, data, end_stream);
        }
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half(direction);
        if half.trailers.is_some() && !half.iteration.stops_all() && !half.sent_complete {
            self.pass_trailers(id, direction);
        }
    }

    /// Sends everything that waits for a way that goes on.
    fn send_waiting(&mut self, id: StreamId, direction: Direction) {
        self.send_waiting_headers(id, direction);
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        if let Some(data) = stream.half_mut(direction).buffer.take() {
            self.send_data(id, direction, data);
        }
        self.send_trailers(id, direction);
    }

    fn send_waiting_headers(&mut self, id: StreamId, direction: Direction) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        if half.headers_continued {
            return;
        }
        half.headers_continued = true;
        let end_stream = half.complete && half.buffer.is_none() && half.trailers.is_none();
        self.send_headers(id, direction, end_stream);
    }

    fn send_headers(&mut self, id: StreamId, direction: Direction, end_stream: bool) {
        let Some(half) = self.live(id).map(|stream| stream.half_mut(direction)) else {
            return;
        };
        let headers = half.headers.get_or_insert_default();
        if let Some(reply) = local_replies::to_broken_headers(direction, headers) {
            half.headers_continued = false;
            self.reply(id, reply);
            return;
        }
        let date = self.host.clock().http_date();
        let Some(stream) = self.live(id) else {
            return;
        };
        let timeout = stream.limits.route_timeout;
        let closes = stream.closes_connection;
        if direction == Direction::Request {
            stream.attempts = 1;
        }
        let half = stream.half_mut(direction);
        half.sent_complete = end_stream;
        let headers = half.headers.get_or_insert_default();
        match direction {
            // What Envoy's router adds.
            Direction::Request => {
                if let Some(timeout) = timeout {
                    let milliseconds = timeout.as_millis().to_string();
                    headers.set(b"x-envoy-expected-rq-timeout-ms", milliseconds.as_bytes());
                }
            }
            Direction::Response => add_response_headers(headers, &date, closes),
        }
        let headers = headers.clone();
        if direction == Direction::Response {
            stream.code = headers
                .text(":status")
                .and_then(|status| status.parse().ok());
        }
        self.send(Output::Headers {
            stream: id,
            direction,
            headers,
            end_stream,
        });
        self.note_sent(id, direction);
    }

    fn send_data(&mut self, id: StreamId, direction: Direction, data: Vec<u8>) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        let end_stream = half.complete && half.trailers.is_none();
        half.sent_complete = end_stream;
        half.sent_bytes += data.len() as u64;
        if data.is_empty() && !end_stream {
            return;
        }
        self.send(Output::Data {
            stream: id,
            direction,
            data: data.into(),
            end_stream,
        });
        self.note_sent(id, direction);
    }

    fn send_trailers(&mut self, id: StreamId, direction: Direction) {
        let Some(stream) = self.receiving(id, direction) else {
            return;
        };
        let half = stream.half_mut(direction);
        let due = half.complete && half.trailers_shown && !half.sent_complete;
        let Some(trailers) = half.trailers.clone().filter(|_| due) else {
            return;
        };
        half.sent_complete = true;
        self.send(if trailers.is_empty() {
            // Both codecs of Envoy write the bare end.
            Output::Data {
                stream: id,
                direction,
                data: Bytes::new(),
                end_stream: true,
            }
        } else {
            Output::Trailers {
                stream: id,
                direction,
                trailers,
            }
        });
        self.note_sent(id, direction);
    }

    /// What follows from having sent something on: the route's clock starts, or the stream is over.
    fn note_sent(&mut self, id: StreamId, direction: Direction) {
        let now = self.host.clock().now();
        let Some(stream) = self.live(id) else {
            return;
        };
        let timeout = stream.limits.route_timeout;
        if !stream.half(direction).sent_complete {
            return;
        }
        match direction {
            Direction::Request => {
                stream.sent_at = Some(now);
                stream.route_deadline = timeout.map(|timeout| now.after(timeout));
            }
            Direction::Response => self.finish(id),
        }
    }

    /// The stream, as long as this way of it is served: after an answer of our own, nothing of the request is.
    fn receiving(&mut self, id: StreamId, direction: Direction) -> Option<&mut Stream> {
        let aborted =
            |stream: &&mut Stream| direction == Direction::Request && stream.answered_locally;
        self.live(id).filter(|stream| !aborted(stream))
    }

    /// The guest's context for a stream: `Some(None)` where the filter is skipped, `None` where its VM has failed and the stream
    /// was answered with that.
    fn context(&mut self, id: StreamId) -> Option<Option<u32>> {
        let filter = self.live(id)?.filter;
        match filter {
            Filter::Active(context) => Some(Some(context)),
            Filter::Bypassed | Filter::Deleted => Some(None),
            Filter::Dead => {
                if self.live(id)?.failed {
                    return Some(None);
                }
                self.fail_stream(id);
                None
            }
        }
    }

    /// The number that a callback returned. `None` when the stream was answered or ended while it ran.
    fn outcome(&mut self, id: StreamId, direction: Direction, called: Called<u32>) -> Option<u32> {
        let outer = self.prepared.replace((id, self.too_large.take()));
        let called = self.after(called);
        let prepared = std::mem::replace(&mut self.prepared, outer);
        if called == Called::Failed {
            self.fail_stream(id);
            return None;
        }
        if let Some((_, Some(reply))) = prepared {
            self.reply(id, reply);
            return None;
        }
        self.receiving(id, direction)?;
        match called {
            Called::Returned(result) => Some(result),
            Called::Absent | Called::Failed => Some(0),
        }
    }
}

/// What Envoy's connection manager changes in each response.
pub(super) fn add_response_headers(headers: &mut HeaderMap, date: &str, closes_connection: bool) {
    // The answer that lets a connection become another protocol names it.
    if headers.first(":status") != Some(b"101") {
        headers.remove(b"connection");
    }
    headers.remove(b"transfer-encoding");
    if !headers.contains("date") {
        headers.add(b"date", date.as_bytes());
    }
    headers.set_in_place("server", b"envoy");
    if closes_connection {
        headers.add(b"connection", b"close");
    }
}
