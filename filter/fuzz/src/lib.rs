//! Fuzz bodies: each takes any bytes and panics where a promise of the gate is broken. Plain functions, so that they
//! always compile and run over the corpus in an ordinary test; `targets/` hands them to libFuzzer.

use std::rc::Rc;

use hoop_filter::approval::ApprovalId;
use hoop_filter::config::{Config, McpConfig};
use hoop_filter::control_plane::{
    Filing, PlaneAnswer, read_approval, read_claim, read_filing, read_list,
};
use hoop_filter::effect::Effect;
use hoop_filter::event::{Event, News, Pace};
use hoop_filter::grpc::{
    Deframer, Descriptors, Encoding, Frame, FrameError, MessageText, json_text, message_text,
};
use hoop_filter::identity::{Headers, NothingKnown, Peer, Surroundings};
use hoop_filter::listener::{Listener, Secrets};
use hoop_filter::mcp::endpoint;
use hoop_filter::policy::{NoMetadata, Policy, Subject, Verdict};
use hoop_filter::request::RequestHead;
use hoop_filter::stream::Stream;

/// A configuration is taken or refused with a place, a problem and a remedy; one that is taken judges a request.
///
/// # Panics
///
/// When a refusal says nothing.
pub fn config(bytes: &[u8]) {
    match Config::parse(bytes) {
        Ok(config) => {
            let listener = Listener::new(config, Secrets::default());
            let headers = [
                (":method", &b"POST"[..]),
                (":path", b"/payments/42"),
                (":authority", b"h"),
            ];
            let head = RequestHead::parse(headers.into_iter(), listener.policy.wanted_headers());
            if let Ok(head) = &head {
                let _ = listener.policy.decide(&Subject {
                    head,
                    body: Some(br#"{"amount":1,"items":[{"Amount":2}]}"#),
                    route: &NoMetadata,
                });
            }
            let _ = Stream::open(&listener, head, true, &NothingKnown);
        }
        Err(error) => assert!(
            !error.problem().is_empty() && !error.hint().is_empty(),
            "{error:?}"
        ),
    }
}

/// Whatever a plane, or somebody in its place, answers: released only with `"forward": true` beside a canonical id.
///
/// # Panics
///
/// When something else released.
pub fn plane_answer(bytes: &[u8]) {
    let answer = json_answer(bytes.to_vec());
    if let Ok(Filing::Released(release)) = read_filing(&answer) {
        let document: serde_json::Value =
            serde_json::from_slice(bytes).expect("a release comes from JSON");
        assert_eq!(document["forward"], true);
        assert_eq!(document["review"]["id"], release.id().as_str());
    }
    let asked = ApprovalId::parse(b"9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b").expect("an id");
    let _ = read_approval(&answer, &asked);
    let _ = read_list(&answer);
    if let Ok(Filing::Released(release)) = read_claim(&answer, &asked) {
        assert_eq!(*release.id(), asked, "released another approval");
    }
}

/// The bytes are a target and, behind the first NUL, a body in two pieces. A POST that passes is not under
/// `/payments` for any plain reader, nothing is forwarded without the plane, and no log line or answer repeats the body.
///
/// # Panics
///
/// When one of these is broken.
pub fn request(bytes: &[u8]) {
    let listener = payments();
    let cut = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let (target, body) = bytes.split_at(cut);
    let headers = [
        (":method", &b"POST"[..]),
        (":path", target),
        (":authority", b"h"),
    ];
    let (mut stream, mut effects) = Stream::open(
        &listener,
        RequestHead::parse(headers.into_iter(), listener.policy.wanted_headers()),
        false,
        &NothingKnown,
    );
    if stream.may_continue() {
        assert!(
            !target.to_ascii_lowercase().starts_with(b"/payments/"),
            "passed: {}",
            target.escape_ascii()
        );
        assert!(
            !target.starts_with(b"/.well-known/hoop/"),
            "passed: {}",
            target.escape_ascii()
        );
        return;
    }
    let (first, second) = body.split_at(body.len() / 2);
    for (chunk, end_of_stream) in [(first, false), (second, true)] {
        effects.extend(stream.handle(
            &listener,
            Event::RequestBody {
                chunk: chunk.to_vec(),
                end_of_stream,
            },
        ));
    }
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Forward(_))),
        "forwarded without the plane"
    );
    assert!(!stream.may_continue(), "went on without the plane");
}

