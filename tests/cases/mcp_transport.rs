//! The endpoint of the approval tools as bytes on the wire: what it serves, what it refuses, and how.

use hoop_tests::client::Answer;
use hoop_tests::host::Host;
use hoop_tests::http1;
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;
use serde_json::{Value, json};

on_both_hosts! {
    a_client_of_the_earlier_era_opens_with_initialize,
    a_client_of_the_later_era_says_with_each_request_what_it_speaks,
    a_page_of_another_origin_and_a_foreign_name_are_403,
    batches_and_what_is_no_message_are_refused_on_every_version,
    headers_that_disagree_with_the_body_are_refused,
    ids_come_back_token_for_token,
    only_one_path_and_one_method_are_served,
    what_is_too_large_or_encoded_is_refused,
}

const JSON: (&str, &str) = ("content-type", "application/json");
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

async fn tools(host: Host) -> Scene {
    Scene::real(host).serving_tools().start().await
}

async fn post(scene: &Scene, more: &[(&str, &str)], body: &str) -> Answer {
    let headers: Vec<_> = [JSON, BOTH].iter().chain(more).copied().collect();
    send(scene, "POST", "/mcp", &headers, Some(body.as_bytes())).await
}

async fn send(
    scene: &Scene,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Answer {
    let host = scene.address().to_string();
    let request = http1::request_to(&host, method, target, headers, body);
    let mut connection = scene.connect().await;
    if method == "HEAD" {
        connection.send_head(&request).await
    } else {
        connection.send(&request).await
    }
}

fn message(answer: &Answer) -> Value {
    let kind = answer.header("content-type");
    assert_eq!(kind.as_deref(), Some("application/json"), "{answer}");
    serde_json::from_slice(&answer.body).expect("JSON")
}

async fn a_client_of_the_earlier_era_opens_with_initialize(host: Host) {
    let scene = tools(host).await;
    for (asked, given) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});

        let answer = post(&scene, &[], &body.to_string()).await;

        assert_eq!(answer.status, 200);
        let result = message(&answer)["result"].clone();
        assert_eq!(result["protocolVersion"], given, "{asked}");
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        assert_eq!(result["serverInfo"]["name"], "hoop-sidecar");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let version = [("mcp-protocol-version", "2025-11-25")];
    let accepted = post(&scene, &version, notification).await;
    assert_eq!((accepted.status, accepted.body.len()), (202, 0));
    let ping = post(
        &scene,
        &version,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
    )
    .await;
    assert_eq!(
        message(&ping),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}})
    );
    let unknown = post(
        &scene,
        &[("mcp-protocol-version", "1999-01-01")],
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
    )
    .await;
    assert_eq!(unknown.status, 400);
    let supported = &message(&unknown)["error"]["data"]["supported"];
    assert_eq!(supported.as_array().map(Vec::len), Some(4), "{supported}");
    scene.finish(0).await;
}

fn modern(method: &str, more: Value) -> String {
    let mut params = more;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

async fn a_client_of_the_later_era_says_with_each_request_what_it_speaks(host: Host) {
    let scene = tools(host).await;
    let version = ("mcp-protocol-version", "2026-07-28");
    let sent = |method: &'static str| [version, ("mcp-method", method)];

    let discovered = post(
        &scene,
        &sent("server/discover"),
        &modern("server/discover", json!({})),
    )
    .await;

    let result = message(&discovered)["result"].clone();
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["cacheScope"], "public");
    let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "hoop-sidecar");
    for (method, status, code) in [
        ("ping", 404, -32_601),
        ("initialize", 404, -32_601),
        ("unknown/method", 404, -32_601),
    ] {
        let refused = post(&scene, &sent(method), &modern(method, json!({}))).await;

        assert_eq!(refused.status, status, "{method}");
        assert_eq!(message(&refused)["error"]["code"], code, "{method}");
    }
    let without_meta = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    let refused = post(&scene, &sent("tools/list"), without_meta).await;
    assert_eq!(refused.status, 400);
    assert_eq!(message(&refused)["error"]["code"], -32_602);
    let later = modern("tools/list", json!({})).replace("2026-07-28", "2099-01-01");
    let headers = [
        ("mcp-protocol-version", "2099-01-01"),
        ("mcp-method", "tools/list"),
    ];
    let refused = post(&scene, &headers, &later).await;
    assert_eq!(refused.status, 400);
    let error = &message(&refused)["error"];
    assert_eq!(error["code"], -32_022);
    let data = json!({"supported": ["2026-07-28"], "requested": "2099-01-01"});
    assert_eq!(error["data"], data);
    scene.finish(0).await;
}

async fn headers_that_disagree_with_the_body_are_refused(host: Host) {
    let scene = tools(host).await;
    let version = ("mcp-protocol-version", "2026-07-28");
    let call = modern(
        "tools/call",
        json!({"name": "approval_list", "arguments": {}}),
    );
    let method = ("mcp-method", "tools/call");
    let table: [(&[(&str, &str)], u16); 11] = [
        (&[version, method, ("mcp-name", "approval_list")], 200),
        (
            &[
                version,
                method,
                ("mcp-name", "=?base64?YXBwcm92YWxfbGlzdA==?="),
            ],
            200,
        ),
        (&[version, method], 400),
        (&[version, ("mcp-name", "approval_list")], 400),
        (&[version, method, ("mcp-name", "approval_status")], 400),
        (&[version, method, ("mcp-name", "Approval_list")], 400),
        (&[version, method, ("mcp-name", "=?base64?YXBw?=")], 400),
        (
            &[
                version,
                method,
                ("mcp-name", "approval_list"),
                ("mcp-name", "approval_list"),
            ],
            400,
        ),
        (
            &[
                version,
                ("mcp-method", "TOOLS/CALL"),
                ("mcp-name", "approval_list"),
            ],
            400,
        ),
        (
            &[
                ("mcp-protocol-version", "2025-11-25"),
                method,
                ("mcp-name", "approval_list"),
            ],
            400,
        ),
        (&[method, ("mcp-name", "approval_list")], 400),
    ];
    for (headers, status) in table {
        let answer = post(&scene, headers, &call).await;

        assert_eq!(answer.status, status, "{headers:?}");
        if status == 400 {
            assert_eq!(message(&answer)["error"]["code"], -32_020, "{headers:?}");
        }
    }
    let orphan = [version, ("mcp-method", "tools/list"), ("mcp-name", "x")];
    let refused = post(&scene, &orphan, &modern("tools/list", json!({}))).await;
    assert_eq!(refused.status, 400);
    scene.finish(0).await;
}

