//! The access log: what that of `envoy/envoy.yaml` prints of a decision, and what each operator prints on both hosts.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use hoop_tests::upstream::Reaction;
use hoop_tests::wait;
use serde_json::{Value, json};

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

on_both_hosts! {
    the_access_log_names_the_decision_its_rule_and_the_approval,
    every_operator_prints_what_a_request_has,
    behind_a_trusted_proxy_the_client_is_the_last_of_the_chain,
}

async fn the_access_log_names_the_decision_its_rule_and_the_approval(host: Host) {
    let rules = json!([
        {"name": "no-admin", "match": {"paths": ["/admin/**"]}, "action": "deny"},
        {"match": {"paths": ["/nameless/**"]}, "action": "deny"},
        {"name": "pay", "match": {"paths": ["/payments/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let mut policy = policy::with_rules(rules);
    policy["poll_interval_ms"] = 100.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, Reply::review(201, false, ID, "PENDING"));
    lies.next(Kind::Filing, Reply::review(201, false, ID, "PENDING"));
    lies.next(Kind::Filing, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));

    answer::pending(&scene.post("/payments/1", &scene.body()).await);
    answer::passed(&scene.post("/payments/2", &scene.body()).await);
    answer::policy_with_status(&scene.get("/admin").await, 403);
    answer::policy_with_status(&scene.get("/nameless").await, 403);
    answer::passed(&scene.get("/free").await);
    for (target, status) in [
        ("/payments/held", "APPROVED"),
        ("/payments/held-in-vain", "REJECTED"),
    ] {
        lies.on(Kind::List, Reply::list(&[(ID, status)]));
        let held = [("x-hoop-approval-mode", "hold")];
        scene
            .send(&request("POST", target, &held, Some(b"x")))
            .await;
    }
    lies.on(Kind::Filing, Reply::typed(500, "text/plain", "no"));
    answer::not_filed(&scene.post("/payments/unfiled", b"x").await);

    for (path, end) in [
        (
            "/payments/1",
            format!("hoop=pending rule=pay approval={ID}"),
        ),
        (
            "/payments/2",
            format!("hoop=released rule=pay approval={ID}"),
        ),
        (
            "/admin",
            "hoop=deny_rule rule=no-admin approval=-".to_owned(),
        ),
        (
            "/nameless",
            "hoop=deny_rule rule=rules[1] approval=-".to_owned(),
        ),
        (
            "/payments/held",
            format!("hoop=released rule=pay approval={ID}"),
        ),
        (
            "/payments/held-in-vain",
            format!("hoop=rejected rule=pay approval={ID}"),
        ),
        (
            "/payments/unfiled",
            "hoop=plane_fault rule=pay approval=-".to_owned(),
        ),
        ("/free", "hoop=- rule=- approval=-".to_owned()),
    ] {
        wait::until(&format!("the line of {path} ends in {end}"), async || {
            let log = scene.proxy.log();
            let mut lines = log.lines();
            lines
                .any(|line| line.contains(&format!(" {path} ")) && line.ends_with(&end))
                .then_some(())
        })
        .await;
    }
    scene.finish(3).await;
}

/// All that does not change from run to run.
const FORMAT: &str = "LINE 100%% %REQ(:METHOD)% [%REQ(x-a?x-b):5%] [%PATH(WQ)%] [%PATH(NQ:ORIG_OR_PATH):6%] [%PATH(WQ:ORIG)%] %PROTOCOL% \
                      %RESPONSE_CODE% [%RESPONSE_CODE_DETAILS%] %UPSTREAM_REQUEST_ATTEMPT_COUNT% in=%BYTES_RECEIVED% out=%BYTES_SENT% \
                      [%RESP(x-none?content-type):10%] %RESP(server)% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% \
                      %FILTER_STATE(wasm.hoop_outcome:PLAIN):4% [%FILTER_STATE(wasm.nothing:PLAIN)%] [%REQ(x-http-method)%]|\n";

async fn every_operator_prints_what_a_request_has(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(json!([
            {"name": "no-admin", "match": {"paths": ["/admin/**"]}, "action": "deny"},
        ])))
        .edit(|document| {
            let manager = with_format(document, FORMAT);
            let routes = manager.pointer_mut("/route_config/virtual_hosts/0/routes");
            let routes = routes.and_then(Value::as_array_mut).expect("the routes");
            let direct = json!({"match": {"path": "/direct"}, "direct_response": {"status": 418, "body": {"inline_string": "tea"}}});
            routes.insert(0, direct);
        })
        .start()
        .await;
    let chunked = b"POST /chunked HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let calls: [Vec<u8>; 9] = [
        request("GET", "/free/and?a=b", &[("x-a", "abcdefgh")], None),
        request(
            "POST",
            "/p",
            &[("x-b", "\u{e4}\u{e4}\u{e4}"), ("x-http-method", "3")],
            Some(b"12345"),
        ),
        chunked.to_vec(),
        request("DELETE", "/empty", &[("X-A", "")], None),
        request("GET", "/admin/x", &[], None),
        request("GET", "/direct?x", &[], None),
        request("GET", "/frag#ment", &[], None),
        request("GET", "/%00", &[], None),
        b"GET /two words HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
    ];
    for call in &calls {
        scene.send(call).await;
    }
    let h2 = H2Request::new("GET", "/over-h2?q", None);
    scene.connect_h2().await.send(&h2).await;
    scene.upstream.react(Reaction::Hangup);
    scene.send(&request("GET", "/gone", &[], None)).await;
    scene.upstream.react(Reaction::Silence);
    let mut leaving = scene.connect().await;
    leaving.write(&request("GET", "/leaves", &[], None)).await;
    wait::until("the upstream has the call", async || {
        (scene.upstream.request_count() == 8).then_some(())
    })
    .await;
    drop(leaving);
    let lines = wait::until("every request has a line", async || {
        let lines = lines(&scene);
        (lines.len() == calls.len() + 3).then_some(lines)
    })
    .await;
    let passed = "HTTP/1.1 200 [via_upstream] 1";
    let expected = [
        format!("GET [abcde] [/free/and?a=b] [/free/] [-] {passed} in=0 out=24 [text/plain] envoy 127.0.0.1 - [-] [-]|"),
        format!("POST [\u{e4}\u{e4}\u{fffd}] [/p] [/p] [-] {passed} in=5 out=24 [text/plain] envoy 127.0.0.1 - [-] [-]|"),
        format!("POST [-] [/chunked] [/chunk] [-] {passed} in=5 out=24 [text/plain] envoy 127.0.0.1 - [-] [-]|"),
        format!("DELETE [] [/empty] [/empty] [-] {passed} in=0 out=24 [text/plain] envoy 127.0.0.1 - [-] [-]|"),
        "GET [-] [/admin/x] [/admin] [-] HTTP/1.1 403 [] 0 in=0 out=17 [text/plain] envoy 127.0.0.1 deny [-] [-]|".to_owned(),
        "GET [-] [/direct?x] [/direc] [-] HTTP/1.1 418 [direct_response] 0 in=0 out=3 [text/plain] envoy 127.0.0.1 - [-] [-]|".to_owned(),
        "GET [-] [/frag#ment] [/frag#] [-] HTTP/1.1 400 [path_normalization_failed] 0 in=0 out=0 [-] envoy 127.0.0.1 - [-] [-]|".to_owned(),
        format!("GET [-] [/%00] [/%00] [-] {passed} in=0 out=24 [text/plain] envoy 127.0.0.1 - [-] [-]|"),
        "- [-] [-] [-] [-] HTTP/1.1 400 [http1.codec_error] 0 in=0 out=11 [text/plain] envoy 127.0.0.1 - [-] [-]|".to_owned(),
        "GET [-] [/over-h2?q] [/over-] [-] HTTP/2 200 [via_upstream] 1 in=0 out=24 [text/plain] envoy 127.0.0.1 - [-] [-]|".to_owned(),
        "GET [-] [/gone] [/gone] [-] HTTP/1.1 503 [upstream_reset_before_response_started{connection_termination}] 1 in=0 out=95 \
         [text/plain] envoy 127.0.0.1 - [-] [-]|".to_owned(),
        "GET [-] [/leaves] [/leave] [-] HTTP/1.1 0 [downstream_remote_disconnect] 1 in=0 out=0 [-] - 127.0.0.1 - [-] [-]|".to_owned(),
    ];
    let expected = expected.map(|line| format!("100% {line}"));
    assert_eq!(lines, expected);
    scene.finish(8).await;
}

async fn behind_a_trusted_proxy_the_client_is_the_last_of_the_chain(host: Host) {
    let format = "LINE %DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%\n";
    let edit = |document: &mut Value| {
        with_format(document, format)["use_remote_address"] = false.into();
    };
    let scene = Scene::lying(host).edit(edit).start().await;
    for (chain, expected) in [
        ("198.51.100.1, 203.0.113.7", "203.0.113.7:0 203.0.113.7"),
        ("2001:db8::1", "[2001:db8::1]:0 2001:db8::1"),
        ("203.0.113.7, 203.0.113.8:80", "127.0.0.1:"),
        ("203.0.113.7,", "127.0.0.1:"),
        ("nobody", "127.0.0.1:"),
    ] {
        let before = lines(&scene).len();
        let headers = [("x-forwarded-for", chain)];
        answer::passed(&scene.send(&request("GET", "/a", &headers, None)).await);
        let line = wait::until("the request has a line", async || {
            lines(&scene).get(before).cloned()
        });
        let line = line.await;
        assert!(line.starts_with(expected), "{line} for {chain:?}");
    }
    scene.finish(5).await;
}

/// The connection manager of a bootstrap, whose access log gets `format`.
fn with_format<'d>(document: &'d mut Value, format: &str) -> &'d mut Value {
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let manager = document.pointer_mut(manager).expect("the manager");
    let source = manager.pointer_mut("/access_log/0/typed_config/log_format/text_format_source");
    source.expect("the format")["inline_string"] = format.into();
    manager
}

/// What the access log has after the word `LINE`.
fn lines(scene: &Scene) -> Vec<String> {
    let log = scene.proxy.log();
    let lines = log.lines().filter_map(|line| line.strip_prefix("LINE "));
    lines.map(str::to_owned).collect()
}
