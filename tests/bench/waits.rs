//! What waiting by a tool costs: a thousand agents with an `approval_wait` each, live with progress, on one worker of a real Envoy,
//! with a real plane.
//!
//! `make bench` prints one table: how often the plane is asked while nothing is decided, what Envoy takes of the machine meanwhile, and
//! how long after each decision its agent has the result. Nothing here fails because of a number.

use std::time::{Duration, Instant};

use hoop_tests::client::Connection;
use hoop_tests::host::Host;
use hoop_tests::mcp::wire::{begin, messages, told, until_waiting, wait_call};
use hoop_tests::policy;
use hoop_tests::scene::Scene;
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
    let mut tools = policy::tools();
    let entries = tools.as_object_mut().expect("an object");
    entries.remove("poll_interval_ms").expect("the cases' own");
    let scene = Scene::real(Host::Envoy).serving_tools().policy(tools);
    let scene = scene
        .plane_yaml("max_waiting_per_requester: 2000\n")
        .start()
        .await;
    let at_rest = Taken::by(&scene);
    let mut ids = Vec::with_capacity(WAITS);
    for number in 0..WAITS {
        let statement = format!("POST /payments/{number}");
        ids.push(scene.plane().file(statement.as_bytes()).await);
    }
    let mut waits = Vec::with_capacity(WAITS);
    for (number, id) in ids.iter().enumerate() {
        let call = wait_call(id, 120, Some(json!(number)));
        let connection = begin(&scene, &call).await;
        waits.push(tokio::task::spawn_local(awaited(connection)));
    }
    until_waiting(&scene, WAITS as u64).await;

    let (asked, taken) = (asked(&scene).await, Taken::by(&scene));
    let mut seconds = interval(Duration::from_secs(1));
    for _ in 0..=WATCHED_SECONDS {
        seconds.tick().await;
    }
    let calls = self::asked(&scene).await - asked;
    let later = Taken::by(&scene);
    print(
        "calls to the plane while 1,000 wait by a tool, one worker",
        format!("{:.2}/s", calls as f64 / WATCHED_SECONDS as f64),
    );
    print(
        "Envoy meanwhile, with progress every 2 s for each",
        format!(
            "{:.2} of a core, {:.0} KiB for each wait of 120 s",
            (later.cpu_seconds - taken.cpu_seconds) / WATCHED_SECONDS as f64,
            (later.kib - at_rest.kib) / WAITS as f64
        ),
    );

    let mut decided = Vec::with_capacity(WAITS);
    let mut pace = interval(Duration::from_millis(20));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for id in &ids {
        pace.tick().await;
        let approved = json!({"status": "APPROVED"});
        assert_eq!(scene.plane().decide_over_http(id, &approved).await, 200);
        decided.push(Instant::now());
    }
    let mut delays = Vec::with_capacity(WAITS);
    for (wait, decided_at) in waits.into_iter().zip(decided) {
        let told_at = wait.await.expect("the wait's task");
        delays.push(told_at.saturating_duration_since(decided_at));
    }
    delays.sort();
    let at = |share: usize| delays[(delays.len() - 1) * share / 100].as_secs_f64();
    print(
        "from the decision to the end of the stream, of 1,000",
        format!(
            "median {:.2} s, 99 of 100 {:.2} s, longest {:.2} s",
            at(50),
            at(99),
            at(100)
        ),
    );
    scene.finish(0).await;
}

/// Waits for the result and tells when it was there.
async fn awaited(mut connection: Connection) -> Instant {
    let answer = connection.late_answer("a wait").await;
    let all = messages(&answer);
    assert_eq!(told(all.last().expect("a result"))["status"], "APPROVED");
    Instant::now()
}

/// What Envoy has taken of the machine.
struct Taken {
    cpu_seconds: f64,
    kib: f64,
}

impl Taken {
    fn by(scene: &Scene) -> Taken {
        let id = scene.proxy.process_id().expect("a running host");
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}"));
        let stat = read("stat").expect("what the system knows of Envoy");
        // Behind the name, which may hold anything: user and system time are the 12th and 13th field, in hundredths of a second.
        let (_, behind) = stat.rsplit_once(')').expect("a name in brackets");
        let ticks = behind.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks
            .map(|ticks| ticks.parse::<f64>().expect("a number"))
            .sum();
        let status = read("status").expect("what the system knows of Envoy");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|line| line.split_whitespace().next());
        Taken {
            cpu_seconds: ticks / 100.0,
            kib: resident.and_then(|kib| kib.parse().ok()).expect("a number"),
        }
    }
}

async fn asked(scene: &Scene) -> u64 {
    scene.counter("plane_calls").await
}

fn print(what: &str, measured: String) {
    println!("| {what} | {measured} |");
}

const WAITS: usize = 1_000;
const WATCHED_SECONDS: u64 = 20;
