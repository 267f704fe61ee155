//! The proxy from outside: bytes in, bytes out, at the client and at the upstream. Each expectation was seen on Envoy 1.40.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use host_sim::proxy::{
    Cluster, HttpOptions, Listener, Proxy, Route, RouteAction, RouteMatcher, Settings, StartError,
    Underscores,
};
use host_sim::{Host, LoadError, Module, Plugin, StreamLimits};

/// A guest around `body`, with the memory and the exports that every guest has.
fn guest(body: &str) -> Plugin {
    let module = format!(
        r#"(module
            (import "env" "proxy_send_local_response" (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
            (import "env" "proxy_http_call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
            (import "env" "proxy_continue_stream" (func $continue (param i32) (result i32)))
            (import "env" "proxy_set_effective_context" (func $act_for (param i32) (result i32)))
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

fn holding_guest() -> Plugin {
    guest(
        r#"(func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) i32.const 1)"#,
    )
}

fn refusing_guest() -> Plugin {
    guest(
        r#"(data (i32.const 16) "no")
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (drop (call $reply (i32.const 403) (i32.const 0) (i32.const 0) (i32.const 16) (i32.const 2)
                (i32.const 0) (i32.const 0) (i32.const -1)))
            i32.const 1)"#,
    )
}

/// Asks the cluster `plane` and lets the request go on when it has answered.
fn asking_guest() -> Plugin {
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
struct Upstream {
    address: SocketAddr,
    requests: Receiver<String>,
}

impl Upstream {
    fn answering(answer: &'static str) -> Upstream {
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

    fn request(&self) -> String {
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
fn read_message(stream: &mut TcpStream) -> Option<String> {
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

struct Scene {
    proxy: Proxy,
    address: SocketAddr,
}

fn settings(upstream: SocketAddr, plugin: Option<Plugin>) -> Settings {
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
        virtual_host: "all".to_owned(),
        request_headers_to_remove: vec!["x-original-url".to_owned()],
        routes: vec![Route {
            timeout: None,
            name: String::new(),
            matcher: RouteMatcher::Prefix("/".to_owned()),
            action: RouteAction::Forward {
                cluster: "service".to_owned(),
                upgrades: None,
            },
            request_headers_to_remove: Vec::new(),
        }],
        access_log: false,
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
    fn start(settings: Settings) -> Scene {
        let proxy = Proxy::start(Host::real(|_| {}), settings).expect("the proxy starts");
        let address = proxy.listener_addresses()[0].1;
        Scene { proxy, address }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Sends bytes on a connection of their own and reads one answer.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        read_message(&mut stream).expect("an answer")
    }

    fn wait_for(&self, stat: &str, value: u64) {
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

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// The lines of a head without those that differ each time.
fn lines(message: &str) -> Vec<&str> {
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

const PATIENCE: Duration = Duration::from_secs(20);
const GET: &str = "GET /x HTTP/1.1\r\nhost: a.b\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn a_request_passes_with_what_envoy_adds_on_both_sides() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let answer = scene.ask("GET /x?q=1 HTTP/1.1\r\nHost: A.b\r\nX-Foo: 1\r\nx-envoy-internal: true\r\nx-original-url: /y\r\nX-FOO: 3\r\n\r\n");
    assert_eq!(
        lines(&answer),
        ["HTTP/1.1 200 OK", "content-length: 2", "server: envoy"]
    );
    assert!(
        answer.contains("\r\nx-envoy-upstream-service-time: ") && answer.ends_with("\r\n\r\nok"),
        "{answer}"
    );
    let request = upstream.request();
    let expected = [
        "GET /x?q=1 HTTP/1.1",
        "host: A.b",
        "x-foo: 1",
        "x-foo: 3",
        "x-forwarded-proto: http",
        "x-envoy-external-address: 127.0.0.1",
    ];
    assert_eq!(lines(&request), expected);
    assert!(request.contains("\r\nx-request-id: "), "{request}");
}

#[test]
fn what_is_no_request_is_refused_with_envoys_status() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let rows = [
        ("BREW /x HTTP/1.1\r\nhost: a\r\n\r\n", 400, "Bad Request"),
        (
            "GET /x HTTP/1.0\r\nhost: a\r\n\r\n",
            426,
            "Upgrade Required",
        ),
        (
            "GET payments HTTP/1.1\r\nhost: a\r\n\r\n",
            400,
            "Bad Request",
        ),
        (
            "GET /x HTTP/1.1\r\nhost: a\r\nx_a: 1\r\n\r\n",
            400,
            "Bad Request",
        ),
        (
            "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi",
            400,
            "Bad Request",
        ),
        (
            "POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
            501,
            "Not Implemented",
        ),
        ("GET /x#y HTTP/1.1\r\nhost: a\r\n\r\n", 400, ""),
        ("GET /x HTTP/1.1\r\n\r\n", 400, ""),
        (
            "GET /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            403,
            "",
        ),
        ("CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n", 404, ""),
    ];
    for (request, status, body) in rows {
        let answer = scene.ask(request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:?}: {answer}"
        );
        assert!(
            answer.contains("\r\nconnection: close\r\n"),
            "{request:?}: {answer}"
        );
        assert!(
            answer.ends_with(&format!("\r\n\r\n{body}")),
            "{request:?}: {answer}"
        );
    }
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let mut stream = scene.connect();
    stream
        .write_all([GET, &GET.replace("/x", "/y")].concat().as_bytes())
        .expect("sent");
    assert!(upstream.request().starts_with("GET /x "));
    assert!(upstream.request().starts_with("GET /y "));
    let mut both = [0u8; 1];
    stream.read_exact(&mut both).expect("answers");
}

#[test]
fn a_filters_own_answer_keeps_the_connection_unless_the_body_is_unread() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, Some(refusing_guest())));
    let expected = [
        "HTTP/1.1 403 Forbidden",
        "content-length: 2",
        "content-type: text/plain",
        "server: envoy",
    ];
    let mut stream = scene.connect();
    for _ in 0..2 {
        stream.write_all(GET.as_bytes()).expect("sent");
        assert_eq!(
            lines(&read_message(&mut stream).expect("an answer")),
            expected
        );
    }
    let answer = scene.ask("POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
}

#[test]
fn a_client_that_leaves_ends_its_held_request() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, Some(holding_guest())));
    for request in [
        GET,
        "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let mut stream = scene.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        scene.wait_for("http.ingress.downstream_rq_active", 1);
        stream.shutdown(Shutdown::Both).expect("left");
        scene.wait_for("http.ingress.downstream_rq_active", 0);
    }
}

#[test]
fn a_callout_goes_out_as_envoy_sends_it_and_its_answer_wakes_the_guest() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, Some(asking_guest())));
    assert!(scene.ask(GET).starts_with("HTTP/1.1 200 OK"));
    let expected = [
        "POST /ask HTTP/1.1",
        "host: plane.example",
        "content-length: 5",
        "x-envoy-internal: true",
        "x-envoy-expected-rq-timeout-ms: 2000",
    ];
    assert_eq!(lines(&upstream.request()), expected);
    assert!(upstream.request().starts_with("GET /x "));
}

#[test]
fn an_upstream_that_cannot_be_reached_is_503_in_envoys_words() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port");
    let scene = Scene::start(settings(nobody, None));
    let answer = scene.ask(GET);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer
            .ends_with("disconnect/reset before headers. reset reason: remote connection failure"),
        "{answer}"
    );
}

