//! Header maps as a filter reads and changes them. Measured on Envoy 1.40.

use host_sim::HeaderMap;
use host_sim::sim::{Message, Request};

use crate::guest::{
    Guest, OUT, OUT_SIZE, REQUEST_HEADERS, REQUEST_TRAILERS, RESPONSE_HEADERS, RESPONSE_TRAILERS,
    add, ask, at_end, count_pairs, get, map_size, pairs, remove, replace, set_pairs, text,
};
use crate::scene::{assert_lines, ok, said, start};

fn in_request(steps: impl IntoIterator<Item = String>, request: Request) -> (Vec<String>, Message) {
    let sim = start(Guest::new().on("request_headers", steps));
    let stream = sim.request(request);
    (said(&sim), stream.upstream_request())
}

fn names(headers: &HeaderMap) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .map(|(name, value)| format!("{}={}", text(name), text(value)))
        .collect()
}

/// Without what Envoy's router adds behind the filter.
fn from_filter(message: &Message) -> Vec<String> {
    let mut names = names(&message.headers);
    names.retain(|entry| !entry.starts_with("x-envoy-"));
    names
}

#[test]
fn a_single_get_shows_the_first_value_only_and_ignores_case() {
    let request = Request::get("/")
        .header("X-Dup", "1")
        .header("x-dup", "2")
        .header("x-empty", "");
    let (said, _) = in_request(
        [
            get(REQUEST_HEADERS, "x-dup"),
            get(REQUEST_HEADERS, "X-DUP"),
            get(REQUEST_HEADERS, "x-empty"),
            get(REQUEST_HEADERS, "x-absent"),
            get(REQUEST_HEADERS, ""),
            get(REQUEST_HEADERS, "host"),
            get(REQUEST_HEADERS, "HOST"),
            count_pairs(REQUEST_HEADERS),
        ],
        request,
    );
    assert_lines(
        &said,
        &[
            "get x-dup = 0 1",
            "get X-DUP = 0 1",
            "get x-empty = 0 null",
            "get x-absent = 1",
            "get  = 1",
            "get host = 0 example.test",
            "get HOST = 0 example.test",
            "pairs = 0 7",
        ],
    );
}

#[test]
fn repeated_headers_that_envoy_keeps_in_one_field_are_joined() {
    let joined = [
        "accept",
        "authorization",
        "content-type",
        "user-agent",
        "x-forwarded-for",
        "via",
        "te",
        "origin",
    ];
    let apart = [
        "cookie",
        "x-own",
        "accept-language",
        "forwarded",
        "set-cookie",
    ];
    let repeated = |name| Request::get("/").header(name, "one").header(name, "two");
    for name in joined {
        let (said, upstream) = in_request([get(REQUEST_HEADERS, name)], repeated(name));
        assert_lines(&said, &[&format!("get {name} = 0 one,two")]);
        assert_eq!(upstream.header(name), Some("one,two"));
    }
    for name in apart {
        let (said, upstream) = in_request([get(REQUEST_HEADERS, name)], repeated(name));
        assert_lines(&said, &[&format!("get {name} = 0 one")]);
        assert_eq!(upstream.headers.all(name).count(), 2);
    }
}

/// Which names are joined differs between requests and responses.
#[test]
fn a_second_add_joins_the_names_of_its_own_direction() {
    let twice = |map, name: &str| [add(map, name, "one"), add(map, name, "two"), get(map, name)];
    let request = [
        ("accept", "one,two"),
        ("grpc-timeout", "one,two"),
        ("location", "one"),
        ("x-own", "one"),
    ];
    for (name, expected) in request {
        let (said, _) = in_request(twice(REQUEST_HEADERS, name), Request::get("/"));
        assert_eq!(said.last(), Some(&format!("get {name} = 0 {expected}")));
    }
    let response = [
        ("location", "one,two"),
        ("grpc-status", "one,two"),
        ("vary", "one,two"),
        ("accept", "one"),
        ("set-cookie", "one"),
    ];
    for (name, expected) in response {
        let sim = start(Guest::new().on("response_headers", twice(RESPONSE_HEADERS, name)));
        sim.request(Request::get("/")).respond(ok(""));
        assert_eq!(
            said(&sim).last(),
            Some(&format!("get {name} = 0 {expected}"))
        );
    }
}

#[test]
fn host_is_another_name_for_authority() {
    let cases = [
        (
            add(REQUEST_HEADERS, "host", "new"),
            Some("example.test,new"),
        ),
        (replace(REQUEST_HEADERS, "Host", "new"), Some("new")),
        (remove(REQUEST_HEADERS, "host"), None),
    ];
    for (step, expected) in cases {
        let (_, upstream) = in_request([step], Request::get("/"));
        assert_eq!(upstream.header(":authority"), expected);
        assert_eq!(upstream.header("host"), None);
    }
}

