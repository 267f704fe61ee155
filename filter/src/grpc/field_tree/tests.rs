//! Fields by number as text: each form, the guesses about bytes, and that the bytes can be told from the text.

use proptest::prelude::*;

use super::*;

fn tree(message: &[u8]) -> (String, bool) {
    let mut out = Output::new(1 << 20);
    let is_exact = write(message, &mut out);
    (out.finish().unwrap(), is_exact)
}

fn check(message: &[u8], lines: &[&str]) {
    assert_eq!(
        tree(message),
        (lines.join("\n"), true),
        "{}",
        message.escape_ascii()
    );
}

/// A field with bytes.
fn bytes(number: u8, inside: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(inside.len()).unwrap()];
    field.extend(inside);
    field
}

#[test]
fn each_wire_type_has_its_form() {
    check(b"\x08\x96\x01", &["1: 150"]);
    check(
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        &["1: 18446744073709551615 (-1)"],
    );
    check(&bytes(2, b"text"), &["2: \"text\""]);
    check(b"\x1a\x02\x08\x01", &["3 {", "  1: 1", "}"]);
    check(&bytes(4, b"\x00\xff"), &["4: hex:00ff"]);
    check(b"\x2d\x2a\0\0\0", &["5: 0x0000002a (42)"]);
    check(b"\x2d\xff\xff\xff\xff", &["5: 0xffffffff (-1)"]);
    check(b"\x2d\0\0\xc0\x3f", &["5: 0x3fc00000 (float 1.5)"]);
    check(b"\x31\x2a\0\0\0\0\0\0\0", &["6: 0x000000000000002a (42)"]);
    check(
        b"\x31\0\0\0\0\0\xc0\x62\xc0",
        &["6: 0xc062c00000000000 (double -150)"],
    );
    check(
        b"\x3b\x08\x01\x3c\x3b\x3c",
        &["7 group {", "  1: 1", "}", "7 group {", "}"],
    );
}

#[test]
fn no_bytes_and_no_message_have_forms_too() {
    check(b"", &["empty message"]);
    check(b"\x00", &["hex:00"]);
    check(b"{\"a\":1}", &["hex:7b2261223a317d"]);
    check(b"\x0a\x00", &["1: \"\""]);
}

#[test]
fn fields_stay_in_the_order_of_the_wire() {
    check(b"\x10\x02\x08\x01\x10\x03", &["2: 2", "1: 1", "2: 3"]);
}

