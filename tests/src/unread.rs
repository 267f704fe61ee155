//! Whether a host has read what was written to it, as the kernel tells: pieces that must come apart wait for this and not for a time.

use std::net::SocketAddr;

use crate::wait;

/// Waits until the `peer` of a connection from `local` has read all that came, or is gone.
pub fn wait_until_read(local: SocketAddr, peer: SocketAddr) {
    let mut idle = 0;
    wait::blocking(AWAITED, || is_idle_twice(&mut idle, local, peer));
}

/// [`wait_until_read`] on a runtime.
pub async fn until_read(local: SocketAddr, peer: SocketAddr) {
    let waiting = tokio::task::spawn_blocking(move || wait_until_read(local, peer));
    waiting.await.expect("the host reads what was sent");
}

/// A host that has just read looks once more before it turns to what it got, so one look is not enough.
fn is_idle_twice(idle: &mut u32, local: SocketAddr, peer: SocketAddr) -> Option<()> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux shows its sockets");
    let (unsent, _) = queues(&table, local, peer);
    let (_, unread) = queues(&table, peer, local);
    *idle = if unsent + unread == 0 { *idle + 1 } else { 0 };
    (*idle == 2).then_some(())
}

/// Bytes that the peer has not acknowledged and bytes that nobody has read, in the socket `of` a connection with `peer`; 0 when
/// there is no such socket.
fn queues(table: &str, of: SocketAddr, peer: SocketAddr) -> (u64, u64) {
    let row = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next() == Some(&hex(of)) && fields.next() == Some(&hex(peer));
        is_it.then(|| fields.nth(1)).flatten()
    });
    let sizes = row.and_then(|queues| queues.split_once(':'));
    let size = |digits: &str| u64::from_str_radix(digits, 16).unwrap_or(0);
    sizes.map_or((0, 0), |(sending, receiving)| {
        (size(sending), size(receiving))
    })
}

/// An address in the kernel's writing: the bytes of the IP as a number of this machine, then the port.
fn hex(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => format!(
            "{:08X}:{:04X}",
            u32::from_ne_bytes(address.ip().octets()),
            address.port()
        ),
        SocketAddr::V6(_) => panic!("the runs use IPv4"),
    }
}

const AWAITED: &str = "the host reads what was sent";
