//! The line for each way to fail, against a real plane and against none.

use host_sim_plane::{Plane, PlaneConfig};
use tokio::net::TcpListener;

use super::*;
use crate::commands::TestDir;
use crate::commands::approvals::review::Review;

/// `ECONNREFUSED`.
const CONNECTION_REFUSED: i32 = if cfg!(target_os = "macos") { 61 } else { 111 };
const ID: &str = "7d1c0b8e-5a3f-4c7e-9b1d-2f6a8c4e0d35";

async fn plane(data_dir: &TestDir) -> (Plane, String) {
    let yaml = include_str!("../../../../demo/plane.yaml");
    let configuration = PlaneConfig::parse(yaml, "plane.yaml").expect("the demo's configuration");
    let plane = Plane::open(data_dir.path(), configuration)
        .await
        .expect("a plane");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("its address"));
    let serving = plane.clone();
    tokio::spawn(async move { serving.serve(listener, std::future::pending()).await });
    (plane, base)
}

/// Files one approval request as a sidecar does.
async fn filed(plane: &Plane, base: &str) -> String {
    // "POST /payments/1" in base64.
    let filing = json!({ "listener_name": "billing-api", "approval_rule": "billing-approvers", "payload": "UE9TVCAvcGF5bWVudHMvMQ==" });
    let request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client")
        .post(format!("{base}/api/sidecars/reviews"));
    let request = request
        .header("hoop-sidecar-token", plane.sidecar_token().expose())
        .json(&filing);
    let answer: Value = request
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    answer
        .pointer("/review/id")
        .and_then(Value::as_str)
        .expect("an id")
        .to_owned()
}

/// What each hint of these tests has to repeat, since neither stands at its default.
fn flags(base: &str, data_dir: &TestDir) -> String {
    format!(" --plane {base} --data-dir {}", data_dir.path().display())
}

fn line(outcome: Result<Value, Failure>) -> String {
    outcome.expect_err("refused").to_string()
}

#[tokio::test]
async fn a_decision_is_taken_once_and_a_second_one_learns_what_stands() {
    let data_dir = TestDir::new("decide");
    let (plane, base) = plane(&data_dir).await;
    let id = filed(&plane, &base).await;
    let client = Client::new(&base, data_dir.path()).expect("a client");
    let listed = client.list(Some("PENDING"), 10).await.expect("a list");
    assert_eq!(listed.pointer("/0/id"), Some(&json!(id)));
    let reject = Decision::Reject {
        reason: "too much".to_owned(),
    };
    let decided = client
        .decide(&id.to_uppercase(), &reject)
        .await
        .expect("decided");
    assert_eq!(
        (&decided["status"], &decided["rejection_reason"]),
        (&json!("REJECTED"), &json!("too much"))
    );
    assert_eq!(
        line(client.decide(&id, &Decision::Approve).await),
        format!(
            "{id}: the approval request is already decided: it is REJECTED; \
             hint: `host-sim approvals{} show {id}` shows what was decided and when",
            flags(&base, &data_dir)
        )
    );
}

#[tokio::test]
async fn err_unknown_id() {
    let data_dir = TestDir::new("unknown");
    let (_plane, base) = plane(&data_dir).await;
    let client = Client::new(&base, data_dir.path()).expect("a client");
    let expected = format!(
        "no approval request has the id {ID}; hint: `host-sim approvals{} list` shows the ids",
        flags(&base, &data_dir)
    );
    assert_eq!(line(client.show(ID).await), expected);
    assert_eq!(line(client.decide(ID, &Decision::Revoke).await), expected);
}

#[tokio::test]
async fn what_was_not_approved_cannot_be_revoked_and_the_hint_names_what_can_be_done() {
    let data_dir = TestDir::new("revoke");
    let (plane, base) = plane(&data_dir).await;
    let id = filed(&plane, &base).await;
    let client = Client::new(&base, data_dir.path()).expect("a client");
    let flags = flags(&base, &data_dir);
    assert_eq!(
        line(client.decide(&id, &Decision::Revoke).await),
        format!(
            "{id}: only an approval can be revoked, and this request is PENDING; \
             hint: refuse it with `host-sim approvals{flags} reject {id} --reason TEXT`"
        )
    );
    for (decision, expected) in [
        (Decision::Approve, "APPROVED"),
        (Decision::Revoke, "REVOKED"),
    ] {
        let decided = client.decide(&id, &decision).await.expect("decided");
        assert_eq!(decided["status"], json!(expected));
    }
    assert_eq!(
        line(client.decide(&id, &Decision::Revoke).await),
        format!(
            "{id}: only an unused approval can be revoked, and this request is REVOKED; \
             hint: `host-sim approvals{flags} show {id}` shows what was decided and when"
        )
    );
}

