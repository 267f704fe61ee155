//! Configurations that are taken, and the full text of every refusal.

use super::*;

fn err(text: &str) -> String {
    Config::parse(text.as_bytes()).expect_err(text).to_string()
}

/// A configuration with one rule whose entries are given.
fn with_rule(entries: &str) -> String {
    format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a:1"}},"approval_mode":"return","rules":[{entries}]}}"#
    )
}

const HOLD: &str = r#"{"action":"require_approval","approval_rule":"r"}"#;

#[test]
fn ok_the_smallest_configuration_lets_everything_pass() {
    let config = Config::parse(br#"{"listener_name":"l"}"#).expect("valid");

    assert_eq!(
        (
            config.listener_name.as_str(),
            config.rules.len(),
            config.max_body_bytes
        ),
        ("l", 0, 65_536)
    );
    assert_eq!(config.control_plane, None);
}

#[test]
fn ok_a_whole_configuration() {
    let text = r#"{
        "listener_name": "billing-api",
        "control_plane": {"cluster": "plane", "authority": "plane:8009", "path_prefix": "/hoop/", "token_env": "T", "timeout_ms": 500.0},
        "review_mode": "return",
        "message": "please ask",
        "max_body_bytes": 1048576,
        "sensitive_query_params": ["tenant"],
        "redaction_key_env": "K",
        "rules": [
            {"name": "a", "match": {"methods": ["post"], "hosts": ["*.x.com"], "paths": ["/a/**"]}, "action": "require_review", "approval_rule": "r"},
            {"match": {"paths": ["/b"]}, "action": "deny", "message": "never"},
            {"action": "allow"}
        ]
    }"#;

    let config = Config::parse(text.as_bytes()).expect("valid");

    let plane = config.control_plane.expect("a plane");
    assert_eq!(
        (
            plane.path_prefix.as_str(),
            plane.timeout_ms,
            plane.token_env.as_deref()
        ),
        ("/hoop", 500, Some("T"))
    );
    assert_eq!(config.rules[0].methods, ["POST"]);
    assert_eq!(
        config.rules[0].action,
        Action::RequireApproval {
            approval_rule: ApprovalRule::Named("r".to_owned()),
            message: "please ask".to_owned(),
            mode: Mode::Return,
        }
    );
    assert_eq!(config.rules[1].name, "rules[1]");
    assert_eq!(
        config.rules[1].action,
        Action::Deny {
            message: "never".to_owned()
        }
    );
}

