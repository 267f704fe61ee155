//! Routes that answer by themselves: which requests they take, what the answer is made of, and how slowly it goes out.

use std::time::{Duration, Instant};

use host_sim::Pace;
use host_sim::proxy::{
    AccessLogFormat, DirectBody, HeaderMatcher, Route, RouteAction, Settings, WantedHeader,
};

use crate::scene::{OK, Scene, Upstream, lines, settings};

/// A route in front of the one for everything, which takes what has the header `x-stream: 1`.
fn with_route(upstream: &Upstream, body: DirectBody, pace: Option<Pace>) -> Settings {
    let mut settings = settings(upstream.address, None);
    let routes = &mut settings.listeners[0].virtual_hosts[0].routes;
    let route = Route {
        headers: vec![HeaderMatcher {
            name: "x-stream".to_owned(),
            wanted: WantedHeader::Exact("1".to_owned()),
        }],
        action: RouteAction::DirectResponse {
            status: 200,
            body,
            pace,
        },
        ..routes[0].clone()
    };
    routes.insert(0, route);
    settings
}

const CHOSEN: &str = "GET / HTTP/1.1\r\nhost: a\r\nx-stream: 1\r\n\r\n";

#[test]
fn a_header_chooses_the_route_and_one_of_its_values_is_enough() {
    let upstream = Upstream::answering(OK);
    let body = DirectBody::Bytes(b"direct".to_vec());
    let scene = Scene::start(with_route(&upstream, body, None));
    for (headers, expected) in [
        ("x-stream: 1", "direct"),
        ("X-Stream: 2\r\nx-stream: 1", "direct"),
        ("x-stream: 1,1", "ok"),
        ("x-stream: 11", "ok"),
        ("x-other: 1", "ok"),
    ] {
        let answer = scene.ask(&format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n\r\n"));
        assert!(answer.ends_with(&format!("\r\n\r\n{expected}")), "{answer}");
    }
}

#[test]
fn what_no_filter_has_set_is_a_dash_in_a_body() {
    let upstream = Upstream::answering(OK);
    let format = AccessLogFormat::parse("<%FILTER_STATE(wasm.pace:PLAIN)%>").expect("a format");
    let scene = Scene::start(with_route(&upstream, DirectBody::Format(format), None));
    let answer = scene.ask(CHOSEN);
    let expected = [
        "HTTP/1.1 200 OK",
        "content-length: 3",
        "content-type: text/plain",
        "server: envoy",
    ];
    assert_eq!(lines(&answer), expected);
    assert!(answer.ends_with("\r\n\r\n<->"), "{answer}");
}

#[test]
fn a_paced_body_takes_its_time_and_its_connection_stays() {
    let upstream = Upstream::answering(OK);
    let pace = Pace {
        bytes_per_second: 1024,
        ends_with_trailers: true,
    };
    let body = DirectBody::Bytes(vec![b'p'; 256]);
    let scene = Scene::start(with_route(&upstream, body, Some(pace)));
    let began = Instant::now();
    let answers = scene.ask_twice(CHOSEN);
    for answer in answers {
        assert!(answer.ends_with(&"p".repeat(256)), "{answer}");
    }
    // Twice 256 bytes but the slice that is there at once.
    assert!(began.elapsed() >= Duration::from_millis(400));
}
