//! Real sockets in front of upstreams: the same module with the same configuration as in an Envoy, and the same traffic.
//!
//! [`Proxy::start`] starts a thread for each worker, with a VM of its own for each plugin, and one more for the VMs of the main
//! thread, which tick and never get a stream. All worker threads accept on the same sockets. What a guest sees and answers is the
//! core's matter ([`Worker`](crate::Worker)); what happens around it is here: HTTP/1.1 and HTTP/2 on both sides, TLS, routes, what
//! Envoy's connection manager does to headers, pools of connections, callouts, and an admin interface under Envoy's paths.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use host_sim::proxy::{Cluster, HttpOptions, Listener, Proxy, Route, RouteAction, RouteMatcher, Settings, VirtualHost};
//! use host_sim::{Host, Metadata, Module, Plugin, StreamLimits};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings {
//!     workers: 2,
//!     listeners: vec![Listener {
//!         name: "ingress".to_owned(),
//!         address: "127.0.0.1:8080".parse()?,
//!         stat_prefix: "ingress".to_owned(),
//!         limits: StreamLimits::default(),
//!         plugin: Some(Plugin::new(Module::from_file("filter.wasm")?)),
//!         tls: None,
//!         http: HttpOptions::default(),
//!         virtual_hosts: vec![VirtualHost {
//!             name: "all".to_owned(),
//!             domains: vec!["*".to_owned()],
//!             request_headers_to_remove: Vec::new(),
//!             routes: vec![Route {
//!                 name: String::new(),
//!                 metadata: Metadata::default(),
//!                 matcher: RouteMatcher::Prefix("/".to_owned()),
//!                 headers: Vec::new(),
//!                 action: RouteAction::Forward { cluster: "service".to_owned(), upgrades: None },
//!                 timeout: Some(Duration::from_secs(15)),
//!                 request_headers_to_remove: Vec::new(),
//!             }],
//!         }],
//!         access_log: None,
//!     }],
//!     clusters: vec![Cluster::new("service", ["127.0.0.1:9000".to_owned()])],
//!     admin: None,
//! };
//! let proxy = Proxy::start(Host::real(|line| eprintln!("{}", line.message)), settings)?;
//! proxy.quit_signal().wait();
//! proxy.stop(Duration::from_secs(5));
//! # Ok(()) }
//! ```
//!
//! # Where it differs from Envoy
//!
//! Seen side by side with Envoy 1.40:
//!
//! | what | here | why |
//! | --- | --- | --- |
//! | a malformed HTTP/2 request (no path, a forbidden header, a control byte) | that stream is reset, or the connection ends with `GOAWAY` | the library for HTTP/2 refuses it before anyone sees it; Envoy closes the connection without a word |
//! | `#` in the `:path` of HTTP/2 | cut off with what follows | the library's type for targets has no fragment; Envoy answers 400 |
//! | `"`, `<`, `>`, `^` and the like in the `:path` of HTTP/2 | that stream is reset | that type does not take them; Envoy does, as both do over HTTP/1.1 |
//! | `*` as the `:path` of HTTP/2, or no `:authority` | 404, 400 | Envoy closes the connection |
//! | pseudo-headers of HTTP/2 | always `:method`, `:scheme`, `:authority`, `:path` | the library does not keep their order |
//! | other header names between the values of a repeated one, over HTTP/2 | the values of a name stand together | the library groups them |
//! | an idle HTTP/2 connection | stays open | `idle_timeout` holds for HTTP/1.1 and for upstreams |
//! | rare types in the subject of a certificate | as numbers | those that subjects have are known by name; Envoy's library has some hundred more |
//! | `CONNECT` that a filter lets through | 501 | a tunnel shows a filter nothing but bytes |
//! | WebSocket over HTTP/2 | its stream is reset | extended `CONNECT` is not offered, as in Envoy unless it is configured |
//! | what a client sends behind the head of an upgrade | goes on at once | Envoy waits for the 101 first |
//! | an upstream that answers an upgrade with something else than 101 | its body reaches the client | Envoy cuts it off |
//! | one VM for plugins with equal `vm_id`, code and configuration | a VM for each listener | a guest can tell only by its own statics |
//! | a client that leaves while its body waits, with more than 256 KiB unread | noticed when the body goes on | a socket shows its end only behind what was not read |
//! | the request to an upstream of a client whose body breaks the framing at once | may not be sent at all | Envoy connects before it reads on |
//! | a tab in the request line; bytes behind the end of a chunk | 400 | RFC 9112 forbids both; Envoy passes over them |
//! | several names in one map of a route's metadata, when a filter reads the map whole | in the order of the alphabet | protobuf keeps no order |
//! | `upstream.*` properties | there once the connection is | Envoy knows them as soon as it picks a pooled connection |
//! | why the codec refuses a request, in `proxy_on_log` | `response.code_details` goes by the status alone | Envoy tells some rules apart: `http.invalid_authority`, `http1.unexpected_underscore`, `http1.too_many_headers` |
//! | an HTTP/2 request that is reset before the filter | no context is made for it | Envoy makes one for `proxy_on_log`, as both do over HTTP/1.1 |
//! | a request whose body or trailers are refused while the filter has it | to the filter its client has left | Envoy shows the filter its own 400 or 431 |
//! | bytes on a TLS port that are neither TLS nor the begin of a usual HTTP/1.1 request | the alert `decode_error` | Envoy's library sends `protocol_version` |
//! | the access log | with the operators of [`AccessLogFormat`] | others are refused when the configuration is read |
//! | filters behind the guest | only those that let a direct response go on slowly and end with trailers ([`Pace`](crate::Pace)) | they make no difference to a request |
//! | the pieces of such a response | one each 50 ms | Envoy's timers are some milliseconds late, and its pieces as much larger |
//! | health checks, retries, circuit breakers | none | nothing sends twice, so one decision stays one send |

