//! `approval_wait` and its siblings against a plane, as messages on the wire.

use bytes::Bytes;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1;
use hoop_tests::lying_plane::{Kind, Reply, path_id};
use hoop_tests::mcp::wire::{
    self, BOTH, JSON, begin, complaint, messages, post, told, tool_call, until_waiting, wait_call,
};
use hoop_tests::numbered;
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::{Value, json};
use tokio::net::TcpStream;

on_both_hosts! {
    a_client_that_leaves_ends_its_wait,
    a_notice_that_gives_a_wait_up_ends_it_whichever_worker_gets_it,
    a_client_of_http_2_that_takes_little_at_a_time_gets_the_whole_answer,
    a_connection_goes_on_after_a_wait_with_progress,
    a_plane_that_fails_ends_the_waits_without_a_word_about_it,
    a_wait_that_nobody_decides_says_so_in_its_time,
    a_wait_with_progress_is_a_live_stream_over_both_versions_of_http,
    a_wait_without_progress_is_one_answer_once_somebody_decides,
    fifty_waits_share_each_read_of_the_list,
    every_status_says_what_to_do_next_in_either_family,
    hundreds_of_streams_are_told_of_their_decision,
    the_newest_approvals_are_listed_whichever_listener_filed_them,
    with_no_room_for_streams_a_wait_is_one_answer,
}

async fn tools(host: Host) -> Scene {
    Scene::real(host).serving_tools().start().await
}

/// Tools whose plane has this approval, undecided.
async fn undecided(host: Host, id: &str) -> Scene {
    let scene = Scene::lying(host).serving_tools().start().await;
    stands(&scene, id, "PENDING");
    scene
}

fn stands(scene: &Scene, id: &str, status: &str) {
    let lies = scene.lies();
    lies.on(Kind::Other, Reply::read(id, status, "billing-api"));
    lies.on(Kind::List, Reply::list(&[(id, status)]));
}

async fn a_wait_without_progress_is_one_answer_once_somebody_decides(host: Host) {
    let scene = tools(host).await;
    let id = scene.plane().file(b"POST /payments/1").await;
    let mut waiting = begin(&scene, &wait_call(&id, 60, None)).await;
    until_waiting(&scene, 1).await;
    assert!(waiting.is_silent().await);

    scene.plane().approve(&id).await;

    let answer = waiting.answer("the wait").await;
    let [message] = &messages(&answer)[..] else {
        panic!("one message: {answer}")
    };
    let told = told(message);
    assert_eq!(told["status"], "APPROVED");
    assert_eq!(told["next"], "resend_identical_statement");
    assert_eq!(told["timed_out"], false);
    assert!(told["decided_at"].is_string());
    let again = post(&scene, &wait_call(&id, 60, None)).await;
    let again = wire::told(&messages(&again)[0]);
    assert_eq!(
        (&again["timed_out"], &again["waited_seconds"]),
        (&json!(false), &json!(0))
    );
    // Nobody but the gate's own call spends it.
    assert_eq!(scene.plane().row(&id).await["status"], "APPROVED");
    scene.finish(0).await;
}

async fn a_wait_that_nobody_decides_says_so_in_its_time(host: Host) {
    let scene = tools(host).await;
    let id = scene.plane().file(b"POST /payments/1").await;
    for token in [None, Some(json!("t"))] {
        let answer = post(&scene, &wait_call(&id, 2, token.clone())).await;

        let all = messages(&answer);
        let told = told(all.last().expect("a result"));
        assert_eq!(told["timed_out"], true, "{token:?}");
        assert_eq!(told["next"], "wait");
        let waited = told["waited_seconds"].as_u64().expect("a number");
        assert!(waited >= 2, "{waited}");
    }
    scene.finish(0).await;
}

