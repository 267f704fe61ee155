//! The processes with the gate, one for each lane: started together, awaited together, and ended together once one of them ends.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use host_sim_plane::Plane;

use super::settings::Settings;
use crate::failure::Failure;
use crate::stack::{EnvoyError, EnvoyLaunch, EnvoyProcess};

/// Envoys, or simulators. Dropping them kills the processes.
pub(super) struct Envoys(Vec<EnvoyProcess>);

impl Envoys {
    /// Starts one on each bootstrap. If one cannot be started, those before it are killed.
    pub(super) fn spawn(settings: &Settings, plane: &Plane) -> Result<Envoys, Failure> {
        let mut envoys = Envoys(Vec::new());
        for (directory, bootstrap) in &settings.bootstraps {
            let token = plane.sidecar_token().expose().to_owned();
            let launch = EnvoyLaunch {
                binary: settings.program.binary.clone(),
                leading_arguments: settings.program.leading_arguments.clone(),
                exec_child: std::env::current_exe().ok(),
                directory: directory.clone(),
                environment: vec![("HOOP_SIDECAR_TOKEN".to_owned(), token)],
                concurrency: None,
                arguments: Vec::new(),
                log_level: "info".to_owned(),
            };
            envoys.0.push(EnvoyProcess::spawn(&launch, bootstrap)?);
        }
        Ok(envoys)
    }

    /// Waits until all are ready. Fails as soon as one of them cannot be.
    pub(super) async fn wait_until_ready(&mut self, within: Duration) -> Result<(), EnvoyError> {
        let waits = self
            .0
            .iter_mut()
            .map(|envoy| envoy.wait_until_ready(within));
        let mut waits: Vec<_> = waits.map(Box::pin).collect();
        poll_fn(|context| {
            let mut failed = None;
            waits.retain_mut(|wait| match wait.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(error)) => {
                    failed.get_or_insert(error);
                    false
                }
            });
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if waits.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Waits until one of them ends by itself, which nobody asked for.
    pub(super) async fn died_by_itself(&mut self) -> EnvoyError {
        let deaths = self.0.iter_mut().map(EnvoyProcess::died_by_itself);
        let mut deaths: Vec<_> = deaths.map(Box::pin).collect();
        poll_fn(|context| {
            let ended = deaths
                .iter_mut()
                .find_map(|death| match death.as_mut().poll(context) {
                    Poll::Ready(error) => Some(error),
                    Poll::Pending => None,
                });
            ended.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Ends all of them; the first that could not be ended is told.
    pub(super) async fn stop(self) -> Result<(), EnvoyError> {
        let mut outcome = Ok(());
        for envoy in self.0 {
            let stopped = envoy.stop().await;
            outcome = outcome.and(stopped);
        }
        outcome
    }
}
