//! A held request's body until its end: bounded, and every cut of the same bytes gives the same statement.

use crate::statement::Statement;

/// A body that has not ended.
#[derive(Debug)]
pub(super) struct Collecting {
    method: Vec<u8>,
    target: Vec<u8>,
    body: Vec<u8>,
    saw_body: bool,
    max_body_bytes: usize,
}

/// What a body has come to.
#[derive(Debug)]
pub(super) enum Collected {
    More(Collecting),
    TooLarge,
    Whole(Statement),
}

impl Collecting {
    pub const fn new(method: Vec<u8>, target: Vec<u8>, max_body_bytes: usize) -> Self {
        Self {
            method,
            target,
            body: Vec::new(),
            saw_body: false,
            max_body_bytes,
        }
    }

    /// The head came; with `end_of_stream` it was all.
    pub fn opened(self, end_of_stream: bool) -> Collected {
        if end_of_stream {
            self.ended()
        } else {
            Collected::More(self)
        }
    }

    pub fn body(mut self, chunk: &[u8], end_of_stream: bool) -> Collected {
        self.saw_body = true;
        if chunk.len() > self.max_body_bytes.saturating_sub(self.body.len()) {
            return Collected::TooLarge;
        }
        self.body.extend_from_slice(chunk);
        if end_of_stream {
            self.ended()
        } else {
            Collected::More(self)
        }
    }

    pub fn ended(self) -> Collected {
        Collected::Whole(Statement::http(&self.method, &self.target, &self.body))
    }

    /// Whether any part of the body, be it empty, was handed over.
    pub const fn saw_body(&self) -> bool {
        self.saw_body
    }

    /// One byte more than still fits, so that one too many is seen.
    pub fn room(&self) -> usize {
        self.max_body_bytes
            .saturating_sub(self.body.len())
            .saturating_add(1)
    }
}
