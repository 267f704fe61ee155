//! What a machine wants done: a closed list, carried out by the adapter in the order in which it is given.

use crate::answer::Answer;
use crate::approval::ApprovalId;
use crate::control_plane::{PendingSettlement, PlaneCall, Release, Settlement};
use crate::metrics::Counter;

/// An order to the driver of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Give the answer that the host paces this head.
    AnswerHead(Vec<(&'static str, String)>),
    /// Hold the answer back with these bytes as its last piece, and let it go a moment later, which ends it.
    AnswerEnd(Vec<u8>),
    /// Keep the piece that passes from the client: the answer was let go, and its end may still be on its way.
    AnswerOver,
    /// Send these bytes as the piece that the host asks for.
    AnswerPiece(Vec<u8>),
    /// Send the reply; the stream ends with it and the upstream never sees the request.
    Answer(Answer),
    /// Send a call to the Control Plane, and report its outcome as one [`crate::event::Event::PlaneAnswered`].
    CallPlane(PlaneCall),
    /// End the waits that this names with what is known of their approvals: their client has given up.
    Cancel {
        /// The name.
        wait: WaitName,
    },
    /// From now on the wait of this stream goes by this name.
    Cancellable {
        /// The name.
        wait: WaitName,
    },
    /// Add one to a counter.
    Count(Counter),
    /// Let the head of the upstream's answer go on, which was kept back.
    ForwardAnswer,
    /// Let the held request go on. The release is used up with it.
    Forward(Release),
    /// Let the held request go on to the route that paces an answer, which is to have so many bytes.
    ForwardPaced {
        /// How many.
        bytes: usize,
    },
    /// Let the messages of a gRPC call that are kept back go on, a release for each of them. They are used up with it.
    ForwardMessages(Vec<Release>),
    /// Write a line to the operator's log.
    Log {
        /// How much it matters.
        level: log::Level,
        /// The line; it holds no statement, token, query or address.
        line: String,
    },
    /// Note for the access log what was decided.
    Note(Note),
    /// Take all trailers off the request: nobody was shown them.
    RemoveRequestTrailers,
    /// Break the stream off: it was answered in part, so that no reply can say why. The upstream sees no more of the request.
    Reset,
    /// Tell the Control Plane how a release ended; nobody waits for the answer.
    Settle {
        /// The approval.
        id: ApprovalId,
        /// Which release of it.
        pending: PendingSettlement,
        /// How it ended.
        settlement: Settlement,
    },
    /// Wait for what becomes of an approval, which comes as one [`crate::event::Event::Watched`].
    Watch {
        /// The approval.
        id: ApprovalId,
        /// How long, in milliseconds.
        budget_ms: u64,
        /// Whether the release is not to spend the approval, whatever the listener says.
        settles_later: bool,
    },
}

/// What a client knows of a wait of its own: the label that it was given, and the id of its request.
pub type WaitName = u64;

/// What an access log can print of a decision. Each field is safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One word: `released`, `refused`, `would_refuse` and the like.
    pub outcome: &'static str,
    /// The operator's name of the rule that decided; empty where none did.
    pub rule: String,
    /// The approval; empty where there is none.
    pub approval_id: String,
}