#[test]
fn a_replaced_header_stands_once_and_at_the_end() {
    let request = Request::get("/")
        .header("x-dup", "1")
        .header("x-mid", "m")
        .header("x-dup", "2");
    let (said, upstream) = in_request([replace(REQUEST_HEADERS, "x-dup", "new")], request);
    assert_lines(&said, &["replace x-dup = 0"]);
    assert_eq!(from_filter(&upstream)[4..], ["x-mid=m", "x-dup=new"]);
}

#[test]
fn a_replaced_pseudo_header_goes_to_the_end_of_the_pseudo_headers() {
    let (_, upstream) = in_request(
        [replace(REQUEST_HEADERS, ":path", "/a?b=c")],
        Request::get("/").header("x-one", "1"),
    );
    assert_eq!(
        from_filter(&upstream),
        [
            ":authority=example.test",
            ":method=GET",
            ":scheme=http",
            ":path=/a?b=c",
            "x-one=1"
        ]
    );
}

#[test]
fn a_second_value_of_a_pseudo_header_is_joined() {
    for (name, expected) in [
        (":path", "/,new"),
        (":method", "GET,new"),
        (":authority", "example.test,new"),
    ] {
        let (said, upstream) = in_request(
            [
                add(REQUEST_HEADERS, name, "new"),
                get(REQUEST_HEADERS, name),
            ],
            Request::get("/"),
        );
        assert_eq!(said[1], format!("get {name} = 0 {expected}"));
        assert_eq!(upstream.header(name), Some(expected));
    }
}

#[test]
fn removing_takes_every_value_and_an_absent_name_is_no_error() {
    let request = Request::get("/").header("x-dup", "1").header("X-Dup", "2");
    let (said, upstream) = in_request(
        [
            remove(REQUEST_HEADERS, "X-DUP"),
            remove(REQUEST_HEADERS, "x-absent"),
        ],
        request,
    );
    assert_lines(&said, &["remove X-DUP = 0", "remove x-absent = 0"]);
    assert!(!upstream.headers.contains("x-dup"));
}

#[test]
fn names_are_stored_in_lower_case_and_values_as_bytes() {
    let value = [b'a', 0xff, 0xe9];
    let arguments = format!("(i32.const 0) {} {}", text("X-High"), text(value));
    let (_, upstream) = in_request(
        [ask("add", "add_header_map_value", &arguments)],
        Request::get("/"),
    );
    assert_eq!(upstream.headers.first("x-high"), Some(value.as_slice()));
    assert!(
        upstream
            .headers
            .iter()
            .all(|(name, _)| name == name.to_ascii_lowercase())
    );
}

#[test]
fn the_size_of_a_map_is_the_sum_of_its_names_and_values() {
    let (said, _) = in_request(
        [map_size(REQUEST_HEADERS)],
        Request::get("/").header("x-one", "1"),
    );
    // :authority example.test :path / :method GET :scheme http x-one 1
    assert_lines(&said, &["size = 0 55"]);
}

#[test]
fn set_pairs_replaces_the_whole_map_in_its_order() {
    let whole = [
        (":method", "PUT"),
        (":path", "/set"),
        (":authority", "set.example"),
        (":scheme", "http"),
        ("x-b", "2"),
        ("X-A", "1"),
        ("x-b", "3"),
    ];
    let (said, upstream) = in_request(
        [set_pairs(REQUEST_HEADERS, &pairs(&whole))],
        Request::get("/").header("x-old", "1"),
    );
    assert_lines(&said, &["set pairs = 0"]);
    assert_eq!(
        from_filter(&upstream),
        [
            ":method=PUT",
            ":path=/set",
            ":authority=set.example",
            ":scheme=http",
            "x-b=2",
            "x-a=1",
            "x-b=3"
        ]
    );
}

