//! Requests over plain sockets: what passes, what is refused, and how both ends see it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use host_sim::proxy::{Proxy, StartError};
use host_sim::{Host, LoadError};

use crate::scene::{
    GET, OK, PATIENCE, Scene, Upstream, asking_guest, connect, guest, holding_guest, lines,
    read_message, refusing_guest, settings,
};

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
