//! Drives one worker of the core: what happened goes in, and its outputs go to the tasks that own the sockets.
//!
//! Everything here lives on the worker's own thread, so a call into the guest never waits for a lock.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::callout;
use super::cluster::Clusters;
use super::lane::{Lane, Order};
use crate::abi::Direction;
use crate::callout::CalloutId;
use crate::header_map::HeaderMap;
use crate::host::Host;
use crate::output::Output;
use crate::stream::{StreamId, StreamInfo, StreamLimits};
use crate::worker::Worker;

/// A worker with its streams and callouts.
pub(super) struct Driver {
    host: Host,
    worker: RefCell<Worker>,
    lanes: RefCell<BTreeMap<StreamId, Rc<Lanes>>>,
    callouts: RefCell<BTreeMap<CalloutId, Callout>>,
    /// Lanes whose feeder waits for room; each event may have made some.
    crowded: RefCell<Vec<Rc<Lanes>>>,
    timers: Notify,
    pub(super) clusters: Rc<Clusters>,
}

/// The two ways of a stream.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) to_client: Lane,
    pub(super) to_upstream: Lane,
    /// The task that talks with the upstream.
    pub(super) upstream: RefCell<Option<AbortHandle>>,
}

/// A callout that is on its way.
struct Callout {
    task: AbortHandle,
    /// Where further messages of a gRPC stream go.
    messages: Option<Rc<Lane>>,
}

impl Driver {
    pub(super) fn new(host: &Host, worker: Worker, clusters: Rc<Clusters>) -> Rc<Driver> {
        Rc::new(Driver {
            host: host.clone(),
            worker: RefCell::new(worker),
            lanes: RefCell::default(),
            callouts: RefCell::default(),
            crowded: RefCell::default(),
            timers: Notify::new(),
            clusters,
        })
    }

    /// Runs the worker's clock and its queues for as long as the thread lives.
    pub(super) fn start(self: &Rc<Driver>) {
        let messages = Arc::new(Notify::new());
        let wake = messages.clone();
        self.worker
            .borrow()
            .on_queue_message(move || wake.notify_one());
        let driver = self.clone();
        tokio::task::spawn_local(async move {
            loop {
                messages.notified().await;
                driver.tell(Worker::run_queues);
            }
        });
        let driver = self.clone();
        tokio::task::spawn_local(async move { driver.run_timers().await });
        // What the guest did while it was configured.
        self.tell(|_| {});
    }

    async fn run_timers(self: Rc<Driver>) {
        loop {
            let deadline = self.worker.borrow().next_deadline();
            let Some(deadline) = deadline else {
                self.timers.notified().await;
                continue;
            };
            let wait = deadline.since(self.host.clock().now());
            if wait.is_zero() {
                self.tell(Worker::run_timers);
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.timers.notified() => {}
            }
        }
    }

    /// Opens a stream.
    pub(super) fn open(
        self: &Rc<Driver>,
        info: StreamInfo,
        limits: StreamLimits,
        headers: HeaderMap,
        end_stream: bool,
    ) -> (StreamId, Rc<Lanes>) {
        let lanes = Rc::new(Lanes::default());
        let id = self
            .worker
            .borrow_mut()
            .open_with_limits(info, limits, headers, end_stream);
        self.lanes.borrow_mut().insert(id, lanes.clone());
        self.perform();
        (id, lanes)
    }

    /// Tells the worker what happened, and does what it wants done.
    pub(super) fn tell(self: &Rc<Driver>, event: impl FnOnce(&mut Worker)) {
        event(&mut self.worker.borrow_mut());
        self.perform();
    }

    /// Waits until more of a body is wanted, by the filter and by the peer that it goes on to.
    pub(super) async fn room(&self, id: StreamId, direction: Direction, lanes: &Rc<Lanes>) {
        loop {
            let lane = match direction {
                Direction::Request => &lanes.to_upstream,
                Direction::Response => &lanes.to_client,
            };
            if self.worker.borrow().wants_data(id, direction) && !lane.is_full() {
                return;
            }
            self.crowded.borrow_mut().push(lanes.clone());
            lane.room.notified().await;
        }
    }

    fn perform(self: &Rc<Driver>) {
        loop {
            let output = self.worker.borrow_mut().poll_output();
            let Some(output) = output else {
                break;
            };
            self.carry_out(output);
        }
        for lanes in self.crowded.take() {
            lanes.to_client.room.notify_one();
            lanes.to_upstream.room.notify_one();
        }
        self.timers.notify_one();
    }

    fn carry_out(self: &Rc<Driver>, output: Output) {
        match output {
            Output::CalloutCancelled(id) => {
                if let Some(callout) = self.callouts.borrow_mut().remove(&id) {
                    callout.task.abort();
                }
            }
            Output::Ended(id) => {
                if let Some(lanes) = self.lanes.borrow_mut().remove(&id) {
                    lanes.to_client.close();
                    lanes.to_upstream.close();
                }
            }
            Output::HttpCallout(callout) => {
                let id = callout.id;
                let task = tokio::task::spawn_local(callout::run_http(self.clone(), callout))
                    .abort_handle();
                self.callouts.borrow_mut().insert(
                    id,
                    Callout {
                        task,
                        messages: None,
                    },
                );
            }
            Output::GrpcCallout(callout) => {
                let id = callout.id;
                let messages = Rc::new(Lane::default());
                let run = callout::run_grpc(self.clone(), callout, messages.clone());
                let task = tokio::task::spawn_local(run).abort_handle();
                self.callouts.borrow_mut().insert(
                    id,
                    Callout {
                        task,
                        messages: Some(messages),
                    },
                );
            }
            Output::GrpcSend {
                callout,
                message,
                end_stream,
            } => {
                if let Some(lane) = self
                    .callouts
                    .borrow()
                    .get(&callout)
                    .and_then(|callout| callout.messages.clone())
                {
                    let data = message
                        .map(|message| callout::frame(&message))
                        .unwrap_or_default();
                    lane.push(Order::Data { data, end_stream });
                }
            }
            Output::Headers {
                stream,
                direction,
                headers,
                end_stream,
            } => {
                self.send(
                    stream,
                    direction,
                    Order::Headers {
                        headers,
                        end_stream,
                    },
                );
            }
            Output::Data {
                stream,
                direction,
                data,
                end_stream,
            } => {
                self.send(stream, direction, Order::Data { data, end_stream });
            }
            Output::Trailers {
                stream,
                direction,
                trailers,
            } => self.send(stream, direction, Order::Trailers(trailers)),
            Output::ResetUpstream(id) => {
                if let Some(lanes) = self.lanes.borrow().get(&id) {
                    lanes.to_upstream.reset();
                    if let Some(task) = lanes.upstream.take() {
                        task.abort();
                    }
                }
            }
            Output::ResetDownstream(id) => self.send(id, Direction::Response, Order::Reset),
        }
    }

    fn send(&self, id: StreamId, direction: Direction, order: Order) {
        if let Some(lanes) = self.lanes.borrow().get(&id) {
            match direction {
                Direction::Request => lanes.to_upstream.push(order),
                Direction::Response => lanes.to_client.push(order),
            }
        }
    }

    /// A callout's task is over.
    pub(super) fn callout_over(&self, id: CalloutId) {
        self.callouts.borrow_mut().remove(&id);
    }

    /// How many streams are open.
    pub(super) fn open_streams(&self) -> usize {
        self.lanes.borrow().len()
    }
}
