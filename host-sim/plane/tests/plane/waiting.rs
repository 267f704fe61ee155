//! Owns the cases of the caps on how many reviews wait, and their comparison with a model over random orders of events;
//! the scene carries them out. They must not know the plane's insides.

use std::sync::Arc;

use axum::http::StatusCode;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use crate::scene::{
    APPROVAL_TTL, Answer, LANE, MARK, PENDING_TTL, RULE, Scene, UNLIMITED, filing, log, statement,
};

const OF_REQUESTER: &str =
    "too many approval requests of this requester are waiting for a decision: there may be 2";
const IN_ALL: &str = "too many approval requests are waiting for a decision: there may be 3 in all";

/// Two of each caller, three in all.
async fn scene() -> Scene {
    Scene::configured("max_waiting: 3\nmax_waiting_per_requester: 2\n").await
}

fn named(subject: &str) -> Value {
    json!({ "subject": subject, "peer_addr": "10.0.0.1:1", "method": "identity_header" })
}

fn from(address: &str) -> Value {
    json!({ "peer_addr": address })
}

fn filing_of(requester: &Value, statement: &[u8]) -> Value {
    let mut body = filing(LANE, RULE, statement);
    if !requester.is_null() {
        body["requester"] = requester.clone();
    }
    body
}

async fn file(scene: &Scene, requester: &Value, name: &str) -> Answer {
    scene.post(&filing_of(requester, &statement(name))).await
}

async fn filed(scene: &Scene, requester: &Value, name: &str) -> String {
    let answer = file(scene, requester, name).await;
    answer.is(StatusCode::CREATED).id()
}

async fn refused(scene: &Scene, requester: &Value, name: &str, message: &str) {
    let before = rows(scene).await;
    let answer = file(scene, requester, name).await;
    answer.says(StatusCode::TOO_MANY_REQUESTS, message);
    assert_eq!(rows(scene).await, before, "a refused filing leaves no row");
}

