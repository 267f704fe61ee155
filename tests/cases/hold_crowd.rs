//! Many held calls at once: each runs once, and the plane is not asked more often for it.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::{Message, request};
use hoop_tests::lying_plane::{Kind, Latch, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::way::chunked;
use hoop_tests::{numbered, wait};
use serde_json::json;
use tokio::task::JoinSet;

on_both_hosts! {
    fifty_calls_of_every_form_are_held_together_and_each_runs_once,
    two_workers_hold_for_themselves_and_release_all,
    fifty_held_calls_share_each_read_of_the_list,
    one_decision_among_many_releases_one,
    holds_come_and_go_on_one_connection_without_a_trace,
    six_hundred_that_wait_for_one_approval_are_all_told_of_its_rejection,
    a_read_that_fails_refuses_six_hundred_at_once,
}

/// More than a VM could refuse within one callback: Envoy 1.40 runs the reply to one within that to another, until the stack of
/// the VM is full.
const CROWD: usize = 600;

/// So many calls on one connection, each held.
async fn crowd(scene: &Scene) -> JoinSet<Answer> {
    let h2 = scene.connect_h2().await;
    let mut senders = JoinSet::new();
    for number in 0..CROWD {
        let call = H2Request::new("POST", &numbered::target(number), Some(b"x"));
        let h2 = h2.clone();
        senders.spawn(async move { h2.send(&call).await });
    }
    scene
        .until_held(u64::try_from(CROWD).expect("a small number"))
        .await;
    senders
}

async fn six_hundred_that_wait_for_one_approval_are_all_told_of_its_rejection(host: Host) {
    let id = numbered::id(0);
    let scene = Scene::undecided(host, policy::holding(), &id).await;
    let mut held = crowd(&scene).await;

    scene
        .lies()
        .on(Kind::List, Reply::list(&[(&id, "REJECTED")]));

    while let Some(answer) = held.join_next().await {
        let answer = answer.expect("a sender that ends");
        let reason = "the approval request was rejected";
        assert_eq!(answer::settled(&answer, "REJECTED", reason), id);
    }
    scene.until_held(0).await;
    scene.finish(0).await;
}

async fn a_read_that_fails_refuses_six_hundred_at_once(host: Host) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::List, numbered::list(0..200, "PENDING"));
    let mut held = crowd(&scene).await;

    lies.on(Kind::List, Reply::typed(500, "text/plain", "no"));

    while let Some(answer) = held.join_next().await {
        answer::not_checked(&answer.expect("a sender that ends"));
    }
    scene.until_held(0).await;
    scene.finish(0).await;
}

/// Sends `count` calls in turn over HTTP/1.1 (with a length, in chunks, without a body) and HTTP/2 (whole, in frames, with
/// trailers), each with a target and, where it has one, a body of its own.
async fn send_many(scene: &Scene, count: usize) -> JoinSet<Answer> {
    let mut senders = JoinSet::new();
    let h2 = scene.connect_h2().await;
    for number in 0..count {
        let target = numbered::target(number);
        let body = body(scene, number);
        if number % 6 < 3 {
            let call = match number % 6 {
                0 => request("POST", &target, &[], Some(&body)),
                1 => chunked("POST", &target, &[], &body, 7, &[]),
                _ => request("DELETE", &target, &[], None),
            };
            let mut connection = scene.connect().await;
            senders.spawn(async move { connection.send(&call).await });
        } else {
            let mut call = H2Request::new("PUT", &target, Some(&body));
            if number % 6 > 3 {
                call.frames = body.chunks(5).map(<[u8]>::to_vec).collect();
            }
            if number % 6 == 5 {
                call.trailers = vec![("x-checksum".to_owned(), b"7".to_vec())];
            }
            let h2 = h2.clone();
            senders.spawn(async move { h2.send(&call).await });
        }
    }
    senders
}

fn body(scene: &Scene, number: usize) -> Vec<u8> {
    if number % 6 == 2 {
        return Vec::new();
    }
    format!("{} of {}", scene.marker, "x".repeat(number * 40)).into_bytes()
}

/// Asserts that each of the first `count` calls has reached the upstream once, with its own body.
fn each_ran_once(scene: &Scene, count: usize) {
    let requests = scene.upstream.requests();
    for number in 0..count {
        let target = numbered::target(number);
        let of_it = |request: &&Message| request.start_word(1) == target;
        let bodies: Vec<&[u8]> = requests
            .iter()
            .filter(of_it)
            .map(|request| request.body.as_slice())
            .collect();
        assert_eq!(bodies, [body(scene, number).as_slice()], "{target}");
    }
}

