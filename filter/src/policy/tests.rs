//! Tables of requests and what a policy says of them.

use super::*;
use crate::config::Config;

fn policy(rules: &str) -> Policy {
    let text = format!(
        r#"{{"listener_name":"l","control_plane":{{"cluster":"c","authority":"a"}},"rules":{rules}}}"#
    );
    Policy::new(
        Config::parse(text.as_bytes())
            .expect("a valid configuration")
            .rules,
    )
}

fn payments() -> Policy {
    policy(
        r#"[{"name":"pay","match":{"methods":["POST","PUT"],"paths":["/payments/**"]},
             "action":"require_approval","approval_rule":"r","approval_mode":"return"}]"#,
    )
}

fn head(method: &str, target: &str) -> RequestHead {
    let headers = [
        (":method", method),
        (":path", target),
        (":authority", "Billing.Example.com:8443"),
    ];
    RequestHead::parse(
        headers
            .into_iter()
            .map(|(name, value)| (name, value.as_bytes())),
        &HeaderNames::default(),
    )
    .expect("readable")
}

fn said(policy: &Policy, head: &RequestHead) -> &'static str {
    said_of(&policy.decide(&Subject {
        head,
        body: None,
        route: &NoMetadata,
    }))
}

fn said_of(verdict: &Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Ambiguous {
            doubt: Doubt::Body, ..
        } => "ambiguous body",
        Verdict::Ambiguous {
            doubt: Doubt::Header,
            ..
        } => "ambiguous header",
        Verdict::Ambiguous {
            doubt: Doubt::PathOrHost,
            ..
        } => "ambiguous",
        Verdict::Ambiguous {
            doubt: Doubt::Query,
            ..
        } => "ambiguous query",
        Verdict::Ambiguous {
            doubt: Doubt::RouteMetadata,
            ..
        } => "ambiguous route",
        Verdict::Deny { .. } => "deny",
        Verdict::NeedsBody { .. } => "needs body",
        Verdict::Pass => "pass",
        Verdict::RequireApproval(_) => "hold",
    }
}

#[test]
fn a_rule_holds_its_methods_and_paths_and_nothing_else() {
    let table = [
        ("POST", "/payments/42", "hold"),
        ("post", "/payments/42?x=1", "hold"),
        ("PUT", "/payments", "hold"),
        ("POST", "/payments/", "hold"),
        ("POST", "/PAYMENTS/42", "hold"),
        ("POST", "/%70ayments/42", "hold"),
        ("GET", "/payments/42", "pass"),
        ("POST", "/orders/1", "pass"),
        ("POST", "/orders;v=1", "pass"),
        ("GET", "//payments/42", "pass"),
        ("POST", "//payments/42", "ambiguous"),
        ("POST", "/x/../payments/42", "ambiguous"),
        ("POST", "/payments/../orders", "ambiguous"),
        ("POST", "/payments/a%2fb", "ambiguous"),
        ("POST", "/payments%2f42", "ambiguous"),
        ("POST", "/orders?next=/payments/42", "pass"),
    ];
    let policy = payments();
    for (method, target, expected) in table {
        assert_eq!(
            said(&policy, &head(method, target)),
            expected,
            "{method} {target}"
        );
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        r#"[{"match":{"paths":["/payments/health"]},"action":"allow"},
            {"match":{"paths":["/admin/**"]},"action":"deny"},
            {"match":{"hosts":["*.example.com"]},"action":"require_approval","approval_rule":"r","approval_mode":"return"}]"#,
    );
    assert_eq!(said(&policy, &head("GET", "/payments/health")), "pass");
    assert_eq!(said(&policy, &head("GET", "/Payments/health")), "hold");
    assert_eq!(said(&policy, &head("GET", "/admin/x")), "deny");
    assert_eq!(said(&policy, &head("GET", "/ADMIN")), "deny");
    assert_eq!(said(&policy, &head("GET", "/other")), "hold");
    assert_eq!(said(&policy, &head("GET", "/x/../payments/health")), "hold");
}

#[test]
fn where_no_rule_looks_at_the_path_its_spelling_does_not_matter() {
    let policy = policy(
        r#"[{"match":{"methods":["POST"]},"action":"require_approval","approval_rule":"r","approval_mode":"return"}]"#,
    );

    for target in ["/a%2Fb", "//x", "/a/../b", "/a;b"] {
        assert_eq!(said(&policy, &head("POST", target)), "hold", "{target}");
    }
}

#[test]
fn a_request_without_a_path_could_be_any_path() {
    let connect = RequestHead::parse(
        [(":method", &b"CONNECT"[..]), (":authority", b"h:443")].into_iter(),
        &HeaderNames::default(),
    );
    let connect = connect.expect("readable");
    let by_path = policy(
        r#"[{"match":{"paths":["/a"]},"action":"require_approval","approval_rule":"r","approval_mode":"return"}]"#,
    );
    let by_host = policy(
        r#"[{"match":{"hosts":["*"]},"action":"require_approval","approval_rule":"r","approval_mode":"return"}]"#,
    );

    assert_eq!(said(&by_path, &connect), "ambiguous");
    assert_eq!(said(&by_host, &connect), "hold");
    assert_eq!(said(&payments(), &connect), "pass");
}

#[test]
fn a_long_ambiguous_path_is_refused_under_a_holding_rule() {
    let target = format!("/{}", "a;/".repeat(4_000) + "payments/42");

    assert_eq!(said(&payments(), &head("POST", &target)), "ambiguous");
    assert_eq!(said(&payments(), &head("GET", &target)), "pass");
}

#[test]
fn a_path_with_more_segments_than_are_matched_could_meet_any_rule() {
    let target = "/a".repeat(limits::PATH_SEGMENTS + 1);

    assert_eq!(said(&payments(), &head("POST", &target)), "ambiguous");
    assert_eq!(said(&payments(), &head("GET", &target)), "pass");
}

mod conditions;
mod index;
