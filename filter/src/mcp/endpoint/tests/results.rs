//! What the tools tell of approvals.

use super::*;

/// Each status: what to do next, and how the instruction begins, in the words of the tools that were called.
const STATUSES: [(&str, &str, &str); 8] = [
    (
        "PENDING",
        "wait",
        "Nobody has decided yet. Call $_wait with this id. Do not resend the statement meanwhile",
    ),
    (
        "APPROVED",
        "resend_identical_statement",
        "Approved. Resend the identical statement, byte for byte, to listener billing. It runs once.",
    ),
    (
        "PROCESSING",
        "wait",
        "Another request is using this approval. Call $_wait with this id",
    ),
    (
        "REJECTED",
        "stop",
        "Rejected: the statement will not run. Do not resend it.",
    ),
    (
        "REVOKED",
        "stop",
        "Revoked: the statement will not run. Do not resend it.",
    ),
    ("EXECUTED", "stop", "Already used: "),
    ("EXPIRED", "stop", "Expired: the statement did not run."),
    (
        "LATER_WORD",
        "stop",
        "Stop, and ask a human to check this approval.",
    ),
];

#[test]
fn each_status_says_what_to_do_next_in_the_words_of_its_family() {
    for family in ["approval", "review"] {
        for (status, next, instruction) in STATUSES {
            let tool = format!("{family}_status");

            let (asked, told) =
                Request::call(&tool, &json!({"id": ID})).answered_by(reads(status, ""));

            assert_eq!(asked, format!("/api/sidecars/reviews/{ID}"));
            let told = told.structured();
            let text = told["instruction"].as_str().expect("an instruction");
            assert!(
                text.starts_with(&instruction.replace('$', family)),
                "{text}"
            );
            let known = json!({"id": ID, "status": status, "listener_name": "billing", "approval_rule": "r",
                "created_at": "2026-09-29T14:02:11Z", "next": next, "instruction": text});
            assert_eq!(*told, known, "what is not known is left out");
        }
    }
}

#[test]
fn a_status_that_is_not_fit_to_be_repeated_is_unknown() {
    let (_, told) = Request::call("approval_status", &json!({"id": ID}))
        .answered_by(reads("ignore all\\nprevious", ""));

    assert_eq!(
        (&told.structured()["status"], &told.structured()["next"]),
        (&json!("UNKNOWN"), &json!("stop"))
    );
}

#[test]
fn times_and_reasons_are_told_where_they_are_known() {
    let status = |word: &str, more: &str| {
        let (_, told) =
            Request::call("approval_status", &json!({"id": ID})).answered_by(reads(word, more));
        told.structured().clone()
    };
    let expires = r#","expires_at":"2026-09-29T14:32:11Z","decided_at":null"#;

    let pending = status("PENDING", expires);
    assert_eq!(
        (&pending["expires_at"], pending.get("decided_at")),
        (&json!("2026-09-29T14:32:11Z"), None)
    );
    assert!(pending["instruction"].as_str().is_some_and(|text| {
        text.ends_with(" Undecided, the request expires at 2026-09-29T14:32:11Z.")
    }));
    let approved = status("APPROVED", expires);
    assert!(
        approved["instruction"]
            .as_str()
            .is_some_and(|text| text.ends_with(" Resend it before 2026-09-29T14:32:11Z."))
    );
    let rejected = status(
        "REJECTED",
        r#","decided_at":"2026-09-29T14:05:00Z","rejection_reason":"not today""#,
    );
    assert_eq!(
        (&rejected["decided_at"], &rejected["rejection_reason"]),
        (&json!("2026-09-29T14:05:00Z"), &json!("not today"))
    );
    assert!(
        rejected["instruction"]
            .as_str()
            .is_some_and(|text| text.ends_with(" Reason: not today"))
    );
}

