//! Any order of events, however hostile: a stream ends in at most one release or one refusal, a release only after the
//! plane said `forward: true` about it, and nothing after the end. Several streams share one poller, as in a VM.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test, outside the wall around the filter"
)]

use std::collections::VecDeque;

use hoop_filter::approval_request;
use hoop_filter::config::Config;
use hoop_filter::control_plane::{PlaneAnswer, PlaneFault, Settlement};
use hoop_filter::effect::Effect;
use hoop_filter::event::{Event, News};
use hoop_filter::identity::NothingKnown;
use hoop_filter::listener::{Listener, Secrets};
use hoop_filter::metrics::Counter;
use hoop_filter::poller::{self, Asks, Errand, Order, Poller};
use hoop_filter::request::{HeaderNames, RequestHead};
use hoop_filter::stream::Stream;
use proptest::prelude::*;

/// What happens next, to a stream or to the oldest call of the poller that is under way.
#[derive(Clone, Debug)]
enum Step {
    Body(usize, Vec<u8>, bool),
    Ended(usize, bool),
    Filing(usize, Word),
    Garbage(usize, Vec<u8>),
    PlaneFails(usize),
    Poll(Word),
    PollFails,
    ResponseEnded(usize),
    ResponseStarted(usize, u16),
    Time(u64),
    Trailers(usize),
    Unreadable(usize),
}

/// What the plane says.
#[derive(Clone, Copy, Debug)]
struct Word {
    forward: bool,
    status: &'static str,
    approval: usize,
}

const STREAMS: usize = 3;
const APPROVALS: [&str; 2] = [
    "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b",
    "00000000-0000-4000-8000-000000000001",
];

