//! Owns the tests of `plane.yaml`, each message word for word; the test runner drives it. It must not know the wire.

use super::*;

const GOOD: &str = "
listeners:
  - name: billing-api
    approval_rules: [billing-approvers]
  - name: open-api
    approval_rules: []
approval_rules:
  - name: billing-approvers
    reviewers: [billing, finance]
    pending_ttl_sec: 60
    approval_ttl_sec: 604800
  - name: unlimited
    reviewers: [ops]
";

fn problem(yaml: &str) -> String {
    PlaneConfig::parse(yaml, "plane.yaml")
        .err()
        .map_or_else(String::new, |e| e.to_string())
}

fn with_rule(rule: &str) -> String {
    format!("listeners: []\napproval_rules:\n  - {rule}\n")
}

#[test]
fn a_good_file_is_read_whole() {
    let config = PlaneConfig::parse(GOOD, "plane.yaml").expect("a good file");
    let rule = config
        .authorised("billing-api", "billing-approvers")
        .expect("authorised");
    assert_eq!(rule.reviewers, ["billing", "finance"]);
    assert_eq!(rule.pending_ttl_sec, Some(60));
    assert_eq!(rule.approval_ttl_sec, Some(604_800));
}

#[test]
fn a_listener_may_use_only_the_rules_it_names() {
    let config = PlaneConfig::parse(GOOD, "plane.yaml").expect("a good file");
    for (listener, rule) in [
        ("billing-api", "unlimited"),
        ("billing-api", "absent"),
        ("open-api", "billing-approvers"),
        ("absent", "billing-approvers"),
        ("Billing-api", "billing-approvers"),
        ("", ""),
    ] {
        assert!(
            config.authorised(listener, rule).is_none(),
            "{listener} {rule}"
        );
    }
}

#[test]
fn err_blank_padded_and_unprintable_names() {
    for name in ["\"\"", "\"  \"", "\" a\"", "\"a\\n\"", "\"a\\u0007b\""] {
        let text = problem(&with_rule(&format!("{{name: {name}, reviewers: [a]}}")));
        assert!(
            text.starts_with("plane.yaml: approval_rules[0].name is "),
            "{text}"
        );
        let text = problem(&with_rule(&format!("{{name: a, reviewers: [a, {name}]}}")));
        assert!(
            text.starts_with("plane.yaml: approval_rules[0].reviewers[1] is "),
            "{text}"
        );
    }
    assert_eq!(
        problem(&with_rule("{name: '', reviewers: [a]}")),
        "plane.yaml: approval_rules[0].name is \"\"; allowed: 1 to 255 bytes without control characters and without \
         spaces around them\nhint: write a plain name such as billing-api"
    );
}

#[test]
fn err_a_name_twice() {
    assert_eq!(
        problem(
            "listeners: [{name: a, approval_rules: []}, {name: a, approval_rules: []}]\napproval_rules: []"
        ),
        "plane.yaml: listeners[1].name is \"a\" a second time; allowed: each name once\nhint: rename or remove one of \
         the two"
    );
    let text = problem(
        "listeners: []\napproval_rules: [{name: r, reviewers: [a]}, {name: r, reviewers: [a]}]",
    );
    assert!(
        text.starts_with("plane.yaml: approval_rules[1].name is \"r\" a second time"),
        "{text}"
    );
    let text = problem(&with_rule("{name: r, reviewers: [a, a]}"));
    assert!(
        text.starts_with("plane.yaml: approval_rules[0].reviewers[1] is \"a\" a second time"),
        "{text}"
    );
    let text = problem(
        "listeners: [{name: l, approval_rules: [r, r]}]\napproval_rules: [{name: r, reviewers: [a]}]",
    );
    assert!(
        text.starts_with("plane.yaml: listeners[0].approval_rules[1] is \"r\" a second time"),
        "{text}"
    );
}

#[test]
fn err_a_rule_that_nobody_decides() {
    assert_eq!(
        problem(&with_rule("{name: r, reviewers: []}")),
        "plane.yaml: approval_rules[0].reviewers is empty; allowed: at least one group name\nhint: name the group that \
         decides, such as [billing]"
    );
}

#[test]
fn err_a_listener_with_an_unknown_rule() {
    assert_eq!(
        problem(
            "listeners: [{name: l, approval_rules: [x]}]\napproval_rules: [{name: r, reviewers: [a]}]"
        ),
        "plane.yaml: listeners[0].approval_rules[0] is \"x\", and no approval rule has that name; allowed: r\nhint: add \
         the rule under approval_rules, or name one of these"
    );
    let text = problem("listeners: [{name: l, approval_rules: [x]}]\napproval_rules: []");
    assert!(
        text.contains("allowed: none, because approval_rules is empty"),
        "{text}"
    );
}

