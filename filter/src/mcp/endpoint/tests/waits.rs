//! Waits: answered at their end, or piece by piece.

use super::*;
use crate::poller::{Asks, Errand, Order, Poller};

/// A wait for an approval that nobody has decided, up to its watch.
fn watching(listener: &Listener, request: &Request) -> Endpoint {
    let (endpoint, effects) = undecided(listener, request);
    assert!(
        matches!(
            effects.as_slice(),
            [Effect::Watch { .. }] | [Effect::Watch { .. }, Effect::ForwardPaced { .. }]
        ),
        "{effects:?}"
    );
    endpoint
}

/// A call whose first read finds its approval undecided.
fn undecided(listener: &Listener, request: &Request) -> (Endpoint, Vec<Effect>) {
    let (endpoint, effects) = request.send(listener);
    asked(&effects);
    let endpoint = endpoint.expect("asks");
    assert!(!endpoint.may_continue() && !endpoint.is_paced());
    step(
        endpoint,
        listener,
        Event::PlaneAnswered(reads("PENDING", "")),
    )
}

/// How many KiB the host is to pace, where it is to.
fn paced_kib(effects: &[Effect]) -> Option<usize> {
    effects.iter().find_map(|effect| {
        let Effect::ForwardPaced { bytes } = effect else {
            return None;
        };
        Some(*bytes / 1_024)
    })
}

fn plain_wait(seconds: u64) -> Request {
    Request::call(
        "approval_wait",
        &json!({"id": ID, "timeout_seconds": seconds}),
    )
}

fn piece(now_ms: u64) -> Event {
    Event::Paced(Pace::Piece { now_ms })
}

fn head(is_paced: bool) -> Event {
    Event::Paced(Pace::Head { is_paced })
}

/// The one message of an event stream, empty where it says nothing.
fn message(bytes: &[u8]) -> Value {
    keeps_secrets(bytes);
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    if text.is_empty() {
        return Value::Null;
    }
    let data = text
        .strip_prefix("event: message\ndata: ")
        .and_then(|rest| rest.strip_suffix("\n\n"));
    let data = data.unwrap_or_else(|| panic!("no event: {text}"));
    assert!(!data.contains(['\n', '\r']), "more than one line: {data}");
    serde_json::from_str(data).expect("JSON")
}

#[test]
fn an_approval_that_is_decided_is_told_at_once() {
    for (status, is_decided) in [
        ("APPROVED", true),
        ("REJECTED", true),
        ("REVOKED", true),
        ("EXECUTED", true),
        ("EXPIRED", true),
        ("FOO", true),
        ("PENDING", false),
        ("PROCESSING", false),
    ] {
        let listener = listener();
        let (endpoint, effects) = plain_wait(60).send(&listener);
        assert_eq!(asked(&effects), format!("/api/sidecars/reviews/{ID}"));

        let (_, effects) = endpoint
            .expect("asks")
            .handle(&listener, Event::PlaneAnswered(reads(status, "")));

        if is_decided {
            let told = Told::of(&effects);
            let told = told.structured();
            assert_eq!(
                (&told["status"], &told["timed_out"], &told["waited_seconds"]),
                (&json!(status), &json!(false), &json!(0))
            );
        } else {
            let id = ApprovalId::parse_canonical(ID).expect("an id");
            assert_eq!(
                effects,
                [Effect::Watch {
                    id,
                    budget_ms: 60_000,
                    settles_later: false
                }]
            );
        }
    }
}

#[test]
fn a_wait_tells_how_it_ended_and_how_long_it_took() {
    let table = [
        ("APPROVED", 57_000, false, 3),
        ("APPROVED", 57_501, false, 2),
        ("REJECTED", 59_600, false, 0),
        ("EXECUTED", 0, false, 60),
        ("PENDING", 0, true, 60),
        ("PROCESSING", 0, true, 60),
    ];
    for (status, left_ms, timed_out, waited) in table {
        let listener = listener();

        let (_, effects) =
            watching(&listener, &plain_wait(60)).handle(&listener, news(status, left_ms));

        let told = Told::of(&effects);
        let told = told.structured();
        assert_eq!(
            (&told["status"], &told["timed_out"], &told["waited_seconds"]),
            (&json!(status), &json!(timed_out), &json!(waited))
        );
        assert_eq!(told["next"] == "wait", timed_out);
        let note = Note {
            outcome: "told",
            rule: String::new(),
            approval_id: ID.to_owned(),
        };
        assert!(effects.contains(&Effect::Note(note)));
    }
}

