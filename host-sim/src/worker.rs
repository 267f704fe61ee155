//! One VM with its streams, sans-IO: what happened goes in as method calls, what shall be done comes out as [`Output`]s, and time
//! is the host's clock.
//!
//! The driver calls a method, then takes outputs until there are none. It asks [`Worker::next_deadline`] when to come back, and
//! then calls [`Worker::run_timers`].

mod callouts;
mod failing;
mod filter_chain;
mod local_replies;
mod pacing;
#[cfg(feature = "proxy")]
mod refused;
mod timers;

use std::sync::Arc;

use bytes::Bytes;

use crate::abi::{Direction, LogLevel};
use crate::clock::Moment;
use crate::error::{GuestFailure, LoadError};
use crate::header_map::HeaderMap;
use crate::host::{Host, LogLine};
#[cfg(feature = "proxy")]
use crate::metadata::Metadata;
use crate::output::Output;
use crate::plugin::Plugin;
use crate::stream::{
    Filter, Half, LocalReply, Stream, StreamId, StreamInfo, StreamLimits, UpstreamInfo,
    asks_for_grpc,
};
use crate::trace::Trace;
use crate::vm::{self, Called, Deferred, Root, Vm};

#[cfg(feature = "proxy")]
pub(crate) use refused::RefusedRequest;

/// One thread of the host: its VM, and the streams that it serves.
pub struct Worker {
    host: Host,
    plugin: Arc<Plugin>,
    limits: StreamLimits,
    vm: Vm,
    /// The root context that new streams belong to.
    root: u32,
    /// Set when the VM has failed.
    failed_at: Option<Moment>,
    /// How many VMs there were before this one.
    past_vms: u32,
    last_stream: u64,
    recording: bool,
    /// The stream whose filter is running, and the reply that it has asked for meanwhile. It is sent when the callback is over; a
    /// second one is ignored.
    prepared: Option<(StreamId, Option<LocalReply>)>,
    /// The 413 for a body that the filter sees one more time.
    too_large: Option<LocalReply>,
    /// Is shown each stream that is over, with the time that it took.
    #[cfg(feature = "proxy")]
    at_end: Option<AtEnd>,
}

#[cfg(feature = "proxy")]
type AtEnd = Box<dyn Fn(&Stream, std::time::Duration)>;

/// Why an upstream gives no answer, or no whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamFailure {
    /// No connection could be made. The request did not run.
    ConnectionFailed {
        /// What the system said, in Envoy's words.
        reason: String,
    },
    /// Making a connection took longer than it may. The request did not run.
    ConnectionTimedOut,
    /// The connection ended before or during the answer. The request may have run.
    Disconnected,
    /// Its answer breaks the rules of HTTP, or ended in the middle. The request may have run.
    ProtocolError,
    /// The upstream reset the stream. The request may have run.
    Reset,
}

impl Worker {
    /// Starts a VM and configures it.
    pub fn start(
        host: &Host,
        plugin: &Arc<Plugin>,
        limits: StreamLimits,
    ) -> Result<Worker, LoadError> {
        Worker::start_recording(host, plugin, limits, false)
    }

    pub(crate) fn start_recording(
        host: &Host,
        plugin: &Arc<Plugin>,
        limits: StreamLimits,
        recording: bool,
    ) -> Result<Worker, LoadError> {
        let mut vm = vm::start(host, plugin)?;
        if recording {
            vm.state_mut().trace.record();
        }
        let root = add_root(&mut vm, plugin)?;
        let mut worker = Worker {
            host: host.clone(),
            plugin: plugin.clone(),
            limits,
            vm,
            root,
            failed_at: None,
            past_vms: 0,
            last_stream: 0,
            recording,
            prepared: None,
            too_large: None,
            #[cfg(feature = "proxy")]
            at_end: None,
        };
        worker.run_deferred();
        Ok(worker)
    }

    /// Shows `at_end` each stream that is over, behind the guest's own log, with the time that it took.
    #[cfg(feature = "proxy")]
    pub(crate) fn at_end(&mut self, at_end: impl Fn(&Stream, std::time::Duration) + 'static) {
        self.at_end = Some(Box::new(at_end));
    }