#[test]
fn ok_a_rule_holds_unless_a_mode_says_otherwise() {
    let mode = |listener: &str, rule: &str| {
        let text = format!(
            r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a"}},{listener}"rules":[{{"action":"require_approval","approval_rule":"r"{rule}}}]}}"#
        );
        let config = Config::parse(text.as_bytes()).expect(&text);
        match config.rules[0].action {
            Action::RequireApproval { mode, .. } => mode,
            Action::Allow | Action::Deny { .. } => panic!("{text}"),
        }
    };

    assert_eq!(mode("", ""), Mode::Hold);
    assert_eq!(mode(r#""approval_mode":"return","#, ""), Mode::Return);
    assert_eq!(mode(r#""review_mode":"hold","#, ""), Mode::Hold);
    assert_eq!(
        mode(r#""approval_mode":"return","#, r#","review_mode":"hold""#),
        Mode::Hold
    );
}

#[test]
fn ok_the_defaults_of_a_hold() {
    let config = Config::parse(br#"{"listener_name":"l"}"#).expect("valid");

    assert_eq!(
        (config.hold_timeout_ms, config.poll_interval_ms),
        (1_800_000, 1_000)
    );
    assert_eq!(
        (config.enforcement, config.spend_on),
        (Enforcement::Enforce, SpendOn::Release)
    );
    assert_eq!(config.identity, IdentitySource::default());
}

#[test]
fn err_what_is_no_configuration() {
    assert_eq!(
        err(""),
        "invalid plugin configuration at the whole document: the plugin configuration is empty; hint: set `configuration` of the wasm filter to a google.protobuf.StringValue that holds the JSON"
    );
    assert_eq!(
        err(r#"{"listener_name":"a","listener_name":"b"}"#),
        "invalid plugin configuration at the whole document: this is not JSON that can be trusted: the key \"listener_name\" stands twice in one object at line 1 column 41; hint: correct the JSON, each key once"
    );
    assert_eq!(
        err("\n\u{11}\n\rlistener_name"),
        "invalid plugin configuration at the whole document: this is not JSON but looks like a protobuf message: Envoy hands over a google.protobuf.Struct undecoded; hint: write the JSON as text, in a google.protobuf.StringValue"
    );
    assert_eq!(
        err("[]"),
        "invalid plugin configuration at the whole document: found a list, allowed is an object; hint: correct the type of this value"
    );
}

#[test]
fn err_unknown_and_missing_keys() {
    assert_eq!(
        err(r#"{"listner_name":"l"}"#),
        "invalid plugin configuration at /listner_name: the key \"listner_name\" is unknown, allowed are \"listener_name\", \"control_plane\", \"enforcement\", \"approval_mode\", \"review_mode\", \"hold_timeout_ms\", \"poll_interval_ms\", \"spend_approval_on\", \"identity\", \"message\", \"max_body_bytes\", \"grpc\", \"mcp\", \"sensitive_query_params\", \"redaction_key_env\", \"rules\"; hint: did you mean \"listener_name\"?"
    );
    assert_eq!(
        err("{}"),
        "invalid plugin configuration at /listener_name: this key is required and missing; hint: add it: The name under which approvals are filed and read, as the Control Plane knows this listener."
    );
    assert_eq!(
        err(&with_rule(r#"{"action":"deny","match":{"path/s":["/a"]}}"#)),
        "invalid plugin configuration at /rules/0/match/path~1s: the key \"path/s\" is unknown, allowed are \"methods\", \"hosts\", \"paths\", \"grpc\", \"headers\", \"query\", \"json\", \"route_metadata\"; hint: did you mean \"paths\"?"
    );
}

#[test]
fn err_types_and_bounds() {
    let table = [
        (
            r#"{"listener_name":1}"#,
            "at /listener_name: found a number, allowed is a text; hint: correct the type of this value",
        ),
        (
            r#"{"listener_name":" "}"#,
            "at /listener_name: found a blank text; hint: name something, or leave the key out",
        ),
        (
            r#"{"listener_name":"a\nb"}"#,
            "at /listener_name: found a control character; hint: remove line breaks and other control characters",
        ),
        (
            r#"{"listener_name":"l","max_body_bytes":0}"#,
            "at /max_body_bytes: found 0, allowed is a whole number from 1 to 1048576; hint: choose a number within these bounds",
        ),
        (
            r#"{"listener_name":"l","max_body_bytes":1.5}"#,
            "at /max_body_bytes: found 1.5, allowed is a whole number from 1 to 1048576; hint: choose a number within these bounds",
        ),
        (
            r#"{"listener_name":"l","max_body_bytes":"64k"}"#,
            "at /max_body_bytes: found a text, allowed is a whole number from 1 to 1048576; hint: correct the type of this value",
        ),
        (
            r#"{"listener_name":"l","rules":{}}"#,
            "at /rules: found an object, allowed is a list; hint: correct the type of this value",
        ),
        (
            r#"{"listener_name":"l","rules":[{"action":"alow"}]}"#,
            "at /rules/0/action: found \"alow\", allowed is \"allow\", \"deny\", \"require_approval\", \"require_review\"; hint: did you mean \"allow\"?",
        ),
        (
            r#"{"listener_name":"l","rules":[{"action":"deny","match":{"paths":[]}}]}"#,
            "at /rules/0/match/paths: found an empty list, which nothing could ever match; hint: name at least one entry, or leave the key out to match everything",
        ),
        (
            r#"{"listener_name":"l","approval_mode":"holds"}"#,
            "at /approval_mode: found \"holds\", allowed is \"hold\", \"return\"; hint: did you mean \"hold\"?",
        ),
        (
            r#"{"listener_name":"l","enforcement":"off"}"#,
            "at /enforcement: found \"off\", allowed is \"enforce\", \"observe\"; hint: remove it, or use one of the allowed ones",
        ),
        (
            r#"{"listener_name":"l","hold_timeout_ms":0}"#,
            "at /hold_timeout_ms: found 0, allowed is a whole number from 1000 to 86400000; hint: choose a number within these bounds",
        ),
        (
            r#"{"listener_name":"l","identity":{"header":"x user"}}"#,
            "at /identity/header: found \"x user\", which cannot name a header; hint: write a header name such as \"x-user\"",
        ),
        (
            r#"{"listener_name":"l","identity":{"client_certificate":"yes"}}"#,
            "at /identity/client_certificate: found a text, allowed is true or false; hint: correct the type of this value",
        ),
    ];
    for (text, end) in table {
        assert_eq!(err(text), format!("invalid plugin configuration {end}"));
    }
}

#[test]
fn err_a_gate_that_nobody_can_decide() {
    assert_eq!(
        err(&with_rule(r#"{"action":"require_approval"}"#)),
        "invalid plugin configuration at /rules/0/approval_rule: this key is required with \"action\": \"require_approval\" and missing: nobody could decide; hint: name the Control Plane's approval rule, such as \"billing-approvers\""
    );
    assert_eq!(
        err(&format!(
            r#"{{"listener_name":"l","approval_mode":"return","rules":[{HOLD}]}}"#
        )),
        "invalid plugin configuration at /control_plane: this key is missing, but /rules/0 requires an approval that only a Control Plane can give; hint: add control_plane with cluster and authority"
    );
}

#[test]
fn err_what_has_no_meaning_or_contradicts_itself() {
    let table = [
        (with_rule(r#"{"action":"allow","approval_rule":"r"}"#), "/rules/0/approval_rule", "remove approval_rule"),
        (with_rule(r#"{"action":"deny","approval_mode":"return"}"#), "/rules/0/approval_mode", "remove approval_mode"),
        (with_rule(r#"{"action":"allow","message":"m"}"#), "/rules/0/message", "remove message"),
        (with_rule(r#"{"action":"allow"}"#), "/approval_mode", "remove approval_mode"),
        (
            r#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"http://a/"}}"#.to_owned(),
            "/control_plane/authority",
            "host or host:port",
        ),
        (
            r#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"a","path_prefix":"hoop"}}"#.to_owned(),
            "/control_plane/path_prefix",
            "such as \"/hoop\"",
        ),
        (
            r#"{"listener_name":"l","control_plane":{"cluster":"c","authority":"a","credential":"none","token_env":"T"}}"#.to_owned(),
            "/control_plane/token_env",
            "remove token_env",
        ),
        (
            r#"{"listener_name":"l","redaction_key_env":"A=b"}"#.to_owned(),
            "/redaction_key_env",
            "never the secret itself",
        ),
    ];
    for (text, pointer, remedy) in table {
        let error = Config::parse(text.as_bytes()).expect_err(&text);

        assert_eq!(error.pointer(), pointer, "{text}");
        assert!(error.hint().contains(remedy), "{error}");
    }
}

#[test]
fn err_grpc() {
    for (text, problem) in [
        (
            with_rule(r#"{"match":{"grpc":["/p.S/M"]},"action":"allow"}"#),
            "/rules/0/match/grpc/0: found \"/p.S/M\", allowed is a service and a method",
        ),
        (
            with_rule(r#"{"match":{"grpc":["p.S"]},"action":"allow"}"#),
            "allowed is a service and a method",
        ),
        (
            with_rule(r#"{"match":{"grpc":["p.**/M"]},"action":"allow"}"#),
            "allowed is a service and a method",
        ),
        (
            r#"{"listener_name":"l","grpc":{"descriptors":"?"}}"#.to_owned(),
            "/grpc/descriptors: this is not base64",
        ),
        (
            r#"{"listener_name":"l","grpc":{"descriptors":"CgE="}}"#.to_owned(),
            "/grpc/descriptors: ",
        ),
        (
            r#"{"listener_name":"l","grpc":{"streaming":"allow"}}"#.to_owned(),
            "/grpc/streaming",
        ),
        (
            r#"{"listener_name":"l","max_body_bytes":1,"grpc":{"max_payload_bytes":2}}"#.to_owned(),
            "set max_body_bytes or grpc.max_payload_bytes, not both",
        ),
    ] {
        let refusal = err(&text);
        assert!(refusal.contains(problem), "{text}: {refusal}");
    }
}

#[test]
fn ok_grpc() {
    let text = r#"{"listener_name":"l","grpc":{"max_payload_bytes":9,"streaming":"deny"}}"#;
    let config = Config::parse(text.as_bytes()).expect("valid");
    assert_eq!(config.max_body_bytes, 9);
    assert_eq!(config.grpc.streaming, Streaming::Deny);
    let config = Config::parse(br#"{"listener_name":"l"}"#).expect("valid");
    assert_eq!(config.grpc.streaming, Streaming::PerMessage);
    assert!(config.grpc.descriptors.is_none());
}

#[test]
fn err_conditions_that_could_never_match() {
    let table = [
        (r#""methods":["GE T"]"#, "/rules/0/match/methods/0"),
        (r#""methods":["POST","PSOT"]"#, "/rules/0/match/methods/1"),
        (
            r#""hosts":["a.com","http://b.com"]"#,
            "/rules/0/match/hosts/1",
        ),
        (r#""hosts":["a.com:80"]"#, "/rules/0/match/hosts/0"),
        (r#""paths":["payments/**"]"#, "/rules/0/match/paths/0"),
        (r#""paths":["/a%20b"]"#, "/rules/0/match/paths/0"),
    ];
    for (conditions, pointer) in table {
        let text = with_rule(&format!(r#"{{"action":"deny","match":{{{conditions}}}}}"#));

        assert_eq!(
            Config::parse(text.as_bytes()).expect_err(&text).pointer(),
            pointer
        );
    }
}

#[test]
fn a_refusal_never_repeats_a_pasted_secret_in_full() {
    let text = format!(
        r#"{{"listener_name":"l","approval_mode":"{}"}}"#,
        "s".repeat(5_000)
    );

    assert!(err(&text).len() < 400);
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_configuration_or_a_refusal(text in r#"[\{\}\[\]":,a-z0-9_ ]{0,80}"#) {
        let _ = Config::parse(text.as_bytes());
    }
}