async fn a_wait_with_progress_is_a_live_stream_over_both_versions_of_http(host: Host) {
    let scene = tools(host).await;
    for (number, token) in [(1, json!("t-1")), (2, json!(7))] {
        let statement = format!("POST /payments/{number}");
        let id = scene.plane().file(statement.as_bytes()).await;
        let mut response = streamed(&scene, &wait_call(&id, 60, Some(token.clone()))).await;
        // The first event is there while nobody has decided.
        let mut events = next_events(&mut response).await;

        scene.plane().approve(&id).await;

        while let Some(chunk) = wait::within("the result", response.chunk())
            .await
            .expect("a stream that ends well")
        {
            events.extend(chunk);
        }
        let text = String::from_utf8(events).expect("text");
        scene.assert_discreet("the events", &text);
        let all: Vec<Value> = text
            .split_terminator("\n\n")
            .map(|event| {
                let data = event.strip_prefix("event: message\ndata: ");
                serde_json::from_str(data.expect("an event")).expect("JSON")
            })
            .collect();
        let (result, progress) = all.split_last().expect("events");
        assert_eq!(told(result)["status"], "APPROVED");
        let mut before = 0.0;
        for notification in progress {
            assert_eq!(notification["method"], "notifications/progress");
            let params = &notification["params"];
            assert_eq!(params["progressToken"], token);
            assert_eq!(params["total"], 60);
            assert_eq!(params["message"], "waiting for an approver");
            let progress = params["progress"].as_f64().expect("a number");
            assert!(progress > before, "{progress} after {before}");
            before = progress;
        }
    }
    let id = scene.plane().file(b"POST /payments/3").await;
    let mut request = H2Request::new(
        "POST",
        "/mcp",
        Some(wait_call(&id, 60, Some(json!(1))).as_bytes()),
    );
    request.headers = vec![JSON, BOTH]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
        .collect();
    let connection = scene.connect_h2().await;
    let decided = async {
        until_waiting(&scene, 1).await;
        scene.plane().reject(&id, "not today").await;
    };
    let (answer, ()) = tokio::join!(connection.send(&request), decided);
    let all = messages(&answer);
    let told = told(all.last().expect("a result"));
    assert_eq!(told["status"], "REJECTED");
    assert_eq!(told["rejection_reason"], "not today");
    scene.finish(0).await;
}

async fn a_client_of_http_2_that_takes_little_at_a_time_gets_the_whole_answer(host: Host) {
    let [id, other] = [1, 2].map(numbered::id);
    let scene = Scene::lying(host).serving_tools().start().await;
    let lies = scene.lies();
    let pending = Reply::Made(|call| Reply::read(&path_id(call), "PENDING", "billing-api"));
    lies.on(Kind::Other, pending);
    lies.on(
        Kind::List,
        Reply::list(&[(&id, "PENDING"), (&other, "PENDING")]),
    );
    let socket = TcpStream::connect(scene.address()).await.expect("a socket");
    let mut client = h2::client::Builder::new();
    let client = client
        .initial_window_size(300)
        .handshake::<_, Bytes>(socket);
    let (mut client, connection) = client.await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://{}/mcp", scene.address()))
        .header(JSON.0, JSON.1)
        .header(BOTH.0, BOTH.1);
    let request = request.body(()).expect("a request");
    let (response, mut body) = client.send_request(request, false).expect("sent");
    let call = wait_call(&id, 60, Some(json!(1)));
    body.send_data(call.into(), true).expect("sent");
    let head = wait::within("the head", response).await.expect("a head");
    let mut body = head.into_body();
    until_waiting(&scene, 1).await;

    lies.on(
        Kind::List,
        Reply::list(&[(&id, "REJECTED"), (&other, "PENDING")]),
    );

    // The answer is longer than the client takes at once, and its end waits in the host while the host has more to pace: until the
    // first progress of another wait has come, at least.
    until_waiting(&scene, 0).await;
    let mut meanwhile = streamed(&scene, &wait_call(&other, 60, Some(json!(2)))).await;
    next_events(&mut meanwhile).await;
    let mut events = Vec::new();
    while let Some(piece) = wait::within("the rest", body.data()).await {
        let piece = piece.expect("a stream that goes on");
        let taken = body.flow_control().release_capacity(piece.len());
        taken.expect("what was received");
        events.extend(piece);
    }
    let text = String::from_utf8(events).expect("text");
    assert!(
        text.contains("REJECTED") && text.ends_with("}}}\n\n"),
        "{text}"
    );
    drop(meanwhile);
    until_waiting(&scene, 0).await;
    scene.finish(0).await;
}

/// Begins a wait whose answer is read as it comes.
async fn streamed(scene: &Scene, call: &str) -> reqwest::Response {
    let client = reqwest::Client::builder().no_proxy();
    let client = client.build().expect("a client");
    let call = client
        .post(format!("http://{}/mcp", scene.address()))
        .header(JSON.0, JSON.1)
        .header(BOTH.0, BOTH.1)
        .body(call.to_owned());
    let response = call.send().await.expect("an answer");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response
}

/// What comes next of an answer, up to the end of an event.
async fn next_events(response: &mut reqwest::Response) -> Vec<u8> {
    let mut events = Vec::new();
    while !events.ends_with(b"\n\n") {
        let chunk = wait::within("an event", response.chunk()).await;
        events.extend(chunk.expect("a stream that goes on").expect("more to come"));
    }
    events
}

