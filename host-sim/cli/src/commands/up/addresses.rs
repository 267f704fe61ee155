//! The addresses of `up` against each other, before any of them is taken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::lanes::Lane;
use super::parts::plane_port;
use crate::args::UpArguments;
use crate::commands::ports::Port;
use crate::failure::Failure;

/// Refuses two flags that ask for the same port.
///
/// Found out by listening, it would read as if another process had taken the port, or Envoy would be the one to fail.
pub(super) fn check_apart(arguments: &UpArguments, lanes: &[Lane<'_>]) -> Result<(), Failure> {
    let plane = plane_port(arguments);
    let of_lanes = lanes.iter().flat_map(|lane| {
        let service = lane.upstream.iter().map(|(_, port)| port);
        service.chain([&lane.listener, &lane.admin])
    });
    let mut before: Vec<&Port> = Vec::new();
    for port in [&plane].into_iter().chain(of_lanes) {
        let other = before
            .iter()
            .find(|other| meet(port.address, other.address));
        if let Some(other) = other {
            return Err(Failure::user(
                format_args!(
                    "`{} {}` and `{} {}` take the same port",
                    other.flag, other.address, port.flag, port.address
                ),
                "give each of the two a port of its own",
            ));
        }
        before.push(port);
    }
    Ok(())
}

/// An address that stands for all of a machine's meets each of them.
fn meet(one: SocketAddr, other: SocketAddr) -> bool {
    let all = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (all || one.ip() == other.ip())
}

/// Where to call what listens on `address`: on all addresses means on loopback too.
pub(super) fn to_call(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::up::lanes::lanes;
    use crate::commands::up::up_arguments;

    fn check(flags: &str) -> Result<(), Failure> {
        let arguments = up_arguments(flags);
        check_apart(&arguments, &lanes(&arguments))
    }

    #[test]
    fn err_one_port_for_two() {
        let flags = [
            "--plane-listen",
            "--upstream-listen",
            "--listen",
            "--admin-listen",
            "--ledger-listen",
            "--grpc-listen",
            "--grpc-admin-listen",
            "--mcp-listen",
            "--mcp-admin-listen",
        ];
        for (index, second) in flags.iter().enumerate() {
            for first in &flags[..index] {
                let flags = format!("{second} 127.0.0.1:1 {first} 127.0.0.1:1");
                assert_eq!(
                    check(&flags).expect_err("refused").to_string(),
                    format!(
                        "`{first} 127.0.0.1:1` and `{second} 127.0.0.1:1` take the same port; \
                         hint: give each of the two a port of its own"
                    )
                );
            }
        }
    }

    #[test]
    fn all_addresses_of_a_machine_include_each_of_them_and_two_of_them_may_share_a_port() {
        for (flags, apart) in [
            ("", true),
            ("--listen 0.0.0.0:1 --plane-listen 127.0.0.1:1", false),
            ("--listen 127.0.0.1:1 --admin-listen [::]:1", false),
            ("--listen 127.0.0.1:1 --plane-listen 127.0.0.2:1", true),
            ("--listen 127.0.0.1:18081", false),
            ("--listen 127.0.0.1:18081 --without-grpc", true),
        ] {
            assert_eq!(check(flags).is_ok(), apart, "{flags}");
        }
    }

    #[test]
    fn what_listens_everywhere_is_called_on_loopback() {
        for (listen, call) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("10.0.0.1:1", "10.0.0.1:1"),
        ] {
            let address = to_call(listen.parse().expect("an address"));
            assert_eq!(address.to_string(), call);
        }
    }
}
