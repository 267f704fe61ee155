//! What a file's syntax or edition means for the fields and enums in it, and what `features` options change.

use super::super::wire::{self, Malformed, Value};

/// The features that decide how bytes are read and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// Whether absent and zero differ.
    pub has_presence: bool,
    /// Whether enums take no number without a name.
    pub is_closed: bool,
    /// Whether repeated numbers stand in one record of bytes.
    pub is_packed: bool,
    /// Whether messages stand between group tags.
    pub is_delimited: bool,
}

impl Features {
    const PROTO2: Self = Self {
        has_presence: true,
        is_closed: true,
        is_packed: false,
        is_delimited: false,
    };
    const PROTO3: Self = Self {
        has_presence: false,
        is_closed: false,
        is_packed: true,
        is_delimited: false,
    };
    /// Editions 2023 and 2024, which differ in nothing that matters here.
    const EDITIONS: Self = Self {
        has_presence: true,
        is_closed: false,
        is_packed: true,
        is_delimited: false,
    };

    /// The defaults of a file; `None` for a syntax or edition that is not known.
    pub fn of_file(syntax: &str, edition: u64) -> Option<Self> {
        match (syntax, edition) {
            ("" | "proto2", 0 | 998) => Some(Self::PROTO2),
            ("proto3", 0 | 999) => Some(Self::PROTO3),
            ("editions", 1_000 | 1_001) => Some(Self::EDITIONS),
            _ => None,
        }
    }

    /// These, but for what a `FeatureSet` says. A value that is not known makes the whole unreadable.
    pub fn with(mut self, set: &[u8]) -> Result<Self, Malformed> {
        for field in wire::fields(set) {
            let field = field?;
            let Value::Varint(value) = field.value else {
                // Features of single languages are messages.
                continue;
            };
            match (field.number, value) {
                (_, 0) => {}
                // Explicit, and required as in proto2.
                (1, 1 | 3) => self.has_presence = true,
                (1, 2) => self.has_presence = false,
                (2, 1) => self.is_closed = false,
                (2, 2) => self.is_closed = true,
                (3, 1) => self.is_packed = true,
                (3, 2) => self.is_packed = false,
                (5, 1) => self.is_delimited = false,
                (5, 2) => self.is_delimited = true,
                (1..=3 | 5, _) => return Err(Malformed),
                // Strings that are no UTF-8 are never shown as JSON; the others do not touch the wire.
                _ => {}
            }
        }
        Ok(self)
    }
}
