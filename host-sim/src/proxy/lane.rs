//! A queue of what is to be sent one way of a stream: the worker puts in, the task of that side takes out.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::header_map::HeaderMap;

/// What is to be sent next.
#[derive(Debug)]
pub(super) enum Order {
    Headers {
        headers: HeaderMap,
        end_stream: bool,
    },
    Data {
        data: Bytes,
        end_stream: bool,
    },
    Trailers(HeaderMap),
    /// Nothing more: what was sent so far is broken off.
    Reset,
}

/// One way of one stream. It lives on one thread.
#[derive(Debug, Default)]
pub(super) struct Lane {
    orders: RefCell<VecDeque<Order>>,
    waiting_bytes: Cell<usize>,
    closed: Cell<bool>,
    filled: Notify,
    /// Told when there may be room again for what feeds this lane.
    pub(super) room: Notify,
}

impl Lane {
    pub(super) fn push(&self, order: Order) {
        if self.closed.get() {
            return;
        }
        if let Order::Data { data, .. } = &order {
            self.waiting_bytes
                .set(self.waiting_bytes.get() + data.len());
        }
        self.orders.borrow_mut().push_back(order);
        self.filled.notify_one();
    }

    /// Nothing is put in any more. What is in it is still taken out.
    pub(super) fn close(&self) {
        self.closed.set(true);
        self.filled.notify_one();
        self.room.notify_one();
    }

    /// Drops what waits, and breaks the way off.
    pub(super) fn reset(&self) {
        self.orders.borrow_mut().clear();
        self.waiting_bytes.set(0);
        self.push(Order::Reset);
        self.close();
    }

    /// The next order, if there is one already.
    pub(super) fn take(&self) -> Option<Order> {
        let order = self.orders.borrow_mut().pop_front()?;
        if let Order::Data { data, .. } = &order {
            self.waiting_bytes
                .set(self.waiting_bytes.get() - data.len());
        }
        self.room.notify_one();
        Some(order)
    }

    /// Whether there is a next order, and it is such a one.
    pub(super) fn begins_with(&self, wanted: impl Fn(&Order) -> bool) -> bool {
        self.orders.borrow().front().is_some_and(wanted)
    }

    /// The next order; `None` once the lane is closed and empty.
    pub(super) async fn next(&self) -> Option<Order> {
        loop {
            if let Some(order) = self.take() {
                return Some(order);
            }
            if self.closed.get() {
                return None;
            }
            self.filled.notified().await;
        }
    }

    /// Whether so much waits that whoever feeds this lane should pause.
    pub(super) fn is_full(&self) -> bool {
        self.waiting_bytes.get() > LANE_BYTES
    }
}

/// What may wait for a slow peer. Envoy's limit is the listener's buffer limit; this is its default.
const LANE_BYTES: usize = 1024 * 1024;
