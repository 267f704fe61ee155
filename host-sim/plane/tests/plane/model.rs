//! Owns the comparison of the plane with a model of a dozen lines, over random orders of events; the scene carries them
//! out. The model must not share code with the plane.

use std::collections::HashMap;

use axum::http::StatusCode;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use crate::scene::{APPROVAL_TTL, Answer, PENDING_TTL, PROCESSING_TTL, Scene, statement};

#[derive(Clone, Debug)]
enum Step {
    Advance(u32),
    Approve(usize),
    Claim(usize, bool),
    File(usize, bool),
    Reject(usize),
    Revoke(usize),
    Settle(usize, &'static str, Meaning),
}

/// Which release a settlement speaks of.
#[derive(Clone, Debug)]
enum Meaning {
    /// One of those that this review had, perhaps the last one.
    Earlier(usize),
    /// The last one.
    Last,
    /// None in particular.
    Whichever,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1..70_u32).prop_map(Step::Advance),
        3 => (0..4_usize).prop_map(Step::Approve),
        4 => (0..4_usize, prop::bool::ANY).prop_map(|(nth, accepted)| Step::Claim(nth, accepted)),
        5 => (0..2_usize, prop::bool::ANY).prop_map(|(which, accepted)| Step::File(which, accepted)),
        1 => (0..4_usize).prop_map(Step::Reject),
        1 => (0..4_usize).prop_map(Step::Revoke),
        5 => (0..4_usize, prop::sample::select(vec!["returned", "spent"]), meaning())
            .prop_map(|(nth, outcome, meaning)| Step::Settle(nth, outcome, meaning)),
    ]
}

fn meaning() -> impl Strategy<Value = Meaning> {
    prop_oneof![
        1 => (0..3_usize).prop_map(Meaning::Earlier),
        3 => Just(Meaning::Last),
        1 => Just(Meaning::Whichever),
    ]
}

struct Review {
    id: String,
    statement: usize,
    status: &'static str,
    deadline: u32,
    /// Until when it may be settled, while it is in flight.
    settle_by: u32,
    releases: Vec<String>,
    /// Whether the last release was one that is settled.
    flown: bool,
}

impl Review {
    /// Uses the approval for one sender.
    fn release(&mut self, accepted: bool, now: u32) {
        self.status = if accepted { "PROCESSING" } else { "EXECUTED" };
        self.settle_by = now + PROCESSING_TTL;
        self.flown = accepted;
    }
}

#[derive(Default)]
struct Model {
    now: u32,
    reviews: Vec<Review>,
    approvals: HashMap<String, u32>,
    /// Runs that count, or may: releases less what was given back.
    runs: HashMap<String, u32>,
}

impl Model {
    /// The nth review from the newest, after time has done its part.
    fn pick(&mut self, nth: usize) -> Option<&mut Review> {
        for review in &mut self.reviews {
            if matches!(review.status, "PENDING" | "APPROVED") && review.deadline <= self.now {
                review.status = "EXPIRED";
            }
            if review.status == "PROCESSING" && review.settle_by <= self.now {
                review.status = "EXECUTED";
            }
        }
        self.reviews.iter_mut().rev().nth(nth)
    }

    fn live(&mut self, statement: usize) -> Option<&mut Review> {
        self.pick(0);
        self.reviews.iter_mut().find(|review| {
            review.statement == statement
                && matches!(review.status, "PENDING" | "APPROVED" | "PROCESSING")
        })
    }

    /// What holds whatever the rules are: nothing runs without an approval, and nothing runs twice on one, unless the run
    /// before was given back.
    fn released(&mut self, id: &str, answer: &Answer) {
        let runs = self.runs.entry(id.to_owned()).or_default();
        *runs += 1;
        assert_eq!((*runs, self.approvals.get(id)), (1, Some(&1)));
        let release = answer.json["release_id"].as_str().map(str::to_owned);
        let review = self.reviews.iter_mut().find(|review| review.id == id);
        review.expect("a review").releases.extend(release);
    }
}

async fn file(scene: &Scene, model: &mut Model, which: usize, bytes: &[u8], accepted: bool) {
    let answer = if accepted {
        scene.file_accepted(bytes).await
    } else {
        scene.file(bytes).await
    };
    let (id, now) = (answer.id(), model.now);
    let expected = match model.live(which) {
        None => {
            assert!(model.reviews.iter().all(|review| review.id != id));
            let deadline = model.now + PENDING_TTL;
            model.reviews.push(Review {
                id: id.clone(),
                statement: which,
                status: "PENDING",
                deadline,
                settle_by: 0,
                releases: Vec::new(),
                flown: false,
            });
            (StatusCode::CREATED, (false, "PENDING"))
        }
        Some(review) => {
            assert_eq!(review.id, id);
            let forward = review.status == "APPROVED";
            if forward {
                review.release(accepted, now);
            }
            (StatusCode::OK, (forward, review.status))
        }
    };
    assert_eq!((answer.status, answer.asked()), expected);
    if answer.asked().0 {
        model.released(&id, &answer);
    }
}

