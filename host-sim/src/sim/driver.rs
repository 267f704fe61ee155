//! Moves outputs of the workers to where a test can look at them, and time past their deadlines.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::callout;
use super::message::{Message, Response};
use crate::abi::Direction;
use crate::callout::{CalloutId, CalloutOutcome, GrpcEvent};
use crate::error::LoadError;
use crate::header_map::HeaderMap;
use crate::host::Host;
use crate::output::{GrpcCallout, HttpCallout, Output};
use crate::plugin::Plugin;
use crate::stream::{StreamId, StreamInfo, StreamLimits};
use crate::topology::Topology;
use crate::worker::Worker;

/// What has become of a stream so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// What the upstream has received.
    pub(super) request: Option<Message>,
    /// What the client has received.
    pub(super) response: Option<Message>,
    pub(super) reset: bool,
    pub(super) upstream_reset: bool,
    pub(super) over: bool,
}

/// Plays a part of the test by itself.
pub(super) type Serve = Box<dyn FnMut(&Message) -> Response>;

/// A gRPC callout, the messages sent on it, and whether the guest has ended its side.
type OpenGrpcCall = (GrpcCallout, Vec<Bytes>, bool);

pub(super) struct Driver {
    host: Host,
    plugin: Arc<Plugin>,
    topology: Topology,
    records: HashMap<(usize, StreamId), Record>,
    /// Callouts without an answer, in the order in which they were made.
    callouts: BTreeMap<u64, (usize, HttpCallout)>,
    made: u64,
    grpc_calls: BTreeMap<(usize, CalloutId), OpenGrpcCall>,
    clusters: HashMap<String, Serve>,
    upstream: Option<Serve>,
}

impl Driver {
    pub(super) fn new(host: Host, plugin: Arc<Plugin>, topology: Topology) -> Driver {
        Driver {
            host,
            plugin,
            topology,
            records: HashMap::new(),
            callouts: BTreeMap::new(),
            made: 0,
            grpc_calls: BTreeMap::new(),
            clusters: HashMap::new(),
            upstream: None,
        }
    }

    pub(super) fn workers(&self) -> &[Worker] {
        self.topology.workers()
    }

    pub(super) fn workers_mut(&mut self) -> &mut [Worker] {
        self.topology.workers_mut()
    }

    pub(super) fn record(&self, worker: usize, id: StreamId) -> Record {
        self.records.get(&(worker, id)).cloned().unwrap_or_default()
    }

    pub(super) fn open(
        &mut self,
        worker: usize,
        info: StreamInfo,
        headers: HeaderMap,
        end_stream: bool,
    ) -> StreamId {
        let id = self.workers_mut()[worker].open(info, headers, end_stream);
        self.records.insert((worker, id), Record::default());
        self.pump();
        id
    }

    /// Nobody can ask about this stream any more. What still happens to it is not written down.
    pub(super) fn forget(&mut self, worker: usize, id: StreamId) {
        self.records.remove(&(worker, id));
    }

    pub(super) fn respond(&mut self, worker: usize, id: StreamId, response: Response) {
        respond(&mut self.workers_mut()[worker], id, response);
        self.pump();
    }

    pub(super) fn serve_cluster(&mut self, cluster: &str, serve: Serve) {
        self.clusters.insert(cluster.to_owned(), serve);
        self.pump();
    }

    pub(super) fn serve_upstream(&mut self, serve: Serve) {
        self.upstream = Some(serve);
    }

    pub(super) fn waiting_callouts(&self) -> Vec<(usize, HttpCallout)> {
        self.callouts.values().cloned().collect()
    }

    pub(super) fn open_grpc_calls(&self) -> Vec<(usize, CalloutId)> {
        self.grpc_calls.keys().copied().collect()
    }

    pub(super) fn grpc_call(&self, worker: usize, id: CalloutId) -> Option<OpenGrpcCall> {
        self.grpc_calls.get(&(worker, id)).cloned()
    }

    pub(super) fn answer(&mut self, worker: usize, id: CalloutId, outcome: CalloutOutcome) {
        self.forget_callout(worker, id);
        self.workers_mut()[worker].callout_answered(id, outcome);
        self.pump();
    }

    pub(super) fn grpc_event(&mut self, worker: usize, id: CalloutId, event: GrpcEvent) {
        let over = matches!(event, GrpcEvent::Closed { .. });
        self.workers_mut()[worker].grpc_event(id, event);
        if over {
            self.grpc_calls.remove(&(worker, id));
        }
        self.pump();
    }

    pub(super) fn reconfigure(
        &mut self,
        configuration: Vec<u8>,
        limits: StreamLimits,
    ) -> Result<(), LoadError> {
        let plugin = Arc::new(Plugin::clone(&self.plugin).configuration(configuration));
        self.topology.reconfigure(&plugin, limits)?;
        self.plugin = plugin;
        self.pump();
        Ok(())
    }

