//! Shared data, queues and metrics: what VMs have in common. Measured on Envoy 1.40.

use host_sim::sim::{Request, Sim};
use host_sim::{MetricType, Plugin};

use crate::guest::{Guest, OUT, ask, ask_bytes, ask_number, say_number, text};
use crate::scene::{
    assert_lines, builder, built, root_callbacks, said, said_since, start, started,
};

/// `get KEY = STATUS value`; the number for a compare-and-swap lies at 40.
fn get_data(key: &str) -> String {
    let call = format!(
        "(call $get_shared_data {} (i32.const 16) (i32.const 20) (i32.const 40))",
        text(key)
    );
    format!("(call $report_bytes {} {call})", text(format!("get {key}")))
}

fn set_data(key: &str, value: &str, cas: &str) -> String {
    ask(
        &format!("set {key}"),
        "set_shared_data",
        &format!("{} {} {cas}", text(key), text(value)),
    )
}

const CAS: &str = "(i32.load (i32.const 40))";
const NO_CAS: &str = "(i32.const 0)";

#[test]
fn shared_data_is_written_read_and_compared() {
    let guest = Guest::new().on(
        "request_headers",
        [
            get_data("absent"),
            set_data("k", "v1", NO_CAS),
            get_data("k"),
            set_data("k", "v2", CAS),
            set_data("k", "lost", CAS),
            get_data("k"),
            set_data("k", "lost", "(i32.const 9999)"),
            set_data("k", "v3", NO_CAS),
            get_data("k"),
            set_data("fresh", "any number will do", "(i32.const 77)"),
            set_data("fresh", "", NO_CAS),
            get_data("fresh"),
        ],
    );
    let sim = start(guest);
    sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &[
            "get absent = 1",
            "set k = 0",
            "get k = 0 v1",
            "set k = 0",
            "set k = 8",
            "get k = 0 v2",
            "set k = 8",
            "set k = 0",
            "get k = 0 v3",
            "set fresh = 0",
            "set fresh = 0",
            "get fresh = 0 null",
        ],
    );
}

#[test]
fn every_worker_sees_what_one_has_written() {
    let guest = Guest::new()
        .on("request_headers", [get_data("k")])
        .on("log", [set_data("k", "from 0", NO_CAS)]);
    let sim = started(builder(Plugin::new(guest.module())).workers(2));
    sim.request_on(0, Request::get("/")).disconnect();
    sim.request_on(1, Request::get("/"));
    assert_lines(&said(&sim), &["get k = 1", "set k = 0", "get k = 0 from 0"]);
    assert_eq!(sim.host().shared_data("", "k"), Some(b"from 0".to_vec()));
}

#[test]
fn shared_data_has_a_namespace_for_each_vm_id() {
    let guest = Guest::new().on("request_headers", [get_data("k")]);
    let sim = built(Plugin::new(guest.module()).vm_id("one"));
    sim.host().set_shared_data("two", "k", b"not for us");
    sim.request(Request::get("/"));
    sim.host().set_shared_data("one", "k", b"for us");
    sim.request(Request::get("/"));
    assert_lines(&said(&sim), &["get k = 1", "get k = 0 for us"]);
    assert_eq!(sim.host().shared_data("three", "k"), None);
}

#[test]
fn a_write_of_another_vm_in_between_loses_the_compare_and_swap() {
    let guest = Guest::new()
        .on(
            "request_headers",
            [
                set_data("k", "v", NO_CAS),
                get_data("k"),
                crate::guest::give(1),
            ],
        )
        .on("log", [set_data("k", "mine", CAS)]);
    let sim = start(guest);
    let stream = sim.request(Request::get("/"));
    sim.host().set_shared_data("", "k", b"theirs");
    stream.disconnect();
    assert_lines(&said(&sim), &["set k = 0", "get k = 0 v", "set k = 8"]);
    assert_eq!(sim.host().shared_data("", "k"), Some(b"theirs".to_vec()));
}

#[test]
fn writes_can_be_lost_on_demand_as_often_as_asked() {
    let step = || set_data("k", "v", CAS);
    let guest = Guest::new().on(
        "request_headers",
        [
            set_data("k", "v", NO_CAS),
            get_data("k"),
            step(),
            step(),
            step(),
        ],
    );
    let sim = start(guest);
    sim.lose_shared_writes(2);
    sim.request(Request::get("/"));
    // Only compare-and-swap can be lost.
    assert_lines(
        &said(&sim),
        &[
            "set k = 0",
            "get k = 0 v",
            "set k = 8",
            "set k = 8",
            "set k = 0",
        ],
    );
}

