//! The threads of a proxy: one for each worker, and one for the VMs of the main thread.

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::LocalSet;

use super::access_log::Ended;
use super::cluster::Clusters;
use super::downstream::{Server, ServerStats};
use super::driver::Driver;
use super::settings::{self, Listener};
use super::stats::Stats;
use super::{StartError, access_line, bind, empty_plugin, manager, tls};
use crate::host::Host;
use crate::plugin::Plugin;
use crate::worker::Worker;

/// What all threads share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) host: Host,
    pub(super) stats: Stats,
    pub(super) clusters: Vec<settings::Cluster>,
    pub(super) stopping: watch::Receiver<bool>,
}

/// A listener that is ready to be served.
pub(super) struct Served {
    pub(super) listener: Arc<Listener>,
    pub(super) address: SocketAddr,
    socket: TcpListener,
    plugin: Arc<Plugin>,
    tls: Option<tls::Acceptor>,
    connection_ids: Arc<AtomicU64>,
}

/// A thread that was started.
#[derive(Debug)]
pub(super) struct Running {
    ready: Option<mpsc::Receiver<Result<(), StartError>>>,
    end: watch::Sender<Option<Instant>>,
    thread: JoinHandle<()>,
}

impl Served {
    /// Tries the plugin's configuration in a canary, and binds the socket.
    pub(super) fn prepare(host: &Host, listener: &Listener) -> Result<Served, StartError> {
        let refused = |source| StartError::PluginRefused {
            listener: listener.name.clone(),
            source: Box::new(source),
        };
        let plugin = match &listener.plugin {
            Some(plugin) => plugin.clone(),
            None => empty_plugin().map_err(refused)?,
        };
        let plugin = Arc::new(plugin);
        // Envoy tries each configuration in a VM of its own, which then goes away without a word to the guest.
        drop(Worker::start(host, &plugin, listener.limits).map_err(refused)?);
        let tls = listener.tls.as_ref().map(tls::acceptor).transpose();
        let tls = tls.map_err(|source| StartError::Tls {
            name: format!("the listener {}", listener.name),
            source,
        })?;
        let (socket, address) = bind(&format!("the listener {}", listener.name), listener.address)?;
        let listener = Arc::new(listener.clone());
        Ok(Served {
            listener,
            address,
            socket,
            plugin,
            tls,
            connection_ids: Arc::new(AtomicU64::new(0)),
        })
    }
}

impl Running {
    pub(super) fn wait_until_ready(&self) -> Result<(), StartError> {
        let answer = self.ready.as_ref().and_then(|ready| ready.recv().ok());
        answer.unwrap_or(Ok(()))
    }

    /// Lets the thread end: at `until`, or earlier when it has no more to do.
    pub(super) fn end(&self, until: Instant) {
        self.end.send_replace(Some(until));
    }

    pub(super) fn join(self) {
        // A thread that has panicked has said so already.
        let _panicked = self.thread.join();
    }
}

/// Starts thread `number`: 0 is the main thread's, the others serve clients.
pub(super) fn start(
    common: &Common,
    served: &[Served],
    number: usize,
) -> Result<Running, StartError> {
    let main = number == 0;
    let name = if main {
        "main".to_owned()
    } else {
        format!("worker {number}")
    };
    let failed = |source| StartError::NoThread {
        name: name.clone(),
        source,
    };
    let mut listeners = Vec::new();
    for served in served
        .iter()
        .filter(|served| !main || served.listener.plugin.is_some())
    {
        let socket = if main {
            None
        } else {
            Some(served.socket.try_clone().map_err(failed)?)
        };
        listeners.push((
            socket,
            served.listener.clone(),
            served.plugin.clone(),
            served.tls.clone(),
            served.connection_ids.clone(),
        ));
    }
    let common = common.clone();
    spawn(&name, move |runtime, ready, end| {
        let local = LocalSet::new();
        local.block_on(runtime, async move {
            match serve(&common, listeners) {
                Err(error) => tell(&ready, Err(error)),
                Ok(servers) => {
                    tell(&ready, Ok(()));
                    until_end(&servers, common.stopping, end).await;
                }
            }
        });
    })
}