#[test]
fn strings_hide_nothing() {
    let table = [
        ("a\"\\b", r#""a\"\\b""#),
        ("\u{5e9}\u{5dc}", "\"\u{5e9}\u{5dc}\""),
        ("\u{915}\u{93f}", "\"\u{915}\u{93f}\""),
        ("e\u{301}", r#""e\u0301""#),
        ("1\u{202e}2\u{2066}", r#""1\u202e2\u2066""#),
        (
            "\u{200b}\u{a0}\u{ad}\u{3164}",
            r#""\u200b\u00a0\u00ad\u3164""#,
        ),
        (
            "\u{e0041}\u{10ffff}\u{1fffe}",
            r#""\udb40\udc41\udbff\udfff\ud83f\udffe""#,
        ),
        ("two\nlines\r\n\tin", r#""two\nlines\r\n\tin""#),
    ];
    for (text, quoted) in table {
        check(&bytes(1, text.as_bytes()), &[&format!("1: {quoted}")]);
    }
}

#[test]
fn bytes_are_text_before_they_are_a_message_unless_control_characters_speak_against_it() {
    // A message with a string of 32 letters begins with a line feed and a space.
    let inside = bytes(1, &[b'a'; 32]);
    check(
        &bytes(1, &inside),
        &["1 {", "  1: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "}"],
    );
    // These would read as fields 4 and 13, and are plain letters.
    check(&bytes(1, b"\x22\x01a"), &["1 {", "  4: \"a\"", "}"]);
    check(&bytes(1, b"h0"), &["1: \"h0\""]);
    check(&bytes(1, b"\x1b[2J"), &["1: hex:1b5b324a"]);
}

#[test]
fn varints_that_are_longer_than_need_be_are_told() {
    for message in [
        &b"\x08\x81\x00"[..],
        b"\x0a\x03\x08\x81\x00",
        b"\x0b\x08\x81\x00\x0c",
    ] {
        assert!(!tree(message).1, "{}", message.escape_ascii());
    }
    // In bytes that are shown by their digits nothing is lost.
    assert!(tree(b"\x0a\x04\x08\x81\x00\x07").1);
}

#[test]
fn what_nests_too_deeply_is_shown_as_bytes() {
    let mut message = b"\x08\x01".to_vec();
    for _ in 0..120 {
        let mut outer = vec![0x0a];
        let mut length = message.len();
        while length > 0x7f {
            outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        outer.push(u8::try_from(length).unwrap());
        outer.extend(message);
        message = outer;
    }

    let (text, is_exact) = tree(&message);

    assert!(is_exact);
    assert_eq!(
        text.lines().filter(|line| line.ends_with("1 {")).count(),
        99
    );
    assert!(text.contains("1: hex:0a"), "{text}");
}

/// Reads a tree back into the message.
fn parse(text: &str) -> Vec<u8> {
    if text == EMPTY {
        return vec![];
    }
    if let Some(digits) = text.strip_prefix("hex:") {
        return unhex(digits);
    }
    let mut lines = text.lines();
    let message = parse_fields(&mut lines);
    assert_eq!(lines.next(), None, "behind a closing bracket");
    message
}

fn parse_fields(lines: &mut std::str::Lines<'_>) -> Vec<u8> {
    let mut message = Vec::new();
    while let Some(line) = lines.next().map(str::trim_start) {
        if line == "}" {
            break;
        }
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at(digits);
        let number: u64 = number.parse().unwrap();
        let mut put = |wire_type, value: &[u8]| {
            varint(number << 3 | wire_type, &mut message);
            if wire_type == 2 {
                varint(u64::try_from(value.len()).unwrap(), &mut message);
            }
            message.extend(value);
        };
        let end_of_word = |word: &str| word.split(' ').next().unwrap().to_owned();
        if rest == " {" {
            put(2, &parse_fields(lines));
        } else if rest == " group {" {
            put(3, &parse_fields(lines));
            put(4, b"");
        } else if let Some(digits) = rest.strip_prefix(": hex:") {
            put(2, &unhex(digits));
        } else if let Some(digits) = rest.strip_prefix(": 0x") {
            let mut value = unhex(&end_of_word(digits));
            value.reverse();
            put(if value.len() == 4 { 5 } else { 1 }, &value);
        } else if let Some(quoted) = rest.strip_prefix(": ").filter(|rest| rest.starts_with('"')) {
            let text: String = serde_json::from_str(quoted).unwrap();
            put(2, text.as_bytes());
        } else {
            let mut value = Vec::new();
            let digits = rest.strip_prefix(": ").unwrap();
            varint(end_of_word(digits).parse().unwrap(), &mut value);
            put(0, &value);
        }
    }
    message
}

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
}

fn unhex(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Bytes that are a message more often than not.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let tag = |wire_type: u8| (1_u8..16).prop_map(move |number| vec![number << 3 | wire_type]);
    let leaf = prop_oneof![
        (tag(0), any::<u64>(), 0_u32..64).prop_map(|(mut field, value, shift)| {
            varint(value >> shift, &mut field);
            field
        }),
        (tag(5), any::<[u8; 4]>()).prop_map(|(field, value)| [&field[..], &value].concat()),
        (tag(1), any::<[u8; 8]>()).prop_map(|(field, value)| [&field[..], &value].concat()),
        (1_u8..16, "\\PC{0,9}").prop_map(|(number, text)| bytes(number, text.as_bytes())),
        (1_u8..16, any::<[u8; 3]>()).prop_map(|(number, value)| bytes(number, &value)),
        proptest::collection::vec(any::<u8>(), 0..3),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|fields| fields.concat()),
            (1_u8..16, inner.clone())
                .prop_filter("short", |(_, inside)| inside.len() < 128)
                .prop_map(|(number, inside)| bytes(number, &inside)),
            (1_u8..16, inner).prop_map(|(number, inside)| {
                [&[number << 3 | 3][..], &inside, &[number << 3 | 4]].concat()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn the_bytes_of_an_exact_text_can_be_read_from_it(message in messages()) {
        let (text, is_exact) = tree(&message);

        prop_assert!(!text.is_empty() && !text.ends_with('\n'));
        prop_assert!(!text.lines().any(|line| line.starts_with("sha256:")));
        let read = parse(&text);
        prop_assert_eq!(read == message, is_exact, "{}", text);
        prop_assert!(is_exact || read.len() < message.len());
    }

    #[test]
    fn any_bytes_have_a_text(message in proptest::collection::vec(any::<u8>(), 0..64)) {
        let (text, is_exact) = tree(&message);

        prop_assert_eq!(parse(&text) == message, is_exact);
    }
}
