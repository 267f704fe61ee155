//! What becomes of the stream of a request that a rule on its body looks into: it goes on unchanged when nothing stands against
//! it, is refused when it is no request with a body, and is not delayed where the listener only observes.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::{Body, Message, request};
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::{Scene, SceneBuilder};
use hoop_tests::wait;
use hoop_tests::way::{Way, chunked};
use serde_json::{Value, json};

on_both_hosts! {
    what_no_rule_stops_goes_on_unchanged_in_every_shape_and_size,
    a_connection_goes_on_after_bodies_that_passed_and_that_did_not,
    a_request_is_kept_back_until_its_body_is_whole,
    a_body_that_stops_halfway_is_neither_judged_nor_passed_on,
    an_upgrade_is_refused_where_a_rule_on_the_body_would_decide,
    a_tunnel_is_refused_where_a_rule_on_the_body_would_decide,
    an_observing_listener_lets_bodies_pass_at_once_and_counts_what_rules_would_do,
    an_observing_listener_changes_no_body_however_it_is_cut,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";

/// Transfers above 1000 need a person.
fn large_transfers() -> Value {
    let over = json!([{"pointer": "/amount", "greater_than": 1000}]);
    let matched = json!({"paths": ["/transfers/**"], "json": over});
    let holds =
        json!({"match": matched, "action": "require_approval", "approval_rule": APPROVAL_RULE});
    policy::with_rules(json!([holds]))
}

/// Trailers pass from HTTP/1.1 clients and to the HTTP/1.1 upstream.
fn with_trailers(scene: SceneBuilder) -> SceneBuilder {
    scene.edit(|document| {
        document.pointer_mut(MANAGER).expect("the manager")["http_protocol_options"] =
            json!({"enable_trailers": true});
        let clusters = document.pointer_mut("/static_resources/clusters");
        let clusters = clusters.and_then(Value::as_array_mut).expect("clusters");
        for cluster in clusters {
            let options = cluster
                .pointer_mut("/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
            if let Some(options) = options {
                options["explicit_http_config"] =
                    json!({"http_protocol_options": {"enable_trailers": true}});
            }
        }
    })
}

/// JSON of so many bytes with this amount at its end.
fn transfer(amount: u32, size: usize) -> Vec<u8> {
    let end = format!("\",\"amount\":{amount}}}");
    let mut body = b"{\"memo\":\"".to_vec();
    let letters = (0..size.saturating_sub(body.len() + end.len()))
        .map(|index| b'a' + u8::try_from(index % 23).unwrap_or(0));
    body.extend(letters.collect::<Vec<_>>());
    body.extend_from_slice(end.as_bytes());
    body
}

async fn what_no_rule_stops_goes_on_unchanged_in_every_shape_and_size(host: Host) {
    let mut policy = large_transfers();
    policy["max_body_bytes"] = 1_000_000.into();
    let scene = with_trailers(Scene::lying(host).policy(policy))
        .start()
        .await;
    let headers = [
        ("x-first", "1"),
        ("content-type", "application/json"),
        ("x-last", "2"),
    ];
    let sizes = [40, 65_536, 900_000];
    let ways = |size: usize| {
        let piece = size.div_ceil(60);
        [
            Way::Length,
            Way::Chunks(piece),
            Way::ChunksAndTrailers(piece),
            Way::Frames(piece),
            Way::FramesAndTrailers(piece),
        ]
    };
    for size in sizes {
        let body = transfer(1000, size);
        for way in ways(size) {
            answer::passed(
                &way.post_with(&scene, "/transfers/7?a=%20b", &headers, &body)
                    .await,
            );
            let run = scene.upstream.last();
            assert!(run.body == body, "{way:?} of {size} bytes");
            assert_eq!(run.start, b"POST /transfers/7?a=%20b HTTP/1.1");
            for (name, value) in headers {
                assert_eq!(run.header(name).as_deref(), Some(value), "{way:?}");
            }
            let (length, trailers) = match way {
                Way::Length => (Some(size.to_string()), 0),
                Way::ChunksAndTrailers(_) | Way::FramesAndTrailers(_) => (None, 1),
                Way::SingleBytes | Way::Chunks(_) | Way::Frames(_) => (None, 0),
            };
            assert_eq!(run.header("content-length"), length, "{way:?}");
            assert_eq!(run.trailers.len(), trailers, "{way:?} {:?}", run.trailers);
        }
    }
    // The same in large amounts, filed and released.
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let body = transfer(1001, 900_000);
    for way in ways(900_000) {
        answer::passed(&way.post(&scene, "/transfers/7", &body).await);
        assert!(scene.upstream.last().body == body, "{way:?}");
    }
    let statement = [b"POST /transfers/7\n\n".as_slice(), &body].concat();
    assert!(scene.lies().filed().iter().all(|filed| *filed == statement));
    assert_eq!(scene.lies().calls().len(), 5);
    scene.finish(5 * sizes.len() + 5).await;
}

async fn a_connection_goes_on_after_bodies_that_passed_and_that_did_not(host: Host) {
    let scene = Scene::lying(host).policy(large_transfers()).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let post = |body: &[u8]| request("POST", "/transfers/1", &[], Some(body));
    let small = post(br#"{"amount":1}"#);
    let large = post(br#"{"amount":5000}"#);
    let doubtful = post(br#"{"amount":1,"amount":2}"#);
    let pieces = chunked(
        "POST",
        "/transfers/1",
        &[],
        br#"{"amount":2}"#,
        3,
        &[("x-t", "1")],
    );
    let other = request("GET", "/elsewhere", &[], None);

    let mut connection = scene.connect().await;
    for _ in 0..2 {
        answer::passed(&connection.send(&small).await);
        answer::pending(&connection.send(&large).await);
        answer::passed(&connection.send(&pieces).await);
        answer::passed(&connection.send(&other).await);
    }
    // In one packet: each request has its own fate. Envoy closes a connection after any 400.
    let all = [&small, &large, &pieces, &other, &small, &doubtful, &small];
    connection.write(&all.map(Vec::as_slice).concat()).await;
    answer::passed(&connection.answer("a small amount").await);
    answer::pending(&connection.answer("a large amount").await);
    answer::passed(&connection.answer("a small amount in chunks").await);
    answer::passed(&connection.answer("another path").await);
    answer::passed(&connection.answer("a small amount again").await);
    answer::policy_with_status(&connection.answer("a doubtful body").await, 400);
    assert!(connection.at_end().await);

    let bodies: Vec<String> = scene
        .upstream
        .requests()
        .iter()
        .map(Message::text)
        .collect();
    let small = r#"{"amount":1}"#;
    let pieces = r#"{"amount":2}"#;
    let round = [small, pieces, ""];
    assert_eq!(bodies, [&round[..], &round, &round, &[small]].concat());
    assert_eq!(scene.lies().filed().len(), 3);
    scene.finish(10).await;
}

async fn a_request_is_kept_back_until_its_body_is_whole(host: Host) {
    let scene = Scene::lying(host).policy(large_transfers()).start().await;
    let call = request("POST", "/transfers/1", &[], Some(&transfer(1, 5000)));
    let mut connection = scene.connect().await;
    connection.write(&call[..call.len() - 1]).await;
    wait::until("the gate has begun to read", async || {
        let active = "http.billing_api.downstream_rq_active";
        (scene.proxy.stat(active).await == 1).then_some(())
    })
    .await;
    // Another request goes by it.
    answer::passed(&scene.get("/elsewhere").await);
    assert_eq!(scene.upstream.request_count(), 1);
    assert_eq!(scene.upstream.last().start, b"GET /elsewhere HTTP/1.1");
    connection.write(&call[call.len() - 1..]).await;
    answer::passed(&connection.answer("the last byte").await);
    assert_eq!(scene.upstream.last().body, transfer(1, 5000));
    scene.finish(2).await;
}

async fn a_body_that_stops_halfway_is_neither_judged_nor_passed_on(host: Host) {
    let scene = Scene::lying(host).policy(large_transfers()).start().await;
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    // What is there is JSON with a small amount; what was announced is more.
    let with_length = request("POST", "/transfers/1", &[("content-length", "100")], None);
    let with_length = [with_length, br#"{"amount":1}"#.to_vec()].concat();
    let in_chunks = chunked("POST", "/transfers/1", &[], br#"{"amount":1}"#, 100, &[]);
    let without_end = in_chunks[..in_chunks.len() - b"0\r\n\r\n".len()].to_vec();
    for (round, cut) in [with_length, without_end].iter().enumerate() {
        let mut connection = scene.connect().await;
        connection.write(cut).await;
        let active = "http.billing_api.downstream_rq_active";
        let is = async |count| (scene.proxy.stat(active).await == count).then_some(());
        wait::until("the gate has begun to read", async || is(1).await).await;
        drop(connection);
        wait::until("the gate has given up", async || is(0).await).await;
        let gone = counted(&scene, "requests_abandoned").await;
        assert_eq!(gone, u64::try_from(round).unwrap_or(0) + 1);
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn counted(scene: &Scene, name: &str) -> u64 {
    let name = format!("wasmcustom.hoop_filter_{name}_total");
    scene.proxy.stat(&name).await
}

async fn an_upgrade_is_refused_where_a_rule_on_the_body_would_decide(host: Host) {
    let upgrades = |manager: &mut Value| {
        manager["upgrade_configs"] = json!([{"upgrade_type": "websocket"}]);
    };
    for action in ["allow", "deny", "require_approval"] {
        let mut looks = json!({"match": {"paths": ["/transfers/**"], "json": [{"pointer": "/amount", "at_most": 10}]}, "action": action});
        let behind = json!({"match": {"paths": ["/transfers/**"]}, "action": "deny"});
        if action == "require_approval" {
            looks["approval_rule"] = APPROVAL_RULE.into();
        }
        let scene = Scene::lying(host)
            .policy(policy::with_rules(json!([looks, behind])))
            .edit_manager(upgrades)
            .start()
            .await;
        scene
            .lies()
            .always(Reply::review(200, true, ID, "EXECUTED"));
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
        ];
        let mut connection = scene.connect().await;
        let call = request("GET", "/transfers/1", &headers, None);
        let call = [call, br#"{"amount":1}"#.to_vec()].concat();
        answer::policy_with_status(&connection.send(&call).await, 403);
        assert_eq!(counted(&scene, "refused_upgrade").await, 1, "{action}");
        assert_eq!(scene.lies().calls().len(), 0);
        scene.finish(0).await;
    }
}

async fn a_tunnel_is_refused_where_a_rule_on_the_body_would_decide(host: Host) {
    let connect = |manager: &mut Value| {
        manager["upgrade_configs"] = json!([{"upgrade_type": "CONNECT"}]);
        let routes = manager.pointer_mut("/route_config/virtual_hosts/0/routes");
        let routes = routes.and_then(Value::as_array_mut).expect("routes");
        let tunnel = json!({
            "match": {"connect_matcher": {}},
            "route": {"cluster": "billing_upstream", "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}]},
        });
        routes.insert(0, tunnel);
    };
    let looks = json!({"match": {"json": [{"pointer": "/amount", "greater_than": 1000}]}, "action": "deny"});
    let scene = Scene::lying(host)
        .policy(policy::with_rules(json!([looks])))
        .edit_manager(connect)
        .start()
        .await;
    let call =
        b"CONNECT billing.example:443 HTTP/1.1\r\nhost: billing.example:443\r\n\r\n{\"amount\":1}";
    answer::policy_with_status(&scene.send(call).await, 403);
    assert_eq!(counted(&scene, "refused_upgrade").await, 1);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

/// [`large_transfers`] on a listener that refuses nothing.
fn observing() -> Value {
    let mut policy = large_transfers();
    policy["enforcement"] = "observe".into();
    policy
}

async fn an_observing_listener_lets_bodies_pass_at_once_and_counts_what_rules_would_do(host: Host) {
    let scene = Scene::lying(host).policy(observing()).start().await;
    let body = transfer(1001, 9000);
    let with_length = request("POST", "/transfers/1", &[], Some(&body));
    let in_chunks = chunked("POST", "/transfers/1", &[], &body, 3000, &[]);
    let before_the_end = |call: &[u8]| call.len() - 3500;
    for call in [with_length, in_chunks] {
        let cut = before_the_end(&call);
        let seen = scene.upstream.bytes();
        let mut connection = scene.connect().await;
        connection.write(&call[..cut]).await;
        // What goes on has more headers than what came, and its body is not longer.
        wait::until("the upstream has all that was sent", async || {
            (scene.upstream.bytes() - seen >= cut).then_some(())
        })
        .await;
        connection.write(&call[cut..]).await;
        answer::passed(&connection.answer("the rest").await);
        assert!(scene.upstream.last().body == body);
    }
    assert_eq!(counted(&scene, "observed_holds").await, 2);

    for (body, holds, refusals, passes) in [
        (transfer(1000, 50), 2, 0, 1),
        (b"".to_vec(), 2, 0, 2),
        (b"no JSON".to_vec(), 2, 1, 2),
        (transfer(1, 65_537), 2, 2, 2),
        (transfer(1001, 65_536), 3, 2, 2),
    ] {
        answer::passed(&scene.post("/transfers/1", &body).await);
        assert!(scene.upstream.last().body == body);
        let found = [
            counted(&scene, "observed_holds").await,
            counted(&scene, "observed_refusals").await,
            counted(&scene, "requests_passed").await,
        ];
        assert_eq!(found, [holds, refusals, passes], "{} bytes", body.len());
    }
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(7).await;
}

async fn an_observing_listener_changes_no_body_however_it_is_cut(host: Host) {
    let scene = with_trailers(Scene::lying(host).policy(observing()))
        .start()
        .await;
    let ways = [
        Way::Length,
        Way::SingleBytes,
        Way::Chunks(1),
        Way::ChunksAndTrailers(7),
        Way::Frames(1),
        Way::FramesAndTrailers(7),
    ];
    let body = transfer(1001, 100);
    for (sent, way) in ways.into_iter().enumerate() {
        answer::passed(&way.post(&scene, "/transfers/1", &body).await);
        assert_eq!(scene.upstream.last().body, body, "{way:?}");
        let holds = counted(&scene, "observed_holds").await;
        assert_eq!(holds, u64::try_from(sent).unwrap_or(0) + 1, "{way:?}");
    }
    // A client that waits for nothing but its 100 gets it.
    let length = body.len().to_string();
    let head = [("expect", "100-continue"), ("content-length", &length)];
    let mut connection = scene.connect().await;
    connection
        .write(&request("POST", "/transfers/1", &head, None))
        .await;
    let interim = connection.next("the head", Body::AsResponse).await;
    assert_eq!(interim.expect("an interim answer").status, 100);
    connection.write(&body).await;
    answer::passed(&connection.answer("the body").await);
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(ways.len() + 1).await;
}
