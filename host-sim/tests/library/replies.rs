//! Answers that a filter gives itself: when they take effect, what the client gets, and how the filter meets them again.

use host_sim::Plugin;
use host_sim::sim::{Request, Sim};

use crate::guest::{
    Guest, REQUEST, RESPONSE_BODY, RESPONSE_HEADERS, act_for, act_for_caller, add, at_end, buffer,
    call, count_pairs, get, give, nth, property, reply, reply_grpc, resume, say, tick,
};
use crate::scene::{assert_lines, built, callbacks, ok, said, said_since, start};

fn denying() -> Guest {
    Guest::new().on("request_headers", [reply(403, "no", &[("x-why", "rules")])])
}

fn ask(guest: Guest, request: Request) -> host_sim::sim::Message {
    start(guest).request(request).response()
}

#[test]
fn a_reply_reaches_the_client_and_nothing_reaches_the_upstream() {
    let sim = start(denying());
    let stream = sim.request(Request::post("/").body("one"));
    let answer = stream.response();
    assert_eq!((answer.status(), answer.text().as_str()), (403, "no"));
    assert_eq!(answer.header("x-why"), Some("rules"));
    assert_eq!(answer.header("content-length"), Some("2"));
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("server"), Some("envoy"));
    assert!(answer.complete && stream.is_over() && !stream.was_reset());
    assert!(!stream.reached_upstream());
}

/// The reply overrules what the callback returns.
#[test]
fn a_reply_stops_the_request_whatever_the_callback_returns() {
    let callbacks = ["request_headers", "request_body", "request_trailers"];
    for callback in callbacks {
        for number in 0..=4 {
            let guest = Guest::new().on(callback, [reply(403, "no", &[]), give(number)]);
            let sim = start(guest);
            let stream = sim.request(Request::post("/").body("one").trailer("x-sum", "1"));
            assert_eq!(
                stream.response().status(),
                403,
                "{callback} returns {number}"
            );
            if stream.reached_upstream() {
                assert!(
                    !stream.upstream_request().complete,
                    "{callback} returns {number}"
                );
                assert!(stream.upstream_was_reset(), "{callback} returns {number}");
            }
        }
    }
}

#[test]
fn a_reply_takes_effect_when_the_callback_is_over_and_the_first_one_counts() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                reply(403, "first", &[]),
                reply(429, "second", &[]),
                say("still here"),
            ],
        )
        .on("response_headers", [get(RESPONSE_HEADERS, ":status")]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_eq!(stream.response().text(), "first");
    assert_eq!(
        said(&sim)[2..],
        ["still here".to_owned(), "get :status = 0 403".to_owned()]
    );
}

#[test]
fn a_filter_meets_its_own_reply_in_its_response_callbacks() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "no", &[])])
        .on(
            "response_headers",
            [
                property("response.code_details"),
                count_pairs(RESPONSE_HEADERS),
                add(RESPONSE_HEADERS, "x-mark", "1"),
            ],
        )
        .on("response_body", [buffer(RESPONSE_BODY, 0, 9)])
        .on("log", [])
        .on("done", [])
        .on("delete", []);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_lines(
        &callbacks(&sim),
        &[
            "request_headers(2, 4, 1)",
            "response_headers(2, 3, 0)",
            "response_body(2, 2, 1)",
            "log(2)",
            "done(2)",
            "delete(2)",
        ],
    );
    // A filter's own reply has empty details, which tells it from the upstream's answer and from Envoy's.
    assert_lines(
        &said(&sim),
        &[
            "reply = 0",
            "response.code_details = 0 null",
            "pairs = 0 3",
            "add x-mark = 0",
            "buffer = 0 no",
        ],
    );
    assert_eq!(stream.response().header("x-mark"), Some("1"));
}