async fn only_one_path_and_one_method_are_served(host: Host) {
    let scene = tools(host).await;
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for method in ["GET", "DELETE", "HEAD", "PUT", "OPTIONS"] {
        let answer = send(&scene, method, "/mcp", &[BOTH], None).await;

        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow").as_deref(), Some("POST"), "{method}");
    }
    for path in [
        "/",
        "/mcp/",
        "/MCP",
        "/mcpx",
        "/mcp/x",
        "//mcp",
        "/./mcp",
        "/x/../mcp",
        "/mcp;a",
        "/payments/42",
        "/.well-known/hoop/approvals/0f1e2d3c-4b5a-4697-8897-000000000001",
    ] {
        let answer = send(&scene, "POST", path, &[JSON, BOTH], Some(ping)).await;

        assert_eq!(answer.status, 404, "{path}");
    }
    let with_query = send(&scene, "POST", "/mcp?x=1", &[JSON, BOTH], Some(ping)).await;
    assert_eq!(with_query.status, 200);
    let pace = ("x-hoop-mcp-pace", "1");
    let answer = send(&scene, "POST", "/mcp", &[JSON, BOTH, pace], Some(ping)).await;
    assert_eq!(message(&answer)["result"], json!({}));
    scene.until_counter("mcp_refused", 16).await;
    scene.until_counter("mcp_answered", 2).await;
    scene.finish(0).await;
}

async fn a_page_of_another_origin_and_a_foreign_name_are_403(host: Host) {
    let scene = tools(host).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let own = format!("http://{}", scene.address());
    let table: [(&[(&str, &str)], u16); 7] = [
        (&[("origin", &own)], 200),
        (&[("origin", "http://evil.example.com")], 403),
        (&[("origin", "null")], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
        (&[("sec-fetch-site", "same-origin")], 200),
        (&[("sec-fetch-site", "none")], 200),
    ];
    for (headers, status) in table {
        let answer = post(&scene, headers, ping).await;

        assert_eq!(answer.status, status, "{headers:?}");
    }
    for host in ["evil.example.com", "127.0.0.1.evil.example.com:8765"] {
        let request = http1::request_to(host, "POST", "/mcp", &[JSON], Some(ping.as_bytes()));
        let answer = scene.send(&request).await;

        assert_eq!(answer.status, 403, "{host}");
    }
    scene.finish(0).await;
}

async fn batches_and_what_is_no_message_are_refused_on_every_version(host: Host) {
    let scene = tools(host).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        for body in ["[]", &format!(" [{ping}]"), "[{"] {
            let answer = post(&scene, &[("mcp-protocol-version", version)], body).await;

            assert_eq!(answer.status, 400, "{version} {body}");
            let error = &message(&answer)["error"];
            assert_eq!(error["code"], -32_600, "{version} {body}");
        }
    }
    for (body, code) in [
        ("", -32_700),
        ("nonsense", -32_700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", -32_700),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
            -32_700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}"#,
            -32_600,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
    ] {
        let answer = post(&scene, &[], body).await;

        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(message(&answer)["error"]["code"], code, "{body}");
    }
    scene.finish(0).await;
}

async fn ids_come_back_token_for_token(host: Host) {
    let scene = tools(host).await;
    for id in [
        "1.0",
        "3.5",
        "9223372036854775809",
        "0",
        r#""7""#,
        r#""\u0041""#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);

        let answer = post(&scene, &[], &body).await;

        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains(&format!(r#""id":{id},"#)), "{text}");
    }
    scene.finish(0).await;
}

async fn what_is_too_large_or_encoded_is_refused(host: Host) {
    let scene = tools(host).await;
    let body_of = |length: usize| {
        let frame = r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":""}"#;
        let filler = "x".repeat(length - frame.len());
        frame.replace(r#""x":"""#, &format!(r#""x":"{filler}""#))
    };
    for (length, status) in [(65_536, 200), (65_537, 413), (200_000, 413)] {
        let answer = post(&scene, &[], &body_of(length)).await;

        assert_eq!(answer.status, status, "{length}");
    }
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (headers, status) in [
        ([JSON, BOTH, ("content-encoding", "gzip")], 415),
        ([("content-type", "text/plain"), BOTH, ("x-a", "b")], 415),
        ([JSON, ("accept", "text/html"), ("x-a", "b")], 406),
        ([JSON, ("accept", "application/json"), ("x-a", "b")], 200),
        ([JSON, ("accept", "*/*"), ("x-a", "b")], 200),
    ] {
        let answer = send(&scene, "POST", "/mcp", &headers, Some(ping)).await;

        assert_eq!(answer.status, status, "{headers:?}");
    }
    let events = ("accept", "text/event-stream");
    let answer = send(&scene, "POST", "/mcp", &[JSON, events], Some(ping)).await;
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("text/event-stream")
    );
    assert_eq!(
        answer.body,
        b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
    );
    scene.finish(0).await;
}
