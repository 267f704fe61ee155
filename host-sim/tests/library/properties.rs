//! Properties: which path can be read in which callback, and how a value is packed. Measured on Envoy 1.40.

use std::net::SocketAddr;

use host_sim::sim::{Request, Response, Sim};
use host_sim::{Certificate, Metadata, MetadataValue, Plugin, Protocol, StreamInfo};

use crate::guest::{Guest, ask, for_context, get, property, property_number, text, tick};
use crate::scene::{STREAM_CALLBACKS, assert_lines, built, ok, said, said_since, start};

/// A whole exchange whose guest asks for `path` in one callback.
fn answer(callback: &'static str, ask: &str) -> String {
    let guest = Guest::new().on("configure", [tick(10)]).on(
        callback,
        [if callback == "tick" {
            ask.to_owned()
        } else {
            for_context(2, [ask.to_owned()])
        }],
    );
    let sim = start(guest);
    let before = said(&sim).len();
    exchange(&sim);
    let found = said_since(&sim, before);
    found
        .first()
        .cloned()
        .unwrap_or_else(|| panic!("{callback} was not called"))
}

fn exchange(sim: &Sim) {
    sim.advance(std::time::Duration::from_millis(10));
    let request = Request::post("/path?a=b")
        .header("x-one", "1")
        .header("user-agent", "me")
        .body("one");
    let stream = sim.request(request.trailer("x-rt", "1"));
    stream.respond(ok("up").header("x-up", "1").trailer("x-trailer", "t"));
}

/// Where a path has a value; in all other callbacks it is not found.
#[track_caller]
fn assert_found(path: &str, value: &str, callbacks: &[&str]) {
    let outside = ["tick", "context_create"];
    for callback in outside.into_iter().chain(STREAM_CALLBACKS) {
        let expected = if callbacks.contains(&callback) {
            format!("{path} = 0 {value}")
        } else {
            format!("{path} = 1")
        };
        assert_eq!(answer(callback, &property(path)), expected, "in {callback}");
    }
}

const WITH_REQUEST_HEADERS: [&str; 2] = ["request_headers", "log"];

#[test]
fn what_comes_from_request_headers_is_there_while_they_are() {
    for (path, value) in [
        ("request.path", "/path?a=b"),
        ("request.headers.X-One", "1"),
    ] {
        assert_found(path, value, &WITH_REQUEST_HEADERS);
    }
    let more = [
        ("request.url_path", "/path"),
        ("request.query", "a=b"),
        ("request.host", "example.test"),
        ("request.scheme", "http"),
        ("request.method", "POST"),
        ("request.useragent", "me"),
        ("request.headers.:path", "/path?a=b"),
    ];
    for (path, value) in more {
        assert_eq!(
            answer("request_headers", &property(path)),
            format!("{path} = 0 {value}")
        );
        assert_eq!(
            answer("request_body", &property(path)),
            format!("{path} = 1")
        );
    }
    assert_eq!(
        answer("request_headers", &property("request.referer")),
        "request.referer = 1"
    );
}

#[test]
fn what_comes_from_the_response_is_there_from_its_headers_on() {
    let since = [
        "response_headers",
        "response_body",
        "response_trailers",
        "log",
        "done",
        "delete",
    ];
    assert_found("response.code_details", "via_upstream", &since);
    assert_found("response.headers.x-up", "1", &["response_headers", "log"]);
    assert_found(
        "response.trailers.x-trailer",
        "t",
        &["response_trailers", "log"],
    );
    assert_eq!(
        answer("log", &property_number("response.code")),
        "response.code = 0 200"
    );
    assert_eq!(
        answer("request_headers", &property_number("response.code")),
        "response.code = 1"
    );
}

#[test]
fn the_grpc_status_is_the_response_s_own_or_that_of_its_http_status() {
    let cases = [
        (ok("up"), 2),
        (Response::new(403), 7),
        (ok("up").header("grpc-status", "5"), 5),
        (ok("up").trailer("grpc-status", "9"), 9),
    ];
    for (response, expected) in cases {
        let sim = start(Guest::new().on("log", [property_number("response.grpc_status")]));
        sim.request(Request::get("/")).respond(response);
        assert_lines(
            &said(&sim),
            &[&format!("response.grpc_status = 0 {expected}")],
        );
    }
}

