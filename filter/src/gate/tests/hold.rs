//! A request that waits for its decision.

use super::*;

fn holding() -> Listener {
    listener_with(r#""approval_mode":"hold","hold_timeout_ms":90000"#)
}

fn pending() -> Event {
    plane_says_with(
        "201",
        &format!(r#"{{"forward":false,"review":{{"id":"{ID}","status":"PENDING"}}}}"#),
    )
}

fn waiting(listener: &Listener) -> Gate {
    let (mut gate, _) = held(listener, "/p/1", true);
    let effects = gate.handle(listener, pending());
    assert_eq!(
        effects,
        [
            Effect::Watch {
                settles_later: false,
                id: id(),
                budget_ms: 90_000
            },
            Effect::Count(Counter::Filed)
        ]
    );
    gate
}

fn id() -> ApprovalId {
    ApprovalId::parse_canonical(ID).expect("canonical")
}

fn released(of: &str) -> News {
    let body = format!(r#"{{"forward":true,"review":{{"id":"{of}","status":"EXECUTED"}}}}"#);
    let headers = [
        (":status", &b"200"[..]),
        ("content-type", b"application/json"),
    ];
    let answer = PlaneAnswer::new(headers.into_iter(), Some(body.into_bytes()));
    let asked = ApprovalId::parse_canonical(of).expect("canonical");
    match read_claim(&answer, &asked) {
        Ok(crate::control_plane::Filing::Released(release)) => News::Released(release),
        other => panic!("{other:?}"),
    }
}

fn text(effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| {
        let Effect::Answer(answer) = effect else {
            return None;
        };
        Some(String::from_utf8_lossy(&answer.body).into_owned())
    })
}

#[test]
fn a_pending_approval_is_waited_for_and_the_client_gets_nothing() {
    let listener = holding();

    let gate = waiting(&listener);

    assert!(!gate.may_continue());
}

#[test]
fn the_release_forwards_once() {
    let listener = holding();
    let mut gate = waiting(&listener);

    assert!(forwards(
        &gate.handle(&listener, Event::Watched(released(ID)))
    ));
    assert!(gate.may_continue());
    assert_eq!(gate.handle(&listener, Event::Watched(released(ID))), []);
}

#[test]
fn a_release_of_another_approval_refuses() {
    let listener = holding();
    let mut gate = waiting(&listener);

    let other = "00000000-0000-4000-8000-000000000001";
    let effects = gate.handle(&listener, Event::Watched(released(other)));

    assert!(!forwards(&effects) && refusal(&effects).is_some());
}

#[test]
fn each_end_of_the_wait_has_its_words() {
    let listener = holding();
    let table = [
        (
            News::Stands(Status::Rejected),
            "the approval request was rejected",
        ),
        (News::Stands(Status::Revoked), "the approval was revoked"),
        (
            News::Stands(Status::Executed),
            "the approval was already used",
        ),
        (
            News::Stands(Status::Expired),
            "the approval request expired; running the statement again files a new approval request",
        ),
        (
            News::Stands(Status::Approved),
            "the statement was not released",
        ),
        (
            News::TimeOver,
            "still waiting for approval after 1m30s; run the statement again once it is approved",
        ),
        (
            News::NotChecked,
            "the approval request could not be checked",
        ),
    ];
    for (news, words) in table {
        let mut gate = waiting(&listener);

        let effects = gate.handle(&listener, Event::Watched(news));

        assert_eq!(
            text(&effects),
            Some(format!(
                "statement held for human approval: {words} (approval {ID})\n"
            ))
        );
        assert_eq!(refusal(&effects), Some((403, Some("review"))));
    }
}

#[test]
fn a_client_that_leaves_is_counted_as_abandoned_with_its_approval() {
    let listener = holding();
    let mut gate = waiting(&listener);

    let effects = gate.handle(&listener, LEFT);

    assert!(effects.contains(&Effect::Count(Counter::Abandoned)));
    let line = effects.iter().find_map(|effect| {
        let Effect::Log { line, .. } = effect else {
            return None;
        };
        Some(line.clone())
    });
    assert!(line.is_some_and(|line| line.contains(ID)));
}

#[test]
fn a_client_may_choose_how_it_waits() {
    let table = [
        ("hold", &[("x-hoop-approval-mode", "return")][..], false),
        ("return", &[("x-hoop-review-mode", "HOLD")], true),
        ("hold", &[("x-hoop-approval-mode", "maybe")], true),
        (
            "return",
            &[
                ("x-hoop-approval-mode", "hold"),
                ("x-hoop-review-mode", "return"),
            ],
            false,
        ),
    ];
    for (configured, headers, waits) in table {
        let listener = listener_with(&format!(r#""approval_mode":"{configured}""#));
        let head = head_with("/p/1", headers);
        let (Opening::Held(mut gate), _) = Gate::open(&listener, &head, true, &NothingKnown) else {
            panic!("not held");
        };

        let effects = gate.handle(&listener, pending());

        let watches = effects
            .iter()
            .any(|effect| matches!(effect, Effect::Watch { .. }));
        assert_eq!(watches, waits, "{configured} {headers:?}");
        assert_eq!(refusal(&effects).is_some(), !waits);
    }
}

#[test]
fn an_approval_without_a_canonical_id_cannot_be_waited_for() {
    let listener = holding();
    let (mut gate, _) = held(&listener, "/p/1", true);

    let effects = gate.handle(
        &listener,
        plane_says(r#"{"forward":false,"review":{"id":"x","status":"PENDING"}}"#),
    );

    assert!(refusal(&effects).is_some());
}

#[test]
fn observing_files_and_refuses_nothing() {
    let listener = listener_with(r#""enforcement":"observe""#);

    let (opening, effects) = Gate::open(&listener, &head("/p/1"), true, &NothingKnown);

    assert!(matches!(opening, Opening::Pass));
    assert!(effects.contains(&Effect::Count(Counter::ObservedHold)));
    assert_eq!((filed(&effects), refusal(&effects)), (None, None));
}
