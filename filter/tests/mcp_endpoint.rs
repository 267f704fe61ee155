//! Any request to the approval tools and any order of events: no panic, at most one answer, one read at most before it and no watch
//! after it, and never a filing, a claim or a forwarding. An id comes back as it came, and a frame that could be read in two
//! ways is refused.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test, outside the wall around the filter"
)]

use std::rc::Rc;

use hoop_filter::approval::ApprovalId;
use hoop_filter::config::Config;
use hoop_filter::control_plane::{Credential, PlaneAnswer, PlaneFault, read_approval};
use hoop_filter::effect::Effect;
use hoop_filter::event::{Event, News, Pace};
use hoop_filter::identity::{Headers, Peer, Surroundings};
use hoop_filter::listener::{Listener, Secrets};
use hoop_filter::request::{HeaderNames, RequestHead};
use hoop_filter::stream::Stream;
use proptest::collection::vec;
use proptest::prelude::*;

const A: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";
const B: &str = "00000000-0000-4000-8000-000000000001";
const TOKEN: &str = "hsc_secret";
const PLANE: &str = "plane.internal:8009";

/// What the host knows of a request.
#[derive(Clone, Debug)]
struct Around {
    headers: Headers,
    is_paced: bool,
}

impl Surroundings for Around {
    fn moment_ns(&self) -> u64 {
        7
    }

    fn headers(&self) -> Headers {
        self.headers.clone()
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        Some(b"127.0.0.1:8765".to_vec())
    }

    fn route_metadata(&self, _namespace: &str, _key: &str) -> Option<Vec<u8>> {
        self.is_paced.then(|| b"paced".to_vec())
    }
}

impl Around {
    fn plain() -> Self {
        Self {
            headers: vec![header("content-type", "application/json")],
            is_paced: false,
        }
    }
}

fn header(name: &str, value: &str) -> (String, Vec<u8>) {
    (name.to_owned(), value.as_bytes().to_vec())
}

fn listener() -> Listener {
    let text = format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"{PLANE}"}},"max_body_bytes":2000,"mcp":{{"path":"/mcp"}}}}"#
    );
    let secrets = Secrets {
        credential: Credential::parse(TOKEN).ok(),
        redaction_key: None,
    };
    Listener::new(Config::parse(text.as_bytes()).expect("valid"), secrets)
}

/// Something that may happen to the stream.
#[derive(Clone, Debug)]
enum Step {
    Head(bool),
    LetGo,
    News(usize, u64),
    NotChecked,
    Piece(u64),
    PlaneFails,
    PlaneSays(u16, Vec<u8>),
    PlaneTells(usize),
    Trailers,
    Unreadable,
}

const STATUSES: [&str; 5] = ["PENDING", "PROCESSING", "APPROVED", "REJECTED", "FOO"];

fn step() -> impl Strategy<Value = Step> {
    let status = || 0..STATUSES.len();
    prop_oneof![
        1 => any::<bool>().prop_map(Step::Head),
        1 => Just(Step::LetGo),
        1 => (status(), 0..70_000_u64).prop_map(|(status, left)| Step::News(status, left)),
        1 => Just(Step::NotChecked),
        4 => (0..5_000_u64).prop_map(Step::Piece),
        1 => Just(Step::PlaneFails),
        1 => (any::<u16>(), vec(any::<u8>(), 0..8)).prop_map(|(status, body)| Step::PlaneSays(status, body)),
        4 => status().prop_map(Step::PlaneTells),
        1 => Just(Step::Trailers),
        1 => Just(Step::Unreadable),
    ]
}

fn view(status: usize) -> String {
    format!(
        r#"{{"id":"{A}","status":"{}","listener_name":"l","approval_rule":"r","created_at":"2026-09-29T14:02:11Z","rejection_reason":"a\nb"}}"#,
        STATUSES[status]
    )
}

fn said(status: &str, body: &[u8]) -> PlaneAnswer {
    let headers = [
        (":status", status.as_bytes()),
        ("content-type", b"application/json"),
    ];
    PlaneAnswer::new(headers.into_iter(), Some(body.to_vec()))
}

/// One stream, and what it has done.
struct World {
    listener: Listener,
    stream: Stream,
    calls: Vec<String>,
    is_asked: bool,
    is_watching: bool,
    answer: Option<(u16, Vec<u8>)>,
    /// The last piece of an answer in pieces.
    end: Option<Vec<u8>>,
    is_over: bool,
    now: u64,
}