fn register(name: &str) -> String {
    ask_number("register", "register_shared_queue", &text(name))
}

fn resolve(vm: &str, name: &str) -> String {
    ask_number(
        "resolve",
        "resolve_shared_queue",
        &format!("{} {}", text(vm), text(name)),
    )
}

fn enqueue(queue: &str, message: &str) -> String {
    ask(
        "enqueue",
        "enqueue_shared_queue",
        &format!("{queue} {}", text(message)),
    )
}

fn dequeue(queue: &str) -> String {
    ask_bytes("dequeue", "dequeue_shared_queue", queue)
}

/// The queue of the last `register` or `resolve`; it is read before the place is written again.
const QUEUE: &str = "(global.get $queue)";

fn keep_queue() -> String {
    format!("(global.set $queue (i32.load {OUT}))")
}

fn with_queue(guest: Guest) -> Guest {
    guest.with("(global $queue (mut i32) (i32.const 0))")
}

#[test]
fn a_queue_gives_its_messages_in_order_and_says_when_it_is_empty_or_absent() {
    let guest = with_queue(Guest::new()).on(
        "request_headers",
        [
            register("q1"),
            keep_queue(),
            register("q1"),
            register("q2"),
            resolve("vm", "q1"),
            resolve("", "q2"),
            resolve("vm", "absent"),
            resolve("other", "q1"),
            dequeue(QUEUE),
            dequeue("(i32.const 99)"),
            enqueue("(i32.const 99)", "x"),
            enqueue(QUEUE, "one"),
            enqueue(QUEUE, "two"),
            enqueue(QUEUE, ""),
            dequeue(QUEUE),
            dequeue(QUEUE),
            dequeue(QUEUE),
            dequeue(QUEUE),
        ],
    );
    let sim = built(Plugin::new(guest.module()).vm_id("vm"));
    sim.request(Request::get("/"));
    assert_lines(
        &said(&sim),
        &[
            "register = 0 1",
            "register = 0 1",
            "register = 0 2",
            "resolve = 0 1",
            "resolve = 0 2",
            "resolve = 1",
            "resolve = 1",
            "dequeue = 7",
            "dequeue = 1",
            "enqueue = 1",
            "enqueue = 0",
            "enqueue = 0",
            "enqueue = 0",
            "dequeue = 0 one",
            "dequeue = 0 two",
            "dequeue = 0 null",
            "dequeue = 7",
        ],
    );
}

/// The root context that registered the queue last is told, once for each message and never within the callback that sends it.
#[test]
fn a_message_wakes_the_vm_that_registered_the_queue_last() {
    let guest = with_queue(Guest::new())
        .on("configure", [register("work"), keep_queue()])
        .on(
            "queue_ready",
            [
                say_number("woken for", "(local.get $p1)"),
                dequeue("(local.get $p1)"),
            ],
        )
        .on(
            "request_headers",
            [
                enqueue(QUEUE, "a"),
                enqueue(QUEUE, "b"),
                crate::guest::say("end"),
            ],
        );
    let sim = started(builder(Plugin::new(guest.module())).workers(2));
    let before = said(&sim).len();
    sim.request_on(0, Request::get("/"));
    assert_lines(
        &said_since(&sim, before),
        &[
            "enqueue = 0",
            "enqueue = 0",
            "end",
            "woken for = 1",
            "dequeue = 0 a",
            "woken for = 1",
            "dequeue = 0 b",
        ],
    );
    // The second worker was configured last.
    assert!(
        !root_callbacks(&sim)
            .iter()
            .any(|line| line.starts_with("queue_ready"))
    );
    assert_eq!(
        sim.trace(1)
            .to_string()
            .matches("proxy_on_queue_ready(1, 1)\n")
            .count(),
        2
    );
}

fn define(kind: u32, name: &str) -> String {
    format!(
        "(drop (call $define_metric (i32.const {kind}) {} (i32.const 48))) {}",
        text(name),
        say_number("id", "(i32.load (i32.const 48))")
    )
}

const METRIC: &str = "(i32.load (i32.const 48))";

fn increment(metric: &str, offset: i64) -> String {
    ask(
        "increment",
        "increment_metric",
        &format!("{metric} (i64.const {offset})"),
    )
}

fn record(metric: &str, value: u64) -> String {
    ask(
        "record",
        "record_metric",
        &format!("{metric} (i64.const {value})"),
    )
}

