//! Many waits of one VM over one poller and one plane that may be slow, silent or wrong: each is answered once, before what its host
//! paces is at an end, with a status that the plane has told; progress rises, and nothing is asked any more when all is said.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test, outside the wall around the filter"
)]

use hoop_filter::config::Config;
use hoop_filter::control_plane::{PlaneAnswer, PlaneFault};
use hoop_filter::effect::Effect;
use hoop_filter::event::{Event, Pace};
use hoop_filter::identity::{Headers, Peer, Surroundings};
use hoop_filter::listener::{Listener, Secrets};
use hoop_filter::poller::{Asks, Errand, Order, Poller};
use hoop_filter::request::{HeaderNames, RequestHead};
use hoop_filter::stream::Stream;
use proptest::collection::vec;
use proptest::prelude::*;

const APPROVALS: [&str; 3] = [
    "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b",
    "00000000-0000-4000-8000-000000000001",
    "00000000-0000-4000-8000-000000000002",
];

/// A route that paces answers.
#[derive(Debug)]
struct Paced;

impl Surroundings for Paced {
    fn moment_ns(&self) -> u64 {
        7
    }

    fn headers(&self) -> Headers {
        vec![("content-type".to_owned(), b"application/json".to_vec())]
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        None
    }

    fn route_metadata(&self, _namespace: &str, _key: &str) -> Option<Vec<u8>> {
        Some(b"paced".to_vec())
    }
}

/// One wait that is to come.
#[derive(Clone, Copy, Debug)]
struct Planned {
    at_ms: u64,
    approval: usize,
    seconds: u64,
    is_paced: bool,
    /// When its client gives it up.
    leaves_after_ms: Option<u64>,
}

/// How the plane is.
#[derive(Clone, Copy, Debug)]
struct Plane {
    latency_ms: u64,
    /// When each approval is decided.
    decided_at_ms: [u64; 3],
    /// Which approvals its list shows; where it has none, it has no list.
    shows: [bool; 3],
    /// Each so many calls fail; 0 for none.
    fails_each: usize,
}

/// What a call was for.
enum Call {
    Poller(Errand),
    Stream(usize),
}

struct Waiting {
    stream: Stream,
    planned: Planned,
    began_ms: u64,
    /// What the host paces; `None` for an answer at its end.
    paced_ms: Option<u64>,
    progress: f64,
    answered: Option<serde_json::Value>,
    is_gone: bool,
}

struct World {
    listener: Listener,
    poller: Poller,
    plane: Plane,
    now: u64,
    waits: Vec<Waiting>,
    under_way: Vec<(u64, Call)>,
    calls: usize,
    lists: usize,
}

impl World {
    fn new(plane: Plane, interval_ms: u64) -> Self {
        let text = format!(
            r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a","timeout_ms":3000}},"poll_interval_ms":{interval_ms},"mcp":{{"path":"/mcp"}}}}"#
        );
        let config = Config::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        Self {
            listener: Listener::new(config, Secrets::default()),
            poller: Poller::new(interval_ms, Asks::Reads),
            plane,
            now: 0,
            waits: Vec::new(),
            under_way: Vec::new(),
            calls: 0,
            lists: 0,
        }
    }

