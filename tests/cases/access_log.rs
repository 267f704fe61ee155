//! What the access log of `envoy/envoy.yaml` prints of a decision. The simulator writes a form of its own, so these run on Envoy.

use hoop_tests::answer;
use hoop_tests::host::Host;
use hoop_tests::lying_plane::Reply;
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
            {"name": "pay", "match": {"paths": ["/payments/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
        ]);
        let scene = Scene::lying(Host::Envoy)
            .policy(policy::with_rules(rules))
            .start()
            .await;
        scene.lies().once(Reply::review(201, false, ID, "PENDING"));
        scene.lies().once(Reply::review(200, true, ID, "EXECUTED"));

        answer::pending(&scene.post("/payments/1", &scene.body()).await);
        answer::passed(&scene.post("/payments/2", &scene.body()).await);
        answer::policy_with_status(&scene.get("/admin").await, 403);
        answer::passed(&scene.get("/free").await);

        for (path, end) in [
            ("/payments/1", format!("hoop=pending rule=pay approval={ID}")),
            ("/payments/2", format!("hoop=released rule=pay approval={ID}")),
            ("/admin", "hoop=deny_rule rule=no-admin approval=-".to_owned()),
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
        scene.finish(2).await;
    });
}