#[test]
fn sizes_grow_with_what_has_come_in() {
    let cases = [
        ("context_create", 0),
        ("request_headers", 0),
        ("request_body", 3),
        ("log", 3),
    ];
    for (callback, size) in cases {
        let found = answer(callback, &property_number("request.size"));
        assert_eq!(found, format!("request.size = 0 {size}"), "in {callback}");
    }
    for (callback, size) in [
        ("response_headers", 0),
        ("response_body", 0),
        ("response_trailers", 2),
        ("log", 2),
    ] {
        let found = answer(callback, &property_number("response.size"));
        assert_eq!(found, format!("response.size = 0 {size}"), "in {callback}");
    }
}

#[test]
fn what_belongs_to_the_plugin_is_there_everywhere() {
    let guest = || {
        let steps = || ["plugin_name", "plugin_root_id", "plugin_vm_id"].map(property);
        Guest::new()
            .on("vm_start", steps())
            .on("request_headers", steps())
            .on("delete", [for_context(2, steps())])
    };
    let plugin = Plugin::new(guest().module())
        .name("gate")
        .root_id("root")
        .vm_id("vm");
    let sim = built(plugin);
    let expected = [
        "plugin_name = 0 gate",
        "plugin_root_id = 0 root",
        "plugin_vm_id = 0 vm",
    ];
    assert_lines(&said(&sim)[..3], &expected);
    let before = said(&sim).len();
    sim.request(Request::get("/")).respond(ok("up"));
    assert_lines(&said_since(&sim, before), &[expected, expected].concat());
}

#[test]
fn what_belongs_to_the_connection_is_there_for_each_stream() {
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let info = StreamInfo {
        source: address("10.1.2.3:4567"),
        destination: address("10.0.0.1:443"),
        protocol: Protocol::Http2,
        connection_id: 77,
        peer_certificate: Some(Certificate {
            subject: "CN=client".to_owned(),
            uri_san: "spiffe://team/client".to_owned(),
            dns_san: String::new(),
            sha256_digest: "1f".repeat(32),
        }),
        local_certificate: Some(Certificate {
            subject: "CN=gate".to_owned(),
            ..Certificate::default()
        }),
        tls_version: "TLSv1.3".to_owned(),
        server_name: "api.example".to_owned(),
        cluster: "orders".to_owned(),
        route: "main".to_owned(),
        route_metadata: Some(Metadata::default()),
        virtual_host: "shop".to_owned(),
    };
    let texts = [
        ("source.address", "0 10.1.2.3:4567"),
        ("destination.address", "0 10.0.0.1:443"),
        ("request.protocol", "0 HTTP/2"),
        ("connection.requested_server_name", "0 api.example"),
        ("connection.mtls", "0 \u{1}"),
        ("connection.subject_peer_certificate", "0 CN=client"),
        (
            "connection.uri_san_peer_certificate",
            "0 spiffe://team/client",
        ),
        (
            "connection.sha256_peer_certificate_digest",
            "0 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
        ),
        ("connection.subject_local_certificate", "0 CN=gate"),
        ("connection.tls_version", "0 TLSv1.3"),
        ("xds.cluster_name", "0 orders"),
        ("xds.route_name", "0 main"),
        ("xds.virtual_host_name", "0 shop"),
        ("cluster_name", "1"),
        ("route_name", "1"),
        ("node", "1"),
        ("connection.unknown", "1"),
    ];
    let numbers = [
        ("source.port", "0 4567"),
        ("destination.port", "0 443"),
        ("connection.id", "0 77"),
        ("connection_id", "0 77"),
        ("xds.listener_direction", "0 0"),
    ];
    let steps = texts
        .map(|(path, _)| property(path))
        .into_iter()
        .chain(numbers.map(|(path, _)| property_number(path)));
    let sim = start(Guest::new().on("request_headers", steps));
    sim.request(Request::get("/").from(info));
    let expected: Vec<_> = texts
        .iter()
        .chain(&numbers)
        .map(|(path, value)| format!("{path} = {value}"))
        .collect();
    assert_eq!(said(&sim), expected);
}

