//! The approval tools as the MCP libraries of others read them: every official SDK in both eras of the protocol, the official
//! conformance suite and the official inspector.

use hoop_tests::host::Host;
use hoop_tests::mcp::{self, Client, LEGACY, MODERN, Running, conformance, inspector};
use hoop_tests::on_both_hosts;
use hoop_tests::scene::{Folder, Scene};
use serde_json::{Value, json};

on_both_hosts! {
    each_client_lists_six_tools_that_only_read,
    each_client_reads_the_status_of_an_approval,
    each_client_lists_approvals,
    each_client_sees_progress_until_somebody_approves,
    each_client_is_told_that_nobody_has_decided_in_its_time,
    a_wait_without_progress_is_one_answer,
    a_client_that_cancels_its_wait_leaves_nothing_behind,
    each_client_reads_what_is_wrong_with_its_call,
    the_conformance_suite_finds_nothing_wrong,
    the_inspector_lists_and_calls_in_both_eras,
}

/// A scene whose listener serves the approval tools, and the id of an approval that waits for its decision.
async fn pending(host: Host) -> (Scene, String) {
    let scene = Scene::real(host).serving_tools().start().await;
    let id = scene.plane().file(b"POST /payments/transfer").await;
    (scene, id)
}

/// Has every client call `tool` at once.
fn call(scene: &Scene, tool: &str, arguments: &Value) -> Vec<Running> {
    let url = mcp::url(scene);
    let start = |client: Client| client.call(&url, tool, arguments);
    Client::ALL.into_iter().map(start).collect()
}

/// Has every client wait for `id` at once, with progress.
fn wait_for(scene: &Scene, id: &str, timeout_seconds: u32) -> Vec<Running> {
    let url = mcp::url(scene);
    let arguments = json!({"id": id, "timeout_seconds": timeout_seconds});
    let start = |client: Client| client.call_with_progress(&url, "approval_wait", &arguments);
    Client::ALL.into_iter().map(start).collect()
}

/// The document of a result, which stands in it twice: as it is, and as text for libraries that know no other.
fn document(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let document: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(result["structuredContent"], document, "{result}");
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
    document
}

/// The text of a result that says it is an error.
fn complaint(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result.get("structuredContent"), None, "{result}");
    result["content"][0]["text"].as_str().expect("a text")
}

/// Waits for the client's end and looks through all that it told.
async fn end(scene: &Scene, running: Running) {
    let told = running.closed().await;
    scene.assert_discreet("what a client told", &told);
}

async fn each_client_lists_six_tools_that_only_read(host: Host) {
    let scene = Scene::real(host).serving_tools().start().await;
    let url = mcp::url(&scene);
    let started: Vec<Running> = Client::ALL
        .into_iter()
        .map(|client| client.list(&url))
        .collect();
    for mut running in started {
        let connected = running.expect("connected").await;
        assert_eq!(connected["version"], running.client().revision());
        assert_eq!(connected["server"]["name"], "hoop-sidecar", "{connected}");
        let told = running.expect("tools").await;
        let tools = told["tools"].as_array().expect("a list");
        let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, TOOLS, "{:?}", running.client());
        for tool in tools {
            assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].is_string(), "{tool}");
        }
        end(&scene, running).await;
    }
    scene.finish(0).await;
}

async fn each_client_reads_the_status_of_an_approval(host: Host) {
    let (scene, id) = pending(host).await;
    for tool in ["approval_status", "review_status"] {
        for mut running in call(&scene, tool, &json!({"id": id})) {
            running.expect("connected").await;
            let status = document(&running.result().await);
            assert_eq!(status["id"], *id, "{status}");
            assert_eq!(status["status"], "PENDING", "{status}");
            assert_eq!(status["next"], "wait", "{status}");
            end(&scene, running).await;
        }
    }
    scene.finish(0).await;
}

async fn each_client_lists_approvals(host: Host) {
    let (scene, id) = pending(host).await;
    for (filter, ids) in [("pending", vec![id.as_str()]), ("APPROVED", vec![])] {
        for mut running in call(&scene, "approval_list", &json!({"status": filter})) {
            running.expect("connected").await;
            let list = document(&running.result().await);
            let reviews = list["reviews"].as_array().expect("a list");
            let found: Vec<&Value> = reviews.iter().map(|review| &review["id"]).collect();
            assert_eq!(found, ids, "{filter}: {list}");
            end(&scene, running).await;
        }
    }
    scene.finish(0).await;
}

async fn each_client_sees_progress_until_somebody_approves(host: Host) {
    let (scene, id) = pending(host).await;
    let mut waiting = wait_for(&scene, &id, 60);
    for running in &mut waiting {
        running.expect("connected").await;
        let progress = running.expect("progress").await;
        assert_eq!(progress["total"], 60.0, "{progress}");
        assert_eq!(progress["message"], "waiting for an approver");
        let elapsed = progress["progress"].as_f64().expect("seconds");
        assert!((1.5..20.0).contains(&elapsed), "{progress}");
    }

    scene.plane().approve(&id).await;

    for mut running in waiting {
        let decided = document(&running.result().await);
        assert_eq!(decided["status"], "APPROVED", "{decided}");
        assert_eq!(decided["next"], "resend_identical_statement", "{decided}");
        assert_eq!(decided["timed_out"], false, "{decided}");
        end(&scene, running).await;
    }
    scene.finish(0).await;
}

