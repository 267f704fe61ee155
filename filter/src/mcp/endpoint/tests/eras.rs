//! Which rules a request goes by, and the methods of each era.

use super::*;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request of the later era whose `_meta` is given.
fn with_meta(method: &str, meta: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": meta}});
    Request {
        body: body.to_string().into_bytes(),
        ..Request::modern(method, &json!({}))
    }
}

#[test]
fn initialize_agrees_on_a_version_or_offers_the_newest() {
    let table = [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
    ];
    for (asked, agreed) in table {
        let told = Request::legacy(
            "initialize",
            &json!({"protocolVersion": asked, "capabilities": {}}),
        )
        .answered();

        let result = told.result();
        assert_eq!(result["protocolVersion"], agreed, "{asked}");
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        assert_eq!(result["serverInfo"]["name"], "hoop-sidecar");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result.get("resultType"), None);
    }
}

#[test]
fn initialize_without_a_header_is_of_the_earlier_era_whatever_it_claims() {
    let request = with_meta("initialize", &json!({VERSION: MODERN, CAPABILITIES: {}}));

    let told = request.clone().without("mcp-protocol-version").answered();
    assert_eq!(told.result()["protocolVersion"], "2025-11-25");

    assert_eq!(
        request.answered().code(),
        (404, -32_601),
        "with the header it is an unknown method"
    );
}

#[test]
fn a_ping_of_the_earlier_era_has_an_empty_result() {
    assert_eq!(
        *Request::legacy("ping", &json!({})).answered().result(),
        json!({})
    );
    assert_eq!(
        Request::post(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#)
            .answered()
            .message,
        json!({"jsonrpc": "2.0", "id": 7, "result": {}})
    );
}

#[test]
fn the_earlier_era_needs_no_header_and_takes_those_that_it_knows() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let request =
            Request::legacy("tools/list", &json!({})).with("mcp-protocol-version", version);

        assert!(request.answered().result()["tools"].is_array());
    }
    for version in ["1999-01-01", "2099-01-01", "", "2025-11-25, 2025-11-25"] {
        let told = Request::legacy("tools/list", &json!({}))
            .with("mcp-protocol-version", version)
            .answered();

        assert_eq!(told.code(), (400, -32_022), "{version}");
        assert_eq!(told.message["id"], 7);
        assert_eq!(told.message["error"]["data"]["requested"], version);
    }
    let twice = Request::legacy("tools/list", &json!({}))
        .with("mcp-protocol-version", "2025-11-25")
        .and("mcp-protocol-version", "2025-11-25");
    assert_eq!(twice.answered().code(), (400, -32_020));
}

#[test]
fn an_unknown_method_is_200_in_the_earlier_era_and_404_in_the_later() {
    for method in [
        "prompts/list",
        "resources/read",
        "server/discover",
        "unknown/method",
        "",
        "Ping",
        "tools/List",
    ] {
        assert_eq!(
            Request::legacy(method, &json!({})).answered().code(),
            (200, -32_601),
            "{method}"
        );
    }
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "subscriptions/listen",
        "prompts/list",
        "Tools/list",
    ] {
        assert_eq!(
            Request::modern(method, &json!({})).answered().code(),
            (404, -32_601),
            "{method}"
        );
    }
}

#[test]
fn discovery_says_what_there_is() {
    let told = Request::modern("server/discover", &json!({})).answered();

    let server = json!({"name": "hoop-sidecar", "title": "Approval tools", "version": env!("CARGO_PKG_VERSION")});
    assert_eq!(
        *told.result(),
        json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public",
               "_meta": {"io.modelcontextprotocol/serverInfo": server}})
    );
}

