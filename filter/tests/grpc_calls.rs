//! Any gRPC call, however it is cut and whatever the plane says: each message is filed once and in order, nothing goes on whose
//! release is not there, and each release ends in a message that went on or in one that is accounted for.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test, outside the wall around the filter"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hoop_filter::approval_request;
use hoop_filter::config::Config;
use hoop_filter::control_plane::{PlaneAnswer, PlaneFault};
use hoop_filter::effect::Effect;
use hoop_filter::event::Event;
use hoop_filter::identity::NothingKnown;
use hoop_filter::listener::{Listener, Secrets};
use hoop_filter::metrics::Counter;
use hoop_filter::request::RequestHead;
use hoop_filter::stream::Stream;
use proptest::prelude::*;
use proptest::sample::Index;

/// What the plane says to a filing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Released, and spent with it.
    Spent,
    /// Released, and to be settled.
    InFlight,
    Pending,
    Garbage,
    Failed,
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        6 => Just(Word::Spent),
        6 => Just(Word::InFlight),
        1 => Just(Word::Pending),
        1 => Just(Word::Garbage),
        1 => Just(Word::Failed),
    ]
}

fn listener(keys: &str) -> Listener {
    let text = format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a"}},"approval_mode":"return",{keys}
        "rules":[{{"match":{{"grpc":["p.S/*"]}},"action":"require_approval","approval_rule":"r"}}]}}"#
    );
    let config = Config::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    Listener::new(config, Secrets::default())
}

/// One call and what is known of it.
struct Call {
    listener: Listener,
    stream: Stream,
    /// Statements that were filed.
    filed: Vec<String>,
    /// Filings that were not answered.
    asked: usize,
    released: usize,
    forwarded: usize,
    accounted: usize,
    /// Whether it was refused.
    refused: bool,
    removes_trailers: bool,
    /// Whether the host has forgotten it.
    is_over: bool,
}

impl Call {
    fn open(listener: Listener) -> Self {
        let headers = [
            (":method", &b"POST"[..]),
            (":path", b"/p.S/M"),
            (":authority", b"h"),
            ("content-type", b"application/grpc+proto"),
        ];
        let head = RequestHead::parse(headers.into_iter(), listener.policy.wanted_headers());
        let (stream, effects) = Stream::open(&listener, head, false, &NothingKnown);
        let mut call = Self {
            listener,
            stream,
            filed: Vec::new(),
            asked: 0,
            released: 0,
            forwarded: 0,
            accounted: 0,
            refused: false,
            removes_trailers: false,
            is_over: false,
        };
        call.take(effects);
        call
    }

    fn handle(&mut self, event: Event) {
        let effects = self.stream.handle(&self.listener, event);
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        let was_refused = self.refused;
        for effect in effects {
            match effect {
                Effect::Answer(answer) => {
                    assert!(!was_refused, "refused twice");
                    assert_eq!(answer.status, 403);
                    self.refused = true;
                }
                Effect::AnswerEnd(_)
                | Effect::Cancel { .. }
                | Effect::Cancellable { .. }
                | Effect::AnswerHead(_)
                | Effect::AnswerOver
                | Effect::AnswerPiece(_)
                | Effect::ForwardAnswer
                | Effect::ForwardPaced { .. }
                | Effect::Reset => panic!("nothing was answered"),
                Effect::ForwardMessages(releases) => {
                    assert!(!self.refused);
                    self.forwarded += releases.len();
                }
                Effect::Forward(_) => self.forwarded += 1,
                Effect::CallPlane(call) => {
                    let body = call.body.expect("a filing has a body");
                    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
                    let payload = body["payload"].as_str().expect("a payload").to_owned();
                    let payload = STANDARD.decode(payload).expect("base64");
                    self.filed.push(String::from_utf8(payload).expect("text"));
                    self.asked += 1;
                }
                Effect::Count(Counter::SpentNotRun | Counter::Returned) => self.accounted += 1,
                Effect::RemoveRequestTrailers => self.removes_trailers = true,
                Effect::Count(_)
                | Effect::Log { .. }
                | Effect::Note(_)
                | Effect::Settle { .. }
                | Effect::Watch { .. } => {}
            }
        }
    }

    fn answer(&mut self, word: Word) {
        if self.asked == 0 {
            return;
        }
        self.asked -= 1;
        let id = format!("9f97a1b2-0c3d-4e5f-8a9b-{:012}", self.filed.len());
        let said = |forward: bool, status: &str| {
            let body = format!(
                r#"{{"forward":{forward},"release_id":"r","review":{{"id":"{id}","status":"{status}"}}}}"#
            );
            let headers = [
                (":status", &b"200"[..]),
                ("content-type", b"application/json"),
            ];
            Ok(PlaneAnswer::new(
                headers.into_iter(),
                Some(body.into_bytes()),
            ))
        };
        self.released += usize::from(matches!(word, Word::Spent | Word::InFlight));
        let answer = match word {
            Word::Spent => said(true, "EXECUTED"),
            Word::InFlight => said(true, "PROCESSING"),
            Word::Pending => said(false, "PENDING"),
            Word::Garbage => Ok(PlaneAnswer::new(
                [(":status", &b"200"[..])].into_iter(),
                Some(b"}{".to_vec()),
            )),
            Word::Failed => Err(PlaneFault::Unsent),
        };
        if self.is_over {
            self.take(approval_request::answered_nobody(answer));
        } else {
            self.handle(Event::PlaneAnswered(answer));
        }
    }
}