/// Envoy, with both orders in one callback: the client saw 403.
#[test]
fn of_a_reply_and_a_resume_in_one_callback_the_client_sees_the_reply() {
    let orders = [
        [reply(403, "no", &[]), resume(REQUEST)],
        [resume(REQUEST), reply(403, "no", &[])],
    ];
    for (index, steps) in orders.into_iter().enumerate() {
        let guest = Guest::new()
            .on("request_headers", [call("plane", 0), give(1)])
            .on(
                "http_call_response",
                [vec![act_for_caller()], steps.to_vec()].concat(),
            );
        let sim = start(guest);
        let stream = sim.request(Request::get("/"));
        sim.callout().answer(ok(""));
        assert_eq!(stream.response().status(), 403, "order {index}");
        // A request that was let go first may have been opened, and is given up again.
        assert_eq!(
            stream.reached_upstream(),
            stream.upstream_was_reset(),
            "order {index}"
        );
        assert!(stream.is_over(), "order {index}");
    }
}

#[test]
fn a_reply_from_a_callout_or_a_tick_answers_a_held_request() {
    let by_callout = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [act_for_caller(), reply(403, "no", &[])],
        );
    let sim = start(by_callout);
    let stream = sim.request(Request::get("/"));
    sim.callout().answer(ok(""));
    assert_eq!(stream.response().status(), 403);

    let by_tick = Guest::new()
        .on("configure", [tick(10)])
        .on("request_headers", [give(1)])
        .on("tick", [act_for(2), reply(403, "no", &[])]);
    let sim = start(by_tick);
    let stream = sim.request(Request::get("/"));
    sim.advance(std::time::Duration::from_millis(10));
    assert_eq!(stream.response().status(), 403);
}

