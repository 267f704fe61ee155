//! Holds over long times and through faults that real hosts do not have on demand: the module in the simulator's library, on a
//! clock that the case moves.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use hoop_tests::binaries;
use host_sim::sim::{Message, Request, Response, Sim, Stream};
use host_sim::{FailurePolicy, Module, Plugin};

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const SECOND: Duration = Duration::from_secs(1);
const CONFIGURATION: &str = r#"{
    "listener_name": "billing-api",
    "control_plane": {"cluster": "plane", "authority": "plane.example"},
    "rules": [{"match": {"methods": ["POST"]}, "action": "require_approval", "approval_rule": "approvers"}]
}"#;

/// A plane that knows one approval, and what it was asked.
#[derive(Clone)]
struct Plane {
    status: Rc<RefCell<&'static str>>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Plane {
    fn serving(sim: &Sim) -> Plane {
        let plane = Plane {
            status: Rc::new(RefCell::new("PENDING")),
            asked: Rc::default(),
        };
        let serving = plane.clone();
        sim.serve_cluster("plane", move |call| serving.answer(call));
        plane
    }

    fn answer(&self, call: &Message) -> Response {
        let method = call.header(":method").unwrap_or_default();
        let path = call.header(":path").unwrap_or_default();
        self.asked.borrow_mut().push(format!("{method} {path}"));
        let status = *self.status.borrow();
        if method == "GET" {
            return Response::new(200).json(&format!(r#"[{{"id":"{ID}","status":"{status}"}}]"#));
        }
        let released = status == "APPROVED";
        if released {
            *self.status.borrow_mut() = "EXECUTED";
        }
        let status = if released { "EXECUTED" } else { status };
        Response::new(200).json(&format!(
            r#"{{"forward":{released},"review":{{"id":"{ID}","status":"{status}"}}}}"#
        ))
    }

    fn decide(&self, status: &'static str) {
        *self.status.borrow_mut() = status;
    }

    fn count(&self, what: &str) -> usize {
        let asked = self.asked.borrow();
        asked.iter().filter(|call| call.contains(what)).count()
    }
}

fn plugin() -> Plugin {
    let module = Module::from_file(binaries::filter_module()).expect("the filter's module");
    Plugin::new(module)
        .root_id("hoop_filter")
        .allow_on_headers_stop_iteration(true)
        .environment("HOOP_SIDECAR_TOKEN", &format!("hsc_{}", "A".repeat(43)))
        .configuration(CONFIGURATION)
}

fn simulation(plugin: Plugin) -> Sim {
    let limits = host_sim::StreamLimits {
        idle_timeout: Some(Duration::from_secs(7200)),
        ..host_sim::StreamLimits::default()
    };
    let builder = Sim::builder(plugin).cluster("plane").limits(limits);
    let sim = builder.start().expect("a configuration that is accepted");
    sim.serve_upstream(|_| Response::new(200).body("paid"));
    sim
}

fn payment(sim: &Sim) -> Stream {
    sim.request(Request::post("/payments/42").body("pay"))
}

#[test]
fn a_hold_of_thirty_minutes_ends_with_its_words_after_one_read_a_second() {
    let sim = simulation(plugin());
    let plane = Plane::serving(&sim);
    let stream = payment(&sim);

    sim.advance(Duration::from_secs(1_799));
    assert!(!stream.is_answered());
    sim.advance(SECOND);

    let answer = stream.response();
    assert_eq!(answer.status(), 403);
    assert_eq!(
        answer.text(),
        format!(
            "statement held for human approval: still waiting for approval after 30m0s; run the statement again once it is approved (approval {ID})\n"
        )
    );
    assert_eq!(answer.header("x-hoop-approval-status"), Some("PENDING"));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(plane.count("/claim"), 1, "the last look");
    assert!((1_795..=1_800).contains(&plane.count("GET ")));
    let asked = plane.asked.borrow().len();
    sim.advance(60 * SECOND);
    assert_eq!(plane.asked.borrow().len(), asked, "nobody waits any more");
    assert!(!stream.reached_upstream());
}

#[test]
fn a_decision_is_told_within_a_second_of_the_clock() {
    let sim = simulation(plugin());
    let plane = Plane::serving(&sim);
    let stream = payment(&sim);
    sim.advance(700 * SECOND);

    plane.decide("APPROVED");
    sim.advance(SECOND);

    assert_eq!(stream.response().status(), 200);
    assert_eq!(stream.upstream_request().text(), "pay");
    assert_eq!(plane.count("/claim"), 1);
}

#[test]
fn a_clock_on_the_wall_that_jumps_neither_ends_nor_lengthens_a_hold() {
    for jump in [7_200, -7_200] {
        let sim = simulation(plugin());
        let _plane = Plane::serving(&sim);
        let stream = payment(&sim);

        sim.advance(10 * SECOND);
        sim.jump_wall_clock(jump);
        sim.advance(1_780 * SECOND);
        assert!(!stream.is_answered(), "jumped by {jump}");
        sim.advance(10 * SECOND);

        assert_eq!(stream.response().status(), 403, "jumped by {jump}");
    }
}

#[test]
fn a_plane_that_does_not_answer_a_read_refuses_after_its_time() {
    let sim = simulation(plugin());
    let stream = payment(&sim);
    sim.callout().answer(Response::new(201).json(&format!(
        r#"{{"forward":false,"review":{{"id":"{ID}","status":"PENDING"}}}}"#
    )));

    sim.advance(10 * SECOND);
    assert!(!stream.is_answered());
    sim.advance(SECOND);

    assert_eq!(
        stream.response().text(),
        format!(
            "statement held for human approval: the approval request could not be checked (approval {ID})\n"
        )
    );
    assert_eq!(sim.metric("hoop_filter_plane_timeouts_total"), 1);
}

#[test]
fn a_crash_of_the_vm_lets_no_held_call_through_and_loses_no_decision() {
    for policy in [FailurePolicy::FailClosed, FailurePolicy::FailReload] {
        let sim = simulation(plugin().failure_policy(policy));
        let plane = Plane::serving(&sim);
        let held = payment(&sim);
        assert!(held.is_paused());

        sim.trap_in(0, "proxy_on_tick");
        sim.advance(5 * SECOND);
        plane.decide("APPROVED");
        sim.advance(10 * SECOND);

        assert!(!held.reached_upstream(), "{policy:?}");
        let next = payment(&sim);
        sim.advance(SECOND);
        match policy {
            FailurePolicy::FailReload => {
                assert_eq!(next.response().status(), 200);
                assert_eq!(*plane.status.borrow(), "EXECUTED");
            }
            FailurePolicy::FailClosed | FailurePolicy::FailOpen => {
                assert_eq!(next.response().status(), 503);
                assert!(!next.reached_upstream());
            }
        }
    }
}

#[test]
fn the_main_threads_vm_asks_nothing() {
    let sim = simulation(plugin());
    let plane = Plane::serving(&sim);
    let stream = payment(&sim);

    sim.advance(30 * SECOND);

    let reads = plane.count("GET ");
    assert!((29..=30).contains(&reads), "{reads} reads in 30 s");
    stream.disconnect();
    let asked = plane.asked.borrow().len();
    sim.advance(30 * SECOND);
    assert_eq!(plane.asked.borrow().len(), asked);
}

/// A simulation of three workers that beat, and the plane that counts it.
fn beating() -> (Sim, Plane) {
    let mut configuration: serde_json::Value =
        serde_json::from_str(CONFIGURATION).expect("valid JSON");
    configuration["control_plane"]["heartbeat"] = true.into();
    let plugin = plugin().configuration(configuration.to_string());
    let plugin = plugin.failure_policy(FailurePolicy::FailReload);
    let builder = Sim::builder(plugin).cluster("plane").workers(3);
    let sim = builder.start().expect("a configuration that is accepted");
    let plane = Plane::serving(&sim);
    (sim, plane)
}

/// Asserts that the workers together beat about once a minute for ten minutes, never two at once.
fn assert_regular(sim: &Sim, plane: &Plane, what: &str) {
    let mut seen = plane.count("/handshake");
    let mut since = 0;
    for second in 0..600 {
        sim.advance(SECOND);
        since += 1;
        let now = plane.count("/handshake");
        if now > seen {
            assert_eq!(now, seen + 1, "{what}: two at once after {second} s");
            assert!((48..=73).contains(&since), "{what}: a beat after {since} s");
            (seen, since) = (now, 0);
        }
        assert!(since <= 73, "{what}: no beat for {since} s");
    }
}

#[test]
fn three_workers_beat_about_once_a_minute_together() {
    let (sim, plane) = beating();
    sim.advance(SECOND);
    assert_eq!(plane.count("/handshake"), 1, "the first comes at once");

    assert_regular(&sim, &plane, "from the start");
}

#[test]
fn vms_that_were_started_again_keep_to_the_beat_of_those_before_them() {
    let (sim, plane) = beating();
    sim.advance(SECOND);
    for worker in 0..3 {
        // A call that waits, so that there are ticks to crash at.
        sim.request_on(worker, Request::post("/payments/42").body("pay"));
        sim.trap_in(worker, "proxy_on_tick");
    }
    sim.advance(2 * SECOND);
    for worker in 0..3 {
        assert!(sim.failure(worker).is_some(), "worker {worker} is down");
        sim.request_on(worker, Request::get("/"));
        assert!(sim.failure(worker).is_none(), "worker {worker} is back");
    }

    sim.advance(40 * SECOND);
    assert_eq!(plane.count("/handshake"), 1, "the beat of the first VMs");
    let mut seconds = (0..33).map(|_| sim.advance(SECOND));
    let second_beat = seconds.any(|()| plane.count("/handshake") == 2);
    assert!(second_beat, "within 73 s after the first");
    assert_regular(&sim, &plane, "after a new start");
}
