//! TLS towards the clients: both versions of HTTP over it, and clients that do not speak it, or not to the end.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::client::tls::{self, Identity};
use hoop_tests::host::Host;
use hoop_tests::http1::{Body, Broken, request};
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;

on_both_hosts! {
    http_1_1_over_tls_is_held_and_passed_as_without,
    http_2_is_chosen_by_alpn_and_held_and_passed_as_without,
    the_first_protocol_that_both_know_is_spoken,
    a_client_that_speaks_without_tls_gets_no_answer_and_disturbs_nobody,
    a_handshake_that_stops_halfway_blocks_nobody,
    a_target_with_a_scheme_may_claim_tls_only_over_tls,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
/// The head of a record with a handshake of 512 bytes in it.
const HANDSHAKE_BEGIN: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

async fn scene(host: Host, identity: &Identity) -> Scene {
    let socket = identity.transport_socket();
    let scene = Scene::lying(host).workers(1).edit(|document| {
        let chain = document.pointer_mut("/static_resources/listeners/0/filter_chains/0");
        chain.expect("the filter chain of envoy/envoy.yaml")["transport_socket"] = socket;
    });
    let scene = scene.start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    scene
}

async fn http_1_1_over_tls_is_held_and_passed_as_without(host: Host) {
    let identity = Identity::create();
    let scene = scene(host, &identity).await;
    let mut connection = identity.http1(scene.address(), scene.answers()).await;
    let call = request("POST", "/payments/42", &[], Some(&scene.body()));
    answer::pending(&connection.send(&call).await);
    answer::passed(
        &connection
            .send(&request("GET", "/invoices/1", &[], None))
            .await,
    );
    let requests = scene.upstream.requests();
    assert_eq!(
        requests[0].header("x-forwarded-proto").as_deref(),
        Some("https")
    );
    scene.finish(1).await;
}

async fn http_2_is_chosen_by_alpn_and_held_and_passed_as_without(host: Host) {
    let identity = Identity::create();
    let scene = scene(host, &identity).await;
    let connection = identity.http2(scene.address(), scene.answers()).await;
    let call = H2Request::new("POST", "/payments/42", Some(&scene.body()));
    answer::pending(&connection.send(&call).await);
    answer::passed(
        &connection
            .send(&H2Request::new("GET", "/invoices/1", None))
            .await,
    );
    let requests = scene.upstream.requests();
    assert_eq!(
        requests[0].header("x-forwarded-proto").as_deref(),
        Some("https")
    );
    scene.finish(1).await;
}

async fn the_first_protocol_that_both_know_is_spoken(host: Host) {
    let identity = Identity::create();
    let scene = scene(host, &identity).await;
    for (offered, chosen) in [
        (&["http/1.1", "h2"][..], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = identity.connect(scene.address(), offered).await;
        assert_eq!(tls::protocol(&stream).as_deref(), chosen, "{offered:?}");
    }
    scene.finish(0).await;
}

async fn a_client_that_speaks_without_tls_gets_no_answer_and_disturbs_nobody(host: Host) {
    let identity = Identity::create();
    let scene = scene(host, &identity).await;
    for method in ["GET", "POST", "HEAD", "PUT"] {
        let mut plain = scene.connect().await;
        plain
            .write(&request(method, "/invoices/1", &[], None))
            .await;
        let answer = plain.next("a request without TLS", Body::AsResponse).await;
        assert!(matches!(answer, Err(Broken::Closed)), "{answer:?}");
    }
    let mut secure = identity.http1(scene.address(), scene.answers()).await;
    answer::passed(&secure.send(&request("GET", "/invoices/1", &[], None)).await);
    scene.finish(1).await;
}

async fn a_handshake_that_stops_halfway_blocks_nobody(host: Host) {
    let identity = Identity::create();
    let scene = scene(host, &identity).await;
    let mut silent = scene.connect().await;
    let mut halfway = scene.connect().await;
    halfway.write(HANDSHAKE_BEGIN).await;
    let mut secure = identity.http1(scene.address(), scene.answers()).await;
    answer::passed(&secure.send(&request("GET", "/invoices/1", &[], None)).await);
    scene.finish(1).await;
    assert!(halfway.at_end().await && silent.at_end().await);
}

async fn a_target_with_a_scheme_may_claim_tls_only_over_tls(host: Host) {
    let target = request("GET", "https://billing.example/invoices/1", &[], None);
    let identity = Identity::create();
    let secure = scene(host, &identity).await;
    let mut connection = identity.http1(secure.address(), secure.answers()).await;
    answer::passed(&connection.send(&target).await);
    secure.finish(1).await;
    let plain = Scene::lying(host).workers(1).start().await;
    assert_eq!(plain.send(&target).await.status, 403);
    plain.finish(0).await;
}
