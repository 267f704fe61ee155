//! The filter, the cluster that it asks, and the clock.

use std::time::Duration;

use host_sim::sim::{Request, Response, Sim};
use host_sim::{Module, Plugin};

fn filter() -> Sim {
    let module = Module::from_file("target/wasm32-wasip1/release/hello_filter.wasm");
    let plugin = Plugin::new(module.expect("build it first: see above"));
    Sim::builder(plugin).cluster("auth").start().expect("a filter that starts")
}

#[test]
fn a_request_waits_for_the_answer_and_passes() {
    let sim = filter();
    let stream = sim.request(Request::get("/hello"));
    assert!(stream.is_paused());

    sim.callout().answer(Response::new(200));
    assert_eq!(stream.upstream_request().header(":path"), Some("/hello"));

    stream.respond(Response::new(200).body("world"));
    assert_eq!(stream.response().text(), "world");
}

#[test]
fn a_no_is_403_and_the_upstream_sees_nothing() {
    let sim = filter();
    let stream = sim.request(Request::get("/hello"));
    sim.callout().answer(Response::new(401));
    assert_eq!(stream.response().status(), 403);
    assert!(!stream.reached_upstream());
    assert!(sim.logged("refused with 403"));
}

#[test]
fn silence_is_a_no_when_the_time_is_over() {
    let sim = filter();
    let stream = sim.request(Request::get("/hello"));
    sim.advance(Duration::from_millis(999));
    assert!(stream.is_paused());
    sim.advance(Duration::from_millis(1));
    assert_eq!(stream.response().status(), 403);
}