    /// The next thing to do outside, if there is one.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.vm.state_mut().outbox.pop_front()
    }

    /// Opens a stream with the headers of a request, pseudo-headers included.
    pub fn open(&mut self, info: StreamInfo, headers: HeaderMap, end_stream: bool) -> StreamId {
        self.open_with_limits(info, self.limits, headers, end_stream)
    }

    /// Opens a stream whose limits are not those of the worker: on HTTP/2 the stream's window is its buffer limit, and a route has
    /// its own time-out.
    pub fn open_with_limits(
        &mut self,
        info: StreamInfo,
        limits: StreamLimits,
        headers: HeaderMap,
        end_stream: bool,
    ) -> StreamId {
        self.reload_if_due();
        let id = self.add_stream(info, limits);
        if let Some(stream) = self.stream_mut(id) {
            stream.grpc = asks_for_grpc(&headers);
            stream.head = headers.first(":method") == Some(b"HEAD".as_slice());
        }
        let filter = self.new_filter(id);
        if let Some(stream) = self.stream_mut(id) {
            stream.filter = filter;
        }
        self.receive_headers(id, Direction::Request, headers, end_stream);
        id
    }

    /// A stream of which nothing has come in.
    fn add_stream(&mut self, info: StreamInfo, limits: StreamLimits) -> StreamId {
        self.last_stream += 1;
        let id = StreamId(self.last_stream);
        let now = self.host.clock().now();
        let stream = Stream {
            filter: Filter::Dead,
            root: self.root,
            info,
            limits,
            request: Half::default(),
            response: Half::default(),
            started: now,
            started_wall_nanoseconds: self.host.clock().wall_nanoseconds(),
            grpc: false,
            head: false,
            answered_locally: false,
            closes_connection: false,
            failed: false,
            logging: false,
            over: false,
            sent_at: None,
            backend_latency: None,
            attempts: 0,
            upstream: None,
            code: None,
            details: None,
            flags: 0,
            own_properties: std::collections::BTreeMap::new(),
            pace: None,
            paced: None,
            idle_deadline: limits.idle_timeout.map(|timeout| now.after(timeout)),
            request_deadline: limits.request_timeout.map(|timeout| now.after(timeout)),
            route_deadline: None,
        };
        self.vm.state_mut().streams.insert(id, stream);
        id
    }

    /// Takes bytes of a request's body. Bytes for a stream that is over are dropped.
    pub fn request_data(&mut self, id: StreamId, data: Bytes, end_stream: bool) {
        self.receive_data(id, Direction::Request, data, end_stream);
    }

    /// Takes the trailers of a request, which end it.
    pub fn request_trailers(&mut self, id: StreamId, trailers: HeaderMap) {
        self.receive_trailers(id, Direction::Request, trailers);
    }

    /// The client has left, or has reset the stream.
    pub fn client_gone(&mut self, id: StreamId) {
        if let Some(stream) = self.live(id) {
            stream.flags |= flags::DOWNSTREAM_CONNECTION_TERMINATION;
            stream
                .details
                .get_or_insert_with(|| "downstream_remote_disconnect".to_owned());
        }
        self.finish(id);
    }

    /// The router has made these of the request's headers. They are what logs show from now on.
    #[cfg(feature = "proxy")]
    pub(crate) fn request_routed(&mut self, id: StreamId, headers: HeaderMap) {
        if let Some(stream) = self.live(id) {
            stream.request.headers = Some(headers);
        }
    }

    /// The request has left the filter and takes this route, which the filter reads about from now on.
    #[cfg(feature = "proxy")]
    pub(crate) fn rerouted(
        &mut self,
        id: StreamId,
        cluster: &str,
        route: &str,
        metadata: &Metadata,
    ) {
        if let Some(stream) = self.live(id) {
            cluster.clone_into(&mut stream.info.cluster);
            route.clone_into(&mut stream.info.route);
            stream.info.route_metadata = Some(metadata.clone());
        }
    }

    /// A stream that is not over.
    #[cfg(feature = "proxy")]
    pub(crate) fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.vm.state().streams.get(&id)
    }

    /// The request goes to the upstream on this connection.
    pub fn upstream_connected(&mut self, id: StreamId, upstream: UpstreamInfo) {
        if let Some(stream) = self.live(id) {
            stream.upstream = Some(upstream);
        }
    }

    /// The upstream has answered.
    pub fn response_headers(&mut self, id: StreamId, headers: HeaderMap, end_stream: bool) {
        let Some(stream) = self.awaits_upstream(id) else {
            return;
        };
        stream.details = Some("via_upstream".to_owned());
        stream.code = headers
            .text(":status")
            .and_then(|status| status.parse().ok());
        self.receive_headers(id, Direction::Response, headers, end_stream);
    }

    /// Takes bytes of the upstream's answer.
    pub fn response_data(&mut self, id: StreamId, data: Bytes, end_stream: bool) {
        if self.awaits_upstream(id).is_some() {
            self.receive_data(id, Direction::Response, data, end_stream);
        }
    }

    /// Takes the trailers of the upstream's answer, which end it.
    pub fn response_trailers(&mut self, id: StreamId, trailers: HeaderMap) {
        if self.awaits_upstream(id).is_some() {
            self.receive_trailers(id, Direction::Response, trailers);
        }
    }

    /// The upstream cannot answer any more.
    pub fn upstream_failed(&mut self, id: StreamId, failure: &UpstreamFailure) {
        if self.awaits_upstream(id).is_none() {
            return;
        }
        let reply = local_replies::of_upstream_failure(failure);
        self.reply(id, reply);
    }

    /// The route leads to no upstream: the host answers itself, as Envoy's router does. `details` is what `response.code_details`
    /// shows.
    pub fn answer_locally(&mut self, id: StreamId, status: u16, body: &str, details: &str) {
        if let Some(stream) = self.awaits_upstream(id) {
            stream.attempts = 0;
            self.reply(id, LocalReply::of_envoy(status.into(), body, details));
        }
    }

    /// Whether more of a body is wanted; where not, the sender has to wait.
    pub fn wants_data(&self, id: StreamId, direction: Direction) -> bool {
        let Some(stream) = self.vm.state().streams.get(&id) else {
            return true;
        };
        let limit = stream.limits.buffer_limit_bytes;
        let half = stream.half(direction);
        let waiting = half.buffer.as_ref().map_or(0, Vec::len);
        !half.watermarked || waiting <= limit
    }

    /// Takes a new configuration, as an update of the listener does: new streams get it, older ones end with theirs.
    pub fn reconfigure(&mut self, plugin: &Arc<Plugin>) -> Result<(), LoadError> {
        let root = add_root(&mut self.vm, plugin)?;
        let old = std::mem::replace(&mut self.root, root);
        self.plugin = plugin.clone();
        self.run_deferred();
        self.end_root_if_unused(old);
        Ok(())
    }

    /// The host ends: the guest's root contexts are told, as Envoy does when it is stopped. Streams that are still open are not.
    pub fn shut_down(&mut self) {
        let roots: Vec<u32> = self.vm.state().roots.keys().copied().collect();
        for root in roots {
            self.end_root(root);
        }
    }

    /// The guest's trap, if its VM has failed and no new one was started.
    pub fn failure(&self) -> Option<&GuestFailure> {
        self.vm.state().failure.as_ref()
    }

    /// Bytes of memory that the guest has now. It never gives any back.
    pub fn memory_bytes(&self) -> usize {
        self.vm.memory_bytes()
    }

    /// How the ABI was used by this VM.
    pub fn trace(&self) -> &Trace {
        &self.vm.state().trace
    }

    /// Lets the guest trap when `callback` is called next, instead of running it.
    pub fn trap_in(&mut self, callback: &str) {
        self.vm.state_mut().trap_in = Some(callback.to_owned());
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> usize {
        self.vm.state().streams.len()
    }

    /// Lets `wake` be called, from any thread, when a queue of this VM has a message. Call [`Worker::run_queues`] then.
    pub fn on_queue_message(&self, wake: impl Fn() + Send + 'static) {
        self.vm.state().inbox.on_message(wake);
    }

    /// Tells the guest of the messages that have come in.
    pub fn run_queues(&mut self) {
        while let Some((context, queue)) = self.vm.state().inbox.take() {
            if self.vm.state().roots.contains_key(&context) {
                let called =
                    self.vm
                        .call(|exports| &exports.on_queue_ready, context, (context, queue));
                self.after(called);
            }
        }
    }

    /// The stream, unless it is over.
    fn live(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.stream_mut(id).filter(|stream| !stream.over)
    }

    /// The stream, as long as the upstream's answer is wanted.
    fn awaits_upstream(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.live(id).filter(|stream| !stream.answered_locally)
    }

    fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.vm.state_mut().streams.get_mut(&id)
    }

    fn send(&mut self, output: Output) {
        self.vm.state_mut().outbox.push_back(output);
    }

    /// What is due after each callback: a failed VM is noticed, and what the guest has asked for happens.
    fn after<R>(&mut self, called: Called<R>) -> Called<R> {
        if matches!(called, Called::Failed) {
            self.notice_failure();
        }
        self.run_deferred();
        called
    }

    fn run_deferred(&mut self) {
        while let Some(deferred) = self.vm.state_mut().deferred.pop_front() {
            match deferred {
                Deferred::Continue(id, direction) => self.resume(id, direction),
                Deferred::Close(id, direction) => self.close(id, direction),
                Deferred::GrpcFailed(token) => self.grpc_failed(token),
                Deferred::LocalReply(id, reply) => match &mut self.prepared {
                    Some((running, prepared)) if *running == id => {
                        prepared.get_or_insert(reply);
                    }
                    _ => self.reply(id, reply),
                },
                Deferred::Done(root) => self.delete_root(root),
            }
        }
    }

    /// Ends one way of a stream at the guest's wish. Either way, the stream is over.
    fn close(&mut self, id: StreamId, _direction: Direction) {
        if let Some(stream) = self.live(id) {
            stream
                .details
                .get_or_insert_with(|| "wasm_close_stream".to_owned());
            self.send(Output::ResetDownstream(id));
            self.finish(id);
        }
    }

    /// Ends a stream: the guest logs, then forgets it. Nothing is sent for it any more.
    fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.live(id) else {
            return;
        };
        stream.over = true;
        let upstream_is_busy = stream.request.headers_continued
            && !stream.answered_locally
            && !(stream.request.sent_complete && stream.response.complete);
        let (context, root) = (stream.context(), stream.root);
        if upstream_is_busy {
            self.send(Output::ResetUpstream(id));
        }
        if let Some(context) = context {
            self.delete_stream_context(id, context);
        }
        #[cfg(feature = "proxy")]
        if let (Some(at_end), Some(stream)) = (&self.at_end, self.vm.state().streams.get(&id)) {
            at_end(stream, self.host.clock().now().since(stream.started));
        }
        self.vm.state_mut().streams.remove(&id);
        self.send(Output::Ended(id));
        if root != self.root {
            self.end_root_if_unused(root);
        }
    }

    /// Envoy's order: log, done, delete.
    fn delete_stream_context(&mut self, id: StreamId, context: u32) {
        if let Some(stream) = self.stream_mut(id) {
            stream.logging = true;
        }
        let called = self.vm.call(|exports| &exports.on_log, context, (context,));
        self.after(called);
        if let Some(stream) = self.stream_mut(id) {
            stream.logging = false;
            for half in [&mut stream.request, &mut stream.response] {
                half.headers_visible = false;
                half.trailers_visible = false;
                half.body_view = crate::stream::BodyView::Hidden;
            }
        }
        let called = self
            .vm
            .call(|exports| &exports.on_done, context, (context,));
        self.after(called);
        let called = self
            .vm
            .call(|exports| &exports.on_delete, context, (context,));
        self.after(called);
        self.vm.state_mut().contexts.remove(&context);
        if let Some(stream) = self.stream_mut(id) {
            stream.filter = Filter::Deleted;
        }
    }

    /// A root context that a newer configuration has replaced ends with its last stream.
    fn end_root_if_unused(&mut self, root: u32) {
        let streams = &mut self.vm.state_mut().streams;
        if !streams.values().any(|stream| stream.root == root) {
            self.end_root(root);
        }
    }

    /// Asks a root context to end. One that answers false stays until it says that it is done.
    fn end_root(&mut self, root: u32) {
        let Some(entry) = self.vm.state_mut().roots.get_mut(&root) else {
            return;
        };
        if entry.lingering {
            return;
        }
        entry.lingering = true;
        entry.next_tick = None;
        let called = self.vm.call(|exports| &exports.on_done, root, (root,));
        let finished = !matches!(called, Called::Returned(0));
        self.after(called);
        if finished {
            self.delete_root(root);
        }
    }

    fn delete_root(&mut self, root: u32) {
        let called = self.vm.call(|exports| &exports.on_delete, root, (root,));
        self.after(called);
        self.vm.state_mut().roots.remove(&root);
    }
}

