//! Who asks, and what ties the filing to the request: both go along to the plane, and nothing else of what a client sent.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::client::tls::{Authority, Identity};
use hoop_tests::host::Host;
use hoop_tests::http1::{Message, request};
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::on_both_hosts;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use serde_json::{Value, json};

on_both_hosts! {
    the_address_of_the_peer_is_filed_whatever_the_client_claims,
    the_configured_header_names_who_asks,
    a_header_that_names_nobody_or_two_people_leaves_the_address,
    a_long_or_dirty_name_is_cut_and_cleaned,
    who_asks_makes_no_other_approval,
    a_client_certificate_names_who_asks,
    a_certificate_is_not_believed_unless_configured_and_the_header_comes_first,
    trace_context_and_request_id_go_along_with_the_filing,
    what_cannot_be_one_trace_context_stays_behind,
    nothing_else_that_a_client_sent_goes_along,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

fn returning(identity: Value) -> Value {
    policy::with("identity", identity)
}

async fn scene(host: Host, policy: Value) -> Scene {
    let scene = Scene::lying(host).policy(policy).start().await;
    let pending = Reply::review(201, false, ID, "PENDING");
    scene.lies().on(Kind::Filing, pending);
    scene
}

/// Who asked in the newest filing: the whole object, with the address taken out once it was looked at.
fn requester(scene: &Scene) -> Value {
    let filing = newest_filing(scene);
    let filing: Value = serde_json::from_slice(&filing.body).expect("a filing is JSON");
    let mut requester = filing["requester"].clone();
    let fields = requester.as_object_mut().expect("a requester");
    let address = fields.remove("peer_addr");
    let address = address.as_ref().and_then(Value::as_str);
    let address = address.unwrap_or_else(|| panic!("no address in {filing}"));
    let address: std::net::SocketAddr = address.parse().expect("an address with a port");
    assert!(address.ip().is_loopback(), "{address}");
    requester
}

fn newest_filing(scene: &Scene) -> Message {
    let mut filings = scene.lies().calls_of(Kind::Filing);
    filings.pop().expect("a filing")
}

async fn post(scene: &Scene, headers: &[(&str, &str)]) {
    let call = request("POST", "/payments/42", headers, Some(b"x"));
    answer::pending(&scene.send(&call).await);
}

async fn the_address_of_the_peer_is_filed_whatever_the_client_claims(host: Host) {
    let scene = scene(host, policy::shipped()).await;
    let claims = [
        ("x-user", "root"),
        ("x-forwarded-for", "203.0.113.7"),
        ("x-real-ip", "203.0.113.7"),
        ("forwarded", "for=203.0.113.7"),
    ];
    post(&scene, &claims).await;
    assert_eq!(requester(&scene), json!({"method": "peer_address"}));
    let filing = newest_filing(&scene).text();
    assert!(!filing.contains("203.0.113.7") && !filing.contains("root"));
    scene.finish(0).await;
}

async fn the_configured_header_names_who_asks(host: Host) {
    let scene = scene(host, returning(json!({"header": "X-User"}))).await;
    let expected = json!({"subject": "ann@example.com", "method": "identity_header"});
    for (name, value) in [
        ("x-user", "ann@example.com"),
        ("X-USER", "  ann@example.com\t"),
    ] {
        post(&scene, &[(name, value)]).await;
        assert_eq!(requester(&scene), expected);
    }
    let mut over_h2 = H2Request::new("POST", "/payments/42", Some(b"x"));
    over_h2.headers = vec![("x-user".to_owned(), b"ann@example.com".to_vec())];
    answer::pending(&scene.connect_h2().await.send(&over_h2).await);
    assert_eq!(requester(&scene), expected);
    scene.finish(0).await;
}

async fn a_header_that_names_nobody_or_two_people_leaves_the_address(host: Host) {
    let scene = scene(host, returning(json!({"header": "x-user"}))).await;
    let tables: [&[(&str, &str)]; 4] = [
        &[],
        &[("x-user", "")],
        &[("x-user", "ann"), ("X-User", "bob")],
        &[("x-user", "ann"), ("x-user", "ann")],
    ];
    for headers in tables {
        post(&scene, headers).await;
        assert_eq!(
            requester(&scene),
            json!({"method": "peer_address"}),
            "{headers:?}"
        );
    }
    scene.finish(0).await;
}

async fn a_long_or_dirty_name_is_cut_and_cleaned(host: Host) {
    let scene = scene(host, returning(json!({"header": "x-user"}))).await;
    for (sent, filed) in [
        ("ä".repeat(200).into_bytes(), "ä".repeat(127)),
        ("a".repeat(4_000).into_bytes(), "a".repeat(255)),
        ("a\u{202e}b\u{200b}c\u{feff}d".into(), "abcd".to_owned()),
        (b"a\xff\xfeb".to_vec(), "a\u{fffd}\u{fffd}b".to_owned()),
        (b"\"},{\\".to_vec(), "\"},{\\".to_owned()),
    ] {
        let mut call = b"POST /payments/42 HTTP/1.1\r\nhost: billing.example\r\nx-user: ".to_vec();
        call.extend_from_slice(&sent);
        call.extend_from_slice(b"\r\n\r\n");
        answer::pending(&scene.send(&call).await);
        assert_eq!(requester(&scene)["subject"], filed);
    }
    scene.finish(0).await;
}

async fn who_asks_makes_no_other_approval(host: Host) {
    let policy = returning(json!({"header": "x-user"}));
    let scene = Scene::real(host).policy(policy).start().await;
    let send =
        |user: &'static str| request("POST", "/payments/42", &[("x-user", user)], Some(b"x"));
    let first = answer::pending(&scene.send(&send("ann")).await);
    let second = answer::pending(&scene.send(&send("bob")).await);
    assert_eq!(first, second);
    let dossier = scene.plane().dossier(&first).await;
    assert_eq!(dossier["requester"]["subject"], "ann", "{dossier}");
    scene.plane().approve(&first).await;
    answer::passed(&scene.send(&send("bob")).await);
    scene.finish(1).await;
}

/// A gate that wants certificates of the authority's clients.
async fn over_mutual_tls(
    host: Host,
    identity: Value,
    gate: &Identity,
    authority: &Authority,
) -> Scene {
    let socket = gate.transport_socket_for_clients_of(authority);
    let scene = Scene::lying(host)
        .policy(returning(identity))
        .edit(|document| {
            let chain = document.pointer_mut("/static_resources/listeners/0/filter_chains/0");
            chain.expect("the filter chain of envoy/envoy.yaml")["transport_socket"] = socket;
        });
    let scene = scene.start().await;
    let pending = Reply::review(201, false, ID, "PENDING");
    scene.lies().on(Kind::Filing, pending);
    scene
}

async fn a_client_certificate_names_who_asks(host: Host) {
    let (gate, authority) = (Identity::create(), Authority::create());
    let identity = json!({"client_certificate": true});
    let scene = over_mutual_tls(host, identity, &gate, &authority).await;
    let uri = "spiffe://example.com/agents/7";
    let long = format!("spiffe://example.com/{}", "a".repeat(400));
    for (common_name, uri, subject) in [
        ("agent-7", Some(uri), uri.to_owned()),
        ("agent-7", None, "CN=agent-7".to_owned()),
        ("agent-7", Some(long.as_str()), long[..255].to_owned()),
        ("J\u{fc}rgen, x", None, "CN=J\\C3\\BCrgen\\, x".to_owned()),
        ("", None, "CN=".to_owned()),
    ] {
        let client = authority.issue(common_name, uri);
        let connection = gate.http1_as(&client, scene.address(), scene.answers());
        let call = request("POST", "/payments/42", &[], Some(b"x"));
        answer::pending(&connection.await.send(&call).await);
        assert_eq!(
            requester(&scene),
            json!({"subject": subject, "method": "tls_client_certificate"})
        );
    }
    scene.finish(0).await;
}

async fn a_certificate_is_not_believed_unless_configured_and_the_header_comes_first(host: Host) {
    let (gate, authority) = (Identity::create(), Authority::create());
    let client = authority.issue("agent-7", Some("spiffe://example.com/agents/7"));
    for (identity, expected) in [
        (
            json!({"header": "x-absent"}),
            json!({"method": "peer_address"}),
        ),
        (
            json!({"header": "x-user", "client_certificate": true}),
            json!({"subject": "ann", "method": "identity_header"}),
        ),
    ] {
        let scene = over_mutual_tls(host, identity, &gate, &authority).await;
        let connection = gate.http1_as(&client, scene.address(), scene.answers());
        let call = request("POST", "/payments/42", &[("x-user", "ann")], Some(b"x"));
        answer::pending(&connection.await.send(&call).await);
        assert_eq!(requester(&scene), expected);
        scene.finish(0).await;
    }
}

const TRACE: [(&str, &str); 8] = [
    (
        "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ),
    ("tracestate", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
    ("b3", "80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1"),
    ("x-b3-traceid", "80f198ee56343ba864fe8b2a57d3eff7"),
    ("x-b3-spanid", "e457b5a2e4d86bd1"),
    ("x-b3-parentspanid", "05e3ac9a4f6e3b90"),
    ("x-b3-sampled", "1"),
    ("x-b3-flags", "1"),
];

async fn trace_context_and_request_id_go_along_with_the_filing(host: Host) {
    let scene = scene(host, policy::holding()).await;
    let lies = scene.lies();
    lies.on(Kind::List, Reply::list(&[(ID, "APPROVED")]));
    lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));
    let call = request("POST", "/payments/42", &TRACE, Some(b"x"));

    answer::passed(&scene.send(&call).await);

    let (filing, upstream) = (newest_filing(&scene), scene.upstream.last());
    for (name, value) in TRACE {
        assert_eq!(filing.header(name).as_deref(), Some(value), "{name}");
        assert_eq!(upstream.header(name).as_deref(), Some(value), "{name}");
    }
    let id = filing.header("x-request-id").expect("a request id");
    assert_eq!(upstream.header("x-request-id"), Some(id));
    // What the gate asks for all that wait belongs to none of them.
    for kind in [Kind::List, Kind::Claim] {
        for call in lies.calls_of(kind) {
            for (name, _) in TRACE {
                assert_eq!(call.header(name), None, "{name} in {kind:?}");
            }
        }
    }
    scene.finish(1).await;
}

async fn what_cannot_be_one_trace_context_stays_behind(host: Host) {
    let scene = scene(host, policy::shipped()).await;
    let long = "a=".to_owned() + &"x".repeat(600);
    let headers = [
        ("traceparent", TRACE[0].1),
        ("Traceparent", TRACE[0].1),
        ("tracestate", &long),
        ("b3", "ä"),
        ("x-b3-traceid", ""),
    ];
    post(&scene, &headers).await;
    let filing = newest_filing(&scene);
    for (name, _) in headers {
        assert_eq!(filing.header(name), None, "{name}");
    }
    scene.finish(0).await;
}

async fn nothing_else_that_a_client_sent_goes_along(host: Host) {
    let scene = scene(host, returning(json!({"header": "x-user"}))).await;
    let secrets = [
        ("authorization", "Bearer secret-of-the-agent"),
        ("cookie", "session=secret-of-the-agent"),
        ("proxy-authorization", "Basic secret-of-the-agent"),
        ("x-api-key", "secret-of-the-agent"),
        ("x-secret", "secret-of-the-agent"),
        ("hoop-sidecar-token", "secret-of-the-agent"),
        ("hoop-sidecar-identity", "secret-of-the-agent"),
        ("user-agent", "secret-of-the-agent"),
        ("x-b3-other", "secret-of-the-agent"),
        ("baggage", "secret-of-the-agent"),
    ];
    post(&scene, &secrets).await;
    let filing = newest_filing(&scene);
    let seen = String::from_utf8_lossy(&filing.raw).into_owned();
    assert!(!seen.contains("secret-of-the-agent"), "{seen}");
    let tokens: Vec<_> = filing.header_values("hoop-sidecar-token").collect();
    assert_eq!(tokens.len(), 1);
    scene.finish(0).await;
}
