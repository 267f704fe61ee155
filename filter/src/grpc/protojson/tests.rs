//! Messages of known types as text, case by case: the forms of protojson, and what makes a text inexact. The comparison
//! with another implementation is in `tests/grpc_text.rs`.

use prost::Message as _;
use prost::encoding::encode_varint;

use super::super::{Descriptors, MessageText, message_text};

fn descriptors() -> Descriptors {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc");
    let set = protox::compile(["proto2.proto", "proto3.proto"], [folder]).expect("compiles");
    Descriptors::parse(&set.encode_to_vec()).expect("a set")
}

fn text(name: &str, message: &[u8]) -> MessageText {
    let descriptors = descriptors();
    let descriptor = descriptors.message(name).expect(name);
    message_text(message, Some(descriptor), 1 << 16).expect("short")
}

/// A message whose text says all.
fn exact(name: &str, message: &[u8], expected: &str) {
    let text = text(name, message);

    assert_eq!(text.text, expected, "{}", message.escape_ascii());
    assert!(text.is_exact, "{}", message.escape_ascii());
}

/// A message whose text begins like this and ends in the digest.
fn bound(name: &str, message: &[u8], expected: &str) {
    let text = text(name, message);
    let (before, digest) = text.text.rsplit_once("\nsha256:").expect("a digest");

    assert_eq!(before, expected, "{}", message.escape_ascii());
    assert_eq!(digest.len(), 64);
    assert!(!text.is_exact);
}

/// A field with bytes.
fn bytes(number: u8, inside: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(inside.len()).unwrap()];
    field.extend(inside);
    field
}

#[test]
fn scalars_have_the_forms_of_protojson() {
    let message = [
        &b"\x08\x01"[..],
        b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x18\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x20\xff\xff\xff\xff\x0f",
        b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x30\x03",
        b"\x38\x05",
        b"\x45\x04\0\0\0",
        b"\x49\x05\0\0\0\0\0\0\0",
        b"\x55\xff\xff\xff\xff",
        b"\x59\xfe\xff\xff\xff\xff\xff\xff\xff",
        b"\x65\0\0\xc0\x3f",
        b"\x69\0\0\0\0\0\0\xf0\x7f",
        b"\x72\x05a\xe2\x80\xae\x22",
        b"\x7a\x02\x00\xff",
        b"\x80\x01\x01",
        b"\x88\x01\x00",
        b"\x92\x01\x00",
        b"\x98\x01\x07",
    ]
    .concat();

    exact(
        "test.v3.Scalars",
        &message,
        r#"{
  "boolField": true,
  "int32Field": -1,
  "int64Field": "-2",
  "uint32Field": 4294967295,
  "uint64Field": "18446744073709551615",
  "sint32Field": -2,
  "sint64Field": "-3",
  "fixed32Field": 4,
  "fixed64Field": "5",
  "sfixed32Field": -1,
  "sfixed64Field": "-2",
  "floatField": 1.5,
  "doubleField": "Infinity",
  "stringField": "a\u202e\"",
  "bytesField": "AP8=",
  "color": "COLOR_RED",
  "maybeInt": 0,
  "maybeText": "",
  "another name": 7
}"#,
    );
    exact("test.v3.Scalars", b"", "{}");
}

#[test]
fn lists_are_packed_as_declared() {
    exact(
        "test.v3.Lists",
        b"\x0a\x02\x01\x00\x2a\x0c\x01\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x09\x42\x00\x48\x01\x48\x02\x52\x01\x00",
        "{\n  \"bools\": [\n    true,\n    false\n  ],\n  \"colors\": [\n    \"COLOR_RED\",\n    \"COLOR_NEGATIVE\",\n    9\n  ],\n  \"messages\": [\n    {}\n  ],\n  \"unpacked\": [\n    1,\n    2\n  ],\n  \"nulls\": [\n    null\n  ]\n}",
    );
    let one = "{\n  \"bools\": [\n    true\n  ]\n}";
    bound("test.v3.Lists", b"\x08\x01", one);
    bound("test.v3.Lists", b"\x0a\x01\x01\x0a\x00", one);
    bound("test.v3.Lists", b"\x0a\x00", "{}");
    bound(
        "test.v3.Lists",
        b"\x4a\x01\x01",
        "{\n  \"unpacked\": [\n    1\n  ]\n}",
    );
    bound(
        "test.v3.Lists",
        b"\x12\x02\x80\x00",
        "{\n  \"sints\": [\n    \"0\"\n  ]\n}",
    );
}

