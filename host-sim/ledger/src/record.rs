//! Owns what arrived and how it ended: the calls, their messages, the counts. `observe` writes calls and endings, `service`
//! writes messages, `Ledger` reads. It must not know sockets or what an answer says.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::HeaderMap;
use tokio::sync::watch;
use tonic::Code;

use crate::{
    limits::{CALLS_KEPT, MESSAGES_KEPT},
    proto::{GetBalanceRequest, PostRequest, ReconcileRequest, WatchRequest},
};

/// A method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Unary, changes nothing.
    GetBalance,
    /// Client-streaming.
    Import,
    /// Unary, books money.
    Post,
    /// Bidirectional.
    Reconcile,
    /// Server-streaming.
    Watch,
}

/// A message that a client sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// Of [`Method::GetBalance`].
    GetBalance(GetBalanceRequest),
    /// Of [`Method::Post`], or one of several of [`Method::Import`].
    Post(PostRequest),
    /// One of several of [`Method::Reconcile`].
    Reconcile(ReconcileRequest),
    /// Of [`Method::Watch`].
    Watch(WatchRequest),
}

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is under way.
    Open,
    /// The ledger answered to the end, with this status. Whether that reached the client is not known.
    Answered(Code),
    /// The client reset it, its connection broke, or its deadline passed before the head of the answer.
    Cancelled,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its number in the order of arrival, from one.
    pub number: u64,
    /// The path that was called.
    pub path: String,
    /// The method of this service that the path names; none for reflection and for what does not exist.
    pub method: Option<Method>,
    /// All headers, `te` and `grpc-timeout` too.
    pub metadata: HeaderMap,
    /// The messages in order, as decoded. Of a long call the first 1,024 are kept.
    pub messages: Vec<Message>,
    /// How many messages there were.
    pub message_count: u64,
    /// How it stands.
    pub ending: Ending,
}

impl Call {
    /// The first value under this name, if it is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.metadata.get(name)?.to_str().ok()
    }
}

impl Method {
    /// All of them, in alphabetical order.
    pub const ALL: [Self; 5] = [
        Self::GetBalance,
        Self::Import,
        Self::Post,
        Self::Reconcile,
        Self::Watch,
    ];

    /// The `:path` that calls it.
    pub const fn path(self) -> &'static str {
        match self {
            Self::GetBalance => "/ledger.v1.Ledger/GetBalance",
            Self::Import => "/ledger.v1.Ledger/Import",
            Self::Post => "/ledger.v1.Ledger/Post",
            Self::Reconcile => "/ledger.v1.Ledger/Reconcile",
            Self::Watch => "/ledger.v1.Ledger/Watch",
        }
    }

    /// The method that this path calls.
    pub fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.path() == path)
    }
}

/// What arrived since the start.
pub(crate) struct Record {
    kept: Mutex<Kept>,
    /// Told of each change, for whoever waits.
    changed: watch::Sender<()>,
}

/// One call that is being recorded. May be held by several, and the first ending counts.
#[derive(Clone)]
pub(crate) struct OpenCall {
    record: Arc<Record>,
    number: u64,
    method: Option<Method>,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            kept: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    pub(crate) fn begin(self: &Arc<Self>, path: &str, metadata: &HeaderMap) -> OpenCall {
        let method = Method::from_path(path);
        let number = self.change(|kept| {
            kept.begun += 1;
            if let Some(method) = method {
                kept.counts.entry(method).or_default().calls += 1;
            }
            if kept.calls.len() >= CALLS_KEPT {
                kept.calls.pop_front();
            }
            kept.calls.push_back(Call {
                number: kept.begun,
                path: path.to_owned(),
                method,
                metadata: metadata.clone(),
                messages: Vec::new(),
                message_count: 0,
                ending: Ending::Open,
            });
            kept.begun
        });
        OpenCall {
            record: Arc::clone(self),
            number,
            method,
        }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.kept().calls.iter().cloned().collect()
    }

    pub(crate) fn call_count(&self, method: Method) -> u64 {
        self.kept()
            .counts
            .get(&method)
            .map_or(0, |count| count.calls)
    }

    pub(crate) fn message_count(&self, method: Method) -> u64 {
        self.kept()
            .counts
            .get(&method)
            .map_or(0, |count| count.messages)
    }

    pub(crate) fn cancelled_count(&self) -> u64 {
        self.kept().cancelled
    }

    /// The oldest kept call of which this is true, as soon as there is one.
    pub(crate) async fn first(&self, mut is_it: impl FnMut(&Call) -> bool) -> Call {
        let mut changed = self.changed.subscribe();
        loop {
            let found = self.kept().calls.iter().find(|call| is_it(call)).cloned();
            if let Some(call) = found {
                return call;
            }
            // Fails only when the record is gone, and `self` is the record.
            let _ = changed.changed().await;
        }
    }

    fn change<T>(&self, how: impl FnOnce(&mut Kept) -> T) -> T {
        let done = how(&mut self.kept());
        self.changed.send_replace(());
        done
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCall {
    pub(crate) const fn method(&self) -> Option<Method> {
        self.method
    }

    /// A message was decoded.
    pub(crate) fn received(&self, message: Message) {
        self.record.change(|kept| {
            if let Some(method) = self.method {
                kept.counts.entry(method).or_default().messages += 1;
            }
            if let Some(call) = kept.call(self.number) {
                call.message_count += 1;
                if call.messages.len() < MESSAGES_KEPT {
                    call.messages.push(message);
                }
            }
        });
    }

    /// The call is over, unless it was before.
    pub(crate) fn ended(&self, ending: Ending) {
        self.record.change(|kept| {
            let Some(call) = kept.call(self.number) else {
                return;
            };
            if call.ending == Ending::Open {
                call.ending = ending;
                if ending == Ending::Cancelled {
                    kept.cancelled += 1;
                }
            }
        });
    }
}

#[derive(Default)]
struct Kept {
    begun: u64,
    cancelled: u64,
    calls: VecDeque<Call>,
    counts: BTreeMap<Method, Count>,
}

impl Kept {
    fn call(&mut self, number: u64) -> Option<&mut Call> {
        // Numbers follow each other, so the place is known.
        let first = self.calls.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        self.calls.get_mut(place)
    }
}

#[derive(Default)]
struct Count {
    calls: u64,
    messages: u64,
}
