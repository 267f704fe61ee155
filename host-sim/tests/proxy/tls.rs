//! TLS towards the clients, as far as no Envoy is needed to judge it: how a proxy starts with it and how it ends.

use std::error::Error;
use std::io::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

use host_sim::Host;
use host_sim::proxy::{ListenerTls, Proxy, Settings};
use rcgen::generate_simple_self_signed;

use crate::scene::{OK, PATIENCE, Scene, Upstream, settings};

/// A certificate and its key.
fn identity() -> ListenerTls {
    let made = generate_simple_self_signed(["gate.example".to_owned()]).expect("a certificate");
    ListenerTls {
        certificate_chain_pem: made.cert.pem().into_bytes(),
        private_key_pem: made.signing_key.serialize_pem().into_bytes(),
        client_ca_pem: None,
    }
}

fn with_tls(tls: ListenerTls) -> Settings {
    let upstream = Upstream::answering(OK);
    let mut settings = settings(upstream.address, None);
    settings.listeners[0].tls = Some(tls);
    settings
}

#[test]
fn a_stop_does_not_wait_for_handshakes() {
    let scene = Scene::start(with_tls(identity()));
    let _silent = scene.connect();
    let mut halfway = scene.connect();
    halfway
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .expect("sent");
    scene.wait_for("http.ingress.downstream_cx_active", 2);
    let (stopped, stop) = channel();
    std::thread::spawn(move || {
        scene.proxy.stop(Duration::from_secs(24 * 3600));
        stopped.send(())
    });
    assert_eq!(stop.recv_timeout(PATIENCE), Ok(()));
}

#[test]
fn certificates_and_keys_that_do_not_fit_start_nothing_and_say_which() {
    let rows = [
        (
            ListenerTls {
                certificate_chain_pem: b"hello".to_vec(),
                ..identity()
            },
            "the certificate chain of the listener holds no valid certificate in PEM form",
        ),
        (
            ListenerTls {
                private_key_pem: Vec::new(),
                ..identity()
            },
            "the private key of the listener is no valid key in PEM form",
        ),
        (
            ListenerTls {
                private_key_pem: identity().private_key_pem,
                ..identity()
            },
            "the TLS settings cannot be used: keys may not be consistent: KeyMismatch",
        ),
        (
            ListenerTls {
                client_ca_pem: Some(identity().private_key_pem),
                ..identity()
            },
            "the client CA of the listener holds no valid certificate in PEM form",
        ),
    ];
    for (tls, expected) in rows {
        let error = Proxy::start(Host::real(|_| {}), with_tls(tls)).expect_err("refused");
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            told.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        let expected = format!("TLS of the listener ingress cannot be used: {expected}");
        assert_eq!(told, expected);
    }
}
