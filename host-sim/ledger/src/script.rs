//! Owns the answers that a test may put in the ledger's mouth. `Ledger` fills it, `observe` and `service` act on it. It must
//! not know how an answer is sent.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use tonic::Status;

use crate::record::Method;

/// What the ledger does with a call instead of what it would do. Each script is for one call.
#[derive(Clone, Debug)]
pub enum Script {
    /// Does what was asked and never answers.
    Hang,
    /// Does what was asked, sends the head of its answer (the initial metadata) and then nothing any more.
    HangAfterHead,
    /// Does nothing and refuses with this status and its metadata in one head (trailers-only). The message of a unary or
    /// server-streaming call is read and recorded before; of the other two kinds, none is.
    Refuse(Status),
    /// Does what was asked and answers in full, but ends with this status and its metadata in the trailers.
    RefuseAfterAnswer(Status),
}

/// Scripts in wait, per method.
#[derive(Default)]
pub(crate) struct Scripts(Mutex<BTreeMap<Method, VecDeque<Script>>>);

impl Scripts {
    pub(crate) fn push(&self, method: Method, script: Script) {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(method).or_default().push_back(script);
    }

    pub(crate) fn take(&self, method: Method) -> Option<Script> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.get_mut(&method)?.pop_front()
    }
}
