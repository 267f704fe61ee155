//! Tables of bodies and what a condition says of them.

use proptest::prelude::*;

use super::*;
use crate::config::Config;
use crate::policy::{NoMetadata, Policy, Subject, Verdict};

/// What a denying rule with one condition on the body says of a request with these headers and body.
fn said_with(condition: &str, headers: &[(&str, &str)], body: &[u8]) -> &'static str {
    let text = format!(
        r#"{{"listener_name":"l","rules":[{{"match":{{"json":[{condition}]}},"action":"deny"}}]}}"#
    );
    let policy = Policy::new(Config::parse(text.as_bytes()).expect(condition).rules);
    let pseudo = [(":method", "POST"), (":path", "/")];
    let headers = pseudo.iter().chain(headers);
    let head = RequestHead::parse(
        headers.map(|(name, value)| (*name, value.as_bytes())),
        policy.wanted_headers(),
    )
    .expect("readable");
    let subject = Subject {
        head: &head,
        body: Some(body),
        route: &NoMetadata,
    };
    match policy.decide(&subject) {
        Verdict::Deny { .. } => "yes",
        Verdict::Pass => "no",
        Verdict::Ambiguous {
            doubt: Doubt::Body, ..
        } => "maybe",
        other @ (Verdict::Ambiguous { .. }
        | Verdict::NeedsBody { .. }
        | Verdict::RequireApproval(_)) => {
            panic!("{other:?}")
        }
    }
}

fn said(condition: &str, body: &str) -> &'static str {
    said_with(condition, &[], body.as_bytes())
}

