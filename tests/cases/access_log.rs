//! What the access log of `envoy/envoy.yaml` prints of a decision. The simulator writes a form of its own, so these run on Envoy.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::{Kind, Reply};
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::json;
use tokio::runtime::Builder;

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

#[test]
fn the_access_log_names_the_decision_its_rule_and_the_approval() {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let rules = json!([
            {"name": "no-admin", "match": {"paths": ["/admin/**"]}, "action": "deny"},
            {"match": {"paths": ["/nameless/**"]}, "action": "deny"},
            {"name": "pay", "match": {"paths": ["/payments/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
        ]);
        let mut policy = policy::with_rules(rules);
        policy["poll_interval_ms"] = 100.into();
        let scene = Scene::lying(Host::Envoy).policy(policy).start().await;
        let lies = scene.lies();
        lies.on(Kind::Filing, Reply::review(201, false, ID, "PENDING"));
        lies.next(Kind::Filing, Reply::review(201, false, ID, "PENDING"));
        lies.next(Kind::Filing, Reply::review(200, true, ID, "EXECUTED"));
        lies.on(Kind::Claim, Reply::review(200, true, ID, "EXECUTED"));

        answer::pending(&scene.post("/payments/1", &scene.body()).await);
        answer::passed(&scene.post("/payments/2", &scene.body()).await);
        answer::policy_with_status(&scene.get("/admin").await, 403);
        answer::policy_with_status(&scene.get("/nameless").await, 403);
        answer::passed(&scene.get("/free").await);
        for (target, status) in [
            ("/payments/held", "APPROVED"),
            ("/payments/held-in-vain", "REJECTED"),
        ] {
            lies.on(Kind::List, Reply::list(&[(ID, status)]));
            let held = [("x-hoop-approval-mode", "hold")];
            scene
                .send(&request("POST", target, &held, Some(b"x")))
                .await;
        }
        lies.on(Kind::Filing, Reply::typed(500, "text/plain", "no"));
        answer::not_filed(&scene.post("/payments/unfiled", b"x").await);

        for (path, end) in [
            ("/payments/1", format!("hoop=pending rule=pay approval={ID}")),
            ("/payments/2", format!("hoop=released rule=pay approval={ID}")),
            ("/admin", "hoop=deny_rule rule=no-admin approval=-".to_owned()),
            ("/nameless", "hoop=deny_rule rule=rules[1] approval=-".to_owned()),
            ("/payments/held", format!("hoop=released rule=pay approval={ID}")),
            (
                "/payments/held-in-vain",
                format!("hoop=rejected rule=pay approval={ID}"),
            ),
            ("/payments/unfiled", "hoop=plane_fault rule=pay approval=-".to_owned()),
            ("/free", "hoop=- rule=- approval=-".to_owned()),
        ] {
            wait::until(&format!("the line of {path} ends in {end}"), async || {
                let log = scene.proxy.log();
                let mut lines = log.lines();
                lines
                    .any(|line| line.contains(&format!(" {path} ")) && line.ends_with(&end))
                    .then_some(())
            })
            .await;
        }
        scene.finish(3).await;
    });
}
