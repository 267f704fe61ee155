//! All VMs of one plugin in one thread: a canary, the main thread's VM and the workers, as Envoy makes them.

use std::sync::Arc;

use crate::error::LoadError;
use crate::host::Host;
use crate::plugin::Plugin;
use crate::stream::StreamLimits;
use crate::worker::Worker;

/// The VMs of a plugin.
pub struct Topology {
    host: Host,
    workers: Vec<Worker>,
}

/// Where the main thread's VM stands among [`Topology::workers_mut`]: it ticks like the others and never gets a stream.
pub const MAIN_THREAD: usize = 0;

impl Topology {
    /// Starts a canary, whose configuration has to succeed, then the main thread's VM and `workers` more.
    pub fn start(
        host: &Host,
        plugin: &Arc<Plugin>,
        limits: StreamLimits,
        workers: usize,
        recording: bool,
    ) -> Result<Topology, LoadError> {
        canary(host, plugin, limits)?;
        let start = |_| Worker::start_recording(host, plugin, limits, recording);
        let workers = (0..=workers).map(start).collect::<Result<_, _>>()?;
        Ok(Topology {
            host: host.clone(),
            workers,
        })
    }

    /// The VMs, the main thread's first.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// The VMs, the main thread's first.
    pub fn workers_mut(&mut self) -> &mut [Worker] {
        &mut self.workers
    }

    /// Takes a new configuration in all VMs, unless a canary refuses it: then everything stays as it was.
    pub fn reconfigure(
        &mut self,
        plugin: &Arc<Plugin>,
        limits: StreamLimits,
    ) -> Result<(), LoadError> {
        canary(&self.host, plugin, limits)?;
        for worker in &mut self.workers {
            worker.reconfigure(plugin)?;
        }
        Ok(())
    }
}

/// Envoy tries each configuration in a VM of its own, which then goes away without a word to the guest.
fn canary(host: &Host, plugin: &Arc<Plugin>, limits: StreamLimits) -> Result<(), LoadError> {
    Worker::start(host, plugin, limits).map(drop)
}
