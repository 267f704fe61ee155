//! Conditions of rules on headers and query parameters, and what a rule may say for itself: its mode and its message. Whatever
//! has more than one reading makes the gate stricter.

use hoop_tests::answer;
use hoop_tests::client::Answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::Scene;
use hoop_tests::wait;
use serde_json::{Value, json};

on_both_hosts! {
    a_holding_rule_takes_a_header_by_each_comparison_without_letter_case,
    an_allowing_rule_wants_every_value_of_a_header_to_fit_in_its_own_letters,
    crumbs_of_a_cookie_are_one_header_on_every_http_version,
    a_header_is_found_among_a_thousand_others,
    all_conditions_of_a_rule_must_hold,
    a_holding_rule_takes_a_query_parameter_by_each_comparison_decoded_once,
    a_query_parameter_with_two_readings_is_refused_by_holding_and_denying_rules,
    a_query_parameter_with_two_readings_never_meets_an_allowing_rule,
    a_name_with_brackets_or_an_underscore_is_found_in_any_spelling,
    a_header_with_more_parts_than_can_be_told_apart_is_refused_under_rules_that_look_into_it,
    a_rule_may_return_beside_one_that_holds,
    a_rule_says_its_own_message_in_every_kind_of_refusal,
    of_a_thousand_rules_the_first_that_meets_decides,
    of_ten_thousand_rules_the_first_that_meets_decides,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// A scene whose plane has filed everything and decided nothing.
async fn scene_with(host: Host, rules: Value) -> Scene {
    let policy = policy::with_rules(rules);
    let scene = Scene::lying(host).policy(policy).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    scene
}

fn hold(path: &str, conditions: Value) -> Value {
    let mut matched = conditions;
    matched["paths"] = json!([path]);
    json!({"match": matched, "action": "require_approval", "approval_rule": APPROVAL_RULE})
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Denied,
    Doubtful,
    Held,
    Passed,
}
use Fate::{Denied, Doubtful, Held, Passed};

fn fate(answer: &Answer) -> Fate {
    match answer.status {
        200 => {
            answer::passed(answer);
            Passed
        }
        400 => {
            answer::policy_with_status(answer, 400);
            Doubtful
        }
        _ if answer.header("x-hoop-denied").as_deref() == Some("review") => {
            answer::pending(answer);
            Held
        }
        _ => {
            answer::policy_with_status(answer, 403);
            Denied
        }
    }
}

/// Sends each request over both HTTP versions and ends the scene once each has met its fate.
async fn meet(scene: Scene, table: &[(&str, &[&[u8]], Fate)]) {
    let mut wrong = Vec::new();
    let mut passed = 0;
    let h2 = scene.connect_h2().await;
    for (target, lines, expected) in table {
        let mut call = format!("GET {target} HTTP/1.1\r\nhost: billing.example\r\n").into_bytes();
        let mut over_h2 = H2Request::new("GET", target, None);
        for line in *lines {
            call.extend_from_slice(line);
            call.extend_from_slice(b"\r\n");
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let name = parts.next().expect("a name").to_ascii_lowercase();
            let value = parts.next().expect("a value").trim_ascii();
            let name = String::from_utf8(name).expect("a name is ASCII");
            over_h2.headers.push((name, value.to_vec()));
        }
        call.extend_from_slice(b"\r\n");
        for (version, answer) in [
            ("HTTP/1.1", scene.send(&call).await),
            ("HTTP/2", h2.send(&over_h2).await),
        ] {
            let found = fate(&answer);
            passed += usize::from(found == Passed);
            if found != *expected {
                let call = call.escape_ascii();
                wrong.push(format!("{version}: {found:?}, not {expected:?}: {call}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let held = table.iter().filter(|(_, _, fate)| *fate == Held).count();
    assert_eq!(scene.lies().calls().len(), 2 * held);
    scene.finish(passed).await;
}

async fn a_holding_rule_takes_a_header_by_each_comparison_without_letter_case(host: Host) {
    let header = |comparison: &str, wanted: Value| json!({"headers": [{"name": "X-Env", comparison: wanted}]});
    let rules = json!([
        hold("/equals", header("equals", json!("prod"))),
        hold("/in", header("in", json!(["prod", "Stage"]))),
        hold("/glob", header("glob", json!("pro*-eu"))),
        hold("/there", header("exists", json!(true))),
        hold("/absent", header("exists", json!(false))),
    ]);
    let scene = scene_with(host, rules).await;
    meet(
        scene,
        &[
            ("/equals", &[b"x-env: prod"], Held),
            ("/equals", &[b"X-ENV: PROD"], Held),
            ("/equals", &[b"x-env:   prod  "], Held),
            (
                "/equals",
                &[b"x-env: dev", b"x-other: x", b"x-env: prod"],
                Held,
            ),
            ("/equals", &[b"x-env: prod", b"x-env: dev"], Held),
            ("/equals", &[b"x-env: production"], Passed),
            // A list is one value.
            ("/equals", &[b"x-env: dev,prod"], Held),
            ("/equals", &[b"x-env: \xff\xfe"], Passed),
            ("/equals", &[b"x-env: prod\xff"], Passed),
            ("/equals", &[b"x-env: \xff", b"x-env: prod"], Held),
            ("/equals", &[b"x-env:"], Passed),
            ("/equals", &[b"x-envs: prod"], Passed),
            ("/equals", &[], Passed),
            ("/in", &[b"x-env: stage"], Held),
            ("/in", &[b"x-env: prod"], Held),
            ("/in", &[b"x-env: dev"], Passed),
            ("/glob", &[b"x-env: prod-eu"], Held),
            ("/glob", &[b"x-env: PRO-EU"], Held),
            ("/glob", &[b"x-env: pro\xff\x80-eu"], Held),
            ("/glob", &[b"x-env: dev, pro-eu"], Held),
            ("/glob", &[b"x-env: prod-eu2"], Passed),
            ("/there", &[b"x-env: \xff"], Held),
            ("/there", &[b"x-env:"], Held),
            ("/there", &[b"x-env: a", b"x-env: b"], Held),
            ("/there", &[b"x-other: a"], Passed),
            ("/absent", &[], Held),
            ("/absent", &[b"x-env:"], Passed),
            ("/absent", &[b"x-env: \xff"], Passed),
        ],
    )
    .await;
}

async fn an_allowing_rule_wants_every_value_of_a_header_to_fit_in_its_own_letters(host: Host) {
    let header = |comparison: &str, wanted: Value| json!({"paths": [format!("/{comparison}")], "headers": [{"name": "x-env", comparison: wanted}]});
    let rules = json!([
        {"match": header("equals", json!("test")), "action": "allow"},
        {"match": header("glob", json!("test-*")), "action": "allow"},
        {"match": header("exists", json!(true)), "action": "allow"},
        {"action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let scene = scene_with(host, rules).await;
    meet(
        scene,
        &[
            ("/equals", &[b"x-env: test"], Passed),
            ("/equals", &[b"x-env: test", b"x-env: test"], Passed),
            ("/equals", &[b"x-env: Test"], Held),
            ("/equals", &[b"x-env: test", b"x-env: prod"], Held),
            ("/equals", &[b"x-env: prod", b"x-env: test"], Held),
            ("/equals", &[b"x-env: test", b"x-env: \xff"], Held),
            ("/equals", &[b"x-env: test,prod"], Held),
            ("/equals", &[], Held),
            ("/glob", &[b"x-env: test-1"], Passed),
            ("/glob", &[b"x-env: test-1", b"x-env: prod"], Held),
            ("/exists", &[b"x-env: \xff"], Passed),
            ("/exists", &[], Held),
        ],
    )
    .await;
}

async fn crumbs_of_a_cookie_are_one_header_on_every_http_version(host: Host) {
    let cookie = json!({"headers": [{"name": "cookie", "glob": "*role=admin*"}]});
    let scene = scene_with(host, json!([hold("/**", cookie)])).await;
    meet(
        scene,
        &[
            ("/a", &[b"cookie: a=1; role=admin; b=2"], Held),
            ("/a", &[b"cookie: a=1", b"cookie: role=admin"], Held),
            ("/a", &[b"cookie: role=admin", b"cookie: a=1"], Held),
            ("/a", &[b"cookie: a=1", b"cookie: role=user"], Passed),
        ],
    )
    .await;
}

async fn a_header_is_found_among_a_thousand_others(host: Host) {
    let limit = |manager: &mut Value| {
        manager["common_http_protocol_options"]["max_headers_count"] = 3000.into();
        manager["max_request_headers_kb"] = 96.into();
    };
    let prod = json!({"headers": [{"name": "x-env", "equals": "prod"}]});
    let absent = json!({"headers": [{"name": "x-env", "exists": false}]});
    let rules = json!([hold("/prod", prod), hold("/absent", absent)]);
    let scene = Scene::lying(host)
        .policy(policy::with_rules(rules))
        .edit_manager(limit)
        .start()
        .await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let call = async |path: &str, count: usize, last: &str| {
        let many = (0..count).map(|number| format!("x-many-{number}: {number}\r\n"));
        let many: String = many.collect();
        let call = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{many}{last}\r\n\r\n");
        scene.send(call.as_bytes()).await
    };
    for count in [1000, 1500, 2900] {
        answer::pending(&call("/prod", count, "x-env: prod").await);
        answer::passed(&call("/prod", count, "x-env: dev").await);
        answer::pending(&call("/absent", count, "x-other: 1").await);
        answer::passed(&call("/absent", count, "x-env: dev").await);
    }
    assert_eq!(scene.lies().calls().len(), 6);
    scene.finish(6).await;
}

async fn all_conditions_of_a_rule_must_hold(host: Host) {
    let both = json!({
        "methods": ["GET"],
        "headers": [{"name": "x-env", "equals": "prod"}, {"name": "x-tier", "exists": true}],
        "query": [{"name": "mode", "equals": "live"}],
    });
    let scene = scene_with(host, json!([hold("/a/**", both)])).await;
    meet(
        scene,
        &[
            ("/a?mode=live", &[b"x-env: prod", b"x-tier: 1"], Held),
            ("/b?mode=live", &[b"x-env: prod", b"x-tier: 1"], Passed),
            ("/a?mode=test", &[b"x-env: prod", b"x-tier: 1"], Passed),
            ("/a?mode=live", &[b"x-env: dev", b"x-tier: 1"], Passed),
            ("/a?mode=live", &[b"x-env: prod"], Passed),
            // A doubt matters only where the rest holds.
            ("/a?MODE=live", &[b"x-env: prod", b"x-tier: 1"], Doubtful),
            ("/a?MODE=live", &[b"x-env: prod"], Passed),
        ],
    )
    .await;
}

async fn a_holding_rule_takes_a_query_parameter_by_each_comparison_decoded_once(host: Host) {
    let query =
        |comparison: &str, wanted: Value| json!({"query": [{"name": "mode", comparison: wanted}]});
    let rules = json!([
        hold("/equals", query("equals", json!("live now!"))),
        hold("/in", query("in", json!(["live", "50%"]))),
        hold("/glob", query("glob", json!("li*"))),
        hold("/there", query("exists", json!(true))),
        hold("/absent", query("exists", json!(false))),
    ]);
    let scene = scene_with(host, rules).await;
    meet(
        scene,
        &[
            ("/equals?mode=live+now!", &[], Held),
            ("/equals?mode=live%20now%21", &[], Held),
            ("/equals?a=1&mode=%6c%69%76%65+NOW!&b=2", &[], Held),
            ("/equals?mode=live%2Bnow!", &[], Passed),
            ("/equals?mode=live", &[], Passed),
            ("/equals?mode=", &[], Passed),
            ("/equals?mode", &[], Passed),
            ("/equals?", &[], Passed),
            ("/equals", &[], Passed),
            ("/equals?model=live+now!", &[], Passed),
            ("/equals?a=mode=live+now!", &[], Passed),
            ("/equals?mode=%ff", &[], Passed),
            ("/equals?a;b&mode=live+now!&c;d", &[], Held),
            ("/in?mode=live", &[], Held),
            ("/in?mode=50%25", &[], Held),
            ("/in?mode=test", &[], Passed),
            ("/glob?mode=limited", &[], Held),
            ("/glob?mode=LI", &[], Held),
            ("/glob?mode=al", &[], Passed),
            ("/there?mode", &[], Held),
            ("/there?mode=x", &[], Held),
            ("/there?mode=x&mode=y", &[], Held),
            ("/there?other=x", &[], Passed),
            ("/absent", &[], Held),
            ("/absent?other=x", &[], Held),
            ("/absent?mode=x", &[], Passed),
        ],
    )
    .await;
}

/// Queries in which some server finds `mode=live` and another does not.
const DOUBTFUL: [&str; 37] = [
    "mode=test&mode=live",
    "mode=live&mode=test",
    "mode=live&mode=live",
    "m%6fde=live",
    "%6Dode=live",
    "MODE=live",
    "Mode=test&mode=live",
    "mode[]=live",
    "mode[x]=live",
    "mode%5B%5D=live",
    "x=1;mode=live",
    "mode=test;mode=live",
    "mode=%256cive",
    "mode=%zz",
    "mode=live%",
    "+mode=live",
    "?mode=live",
    "x%26mode=live",
    "x%3bmode=live",
    "mode%3Dlive",
    "mode=live%00",
    // qs takes brackets apart, Rack drops them at either end.
    "[mode]=live",
    "%5Bmode%5D=live",
    "mode]=live",
    "[[mode]=live",
    "mode=test&[mode]=live",
    "mode=live&mode]=test",
    "mode=live&[mode]=test",
    "x%26[mode]=live",
    "mode=live]=test",
    // PHP ends a name at a NUL.
    "mode%00x=live",
    "mode=live&mode%00x=test",
    // Nobody can tell what a lenient decoder makes of these.
    "%5Tode=live",
    "%C1%ADode=live",
    "mode=live&%C1%ADode=test",
    // Old versions of qs take it for the prototype of all parameters.
    "__proto__[mode]=live",
    "mode=test&__proto__[mode]=live",
];

async fn a_query_parameter_with_two_readings_is_refused_by_holding_and_denying_rules(host: Host) {
    let live = json!({"query": [{"name": "mode", "equals": "live"}]});
    let denied = json!({"paths": ["/deny"], "query": [{"name": "mode", "equals": "live"}]});
    let rules = json!([hold("/hold", live), {"match": denied, "action": "deny"}]);
    let scene = scene_with(host, rules).await;
    let targets = |path: &str| DOUBTFUL.map(|query| format!("{path}?{query}"));
    let doubtful: Vec<String> = [targets("/hold"), targets("/deny")].concat();
    let mut table: Vec<(&str, &[&[u8]], Fate)> = doubtful
        .iter()
        .map(|target| (target.as_str(), &[][..], Doubtful))
        .collect();
    table.push(("/deny?mode=live", &[], Denied));
    table.push(("/deny?mode=live&user[mode]=test&mode_x=1", &[], Denied));
    table.push(("/deny?next=%2Fitems%3Fmode%3Dlive%26a%3D1", &[], Passed));
    table.push(("/deny?mode=test", &[], Passed));
    meet(scene, &table).await;
}

async fn a_query_parameter_with_two_readings_never_meets_an_allowing_rule(host: Host) {
    let live = json!({"query": [{"name": "mode", "equals": "live"}]});
    let rules = json!([
        {"match": live, "action": "allow"},
        {"match": {"paths": ["/held"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let scene = scene_with(host, rules).await;
    let targets = |path: &str| DOUBTFUL.map(|query| format!("{path}?{query}"));
    let (held, free) = (targets("/held"), targets("/free"));
    let mut table: Vec<(&str, &[&[u8]], Fate)> = Vec::new();
    table.extend(held.iter().map(|target| (target.as_str(), &[][..], Held)));
    table.extend(free.iter().map(|target| (target.as_str(), &[][..], Passed)));
    table.push(("/held?mode=live", &[], Passed));
    table.push(("/held?mode=LIVE", &[], Held));
    table.push(("/held?mode=test", &[], Held));
    meet(scene, &table).await;
}

/// The gauge of requests that are held open now.
const HELD_NOW: &str = "wasmcustom.hoop_filter_requests_held";

async fn a_name_with_brackets_or_an_underscore_is_found_in_any_spelling(host: Host) {
    let live = |name: &str| json!({"query": [{"name": name, "equals": "live"}]});
    let rules = json!([
        hold("/kind", live("filter[kind]")),
        hold("/user", live("user_id")),
    ]);
    let scene = scene_with(host, rules).await;
    meet(
        scene,
        &[
            ("/kind?filter[kind]=live", &[], Held),
            ("/kind?filter[kind]=live&filter[x]=1", &[], Held),
            ("/kind?filter[kind]=test", &[], Passed),
            ("/kind?filter=live", &[], Passed),
            ("/kind?filter[kind]junk=live", &[], Doubtful),
            ("/kind?filter[kind][]=live", &[], Doubtful),
            ("/kind?[filter][kind]=live", &[], Doubtful),
            ("/kind?filter[+kind]=live", &[], Doubtful),
            ("/kind?filter[kind]=test&filter[kind]x=live", &[], Doubtful),
            ("/kind?filter[kind]=live&filter=test", &[], Doubtful),
            ("/user?user_id=live", &[], Held),
            ("/user?user[id]=live", &[], Passed),
            ("/user?user[id=live", &[], Doubtful),
            ("/user?user_id=test&user[id=live", &[], Doubtful),
        ],
    )
    .await;
}

async fn a_header_with_more_parts_than_can_be_told_apart_is_refused_under_rules_that_look_into_it(
    host: Host,
) {
    let header = |comparison: &str, wanted: Value| json!({"headers": [{"name": "x-env", comparison: wanted}]});
    let rules = json!([
        hold("/equals", header("equals", json!("prod"))),
        hold("/there", header("exists", json!(true))),
    ]);
    let scene = scene_with(host, rules).await;
    let parts: String = (0..2_000).map(|part| format!("{part},")).collect();
    let many = format!("x-env: {parts}prod").into_bytes();
    let repeated = format!("x-env: {}prod", "dev,".repeat(2_000)).into_bytes();
    let none = format!("x-env: {}", ",".repeat(8_000)).into_bytes();
    meet(
        scene,
        &[
            ("/equals", &[&many], Doubtful),
            ("/there", &[&many], Held),
            ("/other", &[&many], Passed),
            ("/equals", &[&repeated], Held),
            ("/equals", &[&none], Passed),
        ],
    )
    .await;
}

async fn a_rule_may_return_beside_one_that_holds(host: Host) {
    let holding = |path: &str| json!({"match": {"paths": [path]}, "action": "require_approval", "approval_rule": APPROVAL_RULE});
    let mut rules = json!([
        holding("/now"),
        holding("/later"),
        holding("/as-the-listener")
    ]);
    rules[0]["approval_mode"] = "return".into();
    rules[1]["review_mode"] = "hold".into();
    for (listener, waits) in [
        ("return", &["/later"][..]),
        ("hold", &["/later", "/as-the-listener"]),
    ] {
        let mut policy = policy::with_rules(rules.clone());
        policy["approval_mode"] = listener.into();
        let scene = Scene::real(host).policy(policy).start().await;
        let body = scene.body();
        for target in ["/now", "/later", "/as-the-listener"] {
            if !waits.contains(&target) {
                answer::pending(&scene.post(target, &body).await);
                continue;
            }
            let mut waiting = scene.connect().await;
            waiting
                .write(&request("POST", target, &[], Some(&body)))
                .await;
            wait::until("the call is held", async || {
                (scene.proxy.stat(HELD_NOW).await == 1).then_some(())
            })
            .await;
            let statement = [format!("POST {target}\n\n").as_bytes(), &body].concat();
            let id = scene.plane().id_of(&statement).await;
            scene.plane().approve(&id).await;
            answer::passed(&waiting.answer("a call that was held").await);
            assert_eq!(scene.upstream.last().body, body);
        }
        scene.finish(waits.len()).await;
    }
}

async fn a_rule_says_its_own_message_in_every_kind_of_refusal(host: Host) {
    let rules = json!([
        {"match": {"paths": ["/wires"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE, "message": "a wire transfer"},
        {"match": {"paths": ["/refunds"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
        {"match": {"paths": ["/never"]}, "action": "deny", "message": "not from here"},
    ]);
    let mut policy = policy::with_rules(rules);
    policy["message"] = "ask first".into();
    policy["max_body_bytes"] = 16.into();
    let scene = Scene::lying(host).policy(policy).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let waits = "waiting for approval; resend the identical statement once it is approved";
    let too_large = "the request body is larger than http.max_body_bytes, so an approver could not read all of it";
    let large = [b'x'; 17];
    for (target, body, text) in [
        (
            "/wires",
            &b"x"[..],
            format!("a wire transfer: {waits} (approval {ID})\n"),
        ),
        (
            "/refunds",
            b"x",
            format!("ask first: {waits} (approval {ID})\n"),
        ),
        ("/wires", &large, format!("a wire transfer: {too_large}\n")),
        ("/refunds", &large, format!("ask first: {too_large}\n")),
        ("/never", b"x", "not from here\n".to_owned()),
    ] {
        let answer = scene.post(target, body).await;
        assert_eq!((answer.status, answer.text()), (403, text), "{target}");
    }
    scene
        .lies()
        .always(Reply::review(201, false, ID, "REJECTED"));
    let answer = scene.post("/wires", b"x").await;
    assert!(answer.text().starts_with("a wire transfer: "), "{answer}");
    scene.lies().always(Reply::typed(500, "text/plain", "no"));
    let answer = scene.post("/wires", b"x").await;
    answer::policy(
        &answer,
        "a wire transfer: the approval request could not be filed",
    );
    scene.finish(0).await;
}

async fn of_a_thousand_rules_the_first_that_meets_decides(host: Host) {
    first_of(1_000, host).await;
}

async fn of_ten_thousand_rules_the_first_that_meets_decides(host: Host) {
    first_of(10_000, host).await;
}

/// Each of the first rules denies a path of its own in its own words. As many that would allow those paths come behind them, and
/// the last one holds all paths.
async fn first_of(count: usize, host: Host) {
    let denying = (count - 1) / 2;
    let denies = |number| json!({"match": {"methods": ["POST"], "paths": [format!("/r/{number}/**")]}, "action": "deny", "message": format!("rule {number}")});
    let allows =
        |number| json!({"match": {"paths": [format!("/r/{number}/**")]}, "action": "allow"});
    let mut rules: Vec<Value> = (0..denying).map(denies).collect();
    rules.extend((0..count - 1 - denying).map(allows));
    rules.push(json!({"match": {"paths": ["/r/**"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE}));
    assert_eq!(rules.len(), count);
    let scene = scene_with(host, rules.into()).await;

    for number in [0, 1, denying / 2, denying - 1] {
        for target in [
            format!("/r/{number}"),
            format!("/r/{number}/x"),
            format!("/R/{number}/x/y?z"),
        ] {
            answer::policy(&scene.post(&target, b"x").await, &format!("rule {number}"));
        }
        answer::passed(&scene.get(&format!("/r/{number}/x")).await);
        let doubtful = scene.post(&format!("/r//{number}"), b"x").await;
        answer::policy_with_status(&doubtful, 400);
    }
    for target in [format!("/r/{count}"), "/r".to_owned(), "/r/x".to_owned()] {
        answer::pending(&scene.post(&target, b"x").await);
    }
    answer::pending(&scene.get("/R/0/x").await);
    answer::passed(&scene.post("/other/0", b"x").await);
    assert_eq!(scene.lies().calls().len(), 4);
    scene.finish(5).await;
}
