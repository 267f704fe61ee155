//! What a client is shown of the tools, and how their arguments are read.

use super::*;

const LIST: &str = "/api/sidecars/reviews?limit=";

#[test]
fn six_tools_are_shown_in_an_order_that_never_changes() {
    let list = Request::legacy("tools/list", &json!({})).answered();
    let tools = list.result()["tools"].as_array().expect("tools");

    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "approval_status",
            "approval_wait",
            "approval_list",
            "review_status",
            "review_wait",
            "review_list"
        ]
    );
    for tool in tools {
        assert_eq!(tool["annotations"], json!({"readOnlyHint": true}));
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object");
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        let description = tool["description"].as_str().expect("a description");
        for next in ["wait", "resend_identical_statement", "stop"] {
            assert!(description.contains(&format!("{next} = ")), "{description}");
        }
    }
    for cursor in [json!(""), json!("x"), json!(1)] {
        let again = Request::legacy("tools/list", &json!({"cursor": cursor})).answered();
        assert_eq!(again, list);
    }
    let modern = Request::modern("tools/list", &json!({})).answered();
    let result = modern.result();
    assert_eq!(result["tools"], list.result()["tools"]);
    assert_eq!(
        (
            &result["resultType"],
            &result["ttlMs"],
            &result["cacheScope"]
        ),
        (&json!("complete"), &json!(3_600_000), &json!("public"))
    );
}

#[test]
fn the_second_names_say_that_they_are_aliases_and_name_their_own_family() {
    let list = Request::legacy("tools/list", &json!({})).answered();
    let tools = list.result()["tools"].as_array().expect("tools");
    let (named, aliases) = tools.split_at(3);
    for (tool, alias) in named.iter().zip(aliases) {
        let [description, aliased] =
            [tool, alias].map(|tool| tool["description"].as_str().expect("a description"));
        let name = tool["name"].as_str().expect("a name");

        let own = aliased
            .strip_prefix(&format!("Alias of {name}. "))
            .expect("an alias");
        assert_eq!(own, description.replace("approval_", "review_"));
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema], alias[schema]);
        }
    }
}

#[test]
fn a_timeout_is_brought_within_its_bounds() {
    let table = [
        ("null", 60),
        ("0", 60),
        ("-0", 60),
        ("0.0", 60),
        ("-1", 60),
        ("-2.5", 60),
        ("-1e300", 60),
        ("1", 2),
        ("2", 2),
        ("3", 3),
        ("60.0", 60),
        ("6e1", 60),
        ("300", 300),
        ("301", 300),
        ("9000000000000000000", 300),
        ("18446744073709551616", 300),
        ("9e18", 300),
        ("1e300", 300),
    ];
    for (timeout, seconds) in table {
        assert_eq!(
            budget_ms(&format!(r#"{{"id":"{ID}","timeout_seconds":{timeout}}}"#)),
            seconds * 1_000,
            "{timeout}"
        );
    }
    assert_eq!(budget_ms(&format!(r#"{{"id":"{ID}"}}"#)), 60_000);
}

/// How long a wait with these arguments waits.
fn budget_ms(arguments: &str) -> u64 {
    let listener = listener();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"approval_wait","arguments":{arguments}}}}}"#
    );
    let (endpoint, effects) = Request::post(body).send(&listener);
    assert_eq!(asked(&effects), format!("/api/sidecars/reviews/{ID}"));
    let (_, effects) = endpoint
        .expect("waits")
        .handle(&listener, Event::PlaneAnswered(reads("PENDING", "")));
    let [
        Effect::Watch {
            budget_ms,
            settles_later: false,
            ..
        },
    ] = effects.as_slice()
    else {
        panic!("no watch: {effects:?}");
    };
    *budget_ms
}

