//! A proxy between a client and an upstream of the test, and the guests that run in it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use host_sim::proxy::{
    Cluster, HttpOptions, Listener, Proxy, Route, RouteAction, RouteMatcher, Settings, Underscores,
    VirtualHost,
};
use host_sim::{Host, Metadata, Module, Plugin, StreamLimits};

/// A guest around `body`, with the memory and the exports that every guest has.
pub fn guest(body: &str) -> Plugin {
    let module = format!(
        r#"(module
            (import "env" "proxy_send_local_response" (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
            (import "env" "proxy_http_call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
            (import "env" "proxy_continue_stream" (func $continue (param i32) (result i32)))
            (import "env" "proxy_set_effective_context" (func $act_for (param i32) (result i32)))
            (import "env" "proxy_log" (func $write (param i32 i32 i32) (result i32)))
            (import "env" "proxy_get_property" (func $property (param i32 i32 i32 i32) (result i32)))
            (import "env" "proxy_get_header_map_value" (func $header (param i32 i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 64)
            (global $heap (mut i32) (i32.const 65536))
            (global $context (mut i32) (i32.const 0))
            (func (export "malloc") (param i32) (result i32)
                global.get $heap
                (global.set $heap (i32.add (global.get $heap) (local.get 0))))
            (func (export "proxy_abi_version_0_2_1"))
            (func (export "proxy_on_context_create") (param i32 i32) (global.set $heap (i32.const 65536)))
            {body})"#
    );
    Plugin::new(Module::from_bytes("guest", module.as_bytes()).expect("the guest is a module"))
}

pub fn holding_guest() -> Plugin {
    guest(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) i32.const 1)"#,
    )
}

pub fn refusing_guest() -> Plugin {
    guest(
        r#"(data (i32.const 16) "no")
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (drop (call $reply (i32.const 403) (i32.const 0) (i32.const 0) (i32.const 16) (i32.const 2)
                (i32.const 0) (i32.const 0) (i32.const -1)))
            i32.const 1)"#,
    )
}

/// Asks the cluster `plane` and lets the request go on when it has answered.
pub fn asking_guest() -> Plugin {
    let pairs = [
        (":method", "POST"),
        (":path", "/ask"),
        (":authority", "plane.example"),
    ];
    let mut bytes = u32::try_from(pairs.len())
        .expect("few")
        .to_le_bytes()
        .to_vec();
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
    }
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    let length = bytes.len();
    let escaped: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    guest(&format!(
        r#"(data (i32.const 16) "plane")
        (data (i32.const 32) "hello")
        (data (i32.const 64) "{escaped}")
        (func (export "proxy_on_request_headers") (param $c i32) (param i32 i32) (result i32)
            (global.set $context (local.get $c))
            (drop (call $call (i32.const 16) (i32.const 5) (i32.const 64) (i32.const {length}) (i32.const 32) (i32.const 5)
                (i32.const 0) (i32.const 0) (i32.const 2000) (i32.const 8)))
            i32.const 1)
        (func (export "proxy_on_http_call_response") (param i32 i32 i32 i32 i32)
            (drop (call $act_for (global.get $context)))
            (drop (call $continue (i32.const 0))))"#
    ))
}

/// A server that hands over each request as it came, and answers what it is told to.
pub struct Upstream {
    pub address: SocketAddr,
    requests: Receiver<String>,
}

impl Upstream {
    pub fn answering(answer: &'static str) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || serve(stream, answer, &sender));
            }
        });
        Upstream { address, requests }
    }

    pub fn request(&self) -> String {
        self.requests
            .recv_timeout(PATIENCE)
            .expect("the upstream was asked")
    }
}

fn serve(mut stream: TcpStream, answer: &str, requests: &Sender<String>) {
    while let Some(request) = read_message(&mut stream) {
        let _test_is_over = requests.send(request);
        if answer.is_empty() || stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A head, and the body that it announces.
pub fn read_message(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0u8; 64 * 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next()?.parse::<usize>().ok());
            let chunked =
                lower.contains("transfer-encoding: chunked") && lower.contains("http/1.1");
            let whole = if chunked {
                body.ends_with("0\r\n\r\n") || body.contains("\r\n0\r\n")
            } else {
                body.len() >= length.unwrap_or(0)
            };
            if whole {
                return Some(text);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

pub struct Scene {
    pub proxy: Proxy,
    pub address: SocketAddr,
}

pub fn settings(upstream: SocketAddr, plugin: Option<Plugin>) -> Settings {
    let listener = Listener {
        name: "ingress".to_owned(),
        address: "127.0.0.1:0".parse().expect("an address"),
        stat_prefix: "ingress".to_owned(),
        limits: StreamLimits {
            route_timeout: None,
            ..StreamLimits::default()
        },
        plugin,
        tls: None,
        http: HttpOptions {
            underscores: Underscores::RejectRequest,
            use_remote_address: true,
            ..HttpOptions::default()
        },
        virtual_hosts: vec![VirtualHost {
            name: "all".to_owned(),
            domains: vec!["*".to_owned()],
            request_headers_to_remove: vec!["x-original-url".to_owned()],
            routes: vec![Route {
                timeout: None,
                name: String::new(),
                metadata: Metadata::default(),
                matcher: RouteMatcher::Prefix("/".to_owned()),
                headers: Vec::new(),
                action: RouteAction::Forward {
                    cluster: "service".to_owned(),
                    upgrades: None,
                },
                request_headers_to_remove: Vec::new(),
            }],
        }],
        access_log: None,
    };
    Settings {
        workers: 2,
        listeners: vec![listener],
        clusters: vec![
            Cluster::new("service", [upstream.to_string()]),
            Cluster::new("plane", [upstream.to_string()]),
        ],
        admin: Some("127.0.0.1:0".parse().expect("an address")),
    }
}

impl Scene {
    pub fn start(settings: Settings) -> Scene {
        let proxy = Proxy::start(Host::real(|_| {}), settings).expect("the proxy starts");
        let address = proxy.listener_addresses()[0].1;
        Scene { proxy, address }
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Sends bytes on a connection of their own and reads one answer.
    pub fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        read_message(&mut stream).expect("an answer")
    }

    /// The same twice on one connection.
    pub fn ask_twice(&self, request: &str) -> [String; 2] {
        let mut stream = self.connect();
        [(); 2].map(|()| {
            stream.write_all(request.as_bytes()).expect("sent");
            read_message(&mut stream).expect("an answer")
        })
    }

    pub fn wait_for(&self, stat: &str, value: u64) {
        let start = Instant::now();
        while self.proxy.stats().value(stat) != value {
            assert!(
                start.elapsed() < PATIENCE,
                "{stat} is {} and not {value}",
                self.proxy.stats().value(stat)
            );
            std::thread::yield_now();
        }
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// The lines of a head without those that differ each time.
pub fn lines(message: &str) -> Vec<&str> {
    let changing = [
        "date: ",
        "x-request-id: ",
        "x-envoy-upstream-service-time: ",
        "x-forwarded-for: ",
    ];
    let head = message.split("\r\n\r\n").next().unwrap_or_default();
    head.split("\r\n")
        .filter(|line| !changing.iter().any(|name| line.starts_with(name)))
        .collect()
}

pub const PATIENCE: Duration = Duration::from_secs(20);
pub const GET: &str = "GET /x HTTP/1.1\r\nhost: a.b\r\n\r\n";
pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
