//! Targets and secrets in the statement: the target is filed as it was sent, credentials in a query are shown to nobody.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::{Scene, SceneBuilder};
use serde_json::json;

on_both_hosts! {
    the_target_is_filed_and_run_byte_for_byte,
    an_absolute_target_is_filed_as_its_path,
    a_credential_in_the_query_is_shown_to_nobody_and_reaches_the_upstream,
    two_secrets_never_share_an_approval_and_one_secret_always_has_the_same,
    a_parameter_that_the_operator_calls_sensitive_is_redacted_too,
    the_filing_names_listener_rule_and_nothing_of_the_headers,
    the_path_prefix_of_the_plane_is_kept,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

async fn the_target_is_filed_and_run_byte_for_byte(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(policy::hold_everything()))
        .start()
        .await;
    let targets = [
        "/",
        "/a%41",
        "/%7Ea",
        "/~a",
        "/a%c3%a9",
        "/a%C3%A9",
        "/a?",
        "/a?b=%zz",
        "/a??b",
        "/a?b=c&b=c",
        "/a?b+c=d%20e",
        "/a[b]",
        "/a!$&'()*+,=:@",
        "/a?x/../y",
        "/a?//",
        "/a?\"<>^`{|}",
        "/a{b}",
        "/a|b",
        "/a\"b",
        "/a^b",
        "/a`b",
        "/a<b>",
        "/a/",
        "/A",
    ];
    for target in targets {
        scene
            .lies()
            .always(Reply::review(201, false, ID, "PENDING"));
        let call = request("DELETE", target, &[], None);
        answer::pending(&scene.send(&call).await);
        scene
            .lies()
            .always(Reply::review(200, true, ID, "EXECUTED"));
        answer::passed(&scene.send(&call).await);

        let filed = scene.lies().filed();
        let filed = filed.last().expect("a filing");
        assert_eq!(String::from_utf8_lossy(filed), format!("DELETE {target}"));
        assert_eq!(scene.upstream.last().start_word(1), target);
    }
    scene.finish(targets.len()).await;
}

async fn an_absolute_target_is_filed_as_its_path(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for target in [
        "http://billing.example/payments/42?a=b",
        "http://other.example:8080/payments/42?a=b",
    ] {
        answer::pending(&scene.send(&request("POST", target, &[], None)).await);
    }
    for filed in scene.lies().filed() {
        assert_eq!(String::from_utf8_lossy(&filed), "POST /payments/42?a=b");
    }
    scene.finish(0).await;
}

async fn a_credential_in_the_query_is_shown_to_nobody_and_reaches_the_upstream(host: Host) {
    let scene = Scene::lying(host).start().await;
    let keys = [
        "access_token",
        "api_key",
        "key",
        "sig",
        "X-Amz-Signature",
        "x-amz-signature",
        "ACCESS_TOKEN",
        "acc%65ss_token",
    ];
    for key in keys {
        let target = format!("/payments/42?a=1&{key}=S3cretValue&z=2");
        let call = request("POST", &target, &[], Some(b"body"));
        scene
            .lies()
            .always(Reply::review(201, false, ID, "PENDING"));
        answer::pending(&scene.send(&call).await);
        scene
            .lies()
            .always(Reply::review(200, true, ID, "EXECUTED"));
        answer::passed(&scene.send(&call).await);

        let filed = scene.lies().filed();
        let filed = String::from_utf8_lossy(filed.last().expect("a filing"));
        let shown = filed
            .strip_prefix(&format!("POST /payments/42?a=1&{key}=[redacted:"))
            .and_then(|rest| rest.strip_suffix("]&z=2\n\nbody"))
            .unwrap_or_else(|| panic!("{key} was filed as {filed}"));
        assert_eq!(shown.len(), 16, "{filed}");
        assert!(
            shown
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
            "{filed}"
        );
        assert_eq!(scene.upstream.last().start_word(1), target);
    }
    assert!(!scene.proxy.log().contains("S3cretValue"));
    scene.finish(keys.len()).await;
}

async fn two_secrets_never_share_an_approval_and_one_secret_always_has_the_same(host: Host) {
    let scene = Scene::real(host).start().await;
    let body = scene.body();
    let post = async |query: &str| {
        answer::pending(&scene.post(&format!("/payments/42?{query}"), &body).await)
    };

    let first = post("access_token=A").await;
    let second = post("access_token=B").await;
    let twice = post("access_token=A&access_token=B").await;
    let swapped = post("access_token=B&access_token=A").await;
    let empty = post("access_token=").await;
    let bare = post("access_token").await;
    let mut ids = vec![&first, &second, &twice, &swapped, &empty, &bare];
    ids.sort();
    ids.dedup();

    assert_eq!(ids.len(), 6);
    assert_eq!(post("access_token=A").await, first);
    scene.plane().approve(&first).await;
    assert_eq!(post("access_token=B").await, second);
    answer::passed(&scene.post("/payments/42?access_token=A", &body).await);
    assert_eq!(
        scene.upstream.last().start_word(1),
        "/payments/42?access_token=A"
    );
    scene.finish(1).await;
}

async fn a_parameter_that_the_operator_calls_sensitive_is_redacted_too(host: Host) {
    let scene = scene_with(host, "sensitive_query_params", json!(["pin"]))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));

    answer::pending(
        &scene
            .post("/payments/42?pin=4711&Pin=4712&pint=4713", b"")
            .await,
    );

    let filed = scene.lies().filed();
    let filed = String::from_utf8_lossy(&filed[0]).into_owned();
    assert!(!filed.contains("4711"), "{filed}");
    assert!(!filed.contains("4712"), "{filed}");
    assert!(filed.ends_with("&pint=4713"), "{filed}");
    scene.finish(0).await;
}

async fn the_filing_names_listener_rule_and_nothing_of_the_headers(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let headers = [
        ("authorization", "Bearer of-the-agent"),
        ("cookie", "session=of-the-agent"),
    ];
    answer::pending(
        &scene
            .send(&request("POST", "/payments/42", &headers, Some(b"x")))
            .await,
    );

    let calls = scene.lies().calls();
    let raw = String::from_utf8_lossy(&calls[0].raw).into_owned();
    let filing: serde_json::Value = serde_json::from_slice(&calls[0].body).expect("JSON");
    assert!(!raw.contains("of-the-agent"), "{raw}");
    assert_eq!(filing["listener_name"], policy::LISTENER);
    assert_eq!(filing["approval_rule"], policy::APPROVAL_RULE);
    let keys: Vec<&String> = filing.as_object().expect("an object").keys().collect();
    for key in keys {
        assert!(
            ["approval_rule", "listener_name", "payload", "requester"].contains(&key.as_str()),
            "{key}"
        );
    }
    scene.finish(0).await;
}

async fn the_path_prefix_of_the_plane_is_kept(host: Host) {
    let mut policy = policy::shipped();
    policy["control_plane"]["path_prefix"] = "/hoop".into();
    let scene = Scene::lying(host).policy(policy).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));

    answer::pending(&scene.post("/payments/42", b"").await);
    scene
        .get(&format!("/.well-known/hoop/approvals/{ID}"))
        .await;

    let calls = scene.lies().calls();
    assert_eq!(calls[0].start_word(1), "/hoop/api/sidecars/reviews");
    assert_eq!(
        calls[1].start_word(1),
        format!("/hoop/api/sidecars/reviews/{ID}")
    );
    scene.finish(0).await;
}

fn scene_with(host: Host, key: &str, value: serde_json::Value) -> SceneBuilder {
    Scene::lying(host).policy(policy::with(key, value))
}