#[test]
fn a_request_of_the_later_era_says_all_that_it_must() {
    let table = [
        (json!({VERSION: MODERN, CAPABILITIES: {}}), 200, 0),
        (
            json!({VERSION: MODERN, CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": {}}),
            200,
            0,
        ),
        (json!({}), 400, -32_602),
        (json!("x"), 400, -32_602),
        (json!({CAPABILITIES: {}}), 400, -32_602),
        (json!({VERSION: MODERN}), 400, -32_602),
        (json!({VERSION: 20_260_728, CAPABILITIES: {}}), 400, -32_602),
        (json!({VERSION: MODERN, CAPABILITIES: []}), 400, -32_602),
        (
            json!({VERSION: MODERN, CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": "x"}),
            400,
            -32_602,
        ),
        // What is missing comes before what does not agree.
        (json!({VERSION: "v999.0.0"}), 400, -32_602),
        (json!({VERSION: "v999.0.0", CAPABILITIES: {}}), 400, -32_020),
        (
            json!({VERSION: "2025-11-25", CAPABILITIES: {}}),
            400,
            -32_020,
        ),
    ];
    for (meta, status, code) in table {
        let told = with_meta("server/discover", &meta).answered();

        assert_eq!(told.message["id"], 7, "{meta}");
        let found = (
            told.status,
            told.message["error"]["code"].as_i64().unwrap_or_default(),
        );
        assert_eq!(found, (status, code), "{meta}");
    }
    let nothing = Request::post(r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#)
        .with("mcp-protocol-version", MODERN);
    assert_eq!(nothing.answered().code(), (400, -32_602));
}

#[test]
fn a_claim_needs_its_header() {
    let request = Request::modern("tools/list", &json!({}));

    assert_eq!(
        request
            .clone()
            .without("mcp-protocol-version")
            .answered()
            .code(),
        (400, -32_020)
    );
    assert_eq!(
        request
            .clone()
            .with("mcp-protocol-version", "2025-11-25")
            .answered()
            .code(),
        (400, -32_020)
    );
    assert_eq!(
        request
            .and("mcp-protocol-version", MODERN)
            .answered()
            .code(),
        (400, -32_020)
    );
}

#[test]
fn a_version_that_is_not_spoken_is_told_which_are() {
    let told = with_meta(
        "server/discover",
        &json!({VERSION: "v999.0.0", CAPABILITIES: {}}),
    )
    .with("mcp-protocol-version", "v999.0.0")
    .answered();

    assert_eq!(told.code(), (400, -32_022));
    assert_eq!(
        told.message["error"]["data"],
        json!({"supported": [MODERN], "requested": "v999.0.0"})
    );
    // What does not agree comes before what is not spoken.
    let other = with_meta(
        "server/discover",
        &json!({VERSION: "v999.0.0", CAPABILITIES: {}}),
    )
    .with("mcp-protocol-version", "v999.0.0")
    .without("mcp-method");
    assert_eq!(other.answered().code(), (400, -32_020));
}

#[test]
fn headers_that_repeat_the_body_agree_with_it() {
    let call = || {
        Request::modern(
            "tools/call",
            &json!({"name": "approval_status", "arguments": {}}),
        )
    };
    let list = || Request::modern("tools/list", &json!({}));
    let table = [
        (call(), true),
        (call().with("mcp-name", "  approval_status  "), true),
        (
            call().with("mcp-name", "=?base64?YXBwcm92YWxfc3RhdHVz?="),
            true,
        ),
        (
            call().with("mcp-name", "=?base64?YXBwcm92YWxfc3RhdHVz"),
            false,
        ),
        (
            call().with("mcp-name", "=?base64?YXBwcm92YWxfc3RhdH?="),
            false,
        ),
        (call().with("mcp-name", "wrong_tool_name"), false),
        (call().with("mcp-name", "Approval_status"), false),
        (call().without("mcp-name"), false),
        (call().and("mcp-name", "approval_status"), false),
        (call().with("mcp-method", "tools/list"), false),
        (call().with("mcp-method", "TOOLS/CALL"), false),
        (call().without("mcp-method"), false),
        (call().and("mcp-method", "tools/call"), false),
        (list(), true),
        (list().with("mcp-name", "approval_status"), false),
        (
            Request::legacy("tools/list", &json!({})).with("mcp-method", "tools/list"),
            true,
        ),
        (
            Request::legacy("tools/list", &json!({})).with("mcp-method", "tools/call"),
            false,
        ),
        (
            Request::call("approval_status", &json!({})).with("mcp-name", "approval_wait"),
            false,
        ),
    ];
    for (request, agrees) in table {
        let told = request.answered();

        if agrees {
            told.result();
        } else {
            assert_eq!(
                (told.code(), &told.message["id"]),
                ((400, -32_020), &json!(7)),
                "{request:?}"
            );
        }
    }
}

#[test]
fn notifications_are_accepted_and_nothing_is_said() {
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"approval_status","arguments":{{"id":"{ID}"}}}}}}"#
    );
    for body in [
        cancelled,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        &call,
    ] {
        for version in [None, Some("2025-06-18"), Some(MODERN)] {
            let request = Request::post(body);
            let request = match version {
                Some(version) => request.with("mcp-protocol-version", version),
                None => request,
            };

            assert_eq!(
                request.answered(),
                Told {
                    status: 202,
                    message: Value::Null
                },
                "{body} {version:?}"
            );
        }
    }
    let request = Request::post(cancelled);
    assert_eq!(
        request
            .clone()
            .with("mcp-protocol-version", "2099-01-01")
            .answered()
            .code(),
        (400, -32_022)
    );
    assert_eq!(
        request.with("mcp-method", "tools/call").answered().code(),
        (400, -32_020)
    );
}

#[test]
fn responses_are_of_the_earlier_era() {
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
    ] {
        let request = Request::post(body);

        assert_eq!(request.answered().status, 202);
        assert_eq!(
            request
                .with("mcp-protocol-version", MODERN)
                .answered()
                .code(),
            (400, -32_600)
        );
    }
}

#[test]
fn a_version_that_is_not_spoken_is_refused_whatever_is_sent() {
    for body in [
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        let unknown = Request::post(body).with("mcp-protocol-version", "2099-01-01");
        assert_eq!(unknown.answered().code(), (400, -32_022), "{body}");
        let twice = Request::post(body)
            .with("mcp-protocol-version", "2025-06-18")
            .and("mcp-protocol-version", MODERN);
        assert_eq!(twice.answered().code(), (400, -32_020), "{body}");
    }
}