#[test]
fn a_plane_that_fails_in_the_middle_ends_the_wait_as_a_failure() {
    let not_reported = format!(
        "the control plane could not report approval {ID}. Try again later, or ask a human to check it in the control plane"
    );
    let failed = News::Read {
        read: Err(PlaneFault::NoAnswer.into()),
        left_ms: 1_000,
    };
    for news in [News::NotChecked, failed] {
        let listener = listener();

        let (_, effects) =
            watching(&listener, &plain_wait(60)).handle(&listener, Event::Watched(news));

        assert_eq!(Told::of(&effects).failure(), not_reported);
        // The poller has counted and logged it, once for all that waited.
        assert_eq!(counts(&effects, Counter::PlaneFailures), 0, "{effects:?}");
    }
}

#[test]
fn only_a_wait_that_asks_for_progress_on_a_route_that_can_pace_it_is_paced() {
    let paced = || Request::paced_wait(&json!(1));
    let of_tool = |tool: &str, token: &Value| {
        let arguments = if tool == "approval_list" {
            json!({})
        } else {
            json!({"id": ID})
        };
        let params =
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        Request {
            is_paced: true,
            ..Request::legacy("tools/call", &params)
        }
    };
    let modern = {
        let params = json!({"name": "approval_wait", "arguments": {"id": ID}});
        let request = Request::modern("tools/call", &params);
        let body = String::from_utf8(request.body.clone()).expect("UTF-8");
        let body = body.replace(r#""_meta":{"#, r#""_meta":{"progressToken":0,"#);
        Request {
            body: body.into_bytes(),
            is_paced: true,
            ..request
        }
    };
    let table = [
        (paced(), "", true),
        (of_tool("review_wait", &json!("t")), "", true),
        (modern, "", true),
        (of_tool("approval_wait", &json!(0)), "", true),
        (of_tool("approval_wait", &json!("x".repeat(126))), "", true),
        (of_tool("approval_wait", &json!("x".repeat(127))), "", false),
        (of_tool("approval_wait", &json!(null)), "", false),
        (of_tool("approval_wait", &json!(true)), "", false),
        (of_tool("approval_wait", &json!([1])), "", false),
        (of_tool("approval_wait", &json!({})), "", false),
        (plain_wait(60), "", false),
        (
            Request {
                is_paced: false,
                ..paced()
            },
            "",
            false,
        ),
        (paced().with("accept", "application/json"), "", false),
        (paced().with("accept", "text/event-stream"), "", true),
        (paced(), r#","max_streams":0"#, false),
        (paced(), r#","max_streams":1"#, true),
    ];
    for (request, keys, is_paced) in table {
        let listener = listener_with(keys);

        let (endpoint, effects) = undecided(&listener, &request);

        assert_eq!(
            (endpoint.may_continue(), endpoint.is_paced()),
            (is_paced, is_paced),
            "{request:?}"
        );
        assert_eq!(paced_kib(&effects).is_some(), is_paced);
    }
    for tool in ["approval_status", "approval_list"] {
        let (endpoint, effects) = of_tool(tool, &json!(1)).send(&listener());

        assert!(!endpoint.expect("asks").is_paced(), "{tool}");
        asked(&effects);
    }
}

#[test]
fn a_slot_is_given_back_with_its_answer() {
    let listener = listener_with(r#","max_streams":1"#);
    let paced = |listener: &Listener| watching(listener, &Request::paced_wait(&json!(1)));
    let first = paced(&listener);
    assert!(first.is_paced() && !paced(&listener).is_paced());

    drop(first);

    assert!(paced(&listener).is_paced());
}

#[test]
fn the_host_paces_as_much_as_the_wait_can_last() {
    for (seconds, kibibytes) in [(2, 2 + 20 + 3 + 1), (300, 300 + 20 + 3 + 1)] {
        let params = json!({"name": "approval_wait", "arguments": {"id": ID, "timeout_seconds": seconds}, "_meta": {"progressToken": 1}});
        let request = Request {
            is_paced: true,
            ..Request::legacy("tools/call", &params)
        };

        let (_, effects) = undecided(&listener(), &request);

        assert_eq!(paced_kib(&effects), Some(kibibytes));
    }
}

/// A stream that ended without its result would leave some clients waiting for ever.
#[test]
fn a_wait_is_over_before_what_the_host_paces_is_however_slow_the_plane_is() {
    for seconds in [2, 3, 5, 9, 16, 60] {
        for latency_ms in [1, 400, 2_001, 5_500, 9_000, 9_999] {
            let listener = listener();
            let arguments = json!({"id": ID, "timeout_seconds": seconds});
            let params = json!({"name": "approval_wait", "arguments": arguments, "_meta": {"progressToken": 1}});
            let request = Request {
                is_paced: true,
                ..Request::legacy("tools/call", &params)
            };
            let (_, effects) = undecided(&listener, &request);
            let paced = paced_kib(&effects);

            let lasted_ms = longest_ms(&listener, seconds * 1_000, latency_ms);

            let paced_ms = u64::try_from(paced.expect("paced") * 1_000).expect("fits");
            assert!(
                lasted_ms < paced_ms,
                "{seconds} s, {latency_ms} ms: {lasted_ms} of {paced_ms}"
            );
        }
    }
}

/// How long a wait lasts whose approval nobody decides and no list shows.
fn longest_ms(listener: &Listener, budget_ms: u64, latency_ms: u64) -> u64 {
    let plane = listener.control_plane.as_ref().expect("a plane");
    let mut poller = Poller::new(listener.poll_interval_ms, Asks::Reads);
    let mut now = 0;
    let id = ApprovalId::parse_canonical(ID).expect("an id");
    poller.watch(1, id, budget_ms, false, now);
    let mut under_way: Vec<(u64, Errand)> = Vec::new();
    loop {
        let answered = under_way.iter().map(|(at, _)| *at).min();
        let next = [poller.next_tick(), answered].into_iter().flatten().min();
        now = now.max(next.expect("something is to come"));
        let mut orders = Vec::new();
        let (due, later) = under_way.into_iter().partition(|(at, _)| *at <= now);
        under_way = later;
        for (_, errand) in due {
            let answer = match &errand {
                Errand::Read(_) => reads("PENDING", ""),
                Errand::List(_) => said("200", "application/json", "[]"),
                Errand::Claim(_) | Errand::Settle(_) => panic!("a reader claims"),
            };
            orders.extend(poller.answered(plane, errand, answer, now));
        }
        orders.extend(poller.tick(plane, now));
        for order in orders {
            match order {
                Order::Call(_, errand) => under_way.push((now.saturating_add(latency_ms), errand)),
                Order::Tell(..) => return now,
                Order::Count(_) | Order::Log(..) | Order::Nobody(_) => {}
            }
        }
    }
}

#[test]
fn progress_is_told_every_two_seconds_with_the_token_as_it_came() {
    for token in ["0", "1.0", "-7", r#""a\u0041\n""#] {
        let listener = listener();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"approval_wait","arguments":{{"id":"{ID}"}},"_meta":{{"progressToken":{token}}}}}}}"#
        );
        let mut endpoint = watching(
            &listener,
            &Request {
                is_paced: true,
                ..Request::post(body)
            },
        );
        let mut effects;
        (endpoint, effects) = step(endpoint, &listener, head(true));
        let [Effect::AnswerHead(headers)] = effects.as_slice() else {
            panic!("no head: {effects:?}");
        };
        assert!(headers.contains(&("content-type", "text/event-stream".to_owned())));
        let mut told = Vec::new();
        for tick in 0..50_u64 {
            let now = 90_000 + tick * 250;
            (endpoint, effects) = step(endpoint, &listener, piece(now));
            let [Effect::AnswerPiece(bytes)] = effects.as_slice() else {
                panic!("no piece: {effects:?}");
            };
            if !bytes.is_empty() {
                let text = String::from_utf8_lossy(bytes).into_owned();
                assert!(
                    text.contains(&format!(r#""progressToken":{token},"#)),
                    "{text}"
                );
                told.push((now, message(bytes)));
            }
        }

        let progress: Vec<_> = told
            .iter()
            .map(|(now, told)| (*now, told["params"]["progress"].as_f64()))
            .collect();
        let every_two = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0].map(Some);
        assert_eq!(
            progress,
            [92_000, 94_000, 96_000, 98_000, 100_000, 102_000]
                .into_iter()
                .zip(every_two)
                .collect::<Vec<_>>()
        );
        for (_, told) in told {
            assert_eq!(
                (&told["jsonrpc"], &told["method"], told.get("id")),
                (&json!("2.0"), &json!("notifications/progress"), None)
            );
            assert_eq!(
                (&told["params"]["total"], &told["params"]["message"]),
                (&json!(60), &json!("waiting for an approver"))
            );
        }
    }
}