/// Starts a thread with a runtime of its own, which runs `body` until it comes back.
pub(super) fn spawn<F>(name: &str, body: F) -> Result<Running, StartError>
where
    F: FnOnce(&Runtime, mpsc::Sender<Result<(), StartError>>, watch::Receiver<Option<Instant>>)
        + Send
        + 'static,
{
    let failed = |source| StartError::NoThread {
        name: name.to_owned(),
        source,
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let (ready, readiness) = mpsc::channel();
    let (end, ending) = watch::channel(None);
    let builder = std::thread::Builder::new().name(name.to_owned());
    let thread = builder
        .spawn(move || body(&runtime, ready, ending))
        .map_err(failed)?;
    Ok(Running {
        ready: Some(readiness),
        end,
        thread,
    })
}

fn tell(ready: &mpsc::Sender<Result<(), StartError>>, answer: Result<(), StartError>) {
    // Whoever started this thread may have given up because of another one.
    let _nobody_waits = ready.send(answer);
}

type Assigned = (
    Option<TcpListener>,
    Arc<Listener>,
    Arc<Plugin>,
    Option<tls::Acceptor>,
    Arc<AtomicU64>,
);

/// Starts the VMs of this thread, and serves its sockets.
fn serve(common: &Common, listeners: Vec<Assigned>) -> Result<Vec<Rc<Server>>, StartError> {
    let clusters = Clusters::new(&common.clusters, &common.stats);
    let clusters = clusters.map_err(|source| StartError::Tls {
        name: "a cluster".to_owned(),
        source,
    })?;
    let clusters = Rc::new(clusters);
    let mut servers = Vec::new();
    for (socket, listener, plugin, tls, connection_ids) in listeners {
        let worker = Worker::start(&common.host, &plugin, listener.limits);
        let mut worker = worker.map_err(|source| StartError::PluginRefused {
            listener: listener.name.clone(),
            source: Box::new(source),
        })?;
        if let Some(format) = listener.access_log.clone() {
            let host = common.host.clone();
            worker.at_end(move |stream, duration| {
                access_line(&host, format.line(Ended { stream, duration }));
            });
        }
        let driver = Driver::new(&common.host, worker, clusters.clone());
        driver.start();
        let server = Rc::new(Server {
            stats: ServerStats::new(&common.stats, &listener.stat_prefix),
            listener,
            driver,
            tls,
            machine: manager::machine_address(),
            connection_ids,
            stopping: common.stopping.clone(),
            open: std::cell::Cell::new(0),
        });
        if let Some(socket) = socket {
            let socket = tokio::net::TcpListener::from_std(socket);
            let socket = socket.map_err(|source| StartError::NoThread {
                name: server.listener.name.clone(),
                source,
            })?;
            tokio::task::spawn_local(server.clone().accept(socket));
        }
        servers.push(server);
    }
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(IDLE_CHECK).await;
            clusters.close_idle();
        }
    });
    Ok(servers)
}

/// Waits until the proxy stops and this thread has no more connections, or no more time.
async fn until_end(
    servers: &[Rc<Server>],
    mut stopping: watch::Receiver<bool>,
    mut end: watch::Receiver<Option<Instant>>,
) {
    let _the_proxy_is_gone = stopping.wait_for(|stopping| *stopping).await;
    let until = end
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|until| *until);
    let until = until.unwrap_or_else(Instant::now);
    while Instant::now() < until
        && servers
            .iter()
            .any(|server| server.open.get() > 0 || server.driver.open_streams() > 0)
    {
        tokio::time::sleep(END_CHECK).await;
    }
    for server in servers {
        server.driver.tell(Worker::shut_down);
    }
}

/// How often connections that wait too long are looked for.
const IDLE_CHECK: Duration = Duration::from_millis(500);
/// How often a thread that ends looks whether it may.
const END_CHECK: Duration = Duration::from_millis(5);