    fn begin(&mut self, planned: Planned) {
        let head = [
            (":method", &b"POST"[..]),
            (":path", b"/mcp"),
            (":authority", b"h"),
        ];
        let head = RequestHead::parse(head.into_iter(), &HeaderNames::default());
        let (stream, _) = Stream::open(&self.listener, head, false, &Paced);
        self.waits.push(Waiting {
            stream,
            planned,
            began_ms: self.now,
            paced_ms: None,
            progress: 0.0,
            answered: None,
            is_gone: false,
        });
        let meta = if planned.is_paced {
            r#","_meta":{"progressToken":1}"#
        } else {
            ""
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"approval_wait","arguments":{{"id":"{}","timeout_seconds":{}}}{meta}}}}}"#,
            APPROVALS[planned.approval], planned.seconds
        );
        let at = self.waits.len().saturating_sub(1);
        self.event(
            at,
            Event::RequestBody {
                chunk: body.into_bytes(),
                end_of_stream: true,
            },
        );
    }

    fn event(&mut self, at: usize, event: Event) {
        let effects = self.waits[at].stream.handle(&self.listener, event);
        let answer_at = self.now.saturating_add(self.plane.latency_ms);
        for effect in effects {
            let wait = &mut self.waits[at];
            match effect {
                Effect::Answer(answer) => {
                    assert!(
                        wait.answered.is_none() && wait.paced_ms.is_none(),
                        "a second answer"
                    );
                    wait.answered = Some(serde_json::from_slice(&answer.body).expect("JSON"));
                }
                Effect::AnswerEnd(bytes) => {
                    assert!(wait.answered.is_none(), "a second end");
                    wait.answered = Some(data(&bytes));
                }
                Effect::AnswerPiece(bytes) if bytes.is_empty() => {}
                Effect::AnswerPiece(bytes) => {
                    let progress = data(&bytes)["params"]["progress"]
                        .as_f64()
                        .expect("progress");
                    assert!(
                        progress >= wait.progress + 2.0,
                        "{progress} after {}",
                        wait.progress
                    );
                    wait.progress = progress;
                }
                Effect::ForwardPaced { bytes } => {
                    let kibibytes = u64::try_from(bytes / 1_024).expect("fits");
                    let lasts_ms = kibibytes.saturating_mul(1_000);
                    let since_it_began = self.now.saturating_sub(wait.began_ms);
                    wait.paced_ms = Some(since_it_began.saturating_add(lasts_ms));
                    let head = wait
                        .stream
                        .handle(&self.listener, Event::Paced(Pace::Head { is_paced: true }));
                    assert!(matches!(head.as_slice(), [Effect::AnswerHead(_)]));
                }
                Effect::CallPlane(_) => self.under_way.push((answer_at, Call::Stream(at))),
                Effect::Watch {
                    id,
                    budget_ms,
                    settles_later,
                } => {
                    let watcher = u32::try_from(at).expect("fits");
                    self.poller
                        .watch(watcher, id, budget_ms, settles_later, self.now);
                }
                Effect::AnswerHead(_)
                | Effect::AnswerOver
                | Effect::Cancellable { .. }
                | Effect::Count(_)
                | Effect::Log { .. }
                | Effect::Note(_) => {}
                Effect::Forward(_)
                | Effect::Cancel { .. }
                | Effect::ForwardAnswer
                | Effect::ForwardMessages(_)
                | Effect::RemoveRequestTrailers
                | Effect::Reset
                | Effect::Settle { .. } => panic!("not for a wait: {effect:?}"),
            }
        }
    }

    fn obey(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Call(call, errand) => {
                    assert!(call.body.is_none(), "only reads");
                    self.lists = self
                        .lists
                        .saturating_add(usize::from(matches!(errand, Errand::List(_))));
                    let at = self.now.saturating_add(self.plane.latency_ms);
                    self.under_way.push((at, Call::Poller(errand)));
                }
                Order::Tell(watcher, news) => {
                    let at = usize::try_from(watcher).expect("fits");
                    assert!(!self.waits[at].is_gone, "told somebody who has gone");
                    self.event(at, Event::Watched(news));
                }
                Order::Nobody(_) => panic!("a release"),
                Order::Count(_) | Order::Log(..) => {}
            }
        }
    }

    /// The plane tells how things stood when it was asked.
    fn view(&self, approval: usize) -> String {
        let asked_at = self.now.saturating_sub(self.plane.latency_ms);
        let is_decided = self.plane.decided_at_ms[approval] <= asked_at;
        let status = if is_decided { "APPROVED" } else { "PENDING" };
        format!(
            r#"{{"id":"{}","status":"{status}","listener_name":"l","approval_rule":"r","created_at":"2026-09-29T14:02:11Z"}}"#,
            APPROVALS[approval]
        )
    }

    fn answer(&mut self, call: Call) {
        self.calls = self.calls.saturating_add(1);
        let fails = self.calls.checked_rem(self.plane.fails_each) == Some(0);
        let of = |id: &str| {
            APPROVALS
                .iter()
                .position(|known| *known == id)
                .expect("known")
        };
        let said = |status: &str, body: String| {
            let headers = [
                (":status", status.as_bytes()),
                ("content-type", b"application/json"),
            ];
            Ok(PlaneAnswer::new(
                headers.into_iter(),
                Some(body.into_bytes()),
            ))
        };
        let answer = match &call {
            _ if fails => Err(PlaneFault::NoAnswer),
            Call::Stream(at) => said("200", self.view(self.waits[*at].planned.approval)),
            Call::Poller(Errand::Read(id)) => said("200", self.view(of(id.as_str()))),
            Call::Poller(Errand::List(_)) if self.plane.shows == [false; 3] => {
                said("404", String::new())
            }
            Call::Poller(Errand::List(shown)) => {
                let views = (0..3)
                    .filter(|at| self.plane.shows[*at])
                    .map(|at| self.view(at));
                let word = shown.map_or("", |shown| shown.word());
                let views: Vec<String> = views.filter(|view| view.contains(word)).collect();
                said("200", format!("[{}]", views.join(",")))
            }
            Call::Poller(Errand::Claim(_) | Errand::Settle(_)) => panic!("only reads"),
        };
        match call {
            Call::Stream(at) if self.waits[at].is_gone => {}
            Call::Stream(at) => self.event(at, Event::PlaneAnswered(answer)),
            Call::Poller(errand) => {
                let plane = self.listener.control_plane.clone().expect("a plane");
                let orders = self.poller.answered(&plane, errand, answer, self.now);
                self.obey(orders);
            }
        }
    }

    /// Whatever is due by now.
    fn turn(&mut self) {
        let calls = std::mem::take(&mut self.under_way).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = calls.partition(|(at, _)| *at <= self.now);
        self.under_way = later;
        for (_, call) in due {
            self.answer(call);
        }
        if self.poller.next_tick().is_some_and(|at| at <= self.now) {
            let plane = self.listener.control_plane.clone().expect("a plane");
            let orders = self.poller.tick(&plane, self.now);
            self.obey(orders);
        }
        for at in 0..self.waits.len() {
            let wait = &self.waits[at];
            if wait.is_gone || wait.answered.is_some() {
                continue;
            }
            let passed = self.now.saturating_sub(wait.began_ms);
            if wait
                .planned
                .leaves_after_ms
                .is_some_and(|after| after <= passed)
            {
                self.event(
                    at,
                    Event::StreamEnded {
                        never_reached: false,
                    },
                );
                self.waits[at].is_gone = true;
                self.poller.unwatch(u32::try_from(at).expect("fits"));
            } else if let Some(paced_ms) = wait.paced_ms {
                assert!(passed < paced_ms, "nothing left to pace after {passed}");
                self.event(at, Event::Paced(Pace::Piece { now_ms: self.now }));
            }
        }
    }
}

