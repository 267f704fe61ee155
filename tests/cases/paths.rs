//! Spellings of a held path. Nothing that any upstream could read as `/payments/...` runs without an approval, and what no rule
//! holds goes on unchanged.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    a_spelling_with_one_reading_is_held_like_the_plain_one,
    a_spelling_with_two_readings_is_refused_with_400_and_nothing_is_filed,
    bytes_that_no_path_may_have_never_run,
    an_absolute_target_is_held_like_its_path,
    a_method_in_other_letters_does_not_slip_past_its_rule,
    what_no_rule_holds_goes_on_byte_for_byte,
    every_entrance_is_guarded_whatever_the_host_or_the_place_on_the_connection,
    a_deny_rule_holds_for_every_spelling_and_an_allow_rule_only_for_its_own,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// Spellings with one reading, which is under the rule: held like the plain one.
const HELD: [&str; 16] = [
    "/payments/42",
    "/payments",
    "/payments/",
    "/payments/42/",
    "/payments/42/refunds/7",
    "/PAYMENTS/42",
    "/Payments/42",
    "/pAYMENTS",
    "/%70ayments/42",
    "/%50AYMENTS/42",
    "/payment%73/42",
    "/%70%61%79%6d%65%6e%74%73/42",
    "/%70%61%79%6D%65%6E%74%73/42",
    "/payments/4%32",
    "/payments/42?x=//../%2e",
    "/payments?/invoices",
];

/// Spellings with more than one reading, one of which is under the rule: refused.
const AMBIGUOUS: [&str; 66] = [
    "//payments/42",
    "///payments/42",
    "/payments//42",
    "/payments//",
    "/./payments/42",
    "/payments/./42",
    "/payments/42/.",
    "/payments/.",
    "/payments/..",
    "/payments/42/..",
    "/payments/../payments/42",
    "/x/../payments/42",
    "/x/y/../../payments/42",
    "/../payments/42",
    "/../../payments/42",
    "/%2e/payments/42",
    "/%2E/payments/42",
    "/x/%2e%2e/payments/42",
    "/x/%2E%2e/payments/42",
    "/x/.%2e/payments/42",
    "/x/%2e./payments/42",
    "/invoices/..%2fpayments/42",
    "/invoices/%2e%2e%2fpayments/42",
    "/\\payments/42",
    "/payments\\42",
    "/x/..\\payments\\42",
    "/payments%5c42",
    "/payments%5C42",
    "/%5cpayments/42",
    "/payments%2f42",
    "/payments%2F42",
    "/%2fpayments/42",
    "/%2Fpayments%2F42",
    "/payments;x/42",
    "/payments;/42",
    "/payments/42;jsessionid=1",
    "/;x/payments/42",
    "/payments%3bx/42",
    "/payments%252f42",
    "/%2570ayments/42",
    "/%252e/payments/42",
    "/x/%252e%252e/payments/42",
    "/%25%37%30ayments/42",
    "/payments/%zz",
    "/payments/%",
    // A URL parser may skip any run of slashes and take what follows for the host.
    "//h/payments/42",
    "///h/payments/42",
    "/////h/payments/42",
    "/\\/h/payments/42",
    "/\\\\h/payments/42",
    // Encoded dots resolved while encoded slashes stay.
    "/%2e/payments/42/x%2f..%2f..%2f..%2fy",
    "/x/%2e%2e/payments/42%2f..%2f..%2f",
    // Trimmed on Windows, or matched before a line end.
    "/payments%20",
    "/payments/%20",
    "/payments.",
    "/payments%0a",
    // Decoders of their own: overlong UTF-8, wide escapes, case folding of all of Unicode.
    "/payments%c0%af42",
    "/%u0070ayments/42",
    "/payment%C5%BF/42",
    "/pay%09ments/42",
    "/payment%CB%A2/42",
    "/x/%EF%B8%B0/payments/42",
    "/%EF%BB%BFpayments/42",
    "/payments%CD%BEv/42",
    "/pay%C2%ADments/42",
    "/%25u0070ayments/42",
];