/// The bytes are the values of `mcp-protocol-version`, `mcp-method`, `mcp-name`, `accept` and `content-type`, and a body, with NUL
/// between them. The approval tools answer each request once: at once, or after one read of the one approval that the body names
/// for a reader who takes the last of two keys; a wait asks for it once more and is told in pieces. Each thing that is said is one
/// message on one line, and nothing is filed, claimed or forwarded.
///
/// # Panics
///
/// When one of these is broken.
pub fn mcp_request(bytes: &[u8]) {
    let mut parts = bytes.splitn(6, |byte| *byte == 0);
    let [version, method, name, accept, content_type, body] =
        std::array::from_fn(|_| parts.next().unwrap_or_default());
    let listener = tools();
    let McpConfig::Served(served) = &listener.mcp else {
        panic!("serves no tools");
    };
    let names = [
        ("mcp-protocol-version", version),
        ("mcp-method", method),
        ("mcp-name", name),
        ("accept", accept),
        ("content-type", content_type),
    ];
    let headers = names.into_iter().filter(|(_, value)| !value.is_empty());
    let around = Sent(
        headers
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect(),
    );
    let head = [
        (":method", &b"POST"[..]),
        (":path", b"/mcp"),
        (":authority", b"127.0.0.1:8765"),
    ];
    let head = RequestHead::parse(head.into_iter(), listener.policy.wanted_headers());
    let head = head.expect("a head");
    let (mut endpoint, mut effects) = endpoint::open(&listener, served, &head, false, &around);
    let view = format!(
        r#"{{"id":"{ASKED}","status":"PROCESSING","listener_name":"l","approval_rule":"r","created_at":"2026-09-29T14:02:11Z"}}"#
    );
    let read = || Ok(json_answer(view.clone().into_bytes()));
    let id = ApprovalId::parse(ASKED.as_bytes()).expect("an id");
    let seen = read_approval(&json_answer(view.clone().into_bytes()), &id).map(Rc::new);
    let events = [
        Event::RequestBody {
            chunk: body.to_vec(),
            end_of_stream: true,
        },
        Event::PlaneAnswered(read()),
        Event::Paced(Pace::Piece { now_ms: 1_000 }),
        Event::Paced(Pace::Piece { now_ms: 4_000 }),
        Event::Watched(News::Read {
            read: seen,
            left_ms: 0,
        }),
        Event::Paced(Pace::Piece { now_ms: 5_000 }),
    ];
    let mut said = Vec::new();
    for event in events {
        let has = |wanted: fn(&Effect) -> bool| effects.iter().any(wanted);
        let is_answered = has(|effect| matches!(effect, Effect::Answer(_)));
        let is_watching = has(|effect| matches!(effect, Effect::Watch { .. }));
        let Some(open) = endpoint.filter(|_| !is_answered) else {
            break;
        };
        if matches!(event, Event::Watched(_)) && !is_watching {
            endpoint = Some(open);
            continue;
        }
        let more;
        (endpoint, more) = open.handle(&listener, event);
        effects.extend(more);
    }
    let mut asked = 0;
    for effect in &effects {
        match effect {
            Effect::Answer(answer) => said.push(one_message(&answer.body)),
            Effect::AnswerEnd(event) | Effect::AnswerPiece(event) if event.is_empty() => {}
            Effect::AnswerEnd(event) => said.push(one_message(event)),
            Effect::AnswerPiece(event) => drop(one_message(event)),
            Effect::CallPlane(call) => {
                asked += 1;
                let path = call.headers.iter().find(|(name, _)| *name == ":path");
                let path = path.map(|(_, path)| path.as_str()).unwrap_or_default();
                assert!(call.body.is_none() && is_what_it_asks(body, path), "{path}");
            }
            Effect::AnswerOver
            | Effect::Cancel { .. }
            | Effect::Cancellable { .. }
            | Effect::Count(_)
            | Effect::ForwardPaced { .. }
            | Effect::Log { .. }
            | Effect::Note(_)
            | Effect::Watch { .. } => {}
            Effect::AnswerHead(_)
            | Effect::Forward(_)
            | Effect::ForwardAnswer
            | Effect::ForwardMessages(_)
            | Effect::RemoveRequestTrailers
            | Effect::Reset
            | Effect::Settle { .. } => panic!("not for the approval tools: {effect:?}"),
        }
    }
    // The end of an answer in pieces is said until it is let go.
    said.dedup();
    assert!(asked <= 1 && said.len() == 1, "{asked} {said:?}");
    let [Some(answer)] = said.as_slice() else {
        return;
    };
    if let Some(id) = answer.get("id") {
        let sent: serde_json::Value = serde_json::from_slice(body).expect("an id comes from JSON");
        assert_eq!(Some(id), sent.get("id"), "another id");
    }
}