mod access_log;
mod admin;
mod callout;
mod certificate;
mod cluster;
mod downstream;
mod driver;
mod h1;
mod h2_wire;
mod lane;
mod manager;
mod path;
mod reasons;
mod settings;
mod stats;
mod threads;
mod tls;

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::abi::LogLevel;
use crate::error::LoadError;
use crate::host::{ClusterHealth, Host, LogLine, locked};
use crate::module::Module;
use crate::plugin::Plugin;

pub use access_log::{AccessLogFormat, FormatFault};
pub use settings::{
    Cluster, DirectBody, EscapedSlashes, HeaderMatcher, HttpOptions, Listener, ListenerTls, Route,
    RouteAction, RouteMatcher, Settings, Underscores, UpstreamProtocol, UpstreamTls, VirtualHost,
    WantedHeader,
};
pub use stats::Stats;
pub use tls::TlsFault;

/// A running proxy. Dropping it ends its threads without waiting for requests; [`Proxy::stop`] waits.
#[derive(Debug)]
pub struct Proxy {
    addresses: Vec<(String, SocketAddr)>,
    admin: Option<SocketAddr>,
    stats: Stats,
    quit: QuitSignal,
    stopping: watch::Sender<bool>,
    threads: Vec<threads::Running>,
}

/// Why a proxy does not start. Nothing of it runs then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} for {name}")]
    AddressUnusable {
        /// The listener, or `the admin interface`.
        name: String,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The module cannot be loaded, or refuses its configuration.
    #[error("the plugin of the listener {listener} cannot be used")]
    PluginRefused {
        /// The listener.
        listener: String,
        /// What the module did.
        source: Box<LoadError>,
    },
    /// The system gives no thread, or none that can wait for sockets.
    #[error("cannot start a thread for {name}")]
    NoThread {
        /// What it would have done.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificates or keys cannot be used.
    #[error("TLS of {name} cannot be used")]
    Tls {
        /// The listener or the cluster.
        name: String,
        /// What is wrong.
        source: TlsFault,
    },
}

/// Tells a proxy's owner that it shall stop: from the admin interface, or from a signal handler. Clones are the same signal.
#[derive(Clone, Debug, Default)]
pub struct QuitSignal(Arc<(Mutex<bool>, Condvar)>);

impl QuitSignal {
    /// Asks for the end.
    pub fn request(&self) {
        let (asked, changed) = &*self.0;
        *locked(asked) = true;
        changed.notify_all();
    }

    /// Waits until somebody has asked for the end.
    pub fn wait(&self) {
        let (asked, changed) = &*self.0;
        let not_yet = |asked: &mut bool| !*asked;
        let _asked = changed
            .wait_while(locked(asked), not_yet)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

impl Proxy {
    /// Starts everything: a canary for each plugin, whose configuration has to succeed, then the VMs of the main thread and those
    /// of the workers. When this comes back, all of them are configured and clients are served.
    pub fn start(host: Host, settings: Settings) -> Result<Proxy, StartError> {
        let stats = Stats::new(&host);
        let quit = QuitSignal::default();
        let (stopping, stopped) = watch::channel(false);
        for cluster in &settings.clusters {
            let resolves = |endpoint: &String| {
                endpoint
                    .to_socket_addrs()
                    .is_ok_and(|mut found| found.next().is_some())
            };
            let health = if cluster.endpoints.iter().any(resolves) {
                ClusterHealth::Serving
            } else {
                ClusterHealth::NoHealthyHost
            };
            host.set_cluster(&cluster.name, health);
        }
        let mut served = Vec::new();
        for listener in &settings.listeners {
            served.push(threads::Served::prepare(&host, listener)?);
        }
        let admin = settings
            .admin
            .map(|address| bind("the admin interface", address))
            .transpose()?;
        let addresses: Vec<_> = served
            .iter()
            .map(|served| (served.listener.name.clone(), served.address))
            .collect();
        let common = threads::Common {
            host,
            stats: stats.clone(),
            clusters: settings.clusters.clone(),
            stopping: stopped,
        };
        let mut proxy = Proxy {
            addresses,
            admin: None,
            stats,
            quit,
            stopping,
            threads: Vec::new(),
        };
        for number in 0..=settings.workers.max(1) {
            // One after the other, so that VMs start in Envoy's order: canary, main thread, workers.
            let thread = threads::start(&common, &served, number)?;
            proxy.threads.push(thread);
            if let Some(thread) = proxy.threads.last() {
                thread.wait_until_ready()?;
            }
        }
        if let Some((listener, address)) = admin {
            let view = admin::View::new(&proxy, &settings);
            proxy
                .threads
                .push(admin::start(listener, view, common.stopping.clone())?);
            proxy.admin = Some(address);
        }
        Ok(proxy)
    }

    /// The name of each listener, with the address that it is really bound to.
    pub fn listener_addresses(&self) -> &[(String, SocketAddr)] {
        &self.addresses
    }

    /// The address of the admin interface, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// The statistics, under Envoy's names.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Where the end of this proxy is asked for.
    pub fn quit_signal(&self) -> QuitSignal {
        self.quit.clone()
    }

    /// Accepts no more connections, lets running requests end for at most `grace`, then closes everything.
    pub fn stop(mut self, grace: Duration) {
        let until = Instant::now() + grace;
        self.stopping.send_replace(true);
        for thread in &self.threads {
            thread.end(until);
        }
        for thread in self.threads.drain(..) {
            thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
        for thread in &self.threads {
            thread.end(Instant::now());
        }
    }
}

/// A socket that waits for connections, and the address that it got.
fn bind(name: &str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listen = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    listen().map_err(|source| StartError::AddressUnusable {
        name: name.to_owned(),
        address,
        source,
    })
}

/// A filter that does nothing, for a listener without a plugin: its streams then take the same way as all others.
fn empty_plugin() -> Result<Plugin, LoadError> {
    let module = br#"(module
        (memory (export "memory") 1)
        (func (export "malloc") (param i32) (result i32) i32.const 0)
        (func (export "proxy_abi_version_0_2_1")))"#;
    Module::from_bytes("no filter", module).map(Plugin::new)
}

/// Writes what the access log has to say of a request that is over.
fn access_line(host: &Host, message: String) {
    host.0.log(&LogLine {
        level: LogLevel::Info,
        from_guest: false,
        prefix: ACCESS_LOG.to_owned(),
        message,
    });
}

/// The prefix of the lines that tell of requests, so that whoever writes the log can tell them from others.
const ACCESS_LOG: &str = "access";
