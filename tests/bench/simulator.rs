//! What the simulator costs: streams per second in the library, and the time to load and start the product's module.
//!
//! `make bench` prints one table. Nothing here fails because of a number: budgets are read by people, on a machine that they know.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_sim::sim::{Request, Response, Sim};
use host_sim::{LogLevel, Module, Plugin};

fn main() {
    let module = module();
    println!("| what | measured |");
    println!("| --- | --- |");
    for (what, measured) in [
        (
            "load the module, compiled before (median of 20)",
            load(&module),
        ),
        (
            "start canary, main thread and one worker (median of 20)",
            start(&module),
        ),
        ("streams that meet no rule, one core", passed(&module, 1)),
        ("the same with 1,000 rules", passed(&module, 1_000)),
        (
            "guest memory at rest, and more for each of 100 held calls with 16 KiB",
            memory(&module),
        ),
        ("gated streams, refused, one core", refused(&module)),
        (
            "gated streams, released and answered, one core",
            released(&module),
        ),
        ("the same with the whole trace recorded", traced(&module)),
    ] {
        println!("| {what} | {measured} |");
    }
}

fn load(file: &Path) -> String {
    median(|| {
        let start = Instant::now();
        let _loaded = Module::from_file(file).expect("the filter's module");
        start.elapsed()
    })
}

fn start(file: &Path) -> String {
    let module = Module::from_file(file).expect("the filter's module");
    median(|| {
        let start = Instant::now();
        let _running = Sim::builder(plugin(&module))
            .cluster("plane")
            .start()
            .expect("starts");
        start.elapsed()
    })
}

fn passed(file: &Path, rules: usize) -> String {
    let sim = simulation_with(file, false, &configuration("return", rules));
    sim.serve_upstream(|_| Response::new(200).body("ok"));
    per_second(|| {
        let stream = sim.request(Request::get("/hello"));
        assert_eq!(stream.response().status(), 200);
    })
}

fn memory(file: &Path) -> String {
    let sim = simulation_with(file, false, &configuration("hold", 1));
    sim.serve_cluster("plane", |_| review(false, "PENDING"));
    let at_rest = sim.memory_bytes(0);
    let calls: Vec<_> = (0..HELD)
        .map(|_| sim.request(Request::post("/payments/42").body(vec![b'x'; 16 * 1024])))
        .collect();
    assert!(calls.iter().all(|call| call.is_paused()));
    let more = (sim.memory_bytes(0) - at_rest) / HELD;
    format!("{} KiB, {:.1} KiB", at_rest / 1024, more as f64 / 1024.0)
}

fn refused(file: &Path) -> String {
    let sim = simulation(file, false);
    sim.serve_cluster("plane", |_| review(false, "PENDING"));
    per_second(|| {
        let stream = sim.request(payment());
        assert_eq!(stream.response().status(), 403);
    })
}

fn released(file: &Path) -> String {
    released_with(&simulation(file, false))
}

fn traced(file: &Path) -> String {
    released_with(&simulation(file, true))
}

fn released_with(sim: &Sim) -> String {
    sim.serve_cluster("plane", |_| review(true, "EXECUTED"));
    sim.serve_upstream(|_| Response::new(200).body("paid"));
    per_second(|| {
        let stream = sim.request(payment());
        assert_eq!(stream.response().status(), 200);
    })
}

fn simulation(file: &Path, recording: bool) -> Sim {
    simulation_with(file, recording, &configuration("return", 1))
}

fn simulation_with(file: &Path, recording: bool, configuration: &str) -> Sim {
    let module = Module::from_file(file).expect("the filter's module");
    let builder = Sim::builder(plugin(&module).configuration(configuration))
        .cluster("plane")
        .log_level(LogLevel::Error);
    let builder = if recording {
        builder.record_trace()
    } else {
        builder
    };
    builder.start().expect("a configuration that is accepted")
}

fn plugin(module: &Module) -> Plugin {
    Plugin::new(module.clone())
        .root_id("hoop_filter")
        .allow_on_headers_stop_iteration(true)
        .environment("HOOP_SIDECAR_TOKEN", &format!("hsc_{}", "A".repeat(43)))
        .configuration(configuration("return", 1))
}

/// Rules for so many services; calls to `/payments` wait for a person.
fn configuration(mode: &str, rules: usize) -> String {
    let rule = |path: &str| {
        format!(
            r#"{{"match": {{"methods": ["POST"], "paths": ["{path}/**"]}}, "action": "require_approval", "approval_rule": "approvers"}}"#
        )
    };
    let services = (1..rules).map(|number| rule(&format!("/services/{number}")));
    let rules: Vec<String> = services.chain([rule("/payments")]).collect();
    format!(
        r#"{{"listener_name": "billing-api", "control_plane": {{"cluster": "plane", "authority": "plane.example"}},
            "approval_mode": "{mode}", "rules": [{}]}}"#,
        rules.join(",")
    )
}

fn payment() -> Request {
    Request::post("/payments/42")
        .header("content-length", "14")
        .body(r#"{"amount":100}"#)
}

fn review(forward: bool, status: &str) -> Response {
    let id = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
    Response::new(201).json(&format!(
        r#"{{"forward":{forward},"review":{{"id":"{id}","status":"{status}"}}}}"#
    ))
}

fn median(mut once: impl FnMut() -> Duration) -> String {
    let mut times: Vec<_> = (0..20).map(|_| once()).collect();
    times.sort_unstable();
    format!("{:.1} ms", times[10].as_secs_f64() * 1000.0)
}

fn per_second(mut once: impl FnMut()) -> String {
    for _ in 0..500 {
        once();
    }
    let start = Instant::now();
    for _ in 0..STREAMS {
        once();
    }
    let rate = f64::from(STREAMS) / start.elapsed().as_secs_f64();
    format!("{rate:.0}/s")
}

fn module() -> PathBuf {
    let named = std::env::var_os("HOOP_FILTER_WASM").map(PathBuf::from);
    named.expect("HOOP_FILTER_WASM names the module: run `make bench`")
}

const STREAMS: u32 = 20_000;
const HELD: usize = 100;
