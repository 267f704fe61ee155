//! Bodies with a `content-encoding`. A plain holding rule files and runs their bytes as they are; a rule that looks into JSON
//! refuses them, because what it could read is not what the upstream reads.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use hoop_tests::way::Way;
use serde_json::{Value, json};

on_both_hosts! {
    an_encoded_body_is_filed_and_run_as_its_bytes_under_a_holding_rule,
    an_encoded_body_is_refused_by_a_rule_that_looks_into_it,
    an_encoded_body_never_meets_an_allowing_rule_that_looks_into_it,
    an_encoding_that_changes_nothing_is_none,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const PLAIN: &[u8] = br#"{"amount":5000}"#;

/// [`PLAIN`] as common encoders write it: Python's gzip and zlib, Node's brotli, the zstd command.
const ENCODED: [(&str, &[u8]); 5] = [
    ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xabVJ\xcc\xcd/\xcd+Q\xb2250\xa8\x05\x00HY\xae\x98\x0f\x00\x00\x00"),
    ("deflate", b"\x78\x9c\xabVJ\xcc\xcd/\xcd+Q\xb2250\xa8\x05\x00)~\x04\xd0"),
    ("deflate", b"\xabVJ\xcc\xcd/\xcd+Q\xb2250\xa8\x05\x00"),
    ("br", b"\x0b\x07\x80{\"amount\":5000}\x03"),
    ("zstd", b"\x28\xb5\x2f\xfd\x04\x58y\x00\x00{\"amount\":5000}\xd2\xca\xd0\xf7"),
];

const WAYS: [Way; 3] = [Way::Length, Way::Chunks(1), Way::Frames(1)];

fn over_1000() -> Value {
    json!({"paths": ["/transfers"], "json": [{"pointer": "/amount", "greater_than": 1000}]})
}

async fn an_encoded_body_is_filed_and_run_as_its_bytes_under_a_holding_rule(host: Host) {
    let scene = Scene::lying(host).start().await;
    for (encoding, body) in ENCODED {
        for way in WAYS {
            let headers = [("content-encoding", encoding)];
            let post = async || way.post_with(&scene, "/payments/42", &headers, body).await;
            scene
                .lies()
                .always(Reply::review(201, false, ID, "PENDING"));
            answer::pending(&post().await);
            scene
                .lies()
                .always(Reply::review(200, true, ID, "EXECUTED"));
            answer::passed(&post().await);
            let run = scene.upstream.last();
            assert_eq!(run.body, body, "{encoding} {way:?}");
            assert_eq!(run.header("content-encoding").as_deref(), Some(encoding));
            let statement = [b"POST /payments/42\n\n", body].concat();
            let filed = scene.lies().filed();
            assert!(filed.iter().rev().take(2).all(|filed| *filed == statement));
        }
    }
    scene.finish(ENCODED.len() * WAYS.len()).await;
}

async fn an_encoded_body_is_refused_by_a_rule_that_looks_into_it(host: Host) {
    for action in ["deny", "require_approval"] {
        let mut rule = json!({"match": over_1000(), "action": action});
        if action == "require_approval" {
            rule["approval_rule"] = APPROVAL_RULE.into();
        }
        let scene = Scene::lying(host)
            .policy(policy::with_rules(json!([rule])))
            .start()
            .await;
        scene
            .lies()
            .always(Reply::review(200, true, ID, "EXECUTED"));
        for (encoding, body) in ENCODED {
            for way in WAYS {
                let headers = [("content-encoding", encoding)];
                let answer = way.post_with(&scene, "/transfers", &headers, body).await;
                answer::policy_with_status(&answer, 400);
                // Without its header the same body is no JSON.
                let answer = way.post(&scene, "/transfers", body).await;
                answer::policy_with_status(&answer, 400);
            }
        }
        // A body that says of itself that it is encoded and is not: a lenient server reads it all the same.
        let small = br#"{"amount":1}"#;
        for headers in [
            &[("content-encoding", "gzip")][..],
            &[("Content-Encoding", "GZIP")],
            &[("content-encoding", "identity, gzip")],
            &[("content-encoding", "identity"), ("content-encoding", "br")],
            &[("content-encoding", "x-gzip")],
            &[("content-encoding", "aes128gcm")],
            &[("content-encoding", "nonsense")],
            &[("content-encoding", "identity;q=1")],
        ] {
            let answer = Way::Length.post_with(&scene, "/transfers", headers, small);
            answer::policy_with_status(&answer.await, 400);
        }
        assert_eq!(scene.lies().calls().len(), 0);
        scene.finish(0).await;
    }
}

async fn an_encoded_body_never_meets_an_allowing_rule_that_looks_into_it(host: Host) {
    let rules = json!([
        {"match": over_1000(), "action": "allow"},
        {"match": {"paths": ["/transfers"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for (encoding, body) in ENCODED {
        let headers = [("content-encoding", encoding)];
        let answer = Way::Length.post_with(&scene, "/transfers", &headers, body);
        answer::pending(&answer.await);
    }
    answer::passed(&scene.post("/transfers", PLAIN).await);
    assert_eq!(scene.lies().filed().len(), ENCODED.len());
    scene.finish(1).await;
}

async fn an_encoding_that_changes_nothing_is_none(host: Host) {
    let rule =
        json!({"match": over_1000(), "action": "require_approval", "approval_rule": APPROVAL_RULE});
    let scene = Scene::lying(host)
        .policy(policy::with_rules(json!([rule])))
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for encoding in ["identity", "Identity", "", "identity, identity"] {
        let headers = [("content-encoding", encoding)];
        let post = async |body: &[u8]| {
            let sent = Way::Length.post_with(&scene, "/transfers", &headers, body);
            sent.await
        };
        answer::pending(&post(PLAIN).await);
        answer::passed(&post(br#"{"amount":1}"#).await);
        assert_eq!(scene.upstream.last().text(), r#"{"amount":1}"#);
    }
    scene.finish(4).await;
}
