//! Taking ports, with a message that names the flag which gives another one.

use std::io::ErrorKind;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::failure::Failure;

/// A port that a command wants.
#[derive(Debug)]
pub(super) struct Port {
    /// Who will listen on it.
    pub(super) what: &'static str,
    /// The flag that changes it.
    pub(super) flag: &'static str,
    /// Where.
    pub(super) address: SocketAddr,
}

/// Takes the port.
pub(super) async fn bind(port: &Port) -> Result<TcpListener, Failure> {
    TcpListener::bind(port.address).await.map_err(|error| {
        let Port {
            what,
            flag,
            address,
        } = port;
        if error.kind() == ErrorKind::AddrInUse {
            Failure::user(
                format_args!("{address} for {what} is taken by another process"),
                format_args!(
                    "stop that process, or choose another address with `{flag} {}:PORT`",
                    address.ip()
                ),
            )
        } else {
            Failure::user(
                format_args!("cannot listen on {address} for {what}: {error}"),
                format_args!("choose another address with `{flag}`"),
            )
        }
    })
}

/// Tells whether somebody else can take the port, and leaves it free for them.
pub(super) async fn check_free(port: &Port) -> Result<(), Failure> {
    bind(port).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn err_taken_port() {
        let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = taken.local_addr().expect("its address");
        let port = Port {
            what: "the plane",
            flag: "--plane-listen",
            address,
        };
        let failure = bind(&port).await.expect_err("refused").to_string();
        let expected = format!(
            "{address} for the plane is taken by another process; \
             hint: stop that process, or choose another address with `--plane-listen 127.0.0.1:PORT`"
        );
        assert_eq!(failure, expected);
    }
}