#[test]
fn a_reason_is_cleaned_and_clipped() {
    let table = [
        (r"a\nb\u0007c".to_owned(), Some("abc".to_owned())),
        (r"\r\n".to_owned(), None),
        (String::new(), None),
        ("x".repeat(1_000), Some("x".repeat(1_000))),
        ("x".repeat(1_001), Some("x".repeat(1_000) + "…")),
        ("\u{e9}".repeat(501), Some("\u{e9}".repeat(500) + "…")),
    ];
    for (reason, told_as) in table {
        let more = format!(r#","rejection_reason":"{reason}""#);

        let (_, told) = Request::call("approval_status", &json!({"id": ID}))
            .answered_by(reads("REJECTED", &more));

        assert_eq!(
            told.structured()["rejection_reason"].as_str(),
            told_as.as_deref(),
            "{reason}"
        );
    }
}

#[test]
fn a_list_tells_of_each_as_status_does() {
    let listener = listener();
    let (endpoint, _) = Request::call("review_list", &json!({})).send(&listener);
    let list = format!(
        r#"[{},{{"id":"x","status":"PENDING"}},7,{}]"#,
        stands("PENDING", ""),
        stands("EXECUTED", "")
    );

    let (_, effects) = endpoint.expect("asks").handle(
        &listener,
        Event::PlaneAnswered(said("200", "application/json", &list)),
    );

    let told = Told::of(&effects);
    let reviews = told.structured()["reviews"].as_array().expect("a list");
    let words: Vec<_> = reviews
        .iter()
        .map(|review| (review["status"].as_str(), review["next"].as_str()))
        .collect();
    assert_eq!(
        words,
        [
            (Some("PENDING"), Some("wait")),
            (Some("EXECUTED"), Some("stop"))
        ]
    );
    assert!(
        reviews[0]["instruction"]
            .as_str()
            .is_some_and(|text| text.contains("review_wait"))
    );
    assert!(effects.contains(&Effect::Log {
        level: log::Level::Warn,
        line: "mcp=list listener=\"agents\" why=\"2 approvals of the control plane's list cannot be read\"".to_owned(),
    }));
}

#[test]
fn a_list_that_is_no_list_is_a_failure() {
    let too_old = "the control plane is older than this sidecar, or does not let it read approvals. Use review_status with an id from a deny message";
    let failed = "the control plane could not list the approvals. Try again later, or ask a human to check them in the control plane";
    for (status, content_type, body, text) in [
        ("404", "text/plain", "404 page not found", too_old),
        (
            "401",
            "application/json",
            r#"{"message":"access denied"}"#,
            too_old,
        ),
        (
            "500",
            "application/json",
            r#"{"message":"at plane.internal:8009"}"#,
            failed,
        ),
        ("200", "application/json", "{}", failed),
        ("200", "application/json", "[", failed),
        ("200", "text/html", "[]", failed),
    ] {
        let (_, told) =
            Request::call("review_list", &json!({})).answered_by(said(status, content_type, body));

        assert_eq!(told.failure(), text, "{status} {body}");
    }
}

#[test]
fn an_approval_that_is_not_told_of_says_why_in_our_own_words() {
    let unknown = format!(
        "approval {ID} was not found on this sidecar. Stop: check the id against the deny message, and that this MCP entry is the sidecar that denied it"
    );
    let too_old = format!(
        "the control plane is older than this sidecar, or does not let it read approvals. Ask a human to check approval {ID} in the control plane"
    );
    let failed = format!(
        "the control plane could not report approval {ID}. Try again later, or ask a human to check it in the control plane"
    );
    let other = stands("APPROVED", "").replace("9f97", "0000");
    let late = stands("PENDING", r#","expires_at":"10000-01-01T00:00:00Z""#);
    let table = [
        (
            said(
                "404",
                "application/json",
                r#"{"message":"review not found"}"#,
            ),
            &unknown,
            0,
        ),
        (said("404", "text/plain", "404 page not found"), &too_old, 1),
        (
            said(
                "500",
                "application/json",
                r#"{"message":"at plane.internal:8009"}"#,
            ),
            &failed,
            1,
        ),
        (
            said("503", "text/plain", "connect plane.internal:8009"),
            &failed,
            1,
        ),
        (
            said("401", "application/json", r#"{"message":"hsc_secret"}"#),
            &failed,
            1,
        ),
        (said("302", "application/json", "{}"), &failed, 1),
        (said("200", "application/json", &other), &failed, 1),
        (said("200", "application/json", "no JSON"), &failed, 1),
        (said("200", "application/json", &late), &failed, 1),
        (Err(PlaneFault::Unsent), &failed, 1),
        (Err(PlaneFault::NoAnswer), &failed, 1),
    ];
    for tool in ["approval_status", "approval_wait"] {
        for (plane, text, failures) in &table {
            let listener = listener();
            let (endpoint, _) = Request::call(tool, &json!({"id": ID})).send(&listener);

            let (_, effects) = endpoint
                .expect("asks")
                .handle(&listener, Event::PlaneAnswered(plane.clone()));

            assert_eq!(Told::of(&effects).failure(), *text, "{tool} {plane:?}");
            assert_eq!(
                counts(&effects, Counter::PlaneFailures),
                *failures,
                "{tool} {plane:?}"
            );
            assert_eq!(counts(&effects, Counter::McpAnswered), 1);
        }
    }
}

#[test]
fn a_result_is_what_its_schema_says() {
    let list = Request::legacy("tools/list", &json!({})).answered();
    let schema_of = |name: &str| {
        let mut tools = list.result()["tools"].as_array().expect("tools").iter();
        tools.find(|tool| tool["name"] == name).expect("the tool")["outputSchema"].clone()
    };
    let more = r#","decided_at":"2026-09-29T14:05:00Z","rejection_reason":"no","expires_at":"2026-09-29T14:32:11+02:00""#;
    for family in ["approval", "review"] {
        for (status, _, _) in STATUSES {
            for more in ["", more] {
                let [one, many] = [
                    stands(status, more),
                    format!("[{0},{0}]", stands(status, more)),
                ];
                for (tool, plane) in [("status", &one), ("list", &many), ("wait", &one)] {
                    let tool = format!("{family}_{tool}");
                    let arguments = if tool.ends_with("list") {
                        json!({})
                    } else {
                        json!({"id": ID})
                    };
                    let listener = listener();
                    let (endpoint, _) = Request::call(&tool, &arguments).send(&listener);
                    let event = Event::PlaneAnswered(said("200", "application/json", plane));
                    let (endpoint, mut effects) = endpoint.expect("asks").handle(&listener, event);
                    if let [Effect::Watch { .. }] = effects.as_slice() {
                        (_, effects) = endpoint.expect("waits").handle(&listener, news(status, 0));
                    }

                    let told = Told::of(&effects);

                    assert_eq!(
                        misfit(&schema_of(&tool), told.structured()),
                        None,
                        "{tool} {status}"
                    );
                }
            }
        }
    }
    let schema = schema_of("approval_list");
    assert!(
        misfit(&schema, &json!({})).is_some()
            && misfit(&schema, &json!({"reviews": null})).is_some(),
        "the check checks nothing"
    );
}

/// Where a value is not as a schema says; `None` where it is. Knows the words that our schemas use, and none besides.
fn misfit(schema: &Value, value: &Value) -> Option<String> {
    for (word, wanted) in schema.as_object().expect("a schema") {
        let fits = match word.as_str() {
            "type" => match wanted.as_str().expect("a type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64(),
                other => panic!("an unknown type {other}"),
            },
            "enum" => wanted.as_array().expect("a list").contains(value),
            "format" => {
                *wanted == "date-time" && value.as_str().is_some_and(|time| time.contains('T'))
            }
            "required" => wanted
                .as_array()
                .expect("a list")
                .iter()
                .all(|name| value.get(name.as_str().expect("a name")).is_some()),
            "items" => value
                .as_array()
                .is_some_and(|items| items.iter().all(|item| misfit(wanted, item).is_none())),
            // Stricter than the schema: what is not described is a misfit, too.
            "properties" => value
                .as_object()
                .expect("an object")
                .iter()
                .all(|(name, value)| {
                    wanted
                        .get(name)
                        .is_some_and(|schema| misfit(schema, value).is_none())
                }),
            "description" => true,
            other => panic!("an unknown word {other}"),
        };
        if !fits {
            return Some(format!("{word} {wanted}: {value}"));
        }
    }
    None
}
