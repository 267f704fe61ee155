//! The text of gRPC messages against another implementation of protobuf and its JSON, `prost-reflect`: the same JSON for
//! any message, bytes that follow from a text that says so, and no text for two messages.

#![expect(
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "helpers of tests, and maps as prost-reflect wants them"
)]

#[path = "grpc_text/canonical.rs"]
mod canonical;
#[path = "grpc_text/random.rs"]
mod random;

use std::sync::LazyLock;

use hoop_filter::grpc::{Descriptors, MessageText, json_text, message_text};
use proptest::prelude::*;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::Value;

use canonical::canonical;
use random::{Choices, message};

struct Schema {
    ours: Descriptors,
    theirs: DescriptorPool,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc");
    let mut compiler = protox::Compiler::new([folder]).expect("a folder");
    compiler.include_imports(true);
    compiler
        .open_files(["proto2.proto", "proto3.proto"])
        .expect("compiles");
    let set = compiler.encode_file_descriptor_set();
    Schema {
        ours: Descriptors::parse(&set).expect("a set"),
        theirs: DescriptorPool::decode(&*set).expect("a set"),
    }
});

const TYPES: [&str; 6] = [
    "test.v3.Tree",
    "test.v3.Scalars",
    "test.v3.Lists",
    "test.v3.Maps",
    "test.v3.WellKnown",
    "test.v2.Legacy",
];

const MAX_TEXT_BYTES: usize = 1 << 22;

fn theirs(name: &str) -> MessageDescriptor {
    SCHEMA.theirs.get_message_by_name(name).expect(name)
}

fn text(name: &str, message: &[u8]) -> MessageText {
    message_text(message, SCHEMA.ours.message(name), MAX_TEXT_BYTES).expect("short")
}

/// The JSON at the front of a text, if it has any: an inexact one may be a field tree.
fn json_of(text: &MessageText) -> Option<Value> {
    if !text.text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(&text.text).into_iter();
    Some(values.next().expect("JSON").expect("JSON"))
}

/// As `prost-reflect` writes it, numbers read back from their digits.
fn their_json(message: &DynamicMessage) -> Option<Value> {
    let text = serde_json::to_string(message).ok()?;
    Some(serde_json::from_str(&text).expect("JSON"))
}

/// Whether two texts say the same; `1` and `1.0` do.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| is_same(left, right)))
        }
        _ => left == right,
    }
}

/// The one message that an exact text stands for, by their reader; `None` for an `Any` of nothing, `{}`, which it does not take.
fn read_back(name: &str, text: &MessageText) -> Option<Vec<u8>> {
    let mut reader = serde_json::Deserializer::from_str(&text.text);
    let message = match DynamicMessage::deserialize(theirs(name), &mut reader) {
        Err(fault) if fault.to_string().starts_with("expected '@type' field") => return None,
        message => message.expect("protojson"),
    };
    reader.end().expect("nothing behind it");
    Some(canonical(&message))
}

/// What must hold of any bytes.
fn check_bytes(name: &str, bytes: &[u8]) -> Result<MessageText, TestCaseError> {
    let ours = text(name, bytes);
    let last = ours.text.rsplit('\n').next().unwrap_or_default();
    prop_assert_eq!(last.starts_with("sha256:"), !ours.is_exact);
    if ours.is_exact
        && let Some(read_back) = read_back(name, &ours)
    {
        prop_assert_eq!(read_back, bytes, "{}", ours.text);
    }
    Ok(ours)
}

/// What must hold of the bytes of a message of that type as well. Of what merely looks like one, readers make different things: ours
/// shows a moment of too many nanoseconds or a path with a comma as it stands.
fn check(name: &str, bytes: &[u8]) -> Result<MessageText, TestCaseError> {
    let ours = check_bytes(name, bytes)?;
    let decoded = DynamicMessage::decode(theirs(name), bytes);
    if let (Some(json), Ok(decoded)) = (json_of(&ours), decoded)
        && let Some(theirs) = their_json(&decoded)
        && !is_known_difference(&theirs)
    {
        prop_assert!(is_same(&json, &theirs), "{}\n{}", ours.text, theirs);
    }
    Ok(ours)
}