/// Makes a root context for `plugin` and configures it.
fn add_root(vm: &mut Vm, plugin: &Arc<Plugin>) -> Result<u32, LoadError> {
    let state = vm.state_mut();
    let root = state.take_context_id();
    let entry = Root {
        plugin: plugin.clone(),
        tick_period: std::time::Duration::ZERO,
        next_tick: None,
        lingering: false,
    };
    state.roots.insert(root, entry);
    let created = vm.call(|exports| &exports.on_context_create, root, (root, 0));
    fail_on_trap(vm, plugin, created)?;
    let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (vm_size, size) = (size(&plugin.vm_configuration), size(&plugin.configuration));
    let started = vm.call(|exports| &exports.on_vm_start, root, (root, vm_size));
    accepted(vm, plugin, "proxy_on_vm_start", started)?;
    let configured = vm.call(|exports| &exports.on_configure, root, (root, size));
    accepted(vm, plugin, "proxy_on_configure", configured)?;
    Ok(root)
}

fn accepted(
    vm: &Vm,
    plugin: &Plugin,
    callback: &'static str,
    called: Called<u32>,
) -> Result<(), LoadError> {
    fail_on_trap(vm, plugin, called)?;
    if matches!(called, Called::Returned(0)) {
        return Err(LoadError::ConfigurationRefused {
            module: plugin.module.name().to_owned(),
            callback,
            said: vm.state().said.clone(),
        });
    }
    Ok(())
}