/// The approval that the plane knows of.
const ASKED: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";

/// A message as it is written, alone or as an event; `None` for an answer that says nothing.
fn one_message(told: &[u8]) -> Option<serde_json::Value> {
    let text = std::str::from_utf8(told).expect("UTF-8");
    let event = text.strip_prefix("event: message\ndata: ");
    let json = event.map_or(text, |data| data.strip_suffix("\n\n").expect("its end"));
    assert!(!json.contains(['\n', '\r']), "more than one line: {json}");
    (!json.is_empty()).then(|| serde_json::from_str(json).expect("JSON"))
}

/// Whether the body, as a reader who takes the last of two keys has it, calls for this read.
fn is_what_it_asks(body: &[u8], path: &str) -> bool {
    let body: serde_json::Value = serde_json::from_slice(body).expect("a read comes from JSON");
    assert_eq!(
        (&body["jsonrpc"], &body["method"]),
        (&"2.0".into(), &"tools/call".into())
    );
    let params = &body["params"];
    let tool = params["name"].as_str().expect("a tool");
    if tool.ends_with("_list") {
        return path.starts_with("/api/sidecars/reviews?limit=");
    }
    let id = params["arguments"]["id"].as_str().expect("an id");
    path == format!("/api/sidecars/reviews/{}", id.to_ascii_lowercase())
}

/// Headers on a route that paces answers.
#[derive(Debug)]
struct Sent(Headers);

impl Surroundings for Sent {
    fn moment_ns(&self) -> u64 {
        7
    }

    fn headers(&self) -> Headers {
        self.0.clone()
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        Some(b"127.0.0.1:8765".to_vec())
    }

    fn route_metadata(&self, _namespace: &str, _key: &str) -> Option<Vec<u8>> {
        Some(b"paced".to_vec())
    }
}

/// The bytes are a query, a header's value, a `content-type` and a body, with NUL between them. Denied by rules on the query
/// parameter `mode`, the header `x-env` and the body's `/amount`, a request that passes has none of them for a reader who
/// decodes once, or takes the last of two keys and knows no letter case; and with a body the answer never depends on it.
///
/// # Panics
///
/// When one of these is broken.
pub fn conditions(bytes: &[u8]) {
    let mut parts = bytes.splitn(4, |byte| *byte == 0);
    let [query, header, content_type, body] =
        std::array::from_fn(|_| parts.next().unwrap_or_default());
    let policy = dangerous();
    let target = [b"/p?", query].concat();
    let headers = [
        (":method", &b"POST"[..]),
        (":path", &target),
        (":authority", b"h"),
        ("x-env", header),
        ("content-type", content_type),
    ];
    let Ok(head) = RequestHead::parse(headers.into_iter(), policy.wanted_headers()) else {
        return;
    };
    let subject = |body| Subject {
        head: &head,
        body,
        route: &NoMetadata,
    };
    let verdict = policy.decide(&subject(Some(body)));
    let early = policy.decide(&subject(None));
    assert!(
        matches!(early, Verdict::NeedsBody { .. }) || early == verdict,
        "the body changed an answer that did not need it"
    );
    match verdict {
        Verdict::NeedsBody { .. } => panic!("asked for a body that is there"),
        Verdict::Pass => {}
        Verdict::Ambiguous { .. } | Verdict::Deny { .. } | Verdict::RequireApproval(_) => return,
    }
    assert!(
        !header.eq_ignore_ascii_case(b"prod"),
        "passed with the header"
    );
    let query = String::from_utf8_lossy(query);
    for piece in query.split(['&', ';']) {
        assert!(
            !matches!(piece, "mode=wipe" | "mode=%77ipe" | "%6dode=wipe"),
            "passed: {query}"
        );
    }
    if let Ok(serde_json::Value::Object(entries)) = serde_json::from_slice(body) {
        for (key, value) in entries {
            let amount = value.as_f64().unwrap_or_default();
            assert!(
                !key.eq_ignore_ascii_case("amount") || amount <= 1_000.0,
                "passed with {amount}"
            );
        }
    }
}

