//! How a hold ends without a decision for its client: the client leaves, Envoy gives up, the upstream is not there. Nothing runs
//! that nobody waits for, nothing is asked for nobody, and an approval that was spent in vain is named.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::{Kind, Latch, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::real_plane::free_port;
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    a_client_that_leaves_is_counted_and_the_next_identical_send_finds_the_decision,
    nobody_is_asked_about_once_nobody_waits,
    a_stream_that_is_reset_ends_its_hold_and_not_that_of_its_neighbour,
    a_client_that_leaves_while_its_body_comes_files_nothing,
    of_two_that_wait_for_the_same_approval_the_one_that_stays_runs,
    a_release_for_a_client_that_left_during_the_claim_runs_nothing_and_is_named,
    a_release_for_a_client_that_left_during_the_filing_runs_nothing_and_is_named,
    a_filing_that_ends_undecided_after_its_client_left_starts_no_watch,
    a_claim_for_a_client_that_left_is_told_to_the_next_one_that_waits,
    envoys_own_idle_time_ends_a_hold,
    an_upstream_that_is_not_there_costs_the_approval_and_says_so,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// One that leaves while its approval is claimed. The claim is answered once the latch is open: released.
async fn left_during_the_claim(scene: &Scene) -> Latch {
    let lies = scene.lies();
    let latch = Latch::default();
    let released = Reply::review(200, true, ID, "EXECUTED").behind(&latch);
    lies.on(Kind::Claim, released);
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    let leaving = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::Claim, 1).await;
    drop(leaving);
    scene.until_counter("requests_abandoned", 1).await;
    scene.until_held(0).await;
    latch
}

async fn a_client_that_leaves_is_counted_and_the_next_identical_send_finds_the_decision(
    host: Host,
) {
    let scene = Scene::real(host).policy(policy::holding()).start().await;
    let body = scene.body();
    let leaving = scene.begin("/payments/42", &body).await;
    scene.until_held(1).await;
    let rows = scene.plane().rows().await;
    let id = rows[0]["id"].as_str().expect("an id");

    drop(leaving);

    scene.until_held(0).await;
    scene.until_counter("requests_abandoned", 1).await;
    let approval = format!("approval_id={id}");
    scene
        .until_logged(&["decision=abandoned", "while it waited", &approval])
        .await;
    assert_eq!(scene.plane().row(id).await["status"], "PENDING");
    scene.plane().approve(id).await;
    answer::passed(&scene.post("/payments/42", &body).await);
    assert_eq!(scene.plane().row(id).await["status"], "EXECUTED");
    assert_eq!(scene.plane().rows().await.len(), 1);
    assert_eq!(scene.counter("approvals_spent_not_run").await, 0);
    scene.finish(1).await;
}

async fn nobody_is_asked_about_once_nobody_waits(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let leaving = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::List, 2).await;
    drop(leaving);
    scene.until_counter("requests_abandoned", 1).await;
    // Whatever was under way has come by the time the plane has answered another call.
    lies.next(Kind::Other, Reply::read(ID, "PENDING", policy::LISTENER));
    let status = format!("/.well-known/hoop/approvals/{ID}");
    answer::reserved(&scene.get(&status).await, 200);
    let asked = lies.call_count();

    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    for _ in 0..300 {
        answer::passed(&scene.get("/invoices/1").await);
    }

    assert_eq!(lies.call_count(), asked);
    assert_eq!(lies.count(Kind::Claim), 0);
    scene.finish(300).await;
}

async fn a_stream_that_is_reset_ends_its_hold_and_not_that_of_its_neighbour(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let connection = scene.connect_h2().await;
    let call = H2Request::new("POST", "/payments/42", Some(&scene.body()));
    let held = |connection: hoop_tests::client::h2::H2Connection| {
        let call = call.clone();
        tokio::spawn(async move { connection.try_send(&call).await })
    };
    let leaving = held(connection.clone());
    scene.until_held(1).await;
    let staying = held(connection.clone());
    scene.until_held(2).await;

    leaving.abort();

    scene.until_held(1).await;
    scene.until_counter("requests_abandoned", 1).await;
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    let answer = staying.await.expect("a task that ends");
    answer::passed(&answer.expect("an answer"));
    scene.finish(1).await;
}

async fn a_client_that_leaves_while_its_body_comes_files_nothing(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let mut leaving = scene.connect().await;
    let head =
        b"POST /payments/42 HTTP/1.1\r\nhost: billing.example\r\ncontent-length: 9\r\n\r\nhalf";
    leaving.write(head).await;
    answer::passed(&scene.get("/invoices/1").await);

    drop(leaving);

    scene.until_counter("requests_abandoned", 1).await;
    assert_eq!(scene.lies().call_count(), 0);
    scene.finish(1).await;
}

async fn of_two_that_wait_for_the_same_approval_the_one_that_stays_runs(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let leaving = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    let mut staying = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(2).await;

    drop(leaving);

    scene.until_held(1).await;
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    answer::passed(&staying.answer("the one that stayed").await);
    assert_eq!(lies.count(Kind::Claim), 1);
    assert_eq!(scene.counter("approvals_spent_not_run").await, 0);
    scene.finish(1).await;
}