#[test]
fn the_metadata_of_the_route_are_there_down_to_each_value() {
    let word = |text: &str| MetadataValue::Text(text.to_owned());
    let values = [
        ("tier", word("gold")),
        ("yes", MetadataValue::Bool(true)),
        ("nothing", MetadataValue::Null),
        ("list", MetadataValue::List(vec![word("a"), word("b")])),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value));
    let group = values.into_iter().collect();
    let metadata = Metadata([("service".to_owned(), group)].into());
    let under = |path: &str| format!("xds.route_metadata.filter_metadata.{path}");
    let wanted = [
        (under("service.tier"), "0 gold"),
        (under("service.yes"), "0 \u{1}"),
        (under("service.nothing"), "3"),
        (under("service.list.1"), "0 b"),
        (under("service.list.2"), "1"),
        (under("service.tier.more"), "1"),
        (under("service.Tier"), "1"),
        (under("service"), "3"),
        (under("other.tier"), "1"),
        ("xds.route_metadata.other".to_owned(), "1"),
        ("xds.route_name".to_owned(), "0 main"),
    ];
    let expected = wanted
        .iter()
        .map(|(path, value)| format!("{path} = {value}"));
    let expected: Vec<_> = expected.collect();
    let steps = || wanted.iter().map(|(path, _)| property(path));
    let sim = start(Guest::new().on("request_headers", steps()));
    sim.request(Request::get("/").from(StreamInfo {
        route: "main".to_owned(),
        route_metadata: Some(metadata),
        ..StreamInfo::default()
    }));
    assert_eq!(said(&sim), expected);

    let sim = start(Guest::new().on("request_headers", steps()));
    sim.request(Request::get("/").from(StreamInfo {
        route_metadata: None,
        ..StreamInfo::default()
    }));
    let expected: Vec<_> = wanted
        .iter()
        .map(|(path, _)| format!("{path} = 1"))
        .collect();
    assert_eq!(said(&sim), expected);
}

#[test]
fn a_path_that_ends_before_a_value_cannot_be_serialised() {
    for path in [
        "request",
        "response",
        "source",
        "connection",
        "upstream",
        "filter_state",
    ] {
        assert_eq!(
            answer("request_headers", &property(path)),
            format!("{path} = 3")
        );
        assert_eq!(answer("tick", &property(path)), format!("{path} = 1"));
    }
    for path in ["", "xds"] {
        assert_eq!(answer("tick", &property(path)), format!("{path} = 3"));
    }
    assert_eq!(
        answer("request_headers", &property(".request")),
        ".request = 1"
    );
}

#[test]
fn the_time_of_a_request_is_its_start_and_its_duration_is_known_at_the_end() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                property_number("request.time"),
                property_number("request.duration"),
                crate::guest::give(1),
            ],
        )
        .on(
            "log",
            [
                property_number("request.time"),
                property_number("request.duration"),
            ],
        );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    sim.advance(std::time::Duration::from_millis(250));
    stream.disconnect();
    assert_lines(
        &said(&sim),
        &[
            "request.time = 0 1767225600000000000",
            "request.duration = 1",
            "request.time = 0 1767225600000000000",
            "request.duration = 0 250000000",
        ],
    );
}

#[test]
fn a_filter_s_own_property_is_read_back_by_a_name_of_one_part() {
    let set = |path: &str, value: &str| {
        let arguments = format!("{} {}", text(path.replace('.', "\0")), text(value));
        ask(&format!("set {path}"), "set_property", &arguments)
    };
    let guest = Guest::new()
        .on("configure", [set("mine", "v"), property("mine")])
        .on(
            "request_headers",
            [
                set("mine", "v"),
                property("mine"),
                set("mine", ""),
                property("mine"),
                set("mine", "v2"),
                set("my.key", "v"),
                property("my.key"),
                set("request.path", "/x"),
                property("request.path"),
                set("plugin_name", "x"),
                property("plugin_name"),
            ],
        )
        .on("log", [property("mine"), get(0, ":path")]);
    let sim = start(guest);
    assert_lines(&said(&sim)[..2], &["set mine = 1", "mine = 1"]);
    let before = said(&sim).len();
    let first = sim.request(Request::get("/"));
    assert_lines(
        &said_since(&sim, before),
        &[
            "set mine = 0",
            "mine = 0 v",
            "set mine = 0",
            "mine = 0 null",
            "set mine = 0",
            "set my.key = 0",
            "my.key = 1",
            "set request.path = 0",
            "request.path = 0 /",
            "set plugin_name = 0",
            "plugin_name = 0 null",
        ],
    );
    let before = said(&sim).len();
    first.respond(ok("up"));
    assert_lines(
        &said_since(&sim, before),
        &["mine = 0 v2", "get :path = 0 /"],
    );
}

#[test]
fn a_path_that_is_no_text_is_not_found() {
    let ask = crate::guest::ask_bytes("bytes", "get_property", &text([0xff, 0xfe]));
    assert_eq!(answer("request_headers", &ask), "bytes = 1");
}
