//! The four addresses of `up` against each other, before any of them is taken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::args::UpArguments;
use crate::failure::Failure;

/// Refuses two flags that ask for the same port.
///
/// Found out by listening, it would read as if another process had taken the port, or Envoy would be the one to fail.
pub(super) fn check_apart(arguments: &UpArguments) -> Result<(), Failure> {
    let flags = [
        ("--listen", arguments.listen),
        ("--plane-listen", arguments.plane_listen),
        ("--upstream-listen", arguments.upstream_listen),
        ("--admin-listen", arguments.admin_listen),
    ];
    for (index, (flag, address)) in flags.iter().enumerate() {
        for (other_flag, other) in &flags[..index] {
            if meet(*address, *other) {
                return Err(Failure::user(
                    format_args!(
                        "`{other_flag} {other}` and `{flag} {address}` take the same port"
                    ),
                    "give each of the two a port of its own",
                ));
            }
        }
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
    use crate::commands::up::up_arguments;

    #[test]
    fn err_one_port_for_two() {
        let flags = [
            "--listen",
            "--plane-listen",
            "--upstream-listen",
            "--admin-listen",
        ];
        for (index, second) in flags.iter().enumerate() {
            for first in &flags[..index] {
                let arguments = up_arguments(&format!("{second} 127.0.0.1:1 {first} 127.0.0.1:1"));
                assert_eq!(
                    check_apart(&arguments).expect_err("refused").to_string(),
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
        ] {
            assert_eq!(check_apart(&up_arguments(flags)).is_ok(), apart, "{flags}");
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
