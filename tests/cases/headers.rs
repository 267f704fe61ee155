//! Header fields that break other gates: not UTF-8, repeated, very many. No panic, and the rules decide as ever.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::{Message, request};
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;

on_both_hosts! {
    a_header_value_that_is_not_utf_8_passes_and_is_held_as_the_rules_say,
    a_host_that_is_not_utf_8_never_runs_a_held_call,
    a_repeated_header_stays_repeated,
    a_request_that_has_two_readings_by_its_headers_never_runs,
    thousands_of_headers_do_not_hide_a_call_from_its_rule,
    a_client_that_asks_for_retries_gets_one_attempt,
    what_a_client_claims_about_approvals_changes_nothing,
    no_alias_of_method_path_or_host_reaches_the_upstream,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// A request with raw header lines.
fn with_lines(method: &str, target: &str, lines: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {target} HTTP/1.1\r\nhost: billing.example\r\n").into_bytes();
    bytes.extend_from_slice(lines);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn values(message: &Message, name: &str) -> Vec<Vec<u8>> {
    message.header_values(name).map(<[u8]>::to_vec).collect()
}

async fn a_header_value_that_is_not_utf_8_passes_and_is_held_as_the_rules_say(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for line in [
        &b"x-odd: \xff\xfe\xe2\x82\r\n"[..],
        b"user-agent: \x80\r\n",
        b"content-type: \xc3\x28\r\n",
        b"cookie: a=\xff\r\n",
    ] {
        answer::passed(&scene.send(&with_lines("GET", "/invoices/1", line)).await);
        let name = line.split(|byte| *byte == b':').next().expect("a name");
        let name = String::from_utf8_lossy(name).into_owned();
        let sent = line
            .trim_ascii_end()
            .split(|byte| *byte == b' ')
            .next_back()
            .expect("a value");
        assert_eq!(values(&scene.upstream.last(), &name), [sent]);
        answer::pending(&scene.send(&with_lines("POST", "/payments/42", line)).await);
    }
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(
        &scene
            .send(&with_lines("POST", "/payments/42", b"x-odd: \xff\r\n"))
            .await,
    );
    assert_eq!(values(&scene.upstream.last(), "x-odd"), [b"\xff"]);
    scene.finish(5).await;
}

async fn a_host_that_is_not_utf_8_never_runs_a_held_call(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let call = b"POST /payments/42 HTTP/1.1\r\nhost: \xff\xfe\r\n\r\n";
    let answer = scene.send(call).await;
    assert!(matches!(answer.status, 400 | 403), "{answer}");
    answer::passed(&scene.get("/invoices/1").await);
    scene.finish(1).await;
}

async fn a_repeated_header_stays_repeated(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let lines = b"x-twice: one\r\nx-other: x\r\nX-Twice: two\r\nx-twice: one\r\n";
    for target in ["/invoices/1", "/payments/42"] {
        answer::passed(&scene.send(&with_lines("POST", target, lines)).await);
        assert_eq!(
            values(&scene.upstream.last(), "x-twice"),
            [&b"one"[..], b"two", b"one"]
        );
    }
    scene.finish(2).await;
}

async fn a_request_that_has_two_readings_by_its_headers_never_runs(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let lines: [&[u8]; 4] = [
        b"host: other.example\r\n",
        b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ];
    for line in lines {
        let mut connection = scene.connect().await;
        let call = with_lines("POST", "/payments/42", line);
        let answer = connection.send(&call).await;
        assert!(answer.status >= 400, "{}: {answer}", line.escape_ascii());
    }
    scene.finish(0).await;
}

async fn thousands_of_headers_do_not_hide_a_call_from_its_rule(host: Host) {
    let limit = |manager: &mut serde_json::Value| {
        manager["common_http_protocol_options"]["max_headers_count"] = 3000.into();
        manager["max_request_headers_kb"] = 96.into();
    };
    let scene = Scene::lying(host).edit_manager(limit).start().await;
    // More than the pairs that Envoy takes from a filter (contract/envoy.md D2): towards it there is no such bound.
    for count in [200, 1000, 1500, 2900] {
        let lines: String = (0..count)
            .map(|index| format!("x-many-{index}: {index}\r\n"))
            .collect();
        scene
            .lies()
            .always(Reply::review(201, false, ID, "PENDING"));
        answer::pending(
            &scene
                .send(&with_lines("POST", "/payments/42", lines.as_bytes()))
                .await,
        );
        scene
            .lies()
            .always(Reply::review(200, true, ID, "EXECUTED"));
        answer::passed(
            &scene
                .send(&with_lines("POST", "/payments/42", lines.as_bytes()))
                .await,
        );
        let seen = scene.upstream.last();
        let many = seen
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("x-many-"))
            .count();
        assert_eq!(many, count);
        answer::passed(
            &scene
                .send(&with_lines("GET", "/invoices/1", lines.as_bytes()))
                .await,
        );
    }
    scene.finish(8).await;
}

async fn a_client_that_asks_for_retries_gets_one_attempt(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    scene.upstream.react(hoop_tests::upstream::Reaction::Fail);
    let headers = [
        ("x-envoy-retry-on", "5xx,reset,connect-failure"),
        ("x-envoy-max-retries", "5"),
        ("x-envoy-retry-grpc-on", "unavailable"),
        ("x-envoy-hedge-on-per-try-timeout", "true"),
        ("x-envoy-upstream-rq-per-try-timeout-ms", "50"),
    ];
    let answer = scene
        .send(&request("POST", "/payments/42", &headers, Some(b"x")))
        .await;
    assert_eq!(answer.status, 503, "{answer}");
    assert_eq!(scene.upstream.requests().len(), 1);

    scene.upstream.react(hoop_tests::upstream::Reaction::Hangup);
    let answer = scene
        .send(&request("POST", "/payments/42", &headers, Some(b"x")))
        .await;
    assert_eq!(answer.status, 503, "{answer}");
    assert_eq!(scene.lies().calls().len(), 2);
    scene.finish(2).await;
}

async fn what_a_client_claims_about_approvals_changes_nothing(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let headers = [
        ("x-hoop-approval-id", ID),
        ("x-hoop-approval-status", "APPROVED"),
        ("hoop-sidecar-token", "hsc_of_the_agent"),
        ("x-envoy-original-path", "/invoices/1"),
        ("x-original-url", "/invoices/1"),
        ("x-rewrite-url", "/invoices/1"),
        ("x-http-method-override", "GET"),
        ("x-envoy-internal", "true"),
    ];
    answer::pending(
        &scene
            .send(&request("POST", "/payments/42", &headers, Some(b"x")))
            .await,
    );
    let call = String::from_utf8_lossy(&scene.lies().calls()[0].raw).into_owned();
    assert!(!call.contains("hsc_of_the_agent"), "{call}");
    scene.finish(0).await;
}

async fn no_alias_of_method_path_or_host_reaches_the_upstream(host: Host) {
    let scene = Scene::lying(host).start().await;
    let aliases = [
        ("x-http-method", "DELETE"),
        ("x-http-method-override", "DELETE"),
        ("x-method-override", "DELETE"),
        ("x-original-url", "/payments/42"),
        ("x-rewrite-url", "/payments/42"),
        ("x-original-uri", "/payments/42"),
        ("x-forwarded-uri", "/payments/42"),
        ("x-forwarded-path", "/payments/42"),
        ("x-forwarded-prefix", "/payments"),
        ("forwarded", "host=pay.example"),
        ("x-forwarded-host", "pay.example"),
        ("x-original-host", "pay.example"),
        ("x-host", "pay.example"),
    ];

    let answer = scene
        .send(&request("GET", "/invoices/1", &aliases, None))
        .await;

    answer::passed(&answer);
    for (name, _) in aliases {
        assert_eq!(scene.upstream.last().header(name), None, "{name}");
    }
    scene.finish(1).await;
}