fn read(metric: &str) -> String {
    crate::guest::ask_wide("metric", "get_metric", metric)
}

fn metrics(steps: Vec<String>) -> Sim {
    let sim = start(Guest::new().on("request_headers", steps));
    sim.request(Request::get("/"));
    sim
}

#[test]
fn a_counter_only_counts_up() {
    let sim = metrics(vec![
        define(0, "hits"),
        increment(METRIC, 5),
        read(METRIC),
        increment(METRIC, 0),
        increment(METRIC, -1),
        read(METRIC),
        record(METRIC, 7),
        read(METRIC),
    ]);
    assert_lines(
        &said(&sim),
        &[
            "id = 4",
            "increment = 0",
            "metric = 0 5",
            "increment = 2",
            "increment = 2",
            "metric = 0 5",
            "record = 0",
            "metric = 0 12",
        ],
    );
    assert_eq!(sim.metric("hits"), 12);
}

#[test]
fn a_gauge_goes_up_and_down_and_below_zero_it_wraps() {
    let sim = metrics(vec![
        define(1, "open"),
        increment(METRIC, 5),
        increment(METRIC, -2),
        read(METRIC),
        increment(METRIC, -10),
        read(METRIC),
        record(METRIC, 9),
    ]);
    let found = said(&sim);
    assert_eq!(
        (found[3].as_str(), found[5].as_str()),
        ("metric = 0 3", "metric = 0 18446744073709551609")
    );
    assert_eq!(sim.metric("open"), 9);
}

#[test]
fn a_histogram_takes_samples_and_shows_none() {
    let sim = metrics(vec![
        define(2, "latency"),
        record(METRIC, 3),
        record(METRIC, 5),
        increment(METRIC, 1),
        increment(METRIC, -1),
        read(METRIC),
    ]);
    assert_lines(
        &said(&sim)[1..],
        &[
            "record = 0",
            "record = 0",
            "increment = 2",
            "increment = 2",
            "metric = 2",
        ],
    );
    let metrics = sim.metrics();
    let (_, latency) = metrics
        .iter()
        .find(|(name, _)| *name == "latency")
        .expect("it was defined");
    assert_eq!(*latency, host_sim::Metric::Histogram(vec![3, 5]));
    assert_eq!(sim.metric("latency"), 2);
    assert_eq!(MetricType::Histogram as u32, 2);
}

#[test]
fn one_name_is_one_metric_for_all_vms_and_each_definition_gives_a_new_id() {
    let guest = Guest::new()
        .on("configure", [define(0, "hits")])
        .on("request_headers", [define(0, "hits"), increment(METRIC, 1)]);
    let sim = started(builder(Plugin::new(guest.module())).workers(2));
    sim.request_on(0, Request::get("/"));
    sim.request_on(0, Request::get("/"));
    sim.request_on(1, Request::get("/"));
    assert_eq!(sim.metric("hits"), 3);
    let ids: Vec<String> = said(&sim)
        .into_iter()
        .filter(|line| line.starts_with("id"))
        .collect();
    assert!(ids.iter().all(|id| !id.is_empty()));
    assert_eq!(sim.metrics().iter().count(), 1);
}

#[test]
fn a_kind_or_an_id_that_does_not_exist_is_refused() {
    let sim = metrics(vec![
        ask_number(
            "define",
            "define_metric",
            &format!("(i32.const 3) {}", text("bad")),
        ),
        increment("(i32.const 999)", 1),
        record("(i32.const 999)", 1),
        read("(i32.const 999)"),
        increment("(i32.const 0)", 1),
        read("(i32.const 0)"),
    ]);
    assert_lines(
        &said(&sim),
        &[
            "define = 2",
            "increment = 2",
            "record = 1",
            "metric = 2",
            "increment = 1",
            "metric = 1",
        ],
    );
    assert_eq!(sim.metric("nobody.has.defined.it"), 0);
}

#[test]
fn foreign_functions_that_envoy_lacks_are_not_found() {
    let foreign = |name: &str, arguments: &str| {
        ask_bytes(
            name,
            "call_foreign_function",
            &format!("{} {}", text(name), text(arguments)),
        )
    };
    let sim = metrics(vec![
        foreign("unknown", "x"),
        foreign("", ""),
        foreign("clear_route_cache", ""),
    ]);
    assert_lines(
        &said(&sim),
        &["unknown = 1", " = 1", "clear_route_cache = 0 null"],
    );
}