impl World {
    fn open(head: &[(&str, &[u8])], around: Around, end_of_stream: bool) -> Self {
        let listener = listener();
        let head = RequestHead::parse(head.iter().copied(), &HeaderNames::default());
        let around: &'static Around = Box::leak(Box::new(around));
        let (stream, effects) = Stream::open(&listener, head, end_of_stream, around);
        let mut world = Self {
            listener,
            stream,
            calls: Vec::new(),
            is_asked: false,
            is_watching: false,
            answer: None,
            end: None,
            is_over: false,
            now: 0,
        };
        world.carry_out(effects);
        world
    }

    /// A whole request that no rule of the transport stands against.
    fn post(body: &[u8], around: Around) -> Self {
        let head: [(&str, &[u8]); 3] = [
            (":method", b"POST"),
            (":path", b"/mcp"),
            (":authority", b"127.0.0.1:8765"),
        ];
        let mut world = Self::open(&head, around, false);
        world.body(body, true);
        world
    }

    fn body(&mut self, chunk: &[u8], end_of_stream: bool) {
        self.event(Event::RequestBody {
            chunk: chunk.to_vec(),
            end_of_stream,
        });
    }

    fn event(&mut self, event: Event) {
        let effects = self.stream.handle(&self.listener, event);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let is_done = self.answer.is_some() || self.is_over;
            match effect {
                Effect::Answer(answer) => {
                    assert!(!is_done && self.end.is_none(), "a second answer");
                    keeps_secrets(&answer.body);
                    is_message(&answer.body, answer.header("content-type"));
                    self.answer = Some((answer.status, answer.body));
                }
                Effect::AnswerEnd(bytes) => {
                    assert!(!is_done, "an end behind the end");
                    keeps_secrets(&bytes);
                    is_message(&bytes, Some("text/event-stream"));
                    assert!(
                        self.end.as_ref().is_none_or(|end| *end == bytes),
                        "another end"
                    );
                    self.end = Some(bytes);
                }
                Effect::AnswerPiece(bytes) => {
                    if !bytes.is_empty() {
                        assert!(!is_done && self.end.is_none(), "a piece behind the end");
                        is_message(&bytes, Some("text/event-stream"));
                    }
                }
                Effect::AnswerOver => assert!(self.end.is_some(), "over before its end"),
                Effect::AnswerHead(_) => assert!(!is_done && self.stream.is_paced()),
                Effect::CallPlane(call) => {
                    assert!(!is_done && self.calls.is_empty(), "a second call");
                    let value = |wanted: &str| {
                        let found = call.headers.iter().find(|(name, _)| *name == wanted);
                        found.map(|(_, value)| value.clone()).unwrap_or_default()
                    };
                    assert_eq!((value(":method").as_str(), &call.body), ("GET", &None));
                    self.calls.push(value(":path"));
                    self.is_asked = true;
                }
                Effect::Watch {
                    id, settles_later, ..
                } => {
                    assert!(
                        !is_done && self.end.is_none() && !self.is_watching,
                        "watches on"
                    );
                    assert!(!settles_later && self.calls[0].ends_with(id.as_str()));
                    self.is_watching = true;
                }
                Effect::ForwardPaced { bytes } => {
                    assert!(!is_done && self.stream.is_paced() && bytes < 400_000);
                }
                Effect::Cancel { .. } => assert!(!is_done && self.calls.is_empty()),
                Effect::Cancellable { .. } => assert!(!is_done && !self.is_watching),
                Effect::Reset => self.is_over = true,
                Effect::Count(_) | Effect::Log { .. } | Effect::Note(_) => {}
                Effect::Forward(_)
                | Effect::ForwardAnswer
                | Effect::ForwardMessages(_)
                | Effect::RemoveRequestTrailers
                | Effect::Settle { .. } => panic!("the endpoint forwards nothing: {effect:?}"),
            }
        }
        assert!(!self.stream.may_continue() || self.stream.is_paced());
        assert!(self.answer.is_none() || !self.stream.may_continue());
    }

    /// Calls are answered once, and whoever watches is told once; all else may come at any time.
    fn step(&mut self, step: Step) {
        match step {
            Step::Head(is_paced) => {
                // Of an answer that is not paced a driver does not tell.
                if self.end.is_none() && self.stream.is_paced() {
                    self.event(Event::Paced(Pace::Head { is_paced }));
                }
            }
            Step::LetGo => {
                if self.end.is_some() {
                    self.event(Event::Paced(Pace::LetGo));
                    self.event(Event::Paced(Pace::Piece { now_ms: self.now }));
                    assert!(self.is_over, "goes on though it was let go");
                }
            }
            Step::News(status, left_ms) => {
                if std::mem::take(&mut self.is_watching) {
                    let id = ApprovalId::parse_canonical(A).expect("an id");
                    let read = read_approval(&said("200", view(status).as_bytes()), &id);
                    let read = read.map(Rc::new);
                    self.event(Event::Watched(News::Read { read, left_ms }));
                    self.is_watching = false;
                }
            }
            Step::NotChecked => {
                if std::mem::take(&mut self.is_watching) {
                    self.event(Event::Watched(News::NotChecked));
                }
            }
            Step::Piece(passed) => {
                self.now = self.now.saturating_add(passed);
                self.event(Event::Paced(Pace::Piece { now_ms: self.now }));
            }
            Step::PlaneFails => self.plane(Err(PlaneFault::NoAnswer)),
            Step::PlaneSays(status, body) => self.plane(Ok(said(&status.to_string(), &body))),
            Step::PlaneTells(status) => {
                let is_list = self.calls.first().is_some_and(|path| path.contains('?'));
                let view = view(status);
                let body = if is_list { format!("[{view}]") } else { view };
                self.plane(Ok(said("200", body.as_bytes())));
            }
            Step::Trailers => self.event(Event::RequestTrailers),
            Step::Unreadable => self.event(Event::RequestBodyUnreadable),
        }
    }

    fn plane(&mut self, answer: Result<PlaneAnswer, PlaneFault>) {
        if std::mem::take(&mut self.is_asked) {
            self.event(Event::PlaneAnswered(answer));
        }
    }
}