#[test]
fn numbers_are_compared_exactly() {
    let a = |comparison: &str| format!(r#"{{"pointer":"/a",{comparison}}}"#);
    let table = [
        (r#""equals":9007199254740993"#, "9007199254740993", "yes"),
        (r#""equals":9007199254740993"#, "9007199254740992", "no"),
        (
            r#""equals":9007199254740993"#,
            "9.007199254740993e15",
            "yes",
        ),
        (r#""equals":0.1"#, "0.1", "yes"),
        (
            r#""equals":0.1"#,
            "0.1000000000000000055511151231257827",
            "no",
        ),
        (
            r#""equals":0.1000000000000000055511151231257827"#,
            "0.1",
            "no",
        ),
        (r#""equals":1"#, "1.0", "yes"),
        (r#""equals":1.0"#, "10e-1", "yes"),
        (r#""equals":0"#, "-0.0", "yes"),
        (r#""in":[1,2.5]"#, "25e-1", "yes"),
        (r#""greater_than":1"#, "1e400", "yes"),
        (
            r#""greater_than":1"#,
            "1e999999999999999999999999999999",
            "yes",
        ),
        (
            r#""greater_than":1"#,
            "-1e999999999999999999999999999999",
            "no",
        ),
        (
            r#""greater_than":1"#,
            "1e-999999999999999999999999999999",
            "no",
        ),
        (
            r#""greater_than":0"#,
            "1e-999999999999999999999999999999",
            "yes",
        ),
        (r#""greater_than":1000"#, "1000", "no"),
        (
            r#""greater_than":1000"#,
            "1000.0000000000000000000000000001",
            "yes",
        ),
        (r#""at_least":1000"#, "1e3", "yes"),
        (
            r#""less_than":18446744073709551616"#,
            "18446744073709551615",
            "yes",
        ),
        (
            r#""less_than":18446744073709551616"#,
            "18446744073709551616",
            "no",
        ),
        (r#""at_most":-1.5"#, "-1.50", "yes"),
    ];
    for (comparison, value, expected) in table {
        let body = format!(r#"{{"a":{value}}}"#);
        assert_eq!(
            said(&a(comparison), &body),
            expected,
            "{comparison} {value}"
        );
    }
}

#[test]
fn a_value_of_another_type_is_doubtful_where_a_lenient_reader_could_take_it() {
    let table = [
        (r#""greater_than":1000"#, r#""5000""#, "maybe"),
        (r#""greater_than":1000"#, "[5000]", "maybe"),
        (r#""greater_than":0"#, "true", "maybe"),
        (r#""greater_than":1000"#, "null", "no"),
        (r#""equals":5000"#, r#""5000""#, "maybe"),
        (r#""equals":"5000""#, "5000", "maybe"),
        (r#""equals":"5000""#, "5e3", "maybe"),
        (r#""equals":"5000""#, "5001", "no"),
        (r#""equals":"abc""#, "12", "no"),
        (r#""equals":"abc""#, "true", "no"),
        (r#""equals":"True""#, "true", "maybe"),
        (r#""equals":"abc""#, r#"["abc"]"#, "maybe"),
        (r#""equals":true"#, r#""true""#, "maybe"),
        (r#""equals":true"#, "1", "maybe"),
        (r#""equals":true"#, "true", "yes"),
        (r#""equals":true"#, "false", "no"),
        (r#""equals":null"#, "null", "yes"),
        (r#""equals":null"#, "0", "no"),
        (r#""equals":"""#, "null", "no"),
        (r#""equals":"""#, r#""""#, "yes"),
        (r#""exists":true"#, "null", "yes"),
        (r#""exists":false"#, "null", "no"),
    ];
    for (comparison, value, expected) in table {
        let condition = format!(r#"{{"pointer":"/a",{comparison}}}"#);
        let body = format!(r#"{{"a":{value}}}"#);
        assert_eq!(said(&condition, &body), expected, "{comparison} {value}");
    }
}

#[test]
fn texts_are_compared_by_code_point() {
    let user = r#"{"pointer":"/u","equals":"delete_user"}"#;
    for (body, expected) in [
        (r#"{"u":"delete_user"}"#, "yes"),
        (r#"{"u":"delete\u005fuser"}"#, "yes"),
        (r#"{"u":"Delete_user"}"#, "no"),
        ("{\"u\":\"delete_us\u{435}r\"}", "no"),
        ("{\"u\":\"delete_user\u{200b}\"}", "no"),
        (r#"{"u":"delete_user\u0000x"}"#, "maybe"),
        (r#"{"u":"x\u0000"}"#, "maybe"),
        (r#"{"u":"x","v":"\u0000"}"#, "no"),
    ] {
        assert_eq!(said(user, body), expected, "{body}");
    }
    assert_eq!(
        said(
            "{\"pointer\":\"/u\",\"equals\":\"\u{e9}\"}",
            "{\"u\":\"e\u{301}\"}"
        ),
        "no"
    );
}

#[test]
fn a_body_that_cannot_be_trusted_is_doubtful_and_an_empty_one_has_no_values() {
    let condition = r#"{"pointer":"/a","equals":1}"#;
    for body in [
        "{",
        " ",
        "a=1",
        "{\"a\":2,\"a\":1}",
        "{\"a\":2,\"A\":1}",
        "{\"A\":1}",
        "{\"x\":{\"y\":1,\"y\":2},\"a\":2}",
        "{}{}",
        "\u{feff}{\"a\":1}",
        "{\"a\":1,\"b\":\"\\ud800\"}",
    ] {
        assert_eq!(said(condition, body), "maybe", "{body}");
    }
    assert_eq!(said_with(condition, &[], b"{\"b\":\"\xff\"}"), "maybe");
    let deep = format!("{{\"b\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(said(condition, &deep), "maybe");
    for (comparison, expected) in [
        (r#""equals":null"#, "no"),
        (r#""less_than":1"#, "no"),
        (r#""exists":true"#, "no"),
        (r#""exists":false"#, "yes"),
    ] {
        assert_eq!(
            said(&format!(r#"{{"pointer":"/a",{comparison}}}"#), ""),
            expected
        );
    }
    assert_eq!(
        said(r#"{"pointer":"/b","exists":false}"#, "{\"x\":1,\"X\":2}"),
        "yes"
    );
}

#[test]
fn encodings_and_charsets_that_are_not_undone_are_doubtful() {
    let condition = r#"{"pointer":"/a","equals":1}"#;
    let of = |name: &str, value: &str| said_with(condition, &[(name, value)], b"{\"a\":1}");
    for value in ["gzip", "identity, gzip", "br", "x"] {
        assert_eq!(of("content-encoding", value), "maybe", "{value}");
    }
    for value in ["identity", "Identity", ""] {
        assert_eq!(of("content-encoding", value), "yes", "{value}");
    }
    for value in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "Application/JSON ; Charset=utf8",
        "text/plain",
        "application/json-rpc",
        "",
        "multipart/form-data",
        "a; charset=us-ascii; x=1",
    ] {
        assert_eq!(of("content-type", value), "yes", "{value}");
    }
    for value in [
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-UrlEncoded; charset=utf-8",
        "application/json; charset=utf-16",
        "application/json; charset=utf-7",
        "a; CHARSET='ibm037'",
        "a; charset=utf-8; charset=utf-16",
        "a; charset=",
        "a; charset",
    ] {
        assert_eq!(of("content-type", value), "maybe", "{value}");
    }
    let twice = [
        ("content-encoding", "identity"),
        ("content-encoding", "gzip"),
    ];
    assert_eq!(said_with(condition, &twice, b"{\"a\":1}"), "maybe");
    assert_eq!(said_with(condition, &twice, b""), "no");
}

/// Bottle reads a form whatever the content-type says, Rack where there is none.
#[test]
fn a_body_in_which_a_reader_of_forms_finds_the_name_is_doubtful() {
    let condition = r#"{"pointer":"/amount/value","greater_than":1000}"#;
    let types: [&[(&str, &str)]; 6] = [
        &[],
        &[("content-type", "")],
        &[("content-type", "text/plain")],
        &[("content-type", "application/json")],
        &[("content-type", "multipart/form-data")],
        &[("content-type", ";")],
    ];
    for headers in types {
        for (body, expected) in [
            (r#"{"amount":{"value":5000}}"#, "yes"),
            (r#"{"amount":{"value":1}}"#, "no"),
            (r#"{"amount":{"value":1},"x":"a=1&b=2;c=3"}"#, "no"),
            (r#"{"amount":{"value":1},"x":"&amount=5000&y="}"#, "maybe"),
            (r#"{"x":"&amount[value]=5000"}"#, "maybe"),
            (r#"{"x":";am%6funt=5000"}"#, "maybe"),
        ] {
            assert_eq!(
                said_with(condition, headers, body.as_bytes()),
                expected,
                "{headers:?} {body}"
            );
        }
    }
    let odd = format!(r#"{{"x":"{}"}}"#, "&%=".repeat(5_000));
    assert_eq!(said(condition, &odd), "maybe");
    let script = format!(r#"{{"x":"{}"}}"#, ";a.b=1;c[0]='é'".repeat(2_000));
    assert_eq!(said(condition, &script), "no");
}

proptest! {
    #[test]
    fn any_body_is_judged(body in proptest::collection::vec(any::<u8>(), 0..64)) {
        said_with(r#"{"pointer":"/a/0","at_least":1}"#, &[], &body);
    }

    /// A rule cannot be passed by spelling the number in another way.
    #[test]
    fn spellings_of_a_number_are_one(number in 0_u32..100_000, zeros in 0_usize..6) {
        let condition = format!(r#"{{"pointer":"/a","equals":{number}}}"#);
        let zeroes = "0".repeat(zeros);
        for spelled in [format!("{number}.0{zeroes}"), format!("{number}{zeroes}e-{zeros}"), format!("{number}e+0")] {
            prop_assert_eq!(said(&condition, &format!(r#"{{"a":{spelled}}}"#)), "yes");
        }
    }
}
