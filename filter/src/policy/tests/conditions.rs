//! Conditions on headers, query, body and route, each under a rule that holds, one that denies and one that allows.

use std::cell::RefCell;

use super::*;

/// Metadata of a route, and which of it was asked for.
#[derive(Default)]
struct Route {
    values: Vec<(&'static str, &'static str, &'static [u8])>,
    asked: RefCell<Vec<String>>,
}

impl RouteMetadata for Route {
    fn value(&self, namespace: &str, key: &str) -> Option<Vec<u8>> {
        self.asked.borrow_mut().push(format!("{namespace}/{key}"));
        let found = self
            .values
            .iter()
            .find(|(space, name, _)| *space == namespace && *name == key);
        found.map(|(_, _, value)| value.to_vec())
    }
}

type Headers<'a> = &'a [(&'a str, &'a [u8])];

struct Sent<'a> {
    target: &'a str,
    headers: Headers<'a>,
    body: Option<&'a [u8]>,
    route: Route,
}

impl Default for Sent<'_> {
    fn default() -> Self {
        Self {
            target: "/p",
            headers: &[],
            body: None,
            route: Route::default(),
        }
    }
}

impl Sent<'_> {
    fn head(&self, policy: &Policy) -> RequestHead {
        let pseudo = [
            (":method", &b"POST"[..]),
            (":path", self.target.as_bytes()),
            (":authority", b"h"),
        ];
        let headers = pseudo.into_iter().chain(self.headers.iter().copied());
        RequestHead::parse(headers, policy.wanted_headers()).expect("readable")
    }

    fn said(&self, policy: &Policy) -> &'static str {
        let head = self.head(policy);
        said_of(&policy.decide(&Subject {
            head: &head,
            body: self.body,
            route: &self.route,
        }))
    }
}

