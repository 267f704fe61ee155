//! Whether a web page of somewhere else may be behind a request: such a page must not read approvals from its visitor's machine.
//! Source: contract 5.1 and `mcp.md`, C.8.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::request::host_of;

/// What gives a foreign page away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The name by which this endpoint was called is not one of its own (DNS rebinding).
    Host,
    /// The page was loaded from another origin.
    Origin,
}

/// Refuses what comes from a page of another origin, or was sent to a name that is not one of the endpoint's.
///
/// Without `hosts`, any name is taken, unless the request arrived at a loopback address: then only names of the machine itself are.
///
/// # Errors
///
/// With what gave it away.
pub fn check(
    headers: &[(String, Vec<u8>)],
    authority: &[u8],
    arrived_at: Option<&[u8]>,
    hosts: &[String],
) -> Result<(), Foreign> {
    let host = host_of(authority);
    let is_own = if hosts.is_empty() {
        !is_loopback_address(arrived_at) || host.is_some_and(is_loopback_name)
    } else {
        host.is_some_and(|host| {
            let is_it = |own: &String| own.as_bytes().eq_ignore_ascii_case(host);
            hosts.iter().any(is_it)
        })
    };
    if !is_own {
        return Err(Foreign::Host);
    }
    let all = |wanted: &'static str| {
        let found = headers.iter().filter(move |(name, _)| name == wanted);
        found.map(|(_, value)| value.as_slice())
    };
    let mut sites = all("sec-fetch-site").peekable();
    let is_same_origin = if sites.peek().is_some() {
        sites.all(|site| matches!(site, b"same-origin" | b"none"))
    } else {
        all("origin").all(|origin| is_of(origin, authority))
    };
    if is_same_origin {
        Ok(())
    } else {
        Err(Foreign::Origin)
    }
}

/// Whether an origin is that of the authority.
fn is_of(origin: &[u8], authority: &[u8]) -> bool {
    let at = origin.windows(3).position(|three| three == b"://");
    let host = at.and_then(|at| origin.get(at.saturating_add(3)..));
    host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
}

fn is_loopback_address(address: Option<&[u8]>) -> bool {
    let text = address.and_then(|address| std::str::from_utf8(address).ok());
    let address = text.and_then(|text| text.parse::<SocketAddr>().ok());
    address.is_some_and(|address| is_loopback(address.ip()))
}

fn is_loopback_name(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let host = host.to_ascii_lowercase();
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(&host);
    let is_name = bare == "localhost" || bare.ends_with(".localhost");
    is_name || bare.parse().is_ok_and(is_loopback)
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            let mapped = address.to_ipv4_mapped();
            address == Ipv6Addr::LOCALHOST || mapped.is_some_and(|address| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: Option<&[u8]> = Some(b"127.0.0.1:8765");
    const CLUSTER: Option<&[u8]> = Some(b"10.1.2.3:8765");

    fn verdict(
        sent: &[(&str, &str)],
        authority: &str,
        arrived_at: Option<&[u8]>,
        hosts: &[&str],
    ) -> Result<(), Foreign> {
        let headers: Vec<_> = sent
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        check(&headers, authority.as_bytes(), arrived_at, &hosts)
    }

    #[test]
    fn on_loopback_only_names_of_the_machine_are_taken() {
        let table = [
            ("127.0.0.1:8765", true),
            ("localhost:8765", true),
            ("LOCALHOST", true),
            ("agent.localhost", true),
            ("[::1]:8765", true),
            ("127.9.9.9", true),
            ("evil.example.com", false),
            ("evil.example.com:8765", false),
            ("127.0.0.1.evil.example.com", false),
            ("localhost.evil.example.com", false),
            ("a@127.0.0.1", false),
            ("", false),
        ];
        for (authority, is_own) in table {
            let expected = if is_own { Ok(()) } else { Err(Foreign::Host) };

            assert_eq!(
                verdict(&[], authority, LOOPBACK, &[]),
                expected,
                "{authority}"
            );
        }
    }

    #[test]
    fn elsewhere_the_operators_names_are_taken_or_any() {
        let any = verdict(&[], "payments-sidecar:8765", CLUSTER, &[]);
        let own = verdict(&[], "Payments-Sidecar:8765", CLUSTER, &["payments-sidecar"]);
        let other = verdict(&[], "evil.example.com", CLUSTER, &["payments-sidecar"]);

        assert_eq!((any, own, other), (Ok(()), Ok(()), Err(Foreign::Host)));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let own = "http://127.0.0.1:8765";
        let table: [(&[(&str, &str)], bool); 12] = [
            (&[], true),
            (&[("origin", own)], true),
            (&[("origin", "http://evil.example.com")], false),
            (&[("origin", "http://127.0.0.1:9999")], false),
            (&[("origin", "null")], false),
            (&[("origin", "")], false),
            (
                &[("origin", own), ("origin", "http://evil.example.com")],
                false,
            ),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", own)], false),
            (
                &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
                false,
            ),
        ];
        for (sent, is_taken) in table {
            let expected = if is_taken {
                Ok(())
            } else {
                Err(Foreign::Origin)
            };

            assert_eq!(
                verdict(sent, "127.0.0.1:8765", LOOPBACK, &[]),
                expected,
                "{sent:?}"
            );
        }
    }
}