fn fail_on_trap<R>(vm: &Vm, plugin: &Plugin, called: Called<R>) -> Result<(), LoadError> {
    match (&vm.state().failure, called) {
        (Some(failure), Called::Failed) => Err(LoadError::StartFailed {
            module: plugin.module.name().to_owned(),
            failure: failure.clone(),
        }),
        _ => Ok(()),
    }
}

/// Bits of `response.flags`. Source: `CoreResponseFlag` in Envoy's `envoy/stream_info/stream_info.h`.
pub(crate) mod flags {
    pub(crate) const UPSTREAM_REQUEST_TIMEOUT: u64 = 1 << 2;
    pub(crate) const UPSTREAM_REMOTE_RESET: u64 = 1 << 4;
    pub(crate) const UPSTREAM_CONNECTION_FAILURE: u64 = 1 << 5;
    pub(crate) const UPSTREAM_CONNECTION_TERMINATION: u64 = 1 << 6;
    pub(crate) const DOWNSTREAM_CONNECTION_TERMINATION: u64 = 1 << 14;
    pub(crate) const STREAM_IDLE_TIMEOUT: u64 = 1 << 16;
    #[cfg(feature = "proxy")]
    pub(crate) const DOWNSTREAM_PROTOCOL_ERROR: u64 = 1 << 18;
    pub(crate) const UPSTREAM_PROTOCOL_ERROR: u64 = 1 << 23;
}
