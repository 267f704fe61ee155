//! A request that went on under an approval which is not spent yet: what the upstream makes of it decides. Source: design 7.
//!
//! In doubt it ran: a wrong "spent" costs one more question to a person, a wrong "returned" could run a call twice.

use crate::control_plane::Settlement;
use crate::event::Event;

/// What is known of the upstream's answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UpstreamAnswer {
    /// The status code of a refusal that has begun and not ended.
    refused: bool,
}

impl UpstreamAnswer {
    /// Takes what happened; the settlement, once it is certain.
    pub fn handle(&mut self, event: &Event) -> Option<Settlement> {
        match event {
            // A refusal counts once it is whole: an answer that breaks off may come from a call that did run, and so may one behind
            // an earlier attempt.
            Event::ResponseStarted {
                status,
                is_conclusive,
            } => {
                self.refused = *status >= FIRST_REFUSAL && *is_conclusive;
                (!self.refused).then_some(Settlement::Spent)
            }
            Event::ResponseEnded => Some(if self.refused {
                Settlement::Returned
            } else {
                Settlement::Spent
            }),
            Event::StreamEnded { never_reached } => Some(if *never_reached && !self.refused {
                Settlement::Returned
            } else {
                Settlement::Spent
            }),
            Event::PlaneAnswered(_)
            | Event::RequestBody { .. }
            | Event::RequestBodyUnreadable
            | Event::RequestTrailers
            | Event::Watched(_) => None,
        }
    }
}

const FIRST_REFUSAL: u16 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Event = Event::ResponseStarted {
        status: 200,
        is_conclusive: true,
    };
    const NOT_OK: Event = Event::ResponseStarted {
        status: 400,
        is_conclusive: true,
    };
    const RETRIED: Event = Event::ResponseStarted {
        status: 400,
        is_conclusive: false,
    };
    const LEFT: Event = Event::StreamEnded {
        never_reached: false,
    };
    const NEVER: Event = Event::StreamEnded {
        never_reached: true,
    };

    fn settlement(events: &[Event]) -> Option<Settlement> {
        let mut answer = UpstreamAnswer::default();
        events.iter().find_map(|event| answer.handle(event))
    }

    #[test]
    fn an_accepting_answer_spends_as_soon_as_it_begins() {
        assert_eq!(settlement(&[OK]), Some(Settlement::Spent));
    }

    #[test]
    fn a_whole_refusal_returns() {
        assert_eq!(settlement(&[NOT_OK]), None);
        assert_eq!(
            settlement(&[NOT_OK, Event::ResponseEnded]),
            Some(Settlement::Returned)
        );
    }

    #[test]
    fn a_refusal_that_proves_nothing_spends() {
        assert_eq!(settlement(&[RETRIED]), Some(Settlement::Spent));
    }

    #[test]
    fn a_refusal_that_breaks_off_spends() {
        assert_eq!(settlement(&[NOT_OK, LEFT]), Some(Settlement::Spent));
        assert_eq!(settlement(&[NOT_OK, NEVER]), Some(Settlement::Spent));
    }

    #[test]
    fn without_an_answer_it_is_spent_unless_nobody_got_it() {
        assert_eq!(settlement(&[LEFT]), Some(Settlement::Spent));
        assert_eq!(settlement(&[NEVER]), Some(Settlement::Returned));
    }
}
