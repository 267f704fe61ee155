//! Where a message ends: lines in front of chunks, trailers, and first bytes that begin no request. Each is judged the same however
//! the network cuts it.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::host::Host;
use hoop_tests::http1::{Body, request};
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;
use serde_json::json;

on_both_hosts! {
    the_line_in_front_of_a_chunk_may_be_of_any_length_however_it_is_cut,
    a_carriage_return_within_the_line_of_a_chunk_is_refused_however_it_is_cut,
    trailers_over_the_limit_of_a_head_are_431_however_they_are_cut,
    more_trailers_than_a_head_may_have_are_431,
    trailers_that_are_dropped_are_not_counted_but_measured,
    a_byte_that_begins_no_request_is_400_at_once,
}

/// `max_request_headers_kb`
const HEAD_LIMIT: usize = 60 * 1024;
/// `max_headers_count`
const FIELD_LIMIT: usize = 100;

/// Sends a chunked POST that no rule holds, whose body is `body`: at once, and cut within the line that its middle is in.
async fn both_ways(scene: &Scene, body: &[u8]) -> [Answer; 2] {
    let chunked = [("transfer-encoding", "chunked")];
    let head = request("POST", "/invoices/1", &chunked, None);
    let whole = scene.send(&[head.as_slice(), body].concat()).await;
    let (first, second) = body.split_at(body.len() / 2);
    let mut connection = scene.connect().await;
    connection.write(&head).await;
    connection.write(first).await;
    // The next read of the host finds no more than this, unless the host sleeps.
    scene.get("/invoices/1").await;
    connection.write(second).await;
    [whole, connection.answer("a POST in two pieces").await]
}

async fn the_line_in_front_of_a_chunk_may_be_of_any_length_however_it_is_cut(host: Host) {
    let scene = Scene::lying(host).workers(1).start().await;
    for length in [100, 5000, 100_000] {
        let body = format!("2;{}\r\nhi\r\n0\r\n\r\n", "a".repeat(length));
        for answer in both_ways(&scene, body.as_bytes()).await {
            answer::passed(&answer);
        }
    }
    scene.finish(9).await;
}

async fn a_carriage_return_within_the_line_of_a_chunk_is_refused_however_it_is_cut(host: Host) {
    let scene = Scene::lying(host).workers(1).start().await;
    for length in [100, 5000] {
        let filler = "a".repeat(length);
        let body = format!("2;{filler}\r{filler}\r\nhi\r\n0\r\n\r\n");
        for answer in both_ways(&scene, body.as_bytes()).await {
            assert_eq!(answer.status, 400, "{answer}");
        }
    }
    scene.finish(2).await;
}

async fn trailers_over_the_limit_of_a_head_are_431_however_they_are_cut(host: Host) {
    let scene = Scene::lying(host)
        .workers(1)
        .edit_manager(|manager| manager["http_protocol_options"] = json!({"enable_trailers": true}))
        .start()
        .await;
    let around = "x-a: \r\n\r\n".len();
    for (length, status) in [(HEAD_LIMIT, 200), (HEAD_LIMIT + 1, 431), (100_000, 431)] {
        let trailers = format!("x-a: {}\r\n\r\n", "a".repeat(length - around));
        let body = format!("2\r\nhi\r\n0\r\n{trailers}");
        for answer in both_ways(&scene, body.as_bytes()).await {
            assert_eq!(answer.status, status, "{length}: {answer}");
        }
    }
    scene.finish(5).await;
}

/// A body behind which stand `count` trailers.
fn many_trailers(count: usize) -> Vec<u8> {
    let trailers: String = (0..count)
        .map(|number| format!("x-{number}: 1\r\n"))
        .collect();
    format!("2\r\nhi\r\n0\r\n{trailers}\r\n").into_bytes()
}

async fn more_trailers_than_a_head_may_have_are_431(host: Host) {
    let scene = Scene::lying(host)
        .workers(1)
        .edit_manager(|manager| manager["http_protocol_options"] = json!({"enable_trailers": true}))
        .start()
        .await;
    for (count, status) in [(FIELD_LIMIT, 200), (FIELD_LIMIT + 1, 431)] {
        for answer in both_ways(&scene, &many_trailers(count)).await {
            assert_eq!(answer.status, status, "{count}: {answer}");
        }
    }
    scene.finish(4).await;
}

async fn trailers_that_are_dropped_are_not_counted_but_measured(host: Host) {
    let scene = Scene::lying(host).workers(1).start().await;
    for answer in both_ways(&scene, &many_trailers(FIELD_LIMIT + 1)).await {
        answer::passed(&answer);
    }
    let long = format!("2\r\nhi\r\n0\r\nx-a: {}\r\n\r\n", "a".repeat(HEAD_LIMIT));
    for answer in both_ways(&scene, long.as_bytes()).await {
        assert_eq!(answer.status, 431, "{answer}");
    }
    scene.finish(4).await;
}

async fn a_byte_that_begins_no_request_is_400_at_once(host: Host) {
    let scene = Scene::lying(host).workers(1).start().await;
    // The first is how a TLS handshake begins.
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"\x16",
        b"\0",
        b" ",
        b"\r\n\t",
    ] {
        let mut connection = scene.connect().await;
        connection.write(bytes).await;
        let answer = connection.next("no request", Body::AsResponse).await;
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (400, "Bad Request")
        );
        assert!(connection.at_end().await, "{bytes:?}");
    }
    scene.finish(0).await;
}
