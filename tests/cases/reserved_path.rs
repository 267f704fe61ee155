//! `/.well-known/hoop/`: answered by the gate itself, on any request of any connection, and never forwarded (contract 4).

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::{Reply, read_document};
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE, LISTENER};
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    the_status_of_an_approval_is_answered_without_a_credential,
    both_spellings_and_an_upper_case_or_encoded_id_read_the_same,
    head_has_the_headers_of_get_and_no_body,
    other_methods_get_405_with_the_methods_that_are_served,
    what_is_no_approval_is_not_found_and_the_plane_is_not_asked,
    an_unknown_id_and_one_of_another_listener_read_the_same,
    the_plane_is_asked_with_the_canonical_id_and_only_reads,
    each_status_says_what_to_do_next,
    a_plane_that_cannot_answer_is_502_without_a_word_about_it,
    a_plane_that_hangs_is_502_after_the_configured_time,
    it_is_answered_on_every_request_of_a_connection,
    a_rule_that_holds_everything_does_not_hold_it,
    a_detour_that_would_lead_there_is_refused_and_never_reaches_the_upstream,
    what_only_looks_like_it_goes_on_as_a_normal_call,
    a_time_that_cannot_be_rendered_is_500,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const UPPER_ID: &str = "0F1E2D3C-4B5A-4697-8897-A6B5C4D3E2F1";
const NOT_FOUND: &str = "not found";
const UNKNOWN: &str = "review not found on this sidecar";
const UNREADABLE: &str = "the control plane could not report the review";
const TOO_OLD: &str = "the control plane is older than this sidecar and cannot report review status; upgrade the control plane";
const METHODS: &str = "only GET and HEAD are served under /.well-known/hoop/";

fn path(id: &str) -> String {
    format!("/.well-known/hoop/approvals/{id}")
}

fn get(target: &str) -> Vec<u8> {
    request("GET", target, &[], None)
}

async fn the_status_of_an_approval_is_answered_without_a_credential(host: Host) {
    let scene = Scene::real(host).start().await;
    let id = answer::pending(&scene.post("/payments/42", &scene.body()).await);

    let answer = scene.get(&path(&id)).await;

    answer::reserved(&answer, 200);
    assert!(answer.body.ends_with(b"}\n"), "{answer}");
    let status = answer.json();
    assert_eq!(status["id"], id.as_str());
    assert_eq!(status["status"], "PENDING");
    assert_eq!(status["next"], "wait");
    assert_eq!(status["listener_name"], LISTENER);
    assert_eq!(status["approval_rule"], APPROVAL_RULE);
    assert!(status["created_at"].is_string(), "{status}");
    assert_eq!(status.get("decided_at"), Some(&json!(null)), "{status}");
    assert_eq!(status.get("rejection_reason"), None, "{status}");
    assert!(status["expires_at"].is_string(), "{status}");
    let keys: Vec<&String> = status.as_object().expect("an object").keys().collect();
    assert_eq!(keys.len(), 8, "{keys:?}");
    scene.finish(0).await;
}

async fn both_spellings_and_an_upper_case_or_encoded_id_read_the_same(host: Host) {
    let scene = Scene::real(host).start().await;
    let id = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    let plain = scene.get(&path(&id)).await;
    let encoded: String = id.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let targets = [
        format!("/.well-known/hoop/reviews/{id}"),
        path(&id.to_ascii_uppercase()),
        path(&encoded),
        format!("{}?x=/../y&z", path(&id)),
        format!("/%2ewell-known/hoop/approvals/{id}"),
        format!("/.well-known%2Fhoop/approvals/{id}"),
        format!("/.well-known/hoop%2fapprovals%2f{id}"),
        format!("/.well-known/h%6Fop/approvals/{id}"),
        format!("http://other.example/.well-known/hoop/approvals/{id}?y"),
    ];
    for target in targets {
        let answer = scene.get(&target).await;
        answer::reserved(&answer, 200);
        assert_eq!(answer.text(), plain.text(), "{target}");
    }
    scene.finish(0).await;
}

async fn head_has_the_headers_of_get_and_no_body(host: Host) {
    let scene = Scene::real(host).start().await;
    let id = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    for target in [path(&id), path(ID), "/.well-known/hoop/x".to_owned()] {
        let mut connection = scene.connect().await;
        let get = connection.send(&get(&target)).await;
        let head = connection
            .send_head(&request("HEAD", &target, &[], None))
            .await;
        assert_eq!(head.status, get.status, "{head}");
        for name in ["content-type", "cache-control", "content-length"] {
            assert_eq!(
                head.header(name),
                get.header(name),
                "{name} of HEAD {target}: {head}"
            );
        }
        // The connection is in step after it: no body was sent.
        assert_eq!(
            connection.send(&self::get(&target)).await.text(),
            get.text()
        );
        let h2 = scene
            .connect_h2()
            .await
            .send(&H2Request::new("HEAD", &target, None))
            .await;
        assert_eq!((h2.status, h2.body.len()), (get.status, 0), "{h2}");
    }
    scene.finish(0).await;
}

