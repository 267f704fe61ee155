//! One request and what becomes of it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::driver::{Driver, Record};
use super::message::{Message, Response};
use super::request::Request;
use crate::header_map::HeaderMap;
use crate::stream::{DirectResponse, StreamId};
use crate::worker::UpstreamFailure;

/// A handle of one stream, for both sides of it: what the client and the upstream send, and what they have received.
#[derive(Clone)]
pub struct Stream(Rc<Handle>);

struct Handle {
    driver: Rc<RefCell<Driver>>,
    worker: usize,
    id: StreamId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Within a call of the driver itself, nobody else can hold this handle.
        if let Ok(mut driver) = self.driver.try_borrow_mut() {
            driver.forget(self.worker, self.id);
        }
    }
}

impl Stream {
    pub(super) fn open(driver: &Rc<RefCell<Driver>>, worker: usize, request: Request) -> Stream {
        let Request {
            headers,
            chunks,
            trailers,
            unfinished,
            info,
        } = request;
        let ends = !unfinished && chunks.is_empty() && trailers.is_none();
        let id = driver.borrow_mut().open(worker, info, headers, ends);
        let stream = Stream(Rc::new(Handle {
            driver: driver.clone(),
            worker,
            id,
        }));
        let last = chunks.len();
        for (index, chunk) in chunks.into_iter().enumerate() {
            let end = !unfinished && trailers.is_none() && index + 1 == last;
            stream.send(chunk, end);
        }
        if let Some(trailers) = trailers {
            stream.send_trailers(trailers);
        }
        stream
    }

    /// Sends a piece of the request's body, and more will follow.
    pub fn send_body(&self, chunk: impl Into<Vec<u8>>) {
        self.send(chunk.into(), false);
    }

    /// Sends the last piece of the request's body, possibly an empty one.
    pub fn finish(&self, chunk: impl Into<Vec<u8>>) {
        self.send(chunk.into(), true);
    }

    /// Sends the request's trailers, which end it.
    pub fn send_trailers(&self, trailers: HeaderMap) {
        self.drive(|worker, id| worker.request_trailers(id, trailers));
    }

    /// The client leaves.
    pub fn disconnect(&self) {
        self.drive(|worker, id| worker.client_gone(id));
    }

    /// The upstream answers, whole.
    pub fn respond(&self, response: Response) {
        self.0
            .driver
            .borrow_mut()
            .respond(self.0.worker, self.0.id, response);
    }

    /// The upstream sends the headers of an answer whose body follows.
    pub fn respond_headers(&self, response: Response) {
        self.drive(|worker, id| worker.response_headers(id, response.headers, false));
    }

    /// The upstream sends a piece of its answer's body.
    pub fn respond_body(&self, chunk: impl Into<Vec<u8>>, end_stream: bool) {
        let chunk: Vec<u8> = chunk.into();
        self.drive(|worker, id| worker.response_data(id, chunk.into(), end_stream));
    }

    /// The upstream sends trailers, which end its answer.
    pub fn respond_trailers(&self, trailers: HeaderMap) {
        self.drive(|worker, id| worker.response_trailers(id, trailers));
    }

    /// The route answers by itself, and no upstream is asked.
    pub fn respond_directly(&self, response: DirectResponse) {
        self.drive(|worker, id| worker.answer_directly(id, response));
    }

    /// The upstream cannot answer.
    pub fn fail_upstream(&self, failure: &UpstreamFailure) {
        self.drive(|worker, id| worker.upstream_failed(id, failure));
    }

    /// What the upstream has received.
    ///
    /// # Panics
    ///
    /// When nothing has reached it.
    #[track_caller]
    pub fn upstream_request(&self) -> Message {
        let request = self.record().request;
        request.unwrap_or_else(|| panic!("nothing has reached the upstream: {self:?}"))
    }

    /// Whether anything has reached the upstream.
    pub fn reached_upstream(&self) -> bool {
        self.record().request.is_some()
    }

    /// What the client has received.
    ///
    /// # Panics
    ///
    /// When it has received nothing yet.
    #[track_caller]
    pub fn response(&self) -> Message {
        let response = self.record().response;
        response.unwrap_or_else(|| panic!("no answer yet: {self:?}"))
    }

    /// Whether the client has received the headers of an answer.
    pub fn is_answered(&self) -> bool {
        self.record().response.is_some()
    }

    /// Whether the filter holds the request: it has reached no upstream, has no answer and is not over.
    pub fn is_paused(&self) -> bool {
        let record = self.record();
        record.request.is_none() && record.response.is_none() && !record.over
    }

    /// Whether the answer was broken off, or there was none when the stream was ended.
    pub fn was_reset(&self) -> bool {
        self.record().reset
    }

    /// Whether the request to the upstream was given up.
    pub fn upstream_was_reset(&self) -> bool {
        self.record().upstream_reset
    }

    /// Whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        self.record().over
    }

    fn send(&self, chunk: Vec<u8>, end_stream: bool) {
        self.drive(|worker, id| worker.request_data(id, chunk.into(), end_stream));
    }

    fn drive(&self, act: impl FnOnce(&mut crate::worker::Worker, StreamId)) {
        let mut driver = self.0.driver.borrow_mut();
        act(&mut driver.workers_mut()[self.0.worker], self.0.id);
        driver.pump();
    }

    fn record(&self) -> Record {
        self.0.driver.borrow().record(self.0.worker, self.0.id)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.record().fmt(formatter)
    }
}