async fn a_connection_goes_on_after_a_wait_with_progress(host: Host) {
    let scene = tools(host).await;
    let id = scene.plane().file(b"POST /payments/1").await;
    scene.plane().reject(&id, "no").await;
    let mut connection = scene.connect().await;
    let wait = wire::request(&scene, &wait_call(&id, 60, Some(json!(1))));
    let list = wire::request(&scene, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    for _ in 0..5 {
        let answer = connection.send(&wait).await;
        assert_eq!(told(&messages(&answer)[0])["status"], "REJECTED");
        let answer = connection.send(&list).await;
        let tools = &messages(&answer)[0]["result"]["tools"];
        assert_eq!(tools.as_array().map(Vec::len), Some(6));
    }
    scene.finish(0).await;
}

async fn a_client_that_leaves_ends_its_wait(host: Host) {
    let id = numbered::id(1);
    let scene = undecided(host, &id).await;
    let one = begin(&scene, &wait_call(&id, 300, None)).await;
    let other = begin(&scene, &wait_call(&id, 300, Some(json!(1)))).await;
    until_waiting(&scene, 2).await;

    drop((one, other));

    until_waiting(&scene, 0).await;
    scene.idle().await;
    scene.finish(0).await;
}

async fn a_notice_that_gives_a_wait_up_ends_it_whichever_worker_gets_it(host: Host) {
    let id = numbered::id(1);
    let scene = Scene::lying(host).serving_tools().workers(2).start().await;
    stands(&scene, &id, "PENDING");
    let label = opened(&scene).await;
    let other_label = opened(&scene).await;
    assert_ne!(label, other_label);
    let notice = |request: Value| {
        let params = json!({"requestId": request, "reason": "no longer needed"});
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string()
    };
    for token in [None, Some(json!("t"))] {
        let call = wait_call(&id, 300, token);
        let mut waiting = Vec::new();
        // Which worker takes a connection is the host's choice.
        for _ in 0..6 {
            let mut connection = scene.connect().await;
            connection.write(&labelled(&scene, &label, &call)).await;
            waiting.push(connection);
        }
        until_waiting(&scene, 6).await;
        for (label, request) in [
            (&label, json!(2)),
            (&label, json!("1")),
            (&other_label, json!(1)),
        ] {
            let request = labelled(&scene, label, &notice(request));
            assert_eq!(scene.send(&request).await.status, 202);
        }
        assert_eq!(post(&scene, &notice(json!(1))).await.status, 202);
        until_waiting(&scene, 6).await;

        let given_up = labelled(&scene, &label, &notice(json!(1)));
        assert_eq!(scene.send(&given_up).await.status, 202);

        for mut connection in waiting {
            let answer = connection.answer("a wait").await;
            let all = messages(&answer);
            let told = told(all.last().expect("a result"));
            assert_eq!(told["timed_out"], true);
            assert!(told["waited_seconds"].as_u64().expect("a number") < 300);
        }
        until_waiting(&scene, 0).await;
    }
    scene.finish(0).await;
}

/// Opens as a client of the earlier era, and gives the label that it gets.
async fn opened(scene: &Scene) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let answer = post(scene, &initialize.to_string()).await;
    let label = answer.header("mcp-session-id").expect("a label");
    assert!(label.bytes().all(|byte| byte.is_ascii_graphic()), "{label}");
    label
}

fn labelled(scene: &Scene, label: &str, body: &str) -> Vec<u8> {
    let host = scene.address().to_string();
    let headers = [JSON, BOTH, ("mcp-session-id", label)];
    http1::request_to(&host, "POST", "/mcp", &headers, Some(body.as_bytes()))
}

async fn fifty_waits_share_each_read_of_the_list(host: Host) {
    let id = numbered::id(1);
    let scene = undecided(host, &id).await;
    let mut waiting = Vec::new();
    for number in 0..50 {
        let token = (number % 2 == 0).then(|| json!(number));
        waiting.push(begin(&scene, &wait_call(&id, 60, token)).await);
    }
    until_waiting(&scene, 50).await;
    scene.lies().until_asked(Kind::List, 3).await;

    stands(&scene, &id, "EXPIRED");

    for mut connection in waiting {
        let answer = connection.answer("a wait").await;
        let all = messages(&answer);
        assert_eq!(told(all.last().expect("a result"))["status"], "EXPIRED");
    }
    // Each was read once when it came; the rest the list has told.
    assert_eq!(scene.lies().count(Kind::Other), 50);
    assert_eq!(scene.lies().count(Kind::Claim), 0);
    scene.finish(0).await;
}

async fn hundreds_of_streams_are_told_of_their_decision(host: Host) {
    let id = numbered::id(1);
    let scene = undecided(host, &id).await;
    let mut waiting = Vec::new();
    for number in 0..400 {
        waiting.push(begin(&scene, &wait_call(&id, 120, Some(json!(number)))).await);
    }
    until_waiting(&scene, 400).await;

    stands(&scene, &id, "REVOKED");

    for mut connection in waiting {
        let answer = connection.answer("a wait").await;
        let all = messages(&answer);
        assert_eq!(told(all.last().expect("a result"))["status"], "REVOKED");
    }
    until_waiting(&scene, 0).await;
    scene.finish(0).await;
}