/// The bytes are a gRPC stream, behind one that says where it is cut. Its messages are the same however it is cut; each has a
/// text within its bound, with and without its type, and no two different ones share a text. The bytes are a descriptor
/// set as well, or not.
///
/// # Panics
///
/// When one of these is broken.
pub fn grpc(bytes: &[u8]) {
    const MAX_BYTES: usize = 4_096;
    let (cut, stream) = bytes.split_first().unwrap_or((&0, &[]));
    let cut = usize::from(*cut).min(stream.len());
    let (first, second) = stream.split_at(cut);
    let (frames, error) = read_stream(&[stream], MAX_BYTES);
    assert!(
        (frames.clone(), error) == read_stream(&[first, second], MAX_BYTES),
        "the cut changed the messages"
    );
    let _ = Descriptors::parse(stream);
    let set = include_bytes!("../../tests/grpc/editions.binpb");
    let descriptors = Descriptors::parse(set).expect("a set");
    let descriptor = descriptors.message("test.editions.Message");
    let forms: [Form<'_>; 3] = [
        &|message| message_text(message, descriptor, MAX_BYTES).ok(),
        &|message| message_text(message, None, MAX_BYTES).ok(),
        &|message| json_text(message, MAX_BYTES).ok(),
    ];
    let mut messages = vec![stream.to_vec()];
    for frame in frames {
        for encoding in [Encoding::Deflate, Encoding::Gzip, Encoding::Identity] {
            if let Ok(message) = encoding.message(frame.clone(), MAX_BYTES) {
                assert!(message.len() <= MAX_BYTES);
                messages.push(message);
            }
        }
    }
    messages.sort();
    messages.dedup();
    for form in forms {
        let texts: Vec<MessageText> = messages
            .iter()
            .filter_map(|message| form(message))
            .collect();
        for text in &texts {
            let last = text.text.rsplit('\n').next().unwrap_or_default();
            assert!(text.text.len() <= MAX_BYTES);
            assert!(
                text.is_exact || last.starts_with("sha256:"),
                "unbound: {}",
                text.text
            );
        }
        let mut different: Vec<&str> = texts.iter().map(|text| &*text.text).collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), texts.len(), "two messages share a text");
    }
}

/// One way to write a message as text.
type Form<'f> = &'f dyn Fn(&[u8]) -> Option<MessageText>;

/// The messages of a stream that comes in pieces, and why there are no more.
fn read_stream(pieces: &[&[u8]], max_message_bytes: usize) -> (Vec<Frame>, Option<FrameError>) {
    let mut deframer = Deframer::new(max_message_bytes);
    let mut frames = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            match deframer.read(&mut rest) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, deframer.end().err())
}

fn json_answer(body: Vec<u8>) -> PlaneAnswer {
    let headers = [
        (":status", &b"200"[..]),
        ("content-type", b"application/json"),
    ];
    PlaneAnswer::new(headers.into_iter(), Some(body))
}

fn tools() -> Listener {
    let text = br#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"a"},"mcp":{"path":"/mcp"}}"#;
    Listener::new(Config::parse(text).expect("valid"), Secrets::default())
}

fn dangerous() -> Policy {
    let text = br#"{"listener_name":"l","rules":[
        {"match":{"query":[{"name":"mode","equals":"wipe"}]},"action":"deny"},
        {"match":{"headers":[{"name":"x-env","equals":"prod"}]},"action":"deny"},
        {"match":{"json":[{"pointer":"/amount","greater_than":1000}]},"action":"deny"}]}"#;
    Policy::new(Config::parse(text).expect("valid").rules)
}

fn payments() -> Listener {
    let text = br#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"a"},"approval_mode":"return","redaction_key_env":"K",
        "rules":[{"match":{"methods":["POST"],"paths":["/payments/**"]},"action":"require_approval","approval_rule":"r"}]}"#;
    Listener::new(Config::parse(text).expect("valid"), Secrets::default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    fn over_corpus(name: &str, body: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        let mut inputs = 0;
        for entry in fs::read_dir(&folder).expect("the corpus is there") {
            body(&fs::read(entry.expect("an entry").path()).expect("an input"));
            inputs += 1;
        }
        assert!(inputs > 0, "{} is empty", folder.display());
    }

    #[test]
    fn every_configuration_of_the_corpus_is_taken_or_explained() {
        over_corpus("config", super::config);
    }

    #[test]
    fn no_answer_of_the_corpus_releases_without_saying_so() {
        over_corpus("plane_answer", super::plane_answer);
    }

    #[test]
    fn every_mcp_request_of_the_corpus_is_answered_once() {
        over_corpus("mcp_request", super::mcp_request);
    }

    #[test]
    fn no_dangerous_request_of_the_corpus_passes() {
        over_corpus("conditions", super::conditions);
    }

    #[test]
    fn every_grpc_message_of_the_corpus_has_a_text_of_its_own() {
        over_corpus("grpc", super::grpc);
    }

    #[test]
    fn no_request_of_the_corpus_slips_past_the_gate() {
        over_corpus("request", super::request);
    }
}
