//! Each row was seen by an upstream behind Envoy 1.40.

use super::*;

fn accepted(
    fields: &[(&str, &str)],
    use_remote_address: bool,
) -> Result<Vec<(String, String)>, EarlyAnswer> {
    let mut headers = HeaderMap::new()
        .with(":authority", "a.b")
        .with(":path", "/x")
        .with(":method", "GET");
    for (name, value) in fields {
        headers.add(name.as_bytes(), value.as_bytes());
    }
    let peer = Peer {
        address: SocketAddr::from(([127, 0, 0, 1], 4711)),
        tls: false,
        protocol: Protocol::Http11,
        machine: IpAddr::from([192, 0, 2, 2]),
    };
    let options = HttpOptions {
        use_remote_address,
        ..HttpOptions::default()
    };
    let headers = accept(headers, &options, peer)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let kept = headers.iter().filter(|(name, _)| *name != b"x-request-id");
    Ok(kept
        .map(|(name, value)| (text(name), text(value)))
        .collect())
}

fn names(fields: &[(&str, &str)]) -> Vec<String> {
    accepted(fields, true)
        .expect("accepted")
        .into_iter()
        .skip(4)
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

const ADDED: [&str; 3] = [
    "x-forwarded-for=192.0.2.2",
    "x-forwarded-proto=http",
    "x-envoy-external-address=127.0.0.1",
];

#[test]
fn pseudo_headers_come_first_and_envoys_own_last() {
    let headers = accepted(&[("x-foo", "1")], true).expect("accepted");
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        ":authority",
        ":path",
        ":method",
        ":scheme",
        "x-foo",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-envoy-external-address",
    ];
    assert_eq!(names, expected);
}

#[test]
fn an_external_client_cannot_set_what_is_internal() {
    let sent = [
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-proto", "https"),
        ("x-envoy-internal", "true"),
        ("x-envoy-foo", "1"),
        ("x-envoy-retry-on", "5xx"),
        ("x-envoy-original-path", "/y"),
        ("x-envoy-external-address", "9.9.9.9"),
        ("x-envoy-peer-metadata", "4"),
        ("x-forwarded-client-cert", "By=1"),
    ];
    let expected = [
        "x-forwarded-for=1.2.3.4,192.0.2.2",
        "x-forwarded-proto=http",
        "x-envoy-foo=1",
        "x-envoy-external-address=127.0.0.1",
        "x-envoy-peer-metadata=4",
    ];
    assert_eq!(names(&sent), expected);
}

#[test]
fn hop_by_hop_headers_end_here() {
    let sent = [
        ("connection", "keep-alive, x-foo, te"),
        ("keep-alive", "5"),
        ("proxy-connection", "keep-alive"),
        ("te", "trailers, gzip"),
        ("x-foo", "1"),
        ("upgrade", "h2c"),
        ("http2-settings", "a"),
    ];
    assert_eq!(names(&sent)[..2], ["te=trailers", "http2-settings=a"]);
    assert_eq!(names(&[("te", "gzip")]), ADDED);
    assert_eq!(
        names(&[
            ("connection", "upgrade, http2-settings"),
            ("upgrade", "h2c"),
            ("http2-settings", "a")
        ]),
        ADDED
    );
}

#[test]
fn nominating_what_names_the_client_is_refused() {
    for name in ["host", "x-forwarded-for"] {
        let answer = accepted(&[("connection", name)], true).expect_err("refused");
        assert_eq!(answer.status, 400, "{name}");
    }
}

#[test]
fn dates_are_those_of_http() {
    let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
    assert_eq!(date(time), "Sun, 06 Nov 1994 08:49:37 GMT");
}
