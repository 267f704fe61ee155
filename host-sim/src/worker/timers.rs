//! Everything that happens because time has passed: ticks, callouts and streams that have waited too long.

use super::{Worker, flags};
use crate::abi::Direction;
use crate::clock::Moment;
use crate::stream::{LocalReply, Stream, StreamId};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Callout(u32),
    Stream(StreamId),
    Tick(u32),
}

impl Worker {
    /// When [`Worker::run_timers`] has something to do next.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.next_due().map(|(moment, _)| moment)
    }

    /// Does everything that is due now, in the order in which it became due.
    pub fn run_timers(&mut self) {
        let now = self.host.clock().now();
        while let Some((moment, due)) = self.next_due() {
            if moment > now {
                break;
            }
            match due {
                Due::Callout(token) => self.callout_deadline(token),
                Due::Stream(id) => self.stream_deadline(id, now),
                Due::Tick(root) => self.tick(root, now),
            }
        }
    }

    fn next_due(&self) -> Option<(Moment, Due)> {
        let state = self.vm.state();
        let callout = state
            .callouts
            .next_deadline()
            .map(|(moment, token)| (moment, Due::Callout(token)));
        let ticks = state.roots.iter();
        let tick = ticks
            .filter_map(|(root, entry)| Some((entry.next_tick?, Due::Tick(*root))))
            .min();
        let streams = state.streams.iter();
        let stream = streams
            .filter_map(|(id, stream)| Some((stream.deadline()?, Due::Stream(*id))))
            .min();
        let tick = tick.filter(|_| state.failure.is_none());
        [callout, tick, stream].into_iter().flatten().min()
    }

    fn callout_deadline(&mut self, token: u32) {
        if token & 3 == 0 {
            self.callout_timed_out(self.vm.state().callouts.id(token));
        } else {
            self.grpc_timed_out(token);
        }
    }

    fn tick(&mut self, root: u32, now: Moment) {
        let called = self.vm.call(|exports| &exports.on_tick, root, (root,));
        if let Some(root) = self.vm.state_mut().roots.get_mut(&root)
            && root.next_tick.is_some_and(|moment| moment <= now)
        {
            root.next_tick = (!root.tick_period.is_zero()).then(|| now.after(root.tick_period));
        }
        self.after(called);
    }

    fn stream_deadline(&mut self, id: StreamId, now: Moment) {
        let Some(stream) = self.live(id) else {
            return;
        };
        let due = |deadline: Option<Moment>| deadline.is_some_and(|deadline| deadline <= now);
        if due(stream.paced.as_ref().map(|paced| paced.due)) {
            self.let_out(id, now);
            return;
        }
        let reply = if due(stream.route_deadline) {
            LocalReply::of_envoy(504, "upstream request timeout", "response_timeout")
                .flagged(flags::UPSTREAM_REQUEST_TIMEOUT)
        } else if due(stream.request_deadline) {
            let status = timeout_status(stream);
            LocalReply::of_envoy(status, "request timeout", "request_overall_timeout")
        } else {
            let status = timeout_status(stream);
            LocalReply::of_envoy(status, "stream timeout", "stream_idle_timeout")
                .flagged(flags::STREAM_IDLE_TIMEOUT)
        };
        stream.route_deadline = None;
        stream.request_deadline = None;
        stream.idle_deadline = None;
        self.reply(id, reply);
    }

    /// Something has come in for a stream, so it is not idle.
    pub(super) fn touch(&mut self, id: StreamId) {
        let now = self.host.clock().now();
        if let Some(stream) = self.live(id) {
            stream.idle_deadline = stream.limits.idle_timeout.map(|timeout| now.after(timeout));
        }
    }

    /// The filter is shown the end of the request, so the request is not late any more. An end that has come in and is kept back
    /// from the filter does not count, as in Envoy.
    pub(super) fn request_was_shown(&mut self, id: StreamId, direction: Direction) {
        if let Some(stream) = self.live(id)
            && direction == Direction::Request
        {
            stream.request_deadline = None;
        }
    }
}

/// A client that is silent in the middle of its request is told so; otherwise it is others who are late.
fn timeout_status(stream: &Stream) -> u32 {
    if stream.request.complete { 504 } else { 408 }
}
