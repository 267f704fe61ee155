//! Whatever the order of events and the cut of a body: the same bytes reach the upstream, each stream ends once, nothing panics.

use std::sync::OnceLock;
use std::time::Duration;

use host_sim::sim::{Request, Response, Sim, Stream};
use host_sim::{HeaderMap, Module, Plugin};
use proptest::prelude::*;

use crate::guest::{
    Guest, REQUEST, REQUEST_BODY, RESPONSE, act_for_caller, at_end, call, give, resume, set_buffer,
};
use crate::scene::{builder, callbacks, cases, started};

/// Cut `body` at these places.
fn cut(body: &[u8], places: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = places
        .iter()
        .map(|place| place.index(body.len() + 1))
        .collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in places.into_iter().chain([body.len()]) {
        pieces.push(body[start..end].to_vec());
        start = end;
    }
    pieces
}

/// Passes everything, and puts a mark in front of a whole body and one behind it.
fn rewriting() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| {
        let marks = || {
            [
                set_buffer(REQUEST_BODY, 0, 0, "<"),
                set_buffer(REQUEST_BODY, u32::MAX, 0, ">"),
                give(0),
            ]
        };
        let guest = Guest::new().on("request_body", [give(1), at_end(marks())]);
        guest.module()
    })
}

/// Holds requests in each callback until a callout is answered; holds answers in the same way.
fn holding() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| {
        let guest = Guest::new()
            .on("request_headers", [call("plane", 700), give(1)])
            .on("response_headers", [call("plane", 700), give(1)])
            .on(
                "http_call_response",
                [act_for_caller(), resume(REQUEST), resume(RESPONSE)],
            )
            .on("request_body", [])
            .on("request_trailers", [])
            .on("response_body", [])
            .on("log", [])
            .on("done", [])
            .on("delete", []);
        guest.module()
    })
}

#[derive(Clone, Debug)]
enum Event {
    Body(Vec<u8>),
    Finish,
    Trailers,
    AnswerCallout(prop::sample::Index),
    BreakCallout(prop::sample::Index),
    Respond,
    RespondHeaders,
    RespondBody(Vec<u8>),
    RespondEnd,
    UpstreamFails,
    Disconnect,
    Pass(u16),
}

fn event() -> impl Strategy<Value = Event> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        4 => bytes().prop_map(Event::Body),
        2 => Just(Event::Finish),
        1 => Just(Event::Trailers),
        4 => any::<prop::sample::Index>().prop_map(Event::AnswerCallout),
        1 => any::<prop::sample::Index>().prop_map(Event::BreakCallout),
        2 => Just(Event::Respond),
        1 => Just(Event::RespondHeaders),
        2 => bytes().prop_map(Event::RespondBody),
        1 => Just(Event::RespondEnd),
        1 => Just(Event::UpstreamFails),
        1 => Just(Event::Disconnect),
        1 => (0u16..400).prop_map(Event::Pass),
    ]
}

/// A stream of the test, and what was sent on it so far.
struct Played {
    stream: Stream,
    sent: Vec<u8>,
    ended: bool,
}

