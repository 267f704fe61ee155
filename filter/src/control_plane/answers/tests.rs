//! Every answer a plane, a proxy or an attacker may give, and that only one kind of it releases.

use proptest::prelude::*;

use super::*;

const ID: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";

fn answer(status: &str, content_type: &str, body: &str) -> PlaneAnswer {
    let headers = [
        (":status", status.as_bytes()),
        ("content-type", content_type.as_bytes()),
    ];
    PlaneAnswer::new(headers.into_iter(), Some(body.as_bytes().to_vec()))
}

fn json_answer(body: &str) -> PlaneAnswer {
    answer("200", "application/json", body)
}

#[test]
fn only_forward_true_beside_a_canonical_id_releases() {
    let body = format!(r#"{{"forward":true,"review":{{"id":"{ID}","status":"EXECUTED"}}}}"#);
    for status in ["200", "201"] {
        let filing = read_filing(&answer(status, "application/json; charset=utf-8", &body))
            .expect("trusted");

        assert!(matches!(filing, Filing::Released(release) if release.id().as_str() == ID));
    }
}

#[test]
fn every_other_answer_releases_nothing() {
    let forward = format!(r#"{{"forward":true,"review":{{"id":"{ID}"}}}}"#);
    let upper = format!(
        r#"{{"forward":true,"review":{{"id":"{}"}}}}"#,
        ID.to_uppercase()
    );
    let twice = format!(r#"{{"forward":false,"forward":true,"review":{{"id":"{ID}"}}}}"#);
    let behind = format!("{forward}{forward}");
    let answers = [
        answer("202", "application/json", &forward),
        answer("302", "application/json", &forward),
        answer("503", "text/plain", &forward),
        answer("504", "application/json", &forward),
        answer("", "application/json", &forward),
        answer("2000", "application/json", &forward),
        answer("200", "text/html", &forward),
        answer("200", "", &forward),
        answer("200", "application/json-seq", &forward),
        json_answer(""),
        json_answer("null"),
        json_answer("[]"),
        json_answer("true"),
        json_answer(r#"{"forward":true}"#),
        json_answer(r#"{"forward":true,"review":null}"#),
        json_answer(r#"{"forward":true,"review":{"id":""}}"#),
        json_answer(r#"{"forward":true,"review":{"id":"x"}}"#),
        json_answer(r#"{"forward":true,"review":{"id":1}}"#),
        json_answer(r#"{"forward":"true","review":{"id":"x"}}"#),
        json_answer(r#"{"forward":1}"#),
        json_answer(r#"{"review":{"status":"APPROVED"}}"#),
        json_answer(r#"{"forward":false}"#),
        json_answer(&upper),
        json_answer(&twice),
        json_answer(&behind),
        PlaneAnswer::new([].into_iter(), Some(forward.clone().into_bytes())),
        PlaneAnswer::new(
            [
                (":status", &b"200"[..]),
                ("content-type", b"application/json"),
            ]
            .into_iter(),
            None,
        ),
    ];
    for answer in answers {
        assert!(read_filing(&answer).is_err(), "{answer:?}");
    }
}

#[test]
fn a_status_word_never_releases() {
    let filing = read_filing(&json_answer(&format!(
        r#"{{"forward":false,"review":{{"id":"{ID}","status":"APPROVED"}}}}"#
    )));

    assert_eq!(
        filing,
        Ok(Filing::Held {
            id: SafeToken::parse(ID),
            status: Status::Approved,
            is_new: false,
        })
    );
}

#[test]
fn an_id_that_would_break_a_header_is_left_out() {
    let filing = read_filing(&json_answer(
        r#"{"forward":false,"review":{"id":"a\r\nx: y","status":"PENDING"}}"#,
    ));

    assert_eq!(
        filing,
        Ok(Filing::Held {
            id: None,
            status: Status::Pending,
            is_new: false,
        })
    );
}

#[test]
fn the_planes_own_words_are_kept_for_the_log_and_cleaned() {
    let long = format!(r#"{{"message":"no\nsuch {}"}}"#, "é".repeat(400));

    let fault = read_filing(&answer("422", "application/json", &long)).expect_err("refused");

    let text = fault.to_string();
    assert!(
        text.starts_with("answered with status 422: \"nosuch é"),
        "{text}"
    );
    assert!(text.len() < 400, "{text}");
}

#[test]
fn only_the_planes_own_429_says_that_too_many_wait() {
    let too_many = [
        answer("429", "application/json", r#"{"message":"too many"}"#),
        answer(
            "429",
            "application/json; charset=utf-8",
            r#"{"message":""}"#,
        ),
    ];
    for answer in too_many {
        let fault = read_filing(&answer).expect_err("refused");
        assert!(fault.says_too_many_wait(), "{answer:?}");
        assert_eq!(fault.kind(), PlaneFailure::Refused);
        assert!(fault.to_string().contains("hint"), "{fault}");
    }
    let others = [
        answer("429", "text/plain", "local_rate_limited"),
        answer("429", "text/plain", r#"{"message":"too many"}"#),
        answer("429", "application/json", "{}"),
        answer("429", "application/json", r#"{"message":1}"#),
        answer(
            "429",
            "application/json",
            r#"{"message":"a","message":"b"}"#,
        ),
        answer("429", "application/json", r#"["message"]"#),
        answer("503", "application/json", r#"{"message":"too many"}"#),
        answer("422", "application/json", r#"{"message":"too many"}"#),
    ];
    for answer in others {
        let fault = read_filing(&answer).expect_err("refused");
        assert!(!fault.says_too_many_wait(), "{answer:?}");
    }
    assert!(!PlaneFault::NoAnswer.says_too_many_wait());
}

fn view(fields: &str) -> String {
    format!(
        r#"{{"id":"{ID}","status":"PENDING","listener_name":"l","approval_rule":"r","created_at":"2026-09-29T14:02:11Z"{fields}}}"#
    )
}

fn asked() -> ApprovalId {
    ApprovalId::parse(ID.as_bytes()).expect("an id")
}

#[test]
fn ok_an_approval_with_and_without_its_optional_fields() {
    let plain =
        read_approval(&json_answer(&view(r#","decided_at":null"#)), &asked()).expect("readable");
    assert_eq!(
        (plain.decided_at, plain.expires_at, plain.rejection_reason),
        (None, None, None)
    );

    let full = view(
        r#","decided_at":"2026-09-29T14:03:40.123+02:00","expires_at":"2026-09-29T15:00:00Z","rejection_reason":"no","more":1"#,
    );
    let full = read_approval(&json_answer(&full), &asked()).expect("readable");
    assert_eq!(
        full.decided_at.as_deref(),
        Some("2026-09-29T14:03:40.123+02:00")
    );
    assert_eq!(full.rejection_reason.as_deref(), Some("no"));
}

#[test]
fn err_an_approval_that_cannot_be_reported() {
    let other = view("").replace("9f97", "0000");
    let cases = [
        (
            answer(
                "404",
                "application/json",
                r#"{"message":"review not found"}"#,
            ),
            ReadFault::Unknown,
        ),
        (
            answer("404", "text/plain", "404 page not found"),
            ReadFault::PlaneTooOld,
        ),
        (
            answer("404", "application/json", r#"{"message":null}"#),
            ReadFault::PlaneTooOld,
        ),
        (
            json_answer(&other),
            ReadFault::Plane(PlaneFault::OtherApproval),
        ),
        (
            json_answer(&view(r#","expires_at":"10000-01-01T00:00:00Z""#)),
            ReadFault::Unwritable,
        ),
        (
            json_answer(&view(r#","expires_at":"soon""#)),
            ReadFault::Plane(PlaneFault::FieldMissing("expires_at")),
        ),
        (
            json_answer("{}"),
            ReadFault::Plane(PlaneFault::FieldMissing("id")),
        ),
        (
            PlaneAnswer::new([].into_iter(), Some(Vec::new())),
            ReadFault::Plane(PlaneFault::NoAnswer),
        ),
    ];
    for (answer, fault) in cases {
        assert_eq!(read_approval(&answer, &asked()), Err(fault), "{answer:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_release_unless_they_say_so(
        status in prop_oneof![Just("200"), Just("201"), Just("503")],
        body in proptest::collection::vec(any::<u8>(), 0..128),
    ) {
        let headers = [(":status", status.as_bytes()), ("content-type", &b"application/json"[..])];
        let released = matches!(read_filing(&PlaneAnswer::new(headers.into_iter(), Some(body))), Ok(Filing::Released(_)));

        prop_assert!(!released);
    }
}