async fn other_methods_get_405_with_the_methods_that_are_served(host: Host) {
    let scene = Scene::lying(host).start().await;
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
        for target in [
            path(ID),
            "/.well-known/hoop/".to_owned(),
            "/.well-known/hoop/x/y".to_owned(),
            "/%2ewell-known/hoop/x".to_owned(),
        ] {
            let answers = [
                scene
                    .send(&request(method, &target, &[], Some(&scene.body())))
                    .await,
                scene.send(&request(method, &target, &[], None)).await,
                scene
                    .connect_h2()
                    .await
                    .send(&H2Request::new(method, &target, Some(b"x")))
                    .await,
            ];
            for answer in answers {
                answer::reserved_error(&answer, 405, METHODS);
                assert_eq!(
                    answer.header("allow").as_deref(),
                    Some("GET, HEAD"),
                    "{answer}"
                );
            }
        }
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn what_is_no_approval_is_not_found_and_the_plane_is_not_asked(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene.lies().always(Reply::read(ID, "PENDING", LISTENER));
    for target in [
        "/.well-known/hoop/",
        "/.well-known/hoop/x",
        "/.well-known/hoop/approvals",
        "/.well-known/hoop/approvals/",
        "/.well-known/hoop/reviews/",
        "/.well-known/hoop/Approvals/0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1",
        "/.well-known/hoop//approvals/0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1",
        "/.well-known/hoop/../admin",
        "/.well-known/hoop/../../payments/42",
    ] {
        answer::reserved_error(&scene.get(target).await, 404, NOT_FOUND);
    }
    let short = &ID[..35];
    for id in [
        "x",
        short,
        &format!("{ID}0"),
        &format!("{{{ID}}}"),
        &format!("urn:uuid:{ID}"),
        &ID.replace('-', ""),
        &format!("{ID}/"),
        &format!("{ID}/x"),
        &format!("x/{ID}"),
        "..",
        "%2e%2e",
        "a/b",
        "a%2fb",
        &format!("{ID}%00"),
        &format!("{ID}%20"),
        &format!("%20{ID}"),
        &ID.replace('-', "_"),
        &ID.replace('f', "g"),
    ] {
        answer::reserved_error(&scene.get(&path(id)).await, 404, UNKNOWN);
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn an_unknown_id_and_one_of_another_listener_read_the_same(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::json(404, &json!({"message": "review not found"})));
    let unknown = scene.get(&path(ID)).await;
    answer::reserved_error(&unknown, 404, UNKNOWN);
    for listener in ["other-api", "Billing-api", "billing-api ", ""] {
        scene.lies().always(Reply::read(ID, "APPROVED", listener));
        let answer = scene.get(&path(ID)).await;
        answer::reserved_error(&answer, 404, UNKNOWN);
        assert_eq!(answer.body, unknown.body);
    }
    scene.finish(0).await;
}

async fn the_plane_is_asked_with_the_canonical_id_and_only_reads(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene.lies().always(Reply::read(ID, "PENDING", LISTENER));
    let with_body = request("GET", &path(UPPER_ID), &[], Some(b"ignored"));
    let answer = scene.send(&with_body).await;
    answer::reserved(&answer, 200);
    assert_eq!(answer.json()["id"], ID);
    let calls = scene.lies().calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        calls[0].start,
        format!("GET /api/sidecars/reviews/{ID} HTTP/1.1").into_bytes()
    );
    assert!(calls[0].header("hoop-sidecar-token").is_some());
    assert_eq!(calls[0].body, b"");
    scene.finish(0).await;
}

async fn each_status_says_what_to_do_next(host: Host) {
    let scene = Scene::lying(host).start().await;
    let table = [
        ("PENDING", "wait"),
        ("APPROVED", "resend_identical_statement"),
        ("PROCESSING", "wait"),
        ("REJECTED", "stop"),
        ("REVOKED", "stop"),
        ("EXECUTED", "stop"),
        ("EXPIRED", "stop"),
        ("UNKNOWN", "stop"),
        ("SOMETHING_NEW", "stop"),
    ];
    for (status, next) in table {
        scene.lies().always(Reply::read(ID, status, LISTENER));
        let answer = scene.get(&path(ID)).await;
        answer::reserved(&answer, 200);
        assert_eq!(answer.json()["status"], status);
        assert_eq!(answer.json()["next"], next, "{status}");
    }
    let mut document = read_document(ID, "REJECTED", LISTENER);
    document["decided_at"] = "2026-09-29T14:03:40Z".into();
    document["rejection_reason"] = "\"no\"\r\n<b>é</b>".into();
    document["expires_at"] = "2026-09-29T14:32:11Z".into();
    document["statement"] = scene.marker.clone().into();
    document["payload"] = scene.marker.clone().into();
    scene.lies().always(Reply::json(200, &document));
    let answer = scene.get(&path(ID)).await;
    answer::reserved(&answer, 200);
    let read = answer.json();
    for key in ["decided_at", "rejection_reason", "expires_at"] {
        assert_eq!(read[key], document[key], "{key}");
    }
    scene.finish(0).await;
}

async fn a_plane_that_cannot_answer_is_502_without_a_word_about_it(host: Host) {
    let scene = Scene::lying(host).start().await;
    let other = ID.replace('f', "e");
    let read = read_document(ID, "PENDING", LISTENER).to_string();
    let without = |key: &str| {
        let mut document = read_document(ID, "PENDING", LISTENER);
        document.as_object_mut().expect("an object").remove(key);
        Reply::json(200, &document)
    };
    let json = "application/json";
    let unreadable = [
        Reply::json(500, &json!({"message": "at 10.0.0.7"})),
        Reply::json(401, &json!({"message": "access denied"})),
        Reply::json(
            412,
            &json!({"message": "sidecar reviews are served by the control plane"}),
        ),
        Reply::json(429, &json!({"message": "slow down"})),
        Reply::typed(503, "text/plain", "no healthy upstream"),
        Reply::typed(200, "text/html", "<html>"),
        Reply::typed(200, json, ""),
        Reply::typed(200, json, "null"),
        Reply::typed(200, json, "[]"),
        Reply::typed(200, json, &read[..read.len() - 2]),
        Reply::typed(200, "text/plain", &read),
        Reply::typed(201, json, &read),
        Reply::typed(200, json, format!("{read}{}", " ".repeat(2 * 1024 * 1024))),
        Reply::with_headers(302, &[("location", "/elsewhere")], ""),
        Reply::read(&other, "PENDING", LISTENER),
        without("id"),
        without("status"),
        Reply::Truncated(Vec::new()),
        Reply::Truncated(
            format!("HTTP/1.1 200 OK\r\ncontent-type: {json}\r\ncontent-length: 999\r\n\r\n{read}")
                .into_bytes(),
        ),
    ];
    let mut wrong = Vec::new();
    for reply in unreadable {
        scene.lies().always(reply.clone());
        let answer = scene.get(&path(ID)).await;
        if std::panic::catch_unwind(|| answer::reserved_error(&answer, 502, UNREADABLE)).is_err() {
            wrong.push(format!("{reply:?}\n  {answer}"));
        }
    }
    let too_old = [
        Reply::typed(404, "text/plain", "404 page not found"),
        Reply::typed(404, json, "{}"),
        Reply::typed(404, json, "{\"message\":null}"),
        Reply::typed(404, json, "{\"message\":7}"),
        Reply::typed(404, json, "[]"),
    ];
    for reply in too_old {
        scene.lies().always(reply.clone());
        let answer = scene.get(&path(ID)).await;
        if std::panic::catch_unwind(|| answer::reserved_error(&answer, 502, TOO_OLD)).is_err() {
            wrong.push(format!("{reply:?}\n  {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    scene.lies().stop().await;
    answer::reserved_error(&scene.get(&path(ID)).await, 502, UNREADABLE);
    scene.finish(0).await;
}

async fn a_plane_that_hangs_is_502_after_the_configured_time(host: Host) {
    let mut policy = policy::shipped();
    policy["control_plane"]["timeout_ms"] = 300.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    scene.lies().always(Reply::Hang);
    answer::reserved_error(&scene.get(&path(ID)).await, 502, UNREADABLE);
    scene.finish(0).await;
}

async fn it_is_answered_on_every_request_of_a_connection(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene.lies().always(Reply::read(ID, "PENDING", LISTENER));
    let harmless = get("/invoices/1");
    let status = get(&path(ID));

    let mut kept = scene.connect().await;
    for _ in 0..3 {
        answer::passed(&kept.send(&harmless).await);
        answer::reserved(&kept.send(&status).await, 200);
    }
    let mut pipelined = scene.connect().await;
    pipelined
        .write(&[harmless.clone(), status.clone(), harmless, status].concat())
        .await;
    answer::passed(&pipelined.answer("pipelined 1").await);
    answer::reserved(&pipelined.answer("pipelined 2").await, 200);
    answer::passed(&pipelined.answer("pipelined 3").await);
    answer::reserved(&pipelined.answer("pipelined 4").await, 200);

    let h2 = scene.connect_h2().await;
    let (status, harmless) = (
        H2Request::new("GET", &path(ID), None),
        H2Request::new("GET", "/invoices/1", None),
    );
    let (first, second, third) =
        tokio::join!(h2.send(&status), h2.send(&harmless), h2.send(&status));
    answer::reserved(&first, 200);
    answer::passed(&second);
    answer::reserved(&third, 200);
    answer::reserved(
        &scene.curl(&path(ID), &["--http2-prior-knowledge"]).await,
        200,
    );
    scene.finish(6).await;
}

async fn a_rule_that_holds_everything_does_not_hold_it(host: Host) {
    let rules = policy::hold_everything();
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;
    scene.lies().always(Reply::read(ID, "PENDING", LISTENER));
    answer::reserved(&scene.get(&path(ID)).await, 200);
    answer::reserved_error(&scene.post(&path(ID), &scene.body()).await, 405, METHODS);
    assert_eq!(scene.lies().filed().len(), 0);
    scene.finish(0).await;
}

async fn a_detour_that_would_lead_there_is_refused_and_never_reaches_the_upstream(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::with_rules(json!([])))
        .start()
        .await;
    scene.lies().always(Reply::read(ID, "APPROVED", LISTENER));
    let detours = [
        "//.well-known/hoop/",
        "/.well-known//hoop/",
        "/./.well-known/hoop/",
        "/.well-known/./hoop/",
        "/x/../.well-known/hoop/",
        "/../.well-known/hoop/",
        "/.well-known/x/../hoop/",
        "/x/%2e%2e/.well-known/hoop/",
        "/%2e/.well-known/hoop/",
        "/x/..%2f.well-known/hoop/",
        "/.well-known\\hoop\\",
        "/.well-known%5choop/",
        "/.well-known;x/hoop/",
        "/.well-known/hoop;x/",
        "/;x/.well-known/hoop/",
        "/%252ewell-known/hoop/",
        "/.well-known%252fhoop/",
        "/.well-known/%2568oop/",
        "/%2f.well-known/hoop/",
        "/.well-known/%2fhoop/",
    ];
    let mut wrong = Vec::new();
    for detour in detours {
        let target = format!("{detour}approvals/{ID}");
        let over_h1 = scene.get(&target).await;
        if !refused(&over_h1) {
            wrong.push(format!("{target} over HTTP/1.1: {over_h1}"));
        }
        let over_h2 = scene.curl(&target, &["--http2-prior-knowledge"]).await;
        if !refused(&over_h2) {
            wrong.push(format!("{target} over HTTP/2: {over_h2}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

/// Refused by the gate, in the form of every answer under the reserved path.
fn refused(answer: &Answer) -> bool {
    let has = |name: &str, value: &str| answer.header(name).as_deref() == Some(value);
    answer.status == 400
        && has("content-type", "application/json")
        && has("cache-control", "no-store")
}

async fn what_only_looks_like_it_goes_on_as_a_normal_call(host: Host) {
    let scene = Scene::lying(host).start().await;
    let targets = [
        "/.well-known/hoop",
        "/.well-known/hoopx/approvals/x",
        "/.well-known/",
        "/.well-known/openid-configuration",
        "/.WELL-KNOWN/hoop/x",
        "/.well-known/Hoop/x",
        "/x/.well-known/hoop/x",
        "/invoices?next=/.well-known/hoop/x",
        "/invoices?next=%2f.well-known%2fhoop%2fx",
    ];
    for target in targets {
        answer::passed(&scene.get(target).await);
        assert_eq!(scene.upstream.last().start_word(1), target);
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(targets.len()).await;
}

async fn a_time_that_cannot_be_rendered_is_500(host: Host) {
    let scene = Scene::lying(host).start().await;
    for key in ["created_at", "decided_at", "expires_at"] {
        let mut document = read_document(ID, "APPROVED", LISTENER);
        document[key] = "10000-01-01T00:00:00Z".into();
        scene.lies().always(Reply::json(200, &document));
        let answer = scene.get(&path(ID)).await;
        answer::reserved_error(&answer, 500, "the review status could not be read");
    }
    scene.finish(0).await;
}
