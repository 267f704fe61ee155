//! The test driver: a whole host in one thread, whose time, upstream and clusters a test plays by hand.

mod callout;
mod driver;
mod message;
mod request;
mod stream;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::abi::LogLevel;
use crate::clock::Clock;
use crate::error::{GuestFailure, LoadError};
use crate::host::{ClusterHealth, Host, LogLine, Metrics, locked};
use crate::plugin::Plugin;
use crate::stream::StreamLimits;
use crate::topology::{MAIN_THREAD, Topology};
use crate::trace::Trace;

pub use callout::{Callout, GrpcCall};
pub use message::{Message, Response};
pub use request::Request;
pub use stream::Stream;

use driver::Driver;

/// A running simulation of one plugin. Handles that it gives out (streams, callouts) stay usable as long as they are kept.
///
/// ```
/// use host_sim::sim::{Request, Response, Sim};
/// use host_sim::{Module, Plugin};
///
/// # fn main() -> Result<(), host_sim::LoadError> {
/// // A filter that lets everything through.
/// let module = Module::from_bytes("pass", br#"(module
///     (memory (export "memory") 1)
///     (func (export "malloc") (param i32) (result i32) i32.const 64)
///     (func (export "proxy_abi_version_0_2_1"))
///     (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) i32.const 0))"#)?;
/// let sim = Sim::builder(Plugin::new(module)).start()?;
///
/// let stream = sim.request(Request::get("/hello"));
/// assert_eq!(stream.upstream_request().header(":path"), Some("/hello"));
/// stream.respond(Response::new(200).body("world"));
/// assert_eq!(stream.response().text(), "world");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Sim {
    host: Host,
    driver: Rc<RefCell<Driver>>,
    log: Arc<Mutex<Vec<LogLine>>>,
    limits: StreamLimits,
}

/// What a simulation is made of.
#[derive(Debug)]
pub struct SimBuilder {
    plugin: Plugin,
    clusters: Vec<String>,
    workers: usize,
    limits: StreamLimits,
    recording: bool,
    log_level: LogLevel,
}

impl Sim {
    /// A simulation of `plugin` with one worker and no clusters.
    pub fn builder(plugin: Plugin) -> SimBuilder {
        SimBuilder {
            plugin,
            clusters: Vec::new(),
            workers: 1,
            limits: StreamLimits::default(),
            recording: false,
            log_level: LogLevel::Trace,
        }
    }

    /// Sends a request to the first worker. As in Envoy, the filter sees it at once.
    pub fn request(&self, request: Request) -> Stream {
        self.request_on(0, request)
    }

    /// Sends a request to one of the workers, counted from 0.
    ///
    /// # Panics
    ///
    /// When there is no such worker.
    #[track_caller]
    pub fn request_on(&self, worker: usize, request: Request) -> Stream {
        let workers = self.driver.borrow().workers().len() - 1;
        assert!(
            worker < workers,
            "worker {worker} of {workers}, counted from 0"
        );
        Stream::open(&self.driver, MAIN_THREAD + 1 + worker, request)
    }

    /// Lets time pass. Ticks, time-outs of callouts and of streams happen on the way, each at its own moment and in order.
    pub fn advance(&self, duration: Duration) {
        self.driver.borrow_mut().advance(duration);
    }

    /// Lets the wall clock jump without any time passing, as when the system corrects it.
    pub fn jump_wall_clock(&self, seconds: i64) {
        self.host().clock().jump_wall(seconds);
    }

    /// The HTTP callouts that nobody has answered yet, oldest first.
    pub fn callouts(&self) -> Vec<Callout> {
        Callout::waiting(&self.driver)
    }

    /// The one HTTP callout that waits for an answer.
    ///
    /// # Panics
    ///
    /// When none or more than one waits.
    #[track_caller]
    pub fn callout(&self) -> Callout {
        let mut waiting = self.callouts();
        assert_eq!(waiting.len(), 1, "callouts that wait: {waiting:#?}");
        waiting.remove(0)
    }

    /// The gRPC callouts that are open, oldest first.
    pub fn grpc_calls(&self) -> Vec<GrpcCall> {
        GrpcCall::open_ones(&self.driver)
    }

    /// Answers each callout to `cluster` at once from now on.
    pub fn serve_cluster(&self, cluster: &str, answer: impl FnMut(&Message) -> Response + 'static) {
        self.driver
            .borrow_mut()
            .serve_cluster(cluster, Box::new(answer));
    }

    /// Answers each request that reaches the upstream, once it is there as a whole, from now on.
    pub fn serve_upstream(&self, answer: impl FnMut(&Message) -> Response + 'static) {
        self.driver.borrow_mut().serve_upstream(Box::new(answer));
    }

