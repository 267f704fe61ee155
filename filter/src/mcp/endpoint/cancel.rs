//! By what a wait and the notice that gives it up know each other. In the earlier era the notice comes as a request of its own, and
//! there is no session that would say whose it is.
//!
//! Two clients behind one address may well number their requests alike. A wait that is given up therefore ends with what is known, as
//! if its time were over: whoever did not mean it asks again, and whoever meant it looks at no answer any more.

use crate::effect::WaitName;
use crate::identity::Peer;
use crate::mcp::json_rpc::Id;

/// The name of a wait: where its client calls from, and the id of its request.
pub(super) fn name(peer: &Peer, id: &Id) -> WaitName {
    let address = peer.address.as_deref().unwrap_or_default();
    let port = address.iter().rposition(|byte| *byte == b':');
    let host = address.get(..port.unwrap_or(address.len()));
    let bytes = host.unwrap_or_default().iter();
    // FNV-1a: nothing rests on names being hard to find.
    bytes
        .chain(b" ")
        .chain(id.token().as_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ WaitName::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str, id: &str) -> WaitName {
        let peer = Peer {
            address: Some(address.as_bytes().to_vec()),
            ..Peer::default()
        };
        name(&peer, &Id::parse(id).expect("an id"))
    }

    #[test]
    fn a_notice_from_another_port_names_the_same_wait() {
        assert_eq!(of("10.0.0.1:1", "7"), of("10.0.0.1:2", "7"));
        assert_eq!(of("[::1]:1", "7"), of("[::1]:2", "7"));
        assert_ne!(of("10.0.0.1:1", "7"), of("10.0.0.1:1", "8"));
        assert_ne!(of("10.0.0.1:1", "7"), of("10.0.0.2:1", "7"));
        assert_ne!(of("10.0.0.1:1", "7"), of("10.0.0.1:1", "\"7\""));
    }
}