async fn rows(scene: &Scene) -> usize {
    let list = scene.list("?limit=200").await.is(StatusCode::OK);
    list.json.as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn above_the_cap_of_a_caller_nothing_new_is_filed_and_others_file_on() {
    let scene = scene().await;
    filed(&scene, &named("ann"), "1").await;
    filed(&scene, &named("ann"), "2").await;
    refused(&scene, &named("ann"), "3", OF_REQUESTER).await;
    filed(&scene, &named("bob"), "3").await;
}

#[tokio::test]
async fn above_the_cap_of_all_nobody_files_anew() {
    let scene = scene().await;
    filed(&scene, &named("ann"), "1").await;
    filed(&scene, &named("ann"), "2").await;
    filed(&scene, &named("bob"), "3").await;
    refused(&scene, &named("bob"), "4", IN_ALL).await;
    refused(&scene, &named("eve"), "4", IN_ALL).await;
    refused(&scene, &named("ann"), "4", OF_REQUESTER).await;
}

#[tokio::test]
async fn a_caller_is_its_name_or_the_address_without_the_port_or_nobody() {
    for (first, second, other) in [
        (
            named("ann"),
            json!({ "subject": "ann", "method": "identity_header" }),
            named("bob"),
        ),
        (
            named("ann"),
            named("ann"),
            json!({ "subject": "ann", "method": "other" }),
        ),
        (from("10.0.0.1:1"), from("10.0.0.1:2"), from("10.0.0.2:1")),
        (from("[::1]:1"), from("[::1]:2"), from("127.0.0.1:1")),
        (Value::Null, json!("malformed"), from("10.0.0.1:1")),
    ] {
        let scene = scene().await;
        filed(&scene, &first, "1").await;
        filed(&scene, &second, "2").await;
        refused(&scene, &first, "3", OF_REQUESTER).await;
        filed(&scene, &other, "3").await;
    }
}

#[tokio::test]
async fn at_the_caps_what_is_there_is_still_asked_for_read_decided_and_spent() {
    let scene = scene().await;
    let approved = filed(&scene, &named("ann"), "1").await;
    scene.decide(&approved, "APPROVED").await.is(StatusCode::OK);
    let claimed = filed(&scene, &named("ann"), "2").await;
    scene.decide(&claimed, "APPROVED").await.is(StatusCode::OK);
    let waiting = filed(&scene, &named("ann"), "3").await;
    filed(&scene, &named("ann"), "4").await;
    filed(&scene, &named("bob"), "5").await;
    refused(&scene, &named("ann"), "6", OF_REQUESTER).await;

    let again = file(&scene, &named("ann"), "3").await.is(StatusCode::OK);
    assert_eq!(
        (again.asked(), again.id()),
        ((false, "PENDING"), waiting.clone())
    );
    let spent = file(&scene, &named("ann"), "1").await.is(StatusCode::OK);
    assert_eq!((spent.asked(), spent.id()), ((true, "EXECUTED"), approved));
    let flying = scene.claim_accepted(&claimed).await.is(StatusCode::OK);
    let returned = scene
        .settle(&claimed, "returned", Some(&flying.release_id()))
        .await;
    assert_eq!(returned.asked(), (false, "APPROVED"));
    assert_eq!(scene.claim(&claimed).await.asked(), (true, "EXECUTED"));
    assert_eq!(
        scene.read(&waiting).await.is(StatusCode::OK).status_word(),
        "PENDING"
    );
    refused(&scene, &named("ann"), "1", OF_REQUESTER).await;

    scene.decide(&waiting, "REJECTED").await.is(StatusCode::OK);
    filed(&scene, &named("ann"), "6").await;
}

#[tokio::test]
async fn what_has_lapsed_does_not_wait_and_what_has_no_deadline_does() {
    let scene = scene().await;
    filed(&scene, &named("ann"), "1").await;
    filed(&scene, &named("ann"), "2").await;
    scene.clock.advance_sec(PENDING_TTL - 1);
    refused(&scene, &named("ann"), "3", OF_REQUESTER).await;
    scene.clock.advance_sec(1);
    // The same statement over again, whose row is still there, and another one.
    filed(&scene, &named("ann"), "1").await;
    filed(&scene, &named("ann"), "3").await;
    refused(&scene, &named("ann"), "2", OF_REQUESTER).await;

    scene.clock.advance_sec(PENDING_TTL);
    for name in ["1", "2"] {
        let mut body = filing_of(&named("ann"), &statement(name));
        body["approval_rule"] = json!(UNLIMITED);
        scene.post(&body).await.is(StatusCode::CREATED);
    }
    scene.clock.advance_sec(1_000_000);
    refused(&scene, &named("ann"), "3", OF_REQUESTER).await;
}

#[tokio::test]
async fn the_caps_hold_over_a_restart() {
    let mut scene = scene().await;
    filed(&scene, &named("ann"), "1").await;
    filed(&scene, &named("ann"), "2").await;
    scene.restart().await;
    refused(&scene, &named("ann"), "3", OF_REQUESTER).await;
}

#[tokio::test]
async fn a_refusal_is_one_warning_that_names_the_caller_and_no_statement() {
    let scene = scene().await;
    let caller = format!("ann\u{202e}-{}", uuid::Uuid::new_v4().simple());
    filed(&scene, &named(&caller), "1").await;
    filed(&scene, &named(&caller), "2").await;
    refused(&scene, &named(&caller), "3", OF_REQUESTER).await;

    let shown = caller.replace('\u{202e}', r"\u{202e}");
    let logged = String::from_utf8_lossy(&log().lock().expect("the log")).into_owned();
    let lines: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains(&shown))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for part in [
        "WARN",
        "filing refused: max_waiting_per_requester is 2, and as many wait",
        "billing-api",
        "billing-approvers",
    ] {
        assert!(lines[0].contains(part), "{lines:#?}");
    }
    assert!(!lines[0].contains(MARK), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_filings_at_once_on_two_planes_do_not_pass_a_cap() {
    let lines = "max_waiting: 30\nmax_waiting_per_requester: 20\n";
    let scene = Arc::new(Scene::configured(lines).await);
    let other = Arc::new(scene.beside().await);
    let filings: Vec<_> = (0..100)
        .map(|n| {
            let caller = named(&format!("caller-{}", n % 2));
            let body = filing_of(&caller, &statement(&n.to_string()));
            let scene = if n % 3 == 0 { &other } else { &scene }.clone();
            tokio::spawn(async move { scene.post(&body).await.status })
        })
        .collect();
    let mut answers = Vec::new();
    for filing in filings {
        answers.push(filing.await.expect("no panic"));
    }

    let count = |code| answers.iter().filter(|status| **status == code).count();
    assert_eq!(count(StatusCode::CREATED), 30);
    assert_eq!(count(StatusCode::TOO_MANY_REQUESTS), 70);
    assert_eq!(rows(&scene).await, 30);
}

#[derive(Clone, Debug)]
enum Step {
    Advance(u32),
    Claim(usize),
    Decide(usize, &'static str),
    File(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1..70_u32).prop_map(Step::Advance),
        2 => (0..4_usize).prop_map(Step::Claim),
        2 => (0..4_usize, prop::sample::select(vec!["APPROVED", "REJECTED"]))
            .prop_map(|(nth, to)| Step::Decide(nth, to)),
        8 => (0..3_usize, 0..6_usize).prop_map(|(caller, which)| Step::File(caller, which)),
    ]
}

struct Review {
    id: String,
    caller: usize,
    statement: usize,
    status: &'static str,
    deadline: u32,
}

#[derive(Default)]
struct Model {
    now: u32,
    reviews: Vec<Review>,
}

impl Model {
    fn lapse(&mut self) {
        for review in &mut self.reviews {
            if matches!(review.status, "PENDING" | "APPROVED") && review.deadline <= self.now {
                review.status = "EXPIRED";
            }
        }
    }

    fn newest(&mut self, nth: usize) -> Option<&mut Review> {
        self.lapse();
        self.reviews.iter_mut().rev().nth(nth)
    }

    fn waiting(&self, caller: Option<usize>) -> usize {
        let pending = self
            .reviews
            .iter()
            .filter(|review| review.status == "PENDING");
        pending
            .filter(|review| caller.is_none_or(|caller| review.caller == caller))
            .count()
    }

    /// What is due to a filing: its status code and whether it runs.
    fn filing(&mut self, caller: usize, statement: usize) -> (StatusCode, bool) {
        self.lapse();
        let live = self.reviews.iter_mut().find(|review| {
            review.statement == statement && matches!(review.status, "PENDING" | "APPROVED")
        });
        if let Some(review) = live {
            let runs = review.status == "APPROVED";
            if runs {
                review.status = "EXECUTED";
            }
            return (StatusCode::OK, runs);
        }
        if self.waiting(Some(caller)) >= 2 || self.waiting(None) >= 3 {
            (StatusCode::TOO_MANY_REQUESTS, false)
        } else {
            (StatusCode::CREATED, false)
        }
    }
}

async fn run(steps: &[Step]) {
    let scene = scene().await;
    let callers = [named("ann"), from("10.0.0.1:1"), Value::Null];
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Advance(seconds) => {
                scene.clock.advance_sec(*seconds);
                model.now += seconds;
            }
            Step::Claim(nth) => {
                let Some(review) = model.newest(*nth) else {
                    continue;
                };
                let runs = review.status == "APPROVED";
                if runs {
                    review.status = "EXECUTED";
                }
                assert_eq!(scene.claim(&review.id).await.asked(), (runs, review.status));
            }
            Step::Decide(nth, to) => {
                let now = model.now;
                let Some(review) = model.newest(*nth) else {
                    continue;
                };
                let answer = scene.decide(&review.id, to).await;
                assert_eq!(answer.status == StatusCode::OK, review.status == "PENDING");
                if review.status == "PENDING" {
                    (review.status, review.deadline) = (to, now + APPROVAL_TTL);
                }
            }
            Step::File(caller, which) => {
                let expected = model.filing(*caller, *which);
                let answer = file(&scene, &callers[*caller], &which.to_string()).await;
                let runs = answer.json["forward"] == true;
                assert_eq!((answer.status, runs), expected);
                if answer.status == StatusCode::CREATED {
                    model.reviews.push(Review {
                        id: answer.id(),
                        caller: *caller,
                        statement: *which,
                        status: "PENDING",
                        deadline: model.now + PENDING_TTL,
                    });
                }
            }
        }
        model.lapse();
        assert!(model.waiting(None) <= 3 && (0..3).all(|n| model.waiting(Some(n)) <= 2));
        assert_eq!(rows(&scene).await, model.reviews.len());
    }
    scene.plane.close().await;
}

#[test]
fn any_order_of_events_keeps_to_the_caps_and_refuses_nothing_else() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(step(), 1..50), |steps| {
        runtime.block_on(run(&steps));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