#[test]
fn a_reply_from_a_root_is_ok_and_answers_nobody() {
    let guest = Guest::new()
        .on("configure", [tick(10)])
        .on("tick", [reply(403, "no", &[])]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    let before = said(&sim).len();
    sim.advance(std::time::Duration::from_millis(10));
    assert_lines(&said_since(&sim, before), &["reply = 0", "reply = 0"]);
    assert!(!stream.is_answered());
}

/// Envoy: 451 in place of the upstream's 200, and no body callback for it.
#[test]
fn a_reply_takes_the_place_of_an_upstream_s_answer_that_was_not_sent_yet() {
    let guest = Guest::new()
        .on("response_headers", [reply(451, "secret", &[])])
        .on("response_body", [])
        .on("log", [property("response.code_details")]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    stream.respond(ok("from upstream"));
    assert_eq!(stream.response().status(), 451);
    assert_eq!(stream.response().text(), "secret");
    assert_lines(&callbacks(&sim), &["response_headers(2, 1, 0)", "log(2)"]);
}

#[test]
fn a_reply_behind_an_answer_that_has_begun_breaks_it_off() {
    let guest = Guest::new().on("response_body", [nth(2, [reply(451, "secret", &[])])]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    stream.respond_headers(ok(""));
    stream.respond_body("one", false);
    stream.respond_body("two", false);
    assert_eq!(stream.response().status(), 200);
    assert_eq!(stream.response().text(), "one");
    assert!(stream.was_reset() && !stream.response().complete);
}

#[test]
fn a_held_answer_is_replaced_by_a_later_reply() {
    let guest = Guest::new()
        .on("response_headers", [call("plane", 0), give(1)])
        .on(
            "http_call_response",
            [act_for_caller(), reply(451, "secret", &[])],
        );
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    stream.respond(ok("from upstream"));
    assert!(!stream.is_answered());
    sim.callout().answer(ok(""));
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (451, "secret".to_owned())
    );
}

#[test]
fn a_head_request_gets_the_headers_of_a_reply_without_its_body() {
    let answer = ask(denying(), Request::new("HEAD", "/"));
    assert_eq!(answer.status(), 403);
    assert_eq!(answer.header("content-length"), Some("2"));
    assert_eq!(answer.body, b"");
    assert!(answer.complete);
}

#[test]
fn headers_of_a_reply_are_lower_case_may_repeat_and_give_way_where_envoy_knows_better() {
    let guest = Guest::new().on(
        "request_headers",
        [reply(
            403,
            "{}",
            &[
                ("X-Team", "red"),
                ("x-team", "blue"),
                ("content-type", "application/json"),
                ("content-length", "99"),
            ],
        )],
    );
    let answer = ask(guest, Request::get("/"));
    let teams: Vec<_> = answer.headers.all("x-team").collect();
    assert_eq!(teams, [b"red".as_slice(), b"blue"]);
    assert!(
        answer
            .headers
            .iter()
            .all(|(name, _)| name == name.to_ascii_lowercase())
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some("2"));
}

/// Measured: `connection: close` that a filter supplies is stripped.
#[test]
fn a_reply_cannot_close_the_connection() {
    let guest = Guest::new().on(
        "request_headers",
        [reply(403, "no", &[("connection", "close")])],
    );
    assert_eq!(ask(guest, Request::get("/")).header("connection"), None);
}

#[test]
fn a_reply_without_a_body_says_nothing_of_its_type() {
    let guest = Guest::new().on("request_headers", [reply(204, "", &[("x-why", "done")])]);
    let answer = ask(guest, Request::get("/"));
    assert_eq!(
        (answer.status(), answer.header("content-type")),
        (204, None)
    );
    assert_eq!(answer.header("x-why"), Some("done"));
}

fn grpc() -> Request {
    Request::post("/pkg.Service/Call")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
}

/// Measured: Envoy closes an HTTP/1.1 connection whose request it has not read to its end.
#[test]
fn a_reply_to_a_request_that_was_not_read_to_its_end_closes_the_connection() {
    let deny = |callback| start(Guest::new().on(callback, [reply(403, "no", &[])]));
    let early = deny("request_headers").request(Request::post("/").unfinished());
    assert_eq!(early.response().header("connection"), Some("close"));
    let late = deny("request_trailers").request(Request::post("/").body("one").trailer("x", "y"));
    assert_eq!(late.response().header("connection"), None);
    let without_body = deny("request_headers").request(Request::get("/"));
    assert_eq!(without_body.response().header("connection"), None);
}

#[test]
fn details_of_a_reply_are_kept_with_blanks_as_underscores() {
    let text = crate::guest::text;
    let arguments = format!(
        "(i32.const 403) {} {} {} (i32.const -1)",
        text("my details here"),
        text("x"),
        crate::guest::pairs(&[])
    );
    let guest = Guest::new()
        .on(
            "request_headers",
            [crate::guest::ask(
                "reply",
                "send_local_response",
                &arguments,
            )],
        )
        .on("log", [property("response.code_details")]);
    let sim = start(guest);
    sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &["reply = 0", "response.code_details = 0 my_details_here"],
    );
}

/// Measured: a reply in the response callback of the filter's own reply takes its place, without another callback.
#[test]
fn a_reply_to_one_s_own_reply_takes_its_place() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "first", &[])])
        .on("response_headers", [reply(451, "second", &[])])
        .on("response_body", []);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (451, "second".to_owned())
    );
    assert_lines(
        &callbacks(&sim),
        &["request_headers(2, 4, 1)", "response_headers(2, 3, 0)"],
    );
}

/// Measured: any number goes out as it is.
#[test]
fn any_status_number_is_sent() {
    for status in [0, 99, 100, 1000] {
        let guest = Guest::new().on("request_headers", [reply(status, "x", &[])]);
        let answer = ask(guest, Request::get("/"));
        assert_eq!(answer.header(":status"), Some(status.to_string().as_str()));
    }
}

#[test]
fn an_own_reply_that_is_held_waits_for_the_idle_time_out() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "no", &[])])
        .on("response_headers", [give(1)]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    assert!(!stream.is_answered());
    sim.advance(std::time::Duration::from_secs(300));
    assert_eq!(
        (stream.response().status(), stream.response().text()),
        (504, "stream timeout".to_owned())
    );
}

#[test]
fn a_grpc_client_gets_a_reply_as_trailers_only() {
    let guest = Guest::new().on(
        "request_headers",
        [reply(403, "no: 100% über", &[("x-why", "rules")])],
    );
    let answer = ask(guest, grpc());
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("content-type"), Some("application/grpc"));
    assert_eq!(answer.header("grpc-status"), Some("7"));
    assert_eq!(answer.header("grpc-message"), Some("no: 100%25 %C3%BCber"));
    assert_eq!(answer.header("x-why"), Some("rules"));
    assert_eq!(answer.body, b"");
    assert!(answer.complete);
}