async fn claim(scene: &Scene, model: &mut Model, nth: usize, accepted: bool) {
    let now = model.now;
    let Some(review) = model.pick(nth) else {
        return;
    };
    let forward = review.status == "APPROVED";
    if forward {
        review.release(accepted, now);
    }
    let (id, status) = (review.id.clone(), review.status);
    let answer = if accepted {
        scene.claim_accepted(&id).await
    } else {
        scene.claim(&id).await
    };
    assert_eq!(answer.asked(), (forward, status));
    if forward {
        model.released(&id, &answer);
    }
}

async fn settle(scene: &Scene, model: &mut Model, nth: usize, outcome: &str, meaning: &Meaning) {
    let Some(review) = model.pick(nth) else {
        return;
    };
    let release = match meaning {
        Meaning::Earlier(nth) => review.releases.get(*nth),
        Meaning::Last => review.releases.last(),
        Meaning::Whichever => None,
    }
    .cloned();
    let of_the_last = match &release {
        Some(release) => review.flown && review.releases.last() == Some(release),
        None => true,
    };
    let before = review.status;
    let given_back = matches!(before, "APPROVED" | "REVOKED" | "EXPIRED") && review.flown;
    let taken = of_the_last && before == "PROCESSING";
    let repeated = of_the_last
        && match outcome {
            "spent" => before == "EXECUTED",
            _ => given_back,
        };
    if taken && outcome == "spent" {
        review.status = "EXECUTED";
    } else if taken {
        review.status = "APPROVED";
    }
    let id = review.id.clone();
    let answer = scene.settle(&id, outcome, release.as_deref()).await;
    let status = model.pick(nth).map_or("", |review| review.status);
    if taken || repeated {
        assert_eq!(
            (answer.status, answer.asked()),
            (StatusCode::OK, (false, status))
        );
    } else {
        answer.conflicts(status);
    }
    if taken && outcome == "returned" {
        *model.runs.entry(id).or_default() -= 1;
    }
}

async fn decide(scene: &Scene, model: &mut Model, nth: usize, from: &str, to: &'static str) {
    let now = model.now;
    let Some(review) = model.pick(nth) else {
        return;
    };
    let expected = match review.status {
        standing if standing == from => {
            review.status = to;
            if to == "APPROVED" {
                review.deadline = now + APPROVAL_TTL;
            }
            StatusCode::OK
        }
        "EXPIRED" => StatusCode::BAD_REQUEST,
        _ if to == "REVOKED" => StatusCode::BAD_REQUEST,
        _ => StatusCode::CONFLICT,
    };
    let (id, standing) = (review.id.clone(), review.status);
    let answer = scene.decide(&id, to).await.is(expected);
    assert_eq!(answer.status_word(), standing);
    if expected == StatusCode::OK && to == "APPROVED" {
        *model.approvals.entry(id).or_default() += 1;
    }
}

async fn run(scene: &Scene, case: &str, steps: &[Step]) {
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Advance(seconds) => {
                scene.clock.advance_sec(*seconds);
                model.now += seconds;
            }
            Step::Approve(nth) => decide(scene, &mut model, *nth, "PENDING", "APPROVED").await,
            Step::Claim(nth, accepted) => claim(scene, &mut model, *nth, *accepted).await,
            Step::File(which, accepted) => {
                let bytes = statement(&format!("{case}/{which}"));
                file(scene, &mut model, *which, &bytes, *accepted).await;
            }
            Step::Reject(nth) => decide(scene, &mut model, *nth, "PENDING", "REJECTED").await,
            Step::Revoke(nth) => decide(scene, &mut model, *nth, "APPROVED", "REVOKED").await,
            Step::Settle(nth, outcome, meaning) => {
                settle(scene, &mut model, *nth, outcome, meaning).await;
            }
        }
        model.pick(0);
        for review in &model.reviews {
            assert_eq!(scene.read(&review.id).await.status_word(), review.status);
        }
    }
}

#[test]
fn any_order_of_events_releases_once_for_each_approval_and_never_without() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let scene = runtime.block_on(Scene::new());
    let config = Config {
        cases: 96,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(step(), 1..50), |steps| {
        // One plane serves all cases; each has statements of its own.
        let case = uuid::Uuid::new_v4().simple().to_string();
        runtime.block_on(run(&scene, &case, &steps));
        Ok(())
    });
    runtime.block_on(scene.plane.close());
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
