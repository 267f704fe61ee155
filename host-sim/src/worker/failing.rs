//! What a crashed VM means for the streams it had and for those that come: the plugin's failure policy.

use super::{Arc, Called, Filter, LoadError, LogLevel, LogLine, StreamId, Worker, add_root, vm};
use crate::plugin::FailurePolicy;

impl Worker {
    /// A context for a new stream, or what stands in for it.
    pub(super) fn new_filter(&mut self, id: StreamId) -> Filter {
        if self.vm.state().failure.is_some() {
            return match self.plugin.failure_policy {
                FailurePolicy::FailOpen => Filter::Bypassed,
                FailurePolicy::FailClosed | FailurePolicy::FailReload => Filter::Dead,
            };
        }
        let root = self.root;
        let state = self.vm.state_mut();
        let context = state.take_context_id();
        state.contexts.insert(context, id);
        let created = self.vm.call(
            |exports| &exports.on_context_create,
            context,
            (context, root),
        );
        match self.after(created) {
            Called::Failed => Filter::Dead,
            Called::Absent | Called::Returned(()) => Filter::Active(context),
        }
    }

    /// The VM has just failed: none of its contexts is called any more, and what it waited for is dropped.
    pub(super) fn notice_failure(&mut self) {
        if self.failed_at.is_some() {
            return;
        }
        self.failed_at = Some(self.host.clock().now());
        let state = self.vm.state_mut();
        state.contexts.clear();
        for stream in state.streams.values_mut() {
            if matches!(stream.filter, Filter::Active(_)) {
                stream.filter = Filter::Dead;
            }
        }
    }

    /// Starts a new VM when the policy says so and the back-off is over.
    pub(super) fn reload_if_due(&mut self) {
        let Some(failed_at) = self.failed_at else {
            return;
        };
        let waited = self.host.clock().now().since(failed_at);
        let reload = self.plugin.failure_policy == FailurePolicy::FailReload;
        if !reload || waited < self.plugin.reload_backoff {
            return;
        }
        if let Err(error) = self.reload() {
            self.failed_at = Some(self.host.clock().now());
            self.host.0.log(&LogLine {
                level: LogLevel::Error,
                from_guest: false,
                prefix: String::new(),
                message: format!("wasm vm cannot be reloaded: {error}"),
            });
        }
    }

    fn reload(&mut self) -> Result<(), LoadError> {
        let plugin = Arc::clone(&self.plugin);
        let mut vm = vm::start(&self.host, &plugin)?;
        if self.recording {
            vm.state_mut().trace.record();
        }
        let root = add_root(&mut vm, &plugin)?;
        let old = self.vm.state_mut();
        let (streams, outbox) = (
            std::mem::take(&mut old.streams),
            std::mem::take(&mut old.outbox),
        );
        let state = vm.state_mut();
        state.streams.extend(streams);
        let mut outbox = outbox;
        outbox.append(&mut state.outbox);
        state.outbox = outbox;
        self.past_vms += 1;
        state.callouts.vm = self.past_vms;
        self.vm = vm;
        self.root = root;
        self.failed_at = None;
        self.run_deferred();
        Ok(())
    }
}