/// A rule with these conditions.
fn rule(conditions: &str, action: &str) -> String {
    let more = if action == "require_approval" {
        r#","approval_rule":"r","approval_mode":"return""#
    } else {
        ""
    };
    format!(r#"{{"match":{{{conditions}}},"action":"{action}"{more}}}"#)
}

/// What a holding rule with these conditions says, and what it says behind an allowing rule with the same.
fn both(conditions: &str, sent: &Sent<'_>) -> (&'static str, &'static str) {
    let holding = policy(&format!("[{}]", rule(conditions, "require_approval")));
    let allowing = policy(&format!(
        "[{},{}]",
        rule(conditions, "allow"),
        rule("", "deny")
    ));
    (sent.said(&holding), sent.said(&allowing))
}

#[test]
fn a_header_is_compared_by_name_without_case_and_by_any_or_all_of_its_values() {
    let env = r#""headers":[{"name":"X-Env","in":["prod","staging"]}]"#;
    let table: [(&str, Headers<'_>, (&str, &str)); 14] = [
        (env, &[("x-env", b"prod")], ("hold", "pass")),
        (env, &[("x-env", b"PROD")], ("hold", "deny")),
        (
            env,
            &[("x-env", b"test"), ("x-env", b"staging")],
            ("hold", "deny"),
        ),
        (
            env,
            &[("x-env", b"prod"), ("x-env", b"staging")],
            ("hold", "pass"),
        ),
        (env, &[("x-env", b"prod, test")], ("hold", "deny")),
        (env, &[("x-env", b"a=1; prod")], ("hold", "deny")),
        (env, &[("x-env", b" prod")], ("hold", "deny")),
        (env, &[("x-env", b"prod\t")], ("hold", "deny")),
        (env, &[("x-env", b"\xff\x00prod")], ("pass", "deny")),
        (env, &[], ("pass", "deny")),
        (
            r#""headers":[{"name":"x","glob":"*prod*"}]"#,
            &[("x", b"\xffprod, a")],
            ("hold", "pass"),
        ),
        (
            r#""headers":[{"name":"x","exists":true}]"#,
            &[("x", b"")],
            ("hold", "pass"),
        ),
        (
            r#""headers":[{"name":"x","exists":false}]"#,
            &[("x", b"1")],
            ("pass", "deny"),
        ),
        (
            r#""headers":[{"name":"x","exists":false}]"#,
            &[("y", b"1")],
            ("hold", "pass"),
        ),
    ];
    for (conditions, headers, expected) in table {
        let sent = Sent {
            headers,
            ..Sent::default()
        };
        assert_eq!(
            both(conditions, &sent),
            expected,
            "{conditions} {headers:?}"
        );
    }
}

#[test]
fn a_header_with_too_many_parts_is_refused_or_never_allowed_by_its_parts() {
    let many: String = (0..1_000).map(|part| format!("{part},")).collect();
    let env = |test: &str| format!(r#""headers":[{{"name":"x","{test}}}]"#);
    for (conditions, value, expected) in [
        (
            env(r#"equals":"prod""#),
            &*many,
            ("ambiguous header", "deny"),
        ),
        (
            env(r#"glob":"*prod*""#),
            &*many,
            ("ambiguous header", "deny"),
        ),
        (env(r#"glob":"*9*""#), &*many, ("ambiguous header", "pass")),
        (env(r#"exists":true"#), &*many, ("hold", "pass")),
        (
            env(r#"equals":"prod""#),
            &*",".repeat(50_000),
            ("pass", "deny"),
        ),
    ] {
        let sent = Sent {
            headers: &[("x", value.as_bytes())],
            ..Sent::default()
        };
        assert_eq!(both(&conditions, &sent), expected, "{conditions}");
    }
}

/// The work of one decision does not grow with the product of what a client sends and what the operator wrote.
#[test]
fn comparisons_of_a_decision_are_bounded_however_long_a_value_and_however_many_rules() {
    let names: Vec<String> = (0..1_000)
        .map(|tenant| format!("\"tenant-{tenant:04}\""))
        .collect();
    let names = names.join(",");
    let rules_with = |count: usize, part: &str, test: &dyn Fn(usize) -> String| {
        let rules = (0..count).map(|at| {
            rule(
                &format!(r#""{part}":[{{"name":"x","{}}}]"#, test(at)),
                "deny",
            )
        });
        policy(&format!("[{}]", rules.collect::<Vec<_>>().join(",")))
    };
    let parts: String = (0..500).map(|part| format!("tenant-x{part},")).collect();
    let long = "a".repeat(57_000);
    let query = format!("/p?x={long}");
    let equals = |at: usize| format!(r#"equals":"t{at}""#);
    let one_of = |_: usize| format!(r#"in":[{names}]"#);
    let glob = |_: usize| format!(r#"glob":"*{}b*""#, "a".repeat(50));
    let table = [
        (
            rules_with(9_999, "headers", &equals),
            &*parts,
            "/p",
            "pass",
            100_000,
        ),
        (
            rules_with(100, "headers", &one_of),
            &*parts,
            "/p",
            "pass",
            1_000_000,
        ),
        (
            rules_with(100, "headers", &glob),
            &*long,
            "/p",
            "ambiguous header",
            limits::COMPARISON_STEPS,
        ),
        (
            rules_with(100, "query", &one_of),
            "",
            &*query,
            "pass",
            100_000,
        ),
        (
            rules_with(100, "query", &glob),
            "",
            &*query,
            "ambiguous query",
            limits::COMPARISON_STEPS,
        ),
    ];
    for (policy, value, target, expected, most) in table {
        let sent = Sent {
            target,
            headers: &[("x", value.as_bytes())],
            ..Sent::default()
        };
        let head = sent.head(&policy);
        let subject = Subject {
            head: &head,
            body: None,
            route: &sent.route,
        };
        let evaluation = Evaluation::new(&subject, &policy);

        let verdict = decided(&evaluation, policy.rules.iter());

        assert_eq!(said_of(&verdict), expected, "{target:.20}");
        let steps = limits::COMPARISON_STEPS - evaluation.steps_left();
        assert!((1..=most).contains(&steps), "{steps}");
    }
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let conditions = r#""headers":[{"name":"a","equals":"1"},{"name":"b","exists":true}],"query":[{"name":"q","equals":"1"}]"#;
    let headers: [(&str, &[u8]); 2] = [("a", b"1"), ("b", b"x")];
    for (count, target, expected) in [
        (2, "/p?q=1", ("hold", "pass")),
        (1, "/p?q=1", ("pass", "deny")),
        (2, "/p?q=2", ("pass", "deny")),
    ] {
        let sent = Sent {
            target,
            headers: &headers[..count],
            ..Sent::default()
        };
        assert_eq!(both(conditions, &sent), expected, "{count} {target}");
    }
}

#[test]
fn a_policy_keeps_only_the_headers_that_it_asks_for() {
    let sent = Sent {
        headers: &[
            ("x-env", b"1"),
            ("content-type", b"a"),
            ("content-encoding", b"b"),
        ],
        ..Sent::default()
    };
    let kept = |rules: &str| {
        let headers = sent.head(&policy(rules)).headers.into_iter();
        let names: Vec<String> = headers.map(|(name, _)| name).collect();
        names.join(" ")
    };

    // By the content type it is told in which form a refusal is read.
    assert_eq!(
        kept(r#"[{"match":{"paths":["/p"]},"action":"deny"}]"#),
        "content-type"
    );
    assert_eq!(
        kept(r#"[{"match":{"headers":[{"name":"X-Env","exists":true}]},"action":"deny"}]"#),
        "content-type x-env"
    );
    assert_eq!(
        kept(r#"[{"match":{"json":[{"pointer":"/a","exists":true}]},"action":"deny"}]"#),
        "content-encoding content-type"
    );
}

#[test]
fn a_query_parameter_with_more_than_one_reading_is_refused_or_never_allowed() {
    let wipe = r#""query":[{"name":"mode","equals":"wipe all"}]"#;
    let there = r#""query":[{"name":"mode","exists":true}]"#;
    let absent = r#""query":[{"name":"mode","exists":false}]"#;
    let doubtful = ("ambiguous query", "deny");
    let table = [
        (wipe, "/p?mode=wipe+all", ("hold", "pass")),
        (wipe, "/p?mode=wipe%20all", ("hold", "pass")),
        (wipe, "/p?mode=WIPE%20all", ("hold", "deny")),
        (wipe, "/p?mode=read", ("pass", "deny")),
        (wipe, "/p?x=mode", ("pass", "deny")),
        (wipe, "/p", ("pass", "deny")),
        (wipe, "/p?mode=read&mode=wipe+all", doubtful),
        (wipe, "/p?%6dode=wipe+all", doubtful),
        (wipe, "/p?Mode=wipe+all", doubtful),
        (wipe, "/p?x=1;mode=wipe+all", doubtful),
        (wipe, "/p?mode=wipe%2520all", doubtful),
        (there, "/p?mode", ("hold", "pass")),
        (there, "/p?mode=1&mode=2", ("hold", "deny")),
        (there, "/p?mode[]=1", doubtful),
        (there, "/p?x", ("pass", "deny")),
        (absent, "/p?x", ("hold", "pass")),
        (absent, "/p?mode=1", ("pass", "deny")),
        (absent, "/p?mode=1&mode=2", ("pass", "deny")),
        (absent, "/p?MODE=1", doubtful),
    ];
    for (conditions, target, expected) in table {
        let sent = Sent {
            target,
            ..Sent::default()
        };
        assert_eq!(both(conditions, &sent), expected, "{conditions} {target}");
    }
}

#[test]
fn a_body_is_asked_for_only_when_the_answer_depends_on_it() {
    let json = r#""json":[{"pointer":"/a","equals":1}]"#;
    let table = [
        // Nothing else of the rule stands in the way.
        (
            format!("[{}]", rule(json, "require_approval")),
            "needs body",
        ),
        (format!("[{}]", rule(json, "deny")), "needs body"),
        // Other conditions settle it.
        (
            format!(
                "[{}]",
                rule(&format!(r#""methods":["GET"],{json}"#), "deny")
            ),
            "pass",
        ),
        (
            format!("[{}]", rule(&format!(r#""paths":["/q"],{json}"#), "deny")),
            "pass",
        ),
        (
            format!(
                "[{}]",
                rule(
                    &format!(r#""query":[{{"name":"x","exists":true}}],{json}"#),
                    "deny"
                )
            ),
            "pass",
        ),
        // A rule before it settles it.
        (
            format!("[{},{}]", rule("", "allow"), rule(json, "deny")),
            "pass",
        ),
        (
            format!("[{},{}]", rule("", "deny"), rule(json, "deny")),
            "deny",
        ),
        (
            format!("[{},{}]", rule(json, "deny"), rule("", "allow")),
            "needs body",
        ),
        // An allowing rule matters only where something behind it stands against the request.
        (format!("[{}]", rule(json, "allow")), "pass"),
        (
            format!("[{},{}]", rule(json, "allow"), rule("", "allow")),
            "pass",
        ),
        (
            format!("[{},{}]", rule(json, "allow"), rule("", "deny")),
            "needs body",
        ),
        (
            format!(
                "[{},{}]",
                rule(json, "allow"),
                rule(r#""paths":["/q"]"#, "deny")
            ),
            "pass",
        ),
        (
            format!(
                "[{},{}]",
                rule(&format!(r#""paths":["/q"],{json}"#), "allow"),
                rule("", "deny")
            ),
            "deny",
        ),
    ];
    for (rules, expected) in table {
        assert_eq!(Sent::default().said(&policy(&rules)), expected, "{rules}");
    }
    // A doubtful path does not settle it: the body may.
    let rules = format!("[{}]", rule(&format!(r#""paths":["/p"],{json}"#), "deny"));
    let mut sent = Sent {
        target: "//p",
        ..Sent::default()
    };
    for (body, expected) in [
        (None, "needs body"),
        (Some(&br#"{"a":2}"#[..]), "pass"),
        (Some(br#"{"a":1}"#), "ambiguous"),
        (Some(b"{"), "ambiguous"),
    ] {
        sent.body = body;
        assert_eq!(sent.said(&policy(&rules)), expected, "{body:?}");
    }
}

#[test]
fn the_route_carries_conditions_and_is_asked_once_for_each_key() {
    let tier = r#""route_metadata":[{"key":"tier","equals":"gold"}]"#;
    let other = r#""route_metadata":[{"namespace":"com.x","key":"tier","glob":"g*"}]"#;
    let missing = r#""route_metadata":[{"key":"tier","exists":false}]"#;
    let table: [(&str, &[u8], (&str, &str)); 6] = [
        (tier, b"gold", ("hold", "pass")),
        (tier, b"GOLD", ("pass", "deny")),
        (tier, b"\xff", ("ambiguous route", "deny")),
        (tier, b"\0\0\0\0\0\0\0\0", ("ambiguous route", "deny")),
        (other, b"gold", ("pass", "deny")),
        (missing, b"gold", ("pass", "deny")),
    ];
    for (conditions, value, expected) in table {
        let sent = Sent {
            route: Route {
                values: vec![("hoop", "tier", value)],
                ..Route::default()
            },
            ..Sent::default()
        };
        assert_eq!(both(conditions, &sent), expected, "{conditions}");
    }
    assert_eq!(both(missing, &Sent::default()), ("hold", "pass"));

    let rules = format!(
        r#"[{},{},{}]"#,
        rule(&format!(r#""methods":["GET"],{other}"#), "deny"),
        rule(tier, "deny"),
        rule(tier, "require_approval")
    );
    let sent = Sent::default();
    sent.said(&policy(&rules));
    assert_eq!(*sent.route.asked.borrow(), ["hoop/tier"]);
}

#[test]
fn a_route_names_the_approval_rule_or_nobody_can_approve() {
    let policy = policy(
        r#"[{"action":"require_approval","approval_rule_from_route":"approval_rule","approval_mode":"return"}]"#,
    );
    let long = "x".repeat(256);
    let long: &'static [u8] = Box::leak(long.into_boxed_str().into_boxed_bytes());
    let table: [(Option<&'static [u8]>, Option<&str>); 7] = [
        (Some(b"billing"), Some("billing")),
        (None, None),
        (Some(b""), None),
        (Some(b" "), None),
        (Some(b"a\nb"), None),
        (Some(b"\xff"), None),
        (Some(long), None),
    ];
    for (value, expected) in table {
        let route = Route {
            values: value
                .map(|value| ("hoop", "approval_rule", value))
                .into_iter()
                .collect(),
            ..Route::default()
        };
        let head = Sent::default().head(&policy);
        let subject = Subject {
            head: &head,
            body: None,
            route: &route,
        };
        let Verdict::RequireApproval(hold) = policy.decide(&subject) else {
            panic!("not held");
        };
        assert_eq!(hold.approval_rule.as_deref(), expected, "{value:?}");
    }
}
