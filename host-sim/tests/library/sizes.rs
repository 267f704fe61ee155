//! Much of everything: what a host has to take without a limit of its own.

use host_sim::Plugin;
use host_sim::sim::Request;

use crate::guest::{
    CALL_BODY, Guest, REQUEST, REQUEST_BODY, REQUEST_HEADERS, act_for_caller, at_end, call,
    count_pairs, give, map_size, resume, say_number,
};
use crate::scene::{assert_lines, built, callbacks, ok, said, start};

/// The limit of pairs is one of what a guest hands over whole; it may add more one by one, and reads them all.
#[test]
fn a_filter_may_add_more_headers_than_a_list_of_pairs_may_hold() {
    let many = "(loop $more
        (drop (call $add_header_map_value (i32.const 0) (i32.const 2048) (i32.const 1) (i32.const 2048) (i32.const 1)))
        (global.set $added (i32.add (global.get $added) (i32.const 1)))
        (br_if $more (i32.lt_u (global.get $added) (i32.const 1100))))";
    let guest = Guest::new()
        .with("(global $added (mut i32) (i32.const 0))")
        // The first text of a module stands at 2048: an `x`.
        .on(
            "request_headers",
            [
                say_number("x", "(i32.const 0)"),
                many.to_owned(),
                count_pairs(REQUEST_HEADERS),
            ],
        );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_lines(&said(&sim), &["x = 0", "pairs = 0 1104"]);
    assert_eq!(stream.upstream_request().headers.all("x").count(), 1100);
}

#[test]
fn a_large_header_is_counted_in_whole() {
    let sim = start(Guest::new().on(
        "request_headers",
        [map_size(REQUEST_HEADERS), count_pairs(REQUEST_HEADERS)],
    ));
    let stream = sim.request(Request::get("/").header("x", "v".repeat(2_000_000)));
    assert_lines(&said(&sim), &["size = 0 2000050", "pairs = 0 5"]);
    assert_eq!(
        stream.upstream_request().header("x").map(str::len),
        Some(2_000_000)
    );
}

#[test]
fn a_callout_s_answer_may_be_large() {
    let length = format!(
        "(drop (call $get_buffer_bytes (i32.const {CALL_BODY}) (i32.const 0) (i32.const -1) (i32.const 16) (i32.const 20))) {}",
        say_number("bytes", "(i32.load (i32.const 20))")
    );
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0)])
        .on("http_call_response", [length]);
    let sim = start(guest);
    sim.request(Request::get("/"));
    sim.callout().answer(ok(&"x".repeat(1_000_000)));
    assert_eq!(said(&sim)[1], "bytes = 1000000");
}

#[test]
fn a_body_in_many_pieces_arrives_whole() {
    let guest = Guest::new().on(
        "request_body",
        [at_end([crate::guest::buffer(REQUEST_BODY, 0, 4)])],
    );
    let sim = start(guest);
    let stream = sim.request(Request::post("/").unfinished());
    for number in 0..2000u32 {
        stream.send_body(number.to_le_bytes().repeat(400));
    }
    stream.finish("last");
    let expected: Vec<u8> = (0..2000u32)
        .flat_map(|number| number.to_le_bytes().repeat(400))
        .chain(*b"last")
        .collect();
    assert!(stream.upstream_request().body == expected);
    assert_lines(&said(&sim), &["buffer = 0 last"]);
}

#[test]
fn hundreds_of_held_streams_are_each_released_by_their_own_answer() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)])
        .on("log", []);
    let sim = built(Plugin::new(guest.module()));
    let streams: Vec<_> = (0..300)
        .map(|number| sim.request(Request::get(&format!("/{number}"))))
        .collect();
    let waiting = sim.callouts();
    // In an order that is neither the first nor the last.
    for index in (0..300).map(|index| index * 7 % 300) {
        assert!(streams[index].is_paused(), "{index}");
        waiting[index].answer(ok(""));
        assert_eq!(
            streams[index].upstream_request().header(":path"),
            Some(format!("/{index}").as_str())
        );
        streams[index].respond(ok("up"));
    }
    assert!(sim.callouts().is_empty());
    assert_eq!(
        callbacks(&sim)
            .iter()
            .filter(|line| line.starts_with("log"))
            .count(),
        300
    );
}

#[test]
fn a_thousand_streams_need_no_more_memory_than_their_guest_takes() {
    // This guest's allocator never gives anything back, and nothing is handed over to it.
    let sim = start(Guest::new().on("request_headers", []).on("log", []));
    let before = sim.memory_bytes(0);
    for _ in 0..1000 {
        sim.request(Request::get("/")).respond(ok("up"));
    }
    assert_eq!(sim.memory_bytes(0), before);
}