#[test]
fn maps_stand_in_the_order_of_their_keys() {
    let entries = |keys: &[&[u8]]| {
        let entry = |key: &&[u8]| bytes(1, &[&bytes(1, key)[..], &bytes(2, b"v")].concat());
        keys.iter().flat_map(entry).collect::<Vec<u8>>()
    };
    let two = "{\n  \"texts\": {\n    \"a\": \"v\",\n    \"b\": \"v\"\n  }\n}";

    exact("test.v3.Maps", &entries(&[b"a", b"b"]), two);
    bound("test.v3.Maps", &entries(&[b"b", b"a"]), two);
    bound(
        "test.v3.Maps",
        &[entries(&[b"a"]), bytes(1, b"\x0a\x01a\x12\x01w")].concat(),
        "{\n  \"texts\": {\n    \"a\": \"w\"\n  }\n}\nnot shown above, in texts:\n  1 {\n    1: \"a\"\n    2: \"v\"\n  }",
    );
    // Numbers are ordered as such.
    exact(
        "test.v3.Maps",
        b"\x1a\x04\x08\x09\x12\x00\x1a\x04\x08\x0a\x12\x00\x2a\x04\x08\x01\x10\x01\x2a\x04\x08\x00\x10\x00",
        "{\n  \"blobs\": {\n    \"9\": \"\",\n    \"10\": \"\"\n  },\n  \"colors\": {\n    \"-1\": \"COLOR_RED\",\n    \"0\": \"COLOR_UNSPECIFIED\"\n  }\n}",
    );
    // Some writers leave zeros of entries out.
    bound(
        "test.v3.Maps",
        b"\x0a\x00",
        "{\n  \"texts\": {\n    \"\": \"\"\n  }\n}",
    );
    // A float is no varint.
    bound(
        "test.v3.Maps",
        b"\x12\x06\x08\x01\x12\x02\x60\x01",
        "2 {\n  1: 1\n  2 {\n    12: 1\n  }\n}",
    );
}

#[test]
fn what_could_be_encoded_otherwise_is_bound_by_the_digest() {
    let one = "{\n  \"int32Field\": 1\n}";
    exact("test.v3.Scalars", b"\x10\x01", one);
    bound("test.v3.Scalars", b"\x10\x81\x00", one);
    bound("test.v3.Scalars", b"\x90\x00\x01", one);
    bound("test.v3.Scalars", b"\x08\x00\x10\x01", one);
    bound(
        "test.v3.Scalars",
        b"\x20\x01\x10\x01",
        "{\n  \"int32Field\": 1,\n  \"uint32Field\": 1\n}",
    );
    bound(
        "test.v3.Scalars",
        b"\x65\x01\0\xc0\x7f",
        "{\n  \"floatField\": \"NaN\"\n}",
    );
    exact(
        "test.v3.Scalars",
        b"\x65\0\0\xc0\x7f",
        "{\n  \"floatField\": \"NaN\"\n}",
    );
    bound(
        "test.v3.Scalars",
        b"\x65\0\0\0\x80",
        "{\n  \"floatField\": -0\n}",
    );
    bound("test.v3.Tree", b"\x1a\x02\x0a\x00", "{\n  \"left\": {}\n}");
    bound(
        "test.v3.Tree",
        b"\x1a\x00\x1a\x03\x0a\x01a",
        "{\n  \"left\": {\n    \"name\": \"a\"\n  }\n}",
    );
}

#[test]
fn what_json_does_not_show_stands_behind_it() {
    bound(
        "test.v3.Tree",
        b"\x0a\x01a\x12\x06\x0a\x01b\xa8\x06\x05\xa0\x06\x07",
        "{\n  \"name\": \"a\",\n  \"children\": [\n    {\n      \"name\": \"b\"\n    }\n  ]\n}\nnot shown above, in the message itself:\n  100: 7\nnot shown above, in children[0]:\n  101: 5",
    );
    bound(
        "test.v3.Scalars",
        b"\x10\x01\x10\x02",
        "{\n  \"int32Field\": 2\n}\nnot shown above, in int32Field:\n  2: 1",
    );
    bound(
        "test.v3.Scalars",
        b"\x08\x02\x10\x81\x80\x80\x80\x10\x20\x82\x80\x80\x80\x10\x30\x82\x80\x80\x80\x10",
        "{\n  \"boolField\": true,\n  \"int32Field\": 1,\n  \"uint32Field\": 2,\n  \"sint32Field\": 1\n}\nnot shown above, in boolField:\n  1: 2\nnot shown above, in int32Field:\n  2: 4294967297\nnot shown above, in uint32Field:\n  4: 4294967298\nnot shown above, in sint32Field:\n  6: 4294967298",
    );
}

