//! Which VMs there are: a canary, the main thread's, and one for each worker.

use std::time::Duration;

use host_sim::sim::Request;
use host_sim::{LoadError, Plugin};

use crate::guest::{Guest, REQUEST, act_for_caller, call, give, nth, resume, say, tick};
use crate::scene::{assert_lines, builder, ok, said, started};

fn counted(lines: &[String], wanted: &str) -> usize {
    lines.iter().filter(|line| *line == wanted).count()
}

#[test]
fn n_workers_make_n_plus_2_configurations_and_n_plus_1_tickers() {
    for workers in [0, 1, 2, 4] {
        let guest = Guest::new()
            .on("vm_start", [say("start")])
            .on(
                "configure",
                [
                    say("configure"),
                    "(drop (call $set_tick_period_milliseconds (i32.const 100)))".to_owned(),
                ],
            )
            .on("tick", [say("tick")])
            .on("done", [say("done")]);
        let sim = started(builder(Plugin::new(guest.module())).workers(workers));
        let found = said(&sim);
        assert_eq!(counted(&found, "start"), workers + 2);
        assert_eq!(counted(&found, "configure"), workers + 2);
        sim.advance(Duration::from_millis(100));
        assert_eq!(counted(&said(&sim), "tick"), workers + 1);
        // The canary goes without a word.
        assert_eq!(counted(&said(&sim), "done"), 0);
    }
}

#[test]
fn a_canary_that_is_refused_keeps_every_other_vm_from_starting() {
    let guest = Guest::new().on("configure", [say("configure"), give(0)]);
    let error = builder(Plugin::new(guest.module()))
        .workers(3)
        .start()
        .expect_err("it is refused");
    assert!(matches!(error, LoadError::ConfigurationRefused { .. }));
}

#[test]
fn each_worker_has_a_memory_of_its_own() {
    let guest = Guest::new().on("request_headers", [nth(1, [say("first of its VM")])]);
    let sim = started(builder(Plugin::new(guest.module())).workers(2));
    for worker in [0, 1, 0, 1, 0] {
        sim.request_on(worker, Request::get("/"));
    }
    assert_lines(&said(&sim), &["first of its VM"; 2]);
}

#[test]
fn streams_of_one_worker_interleave() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("request_body", [])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let sim = started(builder(Plugin::new(guest.module())));
    let first = sim.request(Request::post("/1").unfinished());
    let second = sim.request(Request::post("/2").unfinished());
    first.send_body("a");
    second.send_body("b");
    let waiting = sim.callouts();
    waiting[1].answer(ok(""));
    assert!(first.is_paused());
    assert_eq!(second.upstream_request().text(), "b");
    first.finish("a");
    second.finish("b");
    waiting[0].answer(ok(""));
    assert_eq!(first.upstream_request().text(), "aa");
    assert_eq!(second.upstream_request().text(), "bb");
    second.respond(ok("2"));
    first.respond(ok("1"));
    assert_eq!(
        (first.response().text(), second.response().text()),
        ("1".to_owned(), "2".to_owned())
    );
}

#[test]
fn a_callout_belongs_to_the_worker_that_made_it() {
    let guest = Guest::new()
        .on("request_headers", [call("plane", 0), give(1)])
        .on("http_call_response", [act_for_caller(), resume(REQUEST)]);
    let sim = started(builder(Plugin::new(guest.module())).workers(2));
    // Both have the same token and the same context.
    let first = sim.request_on(0, Request::get("/1"));
    let second = sim.request_on(1, Request::get("/2"));
    sim.callouts()[1].answer(ok(""));
    assert!(first.is_paused() && second.reached_upstream());
    sim.callout().answer(ok(""));
    assert!(first.reached_upstream());
}

#[test]
fn a_worker_that_does_not_exist_is_a_mistake_of_the_test() {
    let sim = started(builder(Plugin::new(Guest::new().module())).workers(2));
    let request = std::panic::AssertUnwindSafe(|| sim.request_on(2, Request::get("/")));
    let panic = std::panic::catch_unwind(request).expect_err("there are two");
    let words = panic.downcast_ref::<String>().expect("a text");
    assert_eq!(words, "worker 2 of 2, counted from 0");
}

#[test]
fn an_upstream_that_serves_by_itself_gets_whole_requests() {
    let guest = Guest::new()
        .on("configure", [tick(10)])
        .on("request_body", [give(1), crate::guest::at_end([give(0)])]);
    let sim = started(builder(Plugin::new(guest.module())).workers(2));
    sim.serve_upstream(|request| ok(&request.text().to_uppercase()).trailer("x-sum", "1"));
    for worker in 0..2 {
        let stream = sim.request_on(worker, Request::post("/").body("one").body("two"));
        assert_eq!(stream.response().text(), "ONETWO");
        assert_eq!(stream.response().trailer("x-sum"), Some("1"));
        assert!(stream.is_over());
    }
}