    /// Makes a cluster known, or changes whether it can be called.
    pub fn set_cluster(&self, name: &str, health: ClusterHealth) {
        self.host().set_cluster(name, health);
    }

    /// Gives the plugin a new configuration, as an update of the listener does. When it is refused, the old one stays.
    pub fn reconfigure(&self, configuration: impl Into<Vec<u8>>) -> Result<(), LoadError> {
        self.driver
            .borrow_mut()
            .reconfigure(configuration.into(), self.limits)
    }

    /// What the guest and the host have logged so far.
    pub fn log(&self) -> Vec<LogLine> {
        locked(&self.log).clone()
    }

    /// Whether a line of the log contains `text`.
    pub fn logged(&self, text: &str) -> bool {
        locked(&self.log)
            .iter()
            .any(|line| line.message.contains(text))
    }

    /// The value of a counter or gauge, or how many samples a histogram has; 0 where nobody has defined it.
    pub fn metric(&self, name: &str) -> u64 {
        self.metrics().value(name)
    }

    /// All metrics.
    pub fn metrics(&self) -> Metrics {
        self.host().metrics()
    }

    /// Clock, clusters, shared data and metrics.
    pub fn host(&self) -> Host {
        self.host.clone()
    }

    /// Lets the next `count` compare-and-swap writes of shared data fail, as if another VM had been faster each time.
    pub fn lose_shared_writes(&self, count: u32) {
        locked(&self.host().0.data).lose_writes(count);
    }

    /// Lets the guest on a worker, counted from 0, trap when `callback` (`proxy_on_request_body`, ...) is called next.
    pub fn trap_in(&self, worker: usize, callback: &str) {
        let mut driver = self.driver.borrow_mut();
        driver.workers_mut()[MAIN_THREAD + 1 + worker].trap_in(callback);
    }

    /// How the ABI was used by the VM of a worker, counted from 0. The ordered list is empty unless
    /// [`SimBuilder::record_trace`] was called.
    pub fn trace(&self, worker: usize) -> Trace {
        self.driver.borrow().workers()[MAIN_THREAD + 1 + worker]
            .trace()
            .clone()
    }

    /// How the ABI was used by the main thread's VM.
    pub fn main_thread_trace(&self) -> Trace {
        self.driver.borrow().workers()[MAIN_THREAD].trace().clone()
    }

    /// Bytes of memory that the guest has on a worker, counted from 0.
    pub fn memory_bytes(&self, worker: usize) -> usize {
        self.driver.borrow().workers()[MAIN_THREAD + 1 + worker].memory_bytes()
    }

    /// The trap of a worker's VM, if it has failed and was not replaced.
    pub fn failure(&self, worker: usize) -> Option<GuestFailure> {
        self.driver.borrow().workers()[MAIN_THREAD + 1 + worker]
            .failure()
            .cloned()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sim").finish_non_exhaustive()
    }
}

impl SimBuilder {
    /// Makes a cluster known, with an endpoint to try.
    #[must_use]
    pub fn cluster(mut self, name: &str) -> SimBuilder {
        self.clusters.push(name.to_owned());
        self
    }

    /// So many workers, each with a VM of its own.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> SimBuilder {
        self.workers = workers;
        self
    }

    /// What the connection manager and the route are set to.
    #[must_use]
    pub fn limits(mut self, limits: StreamLimits) -> SimBuilder {
        self.limits = limits;
        self
    }

    /// Keeps every call over the ABI in order, for [`Sim::trace`].
    #[must_use]
    pub fn record_trace(mut self) -> SimBuilder {
        self.recording = true;
        self
    }

    /// Drops lines below `level`.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> SimBuilder {
        self.log_level = level;
        self
    }

    /// Starts all VMs and configures them.
    pub fn start(self) -> Result<Sim, LoadError> {
        let log = Arc::new(Mutex::new(Vec::new()));
        let sink = log.clone();
        let host = Host::deterministic(Clock::virtual_clock(), move |line: &LogLine| {
            locked(&sink).push(line.clone());
        });
        host.set_log_level(self.log_level);
        for cluster in &self.clusters {
            host.set_cluster(cluster, ClusterHealth::Serving);
        }
        let plugin = Arc::new(self.plugin);
        let topology = Topology::start(&host, &plugin, self.limits, self.workers, self.recording)?;
        let driver = Rc::new(RefCell::new(Driver::new(host.clone(), plugin, topology)));
        driver.borrow_mut().pump();
        Ok(Sim {
            host,
            driver,
            log,
            limits: self.limits,
        })
    }
}
