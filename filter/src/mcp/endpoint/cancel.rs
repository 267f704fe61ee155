//! By what a wait and the notice that gives it up know each other. In the earlier era the notice comes as a request of its own, on any
//! connection, so each client is given a label with `initialize` (`Mcp-Session-Id`) that it sends from then on. Nothing is kept under it,
//! and a request without it, or with any other, is served as well.
//!
//! A wait that is given up ends with what is known, as if its time were over: should a notice ever find a wait that it does not mean, its
//! client asks again.

use crate::effect::WaitName;
use crate::identity::{Headers, Surroundings};
use crate::mcp::headers::{Sent, sent};
use crate::mcp::json_rpc::Id;

/// The header of the label.
pub(super) const LABEL: &str = "mcp-session-id";

/// A label that no other client has: no two requests come from one place in one moment.
pub(super) fn new_label(surroundings: &dyn Surroundings) -> String {
    let place = surroundings.peer().address.unwrap_or_default();
    let moment = surroundings.moment_ns().to_le_bytes();
    let half = |salt: &[u8]| hash(&[salt, &place, &moment]);
    format!("{:016x}{:016x}", half(b"1"), half(b"2"))
}

/// The name of a wait; none where its client has sent no label.
pub(super) fn name(headers: &Headers, id: &Id) -> Option<WaitName> {
    match sent(headers, LABEL) {
        Sent::Text(label) => Some(hash(&[label.as_bytes(), b" ", id.token().as_bytes()])),
        Sent::Absent | Sent::Unreadable => None,
    }
}

/// FNV-1a: nothing rests on the outcome being hard to find.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(label: &str, id: &str) -> Option<WaitName> {
        let headers = vec![(LABEL.to_owned(), label.as_bytes().to_vec())];
        name(&headers, &Id::parse(id).expect("an id"))
    }

    #[test]
    fn a_wait_goes_by_its_clients_label_and_its_id() {
        assert_eq!(of("a", "7"), of("a", "7"));
        assert_ne!(of("a", "7"), of("a", "8"));
        assert_ne!(of("a", "7"), of("a", "\"7\""));
        assert_ne!(of("a", "7"), of("b", "7"));
    }

    #[test]
    fn without_a_label_a_wait_has_no_name() {
        assert_eq!(name(&Headers::new(), &Id::parse("7").expect("an id")), None);
    }
}
