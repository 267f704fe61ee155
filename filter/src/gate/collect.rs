//! A request's body until its end: bounded, and every cut of the same bytes gives the same whole.

/// A body that has not ended.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Vec<u8>,
    was_seen: bool,
    most: usize,
}

/// What a body has come to.
#[derive(Debug)]
pub(super) enum Collected {
    More(Body),
    TooLarge,
    Whole(Vec<u8>),
}

impl Body {
    /// Nothing yet, and at most so many bytes.
    pub const fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            was_seen: false,
            most,
        }
    }

    /// Takes the next bytes.
    pub fn add(mut self, chunk: &[u8], end_of_stream: bool) -> Collected {
        self.was_seen = true;
        if chunk.len() > self.most.saturating_sub(self.bytes.len()) {
            return Collected::TooLarge;
        }
        self.bytes.extend_from_slice(chunk);
        if end_of_stream {
            Collected::Whole(self.bytes)
        } else {
            Collected::More(self)
        }
    }

    /// The body ended with what came before.
    pub fn ended(self) -> Collected {
        Collected::Whole(self.bytes)
    }

    /// Whether any part of the body, be it empty, was handed over.
    pub const fn was_seen(&self) -> bool {
        self.was_seen
    }

    /// One byte more than still fits, so that one too many is seen.
    pub fn room(&self) -> usize {
        self.most.saturating_sub(self.bytes.len()).saturating_add(1)
    }
}
