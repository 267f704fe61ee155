//! Conditions that are taken, and the full text of every refusal.

use super::*;
use crate::config::{Action, ApprovalRule, Config};

fn with_rule(entries: &str) -> String {
    format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a:1"}},"rules":[{entries}]}}"#
    )
}

fn with_match(conditions: &str) -> String {
    with_rule(&format!(r#"{{"action":"deny","match":{{{conditions}}}}}"#))
}

fn ok(conditions: &str) -> Conditions {
    let config = Config::parse(with_match(conditions).as_bytes()).expect(conditions);
    config.rules[0].conditions.clone()
}

fn err(text: &str) -> String {
    let error = Config::parse(text.as_bytes()).expect_err(text);
    error
        .to_string()
        .replace("invalid plugin configuration at ", "")
}

fn number(token: &str) -> Decimal {
    Decimal::parse(token).expect(token)
}

#[test]
fn ok_headers() {
    let read = ok(
        r#""headers":[{"name":"X-Env","equals":"a"},{"name":"b","in":["1","2"]},{"name":"c","glob":"*x"},{"name":"d","exists":false}]"#,
    );

    let names: Vec<&str> = read.headers.iter().map(|header| &*header.name).collect();
    assert_eq!(names, ["x-env", "b", "c", "d"]);
    let tests: Vec<TextTest> = read.headers.into_iter().map(|header| header.test).collect();
    assert_eq!(
        tests,
        [
            TextTest::OneOf(vec![b"a".to_vec()]),
            TextTest::OneOf(vec![b"1".to_vec(), b"2".to_vec()]),
            TextTest::Glob(WordGlob::parse("*x")),
            TextTest::Exists(false),
        ]
    );
}

#[test]
fn ok_query_and_route_metadata() {
    let read = ok(
        r#""query":[{"name":"user[id]","exists":true}],"route_metadata":[{"key":"tier","equals":"gold"},{"namespace":"com.x","key":"a","exists":true}]"#,
    );

    assert_eq!(read.query[0].name.as_str(), "user[id]");
    let places: Vec<(&str, &str)> = read
        .route_metadata
        .iter()
        .map(|condition| (&*condition.namespace, &*condition.key))
        .collect();
    assert_eq!(places, [("hoop", "tier"), ("com.x", "a")]);
}

#[test]
fn ok_json_values_as_spelled() {
    let read = ok(
        r#""json":[{"pointer":"/a~1b/0","equals":9007199254740993.5},{"pointer":"/b","in":["x",""]},{"pointer":"/c","equals":null},
            {"pointer":"/d","in":[true]},{"pointer":"/e","at_least":0.10000000000000000001},{"pointer":"/f","exists":true},{"pointer":"/g","in":[1,2e300]}]"#,
    );

    let tests: Vec<JsonTest> = read.json.into_iter().map(|json| json.test).collect();
    assert_eq!(
        tests,
        [
            JsonTest::OneOf(vec![Scalar::Number(number("9007199254740993.5"))]),
            JsonTest::OneOf(vec![
                Scalar::Text("x".to_owned()),
                Scalar::Text(String::new())
            ]),
            JsonTest::OneOf(vec![Scalar::Null]),
            JsonTest::OneOf(vec![Scalar::Bool(true)]),
            JsonTest::Compared(Relation::AtLeast, number("0.10000000000000000001")),
            JsonTest::Exists(true),
            JsonTest::OneOf(vec![
                Scalar::Number(number("1")),
                Scalar::Number(number("2e300"))
            ]),
        ]
    );
}

#[test]
fn ok_an_approval_rule_that_the_route_names() {
    let text = with_rule(
        r#"{"action":"require_approval","approval_mode":"return","approval_rule_from_route":"approval_rule"}"#,
    );
    let config = Config::parse(text.as_bytes()).expect("valid");

    let Action::RequireApproval { approval_rule, .. } = &config.rules[0].action else {
        panic!("no approval");
    };
    assert_eq!(
        *approval_rule,
        ApprovalRule::FromRoute {
            key: "approval_rule".to_owned()
        }
    );
}

#[test]
fn err_conditions() {
    let table = [
        (
            r#""headers":[{"name":"a"}]"#,
            r#"/rules/0/match/headers/0: found no comparison, allowed is exactly one of "equals", "in", "glob", "exists"; hint: add one, such as "exists": true"#,
        ),
        (
            r#""query":[{"name":"a","equals":"1","exists":true}]"#,
            r#"/rules/0/match/query/0: found "equals", "exists", allowed is exactly one of "equals", "in", "glob", "exists"; hint: write a condition of its own for each; all conditions of a rule must hold"#,
        ),
        (
            r#""json":[{"pointer":"/a","greater_than":1,"less_than":2}]"#,
            r#"/rules/0/match/json/0: found "greater_than", "less_than", allowed is exactly one of "equals", "in", "greater_than", "at_least", "less_than", "at_most", "exists"; hint: write a condition of its own for each; all conditions of a rule must hold"#,
        ),
        (
            r#""headers":[{"name":"a","in":[]}]"#,
            "/rules/0/match/headers/0/in: found an empty list, which nothing could ever match; hint: name at least one entry, or leave the key out to match everything",
        ),
        (
            r#""json":[{"pointer":"/a","in":[]}]"#,
            "/rules/0/match/json/0/in: found an empty list, which nothing could ever match; hint: name at least one entry, or leave the key out to match everything",
        ),
        (
            r#""json":[]"#,
            "/rules/0/match/json: found an empty list, which nothing could ever match; hint: name at least one entry, or leave the key out to match everything",
        ),
        (
            r#""json":[{"pointer":"/a","in":[1,"1"]}]"#,
            r#"/rules/0/match/json/0/in: found values of different types, allowed are values of one type; hint: write a rule for each type; 1 and "1" are different values"#,
        ),
        (
            r#""json":[{"pointer":"amount","exists":true}]"#,
            r#"/rules/0/match/json/0/pointer: found "amount", which is no JSON pointer (RFC 6901); hint: begin with "/" and write "~0" for ~ and "~1" for / within a name, such as "/items/0/amount""#,
        ),
        (
            r#""json":[{"pointer":"/a~2","exists":true}]"#,
            r#"/rules/0/match/json/0/pointer: found "/a~2", which is no JSON pointer (RFC 6901); hint: begin with "/" and write "~0" for ~ and "~1" for / within a name, such as "/items/0/amount""#,
        ),
        (
            r#""json":[{"pointer":"/a","greater_than":"1"}]"#,
            "/rules/0/match/json/0/greater_than: found a text, allowed is a number; hint: correct the type of this value",
        ),
        (
            r#""json":[{"pointer":"/a","equals":[1]}]"#,
            "/rules/0/match/json/0/equals: found a list, allowed is a text, a number, true, false or null; hint: correct the type of this value",
        ),
        (
            r#""json":[{"pointer":"/a","exists":"yes"}]"#,
            "/rules/0/match/json/0/exists: found a text, allowed is true or false; hint: correct the type of this value",
        ),
        (
            r#""json":[{"pointer":"/a","at_most":1e-999999999999999999999}]"#,
            "/rules/0/match/json/0/at_most: found a number with an exponent that no reader of JSON takes; hint: write a number that can occur in a body",
        ),
        (
            r#""headers":[{"name":":path","exists":true}]"#,
            r#"/rules/0/match/headers/0/name: found ":path", which is no header but a part of the request line or the host; hint: use methods, hosts, paths or query"#,
        ),
        (
            r#""headers":[{"name":"Host","exists":true}]"#,
            r#"/rules/0/match/headers/0/name: found "Host", which is no header but a part of the request line or the host; hint: use methods, hosts, paths or query"#,
        ),
        (
            r#""headers":[{"name":"Transfer-Encoding","exists":true}]"#,
            r#"/rules/0/match/headers/0/name: found "Transfer-Encoding", which belongs to the connection: Envoy takes it away or writes it anew, so it says nothing of the request; hint: choose a header that the client sends to the upstream"#,
        ),
        (
            r#""headers":[{"name":"x-hoop-approval-mode","exists":true}]"#,
            r#"/rules/0/match/headers/0/name: found "x-hoop-approval-mode", which is a header of this gate; hint: choose a header that the client sends to the upstream"#,
        ),
        (
            r#""headers":[{"name":"x env","exists":true}]"#,
            r#"/rules/0/match/headers/0/name: found "x env", which is no header name; hint: write a name such as "x-env""#,
        ),
        (
            r#""headers":[{"equals":"a"}]"#,
            "/rules/0/match/headers/0/name: this key is required and missing; hint: add it: The header's name, compared without letter case.",
        ),
        (
            r#""headers":[{"name":"a","equal":"a"}]"#,
            r#"/rules/0/match/headers/0/equal: the key "equal" is unknown, allowed are "name", "equals", "in", "glob", "exists"; hint: did you mean "equals"?"#,
        ),
        (
            r#""query":[{"name":"a%20b","exists":true}]"#,
            r#"/rules/0/match/query/0/name: found "a%20b", which no query can spell without escapes, so that nobody could tell it; hint: write the decoded name, in ASCII and without spaces and any of % + & = ; # ?"#,
        ),
        (
            r#""route_metadata":[{"namespace":"x","exists":true}]"#,
            "/rules/0/match/route_metadata/0/key: this key is required and missing; hint: add it: Key within the namespace.",
        ),
    ];
    for (conditions, message) in table {
        assert_eq!(err(&with_match(conditions)), message);
    }
}

#[test]
fn err_approval_rules() {
    let table = [
        (
            r#"{"action":"require_approval","approval_mode":"return","approval_rule":"a","approval_rule_from_route":"b"}"#,
            "/rules/0/approval_rule_from_route: found approval_rule and approval_rule_from_route, allowed is one of them; hint: remove one; write a rule for each where some routes name their own",
        ),
        (
            r#"{"action":"deny","approval_rule_from_route":"b"}"#,
            r#"/rules/0/approval_rule_from_route: this key has no meaning with "action": "deny"; hint: remove approval_rule_from_route, or set action to "require_approval""#,
        ),
    ];
    for (rule, message) in table {
        assert_eq!(err(&with_rule(rule)), message);
    }
    let without_plane = r#"{"listener_name":"l","rules":[{"action":"require_approval","approval_mode":"return","approval_rule_from_route":"b"}]}"#;
    assert!(err(without_plane).starts_with("/control_plane: this key is missing"));
}