#[test]
fn an_upstream_that_hangs_up_or_talks_nonsense_is_told_apart() {
    let silent = Upstream::answering("");
    let answer = Scene::start(settings(silent.address, None)).ask(GET);
    assert!(
        answer.starts_with("HTTP/1.1 503 ")
            && answer.ends_with("reset reason: connection termination"),
        "{answer}"
    );
    let mad = Upstream::answering("garbage\r\n\r\n");
    let answer = Scene::start(settings(mad.address, None)).ask(GET);
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.ends_with("reset reason: protocol error"),
        "{answer}"
    );
}

#[test]
fn a_body_larger_than_every_buffer_streams_through() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let body = "a".repeat(3 << 20);
    let answer = scene.ask(&format!(
        "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(upstream.request().ends_with(&body));
}

#[test]
fn trailers_are_dropped_unless_they_are_enabled() {
    let chunked = "POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-t: 1\r\n\r\n";
    for enabled in [false, true] {
        let upstream = Upstream::answering(OK);
        let mut settings = settings(upstream.address, None);
        settings.listeners[0].http.enable_trailers = enabled;
        settings.clusters[0].enable_trailers = enabled;
        let scene = Scene::start(settings);
        assert!(scene.ask(chunked).starts_with("HTTP/1.1 200 OK"));
        assert_eq!(upstream.request().contains("\r\nx-t: 1\r\n"), enabled);
    }
}

#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let mut stream = scene.connect();
    stream
        .write_all(
            b"POST /x HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n",
        )
        .expect("sent");
    let mut interim = [0u8; 25];
    stream.read_exact(&mut interim).expect("an interim answer");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hi").expect("sent");
    assert!(
        read_message(&mut stream)
            .expect("an answer")
            .starts_with("HTTP/1.1 200 OK")
    );
    assert!(!upstream.request().contains("expect"));
}

