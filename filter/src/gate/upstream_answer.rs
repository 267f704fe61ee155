//! A request that went on under an approval which is not spent yet: what the upstream makes of it decides. Of gRPC it is the
//! status of the call that counts, in the trailers or, where nothing else was answered, among the headers. Source: design 7, which gives
//! back at every status but 0; a client could then have one call run again and again by short deadlines.
//!
//! In doubt it ran: a wrong "spent" costs one more question to a person, a wrong "returned" could run a call twice.

use crate::control_plane::Settlement;
use crate::denial::Form;
use crate::event::Event;

/// What is known of the upstream's answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpstreamAnswer {
    form: Form,
    /// A refusal has begun that counts once it is whole.
    refused: bool,
    /// No attempt came before the one that answers.
    is_first_attempt: bool,
    /// A message of the answer came.
    has_body: bool,
}

impl UpstreamAnswer {
    /// Nothing yet, of a request in this form.
    pub const fn new(form: Form) -> Self {
        Self {
            form,
            refused: false,
            is_first_attempt: false,
            has_body: false,
        }
    }

    /// Takes what happened; the settlement, once it is certain.
    pub fn handle(&mut self, event: &Event) -> Option<Settlement> {
        match event {
            // A refusal counts once it is whole: an answer that breaks off may come from a call that did run, and so may one behind
            // an earlier attempt.
            Event::ResponseStarted {
                status,
                grpc_status,
                is_first_attempt,
                is_delimited,
            } => {
                self.is_first_attempt = *is_first_attempt;
                let is_refusal = *status >= FIRST_REFUSAL;
                match (self.form, grpc_status) {
                    (Form::Http, _) => self.refused = is_refusal && *is_delimited,
                    (Form::Grpc, Some(status)) => self.refused = is_refusal_of_grpc(*status),
                    // Trailers will tell, unless this is no gRPC at all.
                    (Form::Grpc, None) if !is_refusal => return None,
                    (Form::Grpc, None) => self.refused = *is_delimited,
                }
                self.refused &= *is_first_attempt;
                (!self.refused).then_some(Settlement::Spent)
            }
            // A message of the answer is the word of a call that runs.
            Event::ResponseGoesOn { has_body: true } if self.form == Form::Grpc => {
                self.has_body = true;
                Some(Settlement::Spent)
            }
            Event::ResponseEnded { grpc_status } => {
                let failed = grpc_status.is_some_and(is_refusal_of_grpc);
                let refused = self.refused || (failed && self.is_first_attempt && !self.has_body);
                Some(settlement(refused))
            }
            Event::StreamEnded { never_reached } => {
                Some(settlement(*never_reached && !self.refused))
            }
            Event::Paced(_)
            | Event::PlaneAnswered(_)
            | Event::RequestBody { .. }
            | Event::RequestBodyUnreadable
            | Event::RequestTrailers
            | Event::ResponseGoesOn { .. }
            | Event::Watched(_) => None,
        }
    }
}

const fn settlement(is_sure_not_to_have_run: bool) -> Settlement {
    if is_sure_not_to_have_run {
        Settlement::Returned
    } else {
        Settlement::Spent
    }
}

const FIRST_REFUSAL: u16 = 400;

/// Whether a status of gRPC says that the service did not take the call. The others may come from a call that ran: a deadline that the
/// client chose, a fault on the way, a connection that broke.
const fn is_refusal_of_grpc(status: u32) -> bool {
    // INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, OUT_OF_RANGE,
    // UNIMPLEMENTED, UNAUTHENTICATED.
    matches!(status, 3 | 5..=9 | 11 | 12 | 16)
}

#[cfg(test)]
mod tests;