async fn fifty_calls_of_every_form_are_held_together_and_each_runs_once(host: Host) {
    let scene = Scene::real(host).policy(policy::holding()).start().await;
    let senders = send_many(&scene, 50).await;
    scene.until_held(50).await;
    assert_eq!(scene.upstream.connections(), 0);

    approve_all(&scene, 50).await;

    for answer in wait::within("every answer", senders.join_all()).await {
        answer::passed(&answer);
    }
    each_ran_once(&scene, 50);
    scene.until_held(0).await;
    for row in scene.plane().rows().await {
        assert_eq!(row["status"], "EXECUTED", "{row}");
    }
    assert_eq!(scene.counter("requests_released").await, 50);
    assert_eq!(scene.counter("approvals_filed").await, 50);
    assert_eq!(scene.counter("internal").await, 0);
    scene.finish(50).await;
}

async fn approve_all(scene: &Scene, count: usize) {
    let rows = scene.plane().rows().await;
    assert_eq!(rows.len(), count);
    for row in rows {
        let id = row["id"].as_str().expect("an id");
        let approved = json!({"status": "APPROVED"});
        assert_eq!(scene.plane().decide_over_http(id, &approved).await, 200);
    }
}

async fn two_workers_hold_for_themselves_and_release_all(host: Host) {
    let scene = Scene::real(host).policy(policy::holding()).workers(2);
    let scene = scene.start().await;
    let senders = send_many(&scene, 24).await;
    scene.until_held(24).await;

    approve_all(&scene, 24).await;

    for answer in wait::within("every answer", senders.join_all()).await {
        answer::passed(&answer);
    }
    each_ran_once(&scene, 24);
    scene.until_held(0).await;
    scene.finish(24).await;
}

async fn fifty_held_calls_share_each_read_of_the_list(host: Host) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    let latch = Latch::default();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::Claim, numbered::released_claim());
    lies.on(Kind::List, Reply::Hang);
    let all_approved = numbered::list(0..50, "APPROVED").behind(&latch);
    lies.next(Kind::List, all_approved);
    let senders = send_many(&scene, 50).await;
    scene.until_held(50).await;
    lies.until_asked(Kind::List, 1).await;

    // While a read is under way there is no other, however many wait; and its answer is enough for all.
    assert_eq!(lies.count(Kind::List), 1);
    latch.open();

    for answer in wait::within("every answer", senders.join_all()).await {
        answer::passed(&answer);
    }
    each_ran_once(&scene, 50);
    assert_eq!(lies.count(Kind::Claim), 50);
    assert_eq!(lies.count(Kind::Filing), 50);
    // A second read may have begun before the last claim was answered.
    assert!(lies.count(Kind::List) <= 2);
    scene.finish(50).await;
}

async fn one_decision_among_many_releases_one(host: Host) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::Claim, numbered::released_claim());
    lies.on(Kind::List, numbered::list(0..12, "PENDING"));
    let mut held = Vec::new();
    for number in 0..12 {
        held.push(
            scene
                .begin(&numbered::target(number), &body(&scene, number))
                .await,
        );
    }
    scene.until_held(12).await;

    let (chosen, rejected) = (numbered::id(7), numbered::id(3));
    let mut rows: Vec<String> = (0..12).map(numbered::id).collect();
    rows.retain(|id| *id != chosen && *id != rejected);
    let mut decided = vec![
        (chosen.as_str(), "APPROVED"),
        (rejected.as_str(), "REJECTED"),
    ];
    decided.extend(rows.iter().map(|id| (id.as_str(), "PENDING")));
    lies.on(Kind::List, Reply::list(&decided));

    answer::passed(&held[7].answer("the approved one").await);
    let refused = held[3].answer("the rejected one").await;
    let reason = "the approval request was rejected";
    assert_eq!(answer::settled(&refused, "REJECTED", reason), rejected);
    scene.until_held(10).await;
    for (number, connection) in held.iter_mut().enumerate() {
        let decided = number == 7 || number == 3;
        assert!(decided || connection.is_silent().await, "{number}");
    }
    assert_eq!(scene.upstream.last().start_word(1), numbered::target(7));
    drop(held);
    scene.until_held(0).await;
    scene.until_counter("requests_abandoned", 10).await;
    scene.finish(1).await;
}

async fn holds_come_and_go_on_one_connection_without_a_trace(host: Host) {
    let scene = Scene::lying(host).policy(policy::holding()).start().await;
    let lies = scene.lies();
    lies.on(Kind::Filing, numbered::filing());
    lies.on(Kind::Claim, numbered::released_claim());
    lies.on(Kind::List, numbered::list(0..20, "APPROVED"));
    let mut connection = scene.connect().await;
    for number in 0..20 {
        let target = numbered::target(number);
        let call = request("POST", &target, &[], Some(&body(&scene, number)));
        answer::passed(&connection.send(&call).await);
    }
    scene.until_held(0).await;
    assert_eq!(lies.count(Kind::Claim), 20);
    assert_eq!(lies.count(Kind::Filing), 20);
    for (number, request) in scene.upstream.requests().iter().enumerate() {
        assert_eq!(request.body, body(&scene, number));
    }
    scene.finish(20).await;
}
