//! Guest modules that ask a host what it answers: each scenario must give the transcript that was recorded on Envoy.

use hoop_tests::client::tls::subject::{
    Attribute, BITS, BMP, IA5, PRINTABLE, TELETEX, UNIVERSAL, UTF8, subject,
};
use hoop_tests::client::tls::{Authority, Identity, dns_name, uri_name};
use hoop_tests::guests::{Host, run_all, told_of, verdicts};
use hoop_tests::{binaries, differences};
use rcgen::SanType;
use tokio::runtime::Builder;

#[test]
fn envoy_answers_guests_as_recorded() {
    run_all(&envoy(), &[]);
}

#[test]
fn the_simulator_answers_guests_as_envoy_does() {
    run_all(&simulator(), differences::GUESTS);
}

/// Modules that no SDK builds: old ABI versions, missing exports, unknown imports, traps at the start.
#[test]
fn both_hosts_serve_and_refuse_the_same_modules() {
    let on_envoy = verdicts(&envoy());
    assert!(on_envoy.iter().any(|(_, verdict)| verdict == "refuses"));
    assert!(on_envoy.iter().any(|(_, verdict)| verdict == "serves 200"));
    assert_eq!(verdicts(&simulator()), on_envoy);
}

/// Subjects that BoringSSL has to escape, to dump or to join, and every place where names can stand.
#[test]
fn the_simulator_names_certificates_as_envoy_does() {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (gate, authority) = (Identity::create(), Authority::create());
        let clients: Vec<_> = certificates()
            .iter()
            .map(|(subject, names)| Some(authority.issue_to(subject, names)))
            .collect();
        for (authority, clients) in [(Some(&authority), clients.as_slice()), (None, &[None])] {
            let on_envoy = told_of(&envoy(), &TOLD, &gate, authority, clients).await;
            let on_simulator = told_of(&simulator(), &TOLD, &gate, authority, clients).await;
            for (simulator, envoy) in on_simulator.iter().zip(&on_envoy) {
                assert_eq!(simulator, envoy);
            }
            assert_eq!(on_simulator.len(), on_envoy.len());
        }
    });
}

const TOLD: [&str; 9] = [
    "subject_peer_certificate",
    "uri_san_peer_certificate",
    "dns_san_peer_certificate",
    "sha256_peer_certificate_digest",
    "subject_local_certificate",
    "uri_san_local_certificate",
    "dns_san_local_certificate",
    "mtls",
    "tls_version",
];

/// Subjects with their alternative names.
fn certificates() -> Vec<(Vec<u8>, Vec<SanType>)> {
    let one = |oid, tag, value| vec![Attribute { oid, tag, value }];
    let utf8 = |value: &'static [u8]| subject(&[one(COMMON_NAME, UTF8, value)]);
    let mut certificates = vec![
        (
            utf8(b"plain"),
            vec![
                dns_name("b.example"),
                uri_name("spiffe://b"),
                dns_name("a.example"),
                uri_name("spiffe://a"),
            ],
        ),
        (utf8(b"only a wildcard"), vec![dns_name("*.example")]),
        (
            subject(&[]),
            vec![SanType::IpAddress([127, 0, 0, 1].into())],
        ),
    ];
    let strings: [&[u8]; 9] = [
        b"a,b+c\"d\\e<f>g;h=i",
        b"# two ## ",
        b" ",
        b"#",
        b"",
        b"\x00\x1f\x7f\t\r\n",
        "J\u{fc}rgen \u{20ac} \u{1f600}".as_bytes(),
        b"/CN=slash/O=none",
        b"  leading and trailing  ",
    ];
    certificates.extend(strings.map(|value| (utf8(value), Vec::new())));
    let subjects = [
        subject(&[one(COMMON_NAME, PRINTABLE, b"printable *@_")]),
        subject(&[one(COMMON_NAME, TELETEX, b"J\xfcrgen")]),
        subject(&[one("1.2.840.113549.1.9.1", IA5, b"a@b.example")]),
        subject(&[one(COMMON_NAME, BMP, b"\0J\0\xfc\x20\xac")]),
        subject(&[one(COMMON_NAME, UNIVERSAL, b"\0\0\0J\0\x01\xf6\0")]),
        subject(&[one("2.5.4.45", BITS, b"\0\x01\x02")]),
        subject(&[one("1.2.3.4.55555", UTF8, b"unknown type")]),
        subject(&[
            one("2.5.4.6", PRINTABLE, b"GB"),
            one("2.5.4.10", UTF8, b"Sue, Grabbit and Runn"),
            one("2.5.4.11", UTF8, b"Sales"),
            one("2.5.4.11", UTF8, b"Again"),
            one(COMMON_NAME, UTF8, b"L. Eagle"),
        ]),
        subject(&[
            one("2.5.4.10", UTF8, b"Widget Inc."),
            vec![
                Attribute {
                    oid: COMMON_NAME,
                    tag: UTF8,
                    value: b"J. Smith",
                },
                Attribute {
                    oid: "2.5.4.11",
                    tag: UTF8,
                    value: b"Sales",
                },
                Attribute {
                    oid: "2.5.4.5",
                    tag: PRINTABLE,
                    value: b"7",
                },
            ],
        ]),
    ];
    certificates.extend(subjects.map(|subject| (subject, Vec::new())));
    let types = (3..=72).map(|number| format!("2.5.4.{number}"));
    let types = types.chain((1..=56).map(|number| format!("0.9.2342.19200300.100.1.{number}")));
    let types = types.chain((1..=22).map(|number| format!("1.2.840.113549.1.9.{number}")));
    let types = types.chain((1..=3).map(|number| format!("1.3.6.1.4.1.311.60.2.1.{number}")));
    let types: Vec<String> = types.collect();
    let all = types.iter().map(|oid| {
        vec![Attribute {
            oid,
            tag: UTF8,
            value: b"x",
        }]
    });
    let all: Vec<_> = all.collect();
    certificates.extend(all.chunks(4).map(|some| (subject(some), Vec::new())));
    certificates
}

const COMMON_NAME: &str = "2.5.4.3";

fn envoy() -> Host {
    Host {
        program: binaries::envoy(),
        leading: Vec::new(),
    }
}

fn simulator() -> Host {
    Host {
        program: binaries::host_sim(),
        leading: vec!["proxy"],
    }
}
