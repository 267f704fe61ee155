//! The signals that ask a running command to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Ctrl-C, SIGTERM and a closed terminal, listened for from the moment that this is made.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl StopSignals {
    /// Starts to listen, so that from now on none of the three ends the process by itself.
    pub(super) fn listen() -> Result<StopSignals, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::ours(format_args!("cannot listen for signals: {error}")))
        };
        Ok(StopSignals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Completes when one of them has come.
    pub(super) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