async fn each_client_is_told_that_nobody_has_decided_in_its_time(host: Host) {
    let (scene, id) = pending(host).await;
    for mut running in wait_for(&scene, &id, 2) {
        running.expect("connected").await;
        let undecided = document(&running.result().await);
        assert_eq!(undecided["status"], "PENDING", "{undecided}");
        assert_eq!(undecided["timed_out"], true, "{undecided}");
        assert_eq!(undecided["waited_seconds"], 2, "{undecided}");
        end(&scene, running).await;
    }
    scene.finish(0).await;
}

async fn a_wait_without_progress_is_one_answer(host: Host) {
    let (scene, id) = pending(host).await;
    let arguments = json!({"id": id, "timeout_seconds": 60});
    let mut waiting = call(&scene, "approval_wait", &arguments);
    for running in &mut waiting {
        running.expect("connected").await;
    }

    scene.plane().reject(&id, "not this month").await;

    for mut running in waiting {
        let decided = document(&running.result().await);
        assert_eq!(decided["status"], "REJECTED", "{decided}");
        assert_eq!(decided["rejection_reason"], "not this month", "{decided}");
        assert_eq!(decided["timed_out"], false, "{decided}");
        end(&scene, running).await;
    }
    scene.finish(0).await;
}

/// In the modern era a client cancels by closing its stream. In the older one it says so on another connection, or not at all, and
/// closes its streams when it leaves. Either way nothing of the wait may stay in the host, which [`Scene::finish`] looks at.
async fn a_client_that_cancels_its_wait_leaves_nothing_behind(host: Host) {
    let (scene, id) = pending(host).await;
    let url = mcp::url(&scene);
    let arguments = json!({"id": id, "timeout_seconds": 300});
    for notifications in [0, 1] {
        let start = |client: Client| {
            client.call_and_cancel(&url, "approval_wait", &arguments, notifications)
        };
        let started: Vec<Running> = Client::ALL.into_iter().map(start).collect();
        for mut running in started {
            running.expect("connected").await;
            for _ in 0..notifications {
                running.expect("progress").await;
            }
            running.expect("cancelled").await;
            end(&scene, running).await;
        }
        scene.idle().await;
    }
    scene.finish(0).await;
}

async fn each_client_reads_what_is_wrong_with_its_call(host: Host) {
    let (scene, _id) = pending(host).await;
    let absent = "00000000-0000-4000-8000-000000000000";
    for mut running in call(&scene, "approval_status", &json!({"id": absent})) {
        running.expect("connected").await;
        let result = running.result().await;
        assert!(complaint(&result).contains(absent), "{result}");
        end(&scene, running).await;
    }
    for mut running in call(&scene, "approval_status", &json!({})) {
        running.expect("connected").await;
        let result = running.result().await;
        assert_eq!(complaint(&result), "id is required");
        end(&scene, running).await;
    }
    for mut running in call(&scene, "approval_approve", &json!({})) {
        running.expect("connected").await;
        let error = running.expect("error").await;
        assert_eq!(error["code"], -32602, "{:?}: {error}", running.client());
    }
    scene.finish(0).await;
}

async fn the_conformance_suite_finds_nothing_wrong(host: Host) {
    let (scene, _id) = pending(host).await;
    let url = mcp::url(&scene);
    let folder = Folder::create();
    let mut wrong = Vec::new();
    for revision in [LEGACY, MODERN] {
        let dir = folder.path().join(revision);
        wrong.extend(conformance::of_revision(&url, revision, &dir).await);
    }
    for revision in ["2025-03-26", "2025-06-18"] {
        let dir = folder.path().join(revision);
        wrong.extend(conformance::single(&url, revision, &dir).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    scene.finish(0).await;
}

async fn the_inspector_lists_and_calls_in_both_eras(host: Host) {
    let (scene, id) = pending(host).await;
    let url = mcp::url(&scene);
    let home = Folder::create();
    for era in ["legacy", "modern"] {
        let listed = inspector::list(&url, era, home.path()).await;
        let tools = listed["tools"].as_array().expect("a list");
        let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, TOOLS, "{era}");

        let call = async |id: &str| {
            let arguments = json!({"id": id});
            inspector::call(&url, era, home.path(), "approval_status", &arguments).await
        };
        let (code, status) = call(&id).await;
        assert_eq!(
            (code, &document(&status)["status"]),
            (Some(0), &json!("PENDING"))
        );
        let (code, refused) = call("no-id").await;
        assert_eq!(code, inspector::TOOL_ERROR, "{refused}");
        complaint(&refused);
    }
    scene.finish(0).await;
}

const TOOLS: [&str; 6] = [
    "approval_status",
    "approval_wait",
    "approval_list",
    "review_status",
    "review_wait",
    "review_list",
];
