//! The table of the contract's section 4, row by row.

use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::identity::NothingKnown;
use crate::listener::Secrets;
use crate::request::HeaderNames;

const ID: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";

fn listener(with_plane: bool) -> Listener {
    let plane = if with_plane {
        r#","control_plane":{"cluster":"c","authority":"a"}"#
    } else {
        ""
    };
    let text = format!(r#"{{"listener_name":"billing"{plane}}}"#);
    Listener::new(
        Config::parse(text.as_bytes()).expect("valid"),
        Secrets::default(),
    )
}

fn claimed(target: &str) -> Claim {
    let headers = [(":method", &b"GET"[..]), (":path", target.as_bytes())];
    claim(&RequestHead::parse(headers.into_iter(), &HeaderNames::default()).expect("readable"))
}

fn answer_of(effects: &[Effect]) -> Option<(u16, Value)> {
    effects.iter().find_map(|effect| {
        let Effect::Answer(answer) = effect else {
            return None;
        };
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.body.last(), Some(&b'\n'));
        let body = serde_json::from_slice(&answer.body).expect("JSON");
        Some((answer.status, body))
    })
}

fn at_once(with_plane: bool, method: &str, rest: &str) -> (u16, String) {
    let (read, effects) = open(
        &listener(with_plane),
        method.as_bytes(),
        rest.as_bytes(),
        &NothingKnown,
    );
    assert!(read.is_none(), "{method} {rest} asks the plane");
    let (status, body) = answer_of(&effects).expect("an answer");
    (
        status,
        body["message"].as_str().expect("a message").to_owned(),
    )
}

fn after(status: &str, content_type: &str, body: &str) -> (u16, Value) {
    let listener = listener(true);
    let (read, _) = open(
        &listener,
        b"GET",
        format!("approvals/{}", ID.to_uppercase()).as_bytes(),
        &NothingKnown,
    );
    let headers = [
        (":status", status.as_bytes()),
        ("content-type", content_type.as_bytes()),
    ];
    let answer = PlaneAnswer::new(headers.into_iter(), Some(body.as_bytes().to_vec()));
    let effects = read
        .expect("a read")
        .handle(&listener, Event::PlaneAnswered(Ok(answer)))
        .expect("ended");
    answer_of(&effects).expect("an answer")
}

fn view(status: &str, listener: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{ID}","status":"{status}","listener_name":"{listener}","approval_rule":"r","created_at":"2026-09-29T14:02:11Z"{more}}}"#
    )
}

#[test]
fn the_prefix_is_ours_raw_or_decoded_once() {
    for target in [
        "/.well-known/hoop/",
        "/.well-known/hoop/approvals/x?y=1",
        "/%2ewell-known/hoop/x",
        "/.well-known%2Fhoop/x",
        "/.well-known/hoop//approvals/x",
        "/.well-known/hoop/../admin",
        "/.well-known/hoop/%zz",
    ] {
        assert!(matches!(claimed(target), Claim::Ours(_)), "{target}");
    }
}

#[test]
fn what_could_be_brought_under_the_prefix_is_disguised() {
    for target in [
        "//.well-known/hoop/x",
        "/./.well-known/hoop/x",
        "/x/../.well-known/hoop/x",
        "/.well-known\\hoop\\x",
        "/.well-known;a/hoop/x",
        "/%252ewell-known/hoop/x",
        "/.well-known//hoop/x",
        "/x/%2e%2e/.well-known/hoop/x",
        "///h/.well-known/hoop/x",
        "/\\/h/.well-known/hoop/x",
        "/%2e/.well-known/hoop/%2f..%2f..%2f..%2f..",
        "/.well-known%c0%afhoop/x",
    ] {
        assert_eq!(claimed(target), Claim::Disguised, "{target}");
    }
}

#[test]
fn everything_else_is_ordinary_traffic() {
    for target in [
        "/.well-known/hoop",
        "/.WELL-KNOWN/hoop/x",
        "/.well-known/other",
        "/x?/.well-known/hoop/",
        "/",
        "*",
    ] {
        assert_eq!(claimed(target), Claim::NotOurs, "{target}");
    }
}