/// The message of one event.
fn data(event: &[u8]) -> serde_json::Value {
    let text = std::str::from_utf8(event).expect("UTF-8");
    let data = text
        .strip_prefix("event: message\ndata: ")
        .expect("an event");
    serde_json::from_str(data).expect("JSON")
}

fn planned() -> impl Strategy<Value = Planned> {
    let leaves = prop_oneof![4 => Just(None), 1 => (0_u64..20_000).prop_map(Some)];
    let seconds = prop_oneof![Just(2_u64), 2_u64..30];
    (0_u64..10_000, 0..3_usize, seconds, any::<bool>(), leaves).prop_map(
        |(at_ms, approval, seconds, is_paced, leaves_after_ms)| Planned {
            at_ms,
            approval,
            seconds,
            is_paced,
            leaves_after_ms,
        },
    )
}

fn plane() -> impl Strategy<Value = Plane> {
    let latency = prop_oneof![Just(1_u64), 1_u64..2_999];
    let fails = prop_oneof![3 => Just(0_usize), 1 => 1..9_usize];
    (
        latency,
        [0_u64..60_000, 0_u64..60_000, 0_u64..60_000],
        any::<[bool; 3]>(),
        fails,
    )
        .prop_map(|(latency_ms, decided_at_ms, shows, fails_each)| Plane {
            latency_ms,
            decided_at_ms,
            shows,
            fails_each,
        })
}

proptest! {
    #[test]
    fn every_wait_is_answered_once_and_in_time(
        mut planned in vec(planned(), 1..8),
        plane in plane(),
        interval_ms in prop_oneof![Just(1_000_u64), 100..5_000_u64],
    ) {
        planned.sort_by_key(|wait| wait.at_ms);
        let mut world = World::new(plane, interval_ms);
        let mut planned = planned.into_iter().peekable();
        for now in (0..60_000).step_by(50) {
            world.now = now;
            while let Some(next) = planned.next_if(|next| next.at_ms <= now) {
                world.begin(next);
            }
            world.turn();
        }
        prop_assert_eq!((world.poller.waiting(), world.poller.next_tick()), (0, None));
        prop_assert!(world.lists <= 60_000_usize.div_ceil(usize::try_from(interval_ms).expect("fits")), "{} lists", world.lists);
        for wait in &world.waits {
            let Some(answer) = &wait.answered else {
                prop_assert!(wait.is_gone, "never answered: {:?}", wait.planned);
                continue;
            };
            let told = &answer["result"]["structuredContent"];
            if answer["result"]["isError"] == true {
                prop_assert!(plane.fails_each > 0, "failed without a cause: {}", answer);
                continue;
            }
            let is_decided = plane.decided_at_ms[wait.planned.approval];
            let waited_ms = told["waited_seconds"].as_u64().expect("seconds").saturating_mul(1_000);
            prop_assert_eq!(&told["timed_out"], &serde_json::json!(told["status"] == "PENDING"));
            if told["timed_out"] == true {
                prop_assert_eq!(waited_ms, wait.planned.seconds.saturating_mul(1_000));
                // It was looked at no more than two seconds, and an answer, before its end.
                let end = wait.began_ms.saturating_add(plane.latency_ms).saturating_add(waited_ms);
                prop_assert!(is_decided.saturating_add(2_100) > end, "decided at {}, over at {}", is_decided, end);
            }
        }
    }
}
