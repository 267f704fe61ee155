//! A request that went on under an approval which is not spent yet: what the upstream makes of it decides. Of gRPC it is the
//! status of the call that counts, in the trailers or, where nothing else was answered, among the headers. Source: design 7.
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
}

impl UpstreamAnswer {
    /// Nothing yet, of a request in this form.
    pub const fn new(form: Form) -> Self {
        Self {
            form,
            refused: false,
            is_first_attempt: false,
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
                    (Form::Grpc, Some(status)) => self.refused = *status != OK,
                    // Trailers will tell, unless this is no gRPC at all.
                    (Form::Grpc, None) if !is_refusal => return None,
                    (Form::Grpc, None) => self.refused = *is_delimited,
                }
                self.refused &= *is_first_attempt;
                (!self.refused).then_some(Settlement::Spent)
            }
            Event::ResponseEnded { grpc_status } => {
                let failed = grpc_status.is_some_and(|status| status != OK);
                let refused = self.refused || (failed && self.is_first_attempt);
                Some(settlement(refused))
            }
            Event::StreamEnded { never_reached } => {
                Some(settlement(*never_reached && !self.refused))
            }
            Event::PlaneAnswered(_)
            | Event::RequestBody { .. }
            | Event::RequestBodyUnreadable
            | Event::RequestTrailers
            | Event::ResponseGoesOn
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
/// The `grpc-status` of a call that went well.
const OK: u32 = 0;

#[cfg(test)]
mod tests;