#[test]
fn the_checks_come_in_the_order_of_the_contract() {
    let not_allowed = "only GET and HEAD are served under /.well-known/hoop/";
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        assert_eq!(
            at_once(false, method, "nothing"),
            (405, not_allowed.to_owned())
        );
    }
    for rest in [
        "",
        "x",
        "approvals",
        "approvals/",
        "reviews/",
        "Approvals/x",
        "/approvals/x",
        "../admin",
    ] {
        assert_eq!(
            at_once(false, "GET", rest),
            (404, "not found".to_owned()),
            "{rest}"
        );
    }
    assert_eq!(at_once(false, "HEAD", "approvals/x").0, 503);
    for id in [
        "x",
        "..",
        "a/b",
        ID.split_at(35).0,
        &format!("{ID}/"),
        &format!("{{{ID}}}"),
    ] {
        assert_eq!(
            at_once(true, "GET", &format!("reviews/{id}")),
            (404, "review not found on this sidecar".to_owned())
        );
    }
}

#[test]
fn a_405_says_what_is_allowed() {
    let (_, effects) = open(&listener(true), b"POST", b"approvals/x", &NothingKnown);

    assert!(effects.iter().any(|effect| matches!(effect, Effect::Answer(answer) if answer.header("allow") == Some("GET, HEAD"))));
}

#[test]
fn an_approval_is_reported_with_what_to_do_next() {
    let (status, body) = after(
        "200",
        "application/json",
        &view(
            "PENDING",
            "billing",
            r#","decided_at":null,"expires_at":"2026-09-29T14:32:11Z""#,
        ),
    );

    assert_eq!(status, 200);
    assert_eq!(
        body,
        json!({"id": ID, "status": "PENDING", "listener_name": "billing", "approval_rule": "r",
               "created_at": "2026-09-29T14:02:11Z", "decided_at": null, "expires_at": "2026-09-29T14:32:11Z", "next": "wait"})
    );
}

#[test]
fn a_rejection_says_why_and_stops() {
    let (_, body) = after(
        "200",
        "application/json",
        &view("REJECTED", "billing", r#","rejection_reason":"not today""#),
    );

    assert_eq!(
        (&body["rejection_reason"], &body["next"]),
        (&json!("not today"), &json!("stop"))
    );
}

#[test]
fn another_listeners_approval_reads_as_an_unknown_one() {
    let unknown = (404, json!({"message": "review not found on this sidecar"}));

    assert_eq!(
        after("200", "application/json", &view("PENDING", "other", "")),
        unknown
    );
    assert_eq!(
        after(
            "404",
            "application/json",
            r#"{"message":"review not found"}"#
        ),
        unknown
    );
}

#[test]
fn a_plane_that_cannot_report_is_a_502_without_its_words() {
    let too_old = "the control plane is older than this sidecar and cannot report review status; upgrade the control plane";
    assert_eq!(
        after("404", "text/plain", "404 page not found"),
        (502, json!({"message": too_old}))
    );
    for (status, content_type, body) in [
        ("500", "application/json", r#"{"message":"at 10.0.0.1"}"#),
        ("503", "text/plain", "connect 10.0.0.1"),
        ("401", "application/json", r#"{"message":"access denied"}"#),
        ("200", "text/html", "<html>"),
        ("302", "application/json", "{}"),
        (
            "200",
            "application/json",
            &view("PENDING", "billing", "").replace("9f97", "0000"),
        ),
    ] {
        assert_eq!(
            after(status, content_type, body),
            (
                502,
                json!({"message": "the control plane could not report the review"})
            ),
            "{status} {body}"
        );
    }
    let year = view(
        "PENDING",
        "billing",
        r#","expires_at":"10000-01-01T00:00:00Z""#,
    );
    assert_eq!(after("200", "application/json", &year).0, 500);
}