#[test]
fn http_2_is_spoken_on_the_same_port() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let status = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(scene.address)
            .await
            .expect("connected");
        let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut sender = sender.ready().await.expect("ready");
        let request = http::Request::post("http://a.b/x")
            .header("cookie", "a=1")
            .header("cookie", "b=2");
        let request = request.body(()).expect("a request");
        let (response, mut body) = sender.send_request(request, false).expect("sent");
        body.send_data("hi".into(), true).expect("sent");
        response.await.expect("an answer").status()
    });
    assert_eq!(status, 200);
    let request = upstream.request();
    assert!(
        request.starts_with("POST /x HTTP/1.1\r\nhost: a.b\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\ncookie: a=1; b=2\r\n") && request.ends_with("2\r\nhi\r\n0\r\n\r\n"),
        "{request}"
    );
}

#[test]
fn a_refused_configuration_starts_nothing() {
    let refusing =
        guest(r#"(func (export "proxy_on_configure") (param i32 i32) (result i32) i32.const 0)"#);
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let error =
        Proxy::start(Host::real(|_| {}), settings(nobody, Some(refusing))).expect_err("refused");
    let StartError::PluginRefused { source, .. } = &error else {
        panic!("{error:?}");
    };
    let refused = matches!(**source, LoadError::ConfigurationRefused { .. });
    assert!(refused, "{error:?}");
}

#[test]
fn the_admin_interface_answers_under_envoys_paths() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let admin = scene.proxy.admin_address().expect("an admin interface");
    let ask = |line: &str| {
        let mut stream = connect(admin);
        stream
            .write_all(
                format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes(),
            )
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    scene.ask(GET);
    assert!(ask("GET /ready").starts_with("HTTP/1.1 200 OK"));
    let listeners = ask("GET /listeners?format=json");
    assert!(
        listeners.contains(&format!(r#""port_value":{}"#, scene.address.port())),
        "{listeners}"
    );
    let stats = ask("GET /stats?filter=^http.ingress.downstream_rq_total$");
    assert!(
        stats.ends_with("\r\n\r\nhttp.ingress.downstream_rq_total: 1\n"),
        "{stats}"
    );
    assert!(ask("GET /stats/prometheus").contains("envoy_http_ingress_downstream_rq_total{} 1\n"));
    for path in [
        "/server_info",
        "/clusters",
        "/config_dump?include_eds",
        "/stats",
    ] {
        assert!(
            ask(&format!("GET {path}")).starts_with("HTTP/1.1 200 OK"),
            "{path}"
        );
    }
    assert!(ask("POST /quitquitquit").ends_with("OK\n"));
    scene.proxy.quit_signal().wait();
    scene.proxy.stop(PATIENCE);
    assert!(TcpStream::connect(scene.address).is_err());
}

#[test]
fn stopping_lets_a_running_request_end() {
    let upstream = Upstream::answering(OK);
    let scene = Scene::start(settings(upstream.address, None));
    let mut stream = scene.connect();
    stream
        .write_all(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nh")
        .expect("sent");
    scene.wait_for("cluster.service.upstream_rq_active", 1);
    let stopping = std::thread::spawn(move || scene.proxy.stop(PATIENCE));
    stream.write_all(b"i").expect("sent");
    let answer = read_message(&mut stream).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    stopping.join().expect("stopped");
}