fn word() -> impl Strategy<Value = Word> {
    let statuses = prop_oneof![
        Just("PENDING"),
        Just("APPROVED"),
        Just("PROCESSING"),
        Just("EXECUTED"),
        Just("REJECTED"),
        Just("FOO"),
    ];
    (any::<bool>(), statuses, 0..APPROVALS.len()).prop_map(|(forward, status, approval)| Word {
        forward,
        status,
        approval,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || 0..STREAMS;
    prop_oneof![
        2 => (stream(), proptest::collection::vec(any::<u8>(), 0..6), any::<bool>())
            .prop_map(|(stream, chunk, end)| Step::Body(stream, chunk, end)),
        1 => (stream(), any::<bool>()).prop_map(|(stream, reached)| Step::Ended(stream, reached)),
        3 => (stream(), word()).prop_map(|(stream, word)| Step::Filing(stream, word)),
        1 => (stream(), proptest::collection::vec(any::<u8>(), 0..16))
            .prop_map(|(stream, body)| Step::Garbage(stream, body)),
        1 => stream().prop_map(Step::PlaneFails),
        6 => word().prop_map(Step::Poll),
        1 => Just(Step::PollFails),
        1 => stream().prop_map(Step::ResponseEnded),
        2 => (stream(), 200_u16..600).prop_map(|(stream, status)| Step::ResponseStarted(stream, status)),
        4 => (0_u64..20_000).prop_map(Step::Time),
        1 => stream().prop_map(Step::Trailers),
        1 => stream().prop_map(Step::Unreadable),
    ]
}

fn listener() -> Listener {
    let text = br#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"a"},"max_body_bytes":12,"spend_approval_on":"accepted",
        "hold_timeout_ms":30000,"rules":[{"match":{"methods":["POST"]},"action":"require_approval","approval_rule":"r"}]}"#;
    Listener::new(
        Config::parse(text).unwrap_or_else(|error| panic!("{error}")),
        Secrets::default(),
    )
}

fn said(body: &str) -> Result<PlaneAnswer, PlaneFault> {
    let headers = [
        (":status", &b"200"[..]),
        ("content-type", b"application/json"),
    ];
    Ok(PlaneAnswer::new(
        headers.into_iter(),
        Some(body.as_bytes().to_vec()),
    ))
}

fn filing_answer(word: Word, approval: &str) -> Result<PlaneAnswer, PlaneFault> {
    let Word {
        forward, status, ..
    } = word;
    said(&format!(
        r#"{{"forward":{forward},"review":{{"id":"{approval}","status":"{status}"}}}}"#
    ))
}

/// A VM's streams and what is known about each of them.
struct World {
    listener: Listener,
    poller: Poller,
    now: u64,
    streams: Vec<(Stream, Known)>,
    calls: VecDeque<Errand>,
    /// How many releases the plane gave for each approval, less those that streams or nobody took.
    releases: i64,
}

#[derive(Default)]
struct Known {
    filed: bool,
    filing_under_way: bool,
    decisions: u32,
    settled: bool,
    over: bool,
}

impl World {
    fn new(end_of_stream: bool) -> Self {
        let listener = listener();
        let open = |_| {
            let head = RequestHead::parse(
                [(":method", &b"POST"[..]), (":path", b"/x")].into_iter(),
                &HeaderNames::default(),
            );
            let (stream, effects) = Stream::open(&listener, head, end_of_stream, &NothingKnown);
            let asked = effects
                .iter()
                .any(|effect| matches!(effect, Effect::CallPlane(_)));
            let known = Known {
                filed: asked,
                filing_under_way: asked,
                ..Known::default()
            };
            (stream, known)
        };
        Self {
            streams: (0..STREAMS).map(open).collect(),
            poller: Poller::new(1_000, Asks::Claims),
            now: 0,
            calls: VecDeque::new(),
            releases: 0,
            listener,
        }
    }

    fn event(&mut self, at: usize, event: Event) {
        let ends = matches!(event, Event::StreamEnded { .. });
        let (stream, known) = &mut self.streams[at];
        if known.over {
            return;
        }
        let was_decided = known.decisions > 0;
        let effects = stream.handle(&self.listener, event);
        let mut orders = Vec::new();
        for effect in effects {
            match effect {
                Effect::Answer(_) => {
                    assert!(!was_decided, "a refusal after the decision");
                    known.decisions += 1;
                }
                Effect::Forward(release) => {
                    assert!(known.filed, "released without having asked");
                    assert!(stream.may_continue());
                    self.releases -= 1;
                    known.decisions += 1;
                    drop(release);
                }
                Effect::CallPlane(_) => {
                    assert!(!known.filed, "filed twice");
                    (known.filed, known.filing_under_way) = (true, true);
                }
                Effect::Watch {
                    id,
                    budget_ms,
                    settles_later,
                } => {
                    let watcher = u32::try_from(at).unwrap_or_default();
                    self.poller
                        .watch(watcher, id, budget_ms, settles_later, self.now);
                }
                Effect::Settle {
                    id,
                    pending,
                    settlement,
                } => {
                    assert!(!known.settled, "settled twice");
                    known.settled = true;
                    assert!(matches!(
                        settlement,
                        Settlement::Spent | Settlement::Returned
                    ));
                    let plane = self.listener.control_plane.as_ref().expect("a plane");
                    orders.extend(poller::settle(plane, &id, &pending, settlement));
                }
                Effect::AnswerEnd(_)
                | Effect::Cancel { .. }
                | Effect::Cancellable { .. }
                | Effect::AnswerHead(_)
                | Effect::AnswerOver
                | Effect::AnswerPiece(_)
                | Effect::ForwardAnswer
                | Effect::ForwardMessages(_)
                | Effect::ForwardPaced { .. }
                | Effect::Reset => {
                    panic!("a stream of HTTP was taken for gRPC")
                }
                Effect::Count(Counter::SpentNotRun) => self.releases -= 1,
                Effect::Count(Counter::Returned) if !stream.may_continue() => self.releases -= 1,
                Effect::Count(_)
                | Effect::Log { .. }
                | Effect::Note(_)
                | Effect::RemoveRequestTrailers => {}
            }
        }
        assert!(known.decisions <= 1);
        assert!(known.decisions == 1 || !stream.may_continue());
        if ends {
            known.over = true;
            self.poller.unwatch(u32::try_from(at).unwrap_or_default());
        }
        self.obey(orders);
    }

    fn obey(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Call(_, errand) => self.calls.push_back(errand),
                Order::Tell(watcher, news) => {
                    let at = usize::try_from(watcher).unwrap_or_default();
                    assert!(!self.streams[at].1.over, "told a stream that has gone");
                    if let News::Released(_) = news {
                        assert!(self.releases > 0, "a release out of nothing");
                    }
                    self.event(at, Event::Watched(news));
                }
                Order::Nobody(release) => {
                    self.for_nobody(approval_request::released_for_nobody(&release));
                }
                Order::Count(_) | Order::Log(..) => {}
            }
        }
    }

    fn filing(&mut self, at: usize, answer: Result<PlaneAnswer, PlaneFault>, forwards: bool) {
        let known = &mut self.streams[at].1;
        if !std::mem::take(&mut known.filing_under_way) {
            return;
        }
        self.releases += i64::from(forwards);
        if known.over {
            self.for_nobody(approval_request::answered_nobody(answer));
        } else {
            self.event(at, Event::PlaneAnswered(answer));
        }
    }

    /// Each release that nobody took is counted, or given back.
    fn for_nobody(&mut self, effects: Vec<Effect>) {
        let ends = |effect: &&Effect| {
            matches!(
                effect,
                Effect::Count(Counter::SpentNotRun | Counter::Returned)
            )
        };
        let ended = effects.iter().filter(ends).count();
        self.releases -= i64::try_from(ended).unwrap_or_default();
    }

    fn poll(&mut self, word: Option<Word>) {
        let Some(errand) = self.calls.pop_front() else {
            return;
        };
        let answer = match (&errand, word) {
            (_, None) => Err(PlaneFault::Unsent),
            (
                Errand::List(_),
                Some(Word {
                    status, approval, ..
                }),
            ) => said(&format!(
                r#"[{{"id":"{}","status":"{status}"}}]"#,
                APPROVALS[approval]
            )),
            (Errand::Claim(id), Some(word)) => {
                if word.forward {
                    self.releases += 1;
                }
                filing_answer(word, id.as_str())
            }
            (Errand::Read(_), Some(_)) => panic!("a poller that claims has read"),
            (Errand::Settle(_), Some(_)) => said("{}"),
        };
        let plane = self.listener.control_plane.clone().expect("a plane");
        let orders = self.poller.answered(&plane, errand, answer, self.now);
        self.obey(orders);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Body(at, chunk, end_of_stream) => self.event(
                at,
                Event::RequestBody {
                    chunk,
                    end_of_stream,
                },
            ),
            Step::Ended(at, never_reached) => self.event(at, Event::StreamEnded { never_reached }),
            Step::Filing(at, word) => {
                let answer = filing_answer(word, APPROVALS[word.approval]);
                self.filing(at, answer, word.forward);
            }
            Step::Garbage(at, body) => {
                self.filing(at, said(&String::from_utf8_lossy(&body)), false);
            }
            Step::PlaneFails(at) => self.filing(at, Err(PlaneFault::Unsent), false),
            Step::Poll(word) => self.poll(Some(word)),
            Step::PollFails => self.poll(None),
            Step::ResponseEnded(at) => self.event(at, Event::ResponseEnded { grpc_status: None }),
            Step::ResponseStarted(at, status) => self.event(
                at,
                Event::ResponseStarted {
                    status,
                    grpc_status: None,
                    is_first_attempt: status % 3 != 0,
                    is_delimited: status % 2 == 0,
                },
            ),
            Step::Time(passed) => {
                self.now += passed;
                let plane = self.listener.control_plane.clone().expect("a plane");
                let orders = self.poller.tick(&plane, self.now);
                self.obey(orders);
            }
            Step::Trailers(at) => self.event(at, Event::RequestTrailers),
            Step::Unreadable(at) => self.event(at, Event::RequestBodyUnreadable),
        }
    }
}