fn keeps_secrets(told: &[u8]) {
    let told = String::from_utf8_lossy(told);
    assert!(!told.contains(TOKEN) && !told.contains(PLANE), "{told}");
}

/// Whatever is said is one message of JSON-RPC, on one line.
fn is_message(told: &[u8], content_type: Option<&str>) {
    let text = std::str::from_utf8(told).expect("UTF-8");
    let json = match content_type {
        None => {
            assert_eq!(text, "");
            return;
        }
        Some("application/json") => text,
        Some("text/event-stream") => text
            .strip_prefix("event: message\ndata: ")
            .and_then(|rest| rest.strip_suffix("\n\n"))
            .expect("an event"),
        Some(other) => panic!("an answer of type {other}"),
    };
    assert!(!json.contains(['\n', '\r']), "{json}");
    let message: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(message["jsonrpc"], "2.0");
    let id = message.get("id");
    assert!(
        id.is_none_or(|id| id.is_string() || id.is_number()),
        "{json}"
    );
}

/// Headers that matter, with values that matter or any.
fn headers() -> impl Strategy<Value = Headers> {
    let names = prop_oneof![
        Just("accept"),
        Just("content-encoding"),
        Just("content-length"),
        Just("content-type"),
        Just("mcp-method"),
        Just("mcp-name"),
        Just("mcp-protocol-version"),
        Just("origin"),
        Just("sec-fetch-site"),
        Just("traceparent"),
    ];
    let known = prop_oneof![
        Just("2025-06-18"),
        Just("2026-07-28"),
        Just("=?base64?dG9vbHMvY2FsbA==?="),
        Just("application/json"),
        Just("approval_wait"),
        Just("http://127.0.0.1:8765"),
        Just("none"),
        Just("text/event-stream"),
        Just("tools/call"),
    ];
    let known = known.prop_map(|value| value.as_bytes().to_vec());
    let values = prop_oneof![3 => known, 1 => vec(any::<u8>(), 0..12)];
    let all = vec((names, values), 0..6);
    (all, prop::bool::weighted(0.9)).prop_map(|(headers, is_json)| {
        let mut all: Headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        if is_json {
            all.retain(|(name, _)| name != "content-type");
            all.push(header("content-type", "application/json"));
        }
        all
    })
}

