//! What can happen to a stream after its request headers: a closed list that every machine shares.

use crate::control_plane::{PlaneAnswer, PlaneFault};

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The Control Plane answered the stream's call, or could not be asked.
    PlaneAnswered(Result<PlaneAnswer, PlaneFault>),
    /// Bytes of the request body that were not seen before.
    RequestBody {
        /// The bytes.
        chunk: Vec<u8>,
        /// Whether the request ends with them.
        end_of_stream: bool,
    },
    /// The host could not hand over the request body as it will be forwarded.
    RequestBodyUnreadable,
    /// Trailers came: they end the body, and no body event said so.
    RequestTrailers,
    /// The stream is over: answered, forwarded and done, or given up by the client or the host.
    StreamEnded,
}