/// `prost-reflect` writes a `Value` without a kind, or with a number that JSON does not have, as null; so does it with
/// such a number in a wrapper. Null of that kind cannot be told from others, so messages with a null prove nothing. And it
/// takes any text for a path of a field mask.
fn is_known_difference(json: &Value) -> bool {
    match json {
        Value::Null => true,
        Value::Array(items) => items.iter().any(is_known_difference),
        Value::Object(members) => members.iter().any(|(key, value)| {
            let is_path = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b',');
            let is_odd = |mask: &str| !mask.bytes().all(is_path);
            key == "mask" && value.as_str().is_some_and(is_odd) || is_known_difference(value)
        }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn types() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&TYPES[..])
}

/// Bytes with a few changes, each of a kind that a hostile writer would try.
fn changed(mut bytes: Vec<u8>, changes: &[(u8, prop::sample::Index, u8)]) -> Vec<u8> {
    for (kind, place, byte) in changes {
        let at = place.index(bytes.len().saturating_add(1));
        match kind % 6 {
            0 => bytes.insert(at, *byte),
            1 if at < bytes.len() => bytes[at] = *byte,
            2 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
            3 if at < bytes.len() => {
                bytes.remove(at);
            }
            4 => bytes.extend_from_within(at..),
            5 => bytes.rotate_left(at),
            _ => {}
        }
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    proptest::collection::vec(
        (any::<u8>(), any::<prop::sample::Index>(), any::<u8>()),
        0..4,
    )
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    /// The way back is checked as well: exact means that the bytes follow.
    #[test]
    fn the_canonical_encoding_of_any_message_has_an_exact_text(name in types(), choices in choices()) {
        let random = message(&theirs(name), &mut Choices::new(choices), 6);
        let bytes = canonical(&random);

        let ours = check(name, &bytes)?;

        match their_json(&random) {
            Some(theirs) => {
                prop_assert!(ours.is_exact, "{}", ours.text);
                let json = json_of(&ours).expect("JSON");
                prop_assert!(is_same(&json, &theirs), "{}\n{}", ours.text, theirs);
            }
            // What they cannot say, such as a moment in the year 10000.
            None => prop_assert!(!ours.is_exact, "{}", ours.text),
        }
    }

    /// Written by `prost`, which leaves the zeros of map entries out and orders them at random.
    #[test]
    fn any_other_encoding_of_a_message_has_the_same_json(name in types(), choices in choices()) {
        let random = message(&theirs(name), &mut Choices::new(choices), 6);
        let ours = check(name, &canonical(&random))?;

        let other = prost::Message::encode_to_vec(&random);
        let second = check(name, &other)?;

        prop_assert_eq!(json_of(&second), json_of(&ours));
    }

    #[test]
    fn messages_that_were_tampered_with_are_never_taken_for_others(
        name in types(), choices in choices(), changes in changes(),
    ) {
        let random = message(&theirs(name), &mut Choices::new(choices), 5);
        let bytes = canonical(&random);
        let tampered = changed(bytes.clone(), &changes);

        let (left, right) = (check(name, &bytes)?, check_bytes(name, &tampered)?);

        prop_assert_eq!(left == right, bytes == tampered);
        let tree = |bytes| message_text(bytes, None, MAX_TEXT_BYTES).expect("short");
        prop_assert_eq!(tree(&bytes) == tree(&tampered), bytes == tampered);
        let json = |bytes| json_text(bytes, MAX_TEXT_BYTES).expect("short");
        prop_assert_eq!(json(&bytes) == json(&tampered), bytes == tampered);
    }

    #[test]
    fn any_bytes_have_a_text_within_its_bound(
        name in types(), bytes in proptest::collection::vec(any::<u8>(), 0..48), max in 0_usize..400,
    ) {
        check_bytes(name, &bytes)?;
        for descriptor in [None, SCHEMA.ours.message(name)] {
            if let Ok(text) = message_text(&bytes, descriptor, max) {
                prop_assert!(text.text.len() <= max);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_descriptor_set_or_an_error(changes in changes()) {
        let set = include_bytes!("grpc/editions.binpb");
        let tampered = changed(set.to_vec(), &changes);

        match Descriptors::parse(&tampered) {
            Ok(descriptors) => {
                let _ = message_text(b"\x08\x01", descriptors.message("test.editions.Message"), 99);
            }
            Err(error) => prop_assert!(error.to_string().contains("; hint: ")),
        }
    }
}
