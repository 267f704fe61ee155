//! Callouts on their way: which token waits for what, until when, and the answer that a guest is reading just now.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::clock::Moment;
use crate::header_map::HeaderMap;

/// Names one callout of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CalloutId {
    /// Which of the worker's VMs, counted from 0; another one follows a crash.
    pub(crate) vm: u32,
    /// What the guest knows it by.
    pub(crate) token: u32,
}

impl CalloutId {
    /// The token that the guest was given.
    pub fn token(self) -> u32 {
        self.token
    }
}

/// What became of an HTTP callout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalloutOutcome {
    /// The cluster answered.
    Answered {
        /// The headers, `:status` included.
        headers: HeaderMap,
        /// The body.
        body: Bytes,
        /// The trailers.
        trailers: HeaderMap,
    },
    /// No answer can come. The guest sees what Envoy makes of it.
    Unreachable {
        /// 503, or 502 where the cluster has answered with something that is no HTTP.
        status: u16,
        /// Envoy's words for the reason.
        body: String,
    },
    /// The answer broke off, or was too large. The guest sees an answer without headers.
    Reset,
}

/// What comes back on a gRPC callout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcEvent {
    /// The call is over.
    Closed {
        /// The gRPC status, 0 for success.
        status: u32,
        /// What the peer said about it.
        message: String,
    },
    /// The peer's initial metadata.
    InitialMetadata(HeaderMap),
    /// A message.
    Message(Bytes),
    /// The peer's trailing metadata.
    TrailingMetadata(HeaderMap),
}

/// The callouts of one VM that wait for something.
#[derive(Debug, Default)]
pub(crate) struct Callouts {
    pub(crate) vm: u32,
    /// The last number of each kind, by the kind's bits.
    last: [u32; 3],
    waiting: BTreeMap<u32, Waiting>,
}

/// One callout that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The root context that gets the answer. Envoy makes every callout for the root, so it outlives its stream.
    pub(crate) root: u32,
    pub(crate) kind: Kind,
    pub(crate) deadline: Option<Moment>,
    /// The headers of its answer have come, so a time-out breaks it off instead of answering 504.
    pub(crate) answering: bool,
}

/// What kind of callout it is. The two lowest bits of a token tell it, as in Envoy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    GrpcCall {
        /// The answer's message, until the status tells whether it counts.
        message: Option<Bytes>,
    },
    GrpcStream {
        /// The guest has ended its side.
        local_closed: bool,
        /// The peer has ended its side.
        remote_closed: bool,
    },
}

impl Kind {
    pub(crate) fn bits(&self) -> u32 {
        match self {
            Kind::Http => 0,
            Kind::GrpcCall { .. } => 1,
            Kind::GrpcStream { .. } => 2,
        }
    }
}

impl Callouts {
    pub(crate) fn add(&mut self, root: u32, kind: Kind, deadline: Option<Moment>) -> CalloutId {
        let bits = kind.bits();
        let last = &mut self.last[bits as usize];
        *last = last.wrapping_add(1);
        let token = (*last << 2) | bits;
        self.waiting.insert(
            token,
            Waiting {
                root,
                kind,
                deadline,
                answering: false,
            },
        );
        CalloutId { vm: self.vm, token }
    }

    pub(crate) fn id(&self, token: u32) -> CalloutId {
        CalloutId { vm: self.vm, token }
    }

    pub(crate) fn get(&self, token: u32) -> Option<&Waiting> {
        self.waiting.get(&token)
    }

    pub(crate) fn get_mut(&mut self, token: u32) -> Option<&mut Waiting> {
        self.waiting.get_mut(&token)
    }

    pub(crate) fn remove(&mut self, token: u32) -> Option<Waiting> {
        self.waiting.remove(&token)
    }

    /// When the next one runs out of time, and which.
    pub(crate) fn next_deadline(&self) -> Option<(Moment, u32)> {
        let deadlines = self.waiting.iter();
        deadlines
            .filter_map(|(token, waiting)| Some((waiting.deadline?, *token)))
            .min()
    }
}

/// The answer that is being delivered. The guest can read it during that one callback.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) http_headers: Option<HeaderMap>,
    pub(crate) http_body: Option<Bytes>,
    pub(crate) http_trailers: Option<HeaderMap>,
    pub(crate) grpc_initial_metadata: Option<HeaderMap>,
    pub(crate) grpc_message: Option<Vec<u8>>,
    pub(crate) grpc_trailing_metadata: Option<HeaderMap>,
    /// What `proxy_get_status` says in words. The number stays after the callback; see `VmState::status`.
    pub(crate) status_message: String,
}