#[test]
fn err_a_time_limit_out_of_range() {
    for seconds in [0_u64, 59, 604_801, u64::MAX] {
        assert_eq!(
            problem(&with_rule(&format!(
                "{{name: r, reviewers: [a], approval_ttl_sec: {seconds}}}"
            ))),
            format!(
                "plane.yaml: approval_rules[0].approval_ttl_sec is {seconds}; allowed: 60 to 604800 seconds\nhint: \
                 leave the key out for no limit"
            )
        );
    }
    for seconds in [60_u64, 604_800] {
        let yaml = with_rule(&format!(
            "{{name: r, reviewers: [a], pending_ttl_sec: {seconds}}}"
        ));
        assert_eq!(problem(&yaml), "");
    }
}

#[test]
fn err_everything_that_is_not_this_file() {
    for yaml in [
        "",
        "[]",
        "listeners: []",
        "approval_rules: []",
        "listeners: []\napproval_rules: []\nextra: 1",
        "listeners: []\nlisteners: []\napproval_rules: []",
        "listeners: [{name: l, approval_rules: [], port: 1}]\napproval_rules: []",
        "listeners: []\napproval_rules: [{name: r, reviewers: [a], pending_ttl_sec: -1}]",
        "listeners: []\napproval_rules: [{name: r, reviewers: [a], pending_ttl_sec: soon}]",
        "listeners: []\napproval_rules: [{name: r}]",
        "listeners: {",
    ] {
        let text = problem(yaml);
        assert!(text.starts_with("plane.yaml: "), "{yaml:?} -> {text:?}");
        assert!(
            text.contains("\nhint: the file has two lists"),
            "{yaml:?} -> {text:?}"
        );
    }
}

#[test]
fn the_time_limit_of_a_flight_is_read_bounded_and_has_a_default() {
    let with = |line: &str| format!("listeners: []\napproval_rules: []\n{line}\n");
    for (line, expected) in [
        ("", 3_600),
        ("processing_ttl_sec: 60", 60),
        ("processing_ttl_sec: 604800", 604_800),
    ] {
        let config = PlaneConfig::parse(&with(line), "plane.yaml").expect("a good file");
        assert_eq!(config.processing_ttl_sec(), expected, "{line}");
    }
    for seconds in [0_u64, 59, 604_801, u64::MAX] {
        assert_eq!(
            problem(&with(&format!("processing_ttl_sec: {seconds}"))),
            format!(
                "plane.yaml: processing_ttl_sec is {seconds}; allowed: 60 to 604800 seconds\nhint: take more than the \
                 longest call may last; leave the key out for 3600"
            )
        );
    }
}

#[test]
fn the_limits_of_what_waits_are_read_bounded_and_have_defaults() {
    let with = |lines: &str| format!("listeners: []\napproval_rules: []\n{lines}\n");
    for (lines, in_all, per_requester) in [
        ("", 5_000, 1_000),
        ("max_waiting: 1000", 1_000, 1_000),
        ("max_waiting_per_requester: 1", 5_000, 1),
        ("max_waiting: 1\nmax_waiting_per_requester: 1", 1, 1),
        (
            "max_waiting: 100000\nmax_waiting_per_requester: 100000",
            100_000,
            100_000,
        ),
    ] {
        let config = PlaneConfig::parse(&with(lines), "plane.yaml").expect("a good file");
        assert_eq!(
            (config.max_waiting(), config.max_waiting_per_requester()),
            (in_all, per_requester),
            "{lines}"
        );
    }
    for key in ["max_waiting", "max_waiting_per_requester"] {
        for number in [0_u64, 100_001, u64::MAX] {
            assert_eq!(
                problem(&with(&format!("{key}: {number}"))),
                format!(
                    "plane.yaml: {key} is {number}; allowed: 1 to 100000\nhint: take what people can look through; leave \
                     the key out for its default"
                )
            );
        }
    }
}

#[test]
fn err_more_of_one_requester_than_of_all() {
    for (lines, in_all, per_requester) in [
        ("max_waiting: 999", 999, 1_000),
        ("max_waiting_per_requester: 5001", 5_000, 5_001),
        ("max_waiting: 2\nmax_waiting_per_requester: 3", 2, 3),
    ] {
        assert_eq!(
            problem(&format!("listeners: []\napproval_rules: []\n{lines}\n")),
            format!(
                "plane.yaml: max_waiting_per_requester is {per_requester} and max_waiting is {in_all}; allowed: at most \
                 max_waiting\nhint: set both; without the key the one is 1000 and the other 5000"
            )
        );
    }
}

#[test]
fn an_unknown_key_is_named() {
    let text = problem("listeners: []\napproval_rules: []\nlistener: 1");
    assert!(text.contains("listener"), "{text}");
    assert!(text.contains("line 3"), "{text}");
}