/// Spellings of paths that no rule holds under any reading: unchanged.
const HARMLESS: [&str; 21] = [
    "/",
    "/invoices/42",
    "/paymentsx/42",
    "/payment/42",
    "/x/payments/42",
    "/invoices/%70ayments",
    "/invoices/a%20b",
    "/invoices/%7Ea/%7ea",
    "/invoices/caf%c3%a9",
    "/invoices/42?path=/payments/42",
    "/invoices/42?x=%2e%2e%2fpayments",
    "/invoices/42?//payments//42",
    "/invoices//42",
    "/invoices/./42",
    "/invoices/a/../42",
    "/invoices/42;x=y",
    "/invoices/a%2fb",
    "/invoices/a\\b",
    "/files/%E5%A0%B1%E5%91%8A%E6%9B%B8%EF%BC%88%E6%9C%80%E7%B5%82%EF%BC%89.pdf",
    "/flags/%F0%9F%87%A9%F0%9F%87%AA",
    "/caf%e9",
];

async fn a_spelling_with_one_reading_is_held_like_the_plain_one(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for target in HELD {
        answer::pending(&scene.send(&request("POST", target, &[], Some(b"x"))).await);
        answer::pending(
            &scene
                .connect_h2()
                .await
                .send(&H2Request::new("POST", target, Some(b"x")))
                .await,
        );
    }
    let filed = scene.lies().filed();
    for (index, target) in HELD.iter().enumerate() {
        let wanted = format!("POST {target}\n\nx");
        assert_eq!(String::from_utf8_lossy(&filed[2 * index]), wanted);
        assert_eq!(String::from_utf8_lossy(&filed[2 * index + 1]), wanted);
    }
    scene.finish(0).await;
}

