//! The index changes no decision, and leaves out what it can.

use proptest::prelude::*;

use super::*;

fn texts(items: &[String]) -> String {
    format!(
        "[{}]",
        items
            .iter()
            .map(|item| format!("{item:?}"))
            .collect::<Vec<_>>()
            .join(",")
    )
}

fn glob() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![4 => "[ab]", 2 => "[AB]", 1 => "[ab]\\*", 1 => Just("*".to_owned()), 1 => Just("**".to_owned())],
        0..4,
    )
    .prop_map(|segments| format!("/{}", segments.join("/")))
}

fn rule() -> impl Strategy<Value = String> {
    let hosts = proptest::collection::vec("([ab]|\\*)\\.(x|X)", 0..3);
    let methods = proptest::collection::vec("GET|POST|PUT", 0..3);
    let paths = proptest::collection::vec(glob(), 0..7);
    let more = prop_oneof![
        5 => Just(""),
        1 => Just(r#""headers":[{"name":"x","equals":"1"}]"#),
        1 => Just(r#""query":[{"name":"q","exists":true}]"#),
        1 => Just(r#""json":[{"pointer":"/a","greater_than":1}]"#),
    ];
    let action = prop_oneof![
        2 => Just(r#""allow""#),
        1 => Just(r#""deny""#),
        1 => Just(r#""require_approval","approval_rule":"r","approval_mode":"return""#),
    ];
    (hosts, methods, paths, more, action).prop_map(|(hosts, methods, paths, more, action)| {
        let mut conditions = Vec::new();
        for (key, values) in [("hosts", hosts), ("methods", methods), ("paths", paths)] {
            if !values.is_empty() {
                conditions.push(format!("{key:?}:{}", texts(&values)));
            }
        }
        if !more.is_empty() {
            conditions.push(more.to_owned());
        }
        format!(
            r#"{{"match":{{{}}},"action":{action}}}"#,
            conditions.join(",")
        )
    })
}

proptest! {
    #[test]
    fn the_index_changes_no_decision(
        rules in proptest::collection::vec(rule(), 0..24),
        requests in proptest::collection::vec(
            (
                "get|GET|POST|PUT|X",
                "(/[abAB]{1,2}){1,4}/?|/|(/[ab]|/\\.\\.|;|%61|%2f|//){1,4}",
                "|\\?q=1|\\?Q",
                "[ab]\\.x(:80)?|B\\.X\\.|c|a\\.x,b\\.x|",
                "|[123]",
                prop_oneof![Just(None), Just(Some(&b""[..])), Just(Some(&b"{\"a\":2}"[..])), Just(Some(&b"{\"A\":2}"[..]))],
            ),
            1..8,
        ),
    ) {
        let policy = policy(&format!("[{}]", rules.join(",")));
        for (method, path, query, host, header, body) in requests {
            let target = format!("{path}{query}");
            let headers = [(":method", &*method), (":path", &*target), (":authority", &*host), ("x", &*header)];
            let head = RequestHead::parse(headers.iter().map(|(name, value)| (*name, value.as_bytes())), policy.wanted_headers()).expect("readable");
            let subject = Subject { head: &head, body, route: &NoMetadata };
            prop_assert_eq!(policy.decide(&subject), policy.decide_by_all_rules(&subject), "{:?}", head);
        }
    }
}

/// How many of the rules a request is held against; `None` means all.
fn looked_at(policy: &Policy, method: &str, target: &str) -> Option<usize> {
    let head = head(method, target);
    let subject = Subject {
        head: &head,
        body: None,
        route: &NoMetadata,
    };
    let places = Evaluation::new(&subject, policy).candidates(&policy.index);
    places.map(|places| places.len())
}

#[test]
fn a_request_is_held_against_few_of_many_rules() {
    let many = |conditions: &dyn Fn(usize) -> String| {
        let rules: Vec<String> = (0..1_000)
            .map(|at| format!(r#"{{"match":{{{}}},"action":"deny"}}"#, conditions(at)))
            .collect();
        policy(&format!("[{}]", rules.join(",")))
    };
    let by_path = many(&|at| format!(r#""paths":["/Api/svc-{at}/**"]"#));
    assert_eq!(looked_at(&by_path, "GET", "/api/SVC-7/x"), Some(1));
    assert_eq!(looked_at(&by_path, "GET", "/other"), Some(0));
    assert_eq!(looked_at(&by_path, "GET", "//api"), None);
    assert_eq!(looked_at(&by_path, "OPTIONS", "*"), Some(0));

    let by_host =
        many(&|at| format!(r#""hosts":["h{at}.example.com","*.other.com"],"paths":["/a/**"]"#));
    assert_eq!(looked_at(&by_host, "GET", "/b"), Some(0));

    let by_method = many(&|at| format!(r#""methods":["M{at}"]"#));
    assert_eq!(looked_at(&by_method, "m7", "/b"), Some(1));
    assert_eq!(looked_at(&by_method, "m7", "//b"), Some(1));

    let wide = many(&|at| {
        let paths: Vec<String> = (0..20).map(|path| format!("/p{at}-{path}")).collect();
        format!(
            r#""hosts":["a","b","c"],"methods":["GET","PUT"],"paths":{}"#,
            texts(&paths)
        )
    });
    assert_eq!(wide.index.keys(), 20_000);
    assert_eq!(looked_at(&wide, "GET", "/p7-19"), Some(1));
}

#[test]
fn a_hostile_path_costs_a_bounded_search_however_many_rules_there_are() {
    let rules: Vec<String> = (0..10_000)
        .map(|at| format!(r#"{{"match":{{"paths":["/aaaaaaa{at}x"]}},"action":"deny"}}"#))
        .collect();
    let policy = policy(&format!("[{}]", rules.join(",")));
    let jokers = format!("/%ff;{}", "a".repeat(4_000));

    assert_eq!(said(&policy, &head("GET", &jokers)), "ambiguous");
    assert_eq!(said(&policy, &head("GET", "/b;c")), "pass");
}
