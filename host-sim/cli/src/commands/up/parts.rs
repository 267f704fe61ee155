//! The parts of `up` that run in this process: the plane, and the services behind the gates.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;

use host_sim_ledger::Ledger;
use host_sim_plane::Plane;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::timeout;

use super::STOP_WITHIN;
use super::lanes::{LEDGER_CLUSTER, Lane};
use crate::args::UpArguments;
use crate::commands::ports::{self, Port};
use crate::failure::Failure;
use crate::output;
use crate::stack::serve_upstream;

/// The ports that we serve ourselves. Those of the processes are only known to be free.
pub(super) struct Sockets {
    plane: TcpListener,
    /// The services behind the gates, in the order of their lanes.
    services: Vec<(&'static str, TcpListener)>,
}

impl Sockets {
    /// Takes what we serve, once everything is known to be free.
    pub(super) async fn take(
        arguments: &UpArguments,
        lanes: &[Lane<'_>],
    ) -> Result<Sockets, Failure> {
        // Envoy would share its port with another Envoy without a word, so its ports are tried here first.
        for lane in lanes {
            ports::check_free(&lane.listener).await?;
            ports::check_free(&lane.admin).await?;
        }
        let plane = ports::bind(&plane_port(arguments)).await?;
        let mut services = Vec::new();
        for (cluster, port) in lanes.iter().filter_map(|lane| lane.upstream.as_ref()) {
            services.push((*cluster, ports::bind(port).await?));
        }
        Ok(Sockets { plane, services })
    }
}

/// The plane's port.
pub(super) fn plane_port(arguments: &UpArguments) -> Port {
    Port {
        what: "the plane",
        flag: "--plane-listen",
        address: arguments.plane_listen,
    }
}

/// What runs in this process.
pub(super) struct Parts {
    stop: watch::Sender<bool>,
    running: JoinSet<Result<(), Failure>>,
    names: HashMap<Id, &'static str>,
}

impl Parts {
    /// Starts all of them.
    pub(super) fn start(sockets: Sockets, plane: Plane) -> Parts {
        let mut parts = Parts {
            stop: watch::Sender::new(false),
            running: JoinSet::new(),
            names: HashMap::new(),
        };
        let stop = parts.stopped();
        parts.add("the plane", async move {
            plane.serve(sockets.plane, stop).await
        });
        for (cluster, socket) in sockets.services {
            let stop = parts.stopped();
            if cluster == LEDGER_CLUSTER {
                parts.add("the demo gRPC service", async move {
                    let ledger = Ledger::new();
                    tokio::select! {
                        served = ledger.serve(socket, stop) => served,
                        never = tell_calls(&ledger) => match never {},
                    }
                });
            } else {
                parts.add("the demo upstream", async move {
                    let received = |request: &_| output::data(request);
                    serve_upstream(socket, received, stop).await
                });
            }
        }
        parts
    }

    fn add<E: Error + 'static>(
        &mut self,
        name: &'static str,
        part: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let part = async { part.await.map_err(|error| Failure::internal(&error)) };
        let id = self.running.spawn(part).id();
        self.names.insert(id, name);
    }

    /// Ends when the parts are to stop.
    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stopped = self.stop.subscribe();
        async move {
            // An error means that the sender is gone, which is a reason to stop as well.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    }

    /// Waits until one of them ends, which nobody asked for.
    pub(super) async fn ended_by_itself(&mut self) -> Failure {
        let (id, reason) = match self.running.join_next_with_id().await {
            Some(Ok((id, Ok(())))) => (id, "it ended without a reason".to_owned()),
            Some(Ok((id, Err(failure)))) => (id, failure.to_string()),
            Some(Err(error)) => (error.id(), error.to_string()),
            // There is always the plane.
            None => return Failure::ours("nothing runs in this process"),
        };
        let name = self.names.get(&id).copied().unwrap_or("a part");
        Failure::ours(format_args!("{name} stopped: {reason}"))
    }

    /// Lets calls in flight finish for a moment, then ends all.
    pub(super) async fn stop(mut self) {
        let _ = self.stop.send(true);
        let ended = async { while self.running.join_next().await.is_some() {} };
        // What is left is aborted with the set.
        let _ = timeout(STOP_WITHIN, ended).await;
    }
}

/// Tells each call that reaches the ledger, as the upstream's requests are told.
async fn tell_calls(ledger: &Ledger) -> Infallible {
    let mut told = 0;
    loop {
        let call = ledger.wait_for(|call| call.number > told).await;
        told = call.number;
        let method = call.path.trim_start_matches('/');
        let method = output::printable(method);
        output::data(format_args!("ledger received call {told}: {method}"));
    }
}