    pub(super) fn advance(&mut self, duration: Duration) {
        let end = self.host.clock().now().after(duration);
        loop {
            let due = self.workers().iter().enumerate();
            let due = due
                .filter_map(|(index, worker)| Some((worker.next_deadline()?, index)))
                .min();
            let Some((moment, worker)) = due.filter(|(moment, _)| *moment <= end) else {
                break;
            };
            self.host.clock().move_to(moment);
            self.workers_mut()[worker].run_timers();
            self.pump();
        }
        self.host.clock().move_to(end);
    }

    /// Takes outputs and queue messages until nobody has any.
    pub(super) fn pump(&mut self) {
        loop {
            let mut quiet = true;
            for index in 0..self.workers().len() {
                self.workers_mut()[index].run_queues();
                while let Some(output) = self.workers_mut()[index].poll_output() {
                    quiet = false;
                    self.carry_out(index, output);
                }
            }
            if quiet {
                break;
            }
        }
    }

    fn carry_out(&mut self, worker: usize, output: Output) {
        match output {
            Output::Headers {
                stream,
                direction,
                headers,
                end_stream,
            } => self.received(worker, stream, direction, |message| {
                message.headers = headers;
                message.complete = end_stream;
            }),
            Output::Data {
                stream,
                direction,
                data,
                end_stream,
            } => self.received(worker, stream, direction, |message| {
                message.body.extend_from_slice(&data);
                message.complete = end_stream;
            }),
            Output::Trailers {
                stream,
                direction,
                trailers,
            } => self.received(worker, stream, direction, |message| {
                message.trailers = Some(trailers);
                message.complete = true;
            }),
            Output::ResetUpstream(stream) => {
                self.note(worker, stream, |record| record.upstream_reset = true)
            }
            Output::ResetDownstream(stream) => {
                self.note(worker, stream, |record| record.reset = true)
            }
            Output::Ended(stream) => self.note(worker, stream, |record| record.over = true),
            Output::HttpCallout(call) => self.called(worker, call),
            Output::GrpcCallout(call) => {
                let sent: Vec<_> = call.message.clone().into_iter().collect();
                let ended = call.message.is_some();
                self.grpc_calls
                    .insert((worker, call.id), (call, sent, ended));
            }
            Output::GrpcSend {
                callout,
                message,
                end_stream,
            } => {
                if let Some((_, sent, ended)) = self.grpc_calls.get_mut(&(worker, callout)) {
                    sent.extend(message);
                    *ended |= end_stream;
                }
            }
            Output::CalloutCancelled(id) => {
                self.forget_callout(worker, id);
                self.grpc_calls.remove(&(worker, id));
            }
        }
    }

    fn called(&mut self, worker: usize, call: HttpCallout) {
        if let Some(serve) = self.clusters.get_mut(&call.cluster) {
            let Response {
                headers,
                body,
                trailers,
            } = serve(&callout::message(&call));
            let outcome = CalloutOutcome::Answered {
                headers,
                body,
                trailers,
            };
            self.workers_mut()[worker].callout_answered(call.id, outcome);
            return;
        }
        self.made += 1;
        self.callouts.insert(self.made, (worker, call));
    }

    fn received(
        &mut self,
        worker: usize,
        id: StreamId,
        direction: Direction,
        write: impl FnOnce(&mut Message),
    ) {
        let Some(record) = self.records.get_mut(&(worker, id)) else {
            return;
        };
        let message = match direction {
            Direction::Request => record.request.get_or_insert_default(),
            Direction::Response => record.response.get_or_insert_default(),
        };
        write(message);
        let whole_request = direction == Direction::Request && message.complete;
        if let Some(serve) = self.upstream.as_mut().filter(|_| whole_request) {
            let response = serve(message);
            respond(&mut self.topology.workers_mut()[worker], id, response);
        }
    }

    fn forget_callout(&mut self, worker: usize, id: CalloutId) {
        self.callouts
            .retain(|_, (made_by, call)| (*made_by, call.id) != (worker, id));
    }

    fn note(&mut self, worker: usize, id: StreamId, write: impl FnOnce(&mut Record)) {
        if let Some(record) = self.records.get_mut(&(worker, id)) {
            write(record);
        }
    }
}

fn respond(worker: &mut Worker, id: StreamId, response: Response) {
    let Response {
        headers,
        body,
        trailers,
    } = response;
    let ends = body.is_empty() && trailers.is_empty();
    worker.response_headers(id, headers, ends);
    if !body.is_empty() {
        worker.response_data(id, body, trailers.is_empty());
    }
    if !trailers.is_empty() {
        worker.response_trailers(id, trailers);
    }
}