/// A call of a tool as text, with what may be odd in it.
fn frame() -> impl Strategy<Value = String> {
    let methods = prop_oneof![8 => Just("tools/call"), 1 => Just("tools/list"), 1 => Just("initialize"), 1 => Just("server/discover"), 1 => Just("ping")];
    let tools = prop_oneof![
        2 => Just("approval_status"),
        3 => Just("approval_wait"),
        2 => Just("review_list"),
        1 => Just("approval_claim"),
    ];
    let arguments = prop_oneof![
        4 => Just(format!(r#"{{"id":"{A}"}}"#)),
        1 => Just("{}".to_owned()),
        1 => Just(r#"{"limit":1e300,"status":"pending"}"#.to_owned()),
        1 => Just(format!(r#"{{"id":"{A}","timeout_seconds":-1e300}}"#)),
        1 => Just(r#"{"id":"\ud800"}"#.to_owned()),
    ];
    let metas = prop_oneof![
        2 => Just(r#"{"progressToken":0}"#),
        1 => Just(r#"{"progressToken":"\u0000\n"}"#),
        1 => Just("{}"),
        1 => Just("7"),
        2 => Just(r#"{"progressToken":1.0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#),
    ];
    (id_token(), methods, tools, arguments, metas).prop_map(|(id, method, tool, arguments, meta)| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
        )
    })
}

/// A number or a text, in any spelling that JSON has for it.
fn id_token() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        4 => any::<char>().prop_filter_map("needs an escape", |letter| {
            (letter >= ' ' && letter != '"' && letter != '\\').then(|| letter.to_string())
        }),
        1 => "\\\\u[0-9a-cA-C][0-9a-fA-F]{3}",
        1 => r#"\\["\\/bfnrt]"#,
        1 => Just(r"\ud83d\ude00".to_owned()),
    ];
    let text = vec(letter, 0..8).prop_map(|letters| format!("\"{}\"", letters.concat()));
    let number = "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?";
    prop_oneof![text, number]
}

proptest! {
    /// Bytes, headers and events of any kind.
    #[test]
    fn any_request_in_any_order_is_answered_once(
        method in prop_oneof![6 => Just("POST".to_owned()), 1 => "[A-Z]{1,6}"],
        target in prop_oneof![6 => Just("/mcp".to_owned()), 1 => "/[a-z./%;?]{0,8}"],
        headers in headers(),
        is_paced in any::<bool>(),
        body in prop_oneof![4 => frame().prop_map(String::into_bytes), 1 => vec(any::<u8>(), 0..64)],
        cuts in vec(0..100_usize, 0..4),
        end in prop_oneof![5 => Just(true), 1 => Just(false)],
        steps in vec(step(), 0..24),
    ) {
        let head: [(&str, &[u8]); 3] = [
            (":method", method.as_bytes()),
            (":path", target.as_bytes()),
            (":authority", b"127.0.0.1:8765"),
        ];
        let mut world = World::open(&head, Around { headers, is_paced }, false);
        let mut rest = body.as_slice();
        for cut in cuts {
            let (chunk, behind) = rest.split_at(cut.min(rest.len()));
            world.body(chunk, false);
            rest = behind;
        }
        world.body(rest, end);
        if !end {
            world.event(Event::RequestTrailers);
        }
        prop_assert!(world.answer.is_some() || !world.calls.is_empty(), "a whole request without an answer or a read");
        for step in steps {
            world.step(step);
        }
        // Whatever is still to come comes.
        world.plane(Err(PlaneFault::NoAnswer));
        world.step(Step::NotChecked);
        world.event(Event::Paced(Pace::Piece { now_ms: world.now }));
        prop_assert!(world.answer.is_some() || world.end.is_some() || world.is_over, "no answer");
        world.event(Event::StreamEnded { never_reached: false });
    }

    #[test]
    fn an_id_comes_back_token_for_token(token in id_token(), method in prop_oneof![Just("ping"), Just("x"), Just("tools/list"), Just("tools/call")]) {
        let body = format!(r#"{{"id": {token} ,"method":"{method}","jsonrpc":"2.0"}}"#);

        let world = World::post(body.as_bytes(), Around::plain());

        let (status, answer) = world.answer.expect("an answer");
        let answer = String::from_utf8(answer).expect("UTF-8");
        prop_assert_eq!(status, 200);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{token},""#);
        prop_assert!(answer.starts_with(&expected), "{} answered with {}", body, answer);
    }

    /// One change to a plain call, of the kinds that make two readers see two calls.
    #[test]
    fn a_frame_that_is_changed_is_refused_or_means_the_same(
        key in 0..KEYS.len(),
        change in 0..CHANGES,
        letter in 0..16_usize,
        is_before in any::<bool>(),
    ) {
        let (name, value, other) = KEYS[key];
        let changed = look_alike(name, letter, change);
        let plain = format!(r#""{name}":{value}"#);
        let (first, second) = if is_before { (other, value) } else { (value, other) };
        let put = match change {
            // Only spelled otherwise.
            0..LOOK_ALIKES => format!(r#""{changed}":{value}"#),
            // Beside another spelling of itself.
            LOOK_ALIKES..TWICE => {
                let changed = look_alike(name, letter, change.saturating_sub(LOOK_ALIKES));
                let (one, two) = if is_before { (changed.as_str(), name) } else { (name, changed.as_str()) };
                format!(r#""{one}":{first},"{two}":{second}"#)
            }
            _ => format!(r#""{name}":{first},"{name}":{second}"#),
        };
        let frame = FRAME.replace("$A", A);
        let (plain, put) = (plain.replace("$A", A), put.replace("$A", A).replace("$B", B));
        prop_assert_eq!(frame.matches(&plain).count(), 1, "{} in {}", plain, frame);
        let body = frame.replace(&plain, &put);

        let world = World::post(body.as_bytes(), Around::plain());

        let is_same = world.calls == [format!("/api/sidecars/reviews/{A}")];
        prop_assert!(is_same || world.calls.is_empty(), "{} asks {:?}", body, world.calls);
        prop_assert!(is_same || world.answer.is_some());
        // Two members of one meaning never pass.
        prop_assert!(change < LOOK_ALIKES || !is_same || name == "progressToken", "passed: {}", body);
    }

    #[test]
    fn a_batch_is_refused_whatever_is_in_it(space in "[ \\t\\r\\n]{0,3}", frames in vec(frame(), 0..3), is_cut in any::<bool>()) {
        let end = if is_cut { "" } else { "]" };
        let body = format!("{space}[{}{end}", frames.join(","));

        let world = World::post(body.as_bytes(), Around::plain());

        let (status, answer) = world.answer.expect("an answer");
        let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
        prop_assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(-32_600)));
        prop_assert_eq!(answer.get("id"), None);
    }
}

const FRAME: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"approval_status","arguments":{"id":"$A"},"_meta":{"progressToken":1}}}"#;

/// Each member of the frame: its name, its value, and another value.
const KEYS: [(&str, &str, &str); 9] = [
    ("jsonrpc", r#""2.0""#, r#""1.0""#),
    ("id", "7", "8"),
    ("method", r#""tools/call""#, r#""tools/list""#),
    (
        "params",
        r#"{"name":"approval_status","arguments":{"id":"$A"},"_meta":{"progressToken":1}}"#,
        r#"{"name":"approval_status","arguments":{"id":"$B"}}"#,
    ),
    ("name", r#""approval_status""#, r#""approval_list""#),
    ("arguments", r#"{"id":"$A"}"#, r#"{"id":"$B"}"#),
    ("id", r#""$A""#, r#""$B""#),
    ("_meta", r#"{"progressToken":1}"#, "{}"),
    ("progressToken", "1", "2"),
];

/// How many spellings there are, how many changes put one beside the name, and one for the name twice.
const LOOK_ALIKES: usize = 4;
const TWICE: usize = LOOK_ALIKES + LOOK_ALIKES;
const CHANGES: usize = TWICE + 1;

/// Another spelling of a name: a letter in the other case, an escape, a letter that folds to it, or a NUL behind it.
fn look_alike(name: &str, letter: usize, kind: usize) -> String {
    let at = letter.checked_rem(name.len()).unwrap_or_default();
    let (before, rest) = name.split_at(at);
    let (letter, behind) = rest.split_at(1);
    let other = match kind {
        0 => {
            let upper = letter.to_ascii_uppercase();
            if upper == letter {
                letter.to_ascii_lowercase()
            } else {
                upper
            }
        }
        1 => format!("\\u{:04x}", letter.as_bytes()[0]),
        2 => match letter {
            "s" => "\u{17f}".to_owned(),
            "k" => "\u{212a}".to_owned(),
            "i" => "\u{131}".to_owned(),
            _ => letter.to_ascii_uppercase(),
        },
        _ => return format!("{name}\\u0000"),
    };
    format!("{before}{other}{behind}")
}