#[test]
fn what_has_no_protojson_is_shown_by_its_fields() {
    bound("test.v3.Scalars", b"\x72\x01\xff", "14: hex:ff");
    bound("test.v3.Scalars", b"\x12\x01a", "2: \"a\"");
    bound("test.v3.Scalars", b"\x08", "hex:08");
    bound("test.v3.Tree", b"\x20\x01\x2a\x01a", "4: 1\n5: \"a\"");
    bound("test.v3.Lists", b"\x1a\x03\0\0\0", "3: hex:000000");
}

#[test]
fn what_nests_too_deeply_is_shown_by_its_fields() {
    let nested = |levels| {
        let mut message = Vec::new();
        for _ in 1..levels {
            let mut outer = vec![0x1a];
            encode_varint(u64::try_from(message.len()).unwrap(), &mut outer);
            outer.extend(message);
            message = outer;
        }
        text("test.v3.Tree", &message)
    };

    assert!(nested(100).is_exact);
    let deeper = nested(101);
    assert!(!deeper.is_exact);
    assert!(deeper.text.starts_with("3 {\n"), "{}", deeper.text);
}

#[test]
fn proto2_has_presence_groups_and_extensions() {
    exact(
        "test.v2.Legacy",
        b"\x08\x00\x12\x00\x18\x02\x20\x01\x20\x02\x2a\x02\x01\x02\x33\x08\x05\x13\x0a\x01a\x14\x34\x3a\x01\x01\xa2\x06\x01n\xa8\x06\x00\xb0\x06\x01",
        "{\n  \"id\": 0,\n  \"name\": \"\",\n  \"level\": \"HIGH\",\n  \"expanded\": [\n    1,\n    2\n  ],\n  \"packed\": [\n    1,\n    2\n  ],\n  \"inner\": {\n    \"number\": \"5\",\n    \"item\": [\n      {\n        \"text\": \"a\"\n      }\n    ]\n  },\n  \"levels\": [\n    \"LOW\"\n  ],\n  \"[test.v2.note]\": \"n\",\n  \"[test.v2.Legacy.inside]\": 0,\n  \"[test.v2.seen]\": [\n    \"LOW\"\n  ]\n}",
    );
    exact(
        "test.v2.Legacy",
        b"\x49\0\0\0\0\0\0\0\x80",
        "{\n  \"ratio\": -0\n}",
    );
    // To some parsers of closed enums this is an unknown field.
    bound("test.v2.Legacy", b"\x18\x09", "{\n  \"level\": 9\n}");
    bound("test.v2.Legacy", b"\x32\x00", "6: \"\"");
    bound(
        "test.v2.Legacy",
        b"\x42\x03\x0a\x01a",
        "{\n  \"byName\": {\n    \"a\": \"NONE\"\n  }\n}",
    );
    bound("test.v2.Legacy", b"\x33\xb4\x00", "{\n  \"inner\": {}\n}");
}

