//! Tables of texts and what pointers find in them; and, for any text, agreement with the other strict reader.

use proptest::prelude::*;

use super::*;
use crate::json::pointer::Pointer;

fn find<'t>(text: &'t str, pointers: &[&str]) -> Result<Vec<Found<'t>>, NotStrict> {
    let mut set = Pointers::default();
    for pointer in pointers {
        set.add(&Pointer::parse(pointer).expect(pointer));
    }
    select(text.as_bytes(), &set)
}

fn one<'t>(text: &'t str, pointer: &str) -> Found<'t> {
    find(text, &[pointer]).expect(text).remove(0)
}

fn text(value: &str) -> Found<'_> {
    Found::Text(value.into())
}

fn number(token: &str) -> Found<'_> {
    Found::Number(Decimal::parse(token).expect(token))
}

#[test]
fn ok_values_of_every_kind() {
    let document = r#" {"a":{"b":[10,{"c":"x\u00e9\n\ud83d\ude00"},null]},"t":true,"":-0.50,"m~n":false,"x/y":9007199254740993,"0":1} "#;
    for (pointer, value) in [
        ("", Found::Composite),
        ("/a", Found::Composite),
        ("/a/b", Found::Composite),
        ("/a/b/0", number("10")),
        ("/a/b/1/c", text("xé\n😀")),
        ("/a/b/2", Found::Null),
        ("/t", Found::Bool(true)),
        ("/", number("-0.5")),
        ("/m~0n", Found::Bool(false)),
        ("/x~1y", number("9007199254740993")),
        ("/0", number("1")),
        ("/a/b/3", Found::Absent),
        ("/a/b/-", Found::Absent),
        ("/a/b/00", Found::Absent),
        ("/t/x", Found::Absent),
        ("/q", Found::Absent),
    ] {
        assert_eq!(one(document, pointer), value, "{pointer}");
    }
    assert_eq!(one("\t5\r\n", ""), number("5"));
    assert_eq!(one(r#""""#, ""), text(""));
    assert_eq!(one(r#"{"\u0061":1}"#, "/a"), number("1"));
}

#[test]
fn ok_many_pointers_at_once() {
    let found = find(
        r#"{"a":{"b":1,"c":[2]},"d":3}"#,
        &["/a/b", "/d", "/a/c/0", "/a", "/x"],
    );

    assert_eq!(
        found,
        Ok(vec![
            number("1"),
            number("3"),
            number("2"),
            Found::Composite,
            Found::Absent
        ])
    );
}

#[test]
fn a_name_in_another_letter_case_is_doubtful() {
    for (document, pointer) in [
        (r#"{"Amount":5}"#, "/amount"),
        (r#"{"amount":1,"Amount":5}"#, "/amount"),
        (r#"{"AMOUNT":5,"amount":1}"#, "/amount"),
        (r#"{"pa\u017fs":5}"#, "/pass"),
        (r#"{"A":{"b":1}}"#, "/a/b"),
        (r#"{"a":{"b":1},"A":{}}"#, "/a/b"),
        (r#"[{"K":1}]"#, "/0/k"),
        // Readers in C end a name at a NUL.
        (r#"{"amount":1,"amount\u0000":5}"#, "/amount"),
        (r#"{"amount":1,"amount\u0000x":5}"#, "/amount"),
        (r#"{"AMOUNT\u0000x":5}"#, "/amount"),
        (r#"{"a\u0000":{"b":1}}"#, "/a/b"),
    ] {
        assert_eq!(one(document, pointer), Found::Ambiguous, "{document}");
    }
    // A collision beside the way that a pointer takes says nothing about it.
    assert_eq!(
        one(r#"{"amount":1,"x":1,"X":2,"y":{"Amount":3}}"#, "/amount"),
        number("1")
    );
    assert_eq!(
        find(r#"{"a":1}"#, &["/a", "/A"]),
        Ok(vec![number("1"), Found::Ambiguous])
    );
}

#[test]
fn a_member_of_what_is_a_list_is_doubtful() {
    for (document, pointer) in [
        (r#"[{"amount":5}]"#, "/amount"),
        (r#"{"order":[{"amount":5}]}"#, "/order/amount"),
        (r#"[[{"a":{"b":1}}]]"#, "/0/a/b"),
        (r#"{"a":[1,{}]}"#, "/a/+1"),
        (r#"[[]]"#, "/"),
    ] {
        assert_eq!(one(document, pointer), Found::Ambiguous, "{document}");
    }
    for (document, pointer) in [
        (r#"{"items":{"amount":5}}"#, "/items/0/amount"),
        (r#"{"items":{"amount":5}}"#, "/items/0"),
        (r#"{"items":5}"#, "/items/0"),
        (r#"{"items":"a"}"#, "/items/0"),
        (r#"{"a":5}"#, "/0/a"),
    ] {
        assert_eq!(one(document, pointer), Found::Ambiguous, "{document}");
    }
    for (document, pointer) in [
        (r#"{"items":{"amount":5}}"#, "/items/1/amount"),
        (r#"{"items":{}}"#, "/items/0/amount"),
        (r#"{"items":null}"#, "/items/0"),
        (r#"{"items":[]}"#, "/items/0"),
    ] {
        assert_eq!(one(document, pointer), Found::Absent, "{document}");
    }
    assert_eq!(one(r#"{"a":{"0":{"b":1}}}"#, "/a/0/b"), number("1"));
    for document in [
        "[]",
        "[1]",
        r#"["amount"]"#,
        r#"{"amount2":[{"amount":1}]}"#,
    ] {
        assert_eq!(one(document, "/amount"), Found::Absent, "{document}");
    }
    assert_eq!(
        find(r#"{"a":[{"b":1}],"b":2}"#, &["/a/b", "/a/0/b", "/b"]),
        Ok(vec![Found::Ambiguous, number("1"), number("2")])
    );
}

#[test]
fn err_what_two_readers_may_read_in_two_ways() {
    for document in [
        "",
        " ",
        "nul",
        "nulll",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "1 1",
        "{}{}",
        "01",
        "1.",
        "+1",
        ".5",
        "1e",
        "--1",
        "NaN",
        "Infinity",
        "\"a",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\u{feff}{}",
        "// c\n{}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"x\":[{\"b\":1,\"c\":2,\"b\":3}]}",
        "{\"a\":1,\"A\":2,\"a\":3}",
        "True",
        "{\"__proto__\":{\"a\":5}}",
        "{\"a\":1,\"x\":[{\"\\u005f_proto__\":{\"a\":5}}]}",
    ] {
        assert_eq!(find(document, &["/a"]), Err(NotStrict), "{document}");
    }
    assert_eq!(select(b"\"\xff\"", &Pointers::default()), Err(NotStrict));
    let at_the_bound = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(find(&at_the_bound(limits::JSON_DEPTH), &[]).is_ok());
    assert!(find(&at_the_bound(limits::JSON_DEPTH + 1), &[]).is_err());
    assert!(find(&"[".repeat(200_000), &["/0/0/0"]).is_err());
}

#[test]
fn many_keys_and_long_numbers_cost_no_more_than_their_length() {
    let keys: Vec<String> = (0..50_000).map(|key| format!("\"k{key}\":0")).collect();
    let document = format!("{{{},\"n\":1{}}}", keys.join(","), "0".repeat(100_000));

    assert_eq!(one(&document, "/n"), number("1e100000"));
}

fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?(e[0-9])?",
        "\"[a-cA-C\\\\u0061 é]{0,3}\"",
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(("[abAB]", inner), 0..4).prop_map(|entries| {
                let entries: Vec<String> = entries
                    .into_iter()
                    .map(|(key, value)| format!("\"{key}\": {value}"))
                    .collect();
                format!("{{{}}}", entries.join(" , "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn it_takes_what_the_other_strict_reader_takes(document in json_text()) {
        let other = crate::json::parse(document.as_bytes());
        let found = find(&document, &["/a", "/a/b", "/a/0"]);
        prop_assert_eq!(found.is_ok(), other.is_ok(), "{}", document);
        if let (Ok(found), Ok(other)) = (found, other) {
            for (pointer, found) in ["/a", "/a/b", "/a/0"].into_iter().zip(found) {
                match found {
                    Found::Ambiguous => {}
                    Found::Absent => prop_assert_eq!(other.pointer(pointer), None),
                    Found::Text(text) => prop_assert_eq!(other.pointer(pointer).and_then(|value| value.as_str()), Some(&*text)),
                    Found::Null | Found::Bool(_) | Found::Number(_) | Found::Composite => prop_assert!(other.pointer(pointer).is_some()),
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_as_by_the_other_reader(bytes in r#"[\[\]{}",:a0-9.eE\\ u-]{0,24}"#) {
        let other = crate::json::parse(bytes.as_bytes());
        let strict = select(bytes.as_bytes(), &Pointers::default()).is_ok();
        // The other one cannot hold every number.
        let too_large = other.as_ref().is_err_and(|fault| fault.to_string().starts_with("number out of range"));
        prop_assert!(strict == other.is_ok() || too_large, "{}", bytes);
    }
}
