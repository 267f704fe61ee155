//! `spend_approval_on: accepted`: the upstream's answer spends an approval or gives it back, and two never run on one.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::{Scene, SceneBuilder};
use hoop_tests::upstream::Reaction;
use hoop_tests::wait;
use serde_json::{Value, json};
use tokio::runtime::Builder;

on_both_hosts! {
    an_accepted_call_spends_its_approval,
    a_refused_call_gives_its_approval_back_and_may_be_sent_again,
    a_call_that_no_upstream_got_gives_its_approval_back,
    a_call_that_may_have_run_spends_its_approval,
    a_refusal_that_breaks_off_spends_its_approval,
    a_refusal_whose_end_cannot_be_told_spends_its_approval,
    while_a_call_is_under_way_nobody_else_runs_on_its_approval,
    a_client_that_leaves_while_the_upstream_works_spends_the_approval,
    a_held_call_that_the_upstream_refuses_leaves_its_approval_to_the_next,
    a_plane_that_spends_at_the_release_is_not_told_how_it_ended,
    a_plane_that_takes_no_settlement_is_named_in_the_log,
    a_settlement_that_was_lost_is_told_again,
}

fn accepting(mode: &str) -> Value {
    let mut policy = policy::with("spend_approval_on", json!("accepted"));
    policy["approval_mode"] = mode.into();
    policy["poll_interval_ms"] = 100.into();
    policy
}

fn real(host: Host) -> SceneBuilder {
    Scene::real(host).policy(accepting("return"))
}

/// Files a call, has it approved, and gives the approval's id.
async fn approved(scene: &Scene) -> String {
    let id = answer::pending(&scene.post("/payments/42", &scene.body()).await);
    scene.plane().approve(&id).await;
    id
}

async fn send(scene: &Scene) -> Answer {
    scene.post("/payments/42", &scene.body()).await
}

async fn stands(scene: &Scene, id: &str, status: &str) {
    wait::until(&format!("the approval is {status}"), async || {
        (scene.plane().row(id).await["status"] == status).then_some(())
    })
    .await;
}

async fn counted(scene: &Scene, name: &str) -> u64 {
    let name = format!("wasmcustom.hoop_filter_{name}_total");
    scene.proxy.stat(&name).await
}

async fn an_accepted_call_spends_its_approval(host: Host) {
    let scene = real(host).start().await;
    let id = approved(&scene).await;

    answer::passed(&send(&scene).await);

    stands(&scene, &id, "EXECUTED").await;
    let next = answer::pending(&send(&scene).await);
    assert_ne!(next, id);
    scene.finish(1).await;
}

async fn a_refused_call_gives_its_approval_back_and_may_be_sent_again(host: Host) {
    let refusals: [&[u8]; 3] = [
        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 409 Conflict\r\ncontent-length: 2\r\n\r\nno",
        b"HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    ];
    let scene = real(host).start().await;
    let id = approved(&scene).await;

    for refusal in refusals {
        scene.upstream.react(Reaction::Raw(refusal));
        let answer = send(&scene).await;
        assert!(matches!(answer.status, 400 | 409 | 503), "{answer}");
        assert_eq!(answer.header("x-hoop-denied"), None, "{answer}");
        stands(&scene, &id, "APPROVED").await;
    }
    scene.upstream.react(Reaction::Answer);
    answer::passed(&send(&scene).await);

    stands(&scene, &id, "EXECUTED").await;
    assert_eq!(counted(&scene, "approvals_returned").await, 3);
    scene.finish(4).await;
}

async fn a_call_that_no_upstream_got_gives_its_approval_back(host: Host) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = nobody.local_addr().expect("a bound socket").port();
    drop(nobody);
    let scene = real(host)
        .edit(move |document| {
            let clusters = document["static_resources"]["clusters"].as_array_mut();
            let mut clusters = clusters.expect("clusters").iter_mut();
            let upstream = clusters.find(|cluster| cluster["name"] == "billing_upstream");
            let upstream = upstream.expect("the upstream's cluster");
            upstream["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]
                ["socket_address"]["port_value"] = port.into();
        })
        .start()
        .await;
    let id = approved(&scene).await;

    let answer = send(&scene).await;

    assert_eq!(answer.status, 503, "{answer}");
    stands(&scene, &id, "APPROVED").await;
    scene.finish(0).await;
}

async fn a_call_that_may_have_run_spends_its_approval(host: Host) {
    let scene = real(host).start().await;
    let id = approved(&scene).await;
    scene.upstream.react(Reaction::Hangup);

    let answer = send(&scene).await;

    assert_eq!(answer.status, 503, "{answer}");
    stands(&scene, &id, "EXECUTED").await;
    scene.finish(1).await;
}

async fn a_refusal_that_breaks_off_spends_its_approval(host: Host) {
    let scene = real(host).start().await;
    let id = approved(&scene).await;
    scene.upstream.react(Reaction::RawAndClose(
        b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 10\r\n\r\nhalf",
    ));
    let mut connection = scene.connect().await;
    connection
        .write(&request("POST", "/payments/42", &[], Some(&scene.body())))
        .await;

    stands(&scene, &id, "EXECUTED").await;
    drop(connection);
    scene.finish(1).await;
}

async fn a_refusal_whose_end_cannot_be_told_spends_its_approval(host: Host) {
    let scene = real(host).start().await;
    let id = approved(&scene).await;
    scene.upstream.react(Reaction::RawAndClose(
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\nit may go on",
    ));

    let answer = send(&scene).await;

    assert_eq!(answer.status, 400, "{answer}");
    stands(&scene, &id, "EXECUTED").await;
    scene.finish(1).await;
}

/// The simulator knows no retries.
#[test]
fn an_answer_behind_an_earlier_attempt_spends_its_approval() {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let scene = real(Host::Envoy)
            .edit_manager(|manager| {
                let route = manager.pointer_mut("/route_config/virtual_hosts/0/routes/0/route");
                let route = route.expect("the route of envoy/envoy.yaml");
                route["retry_policy"] = json!({"retry_on": "5xx", "num_retries": 1});
            })
            .start()
            .await;
        let id = approved(&scene).await;
        scene.upstream.react(Reaction::Fail);

        let answer = send(&scene).await;

        assert_eq!(answer.status, 503, "{answer}");
        stands(&scene, &id, "EXECUTED").await;
        scene.finish(2).await;
    });
}