#[test]
fn well_known_types_have_forms_of_their_own() {
    let one = |field: u8, inside: &[u8], form: &str| {
        let name = [
            "timestamp",
            "duration",
            "mask",
            "structure",
            "value",
            "list",
            "any",
            "empty",
            "boolValue",
            "int32Value",
            "int64Value",
            "uint32Value",
            "uint64Value",
            "floatValue",
            "doubleValue",
        ];
        let name = name[usize::from(field).saturating_sub(1)];
        (
            bytes(field, inside),
            format!("{{\n  \"{name}\": {form}\n}}"),
        )
    };
    let ok = |field, inside: &[u8], form: &str| {
        let (message, text) = one(field, inside, form);
        exact("test.v3.WellKnown", &message, &text);
    };
    let plain = |field, inside: &[u8], form: &str| {
        let (message, text) = one(field, inside, form);
        bound("test.v3.WellKnown", &message, &text);
    };
    ok(1, b"", "\"1970-01-01T00:00:00Z\"");
    ok(
        1,
        b"\x08\x01\x10\x80\xe1\xeb\x17",
        "\"1970-01-01T00:00:01.050Z\"",
    );
    plain(1, b"\x08\x01\x10\x00", "\"1970-01-01T00:00:01Z\"");
    plain(
        1,
        b"\x10\x80\x94\xeb\xdc\x03",
        "{\n    \"nanos\": 1000000000\n  }",
    );
    ok(
        2,
        b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "\"-0.000000001s\"",
    );
    plain(
        2,
        b"\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "{\n    \"seconds\": \"1\",\n    \"nanos\": -1\n  }",
    );
    ok(3, b"\x0a\x05a_b.c\x0a\x01d", "\"aB.c,d\"");
    ok(3, b"", "\"\"");
    plain(
        3,
        b"\x0a\x02aB",
        "{\n    \"paths\": [\n      \"aB\"\n    ]\n  }",
    );
    plain(
        3,
        b"\x0a\x03a_1",
        "{\n    \"paths\": [\n      \"a_1\"\n    ]\n  }",
    );
    plain(
        3,
        b"\x0a\x00",
        "{\n    \"paths\": [\n      \"\"\n    ]\n  }",
    );
    plain(
        3,
        b"\x0a\x03a,b",
        "{\n    \"paths\": [\n      \"a,b\"\n    ]\n  }",
    );
    ok(4, b"", "{}");
    ok(
        4,
        b"\x0a\x07\x0a\x01k\x12\x02\x08\x00",
        "{\n    \"k\": null\n  }",
    );
    ok(5, b"\x08\x00", "null");
    ok(5, b"\x11\0\0\0\0\0\0\xf8\x3f", "1.5");
    ok(5, b"\x1a\x01a", "\"a\"");
    ok(5, b"\x20\x00", "false");
    ok(5, b"\x32\x04\x0a\x02\x20\x01", "[\n    true\n  ]");
    plain(5, b"", "{}");
    plain(5, b"\x08\x01", "{\n    \"nullValue\": 1\n  }");
    plain(
        5,
        b"\x11\0\0\0\0\0\0\xf8\x7f",
        "{\n    \"numberValue\": \"NaN\"\n  }",
    );
    ok(6, b"", "[]");
    ok(7, b"", "{}");
    ok(
        7,
        b"\x0a\x11t/test.v3.Scalars\x12\x02\x08\x01",
        "{\n    \"@type\": \"t/test.v3.Scalars\",\n    \"boolField\": true\n  }",
    );
    ok(
        7,
        b"\x0a\x11t/test.v3.Scalars",
        "{\n    \"@type\": \"t/test.v3.Scalars\"\n  }",
    );
    ok(
        7,
        b"\x0a\x1a/google.protobuf.BoolValue\x12\x02\x08\x01",
        "{\n    \"@type\": \"/google.protobuf.BoolValue\",\n    \"value\": true\n  }",
    );
    plain(
        7,
        b"\x0a\x03t/x\x12\x01a",
        "{\n    \"typeUrl\": \"t/x\",\n    \"value\": \"YQ==\"\n  }",
    );
    plain(
        7,
        b"\x0a\x0ftest.v3.Scalars",
        "{\n    \"typeUrl\": \"test.v3.Scalars\"\n  }",
    );
    plain(
        7,
        b"\x0a\x11t/test.v3.Scalars\x12\x00",
        "{\n    \"@type\": \"t/test.v3.Scalars\"\n  }",
    );
    ok(8, b"", "{}");
    ok(9, b"", "false");
    ok(9, b"\x08\x01", "true");
    plain(9, b"\x08\x00", "false");
    ok(11, b"", "\"0\"");
    ok(15, b"\x09\0\0\0\0\0\0\xf8\x7f", "\"NaN\"");
}

#[test]
fn a_form_is_of_the_bits_that_parsers_keep() {
    bound(
        "test.v3.WellKnown",
        b"\x12\x06\x10\x80\xca\xb5\xee\x11",
        "{\n  \"duration\": \"0.500s\"\n}\nnot shown above, in duration:\n  2: 4794967296",
    );
}

#[test]
fn a_text_of_any_shape_ends_at_its_bound() {
    let descriptors = descriptors();
    let descriptor = descriptors.message("test.v3.Tree").unwrap();
    let message = b"\x0a\x01a\x12\x06\x0a\x01b\xa8\x06\x05\xa0\x06\x07";
    let whole = text("test.v3.Tree", message).text.len();

    for max in 0..whole {
        assert!(
            message_text(message, Some(descriptor), max).is_err(),
            "{max}"
        );
    }
    assert!(message_text(message, Some(descriptor), whole).is_ok());
}