#[test]
fn a_list_is_asked_for_within_its_bounds() {
    let table = [
        ("{}", "20"),
        (r#"{"limit":0}"#, "20"),
        (r#"{"limit":-1}"#, "20"),
        (r#"{"limit":1}"#, "1"),
        (r#"{"limit":21}"#, "21"),
        (r#"{"limit":200}"#, "200"),
        (r#"{"limit":500}"#, "200"),
        (r#"{"limit":4294967297}"#, "200"),
        (r#"{"limit":1e300}"#, "200"),
        (r#"{"limit":5.0,"status":null}"#, "5"),
        (r#"{"status":""}"#, "20"),
        (r#"{"status":"pending"}"#, "20&status=PENDING"),
        (r#"{"status":"Approved","limit":3}"#, "3&status=APPROVED"),
        (r#"{"status":"PROCESSING"}"#, "20&status=PROCESSING"),
    ];
    for (arguments, query) in table {
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");

        let (asked, told) = Request::call("approval_list", &arguments).answered_by(said(
            "200",
            "application/json",
            "[]",
        ));

        assert_eq!(asked, format!("{LIST}{query}"), "{arguments}");
        assert_eq!(*told.structured(), json!({"reviews": []}));
    }
}

#[test]
fn arguments_that_are_not_the_tools_are_a_result_that_a_model_reads() {
    let other = "9f97a1b2-0c3d-4e5f-8a9b";
    let status_of_tool =
        "it is one of PENDING, APPROVED, REJECTED, REVOKED, PROCESSING, EXECUTED, EXPIRED";
    let table = [
        ("approval_status", json!({}), "id is required".to_owned()),
        (
            "approval_status",
            json!({"id": ""}),
            "id is required".to_owned(),
        ),
        (
            "approval_status",
            json!({"id": null}),
            "id is required".to_owned(),
        ),
        (
            "approval_wait",
            json!({"timeout_seconds": 1}),
            "id is required".to_owned(),
        ),
        (
            "approval_status",
            json!({"id": 7}),
            "id must be a text".to_owned(),
        ),
        (
            "approval_status",
            json!({"id": [ID]}),
            "id must be a text".to_owned(),
        ),
        ("approval_status", json!({"id": other}), not_found(other)),
        (
            "approval_wait",
            json!({"id": format!(" {ID}")}),
            not_found(&format!(" {ID}")),
        ),
        (
            "review_status",
            json!({"id": "../claim"}),
            not_found("../claim"),
        ),
        (
            "approval_status",
            json!({"id": ID, "ID": ID}),
            "unknown argument \"ID\": approval_status takes id".to_owned(),
        ),
        (
            "approval_status",
            json!({"id": ID, "timeout_seconds": 1}),
            "unknown argument \"timeout_seconds\": approval_status takes id".to_owned(),
        ),
        (
            "review_wait",
            json!({"id": ID, "x": 1}),
            "unknown argument \"x\": review_wait takes id and timeout_seconds".to_owned(),
        ),
        (
            "approval_list",
            json!({"id": ID}),
            "unknown argument \"id\": approval_list takes limit and status".to_owned(),
        ),
        (
            "approval_wait",
            json!({"id": ID, "timeout_seconds": 2.5}),
            "timeout_seconds must be a whole number".to_owned(),
        ),
        (
            "approval_wait",
            json!({"id": ID, "timeout_seconds": 0.5}),
            "timeout_seconds must be a whole number".to_owned(),
        ),
        (
            "approval_wait",
            json!({"id": ID, "timeout_seconds": 1e-7}),
            "timeout_seconds must be a whole number".to_owned(),
        ),
        (
            "approval_wait",
            json!({"id": ID, "timeout_seconds": "60"}),
            "timeout_seconds must be a whole number".to_owned(),
        ),
        (
            "approval_wait",
            json!({"id": ID, "timeout_seconds": true}),
            "timeout_seconds must be a whole number".to_owned(),
        ),
        (
            "approval_list",
            json!({"limit": "5"}),
            "limit must be a whole number".to_owned(),
        ),
        (
            "approval_list",
            json!({"status": 1}),
            "status must be a text".to_owned(),
        ),
        (
            "approval_list",
            json!({"status": "PENDING&limit=1"}),
            format!("unknown status \"PENDING&limit=1\": {status_of_tool}"),
        ),
        (
            "approval_list",
            json!({"status": "APPROVED "}),
            format!("unknown status \"APPROVED \": {status_of_tool}"),
        ),
    ];
    for (tool, arguments, text) in table {
        let told = Request::call(tool, &arguments).answered();

        assert_eq!(told.failure(), text, "{tool} {arguments}");
    }
    let long = "x".repeat(300);
    let told = Request::call("approval_status", &json!({"id": long})).answered();
    assert_eq!(told.failure(), not_found(&"x".repeat(80)));
}

fn not_found(id: &str) -> String {
    format!(
        "approval {id} was not found on this sidecar. Stop: check the id against the deny message, and that this MCP entry is the sidecar that denied it"
    )
}

#[test]
fn an_id_in_upper_case_is_the_same() {
    let (asked, told) = Request::call("approval_status", &json!({"id": ID.to_uppercase()}))
        .answered_by(reads("PENDING", ""));

    assert_eq!(asked, format!("/api/sidecars/reviews/{ID}"));
    assert_eq!(told.structured()["id"], ID);
}

#[test]
fn what_is_no_call_of_a_tool_is_an_error() {
    let table = [
        json!({}),
        json!({"name": null}),
        json!({"name": 7}),
        json!({"name": ""}),
        json!({"name": "zzz"}),
        json!({"name": "approval_"}),
        json!({"name": "approvalstatus"}),
        json!({"name": "Approval_status", "arguments": {"id": ID}}),
        json!({"name": "approval_claim", "arguments": {"id": ID}}),
        json!({"name": "approval_st\u{430}tus", "arguments": {"id": ID}}),
        json!({"name": "approval_status\u{200b}", "arguments": {"id": ID}}),
        json!({"name": "approval_status", "arguments": []}),
        json!({"name": "approval_status", "arguments": "{}"}),
        json!({"name": "approval_status", "Arguments": {"id": ID}}),
    ];
    for params in table {
        let (status, code) = Request::legacy("tools/call", &params).answered().code();

        assert_eq!(code, -32_602, "{params}");
        assert_eq!(
            status,
            if params.get("Arguments").is_some() {
                400
            } else {
                200
            }
        );
    }
    let modern = Request::modern("tools/call", &json!({"name": "zzz"})).answered();
    assert_eq!(modern.code(), (200, -32_602));
}

#[test]
fn arguments_may_be_left_out() {
    for params in [
        json!({"name": "approval_list"}),
        json!({"name": "review_list", "arguments": null}),
    ] {
        let request = Request::legacy("tools/call", &params);

        let (asked, _) = request.answered_by(said("200", "application/json", "[]"));

        assert_eq!(asked, format!("{LIST}20"));
    }
}

#[test]
fn ids_come_back_token_for_token() {
    for id in [
        "0",
        "-0",
        "1.0",
        "3.5",
        "1e3",
        "9223372036854775809",
        r#""7""#,
        r#""\u0041\/\"""#,
        r#""""#,
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"approval_status","arguments":{{"id":"{ID}"}}}}}}"#
        );
        let listener = listener();
        let (endpoint, _) = Request::post(body).send(&listener);

        let (_, effects) = endpoint
            .expect("reads")
            .handle(&listener, Event::PlaneAnswered(reads("PENDING", "")));

        let text = String::from_utf8(answer(&effects).body.clone()).expect("UTF-8");
        assert!(
            text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)),
            "{text}"
        );
    }
}