/// Bytes that are no pairs, or too many of them, are an empty map and no error.
#[test]
fn pairs_that_cannot_be_read_are_an_empty_map() {
    let number = |number: u32| number.to_le_bytes();
    let entry = |count: u32| -> Vec<u8> {
        let sizes = [number(1), number(1)].concat().repeat(count as usize);
        [
            number(count).to_vec(),
            sizes,
            b"a\0b\0".repeat(count as usize),
        ]
        .concat()
    };
    let cases: [(&str, Vec<u8>, u32); 9] = [
        ("no bytes", vec![], 0),
        ("cut", vec![2, 0, 0, 0, 1], 0),
        ("a count that is too large", number(0x7fff_ffff).to_vec(), 0),
        (
            "a size behind the end",
            [number(1), number(16), number(1)]
                .concat()
                .into_iter()
                .chain(*b"a\0b\0")
                .collect(),
            0,
        ),
        (
            "no zero bytes",
            [number(1), number(1), number(1)]
                .concat()
                .into_iter()
                .chain(*b"axbx")
                .collect(),
            0,
        ),
        ("one entry", entry(1), 1),
        ("as many as may be", entry(1024), 1024),
        ("one too many", entry(1025), 0),
        ("an explicit nothing", number(0).to_vec(), 0),
    ];
    for (what, bytes, expected) in cases {
        let guest = Guest::new().on(
            "response_headers",
            [
                set_pairs(RESPONSE_HEADERS, &text(&bytes)),
                count_pairs(RESPONSE_HEADERS),
                add(RESPONSE_HEADERS, ":status", "299"),
            ],
        );
        let sim = start(guest);
        sim.request(Request::get("/")).respond(ok(""));
        let count = if expected == 0 {
            "pairs = 0 null".to_owned()
        } else {
            format!("pairs = 0 {expected}")
        };
        assert_eq!(
            said(&sim)[..2],
            ["set pairs = 0".to_owned(), count],
            "{what}"
        );
    }
}

#[test]
fn pairs_over_a_mebibyte_are_an_empty_map() {
    // One pair whose value makes the whole 1 MiB, or one byte more. The memory behind the texts is zero.
    for (size, expected) in [
        (1024 * 1024, "pairs = 0 1"),
        (1024 * 1024 + 1, "pairs = 0 null"),
    ] {
        let value_size = size - 4 - 8 - 1 - 2;
        let store = |at: u32, value: u32| {
            format!(
                "(i32.store (i32.const {}) (i32.const {value}))",
                0x80000 + at
            )
        };
        let guest = Guest::new().on(
            "response_headers",
            [
                "(drop (memory.grow (i32.const 32)))".to_owned(),
                store(0, 1),
                store(4, 1),
                store(8, value_size),
                "(i32.store8 (i32.const 0x8000c) (i32.const 97))".to_owned(),
                set_pairs(
                    RESPONSE_HEADERS,
                    &format!("(i32.const 0x80000) (i32.const {size})"),
                ),
                count_pairs(RESPONSE_HEADERS),
            ],
        );
        let sim = start(guest);
        sim.request(Request::get("/")).respond(ok(""));
        assert_eq!(said(&sim)[1], expected, "{size} bytes");
    }
}

#[test]
fn trailers_can_be_added_at_the_end_of_a_body_and_nowhere_before() {
    let guest = Guest::new()
        .on("request_headers", [add(REQUEST_TRAILERS, "x-early", "1")])
        .on(
            "request_body",
            [
                add(REQUEST_TRAILERS, "x-sum", "1"),
                at_end([add(REQUEST_TRAILERS, "x-more", "2")]),
            ],
        )
        .on("response_body", [add(RESPONSE_TRAILERS, "x-sum", "3")]);
    let sim = start(guest);
    let stream = sim.request(Request::post("/").body("one").body("two"));
    stream.respond(ok("up"));
    assert_lines(
        &said(&sim),
        &[
            "add x-early = 2",
            "add x-sum = 2",
            "add x-sum = 0",
            "add x-more = 0",
            "add x-sum = 0",
        ],
    );
    let trailers = stream
        .upstream_request()
        .trailers
        .expect("made by the filter");
    assert_eq!(names(&trailers), ["x-sum=1", "x-more=2"]);
    assert_eq!(stream.upstream_request().text(), "onetwo");
    assert_eq!(stream.response().trailer("x-sum"), Some("3"));
}

#[test]
fn trailers_are_read_and_changed_in_their_own_callback() {
    let guest = Guest::new()
        .on(
            "request_trailers",
            [
                get(REQUEST_TRAILERS, "x-rt"),
                add(REQUEST_TRAILERS, "x-more", "2"),
                replace(REQUEST_TRAILERS, "x-rt", "3"),
            ],
        )
        .on(
            "response_trailers",
            [
                count_pairs(RESPONSE_TRAILERS),
                set_pairs(RESPONSE_TRAILERS, &pairs(&[("a", "1"), ("b", "2")])),
            ],
        );
    let sim = start(guest);
    let stream = sim.request(Request::post("/").body("one").trailer("x-rt", "1"));
    stream.respond(ok("up").trailer("x-trailer", "t"));
    assert_eq!(
        names(&stream.upstream_request().trailers.expect("sent")),
        ["x-more=2", "x-rt=3"]
    );
    assert_eq!(
        names(&stream.response().trailers.expect("sent")),
        ["a=1", "b=2"]
    );
    assert_lines(
        &said(&sim),
        &[
            "get x-rt = 0 1",
            "add x-more = 0",
            "replace x-rt = 0",
            "pairs = 0 1",
            "set pairs = 0",
        ],
    );
}

