//! The demo ledger behind the gate: a real gRPC server, and real clients.

use std::net::SocketAddr;

use host_sim_ledger::proto::ledger_client::LedgerClient;
use host_sim_ledger::proto::{Currency, PostRequest};
use host_sim_ledger::tonic::metadata::MetadataMap;
use host_sim_ledger::tonic::transport::Channel;
use host_sim_ledger::tonic::{Code, Request, Status};
use host_sim_ledger::{Ledger, Message, Method};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::h2::H2Request;
use crate::policy::{self, APPROVAL_RULE};
use crate::scene::{Scene, SceneBuilder};
use crate::wait;

/// A scene with the ledger in the place of its upstream.
pub struct LedgerScene {
    /// All but the upstream, which sees nothing.
    pub scene: Scene,
    /// What the ledger got, and how it is scripted.
    pub ledger: Ledger,
}

impl LedgerScene {
    /// Starts the ledger and the scene in front of it.
    pub async fn start(scene: SceneBuilder) -> LedgerScene {
        let ledger = Ledger::new();
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        let serving = ledger.clone();
        tokio::spawn(async move { serving.serve(listener, std::future::pending()).await });
        let scene = scene.edit(move |document| lead_to(document, address));
        LedgerScene {
            scene: scene.start().await,
            ledger,
        }
    }

    /// A client on a connection of its own.
    pub async fn client(&self) -> LedgerClient<Channel> {
        let address = format!("http://{}", self.scene.address());
        let client = LedgerClient::connect(address).await;
        client.expect("the gate's listener")
    }

    /// A posting whose memo holds the scene's marker.
    pub fn posting(&self, amount_minor: i64) -> PostRequest {
        PostRequest {
            account: "demo/cash".to_owned(),
            amount_minor,
            currency: Currency::Eur.into(),
            memo: self.scene.marker.clone(),
            ..PostRequest::default()
        }
    }

    /// The amounts of the postings that reached a method of the ledger, in order.
    pub fn amounts(&self, method: Method) -> Vec<i64> {
        let calls = self.ledger.calls_of(method);
        let messages = calls.iter().flat_map(|call| &call.messages);
        messages
            .map(|message| {
                let Message::Post(posting) = message else {
                    panic!("another message: {message:?}")
                };
                posting.amount_minor
            })
            .collect()
    }

    /// Asserts that a call was refused with the code and metadata of a denial about an approval that stands so, and says nothing
    /// that it must not. Gives the id.
    pub fn refused(&self, status: &Status, stands: &str, reason: &str) -> String {
        self.is_discreet(status);
        assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
        let metadata = status.metadata();
        let id = text(metadata, "x-hoop-approval-id").expect("an id");
        let expected = format!("statement held for human approval: {reason} (approval {id})");
        assert_eq!(status.message(), expected);
        for (name, value) in [
            ("x-hoop-denied", "review"),
            ("x-hoop-approval-status", stands),
            ("x-hoop-review-id", &id),
            ("x-hoop-review-status", stands),
        ] {
            assert_eq!(text(metadata, name).as_deref(), Some(value), "{status:?}");
        }
        id
    }

    /// The approval that waits once `count` messages have been filed.
    pub async fn next_pending(&self, count: usize) -> String {
        wait::until(&format!("{count} messages are filed"), async || {
            let rows = self.scene.plane().rows().await;
            let open = |row: &&Value| row["status"] == "PENDING";
            let id = rows.iter().find(open)?["id"].as_str()?.to_owned();
            (rows.len() == count).then_some(id)
        })
        .await
    }

    /// [`LedgerScene::refused`] for a call that waits in return mode.
    pub fn pending(&self, status: &Status) -> String {
        let reason = "waiting for approval; resend the identical statement once it is approved";
        let id = self.refused(status, "PENDING", reason);
        assert_eq!(text(status.metadata(), "retry-after").as_deref(), Some("5"));
        id
    }

    /// Asserts a refusal that is about no approval.
    pub fn refused_by_policy(&self, status: &Status, words: &str) {
        self.is_discreet(status);
        assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
        assert!(status.message().contains(words), "{status:?}");
        let denied = text(status.metadata(), "x-hoop-denied");
        assert_eq!(denied.as_deref(), Some("policy"), "{status:?}");
        assert_eq!(text(status.metadata(), "x-hoop-approval-id"), None);
    }

    fn is_discreet(&self, status: &Status) {
        self.scene
            .assert_discreet("a status", &format!("{status:?}"));
        let metadata = status.metadata();
        assert!(
            metadata
                .get("content-type")
                .is_none_or(|kind| kind == "application/grpc")
        );
    }

    /// The statement of an approval, as a person is shown it.
    pub async fn statement(&self, id: &str) -> String {
        let dossier = self.scene.plane().dossier(id).await;
        let statement = dossier["statement"].as_str();
        statement.map_or_else(|| panic!("no text: {dossier}"), str::to_owned)
    }
}

/// A policy that holds these methods of the ledger.
pub fn holding(methods: &[&str], mode: &str) -> Value {
    let methods: Vec<String> = methods
        .iter()
        .map(|method| format!("ledger.v1.Ledger/{method}"))
        .collect();
    let mut policy = policy::with_rules(json!([{
        "name": "ledger",
        "match": {"grpc": methods},
        "action": "require_approval",
        "approval_rule": APPROVAL_RULE,
    }]));
    policy["approval_mode"] = mode.into();
    policy["poll_interval_ms"] = 100.into();
    policy
}

/// The same, and the gate knows the ledger's messages and the kinds of its methods.
pub fn holding_with_descriptors(methods: &[&str], mode: &str) -> Value {
    use base64::Engine;
    let descriptors =
        base64::engine::general_purpose::STANDARD.encode(host_sim_ledger::DESCRIPTORS);
    let mut policy = holding(methods, mode);
    policy["grpc"] = json!({ "descriptors": descriptors });
    policy
}

/// `message` with metadata.
pub fn with_metadata<T>(message: T, metadata: &[(&'static str, &'static str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in metadata {
        let value = value.parse().expect("metadata in ASCII");
        request.metadata_mut().append(*name, value);
    }
    request
}

/// A message as it travels, behind its flag and its length.
pub fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a small message");
    let mut bytes = vec![flag];
    bytes.extend(length.to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// A call of a method by its bytes, one DATA frame each.
pub fn raw(method: &str, frames: Vec<Vec<u8>>, headers: &[(&str, &str)]) -> H2Request {
    let target = format!("/ledger.v1.Ledger/{method}");
    let mut call = H2Request::new("POST", &target, None);
    let own = [("te", "trailers"), ("content-type", "application/grpc")];
    for (name, value) in own.iter().chain(headers) {
        let value = value.as_bytes().to_vec();
        call.headers.push(((*name).to_owned(), value));
    }
    call.frames = frames;
    call
}

fn text(metadata: &MetadataMap, name: &str) -> Option<String> {
    let mut all = metadata.get_all(name).iter();
    let value = all.next()?.to_str().expect("a text").to_owned();
    assert!(all.next().is_none(), "{name} stands twice");
    Some(value)
}

fn lead_to(document: &mut Value, address: SocketAddr) {
    let clusters = document["static_resources"]["clusters"].as_array_mut();
    for cluster in clusters.expect("the clusters of envoy/envoy.yaml") {
        if cluster["name"] == "billing_upstream" {
            let options = "/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/explicit_http_config";
            *cluster.pointer_mut(options).expect("its protocol") =
                json!({"http2_protocol_options": {}});
            let port = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";
            *cluster.pointer_mut(port).expect("its endpoint") = address.port().into();
        }
    }
}
