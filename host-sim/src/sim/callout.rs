//! Callouts that a test answers.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::driver::Driver;
use super::message::{Message, Response};
use crate::callout::{CalloutId, CalloutOutcome, GrpcEvent};
use crate::header_map::HeaderMap;
use crate::output::{GrpcCallout, HttpCallout};

/// An HTTP callout. One that is never answered ends by its time-out when time passes; an answer behind that is dropped, as in Envoy.
#[derive(Clone)]
pub struct Callout {
    driver: Rc<RefCell<Driver>>,
    worker: usize,
    call: HttpCallout,
}

impl Callout {
    pub(super) fn waiting(driver: &Rc<RefCell<Driver>>) -> Vec<Callout> {
        let waiting = driver.borrow().waiting_callouts();
        let handle = |(worker, call)| Callout {
            driver: driver.clone(),
            worker,
            call,
        };
        waiting.into_iter().map(handle).collect()
    }

    /// The cluster that was called.
    pub fn cluster(&self) -> &str {
        &self.call.cluster
    }

    /// Headers, body and trailers as the guest wrote them.
    pub fn request(&self) -> Message {
        message(&self.call)
    }

    /// The time after which the guest gets 504 instead of an answer; `None` = it waits for ever.
    pub fn timeout(&self) -> Option<Duration> {
        self.call.timeout
    }

    /// The cluster answers.
    pub fn answer(&self, response: Response) {
        self.outcome(CalloutOutcome::Answered {
            headers: response.headers,
            body: response.body,
            trailers: response.trailers,
        });
    }

    /// The cluster refuses the connection: the guest gets Envoy's 503.
    pub fn refuse_connection(&self) {
        let body = "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure";
        self.outcome(CalloutOutcome::Unreachable {
            status: 503,
            body: body.to_owned(),
        });
    }

    /// The answer breaks off, or is larger than Envoy takes: the guest gets one without headers.
    pub fn reset(&self) {
        self.outcome(CalloutOutcome::Reset);
    }

    fn outcome(&self, outcome: CalloutOutcome) {
        self.driver
            .borrow_mut()
            .answer(self.worker, self.call.id, outcome);
    }
}

impl fmt::Debug for Callout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(formatter)
    }
}

/// A gRPC callout, or a stream of them.
#[derive(Clone)]
pub struct GrpcCall {
    driver: Rc<RefCell<Driver>>,
    worker: usize,
    id: CalloutId,
}

impl fmt::Debug for GrpcCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GrpcCall")
            .field("token", &self.id.token())
            .finish_non_exhaustive()
    }
}

impl GrpcCall {
    pub(super) fn open_ones(driver: &Rc<RefCell<Driver>>) -> Vec<GrpcCall> {
        let open = driver.borrow().open_grpc_calls();
        let handle = |(worker, id)| GrpcCall {
            driver: driver.clone(),
            worker,
            id,
        };
        open.into_iter().map(handle).collect()
    }

    /// What was called.
    ///
    /// # Panics
    ///
    /// When the guest has given it up meanwhile.
    #[track_caller]
    pub fn call(&self) -> GrpcCallout {
        let call = self.driver.borrow().grpc_call(self.worker, self.id);
        call.expect("the guest has given this call up").0
    }

    /// The messages that the guest has sent, and whether it has ended its side.
    pub fn sent(&self) -> (Vec<Bytes>, bool) {
        let call = self.driver.borrow().grpc_call(self.worker, self.id);
        call.map_or((Vec::new(), true), |(_, sent, ended)| (sent, ended))
    }

    /// The peer's metadata comes in.
    pub fn initial_metadata(&self, metadata: HeaderMap) {
        self.event(GrpcEvent::InitialMetadata(metadata));
    }

    /// A message comes in.
    pub fn message(&self, message: impl Into<Vec<u8>>) {
        self.event(GrpcEvent::Message(Bytes::from(message.into())));
    }

    /// The peer's trailing metadata comes in.
    pub fn trailing_metadata(&self, metadata: HeaderMap) {
        self.event(GrpcEvent::TrailingMetadata(metadata));
    }

    /// The call ends with this gRPC status.
    pub fn close(&self, status: u32, message: &str) {
        self.event(GrpcEvent::Closed {
            status,
            message: message.to_owned(),
        });
    }

    fn event(&self, event: GrpcEvent) {
        self.driver
            .borrow_mut()
            .grpc_event(self.worker, self.id, event);
    }
}

pub(super) fn message(call: &HttpCallout) -> Message {
    let trailers = (!call.trailers.is_empty()).then(|| call.trailers.clone());
    Message {
        headers: call.headers.clone(),
        body: call.body.to_vec(),
        trailers,
        complete: true,
    }
}
