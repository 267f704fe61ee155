//! Bodies of every shape: what is filed is `METHOD SP target [LF LF body]` to the byte, and after the approval the upstream gets
//! exactly that body.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::way::{Way, chunked};
use serde_json::json;

on_both_hosts! {
    a_body_of_any_bytes_is_filed_and_run_as_it_is,
    trailers_end_a_body_and_are_no_part_of_the_statement,
    trailers_that_envoy_drops_change_nothing,
    trailers_behind_no_body_are_held_like_any_call,
    an_absent_an_empty_and_a_zero_length_body_are_one_statement,
    a_body_of_exactly_the_limit_is_filed_and_one_byte_more_is_refused_unfiled,
    a_body_far_over_every_limit_is_refused_and_never_runs,
    a_length_over_the_limit_is_refused_although_its_body_never_comes,
    a_smaller_limit_of_the_operator_holds_to_the_byte,
    the_limit_is_no_limit_for_calls_that_no_rule_holds,
    a_body_that_stops_halfway_files_and_runs_nothing,
    a_larger_limit_of_the_operator_holds_on_every_http_version,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const TARGET: &str = "/payments/42?to=b%20c";
/// `max_body_bytes` of the shipped configuration.
const LIMIT: usize = 65_536;

fn statement(body: &[u8]) -> Vec<u8> {
    let mut statement = format!("POST {TARGET}").into_bytes();
    if !body.is_empty() {
        statement.extend_from_slice(b"\n\n");
        statement.extend_from_slice(body);
    }
    statement
}

/// Refused first, then released: filed to the byte both times, and run once to the byte.
async fn files_and_runs_exactly(scene: &Scene, way: Way, body: &[u8]) {
    let filed_before = scene.lies().filed().len();
    let ran_before = scene.upstream.requests().len();

    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    answer::pending(&way.post(scene, TARGET, body).await);
    assert_eq!(scene.upstream.requests().len(), ran_before, "{way:?}");
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    answer::passed(&way.post(scene, TARGET, body).await);

    let filed = scene.lies().filed();
    assert_eq!(filed.len(), filed_before + 2, "{way:?}");
    for filed in &filed[filed_before..] {
        assert!(
            *filed == statement(body),
            "{way:?} of {} bytes filed {}",
            body.len(),
            filed.escape_ascii()
        );
    }
    assert_eq!(scene.upstream.requests().len(), ran_before + 1, "{way:?}");
    let run = scene.upstream.last();
    assert!(
        run.body == body,
        "{way:?} of {} bytes ran {} bytes",
        body.len(),
        run.body.len()
    );
    assert_eq!(
        run.start,
        format!("POST {TARGET} HTTP/1.1").into_bytes(),
        "{way:?}"
    );
    assert_eq!(run.trailers, [], "nobody approved them: {way:?}");
}

/// Every byte there is, line ends and a UTF-8 sequence cut in half.
fn all_bytes() -> Vec<u8> {
    let mut body: Vec<u8> = (0..=255).collect();
    body.extend_from_slice(b"\r\n\n\0\0\xe2\x82");
    body
}

async fn a_body_of_any_bytes_is_filed_and_run_as_it_is(host: Host) {
    let scene = Scene::lying(host).start().await;
    let ways = [
        Way::Length,
        Way::SingleBytes,
        Way::Chunks(1),
        Way::Chunks(100),
        Way::Frames(1),
        Way::Frames(100),
    ];
    for way in ways {
        files_and_runs_exactly(&scene, way, &all_bytes()).await;
    }
    files_and_runs_exactly(&scene, Way::Length, b"\n\n").await;
    files_and_runs_exactly(&scene, Way::Length, b"\0").await;
    files_and_runs_exactly(&scene, Way::Length, &scene.body()).await;
    scene.finish(ways.len() + 3).await;
}

async fn trailers_end_a_body_and_are_no_part_of_the_statement(host: Host) {
    let enable = |manager: &mut serde_json::Value| {
        manager["http_protocol_options"] = json!({"enable_trailers": true});
    };
    let scene = Scene::lying(host).edit_manager(enable).start().await;
    let ways = [
        Way::ChunksAndTrailers(1),
        Way::ChunksAndTrailers(1000),
        Way::FramesAndTrailers(1),
        Way::FramesAndTrailers(1000),
    ];
    for way in ways {
        files_and_runs_exactly(&scene, way, &all_bytes()).await;
    }
    scene.finish(ways.len()).await;
}

async fn trailers_that_envoy_drops_change_nothing(host: Host) {
    let scene = Scene::lying(host).start().await;
    files_and_runs_exactly(&scene, Way::ChunksAndTrailers(50), &all_bytes()).await;
    scene.finish(1).await;
}

async fn trailers_behind_no_body_are_held_like_any_call(host: Host) {
    let enable = |manager: &mut serde_json::Value| {
        manager["http_protocol_options"] = json!({"enable_trailers": true});
    };
    let scene = Scene::lying(host).edit_manager(enable).start().await;
    files_and_runs_exactly(&scene, Way::ChunksAndTrailers(1), b"").await;
    files_and_runs_exactly(&scene, Way::FramesAndTrailers(1), b"").await;
    scene.finish(2).await;
}

async fn an_absent_an_empty_and_a_zero_length_body_are_one_statement(host: Host) {
    let scene = Scene::lying(host).start().await;
    let absent = request("POST", TARGET, &[], None);
    let zero = request("POST", TARGET, &[], Some(b""));
    let no_chunk = chunked("POST", TARGET, &[], b"", 1, &[]);
    for call in [&absent, &zero, &no_chunk] {
        scene
            .lies()
            .always(Reply::review(201, false, ID, "PENDING"));
        answer::pending(&scene.send(call).await);
        scene
            .lies()
            .always(Reply::review(200, true, ID, "EXECUTED"));
        answer::passed(&scene.send(call).await);
        assert_eq!(scene.upstream.last().body, b"");
    }
    files_and_runs_exactly(&scene, Way::Frames(1), b"").await;
    let mut empty_frame = H2Request::new("POST", TARGET, Some(b""));
    empty_frame.frames = vec![Vec::new(), Vec::new()];
    answer::passed(&scene.connect_h2().await.send(&empty_frame).await);
    for filed in scene.lies().filed() {
        assert_eq!(filed, format!("POST {TARGET}").into_bytes());
    }
    scene.finish(5).await;
}

async fn a_body_of_exactly_the_limit_is_filed_and_one_byte_more_is_refused_unfiled(host: Host) {
    let scene = Scene::lying(host).start().await;
    let ways = [
        Way::Length,
        Way::Chunks(1000),
        Way::Chunks(LIMIT),
        Way::Frames(1000),
        Way::Frames(16_384),
    ];
    let exact: Vec<u8> = (0..LIMIT)
        .map(|index| (index % 251).to_le_bytes()[0])
        .collect();
    for way in ways {
        files_and_runs_exactly(&scene, way, &exact).await;
    }
    let filed = scene.lies().filed().len();
    let mut more = exact.clone();
    more.push(b'!');
    let mut wrong = Vec::new();
    for way in ways {
        let answer = way.post(&scene, TARGET, &more).await;
        if std::panic::catch_unwind(|| answer::policy(&answer, TOO_LARGE)).is_err() {
            wrong.push(format!("{way:?}: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(scene.lies().filed().len(), filed);
    scene.finish(ways.len()).await;
}

async fn a_body_far_over_every_limit_is_refused_and_never_runs(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let huge = vec![b'x'; 4 * 1024 * 1024];
    for way in [Way::Length, Way::Chunks(10_000), Way::Frames(16_384)] {
        let answer = way.post(&scene, TARGET, &huge).await;
        // Ours at the first byte too many, or Envoy's own when it has buffered too much before we could look.
        assert!(matches!(answer.status, 403 | 413), "{way:?}: {answer}");
    }
    assert_eq!(scene.lies().filed().len(), 0);
    scene.finish(0).await;
}

async fn a_length_over_the_limit_is_refused_although_its_body_never_comes(host: Host) {
    let scene = Scene::lying(host).start().await;
    let mut connection = scene.connect().await;
    let length = (LIMIT + 1).to_string();
    let head = request("POST", TARGET, &[("content-length", &length)], None);
    connection.write(&head).await;
    connection.write(&vec![b'x'; LIMIT]).await;
    connection.write(b"x").await;
    answer::policy(&connection.answer("a body over the limit").await, TOO_LARGE);
    assert_eq!(scene.lies().filed().len(), 0);
    scene.finish(0).await;
}

async fn a_smaller_limit_of_the_operator_holds_to_the_byte(host: Host) {
    let policy = policy::with("max_body_bytes", 16.into());
    let scene = Scene::lying(host).policy(policy).start().await;
    files_and_runs_exactly(&scene, Way::Length, &[b'a'; 16]).await;
    files_and_runs_exactly(&scene, Way::Frames(3), &[b'a'; 16]).await;
    for way in [
        Way::Length,
        Way::SingleBytes,
        Way::Chunks(1),
        Way::Frames(1),
    ] {
        answer::policy(&way.post(&scene, TARGET, &[b'a'; 17]).await, TOO_LARGE);
    }
    assert_eq!(scene.lies().filed().len(), 4);
    scene.finish(2).await;
}

async fn the_limit_is_no_limit_for_calls_that_no_rule_holds(host: Host) {
    let scene = Scene::lying(host).start().await;
    let body = vec![b'z'; 3 * 1024 * 1024];
    answer::passed(&scene.post("/invoices/1", &body).await);
    assert!(scene.upstream.last().body == body);
    let h2 = scene.connect_h2().await;
    let mut call = H2Request::new("POST", "/invoices/1", None);
    call.frames = body.chunks(16_384).map(<[u8]>::to_vec).collect();
    answer::passed(&h2.send(&call).await);
    assert!(scene.upstream.last().body == body);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(2).await;
}

async fn a_body_that_stops_halfway_files_and_runs_nothing(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let whole = request("POST", TARGET, &[], Some(&scene.body()));
    let unfinished_chunk =
        b"POST /payments/42 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n40\r\nabc"
            .to_vec();
    for cut in [&whole[..whole.len() - 1], &unfinished_chunk[..]] {
        let mut connection = scene.connect().await;
        connection.write(cut).await;
        hoop_tests::wait::until("the gate has begun to read", async || {
            (scene
                .proxy
                .stat("http.billing_api.downstream_rq_active")
                .await
                == 1)
                .then_some(())
        })
        .await;
        drop(connection);
        hoop_tests::wait::until("the gate has given up", async || {
            (scene
                .proxy
                .stat("http.billing_api.downstream_rq_active")
                .await
                == 0)
                .then_some(())
        })
        .await;
    }
    assert_eq!(scene.lies().filed().len(), 0);
    scene.finish(0).await;
}

const TOO_LARGE: &str = "statement held for human approval: the request body is larger than http.max_body_bytes, so an approver could not read all of it";

async fn a_larger_limit_of_the_operator_holds_on_every_http_version(host: Host) {
    let policy = policy::with("max_body_bytes", 99_000.into());
    let scene = Scene::lying(host).policy(policy).start().await;
    let body = vec![b'a'; 99_000];
    files_and_runs_exactly(&scene, Way::Length, &body).await;
    files_and_runs_exactly(&scene, Way::Chunks(9_000), &body).await;
    files_and_runs_exactly(&scene, Way::Frames(16_384), &body).await;
    scene.finish(3).await;
}