async fn a_spelling_with_two_readings_is_refused_with_400_and_nothing_is_filed(host: Host) {
    let scene = Scene::lying(host).start().await;
    // A plane that says yes to everything: what is asked there is as good as run.
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let mut wrong = Vec::new();
    for target in AMBIGUOUS {
        let over_h1 = scene.send(&request("POST", target, &[], Some(b"x"))).await;
        if !refused_as_ambiguous(&over_h1) {
            wrong.push(format!("{target} over HTTP/1.1: {over_h1}"));
        }
        let post = ["--http2-prior-knowledge", "--request", "POST"];
        let over_h2 = scene.curl(target, &post).await;
        if !refused_as_ambiguous(&over_h2) {
            wrong.push(format!("{target} over HTTP/2: {over_h2}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

fn refused_as_ambiguous(answer: &Answer) -> bool {
    let by_us = answer.header("x-hoop-denied").as_deref() == Some("policy");
    answer.status == 400 && by_us
}

async fn bytes_that_no_path_may_have_never_run(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let targets: [&[u8]; 10] = [
        b"\\payments\\42",
        b"/payments/4\x002",
        b"/payments/4\t2",
        b"/payments/\xff",
        b"/payments/42#x",
        b"/#/payments/42",
        b"payments/42",
        b"*",
        b"/payments/%00",
        b"http://billing.example//payments/42",
    ];
    for target in targets {
        let mut call = b"POST ".to_vec();
        call.extend_from_slice(target);
        call.extend_from_slice(b" HTTP/1.1\r\nhost: billing.example\r\ncontent-length: 1\r\n\r\nx");
        let answer = scene.send(&call).await;
        assert!(
            matches!(answer.status, 400 | 403 | 404),
            "{}: {answer}",
            target.escape_ascii()
        );
    }
    scene.finish(0).await;
}

async fn an_absolute_target_is_held_like_its_path(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for target in [
        "http://billing.example/payments/42",
        "http://evil.example/payments/42",
        "HTTP://billing.example/%70ayments/42",
    ] {
        let answer = scene.send(&request("POST", target, &[], Some(b"x"))).await;
        assert!(matches!(answer.status, 400 | 403), "{target}: {answer}");
    }
    scene.finish(0).await;
}

async fn a_method_in_other_letters_does_not_slip_past_its_rule(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    for method in ["post", "Post", "pOST", "delete"] {
        let answer = scene
            .send(&request(method, "/payments/42", &[], Some(b"x")))
            .await;
        assert!(matches!(answer.status, 400 | 403), "{method}: {answer}");
        for filed in scene.lies().filed() {
            let method = method.to_ascii_uppercase();
            let other = String::from_utf8_lossy(&filed).into_owned();
            assert!(
                other.starts_with("POST ") || other.starts_with(&method),
                "{other}"
            );
        }
    }
    scene.finish(0).await;
}

async fn what_no_rule_holds_goes_on_byte_for_byte(host: Host) {
    let scene = Scene::lying(host).start().await;
    for target in HARMLESS {
        answer::passed(&scene.send(&request("POST", target, &[], Some(b"x"))).await);
        assert_eq!(scene.upstream.last().start_word(1), target);
        answer::passed(
            &scene
                .curl(target, &["--http2-prior-knowledge", "--data", "x"])
                .await,
        );
        assert_eq!(scene.upstream.last().start_word(1), target);
    }
    // A method that the rule does not name, too.
    answer::passed(&scene.get("/payments/42").await);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(2 * HARMLESS.len() + 1).await;
}

async fn every_entrance_is_guarded_whatever_the_host_or_the_place_on_the_connection(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let body: &[u8] = b"x";
    let get = request("GET", "/invoices/1", &[], None);
    let post = request("POST", "/payments/42", &[], Some(body));

    // Behind another request on the same connection, and in the same packet.
    let mut connection = scene.connect().await;
    answer::passed(&connection.send(&get).await);
    answer::pending(&connection.send(&post).await);
    answer::passed(&connection.send(&get).await);
    connection
        .write(&[get.clone(), post.clone(), get.clone()].concat())
        .await;
    answer::passed(&connection.answer("the first of three").await);
    answer::pending(&connection.answer("the second of three").await);
    answer::passed(&connection.answer("the third of three").await);

    // Under another Host, and on several streams at once.
    for host in [
        "localhost",
        "127.0.0.1",
        "BILLING.EXAMPLE",
        "billing.example:80",
        "x",
    ] {
        let other = String::from_utf8(post.clone())
            .expect("text")
            .replace("billing.example", host);
        answer::pending(&scene.send(other.as_bytes()).await);
    }
    let h2 = scene.connect_h2().await;
    let call = H2Request::new("POST", "/payments/42", Some(body));
    let harmless = H2Request::new("GET", "/invoices/1", None);
    let (held, passed, again) = tokio::join!(h2.send(&call), h2.send(&harmless), h2.send(&call));
    answer::pending(&held);
    answer::passed(&passed);
    answer::pending(&again);
    scene.finish(5).await;
}

async fn a_deny_rule_holds_for_every_spelling_and_an_allow_rule_only_for_its_own(host: Host) {
    let rules = json!([
        {"match": {"paths": ["/admin/health"]}, "action": "allow"},
        {"match": {"paths": ["/admin/**"]}, "action": "deny", "message": "no admin here"},
    ]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .start()
        .await;

    answer::passed(&scene.get("/admin/health").await);
    for target in [
        "/admin/users",
        "/ADMIN/users",
        "/%61dmin/users",
        "/Admin/health",
        "/admin/Health",
        "/admin",
    ] {
        let answer = scene.get(target).await;
        answer::policy_with_status(&answer, 403);
        assert!(
            answer.text().contains("no admin here"),
            "{target}: {answer}"
        );
    }
    for target in [
        "//admin/users",
        "/admin/health/../users",
        "/admin/health;x",
        "/admin//health",
        "/x/..%2fadmin/users",
    ] {
        assert!(refused_as_ambiguous(&scene.get(target).await), "{target}");
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(1).await;
}