#[test]
fn a_map_that_does_not_exist_is_a_bad_argument() {
    for map in [8, u32::MAX] {
        let (said, _) = in_request(
            [
                get(map, "x"),
                ask(
                    "pairs",
                    "get_header_map_pairs",
                    &format!("(i32.const {map}) {OUT} {OUT_SIZE}"),
                ),
                map_size(map),
                add(map, "x", "y"),
                replace(map, "x", "y"),
                remove(map, "x"),
                set_pairs(map, &pairs(&[])),
            ],
            Request::get("/"),
        );
        assert!(said.iter().all(|line| line.ends_with(" = 2")), "{said:?}");
    }
}

/// Each map in each callback: read in its own only, with the answers of Envoy elsewhere.
#[test]
fn a_map_is_there_in_its_own_callback_only() {
    let maps = [
        REQUEST_HEADERS,
        REQUEST_TRAILERS,
        RESPONSE_HEADERS,
        RESPONSE_TRAILERS,
    ];
    let callbacks = [
        ("context_create", None),
        ("request_headers", Some(REQUEST_HEADERS)),
        ("request_body", None),
        ("request_trailers", Some(REQUEST_TRAILERS)),
        ("response_headers", Some(RESPONSE_HEADERS)),
        ("response_body", None),
        ("response_trailers", Some(RESPONSE_TRAILERS)),
        ("done", None),
        ("delete", None),
    ];
    for (callback, own) in callbacks {
        for map in maps {
            let steps = [
                get(map, "x-absent"),
                count_pairs(map),
                map_size(map),
                remove(map, "x-absent"),
            ];
            let sim = start(Guest::new().on(callback, [crate::guest::for_context(2, steps)]));
            let stream = sim.request(Request::post("/").body("one").trailer("x-rt", "1"));
            stream.respond(ok("up").trailer("x-trailer", "t"));
            let found = said(&sim);
            let statuses = found
                .iter()
                .map(|line| line.split_once(" = ").expect("a status").1);
            let statuses: Vec<_> = statuses
                .map(|rest| rest.split(' ').next().expect("a status"))
                .collect();
            let expected = if own == Some(map) {
                ["1", "0", "0", "0"]
            } else {
                ["2", "0", "2", "2"]
            };
            assert_eq!(statuses, expected, "map {map} in {callback}: {found:?}");
            assert_eq!(
                found[1] == "pairs = 0 null",
                own != Some(map),
                "map {map} in {callback}"
            );
        }
    }
}

/// Envoy checks what a filter made of a request before it sends it on.
#[test]
fn a_request_that_the_filter_broke_is_answered_by_envoy() {
    let cases = [
        (
            remove(REQUEST_HEADERS, ":method"),
            503,
            "missing required header: :method",
        ),
        (
            add(REQUEST_HEADERS, "x y", "v"),
            503,
            "invalid header name: x y",
        ),
        (
            replace(REQUEST_HEADERS, "x-one", "a\r\nx-smuggled: 1"),
            503,
            "invalid header value for: x-one",
        ),
        (
            replace(REQUEST_HEADERS, "x-one", "a\0b"),
            503,
            "invalid header value for: x-one",
        ),
    ];
    for (step, status, body) in cases {
        let sim = start(Guest::new().on("request_headers", [step]));
        let stream = sim.request(Request::get("/").header("x-one", "1"));
        assert!(!stream.reached_upstream(), "{body}");
        assert_eq!(
            (
                stream.response().status(),
                stream.response().text().as_str()
            ),
            (status, body)
        );
    }
    for value in ["abc", ""] {
        let step = if value.is_empty() {
            remove(RESPONSE_HEADERS, ":status")
        } else {
            replace(RESPONSE_HEADERS, ":status", value)
        };
        let sim = start(Guest::new().on("response_headers", [step]));
        let stream = sim.request(Request::get("/"));
        stream.respond(ok("up"));
        assert_eq!(stream.response().status(), 502, "{value}");
        assert_eq!(stream.response().text(), "missing required header: :status");
    }
}