async fn while_a_call_is_under_way_nobody_else_runs_on_its_approval(host: Host) {
    let scene = real(host).workers(2).start().await;
    let id = approved(&scene).await;
    scene.upstream.react(Reaction::Silence);
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let mut first = scene.connect().await;
    first.write(&call).await;
    wait::until("the upstream has the first call", async || {
        (scene.upstream.request_count() == 1).then_some(())
    })
    .await;

    for _ in 0..4 {
        let second = send(&scene).await;
        let named = answer::settled(&second, "PROCESSING", "the statement was not released");
        assert_eq!(named, id);
    }

    drop(first);
    stands(&scene, &id, "EXECUTED").await;
    scene.finish(1).await;
}

async fn a_client_that_leaves_while_the_upstream_works_spends_the_approval(host: Host) {
    let scene = real(host).start().await;
    let id = approved(&scene).await;
    scene.upstream.react(Reaction::Silence);
    let leaving = scene.connect_h2().await;
    let call = H2Request::new("POST", "/payments/42", Some(&scene.body()));
    let upstream = scene.upstream.clone();
    let arrived = wait::until("the upstream has the call", async || {
        (upstream.request_count() == 1).then_some(())
    });
    tokio::select! {
        answer = leaving.try_send(&call) => panic!("answered: {answer:?}"),
        () = arrived => {}
    }

    drop(leaving);

    stands(&scene, &id, "EXECUTED").await;
    scene.finish(1).await;
}

async fn a_held_call_that_the_upstream_refuses_leaves_its_approval_to_the_next(host: Host) {
    let scene = Scene::real(host).policy(accepting("hold")).start().await;
    scene.upstream.react(Reaction::Fail);
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    let mut first = scene.connect().await;
    first.write(&call).await;
    let id = wait::until("the call is filed", async || {
        let rows = scene.plane().rows().await;
        Some(rows.first()?["id"].as_str()?.to_owned())
    })
    .await;
    scene.plane().approve(&id).await;
    assert_eq!(first.answer("POST").await.status, 503);
    stands(&scene, &id, "APPROVED").await;

    scene.upstream.react(Reaction::Answer);
    answer::passed(&send(&scene).await);

    stands(&scene, &id, "EXECUTED").await;
    scene.finish(2).await;
}

async fn a_plane_that_spends_at_the_release_is_not_told_how_it_ended(host: Host) {
    let scene = Scene::lying(host).policy(accepting("return")).start().await;
    scene.lies().once(Reply::review(200, true, ID, "EXECUTED"));
    scene.upstream.react(Reaction::Fail);

    assert_eq!(send(&scene).await.status, 503);

    scene.idle().await;
    assert_eq!(scene.lies().calls().len(), 1);
    scene.finish(1).await;
}

async fn a_plane_that_takes_no_settlement_is_named_in_the_log(host: Host) {
    let scene = Scene::lying(host).policy(accepting("return")).start().await;
    scene
        .lies()
        .once(Reply::review(200, true, ID, "PROCESSING"));
    let refusal = Reply::json(409, &json!({"message": "no", "status": "EXECUTED"}));
    scene.lies().once(refusal);

    answer::passed(&send(&scene).await);

    wait::until("the gate has said so", async || {
        let log = scene.proxy.log();
        log.contains(&format!("settle=failed approval_id={ID}"))
            .then_some(())
    })
    .await;
    let settle = &scene.lies().calls()[1];
    assert_eq!(
        settle.start_word(1),
        format!("/api/sidecars/reviews/{ID}/settle")
    );
    assert_eq!(settle.body, br#"{"outcome":"spent"}"#);
    assert_eq!(counted(&scene, "plane_failures").await, 1);
    scene.finish(1).await;
}

async fn a_settlement_that_was_lost_is_told_again(host: Host) {
    let scene = Scene::lying(host).policy(accepting("return")).start().await;
    scene
        .lies()
        .always(Reply::review(200, false, ID, "EXECUTED"));
    scene
        .lies()
        .once(Reply::review(200, true, ID, "PROCESSING"));
    scene.lies().once(Reply::typed(503, "text/plain", "no"));

    answer::passed(&send(&scene).await);

    wait::until("the plane is told again", async || {
        (scene.lies().calls().len() == 3).then_some(())
    })
    .await;
    let calls = scene.lies().calls();
    assert_eq!(calls[1].body, calls[2].body);
    scene.finish(1).await;
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
