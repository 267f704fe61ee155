//! What goes out to the Control Plane, byte for byte where the contract says so.

use super::*;

fn plane() -> ControlPlane {
    plane_that_spends(SpendOn::Release)
}

fn plane_that_spends(spend_on: SpendOn) -> ControlPlane {
    let config = ControlPlaneConfig {
        cluster: "plane".to_owned(),
        authority: "plane.example:8009".to_owned(),
        path_prefix: "/hoop".to_owned(),
        token_env: Some("T".to_owned()),
        timeout_ms: 5,
        heartbeat: false,
    };
    ControlPlane::new(
        config,
        Some(Credential::parse("hsc_x\n").expect("fit")),
        spend_on,
    )
}

fn file(plane: &ControlPlane, requester: Option<&Requester>) -> PlaneCall {
    plane.file(&FilingRequest {
        listener_name: "l",
        approval_rule: "r",
        statement: &Statement::http(b"POST", b"/a", b"\xff\xfe\xfd1"),
        requester,
        correlation: &Correlation::default(),
        spend_on: plane.spend_on(),
    })
}

fn id() -> ApprovalId {
    ApprovalId::parse(b"9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b").expect("an id")
}

fn body(call: &PlaneCall) -> Option<&str> {
    let body = call.body.as_deref()?;
    std::str::from_utf8(body).ok()
}

fn header<'c>(call: &'c PlaneCall, name: &str) -> Option<&'c str> {
    call.headers
        .iter()
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.as_str())
}

#[test]
fn a_filing_carries_the_statement_in_padded_base64_and_the_raw_token() {
    let call = file(&plane(), None);

    assert_eq!(header(&call, ":method"), Some("POST"));
    assert_eq!(header(&call, ":path"), Some("/hoop/api/sidecars/reviews"));
    assert_eq!(header(&call, "hoop-sidecar-token"), Some("hsc_x"));
    assert_eq!(
        call.body.as_deref(),
        Some(&br#"{"approval_rule":"r","listener_name":"l","payload":"UE9TVCAvYQoK//79MQ=="}"#[..])
    );
}

#[test]
fn a_read_has_no_body_and_no_content_type() {
    let id = ApprovalId::parse(b"9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b").expect("an id");

    let call = plane().read(&id, &Correlation::default());

    assert_eq!(
        header(&call, ":path"),
        Some("/hoop/api/sidecars/reviews/9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b")
    );
    assert_eq!((header(&call, "content-type"), &call.body), (None, &None));
}

#[test]
fn a_call_never_prints_its_token() {
    assert!(!format!("{:?} {:?}", plane(), file(&plane(), None)).contains("hsc_x"));
}

#[test]
fn a_token_that_cannot_be_a_header_is_refused() {
    assert_eq!(Credential::parse(" \n").err(), Some(CredentialUnfit::Empty));
    assert_eq!(
        Credential::parse("a\nb").err(),
        Some(CredentialUnfit::NotVisibleAscii)
    );
    assert_eq!(
        Credential::parse("é").err(),
        Some(CredentialUnfit::NotVisibleAscii)
    );
}

#[test]
fn a_claim_has_no_body_where_the_release_spends() {
    let call = plane().claim(&id(), SpendOn::Release);

    assert_eq!(
        header(&call, ":path"),
        Some("/hoop/api/sidecars/reviews/9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b/claim")
    );
    assert_eq!((header(&call, "content-type"), body(&call)), (None, None));
}

#[test]
fn where_the_upstreams_answer_spends_filing_and_claim_say_so() {
    let plane = plane_that_spends(SpendOn::Accepted);

    assert_eq!(
        body(&file(&plane, None)),
        Some(
            r#"{"approval_rule":"r","listener_name":"l","payload":"UE9TVCAvYQoK//79MQ==","spend_on":"accepted"}"#
        )
    );
    assert_eq!(
        body(&plane.claim(&id(), SpendOn::Accepted)),
        Some(r#"{"spend_on":"accepted"}"#)
    );
}

#[test]
fn a_settlement_names_its_outcome_and_the_release() {
    let settle = |release, outcome| plane().settle(&id(), release, outcome);

    assert_eq!(
        body(&settle(Some("r.\"1"), Settlement::Returned)),
        Some(r#"{"outcome":"returned","release_id":"r.\"1"}"#)
    );
    assert_eq!(
        body(&settle(None, Settlement::Spent)),
        Some(r#"{"outcome":"spent"}"#)
    );
}