#[tokio::test]
async fn err_somebody_else_answers() {
    let data_dir = TestDir::new("no-form");
    let (_plane, base) = plane(&data_dir).await;
    let hint = "hint: give the plane's address with `--plane URL`, not Envoy's; if it is the plane's, run a plane of this \
                program's version";
    let client = Client::new(&base, data_dir.path()).expect("a client");
    let Err(failure) = client.read::<Vec<Review>>(&json!({ "method": "GET" })) else {
        panic!("not refused")
    };
    let message = failure.to_string();
    assert!(
        message.starts_with(&format!("{base}/ does not answer as a plane: ")),
        "{message}"
    );
    assert!(message.ends_with(hint), "{message}");
    let elsewhere = Client::new(&format!("{base}/elsewhere"), data_dir.path()).expect("a client");
    assert_eq!(
        line(elsewhere.list(None, 10).await),
        format!(
            "{base}/elsewhere does not answer as a plane: it answered 404 without a message; {hint}"
        )
    );
}

#[tokio::test]
async fn err_no_id() {
    let data_dir = TestDir::new("no-id");
    let (_plane, base) = plane(&data_dir).await;
    let client = Client::new(&base, data_dir.path()).expect("a client");
    for id in [
        "",
        "..",
        "a/b",
        "7d1c0b8e5a3f4c7e9b1d2f6a8c4e0d35",
        "7d1c0b8e-5a3f-4c7e-9b1d-2f6a8c4e0d3g",
    ] {
        assert!(
            line(client.show(id).await).starts_with(&format!("`{id}` is no approval id; hint: ")),
            "{id}"
        );
    }
}

#[tokio::test]
async fn err_token_of_another_plane() {
    let (data_dir, other) = (TestDir::new("token"), TestDir::new("other-token"));
    let (_plane, base) = plane(&data_dir).await;
    let (_other_plane, _) = plane(&other).await;
    let client = Client::new(&base, other.path()).expect("a client");
    let message = line(client.list(None, 10).await);
    assert!(
        message.starts_with(&format!(
            "the plane at {base}/ does not accept this approver token; hint: "
        )),
        "{message}"
    );
}

#[tokio::test]
async fn err_no_plane() {
    let data_dir = TestDir::new("no-plane");
    let (_plane, _) = plane(&data_dir).await;
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port")
        .local_addr()
        .expect("its address");
    let client = Client::new(&format!("http://{free}"), data_dir.path()).expect("a client");
    assert_eq!(
        line(client.list(None, 10).await),
        format!(
            "cannot reach the plane at http://{free}/: {}; \
             hint: start it with `host-sim up`, or name another with `--plane URL`",
            std::io::Error::from_raw_os_error(CONNECTION_REFUSED)
        )
    );
}

#[test]
fn err_no_token() {
    let Err(failure) = Client::new("http://127.0.0.1:1", Path::new("/nowhere")) else {
        panic!("not refused")
    };
    let message = failure.to_string();
    assert!(
        message.starts_with("no approver token: /nowhere/"),
        "{message}"
    );
    assert!(
        message.ends_with(
            "hint: start `make run` (or `host-sim up`, `host-sim plane`) first, and start it again if its data directory \
             was deleted; name a directory elsewhere with `--data-dir`"
        ),
        "{message}"
    );
}

#[test]
fn err_no_url() {
    for plane in [
        "",
        "127.0.0.1:8009",
        "https://h",
        "http://u:p@h",
        "http://h/?q=1",
        "mailto:a@b",
    ] {
        let message = base_url(plane).expect_err("refused").to_string();
        assert!(
            message.ends_with("hint: give the plane's base URL, such as http://127.0.0.1:8009"),
            "{message}"
        );
    }
    for plane in [
        "http://127.0.0.1:8009",
        "http://[::1]:8009/",
        "http://h/prefix/",
    ] {
        base_url(plane).expect("accepted");
    }
}
