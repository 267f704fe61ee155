//! The headers with which a client chooses how it waits, and all that it may claim about approvals: nothing of it reaches an
//! upstream.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;

on_both_hosts! {
    a_client_may_ask_for_its_answer_at_once,
    a_client_may_ask_to_be_held,
    a_wish_that_leaves_a_doubt_does_not_hold,
    a_wish_that_leaves_a_doubt_does_not_return,
    a_wish_cannot_hold_what_no_rule_holds,
    nothing_that_a_client_says_about_approvals_reaches_an_upstream,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const NEW: &str = "x-hoop-approval-mode";
const OLD: &str = "x-hoop-review-mode";

/// A listener that holds, or one that returns, and a plane where nothing is decided.
async fn undecided(host: Host, mode: &str) -> Scene {
    let mut policy = policy::holding();
    policy["approval_mode"] = mode.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    let lies = scene.lies();
    lies.undecided(ID);
    scene
}

/// Headers that are one clear wish, in both spellings of the header.
fn clear(wish: &str) -> Vec<Vec<(String, String)>> {
    let capital = wish[..1].to_uppercase() + &wish[1..];
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        vec![field(NEW, wish)],
        vec![field(OLD, wish)],
        vec![field("X-Hoop-Approval-Mode", &capital)],
        vec![field(NEW, &format!("  {} ", wish.to_uppercase()))],
        vec![field(OLD, &format!("\t{capital}\t"))],
        vec![field(NEW, wish), field(OLD, &capital)],
        vec![field(NEW, ""), field(OLD, wish)],
    ]
}

/// Headers that ask for `wish` and leave a doubt.
fn doubtful(wish: &str) -> Vec<Vec<(String, String)>> {
    let other = if wish == "hold" { "return" } else { "hold" };
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        vec![field(NEW, wish), field(NEW, wish)],
        vec![field(OLD, wish), field("X-Hoop-Review-Mode", wish)],
        vec![field(NEW, wish), field(OLD, other)],
        vec![field(NEW, wish), field(OLD, "maybe")],
        vec![field(NEW, &format!("{wish}, {wish}"))],
        vec![field(NEW, &format!("{wish};"))],
        vec![field(NEW, &format!("\"{wish}\""))],
        vec![field(NEW, &format!("{wish}ing"))],
        vec![field(NEW, "")],
        vec![field("x-hoop-mode", wish)],
    ]
}

fn call(headers: &[(String, String)]) -> Vec<u8> {
    let headers = headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    request("POST", "/payments/42", &headers, Some(b"x"))
}

async fn a_client_may_ask_for_its_answer_at_once(host: Host) {
    let scene = undecided(host, "hold").await;
    for headers in clear("return") {
        let answer = scene.send(&call(&headers)).await;
        assert_eq!(answer::pending(&answer), ID, "{headers:?}");
    }
    let mut over_h2 = H2Request::new("POST", "/payments/42", Some(b"x"));
    over_h2.headers = vec![(NEW.to_owned(), b"Return".to_vec())];
    let answer = scene.connect_h2().await.send(&over_h2).await;
    assert_eq!(answer::pending(&answer), ID);
    let lies = scene.lies();
    assert_eq!(lies.count(Kind::List) + lies.count(Kind::Claim), 0);
    scene.finish(0).await;
}

async fn a_client_may_ask_to_be_held(host: Host) {
    let scene = undecided(host, "return").await;
    let lies = scene.lies();
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    let wishes = clear("hold");
    let count = wishes.len();
    for headers in wishes {
        lies.on(Kind::List, Reply::list(&[(ID, "PENDING")]));
        let mut held = scene.connect().await;
        held.write(&call(&headers)).await;
        scene.until_held(1).await;
        lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
        answer::passed(&held.answer("the held call").await);
    }
    scene.finish(count).await;
}

async fn a_wish_that_leaves_a_doubt_does_not_hold(host: Host) {
    let scene = undecided(host, "return").await;
    for headers in doubtful("hold") {
        let answer = scene.send(&call(&headers)).await;
        assert_eq!(answer::pending(&answer), ID, "{headers:?}");
    }
    let bytes = b"POST /payments/42 HTTP/1.1\r\nhost: billing.example\r\nx-hoop-approval-mode: hold\xff\r\n\r\n";
    assert_eq!(answer::pending(&scene.send(bytes).await), ID);
    assert_eq!(scene.lies().count(Kind::List), 0);
    scene.finish(0).await;
}

async fn a_wish_that_leaves_a_doubt_does_not_return(host: Host) {
    let scene = undecided(host, "hold").await;
    for headers in doubtful("return") {
        let lies = scene.lies();
        lies.on(Kind::List, Reply::list(&[(ID, "PENDING")]));
        let mut held = scene.connect().await;
        held.write(&call(&headers)).await;
        scene.until_held(1).await;
        lies.on(Kind::List, Reply::list(&[(ID, "REVOKED")]));
        let answer = held.answer("the held call").await;
        answer::settled(&answer, "REVOKED", "the approval was revoked");
    }
    scene.finish(0).await;
}

async fn a_wish_cannot_hold_what_no_rule_holds(host: Host) {
    let scene = undecided(host, "return").await;
    for wish in ["hold", "return"] {
        for name in [NEW, OLD] {
            let call = request("POST", "/invoices/1", &[(name, wish)], Some(b"x"));
            answer::passed(&scene.send(&call).await);
            assert_eq!(scene.upstream.last().header(name), None);
        }
    }
    assert_eq!(scene.lies().call_count(), 0);
    scene.finish(4).await;
}

async fn nothing_that_a_client_says_about_approvals_reaches_an_upstream(host: Host) {
    let scene = undecided(host, "hold").await;
    let lies = scene.lies();
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    let claims = [
        ("X-Hoop-Approval-Id", ID),
        ("x-hoop-approval-id", ID),
        ("x-hoop-approval-status", "APPROVED"),
        ("X-HOOP-APPROVAL-STATUS", "EXECUTED"),
        ("x-hoop-review-id", ID),
        ("x-Hoop-Review-Id", ID),
        ("x-hoop-review-status", "APPROVED"),
        ("x-hoop-review-status", ""),
        ("X-Hoop-Denied", "review"),
        ("x-hoop-denied", "policy"),
        ("x-hoop-approval-mode", "hold"),
        ("X-Hoop-Review-Mode", "hold"),
        ("x-kept", "yes"),
    ];
    for target in ["/invoices/1", "/payments/42"] {
        let call = request("POST", target, &claims, Some(b"x"));
        answer::passed(&scene.send(&call).await);
        let mut over_h2 = H2Request::new("POST", target, Some(b"x"));
        let fields = claims.iter();
        over_h2.headers = fields
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_bytes().to_vec()))
            .collect();
        answer::passed(&scene.connect_h2().await.send(&over_h2).await);
    }
    for seen in scene.upstream.requests() {
        for (name, _) in &seen.headers {
            let name = name.to_ascii_lowercase();
            assert!(!name.starts_with("x-hoop-"), "{name} reached the upstream");
        }
        assert_eq!(seen.header("x-kept").as_deref(), Some("yes"));
    }
    for call in lies.calls() {
        let names = call.headers.iter().map(|(name, _)| name.as_str());
        let claimed: Vec<_> = names.filter(|name| name.starts_with("x-hoop-")).collect();
        assert!(claimed.is_empty(), "{claimed:?} reached the plane");
    }
    scene.finish(4).await;
}
