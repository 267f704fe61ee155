//! What can happen to a stream after its request headers: a closed list that every machine shares.

use std::rc::Rc;

use crate::approval::Status;
use crate::control_plane::{ApprovalView, PlaneAnswer, PlaneFault, ReadFault, Release};

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
    /// The upstream's answer came to its end.
    ResponseEnded {
        /// The `grpc-status` in its trailers.
        grpc_status: Option<u32>,
    },
    /// A part of the upstream's answer has gone on to the client: no reply can take its place any more.
    ResponseGoesOn {
        /// Whether that is more than its head.
        has_body: bool,
    },
    /// An answer that is sent piece by piece comes along.
    Paced(Pace),
    /// The upstream began to answer. A reply of the host's own, or of the gate's, is no answer of the upstream.
    ResponseStarted {
        /// Its status code.
        status: u16,
        /// The `grpc-status` among its headers.
        grpc_status: Option<u32>,
        /// Whether the host is sure that no other attempt at the request came before.
        is_first_attempt: bool,
        /// Whether the end of an answer of HTTP can be told from a connection that broke off. (gRPC ends with trailers.)
        is_delimited: bool,
    },
    /// The stream is over: answered, forwarded and done, or given up by the client or the host.
    StreamEnded {
        /// Whether the host is sure that no upstream got any of the request.
        never_reached: bool,
    },
    /// The approval that the stream waits for has moved.
    Watched(News),
}

/// How an answer that is sent piece by piece comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Its head is about to go on.
    Head {
        /// Whether it is the answer that the host paces, rather than one of something else.
        is_paced: bool,
    },
    /// The host asks for its next piece.
    Piece {
        /// Milliseconds of a clock that nobody sets.
        now_ms: u64,
    },
    /// Its end, which was held back, was let go.
    LetGo,
}

/// What becomes of an approval that somebody waits for. Each ends the wait.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Somebody who only wants to know is told how it stands: decided, or still undecided when the time was over.
    Read {
        /// The approval, or why it could not be read.
        read: Result<Rc<ApprovalView>, ReadFault>,
        /// How much of the time was left, in milliseconds.
        left_ms: u64,
    },
    /// The Control Plane could not be asked, or gave no answer that can be trusted.
    NotChecked,
    /// It was spent for whoever is told so.
    Released(Release),
    /// It stands so, and will not be released.
    Stands(Status),
    /// Nobody decided in the time that a request is held.
    TimeOver,
}
