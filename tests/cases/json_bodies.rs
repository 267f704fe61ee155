//! Rules that look into JSON bodies: the gate keeps a request back until its body is whole, however it is cut, and decides by its
//! values. A body that two readers could take in two ways is refused under a rule that stands against it.

use hoop_tests::answer;
use hoop_tests::client::h2::H2Request;
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::policy::{self, APPROVAL_RULE};
use hoop_tests::scene::{Scene, SceneBuilder};
use hoop_tests::way::{Way, chunked};
use serde_json::{Value, json};

on_both_hosts! {
    each_comparison_holds_what_fits_and_passes_the_rest_with_numbers_exact,
    a_pointer_finds_values_in_objects_and_arrays,
    a_small_amount_passes_and_a_large_one_is_held_and_run_to_the_byte,
    a_body_is_judged_whole_wherever_it_is_cut,
    a_request_without_a_body_has_no_values,
    a_get_with_a_body_is_judged_by_it,
    a_body_with_two_readings_is_refused_by_holding_and_denying_rules,
    an_allowing_rule_lets_only_what_surely_fits_past_the_rule_behind_it,
    a_body_that_is_too_large_to_judge_is_refused_and_nothing_is_filed,
    the_route_decides_that_a_body_is_json_and_not_its_content_type,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
/// `max_body_bytes` of the shipped configuration.
const LIMIT: usize = 65_536;
/// Each way to cut a short body.
const WAYS: [Way; 5] = [
    Way::Length,
    Way::SingleBytes,
    Way::Chunks(1),
    Way::Frames(1),
    Way::Frames(7),
];

fn lying(host: Host, rules: Value) -> SceneBuilder {
    Scene::lying(host).policy(policy::with_rules(rules))
}

/// A scene whose plane has filed everything and decided nothing.
async fn undecided(host: Host, rules: Value) -> Scene {
    let scene = lying(host, rules).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    scene
}

fn hold(path: &str, condition: Value) -> Value {
    json!({
        "match": {"paths": [path], "json": [condition]},
        "action": "require_approval",
        "approval_rule": APPROVAL_RULE,
    })
}

/// Transfers above 1000 need a person.
fn large_transfers() -> Value {
    json!([hold(
        "/transfers",
        json!({"pointer": "/amount", "greater_than": 1000})
    )])
}

/// Sends each body to its path and ends the scene once each was held or passed as said.
async fn meet(scene: Scene, table: &[(&str, &str, bool)]) {
    let mut wrong = Vec::new();
    let mut passed = 0;
    for (target, body, held) in table {
        let answer = scene.post(target, body.as_bytes()).await;
        let found = answer.header("x-hoop-denied").as_deref() == Some("review");
        if found != *held || (!found && answer.status != 200) {
            wrong.push(format!("{target} {body}: {answer}"));
        }
        if answer.status == 200 {
            passed += 1;
            assert_eq!(scene.upstream.last().text(), *body);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let held = table.iter().filter(|(_, _, held)| *held).count();
    assert_eq!(scene.lies().calls().len(), held);
    scene.finish(passed).await;
}

async fn each_comparison_holds_what_fits_and_passes_the_rest_with_numbers_exact(host: Host) {
    // As text, because a number of a JSON library would lose its last digit.
    let at = |path: &str, comparison: &str| {
        let text = format!(r#"{{"pointer": "/a", {comparison}}}"#);
        let condition: Value = serde_json::from_str(&text).expect("a condition");
        hold(path, condition)
    };
    let rules = json!([
        at("/gt", r#""greater_than": 9007199254740992"#),
        at("/ge", r#""at_least": 1000"#),
        at("/lt", r#""less_than": 0.1"#),
        at("/le", r#""at_most": -1.5"#),
        at("/number", r#""equals": 9007199254740993"#),
        at("/tenth", r#""equals": 0.1"#),
        at("/word", r#""equals": "live ü""#),
        at("/yes", r#""equals": true"#),
        at("/null", r#""equals": null"#),
        at("/in", r#""in": ["eu", "us"]"#),
        at("/in-numbers", r#""in": [1, 2.5]"#),
        at("/there", r#""exists": true"#),
        at("/absent", r#""exists": false"#),
    ]);
    let scene = undecided(host, rules).await;
    meet(
        scene,
        &[
            ("/gt", r#"{"a":9007199254740993}"#, true),
            ("/gt", r#"{"a":9007199254740992}"#, false),
            ("/gt", r#"{"a":9007199254740992.0000000000000001}"#, true),
            ("/gt", r#"{"a":1e400}"#, true),
            ("/gt", r#"{"a":-1e400}"#, false),
            ("/gt", r#"{"a":1e-400}"#, false),
            ("/gt", r#"{"b":9007199254740993}"#, false),
            ("/gt", r#"{"a":null}"#, false),
            ("/ge", r#"{"a":1000}"#, true),
            ("/ge", r#"{"a":1e3}"#, true),
            ("/ge", r#"{"a":999.9999999999999999999999}"#, false),
            ("/lt", r#"{"a":0.1}"#, false),
            ("/lt", r#"{"a":0.09999999999999999999999}"#, true),
            ("/le", r#"{"a":-1.50}"#, true),
            ("/le", r#"{"a":-1.49999999999999999999999}"#, false),
            ("/number", r#"{"a":9007199254740993}"#, true),
            ("/number", r#"{"a":9007199254740992}"#, false),
            ("/number", r#"{"a":9007199254740994}"#, false),
            ("/number", r#"{"a":9007199254740993.0}"#, true),
            ("/number", r#"{"a":9.007199254740993e15}"#, true),
            ("/tenth", r#"{"a":0.1}"#, true),
            ("/tenth", r#"{"a":1e-1}"#, true),
            (
                "/tenth",
                r#"{"a":0.1000000000000000055511151231257827}"#,
                false,
            ),
            ("/word", r#"{"a":"live ü"}"#, true),
            ("/word", r#"{"a":"\u006Cive \u00fc"}"#, true),
            ("/word", r#"{"a":"live u\u0308"}"#, false),
            ("/word", r#"{"a":"Live ü"}"#, false),
            ("/yes", r#"{"a":true}"#, true),
            ("/yes", r#"{"a":false}"#, false),
            ("/yes", r#"{"a":null}"#, false),
            ("/null", r#"{"a":null}"#, true),
            ("/null", r#"{"a":0}"#, false),
            ("/null", r#"{}"#, false),
            ("/in", r#"{"a":"us"}"#, true),
            ("/in", r#"{"a":"uk"}"#, false),
            ("/in-numbers", r#"{"a":25e-1}"#, true),
            ("/in-numbers", r#"{"a":2}"#, false),
            ("/there", r#"{"a":null}"#, true),
            ("/there", r#"{"a":{"a":1}}"#, true),
            ("/there", r#"{"b":{"a":1}}"#, false),
            ("/there", "[1]", false),
            ("/there", "1", false),
            ("/absent", r#"{"b":1}"#, true),
            ("/absent", r#"{"a":1}"#, false),
            ("/absent", "", true),
        ],
    )
    .await;
}

async fn a_pointer_finds_values_in_objects_and_arrays(host: Host) {
    let over =
        |path: &str, pointer: &str| hold(path, json!({"pointer": pointer, "greater_than": 10}));
    let rules = json!([
        over("/nested", "/order/lines/0/amount"),
        over("/escaped", "/a~1b/m~0n"),
        over("/unnamed", "/"),
        over("/digits", "/0"),
    ]);
    let scene = undecided(host, rules).await;
    let first = r#"{"order":{"lines":[{"amount":AMOUNT},{"amount":50}]}}"#;
    let (small, large) = (first.replace("AMOUNT", "10"), first.replace("AMOUNT", "11"));
    meet(
        scene,
        &[
            ("/nested", &large, true),
            ("/nested", &small, false),
            ("/nested", r#"{"order":{"lines":[]}}"#, false),
            ("/nested", r#"{"order":{"lines":null}}"#, false),
            ("/nested", r#"{"order":null}"#, false),
            (
                "/nested",
                "\n\t{ \"order\" : { \"lines\" : [ { \"amount\" : 11 } ] } }\r\n",
                true,
            ),
            ("/escaped", r#"{"a/b":{"m~n":11}}"#, true),
            ("/escaped", r#"{"a\/b":{"m~n":10}}"#, false),
            ("/unnamed", r#"{"":11}"#, true),
            ("/unnamed", r#"{" ":11}"#, false),
            ("/digits", "[11]", true),
            ("/digits", r#"{"0":11}"#, true),
            ("/digits", "[10, 11]", false),
        ],
    )
    .await;
}

async fn a_small_amount_passes_and_a_large_one_is_held_and_run_to_the_byte(host: Host) {
    let scene = Scene::real(host)
        .policy(policy::with_rules(large_transfers()))
        .start()
        .await;
    let of = |amount: u32| format!("{{\"memo\": \"{}\", \"amount\": {amount}}}\n", scene.marker);
    let (small, large) = (of(1000), of(1001));

    answer::passed(&scene.post("/transfers", small.as_bytes()).await);
    assert_eq!(scene.upstream.last().text(), small);
    assert_eq!(scene.plane().rows().await.len(), 0);

    let id = answer::pending(&scene.post("/transfers", large.as_bytes()).await);
    scene.plane().approve(&id).await;
    answer::passed(&scene.post("/transfers", large.as_bytes()).await);
    assert_eq!(scene.upstream.last().text(), large);
    let again = answer::pending(&scene.post("/transfers", large.as_bytes()).await);
    assert_ne!(again, id);
    scene.finish(2).await;
}

async fn a_body_is_judged_whole_wherever_it_is_cut(host: Host) {
    let scene = undecided(host, large_transfers()).await;
    let large = br#"{"to":"caf\u00e9","amount":1000.5}"#.as_slice();
    let small = br#"{"to":"caf\u00e9","amount":1000.0}"#.as_slice();
    let cuts = 1..=large.len();
    let mut ways: Vec<Way> = cuts
        .flat_map(|size| [Way::Chunks(size), Way::Frames(size)])
        .collect();
    ways.push(Way::SingleBytes);
    for way in &ways {
        answer::pending(&way.post(&scene, "/transfers", large).await);
        answer::passed(&way.post(&scene, "/transfers", small).await);
        assert_eq!(scene.upstream.last().body, small, "{way:?}");
    }
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    for way in &ways {
        answer::passed(&way.post(&scene, "/transfers", large).await);
        assert_eq!(scene.upstream.last().body, large, "{way:?}");
    }
    let filed = scene.lies().filed();
    assert_eq!(filed.len(), 2 * ways.len());
    let statement = [b"POST /transfers\n\n", large].concat();
    assert!(filed.iter().all(|filed| *filed == statement));
    scene.finish(2 * ways.len()).await;
}

async fn a_request_without_a_body_has_no_values(host: Host) {
    let rules = json!([
        hold("/amount", json!({"pointer": "/amount", "less_than": 1000})),
        hold("/absent", json!({"pointer": "/amount", "exists": false})),
    ]);
    let scene = undecided(host, rules).await;
    let h2 = scene.connect_h2().await;
    let mut passed = 0;
    for target in ["/amount", "/absent"] {
        let mut answers = Vec::new();
        for method in ["GET", "POST", "DELETE"] {
            for call in [
                request(method, target, &[], None),
                request(method, target, &[], Some(b"")),
                chunked(method, target, &[], b"", 1, &[]),
                chunked(method, target, &[], b"", 1, &[("x-checksum", "7")]),
            ] {
                answers.push(scene.send(&call).await);
            }
            answers.push(h2.send(&H2Request::new(method, target, None)).await);
            let mut empty = H2Request::new(method, target, None);
            empty.frames = vec![Vec::new(), Vec::new()];
            answers.push(h2.send(&empty).await);
        }
        for answer in &answers {
            if target == "/absent" {
                answer::pending(answer);
            } else {
                answer::passed(answer);
                passed += 1;
            }
        }
    }
    for filed in scene.lies().filed() {
        assert!(filed.ends_with(b" /absent"), "{}", filed.escape_ascii());
    }
    scene.finish(passed).await;
}

async fn a_get_with_a_body_is_judged_by_it(host: Host) {
    let scene = undecided(host, large_transfers()).await;
    let large: &[u8] = br#"{"amount":5000}"#;
    let small: &[u8] = br#"{"amount":5}"#;
    let h2 = scene.connect_h2().await;
    for method in ["GET", "DELETE", "OPTIONS"] {
        let call = |body| request(method, "/transfers", &[], Some(body));
        answer::pending(&scene.send(&call(large)).await);
        answer::passed(&scene.send(&call(small)).await);
        assert_eq!(scene.upstream.last().body, small);
        let call = |body| chunked(method, "/transfers", &[], body, 4, &[]);
        answer::pending(&scene.send(&call(large)).await);
        answer::passed(&scene.send(&call(small)).await);
        assert_eq!(scene.upstream.last().body, small);
        let call = |body| H2Request::new(method, "/transfers", Some(body));
        answer::pending(&h2.send(&call(large)).await);
        answer::passed(&h2.send(&call(small)).await);
        assert_eq!(scene.upstream.last().body, small);
    }
    let filed = scene.lies().filed();
    assert_eq!(filed[0], [b"GET /transfers\n\n", large].concat());
    scene.finish(9).await;
}

/// Bodies that two readers could take in two ways, or of which some reader makes an amount above 1000.
fn doubtful() -> Vec<Vec<u8>> {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("{{\"amount\":1,\"x\":{open}{close}}}").into_bytes()
    };
    let texts = [
        "{",
        "}",
        " ",
        "null null",
        "amount=5000",
        "{'amount':5000}",
        "{amount:5000}",
        r#"{"amount":5000"#,
        r#"{"amount":5000,}"#,
        r#"{"amount":1}{"amount":5000}"#,
        "{\"amount\":1}\n{\"amount\":5000}",
        r#"{"amount":1} x"#,
        "{\"amount\":1}\0",
        r#"{"amount":1 /* 5000 */}"#,
        r#"{"amount":01}"#,
        r#"{"amount":+1}"#,
        r#"{"amount":.5}"#,
        r#"{"amount":1.}"#,
        r#"{"amount":1e}"#,
        r#"{"amount":0x1}"#,
        r#"{"amount":NaN}"#,
        r#"{"amount":Infinity}"#,
        r#"{"amount":1_000}"#,
        // A key twice, wherever it stands and however it is spelled.
        r#"{"amount":1,"amount":5000}"#,
        r#"{"amount":5000,"amount":1}"#,
        r#"{"amount":1,"\u0061mount":5000}"#,
        r#"{"amount":1,"x":{"a":1,"a":2}}"#,
        // Names that differ in letter case only.
        r#"{"amount":1,"Amount":5000}"#,
        r#"{"AMOUNT":5000}"#,
        // Values that lenient readers convert.
        r#"{"amount":"5000"}"#,
        r#"{"amount":[5000]}"#,
        r#"[{"amount":5000}]"#,
        r#"{"amount":true}"#,
        r#"{"amount":{"value":5000}}"#,
        // Readers in C end a name at a NUL.
        r#"{"amount":1,"amount\u0000":5000}"#,
        r#"{"amount":1,"amount\u0000x":5000}"#,
        // JavaScript gives it to every object.
        r#"{"__proto__":{"amount":5000}}"#,
        r#"{"amount":1,"x":{"__proto__":{"amount":5000}}}"#,
        // Readers of forms that care for no content-type find an amount of their own.
        r#"{"amount":1,"x":"&amount=5000&y="}"#,
        r#"{"amount":1,"x":"&am%6funt=5000&"}"#,
        r#"{"amount":1,"x":";[amount]=5000"}"#,
        // Texts that are not Unicode.
        r#"{"amount":1,"x":"\ud800"}"#,
        r#"{"amount":1,"x":"\q"}"#,
        "{\"amount\":1,\"x\":\"\n\"}",
        "\u{feff}{\"amount\":1}",
    ];
    let mut bodies: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).to_vec();
    bodies.push(b"{\"amount\":1,\"x\":\"\xff\"}".to_vec());
    bodies.push(b"{\"amount\":1,\"\xc0\xaf\":2}".to_vec());
    bodies.push(b"{\"amount\":1,\"x\":\"\xed\xa0\x80\"}".to_vec());
    bodies.push(
        "{\"amount\":1}"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect(),
    );
    bodies.push(b"\x1f\x8b\x08\x00".to_vec());
    bodies.push(nested(64));
    bodies.push(nested(30_000));
    bodies.push(vec![b'['; LIMIT]);
    bodies
}

async fn a_body_with_two_readings_is_refused_by_holding_and_denying_rules(host: Host) {
    let over = json!({"pointer": "/amount", "greater_than": 1000});
    let denied = json!({"paths": ["/never"], "json": [&over]});
    let rules = json!([hold("/transfers", over), {"match": denied, "action": "deny"}]);
    let scene = lying(host, rules).start().await;
    // A plane that says yes to everything: what is asked there is as good as run.
    scene
        .lies()
        .always(Reply::review(200, true, ID, "EXECUTED"));
    let mut wrong = Vec::new();
    for body in doubtful() {
        let ways = if body.len() < 100 {
            &WAYS[..]
        } else {
            &[Way::Length, Way::Chunks(999), Way::Frames(16_384)]
        };
        for (target, way) in [("/transfers", ways), ("/never", &ways[..1])]
            .into_iter()
            .flat_map(|(target, ways)| ways.iter().map(move |way| (target, way)))
        {
            let answer = way.post(&scene, target, &body).await;
            let by_us = answer.header("x-hoop-denied").as_deref() == Some("policy");
            if answer.status != 400 || !by_us {
                let shown = body[..body.len().min(60)].escape_ascii();
                wrong.push(format!("{target} {way:?} {shown}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(scene.lies().calls().len(), 0);
    scene.finish(0).await;
}

async fn an_allowing_rule_lets_only_what_surely_fits_past_the_rule_behind_it(host: Host) {
    let small = json!({"paths": ["/transfers"], "json": [{"pointer": "/amount", "at_most": 10}]});
    let rules = json!([
        {"match": small, "action": "allow"},
        {"match": {"paths": ["/transfers"]}, "action": "require_approval", "approval_rule": APPROVAL_RULE},
    ]);
    let scene = undecided(host, rules).await;
    for way in WAYS {
        let post = async |body: &str| way.post(&scene, "/transfers", body.as_bytes()).await;
        answer::passed(&post(r#"{"amount":10}"#).await);
        assert_eq!(scene.upstream.last().text(), r#"{"amount":10}"#);
        for body in [
            r#"{"amount":11}"#,
            r#"{"amount":"10"}"#,
            r#"{"amount":10,"amount":10}"#,
            r#"{"amount":10,"Amount":10}"#,
            r#"{"amount":null}"#,
            "{}",
            "",
            "no JSON",
        ] {
            answer::pending(&post(body).await);
            let filed = scene.lies().filed();
            let statement = filed.last().expect("a filing");
            assert!(statement.ends_with(body.as_bytes()), "{way:?} {body}");
        }
    }
    scene.finish(WAYS.len()).await;
}

/// A small transfer of so many bytes.
fn padded(amount: u32, size: usize) -> Vec<u8> {
    let mut body = format!("{{\"amount\":{amount}}}").into_bytes();
    body.resize(size, b' ');
    body
}

async fn a_body_that_is_too_large_to_judge_is_refused_and_nothing_is_filed(host: Host) {
    let scene = undecided(host, large_transfers()).await;
    let ways = [
        Way::Length,
        Way::Chunks(1000),
        Way::Chunks(LIMIT),
        Way::Frames(1000),
        Way::Frames(16_384),
    ];
    for way in ways {
        let whole = padded(1, LIMIT);
        answer::passed(&way.post(&scene, "/transfers", &whole).await);
        assert!(scene.upstream.last().body == whole, "{way:?}");
        answer::pending(&way.post(&scene, "/transfers", &padded(5000, LIMIT)).await);
        let filed = scene.lies().filed().len();
        let answer = way.post(&scene, "/transfers", &padded(1, LIMIT + 1)).await;
        answer::policy(&answer, TOO_LARGE);
        assert_eq!(scene.lies().filed().len(), filed, "{way:?}");
    }
    // Ours at the first byte too many, or Envoy's own when it has buffered too much before we could look.
    let far_over = padded(1, 4 * 1024 * 1024);
    for way in [Way::Length, Way::Chunks(10_000), Way::Frames(16_384)] {
        let answer = way.post(&scene, "/transfers", &far_over).await;
        assert!(matches!(answer.status, 403 | 413), "{way:?}: {answer}");
    }
    assert_eq!(scene.lies().filed().len(), ways.len());
    scene.finish(ways.len()).await;
}

const TOO_LARGE: &str = "denied by policy: the request body is larger than http.max_body_bytes, so an approver could not read all of it";

async fn the_route_decides_that_a_body_is_json_and_not_its_content_type(host: Host) {
    let scene = undecided(host, large_transfers()).await;
    let post = async |line: &[u8], body: &str| {
        let length = body.len();
        let mut call = b"POST /transfers HTTP/1.1\r\nhost: billing.example\r\n".to_vec();
        call.extend_from_slice(line);
        call.extend_from_slice(format!("content-length: {length}\r\n\r\n{body}").as_bytes());
        scene.send(&call).await
    };
    let (large, small) = (r#"{"amount":5000}"#, r#"{"amount":5}"#);
    let types: [&[u8]; 10] = [
        b"",
        b"content-type:\r\n",
        b"content-type: application/json\r\n",
        b"content-type: Application/JSON ; charset=\"UTF-8\"\r\n",
        b"content-type: application/problem+json\r\n",
        b"content-type: text/plain\r\n",
        b"content-type: multipart/form-data; boundary=x\r\n",
        b"content-type: application/octet-stream\r\n",
        b"content-type: text/plain\r\ncontent-type: application/json\r\n",
        b"content-type: \xff\xfe\r\n",
    ];
    for line in types {
        answer::pending(&post(line, large).await);
        answer::passed(&post(line, small).await);
        assert_eq!(scene.upstream.last().text(), small);
        answer::policy_with_status(&post(line, "amount=5").await, 400);
    }
    // A text in a body may look like a form that says nothing of the amount.
    answer::passed(&post(b"", r#"{"amount":5,"memo":"R&D; a=1&b=2, 10% = x"}"#).await);
    // A reader of forms finds other values in the very same bytes.
    let polyglot = r#"{"amount":5,"memo":"&amount=5000&"}"#;
    let form = b"content-type: application/x-www-form-urlencoded\r\n";
    for body in [small, large, polyglot] {
        answer::policy_with_status(&post(form, body).await, 400);
    }
    // A reader that follows the charset sees another text.
    for charset in ["utf-16", "utf-7", "UTF-32", "ibm037", "\"utf-16\""] {
        let line = format!("content-type: application/json; charset={charset}\r\n");
        answer::policy_with_status(&post(line.as_bytes(), small).await, 400);
    }
    for line in types {
        answer::policy_with_status(&post(line, polyglot).await, 400);
    }
    scene.finish(types.len() + 1).await;
}