/// Source: `Grpc::Utility::httpToGrpcStatus`.
#[test]
fn an_http_status_has_a_grpc_status() {
    let cases = [
        (400, 13),
        (401, 16),
        (403, 7),
        (404, 12),
        (429, 14),
        (502, 14),
        (503, 14),
        (504, 14),
        (200, 2),
        (409, 2),
        (500, 2),
    ];
    for (status, expected) in cases {
        let guest = Guest::new().on("request_headers", [reply(status, "", &[])]);
        let answer = ask(guest, grpc());
        assert_eq!(
            answer.header("grpc-status"),
            Some(expected.to_string().as_str()),
            "{status}"
        );
        assert_eq!(answer.header("grpc-message"), None, "{status}");
    }
}

#[test]
fn a_grpc_status_of_the_filter_s_own_goes_before_the_mapped_one() {
    for (status, expected) in [(0, "0"), (5, "5"), (16, "16")] {
        let guest = Guest::new().on("request_headers", [reply_grpc(403, "m", &[], status)]);
        assert_eq!(ask(guest, grpc()).header("grpc-status"), Some(expected));
    }
}

/// `send_grpc_response` to a client that speaks no gRPC: HTTP 200 with the message as text.
#[test]
fn what_counts_as_grpc_is_the_content_type_of_the_request_as_it_came() {
    let cases = [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc-web", false),
        ("application/grpcx", false),
        ("application/json", false),
    ];
    for (content_type, grpc) in cases {
        let guest = Guest::new().on(
            "request_headers",
            [
                crate::guest::replace(0, "content-type", "application/changed"),
                reply_grpc(200, "message", &[], 7),
            ],
        );
        let answer = ask(
            guest,
            Request::post("/").header("content-type", content_type),
        );
        assert_eq!(
            answer.header("grpc-status").is_some(),
            grpc,
            "{content_type}"
        );
        assert_eq!(
            answer.text(),
            if grpc { "" } else { "message" },
            "{content_type}"
        );
        assert_eq!(answer.status(), 200, "{content_type}");
    }
}

#[test]
fn the_rest_of_a_request_that_was_answered_is_not_shown_to_the_filter() {
    let guest = Guest::new()
        .on("request_headers", [])
        .on("request_body", [nth(1, [reply(403, "no", &[])])])
        .on("request_trailers", []);
    let sim = start(guest);
    let stream = sim.request(Request::post("/").unfinished());
    stream.send_body("one");
    stream.send_body("two");
    stream.send_trailers(host_sim::HeaderMap::new().with("x", "y"));
    assert_lines(
        &callbacks(&sim),
        &["request_headers(2, 4, 0)", "request_body(2, 3, 0)"],
    );
    assert_eq!(stream.response().text(), "no");
}

#[test]
fn an_upstream_s_answer_behind_a_reply_is_dropped() {
    let guest = Guest::new().on("request_body", [at_end([reply(403, "no", &[])])]);
    let sim = start(guest);
    let stream = sim.request(Request::post("/").unfinished());
    assert!(stream.reached_upstream());
    stream.finish("one");
    stream.respond(ok("too late"));
    assert_eq!(stream.response().text(), "no");
    assert!(stream.upstream_was_reset());
}

#[test]
fn a_filter_can_hold_and_rewrite_its_own_reply() {
    let guest = Guest::new()
        .on("request_headers", [reply(403, "no", &[])])
        .on(
            "response_headers",
            [crate::guest::remove(RESPONSE_HEADERS, "content-length")],
        )
        .on(
            "response_body",
            [
                crate::guest::set_buffer(RESPONSE_BODY, 0, 99, "rewritten"),
                buffer(RESPONSE_BODY, 0, 99),
            ],
        );
    let sim: Sim = built(Plugin::new(guest.module()));
    let stream = sim.request(Request::get("/"));
    assert_eq!(stream.response().text(), "rewritten");
    assert_eq!(stream.response().header("content-length"), None);
}