fn step(endpoint: Endpoint, listener: &Listener, event: Event) -> (Endpoint, Vec<Effect>) {
    let (endpoint, effects) = endpoint.handle(listener, event);
    (endpoint.expect("goes on"), effects)
}

#[test]
fn the_end_of_a_paced_answer_is_said_until_it_is_let_go_and_nothing_after_it() {
    let listener = listener();
    let endpoint = watching(&listener, &Request::paced_wait(&json!(1)));
    let (endpoint, _) = step(endpoint, &listener, head(true));
    let (endpoint, _) = step(endpoint, &listener, piece(0));
    let (endpoint, effects) = step(endpoint, &listener, news("APPROVED", 57_000));
    assert!(
        effects.iter().all(|effect| matches!(
            effect,
            Effect::Note(_) | Effect::Count(Counter::McpAnswered)
        )),
        "{effects:?}"
    );

    let (endpoint, effects) = step(endpoint, &listener, piece(3_000));
    let [Effect::AnswerEnd(first)] = effects.as_slice() else {
        panic!("no end: {effects:?}");
    };
    let told = Told {
        status: 200,
        message: message(first),
    };
    assert_eq!(
        (
            &told.structured()["status"],
            &told.structured()["waited_seconds"]
        ),
        (&json!("APPROVED"), &json!(3))
    );
    let (endpoint, again) = step(endpoint, &listener, piece(3_001));
    assert_eq!(again, effects);

    let (endpoint, effects) = step(endpoint, &listener, Event::Paced(Pace::LetGo));
    assert_eq!(effects, []);
    // A client that takes little at a time keeps the host at it for a while.
    let (_, effects) = step(endpoint, &listener, piece(3_002));
    assert_eq!(effects, [Effect::AnswerOver]);
}

