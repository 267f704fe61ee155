//! The gRPC form of a denial (contract 3.7).

use super::{Denial, Form};
use crate::answer::Answer;

impl Denial {
    /// The denial in the form that the request's client reads.
    #[must_use]
    pub fn to_answer(&self, form: Form) -> Answer {
        match form {
            Form::Grpc => self.to_grpc(),
            Form::Http => self.to_http(),
        }
    }

    /// The denial as a reply that Envoy turns into trailers alone: status 7 (PERMISSION_DENIED) from the 403, the message, which it
    /// percent-encodes, from the body, and the metadata from the headers. Where a filter in front of the gate has unpacked
    /// gRPC-Web, Envoy answers in that form.
    #[must_use]
    pub fn to_grpc(&self) -> Answer {
        Answer {
            status: 403,
            headers: self.metadata(),
            body: self.text().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::{SafeToken, Status};
    use crate::denial::Reason;

    #[test]
    fn a_pending_approval_is_metadata_and_text_without_a_line_feed() {
        let id = "9f97a1b2-0c3d-4e5f-8a9b-0c1d2e3f4a5b";
        let reason = Reason::Approval {
            id: SafeToken::parse(id),
            status: Status::Pending,
        };

        let answer = Denial::new("held".to_owned(), reason).to_answer(Form::Grpc);

        assert_eq!(answer.status, 403);
        let names: Vec<&str> = answer.headers.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "x-hoop-denied",
                "x-hoop-approval-id",
                "x-hoop-approval-status",
                "x-hoop-review-id",
                "x-hoop-review-status",
                "retry-after"
            ]
        );
        let text = String::from_utf8_lossy(&answer.body);
        assert!(text.ends_with(&format!("(approval {id})")), "{text}");
    }

    #[test]
    fn every_refusal_has_the_code_permission_denied() {
        let refused = Denial::by_policy(Reason::AmbiguousPath);

        assert_eq!(refused.to_answer(Form::Http).status, 400);
        assert_eq!(refused.to_answer(Form::Grpc).status, 403);
    }
}
