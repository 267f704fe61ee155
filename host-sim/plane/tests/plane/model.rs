//! Owns the comparison of the plane with a model of a dozen lines, over random orders of events; the scene carries them
//! out. The model must not share code with the plane.

use std::collections::HashMap;

use axum::http::StatusCode;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use crate::scene::{APPROVAL_TTL, PENDING_TTL, Scene, statement};

#[derive(Clone, Debug)]
enum Step {
    Advance(u32),
    Approve(usize),
    Claim(usize),
    File(usize),
    Reject(usize),
    Revoke(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1..70_u32).prop_map(Step::Advance),
        3 => (0..6_usize).prop_map(Step::Approve),
        4 => (0..6_usize).prop_map(Step::Claim),
        5 => (0..2_usize).prop_map(Step::File),
        1 => (0..6_usize).prop_map(Step::Reject),
        1 => (0..6_usize).prop_map(Step::Revoke),
    ]
}

struct Review {
    id: String,
    statement: usize,
    status: &'static str,
    deadline: u32,
}

#[derive(Default)]
struct Model {
    now: u32,
    reviews: Vec<Review>,
    approvals: HashMap<String, u32>,
    releases: HashMap<String, u32>,
}

impl Model {
    /// The nth review from the newest, after time has done its part.
    fn pick(&mut self, nth: usize) -> Option<&mut Review> {
        for review in &mut self.reviews {
            if matches!(review.status, "PENDING" | "APPROVED") && review.deadline <= self.now {
                review.status = "EXPIRED";
            }
        }
        self.reviews.iter_mut().rev().nth(nth)
    }

    fn live(&mut self, statement: usize) -> Option<&mut Review> {
        self.pick(0);
        self.reviews.iter_mut().find(|review| {
            review.statement == statement && matches!(review.status, "PENDING" | "APPROVED")
        })
    }

    /// What holds whatever the rules are: nothing runs without an approval, and nothing runs twice on one.
    fn released(&mut self, id: &str) {
        let releases = self.releases.entry(id.to_owned()).or_default();
        *releases += 1;
        assert_eq!((*releases, self.approvals.get(id)), (1, Some(&1)));
    }
}

async fn file(scene: &Scene, model: &mut Model, which: usize, bytes: &[u8]) {
    let answer = scene.file(bytes).await;
    let id = answer.id();
    let expected = match model.live(which) {
        None => {
            assert!(model.reviews.iter().all(|review| review.id != id));
            let deadline = model.now + PENDING_TTL;
            model.reviews.push(Review {
                id: id.clone(),
                statement: which,
                status: "PENDING",
                deadline,
            });
            (StatusCode::CREATED, (false, "PENDING"))
        }
        Some(review) => {
            assert_eq!(review.id, id);
            let forward = review.status == "APPROVED";
            if forward {
                review.status = "EXECUTED";
            }
            (StatusCode::OK, (forward, review.status))
        }
    };
    assert_eq!((answer.status, answer.asked()), expected);
    if answer.asked().0 {
        model.released(&id);
    }
}

async fn claim(scene: &Scene, model: &mut Model, nth: usize) {
    let Some(review) = model.pick(nth) else {
        return;
    };
    let forward = review.status == "APPROVED";
    if forward {
        review.status = "EXECUTED";
    }
    let (id, status) = (review.id.clone(), review.status);
    assert_eq!(scene.claim(&id).await.asked(), (forward, status));
    if forward {
        model.released(&id);
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
            Step::Claim(nth) => claim(scene, &mut model, *nth).await,
            Step::File(which) => {
                let bytes = statement(&format!("{case}/{which}"));
                file(scene, &mut model, *which, &bytes).await;
            }
            Step::Reject(nth) => decide(scene, &mut model, *nth, "PENDING", "REJECTED").await,
            Step::Revoke(nth) => decide(scene, &mut model, *nth, "APPROVED", "REVOKED").await,
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
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(step(), 1..40), |steps| {
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
