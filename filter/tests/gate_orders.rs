//! Any order of events, however hostile: a stream ends in at most one release or one refusal, a release only after the
//! plane said `forward: true`, and nothing after the end.
#![expect(
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test, outside the wall around the filter"
)]

use hoop_filter::config::Config;
use hoop_filter::control_plane::{PlaneAnswer, PlaneFault};
use hoop_filter::effect::Effect;
use hoop_filter::event::Event;
use hoop_filter::listener::{Listener, Secrets};
use hoop_filter::request::{HeaderNames, RequestHead};
use hoop_filter::stream::Stream;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Body(Vec<u8>, bool),
    Forward,
    PlaneFails,
    PlaneGarbage(Vec<u8>),
    Pending,
    Trailers,
    Unreadable,
    Ended,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (proptest::collection::vec(any::<u8>(), 0..6), any::<bool>())
            .prop_map(|(chunk, end)| Step::Body(chunk, end)),
        Just(Step::Forward),
        Just(Step::PlaneFails),
        proptest::collection::vec(any::<u8>(), 0..16).prop_map(Step::PlaneGarbage),
        Just(Step::Pending),
        Just(Step::Trailers),
        Just(Step::Unreadable),
        Just(Step::Ended),
    ]
}

fn listener() -> Listener {
    let text = br#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"a"},"approval_mode":"return","max_body_bytes":12,
        "rules":[{"match":{"methods":["POST"]},"action":"require_approval","approval_rule":"r"}]}"#;
    Listener::new(
        Config::parse(text).unwrap_or_else(|error| panic!("{error}")),
        Secrets::default(),
    )
}

fn answered(body: &[u8]) -> Event {
    let headers = [
        (":status", &b"200"[..]),
        ("content-type", b"application/json"),
    ];
    Event::PlaneAnswered(Ok(PlaneAnswer::new(
        headers.into_iter(),
        Some(body.to_vec()),
    )))
}

fn event(step: Step) -> Event {
    match step {
        Step::Body(chunk, end_of_stream) => Event::RequestBody {
            chunk,
            end_of_stream,
        },
        Step::Forward => {
            answered(br#"{"forward":true,"review":{"id":"9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b"}}"#)
        }
        Step::PlaneFails => Event::PlaneAnswered(Err(PlaneFault::Unsent)),
        Step::PlaneGarbage(body) => answered(&body),
        Step::Pending => answered(br#"{"forward":false,"review":{"id":"x","status":"PENDING"}}"#),
        Step::Trailers => Event::RequestTrailers,
        Step::Unreadable => Event::RequestBodyUnreadable,
        Step::Ended => Event::StreamEnded,
    }
}

proptest! {
    #[test]
    fn one_decision_and_a_release_only_on_the_planes_word(
        end_of_stream in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..12),
    ) {
        let listener = listener();
        let head = RequestHead::parse([(":method", &b"POST"[..]), (":path", b"/x")].into_iter(), &HeaderNames::default());
        let (mut stream, first) = Stream::open(&listener, head, end_of_stream);
        let mut decisions = 0;
        let mut asked = first.iter().any(|effect| matches!(effect, Effect::CallPlane(_)));
        prop_assert!(!stream.may_continue());
        for step in steps {
            let said_forward = matches!(step, Step::Forward);
            let effects = stream.handle(&listener, event(step));
            prop_assert!(decisions == 0 || effects.is_empty(), "something happened after the end: {:?}", effects);
            for effect in effects {
                match effect {
                    Effect::Answer(_) => decisions += 1,
                    Effect::Forward(_) => {
                        prop_assert!(said_forward && asked, "released without the plane's word");
                        decisions += 1;
                    }
                    Effect::CallPlane(_) => {
                        prop_assert!(!asked, "filed twice");
                        asked = true;
                    }
                    Effect::Count(_) | Effect::Log { .. } => {}
                }
            }
            prop_assert!(decisions <= 1);
        }
    }

    /// Whatever the target: held, refused, answered or passed, and never a panic.
    #[test]
    fn any_head_is_judged(target in proptest::collection::vec(any::<u8>(), 0..48), method in "[A-Za-z]{0,6}") {
        let headers = [(":method", method.as_bytes()), (":path", target.as_slice())];
        let _ = Stream::open(&listener(), RequestHead::parse(headers.into_iter(), &HeaderNames::default()), true);
    }
}