async fn a_release_for_a_client_that_left_during_the_claim_runs_nothing_and_is_named(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let latch = left_during_the_claim(&scene).await;

    latch.open();

    spent_not_run(&scene).await;
    assert_eq!(scene.lies().count(Kind::Claim), 1);
    scene.finish(0).await;
}

async fn a_release_for_a_client_that_left_during_the_filing_runs_nothing_and_is_named(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let latch = Latch::default();
    let released = Reply::review(200, true, ID, "EXECUTED").behind(&latch);
    lies.on(Kind::Filing, released);
    let leaving = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::Filing, 1).await;
    drop(leaving);
    scene.until_counter("requests_abandoned", 1).await;

    latch.open();

    spent_not_run(&scene).await;
    scene.finish(0).await;
}

async fn spent_not_run(scene: &Scene) {
    scene.until_counter("approvals_spent_not_run", 1).await;
    let approval = format!("approval_id={ID}");
    scene
        .until_logged(&["decision=spent_not_run", &approval])
        .await;
    assert_eq!(scene.counter("requests_released").await, 0);
    assert_eq!(scene.upstream.connections(), 0);
}

async fn a_filing_that_ends_undecided_after_its_client_left_starts_no_watch(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let lies = scene.lies();
    let latch = Latch::default();
    let pending = Reply::review(201, false, ID, "PENDING").behind(&latch);
    lies.next(Kind::Filing, pending);
    let leaving = scene.begin("/payments/42", &scene.body()).await;
    lies.until_asked(Kind::Filing, 1).await;
    drop(leaving);
    scene.until_counter("requests_abandoned", 1).await;

    latch.open();

    lies.next(Kind::Other, Reply::read(ID, "PENDING", policy::LISTENER));
    let status = format!("/.well-known/hoop/approvals/{ID}");
    answer::reserved(&scene.get(&status).await, 200);
    for _ in 0..300 {
        answer::passed(&scene.get("/invoices/1").await);
    }
    assert_eq!(lies.count(Kind::List), 0);
    scene.until_held(0).await;
    scene.finish(300).await;
}

async fn a_claim_for_a_client_that_left_is_told_to_the_next_one_that_waits(host: Host) {
    let scene = Scene::undecided(host, policy::holding(), ID).await;
    let latch = left_during_the_claim(&scene).await;
    // The plane has not decided the claim yet when the same call comes again.
    let mut next = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;

    latch.open();

    answer::passed(&next.answer("the next one").await);
    assert_eq!(scene.lies().count(Kind::Claim), 1);
    assert_eq!(scene.counter("approvals_spent_not_run").await, 0);
    scene.finish(1).await;
}

async fn envoys_own_idle_time_ends_a_hold(host: Host) {
    let scene = Scene::lying(host)
        .policy(policy::holding())
        .edit_manager(|manager| manager["stream_idle_timeout"] = "1s".into())
        .start()
        .await;
    let lies = scene.lies();
    lies.undecided(ID);

    let answer = scene.post("/payments/42", &scene.body()).await;

    assert_eq!(answer.status, 504, "{answer}");
    assert_eq!(answer.header("x-hoop-denied"), None, "{answer}");
    scene.until_counter("requests_abandoned", 1).await;
    scene.until_held(0).await;
    let approval = format!("approval_id={ID}");
    scene.until_logged(&["decision=abandoned", &approval]).await;
    scene.finish(0).await;
}

async fn an_upstream_that_is_not_there_costs_the_approval_and_says_so(host: Host) {
    let nobody = free_port();
    let scene = Scene::real(host)
        .policy(policy::holding())
        .edit(move |document| {
            let clusters = document["static_resources"]["clusters"].as_array_mut();
            for cluster in clusters.expect("the clusters of envoy/envoy.yaml") {
                if cluster["name"] == "billing_upstream" {
                    let endpoint = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";
                    *cluster.pointer_mut(endpoint).expect("its endpoint") = json!(nobody);
                }
            }
        })
        .start()
        .await;
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let mut held = scene.connect().await;
    held.write(&call).await;
    scene.until_held(1).await;
    let rows = scene.plane().rows().await;
    let id = rows[0]["id"].as_str().expect("an id");

    scene.plane().approve(id).await;

    let answer = held.answer("the held call").await;
    assert_eq!(answer.status, 503, "{answer}");
    assert_eq!(answer.header("x-hoop-denied"), None, "{answer}");
    assert_eq!(scene.plane().row(id).await["status"], "EXECUTED");
    assert_eq!(scene.counter("requests_released").await, 1);
    assert_eq!(scene.counter("requests_abandoned").await, 0);
    // The next send needs an approval of its own.
    let _held_again = scene.begin("/payments/42", &scene.body()).await;
    scene.until_held(1).await;
    assert_eq!(scene.plane().rows().await.len(), 2);
    drop(_held_again);
    scene.finish(0).await;
}
