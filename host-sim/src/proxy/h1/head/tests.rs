//! Each row was answered so by Envoy 1.40 on the wire.

use super::*;

fn parsed(head: &[u8]) -> Result<RequestHead, u16> {
    let limits = Limits {
        bytes: 60 * 1024,
        fields: 100,
        underscores: Underscores::RejectRequest,
        https_targets: false,
    };
    parse_request(&Bytes::copy_from_slice(head), limits)
}

fn with_field(field: &[u8]) -> Result<RequestHead, u16> {
    parsed(
        &[
            b"GET /x HTTP/1.1\r\nhost: a.b\r\n".as_slice(),
            field,
            b"\r\n\r\n",
        ]
        .concat(),
    )
}

fn with_target(target: &[u8]) -> Result<RequestHead, u16> {
    parsed(
        &[
            b"GET ".as_slice(),
            target,
            b" HTTP/1.1\r\nhost: a.b\r\n\r\n",
        ]
        .concat(),
    )
}

#[test]
fn fields_that_envoy_takes() {
    let rows: [(&[u8], &[u8]); 6] = [
        (b"x-a: 1\r\n 2", b"1 2"),
        (b"x-a: a\tb", b"a\tb"),
        (b"x-a: a\xff\xfe", b"a\xff\xfe"),
        (b"x-a: a\rb", b"ab"),
        (b"X-A:  \t b \t ", b"b"),
        (b"x-a:", b""),
    ];
    for (field, value) in rows {
        let head = with_field(field)
            .unwrap_or_else(|status| panic!("{field:?} was refused with {status}"));
        assert_eq!(head.headers.first("x-a"), Some(value), "{field:?}");
    }
}

#[test]
fn fields_that_envoy_refuses() {
    let rows: [&[u8]; 11] = [
        b"x-a : 1",
        b"xa",
        b": 1",
        b"x-a: a\x01b",
        b"x-a: a\x00b",
        b"x-a: a\x7fb",
        b"x(a: 1",
        b"x\xffa: 1",
        b":path: /y",
        b"x_a: 1",
        b"content-length: +2",
    ];
    for field in rows {
        assert_eq!(with_field(field).err(), Some(400), "{field:?}");
    }
}

#[test]
fn targets_that_envoy_takes() {
    let rows: [(&[u8], &[u8], &[u8]); 6] = [
        (b"/a\"b", b"/a\"b", b"a.b"),
        (b"//a", b"//a", b"a.b"),
        (b"/a#b", b"/a#b", b"a.b"),
        (b"http://evil:80/x?y", b"/x?y", b"evil:80"),
        (b"HTTP://u:p@evil", b"/", b"evil"),
        (b"http://evil?a=b", b"?a=b", b"evil"),
    ];
    for (target, path, authority) in rows {
        let head = with_target(target)
            .unwrap_or_else(|status| panic!("{target:?} was refused with {status}"));
        assert_eq!(head.headers.first(":path"), Some(path), "{target:?}");
        assert_eq!(
            head.headers.first(":authority"),
            Some(authority),
            "{target:?}"
        );
    }
}

#[test]
fn targets_that_envoy_refuses() {
    let rows: [&[u8]; 10] = [
        b"*",
        b"payments/42",
        b"\\payments",
        b"/a\x00b",
        b"/a\tb",
        b"/a\xffb",
        b"/a\x7fb",
        b"?q",
        b"http:///x",
        b"ftp://evil/x",
    ];
    for target in rows {
        assert_eq!(with_target(target).err(), Some(400), "{target:?}");
    }
    assert_eq!(with_target(b"https://evil/").err(), Some(403));
}

#[test]
fn first_lines_that_envoy_refuses() {
    let rows: [(&[u8], u16); 8] = [
        (b"BREW /x HTTP/1.1", 400),
        (b"post /x HTTP/1.1", 400),
        (b"M-SEARCH /x HTTP/1.1", 400),
        (b"GET /a b HTTP/1.1", 400),
        (b"GET  HTTP/1.1", 400),
        (b"GET /x HTTP/1.0", 426),
        (b"GET /x HTTP/2.0", 426),
        (b"GET /x", 426),
    ];
    for (line, status) in rows {
        assert_eq!(request_line(line).err(), Some(status), "{line:?}");
    }
}

#[test]
fn framings() {
    let rows: [(&[u8], Result<Framing, u16>); 8] = [
        (b"content-length: 2", Ok(Framing::Length(2))),
        (b"transfer-encoding: CHUNKED", Ok(Framing::Chunked)),
        (b"content-length: 2\r\ncontent-length: 2", Err(400)),
        (b"content-length: 2, 2", Err(400)),
        (b"content-length: 2\r\ntransfer-encoding: chunked", Err(400)),
        (b"transfer-encoding: gzip, chunked", Err(501)),
        (
            b"transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            Err(501),
        ),
        (
            b"transfer-encoding: identity\r\ncontent-length: 2",
            Err(400),
        ),
    ];
    for (field, expected) in rows {
        assert_eq!(
            with_field(field).map(|head| head.framing),
            expected,
            "{field:?}"
        );
    }
}

#[test]
fn two_host_lines_are_one_authority() {
    let head = parsed(b"GET /x HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n").expect("taken");
    assert_eq!(head.headers.first(":authority"), Some(b"a,b".as_slice()));
}

#[test]
fn more_fields_than_allowed_are_431() {
    let fields = |count: usize| "x-h: 1\r\n".repeat(count);
    let head = |count| format!("GET /x HTTP/1.1\r\nhost: a\r\n{}\r\n", fields(count));
    assert!(parsed(head(99).as_bytes()).is_ok());
    assert_eq!(parsed(head(100).as_bytes()).err(), Some(431));
}