proptest! {
    #[test]
    fn one_decision_and_a_release_only_on_the_planes_word(
        end_of_stream in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(end_of_stream);
        for step in steps {
            world.step(step);
        }
        for at in 0..STREAMS {
            world.event(at, Event::StreamEnded { never_reached: false });
        }
        // Whatever is still under way fails, also when it is tried again; then every release is accounted for and nothing is left.
        for _ in 0..200 {
            while !world.calls.is_empty() {
                world.poll(None);
            }
            let Some(next) = world.poller.next_tick() else { break };
            world.step(Step::Time(next.saturating_sub(world.now)));
        }
        prop_assert_eq!(world.releases, 0);
        prop_assert_eq!(world.poller.waiting(), 0);
        prop_assert_eq!(world.poller.next_tick(), None);
        for (at, (_, known)) in world.streams.iter().enumerate() {
            prop_assert!(known.decisions <= 1, "stream {}", at);
        }
    }

    /// Whatever the target: held, refused, answered or passed, and never a panic.
    #[test]
    fn any_head_is_judged(target in proptest::collection::vec(any::<u8>(), 0..48), method in "[A-Za-z]{0,6}") {
        let headers = [(":method", method.as_bytes()), (":path", target.as_slice())];
        let head = RequestHead::parse(headers.into_iter(), &HeaderNames::default());
        let _ = Stream::open(&listener(), head, true, &NothingKnown);
    }
}