fn message(text: &str) -> Vec<u8> {
    let mut message = vec![0x0a, u8::try_from(text.len()).expect("short")];
    message.extend_from_slice(text.as_bytes());
    message
}

fn statement(text: &str) -> String {
    format!("/p.S/M\n1: \"{text}\"")
}

fn stream_of(texts: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        let message = message(text);
        bytes.push(0);
        bytes.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
        bytes.extend(message);
    }
    bytes
}

/// The stream cut at these places.
fn pieces(bytes: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.push(0);
    places.push(bytes.len());
    places.sort_unstable();
    let pairs = places.windows(2);
    pairs.map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

/// How many messages are whole in so many bytes.
fn whole(texts: &[String], bytes: usize) -> usize {
    let ends = (1..=texts.len()).map(|count| stream_of(&texts[..count]).len());
    ends.filter(|end| *end <= bytes).count()
}

proptest! {
    #[test]
    fn each_message_is_filed_once_and_goes_on_only_when_released(
        texts in proptest::collection::vec("[a-z]{1,6}", 0..6),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
        words in proptest::collection::vec(word(), 24),
        answers_late in any::<bool>(),
        by_trailers in any::<bool>(),
        leaves_after in proptest::option::of(0_usize..12),
    ) {
        let bytes = stream_of(&texts);
        let mut call = Call::open(listener(""));
        let mut words = words.into_iter();
        let mut seen = 0;
        let mut left = false;
        for (at, piece) in pieces(&bytes, &cuts).into_iter().enumerate() {
            if leaves_after == Some(at) {
                left = true;
                break;
            }
            seen += piece.len();
            call.handle(Event::RequestBody { chunk: piece, end_of_stream: false });
            while !answers_late && call.asked > 0 {
                call.answer(words.next().unwrap_or(Word::Spent));
            }
            if call.stream.may_continue() {
                prop_assert_eq!(call.forwarded, whole(&texts, seen), "more or less went on than was released");
                prop_assert_eq!(stream_of(&texts[..call.forwarded]).len(), seen, "a part of a message went on");
            }
        }
        if !left && !call.refused {
            call.handle(if by_trailers {
                Event::RequestTrailers
            } else {
                Event::RequestBody { chunk: Vec::new(), end_of_stream: true }
            });
            prop_assert!(!by_trailers || call.removes_trailers);
            while call.asked > 0 {
                call.answer(words.next().unwrap_or(Word::Spent));
            }
        }
        let mut expected: Vec<String> = texts.iter().map(|text| statement(text)).collect();
        if texts.is_empty() {
            expected.push("/p.S/M".to_owned());
        }
        prop_assert!(expected.starts_with(&call.filed), "{:?}", call.filed);
        if !left && !call.refused {
            prop_assert_eq!(&call.filed, &expected);
            prop_assert_eq!(call.forwarded, expected.len());
            prop_assert!(call.stream.may_continue());
        }
        call.handle(Event::StreamEnded { never_reached: false });
        call.is_over = true;
        while call.asked > 0 {
            call.answer(Word::Spent);
        }
        prop_assert_eq!(call.released, call.forwarded + call.accounted, "a release got lost");
    }

    #[test]
    fn a_call_that_is_held_whole_has_one_message_or_is_refused(
        texts in proptest::collection::vec("[a-z]{1,6}", 0..4),
        cuts in proptest::collection::vec(any::<Index>(), 0..6),
    ) {
        let bytes = stream_of(&texts);
        let mut call = Call::open(listener(r#""grpc":{"streaming":"deny"},"#));
        let pieces = pieces(&bytes, &cuts);
        let last = pieces.len() - 1;
        for (at, chunk) in pieces.into_iter().enumerate() {
            prop_assert!(!call.stream.may_continue());
            call.handle(Event::RequestBody { chunk, end_of_stream: at == last });
        }
        prop_assert_eq!(call.refused, texts.len() > 1);
        call.answer(Word::Spent);
        prop_assert_eq!(call.forwarded, usize::from(texts.len() <= 1));
        prop_assert_eq!(call.stream.may_continue(), texts.len() <= 1);
    }

    #[test]
    fn any_bytes_are_judged(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..24), 0..6)) {
        let mut call = Call::open(listener(r#""max_body_bytes":64,"#));
        for chunk in chunks {
            call.handle(Event::RequestBody { chunk, end_of_stream: false });
            while call.asked > 0 {
                call.answer(Word::Spent);
            }
        }
        call.handle(Event::RequestBody { chunk: Vec::new(), end_of_stream: true });
    }
}