async fn a_plane_that_fails_ends_the_waits_without_a_word_about_it(host: Host) {
    let id = numbered::id(1);
    let scene = undecided(host, &id).await;
    let mut one = begin(&scene, &wait_call(&id, 300, None)).await;
    let mut other = begin(&scene, &wait_call(&id, 300, Some(json!(1)))).await;
    until_waiting(&scene, 2).await;

    let words = json!({"message": "the database of the plane is down"});
    scene.lies().on(Kind::List, Reply::json(500, &words));

    for connection in [&mut one, &mut other] {
        let answer = connection.answer("a wait").await;
        let all = messages(&answer);
        let text = complaint(all.last().expect("a result"));
        assert!(text.contains("could not report"), "{text}");
        assert!(!answer.text().contains("database"), "{answer}");
    }
    scene.lies().on(Kind::Other, Reply::json(500, &words));
    let answer = post(&scene, &tool_call("review_status", json!({"id": id}), None)).await;
    assert!(complaint(&messages(&answer)[0]).contains("could not report"));
    scene
        .lies()
        .on(Kind::Other, Reply::json(404, &json!({"message": "no"})));
    let answer = post(&scene, &tool_call("review_status", json!({"id": id}), None)).await;
    assert!(complaint(&messages(&answer)[0]).contains("was not found on this sidecar"));
    scene.lies().on(
        Kind::Other,
        Reply::typed(404, "text/plain", "404 page not found"),
    );
    let answer = post(&scene, &wait_call(&id, 60, Some(json!(1)))).await;
    let all = messages(&answer);
    assert!(complaint(all.last().expect("a result")).contains("older than this sidecar"));
    let answer = post(&scene, &tool_call("approval_list", json!({}), None)).await;
    assert!(complaint(&messages(&answer)[0]).contains("could not list"));
    scene.finish(0).await;
}

async fn every_status_says_what_to_do_next_in_either_family(host: Host) {
    let id = numbered::id(1);
    let scene = undecided(host, &id).await;
    for (status, next) in [
        ("PENDING", "wait"),
        ("APPROVED", "resend_identical_statement"),
        ("PROCESSING", "wait"),
        ("REJECTED", "stop"),
        ("REVOKED", "stop"),
        ("EXECUTED", "stop"),
        ("EXPIRED", "stop"),
        ("SOMETHING_NEW", "stop"),
    ] {
        stands(&scene, &id, status);
        for family in ["approval", "review"] {
            let call = tool_call(&format!("{family}_status"), json!({"id": id}), None);
            let told = told(&messages(&post(&scene, &call).await)[0]);

            assert_eq!(
                (&told["status"], &told["next"]),
                (&json!(status), &json!(next))
            );
            assert_eq!(told.get("decided_at"), None);
            let words = told["instruction"].as_str().expect("words");
            if next == "wait" {
                assert!(words.contains(&format!("{family}_wait")), "{words}");
            }
        }
    }
    scene.finish(0).await;
}

async fn the_newest_approvals_are_listed_whichever_listener_filed_them(host: Host) {
    let scene = tools(host).await;
    let first = scene.plane().file(b"POST /payments/1").await;
    let second = scene.plane().file(b"POST /payments/2").await;
    scene.plane().approve(&first).await;
    for (arguments, expected) in [
        (json!({}), vec![&second, &first]),
        (json!({"status": "approved"}), vec![&first]),
        (json!({"limit": 1}), vec![&second]),
        (json!({"status": "REVOKED"}), vec![]),
        (json!({"limit": -1}), vec![&second, &first]),
        (json!({"limit": 500}), vec![&second, &first]),
    ] {
        let answer = post(&scene, &tool_call("approval_list", arguments.clone(), None)).await;

        let told = told(&messages(&answer)[0]);
        let listed = told["reviews"].as_array().expect("a list").iter();
        let ids: Vec<&Value> = listed.map(|review| &review["id"]).collect();
        assert_eq!(ids, expected, "{arguments}");
    }
    scene.finish(0).await;
}

async fn with_no_room_for_streams_a_wait_is_one_answer(host: Host) {
    let mut tools = policy::tools();
    tools["mcp"]["max_streams"] = 0.into();
    let scene = Scene::real(host)
        .serving_tools()
        .policy(tools)
        .start()
        .await;
    let id = scene.plane().file(b"POST /payments/1").await;

    let answer = post(&scene, &wait_call(&id, 2, Some(json!(1)))).await;

    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("application/json")
    );
    assert_eq!(told(&messages(&answer)[0])["timed_out"], true);
    scene.finish(0).await;
}
