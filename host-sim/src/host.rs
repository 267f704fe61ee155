//! What all VMs of one Envoy process share: clusters, shared data, queues, metrics, the clock and the log.

mod metrics;
mod queues;
mod shared_data;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::LogLevel;
use crate::clock::Clock;

pub(crate) use metrics::MetricIds;
pub use metrics::{Metric, Metrics};
pub(crate) use queues::{Inbox, Queues};
pub(crate) use shared_data::SharedData;

/// One simulated Envoy process, without its VMs. Clones are the same process.
#[derive(Clone)]
pub struct Host(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) data: Mutex<SharedData>,
    pub(crate) queues: Mutex<Queues>,
    pub(crate) metrics: Mutex<Metrics>,
    clusters: Mutex<BTreeMap<String, ClusterHealth>>,
    node: Mutex<NodeInfo>,
    log: Box<dyn Fn(&LogLine) + Send + Sync>,
    log_level: AtomicU32,
    random: Random,
}

/// Who this process is: what a filter reads under `xds.node`. Source: `envoy.config.core.v3.Node`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeInfo {
    /// `--service-node` or `node.id`
    pub id: String,
    /// `--service-cluster` or `node.cluster`
    pub cluster: String,
    /// `node.locality.region`
    pub region: String,
    /// `node.metadata`, as far as its values are text.
    pub metadata: Vec<(String, String)>,
}

/// Whether a callout to a cluster can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterHealth {
    /// It has an endpoint to try. The callout starts, whatever comes of it.
    Serving,
    /// It has no healthy endpoint: the hostcall answers `InternalFailure` and no callback follows.
    NoHealthyHost,
}

/// A line that a guest logged, or that the host logged about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How grave it is.
    pub level: LogLevel,
    /// Whether it came from a guest; otherwise it is the host's own.
    pub from_guest: bool,
    /// Name, root id and VM id, as Envoy writes them in front of a guest's line.
    pub prefix: String,
    /// The text.
    pub message: String,
}

/// Where random bytes come from.
#[derive(Debug)]
enum Random {
    /// The same bytes in each run.
    Seeded(AtomicU64),
    /// The system's.
    System,
}

impl Host {
    /// A host for tests: the clock stands still, random bytes are the same in each run.
    pub fn deterministic(clock: Clock, log: impl Fn(&LogLine) + Send + Sync + 'static) -> Host {
        Host::new(clock, Random::Seeded(AtomicU64::new(SEED)), Box::new(log))
    }

    /// A host for real traffic: the machine's clock, the system's randomness.
    pub fn real(log: impl Fn(&LogLine) + Send + Sync + 'static) -> Host {
        Host::new(Clock::real(), Random::System, Box::new(log))
    }

    fn new(clock: Clock, random: Random, log: Box<dyn Fn(&LogLine) + Send + Sync>) -> Host {
        Host(Arc::new(Shared {
            clock,
            data: Mutex::default(),
            queues: Mutex::default(),
            metrics: Mutex::default(),
            clusters: Mutex::default(),
            node: Mutex::default(),
            log,
            log_level: AtomicU32::new(LogLevel::Trace as u32),
            random,
        }))
    }

    /// The clock of this host.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Makes a cluster known, or changes whether it can be called.
    pub fn set_cluster(&self, name: &str, health: ClusterHealth) {
        locked(&self.0.clusters).insert(name.to_owned(), health);
    }

    /// Says who this process is.
    pub fn set_node(&self, node: NodeInfo) {
        *locked(&self.0.node) = node;
    }

    /// The metrics that guests have defined, by name.
    pub fn metrics(&self) -> Metrics {
        locked(&self.0.metrics).clone()
    }

    /// The value that guests share under `key` in the namespace `vm_id`.
    pub fn shared_data(&self, vm_id: &str, key: &str) -> Option<Vec<u8>> {
        locked(&self.0.data).value(vm_id, key.as_bytes())
    }

    /// Writes a shared value as another VM would; a filter that was about to write it loses its compare-and-swap.
    pub fn set_shared_data(&self, vm_id: &str, key: &str, value: &[u8]) {
        locked(&self.0.data).overwrite(vm_id, key.as_bytes(), value);
    }

    /// Lines of guests below `level` are dropped, and `proxy_get_log_level` tells it.
    pub fn set_log_level(&self, level: LogLevel) {
        self.0.log_level.store(level as u32, Ordering::Relaxed);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn cluster(&self, name: &str) -> Option<ClusterHealth> {
        locked(&self.clusters).get(name).copied()
    }

    pub(crate) fn node(&self) -> NodeInfo {
        locked(&self.node).clone()
    }

    pub(crate) fn log_level(&self) -> LogLevel {
        LogLevel::from_number(self.log_level.load(Ordering::Relaxed)).unwrap_or(LogLevel::Trace)
    }

    pub(crate) fn log(&self, line: &LogLine) {
        if line.level >= self.log_level() {
            (self.log)(line);
        }
    }

    /// Fills `bytes`; `false` where the system has no randomness to give.
    pub(crate) fn fill_random(&self, bytes: &mut [u8]) -> bool {
        match &self.random {
            Random::System => getrandom::fill(bytes).is_ok(),
            Random::Seeded(state) => {
                for byte in bytes {
                    let mut next = state.load(Ordering::Relaxed);
                    next ^= next << 13;
                    next ^= next >> 7;
                    next ^= next << 17;
                    state.store(next, Ordering::Relaxed);
                    *byte = next.to_le_bytes()[3];
                }
                true
            }
        }
    }
}

/// Locks also after another thread has panicked: what is behind these locks is whole after each statement.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
