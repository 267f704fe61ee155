//! What a machine wants done: a closed list, carried out by the adapter in the order in which it is given.

use crate::answer::Answer;
use crate::control_plane::{PlaneCall, Release};
use crate::metrics::Counter;

/// An order to the driver of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send the reply; the stream ends with it and the upstream never sees the request.
    Answer(Answer),
    /// Send a call to the Control Plane, and report its outcome as one [`crate::event::Event::PlaneAnswered`].
    CallPlane(PlaneCall),
    /// Add one to a counter.
    Count(Counter),
    /// Let the held request go on. The release is used up with it.
    Forward(Release),
    /// Write a line to the operator's log.
    Log {
        /// How much it matters.
        level: log::Level,
        /// The line; it holds no statement, token, query or address.
        line: String,
    },
}
