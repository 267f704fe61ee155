//! The gRPC gate as a client library of another family reads it: grpcio, which stands on gRPC's C core.

use std::process::Stdio;

use hoop_tests::binaries;
use hoop_tests::host::Host;
use hoop_tests::ledger::{LedgerScene, holding};
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use host_sim_ledger::Method;
use serde_json::{Value, json};
use tokio::process::Command;

on_both_hosts! {
    it_reads_status_text_and_trailing_metadata_and_runs_once_when_approved,
    it_sends_a_stream_that_runs_once_each_message_is_approved,
    its_own_deadline_does_not_come_before_the_gates_answer,
}

/// What grpcio shows of a call with these messages.
async fn call(
    world: &LedgerScene,
    method: &str,
    kind: &str,
    seconds: &str,
    messages: &[&[u8]],
) -> Value {
    let hex =
        |message: &&[u8]| -> String { message.iter().map(|byte| format!("{byte:02x}")).collect() };
    let output = Command::new(binaries::python())
        .arg(binaries::workspace().join("tests/clients/grpcio/client.py"))
        .arg(world.scene.address().to_string())
        .arg(format!("/ledger.v1.Ledger/{method}"))
        .args([kind, seconds])
        .args(messages.iter().map(hex))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = wait::within("grpcio", output).await.expect("python starts");
    assert!(output.status.success(), "{output:?}");
    let outcome: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    world
        .scene
        .assert_discreet("an outcome", &outcome.to_string());
    outcome
}

/// The one value under a key of metadata.
fn value(metadata: &Value, key: &str) -> Option<String> {
    let pairs = metadata.as_array().expect("pairs").iter();
    let mut values = pairs.filter(|pair| pair[0] == key);
    let value = values.next()?[1].as_str().expect("a text").to_owned();
    assert!(values.next().is_none(), "{key} stands twice");
    Some(value)
}

/// Asserts a refusal in return mode and gives the approval's id.
fn pending(outcome: &Value) -> String {
    assert_eq!(outcome["code"], 7, "{outcome}");
    let trailing = &outcome["trailing"];
    let id = value(trailing, "x-hoop-approval-id").expect("an id");
    let text = format!(
        "statement held for human approval: waiting for approval; resend the identical statement once it is approved (approval {id})"
    );
    assert_eq!(outcome["details"], Value::from(text));
    for (key, expected) in [
        ("x-hoop-denied", "review"),
        ("x-hoop-approval-status", "PENDING"),
        ("x-hoop-review-id", id.as_str()),
        ("x-hoop-review-status", "PENDING"),
        ("retry-after", "5"),
    ] {
        assert_eq!(value(trailing, key).as_deref(), Some(expected), "{outcome}");
    }
    assert_eq!(outcome["initial"], json!([]), "trailers alone");
    id
}

/// account "demo/cash", amount 5, currency EUR
const POSTING: &[u8] = b"\x0a\x09demo/cash\x10\x05\x18\x02";
/// The same with amount 6.
const OTHER: &[u8] = b"\x0a\x09demo/cash\x10\x06\x18\x02";

async fn it_reads_status_text_and_trailing_metadata_and_runs_once_when_approved(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "return"));
    let world = LedgerScene::start(scene).await;
    let id = pending(&call(&world, "Post", "unary", "15", &[POSTING]).await);
    world.scene.plane().approve(&id).await;

    let posted = call(&world, "Post", "unary", "15", &[POSTING]).await;

    assert_eq!(posted["code"], 0, "{posted}");
    assert_eq!(world.ledger.call_count(Method::Post), 1);
    let again = pending(&call(&world, "Post", "unary", "15", &[POSTING]).await);
    assert_ne!(again, id);
    world.scene.finish(0).await;
}

/// Waiting, because this library puts its messages into frames as it likes: one that went on alone has used its approval.
async fn it_sends_a_stream_that_runs_once_each_message_is_approved(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Import"], "hold"));
    let world = LedgerScene::start(scene).await;
    let messages = [POSTING, OTHER];
    let approves = async {
        for count in 1..=messages.len() {
            let id = world.next_pending(count).await;
            world.scene.plane().approve(&id).await;
        }
    };

    let (imported, ()) = tokio::join!(call(&world, "Import", "stream", "15", &messages), approves);

    assert_eq!(imported["code"], 0, "{imported}");
    assert_eq!(world.ledger.message_count(Method::Import), 2);
    world.scene.finish(0).await;
}

async fn its_own_deadline_does_not_come_before_the_gates_answer(host: Host) {
    let scene = Scene::real(host).policy(holding(&["Post"], "hold"));
    let world = LedgerScene::start(scene).await;

    let late = call(&world, "Post", "unary", "5", &[POSTING]).await;

    assert_eq!(late["code"], 7, "{late}");
    let details = late["details"].as_str().expect("a text");
    assert!(
        details.contains("still waiting for approval after 4."),
        "{late}"
    );
    let status = value(&late["trailing"], "x-hoop-approval-status");
    assert_eq!(status.as_deref(), Some("PENDING"));
    world.scene.finish(0).await;
}
