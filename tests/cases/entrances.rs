//! Every entrance to the upstream is guarded: a table of spellings of one path, held against each way in (place on the connection,
//! HTTP version, authority, virtual host) and against each way in which Envoy can be told to tidy paths up.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::scene::{Scene, SceneBuilder};
use serde_json::{Value, json};

on_both_hosts! {
    each_spelling_meets_its_fate_at_every_entrance,
    each_spelling_is_guarded_where_envoy_tidies_paths_up,
    each_virtual_host_is_guarded,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// What becomes of a POST under the shipped rule for `/payments/**`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Waits for a person.
    Held,
    /// Runs, with its path as it was sent.
    Passed,
    /// More than one reading.
    Refused,
}
use Fate::{Held, Passed, Refused};

/// A path as it is sent, and its fate where Envoy leaves it alone.
const SPELLINGS: [(&str, Fate); 40] = [
    ("/payments/42", Held),
    ("/payments", Held),
    // A trailing slash.
    ("/payments/", Held),
    ("/payments/42/", Held),
    ("/payments//", Refused),
    // Slashes.
    ("//payments/42", Refused),
    ("/payments//42", Refused),
    ("/\\payments/42", Refused),
    ("/payments\\42", Refused),
    ("/payments%2f42", Refused),
    ("/payments%2F42", Refused),
    ("/payments%5c42", Refused),
    ("/%2fpayments/42", Refused),
    ("/payments%252f42", Refused),
    // Dot segments.
    ("/./payments/42", Refused),
    ("/x/../payments/42", Refused),
    ("/%2e/payments/42", Refused),
    ("/x/%2e%2e/payments/42", Refused),
    ("/x/.%2E/payments/42", Refused),
    ("/x/..%2fpayments/42", Refused),
    ("/payments/42/..", Refused),
    ("/payments/%2e%2e", Refused),
    ("/..;/payments/42", Refused),
    // Escaped letters and letter case.
    ("/%70ayments/42", Held),
    ("/payments/4%32", Held),
    ("/PAYMENTS/42", Held),
    ("/Payments/42", Held),
    ("/%50ayments/42", Held),
    ("/%2570ayments/42", Refused),
    // Parameters, queries, ends.
    ("/payments;v=1/42", Refused),
    ("/payments/42;v=1", Refused),
    ("/payments/42?x=/../../y", Held),
    ("/payments?/y", Held),
    ("/payments%20", Refused),
    ("/payments.", Refused),
    // Elsewhere.
    ("/invoices/42", Passed),
    ("/paymentsx", Passed),
    ("/x/payments/42", Passed),
    ("/invoices/../invoices/42", Passed),
    ("/invoices/a%2fb", Passed),
];

async fn started(scene: SceneBuilder) -> Scene {
    let scene = scene.start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    scene
}

/// `None` for an answer that is neither of the gate nor of the upstream.
fn fate(answer: &Answer) -> Option<Fate> {
    let denied = answer.header("x-hoop-denied");
    match (answer.status, denied.as_deref()) {
        (200, None) => Some(Passed),
        (400, Some("policy")) => Some(Refused),
        (403, Some("review")) => Some(Held),
        _ => None,
    }
}

/// What was sent, and what came of it; a request that passed must have its path unchanged.
#[derive(Default)]
struct Found {
    wrong: Vec<String>,
    held: Vec<String>,
    passed: usize,
}

impl Found {
    fn note(&mut self, scene: &Scene, entrance: &str, spelling: (&str, Fate), answer: &Answer) {
        let (target, expected) = spelling;
        let found = fate(answer);
        if found != Some(expected) {
            self.wrong
                .push(format!("{entrance} {target}: not {expected:?}: {answer}"));
        }
        match found {
            Some(Passed) => {
                self.passed += 1;
                let run = scene.upstream.last().start_word(1);
                if run != target {
                    self.wrong.push(format!("{entrance} {target}: ran {run}"));
                }
            }
            Some(Held) => self.held.push(format!("POST {target}\n\nx")),
            _ => {}
        }
    }

    async fn finish(self, scene: Scene) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        let filed = scene.lies().filed();
        let filed: Vec<String> = filed
            .iter()
            .map(|statement| String::from_utf8_lossy(statement).into_owned())
            .collect();
        assert_eq!(filed, self.held);
        scene.finish(self.passed).await;
    }
}