fn play(sim: &Sim, played: &mut Played, event: Event) {
    let stream = &played.stream;
    match event {
        // A client that has ended its request, or has its answer, sends nothing more.
        Event::Body(bytes) if !played.ended && !stream.is_over() => {
            stream.send_body(bytes.clone());
            played.sent.extend(bytes);
        }
        Event::Finish if !played.ended => {
            stream.finish("");
            played.ended = true;
        }
        Event::Trailers if !played.ended => {
            stream.send_trailers(HeaderMap::new().with("x-sum", "1"));
            played.ended = true;
        }
        Event::AnswerCallout(index) | Event::BreakCallout(index) if sim.callouts().is_empty() => {
            let _nothing_waits = index;
        }
        Event::AnswerCallout(index) => index.get(&sim.callouts()).answer(Response::new(200)),
        Event::BreakCallout(index) => index.get(&sim.callouts()).reset(),
        Event::Respond if stream.reached_upstream() => {
            stream.respond(Response::new(200).body("up"))
        }
        Event::RespondHeaders if stream.reached_upstream() => {
            stream.respond_headers(Response::new(200))
        }
        Event::RespondBody(bytes) => stream.respond_body(bytes, false),
        Event::RespondEnd => stream.respond_body("", true),
        Event::UpstreamFails => stream.fail_upstream(&host_sim::UpstreamFailure::Reset),
        Event::Disconnect => stream.disconnect(),
        Event::Pass(milliseconds) => sim.advance(Duration::from_millis(milliseconds.into())),
        Event::Body(_)
        | Event::Finish
        | Event::Trailers
        | Event::Respond
        | Event::RespondHeaders => {}
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_cut_of_a_body_gives_the_same_upstream_bytes(
        body in prop::collection::vec(any::<u8>(), 0..200),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        end_by_itself in any::<bool>(),
    ) {
        let sim = started(builder(Plugin::new(rewriting().clone())));
        let mut pieces = cut(&body, &places);
        if end_by_itself {
            pieces.push(Vec::new());
        }
        let request = pieces.into_iter().fold(Request::post("/"), Request::body);
        let stream = sim.request(request);
        let expected = [b"<", &body[..], b">"].concat();
        prop_assert_eq!(&stream.upstream_request().body, &expected);
        prop_assert!(stream.upstream_request().complete);
    }

    #[test]
    fn any_order_of_events_gives_each_upstream_a_prefix_of_its_own_body_and_ends_each_stream_once(
        events in prop::collection::vec((0usize..3, event()), 0..60),
        allow in any::<bool>(),
    ) {
        let plugin = Plugin::new(holding().clone()).allow_on_headers_stop_iteration(allow);
        let sim = started(builder(plugin));
        let open = |number: usize| Played {
            stream: sim.request(Request::post(&format!("/{number}")).unfinished()),
            sent: Vec::new(),
            ended: false,
        };
        let mut streams: Vec<Played> = (0..3).map(open).collect();
        for (number, event) in events {
            play(&sim, &mut streams[number], event);
        }
        // A day is longer than any time-out.
        sim.advance(Duration::from_secs(86_400));
        for (number, played) in streams.iter().enumerate() {
            prop_assert!(played.stream.is_over());
            if played.stream.reached_upstream() {
                let upstream = played.stream.upstream_request();
                let path = format!("/{number}");
                prop_assert_eq!(upstream.header(":path"), Some(path.as_str()));
                prop_assert!(played.sent.starts_with(&upstream.body));
                if upstream.complete {
                    prop_assert_eq!(&upstream.body, &played.sent);
                }
            }
        }
        prop_assert!(sim.failure(0).is_none());
        let found = callbacks(&sim);
        for context in 2..5 {
            for ending in ["log", "done", "delete"] {
                let wanted = format!("{ending}({context})");
                prop_assert_eq!(found.iter().filter(|line| **line == wanted).count(), 1);
            }
        }
    }

    #[test]
    fn one_list_of_events_gives_one_trace(events in prop::collection::vec((0usize..2, event()), 0..40)) {
        let run = || {
            let sim = started(builder(Plugin::new(holding().clone())));
            let open = |_| Played { stream: sim.request(Request::post("/").unfinished()), sent: Vec::new(), ended: false };
            let mut streams: Vec<Played> = (0..2).map(open).collect();
            for (number, event) in events.clone() {
                play(&sim, &mut streams[number], event);
            }
            sim.advance(Duration::from_secs(1000));
            sim.trace(0).to_string()
        };
        prop_assert_eq!(run(), run());
    }

    /// A client that goes on after its end, an upstream that answers twice: a host for tests takes it and goes on.
    #[test]
    fn events_out_of_turn_do_no_harm(
        events in prop::collection::vec((0usize..2, event()), 0..60),
        allow in any::<bool>(),
    ) {
        let plugin = Plugin::new(holding().clone()).allow_on_headers_stop_iteration(allow);
        let sim = started(builder(plugin));
        let streams = [sim.request(Request::post("/")), sim.request(Request::post("/").unfinished())];
        for (number, event) in events {
            let stream = &streams[number];
            match event {
                Event::Body(bytes) => stream.send_body(bytes),
                Event::Finish => stream.finish("end"),
                Event::Trailers => stream.send_trailers(HeaderMap::new().with("x-sum", "1")),
                Event::Respond => stream.respond(Response::new(200).body("up").trailer("x-sum", "1")),
                Event::RespondHeaders => stream.respond_headers(Response::new(200)),
                Event::AnswerCallout(_)
                | Event::BreakCallout(_)
                | Event::RespondBody(_)
                | Event::RespondEnd
                | Event::UpstreamFails
                | Event::Disconnect
                | Event::Pass(_) => {
                    let mut played = Played { stream: stream.clone(), sent: Vec::new(), ended: true };
                    play(&sim, &mut played, event);
                }
            }
        }
        sim.advance(Duration::from_secs(86_400));
        prop_assert!(streams.iter().all(Stream::is_over));
        prop_assert!(sim.failure(0).is_none());
    }
}
