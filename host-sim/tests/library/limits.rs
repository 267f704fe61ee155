//! Bodies that outgrow the buffer limit: 413, a broken answer, or a sender that waits. Measured on Envoy 1.40 with a limit of 1000.

use host_sim::sim::{Request, Sim};
use host_sim::{Plugin, StreamLimits};

use crate::guest::{
    Guest, REQUEST, RESPONSE, act_for_caller, call, count_pairs, give, property, property_number,
    resume,
};
use crate::scene::{assert_lines, builder, callbacks, ok, said, started};

fn sim(guest: Guest, allow: bool) -> Sim {
    let plugin = Plugin::new(guest.module()).allow_on_headers_stop_iteration(allow);
    let limits = StreamLimits {
        buffer_limit_bytes: 1000,
        ..StreamLimits::default()
    };
    started(builder(plugin).limits(limits))
}

fn bytes(count: usize) -> Vec<u8> {
    vec![b'x'; count]
}

#[test]
fn a_request_body_over_the_limit_is_shown_and_then_answered_413() {
    let guest = Guest::new()
        .on("request_body", [give(1)])
        .on(
            "response_headers",
            [
                property("response.code_details"),
                property_number("response.code"),
                count_pairs(2),
            ],
        )
        .on("response_body", [])
        .on("log", [property("response.code_details")]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body(bytes(600));
    assert!(!stream.is_answered());
    stream.send_body(bytes(600));
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (413, "Payload Too Large".to_owned())
    );
    assert!(stream.upstream_was_reset());
    assert_lines(
        &callbacks(&sim),
        &[
            "request_body(2, 600, 0)",
            "request_body(2, 1200, 0)",
            "response_headers(2, 3, 0)",
            "response_body(2, 17, 1)",
            "log(2)",
        ],
    );
    assert_lines(
        &said(&sim),
        &[
            "response.code_details = 0 request_payload_too_large",
            "response.code = 0 413",
            "pairs = 0 3",
            "response.code_details = 0 request_payload_too_large",
        ],
    );
}

#[test]
fn a_body_of_exactly_the_limit_is_taken() {
    let sim = sim(Guest::new().on("request_body", [give(1)]), false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body(bytes(1000));
    assert!(!stream.is_answered());
    stream.send_body(bytes(1));
    assert_eq!(stream.response().status(), 413);
}

#[test]
fn a_body_whose_last_piece_goes_over_the_limit_is_413_like_any_other() {
    let guest = Guest::new().on("request_body", [give(1)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body(bytes(600));
    stream.finish(bytes(600));
    assert_eq!(stream.response().status(), 413);
}

#[test]
fn a_body_that_waits_for_its_headers_makes_the_sender_wait_and_is_never_413() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("request_body", [])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    for _ in 0..3 {
        stream.send_body(bytes(600));
    }
    stream.finish("");
    assert!(stream.is_paused());
    sim.callout().answer(ok(""));
    assert_eq!(stream.upstream_request().body.len(), 1800);
    assert_lines(
        &callbacks(&sim),
        &["request_headers(2, 4, 0)", "request_body(2, 1800, 1)"],
    );
}

#[test]
fn a_body_held_with_back_pressure_is_never_413() {
    let guest = Guest::new().on("request_body", [give(2)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body(bytes(900));
    stream.send_body(bytes(900));
    stream.finish("");
    assert!(!stream.is_answered());
}

#[test]
fn a_held_response_body_over_the_limit_breaks_the_answer_off() {
    let guest = Guest::new()
        .on("response_body", [give(1)])
        .on("log", [property("response.code_details")]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    for _ in 0..3 {
        stream.respond_body(bytes(500), false);
    }
    assert!(stream.was_reset() && stream.is_over());
    assert_eq!(
        (stream.response().status(), stream.response().body.len()),
        (200, 0)
    );
    // The piece that was too much is not shown.
    assert_lines(
        &callbacks(&sim),
        &[
            "response_body(2, 500, 0)",
            "response_body(2, 1000, 0)",
            "log(2)",
        ],
    );
    assert_lines(
        &said(&sim),
        &["response.code_details = 0 response_payload_too_large"],
    );
}

#[test]
fn a_response_that_comes_in_one_piece_over_the_limit_is_shown_once() {
    let sim = sim(Guest::new().on("response_body", [give(1)]), false);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    stream.respond_body(bytes(1500), false);
    assert!(stream.was_reset());
    assert_lines(&callbacks(&sim), &["response_body(2, 1500, 0)"]);
}

/// Source: `ActiveStreamEncoderFilter::responseDataTooLarge` of Envoy's filter manager.
#[test]
fn a_held_response_over_the_limit_becomes_500_while_nothing_of_it_was_sent() {
    let guest = Guest::new()
        .on("response_headers", [give(1)])
        .on("response_body", [give(1)]);
    let sim = sim(guest, true);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    stream.respond_body(bytes(600), false);
    stream.respond_body(bytes(600), false);
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (500, "Internal Server Error".to_owned())
    );
}

#[test]
fn a_response_that_waits_for_its_headers_may_be_larger_than_the_limit() {
    let guest = Guest::new()
        .on("response_headers", [call("plane", 0), give(1)])
        .on("response_body", [])
        .on("http_call_response", [act_for_caller(), resume(RESPONSE)]);
    let sim = sim(guest, false);
    let stream = sim.request(Request::get("/"));
    stream.respond(ok(&"x".repeat(1500)));
    assert!(!stream.is_answered());
    sim.callout().answer(ok(""));
    assert_eq!(stream.response().body.len(), 1500);
    assert_eq!(
        callbacks(&sim).last().map(String::as_str),
        Some("response_body(2, 1500, 1)")
    );
}

#[test]
fn what_is_not_held_is_not_limited() {
    let sim = sim(
        Guest::new().on("request_body", []).on("response_body", []),
        false,
    );
    let stream = sim.request(Request::post("/").body(bytes(5000)));
    stream.respond(ok(&"x".repeat(5000)));
    assert_eq!(stream.upstream_request().body.len(), 5000);
    assert_eq!(stream.response().body.len(), 5000);
}

#[test]
fn a_grpc_client_is_told_by_its_own_status() {
    let sim = sim(Guest::new().on("request_body", [give(1)]), false);
    let stream = sim.request(
        Request::post("/")
            .header("content-type", "application/grpc")
            .unfinished(),
    );
    stream.send_body(bytes(1200));
    assert_eq!(stream.response().status(), 200);
    assert_eq!(
        stream.response().header("grpc-message"),
        Some("Payload Too Large")
    );
}