#[test]
fn a_paced_wait_whose_approval_is_decided_before_its_head_ends_with_the_first_piece() {
    let listener = listener();
    let endpoint = watching(&listener, &Request::paced_wait(&json!(1)));
    let (endpoint, effects) = step(endpoint, &listener, news("REJECTED", 60_000));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Answer(_))),
        "{effects:?}"
    );
    let (endpoint, _) = step(endpoint, &listener, head(true));

    let (_, effects) = endpoint.handle(&listener, piece(0));

    let [Effect::AnswerEnd(bytes)] = effects.as_slice() else {
        panic!("no end: {effects:?}");
    };
    assert_eq!(
        message(bytes)["result"]["structuredContent"]["timed_out"],
        false
    );
}

#[test]
fn a_paced_wait_that_fails_ends_with_a_result() {
    let listener = listener();
    let endpoint = watching(&listener, &Request::paced_wait(&json!(1)));
    let (endpoint, _) = step(endpoint, &listener, head(true));
    let (endpoint, _) = step(endpoint, &listener, Event::Watched(News::NotChecked));

    let (_, effects) = endpoint.handle(&listener, piece(0));

    let [Effect::AnswerEnd(bytes)] = effects.as_slice() else {
        panic!("no end: {effects:?}");
    };
    assert_eq!(message(bytes)["result"]["isError"], true);
}

#[test]
fn an_answer_that_the_host_does_not_pace_is_an_error() {
    let listener = listener();
    let endpoint = watching(&listener, &Request::paced_wait(&json!(1)));

    let (_, effects) = endpoint.handle(&listener, head(false));

    assert_eq!(Told::of(&effects).code(), (500, -32_603));
    assert_eq!(counts(&effects, Counter::Internal), 1);
}

#[test]
fn events_of_others_change_nothing() {
    let listener = listener();
    let mut endpoint = watching(&listener, &plain_wait(60));
    for event in [
        Event::RequestTrailers,
        Event::RequestBodyUnreadable,
        Event::PlaneAnswered(reads("APPROVED", "")),
        Event::Watched(News::TimeOver),
        piece(0),
        Event::ResponseEnded { grpc_status: None },
        Event::StreamEnded {
            never_reached: false,
        },
    ] {
        let effects;
        (endpoint, effects) = step(endpoint, &listener, event);

        assert_eq!(effects, []);
    }
}