async fn each_spelling_meets_its_fate_at_every_entrance(host: Host) {
    let scene = started(Scene::lying(host)).await;
    let mut found = Found::default();
    let other = request("GET", "/invoices/1", &[], None);
    for spelling in SPELLINGS {
        let (target, _) = spelling;
        let post = request("POST", target, &[], Some(b"x"));

        found.note(&scene, "alone", spelling, &scene.send(&post).await);

        // In one packet behind another request; a query there must not hide it.
        let mut connection = scene.connect().await;
        connection
            .write(&[other.clone(), post.clone()].concat())
            .await;
        answer::passed(&connection.answer("the first of two").await);
        found.passed += 1;
        let second = connection.answer("the second of two").await;
        found.note(&scene, "pipelined", spelling, &second);

        for authority in ["other.example", "BILLING.example:8080", "127.0.0.1"] {
            let post = String::from_utf8(post.clone()).expect("text");
            let post = post.replace("billing.example", authority);
            let answer = scene.send(post.as_bytes()).await;
            found.note(&scene, authority, spelling, &answer);
        }

        let absolute = format!("http://billing.example{target}");
        let call = request("POST", &absolute, &[], Some(b"x"));
        found.note(&scene, "absolute", spelling, &scene.send(&call).await);

        // A library tidies `\` up before it sends it.
        if !target.contains('\\') {
            let call = H2Request::new("POST", target, Some(b"x"));
            let h2 = scene.connect_h2().await;
            let (one, two) = (h2.send(&call).await, h2.send(&call).await);
            found.note(&scene, "HTTP/2", spelling, &one);
            found.note(&scene, "HTTP/2 again", spelling, &two);
        }
    }
    found.finish(scene).await;
}

async fn each_spelling_is_guarded_where_envoy_tidies_paths_up(host: Host) {
    for slashes in [
        "KEEP_UNCHANGED",
        "REJECT_REQUEST",
        "UNESCAPE_AND_FORWARD",
        "UNESCAPE_AND_REDIRECT",
    ] {
        let tidy = move |manager: &mut Value| {
            manager["normalize_path"] = true.into();
            manager["merge_slashes"] = true.into();
            manager["path_with_escaped_slashes_action"] = slashes.into();
        };
        let scene = started(Scene::lying(host).edit_manager(tidy)).await;
        let mut wrong = Vec::new();
        let mut passed = 0;
        for (target, plain) in SPELLINGS {
            let post = request("POST", target, &[], Some(b"x"));
            let answer = scene.send(&post).await;
            let is_right = match (fate(&answer), plain) {
                // What needed a person or had two readings may have one now; and it may be Envoy that refuses or redirects.
                (Some(Held | Refused), Held | Refused) => true,
                (None, Refused | Passed) => matches!(answer.status, 307 | 400),
                (Some(Passed), _) => {
                    passed += 1;
                    // The path that has run is the tidy one: it is not under the rule.
                    let run = scene.upstream.last().start_word(1);
                    !run.to_ascii_lowercase().starts_with("/payments/") && run != "/payments"
                }
                (Some(_), Passed) | (None, Held) => false,
            };
            if !is_right {
                wrong.push(format!("{slashes} {target}: {answer}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for filed in scene.lies().filed() {
            let filed = String::from_utf8_lossy(&filed).to_ascii_lowercase();
            let is_tidy = ["//", "/./", "/../", "\\"];
            let path = filed.split(['?', '\n']).next().unwrap_or_default();
            assert!(!is_tidy.iter().any(|odd| path.contains(odd)), "{filed}");
        }
        // Without a spelling that still runs the table proves nothing.
        assert!(passed >= 4, "{slashes}: {passed}");
        scene.finish(passed).await;
    }
}

async fn each_virtual_host_is_guarded(host: Host) {
    let more = |manager: &mut Value| {
        let hosts = manager.pointer_mut("/route_config/virtual_hosts");
        let hosts = hosts.and_then(Value::as_array_mut).expect("virtual hosts");
        for (name, domain) in [("pay", "pay.example"), ("internal", "*.internal")] {
            let mut other = hosts[0].clone();
            other["name"] = name.into();
            other["domains"] = json!([domain]);
            // Another way to the same upstream, by another path.
            let behind =
                json!({"match": {"prefix": "/behind/"}, "route": {"cluster": "billing_upstream"}});
            other["routes"]
                .as_array_mut()
                .expect("routes")
                .insert(0, behind);
            hosts.push(other);
        }
    };
    let scene = started(Scene::lying(host).edit_manager(more)).await;
    let mut found = Found::default();
    for authority in [
        "pay.example",
        "PAY.EXAMPLE",
        "a.internal",
        "billing.example",
    ] {
        for spelling in SPELLINGS {
            let post = request("POST", spelling.0, &[], Some(b"x"));
            let post = String::from_utf8(post).expect("text");
            let post = post.replace("billing.example", authority);
            let answer = scene.send(post.as_bytes()).await;
            found.note(&scene, authority, spelling, &answer);
        }
        let mut call = H2Request::new("POST", "/payments/42", Some(b"x"));
        call.authority = Some(authority.to_owned());
        let answer = scene.connect_h2().await.send(&call).await;
        found.note(&scene, authority, ("/payments/42", Held), &answer);
    }
    found.finish(scene).await;
}
