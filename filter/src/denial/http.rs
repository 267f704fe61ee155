//! The HTTP form of a denial (contract 3.6): 403 with the approval in headers, in this order.

use super::{Denial, Reason};
use crate::answer::Answer;
use crate::approval::Status;

impl Denial {
    /// The denial as an HTTP reply.
    ///
    /// Envoy drops `connection: close`, which is right there: each request is a stream of its own.
    #[must_use]
    pub fn to_http(&self) -> Answer {
        let mut headers = vec![
            ("content-type", "text/plain; charset=utf-8".to_owned()),
            ("cache-control", "no-store".to_owned()),
        ];
        headers.extend(self.metadata());
        headers.push(("connection", "close".to_owned()));
        let mut body = self.text().into_bytes();
        body.push(b'\n');
        Answer {
            status: self.http_status(),
            headers,
            body,
        }
    }

    /// What names the approval to a program, in both forms.
    pub(super) fn metadata(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        match self.approval() {
            Some((id, status)) => {
                headers.push(("x-hoop-denied", "review".to_owned()));
                for (id_name, status_name) in [
                    ("x-hoop-approval-id", "x-hoop-approval-status"),
                    ("x-hoop-review-id", "x-hoop-review-status"),
                ] {
                    headers.push((id_name, id.to_owned()));
                    headers.extend(status.map(|word| (status_name, word.to_owned())));
                }
            }
            None => headers.push(("x-hoop-denied", "policy".to_owned())),
        }
        if matches!(
            self.reason(),
            Reason::Approval {
                id: Some(_),
                status: Status::Pending
            }
        ) {
            headers.push(("retry-after", "5".to_owned()));
        }
        headers
    }

    const fn http_status(&self) -> u16 {
        match self.reason() {
            Reason::AmbiguousBody
            | Reason::AmbiguousHeader
            | Reason::AmbiguousPath
            | Reason::AmbiguousQuery
            | Reason::Malformed
            | Reason::MalformedCall => 400,
            Reason::Approval { .. }
            | Reason::BodyTooLarge
            | Reason::DenyRule
            | Reason::HoldTimeout { .. }
            | Reason::Internal
            | Reason::MessageTooLarge
            | Reason::MessageUnreadable
            | Reason::NotChecked { .. }
            | Reason::NoApprovalRule
            | Reason::NotFiled
            | Reason::RedactionKeyMissing
            | Reason::RouteMetadata
            | Reason::RepeatedMessage
            | Reason::StreamingDenied
            | Reason::TooManyMessages
            | Reason::TooManyWaiting
            | Reason::Upgrade => 403,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::ApprovalId;
    use crate::approval::SafeToken;

    const ID: &str = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";

    fn approval(id: Option<&str>, status: &str) -> Answer {
        let reason = Reason::Approval {
            id: id.and_then(SafeToken::parse),
            status: Status::parse(status),
        };
        Denial::new("held".to_owned(), reason).to_http()
    }

    #[test]
    fn a_pending_approval_says_what_to_wait_for() {
        let answer = approval(Some(ID), "PENDING");

        assert_eq!(answer.status, 403);
        let named = |name| answer.header(name);
        assert_eq!(named("x-hoop-denied"), Some("review"));
        assert_eq!(
            (named("x-hoop-approval-id"), named("x-hoop-approval-status")),
            (Some(ID), Some("PENDING"))
        );
        assert_eq!(
            (named("x-hoop-review-id"), named("x-hoop-review-status")),
            (Some(ID), Some("PENDING"))
        );
        assert_eq!(named("retry-after"), Some("5"));
        assert_eq!(
            String::from_utf8_lossy(&answer.body),
            format!(
                "held: waiting for approval; resend the identical statement once it is approved (approval {ID})\n"
            )
        );
    }

    #[test]
    fn every_other_status_has_its_words_and_no_retry() {
        let table = [
            ("REJECTED", "the approval request was rejected"),
            ("REVOKED", "the approval was revoked"),
            ("EXECUTED", "the approval was already used"),
            (
                "EXPIRED",
                "the approval request expired; running the statement again files a new approval request",
            ),
            ("APPROVED", "the statement was not released"),
            ("PROCESSING", "the statement was not released"),
            ("FOO", "the statement was not released"),
        ];
        for (status, words) in table {
            let answer = approval(Some(ID), status);

            assert_eq!(
                String::from_utf8_lossy(&answer.body),
                format!("held: {words} (approval {ID})\n")
            );
            assert_eq!(
                (
                    answer.header("retry-after"),
                    answer.header("x-hoop-approval-status")
                ),
                (None, Some(status))
            );
        }
    }

    #[test]
    fn a_status_that_cannot_be_repeated_is_left_out() {
        let answer = approval(Some(ID), "A\r\nX: y");

        assert_eq!(
            (
                answer.header("x-hoop-approval-id"),
                answer.header("x-hoop-approval-status")
            ),
            (Some(ID), None)
        );
    }

    #[test]
    fn without_an_id_it_is_a_policy_denial() {
        let answer = approval(None, "PENDING");

        assert_eq!(
            (answer.header("x-hoop-denied"), answer.header("retry-after")),
            (Some("policy"), None)
        );
        assert_eq!(answer.body, b"held: waiting for approval\n");
    }

    #[test]
    fn a_hold_that_ended_undecided_names_the_approval_and_asks_for_no_retry() {
        let id = ApprovalId::parse(ID.as_bytes()).expect("an id");
        let budget_ms = 1_800_000;
        let reason = Reason::HoldTimeout { id, budget_ms };

        let answer = Denial::new("held".to_owned(), reason).to_http();

        assert_eq!(
            (
                answer.header("x-hoop-denied"),
                answer.header("x-hoop-approval-status"),
                answer.header("retry-after")
            ),
            (Some("review"), Some("PENDING"), None)
        );
        assert_eq!(
            String::from_utf8_lossy(&answer.body),
            format!(
                "held: still waiting for approval after 30m0s; run the statement again once it is approved (approval {ID})\n"
            )
        );
    }

    #[test]
    fn one_approval_request_too_many_is_a_policy_denial_that_says_what_to_wait_for() {
        let answer = Denial::new("held".to_owned(), Reason::TooManyWaiting).to_http();

        assert_eq!(
            (
                answer.status,
                answer.header("x-hoop-denied"),
                answer.header("x-hoop-approval-id"),
                answer.header("retry-after")
            ),
            (403, Some("policy"), None, None)
        );
        assert_eq!(
            String::from_utf8_lossy(&answer.body),
            "held: too many approval requests are waiting for a decision; wait until some of them are decided\n"
        );
    }

    #[test]
    fn an_approval_that_could_not_be_checked_is_named_without_a_status() {
        let id = ApprovalId::parse(ID.as_bytes()).expect("an id");

        let answer = Denial::new("held".to_owned(), Reason::NotChecked { id }).to_http();

        assert_eq!(
            (
                answer.header("x-hoop-denied"),
                answer.header("x-hoop-review-id"),
                answer.header("x-hoop-review-status")
            ),
            (Some("review"), Some(ID), None)
        );
        assert_eq!(
            String::from_utf8_lossy(&answer.body),
            format!("held: the approval request could not be checked (approval {ID})\n")
        );
    }
}
