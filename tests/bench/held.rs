//! What holding costs: a thousand calls held on one worker of a real Envoy, with a real plane.
//!
//! `make bench` prints one table: how often the plane is asked while nothing is decided, and how long after each decision its
//! client has the upstream's answer. Nothing here fails because of a number.

use std::rc::Rc;
use std::time::{Duration, Instant};

use hoop_tests::client::h2::{H2Connection, H2Request};
use hoop_tests::host::Host;
use hoop_tests::policy;
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    println!("| what | measured |");
    println!("| --- | --- |");
    LocalSet::new().block_on(&runtime, measured());
}

async fn measured() {
    let mut policy = policy::with("approval_mode", json!("hold"));
    policy["rules"] = policy::hold_everything();
    let scene = Scene::real(Host::Envoy).policy(policy).start().await;
    let connection = Rc::new(scene.connect_h2().await);

    let filed_at = Instant::now();
    let calls: Vec<_> = (0..HELD).map(|call| held(&connection, call)).collect();
    wait::until("all are held", async || {
        (stat(&scene, "hoop_filter_requests_held").await == HELD as u64).then_some(())
    })
    .await;
    print(
        "file 1,000 calls and hold them",
        format!("{:.1} s", filed_at.elapsed().as_secs_f64()),
    );

    let before = stat(&scene, PLANE_CALLS).await;
    let mut seconds = interval(Duration::from_secs(1));
    for _ in 0..=WATCHED_SECONDS {
        seconds.tick().await;
    }
    let asked = stat(&scene, PLANE_CALLS).await - before;
    print(
        "calls to the plane while 1,000 wait, one worker",
        format!("{:.2}/s", asked as f64 / WATCHED_SECONDS as f64),
    );

    // Each call has a body of its own, which the plane shows; the decision of each is timed by it.
    let mut decided = vec![None; HELD];
    let ids = ids(&scene).await;
    let mut pace = interval(Duration::from_millis(20));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for (call, id) in &ids {
        pace.tick().await;
        let approved = json!({"status": "APPROVED"});
        assert_eq!(scene.plane().decide_over_http(id, &approved).await, 200);
        decided[*call] = Some(Instant::now());
    }
    let mut delays = Vec::with_capacity(HELD);
    for (call, answered) in calls.into_iter().enumerate() {
        let answered_at = answered.await.expect("the call's task");
        let decided_at = decided[call].expect("each was decided");
        delays.push(answered_at.saturating_duration_since(decided_at));
    }
    delays.sort();
    let at = |share: usize| delays[(delays.len() - 1) * share / 100].as_secs_f64();
    print(
        "from the decision to the upstream's answer, of 1,000",
        format!(
            "median {:.2} s, 99 of 100 {:.2} s, longest {:.2} s",
            at(50),
            at(99),
            at(100)
        ),
    );
    scene.finish(HELD).await;
}

/// Sends one call and tells when its answer came.
fn held(connection: &Rc<H2Connection>, call: usize) -> tokio::task::JoinHandle<Instant> {
    let connection = Rc::clone(connection);
    tokio::task::spawn_local(async move {
        let request = H2Request::new("POST", &format!("/payments/{call}"), Some(b"held"));
        let answer = connection.try_send(&request).await.expect("an answer");
        assert_eq!(answer.status, 200, "{answer}");
        Instant::now()
    })
}

/// The approval of each call, in an order that has nothing to do with the list's.
async fn ids(scene: &Scene) -> Vec<(usize, String)> {
    let mut ids = Vec::with_capacity(HELD);
    for call in 0..HELD {
        let statement = format!("POST /payments/{call}\n\nheld");
        ids.push((call, scene.plane().id_of(statement.as_bytes()).await));
    }
    ids.sort_by(|(_, left), (_, right)| left.cmp(right));
    ids
}

async fn stat(scene: &Scene, name: &str) -> u64 {
    scene.proxy.stat(&format!("wasmcustom.{name}")).await
}

fn print(what: &str, measured: String) {
    println!("| {what} | {measured} |");
}

const HELD: usize = 1_000;
const WATCHED_SECONDS: u64 = 20;
const PLANE_CALLS: &str = "hoop_filter_plane_calls_total";
