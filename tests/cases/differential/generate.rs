//! The generator: well-formed requests of every oddity, and a second kind that a strict server has to refuse.

use hoop_tests::client::h2::H2Request;
use proptest::prelude::*;
use proptest::sample::select;

use super::calls::{Call, Exchange, Http1Body, Http1Call};
use super::parties;

/// Well-formed requests over both versions of HTTP, with any reply of the plane and any reaction of the upstream.
pub(super) fn exchanges() -> impl Strategy<Value = Exchange> {
    let call = prop_oneof![3 => http1().boxed(), 2 => http2().boxed()];
    (call, parties::plane(), parties::upstream()).prop_map(|(call, plane, upstream)| {
        // What follows a head-only answer would be taken for the next one.
        let is_head = match &call {
            Call::Http1(call) => call.method == "HEAD",
            Call::Http2(call) => call.method == "HEAD",
        };
        Exchange {
            call,
            plane,
            upstream: if is_head {
                parties::answers()
            } else {
                upstream
            },
        }
    })
}

/// HTTP/1.1 requests that break a rule of the protocol. Plane and upstream say yes: what is let through shows.
pub(super) fn malformed() -> impl Strategy<Value = Exchange> {
    let breach = prop_oneof![
        3 => select(BROKEN_LINES.to_vec()).prop_map(Breach::Line),
        2 => select(BROKEN_TARGETS.to_vec()).prop_map(Breach::Target),
        2 => select(BROKEN_BODIES.to_vec()).prop_map(|(line, body)| Breach::Body(line, body)),
        1 => select(BROKEN_METHODS.to_vec()).prop_map(Breach::Method),
    ];
    (
        breach,
        select(PLAIN_TARGETS.to_vec()),
        select(vec![0, 1, 7]),
    )
        .prop_map(|(breach, target, write_bytes)| {
            let mut call = Http1Call {
                method: "POST",
                target: target.as_bytes().to_vec(),
                lines: vec![b"host: billing.example".to_vec()],
                body: Http1Body::Absent,
                write_bytes,
            };
            match breach {
                Breach::Body(line, body) => {
                    call.lines.push(line.to_vec());
                    call.body = Http1Body::Raw(body.to_vec());
                }
                Breach::Line(line) => call.lines.push(line.to_vec()),
                Breach::Method(method) => call.method = method,
                Breach::Target(target) => call.target = target.to_vec(),
            }
            Exchange {
                call: Call::Http1(call),
                plane: parties::releases(),
                upstream: parties::answers(),
            }
        })
}

#[derive(Clone, Debug)]
enum Breach {
    Body(&'static [u8], &'static [u8]),
    Line(&'static [u8]),
    Method(&'static str),
    Target(&'static [u8]),
}

fn http1() -> impl Strategy<Value = Call> {
    let line = prop_oneof![
        4 => select(LINES.to_vec()).prop_map(<[u8]>::to_vec),
        2 => select(LINES_OF_ONE_HOP.to_vec()).prop_map(<[u8]>::to_vec),
        2 => any_line(),
    ];
    let host = prop_oneof![4 => Just(PLAIN_HOST), 3 => select(HOSTS.to_vec())];
    (
        select(METHODS.to_vec()),
        target(),
        host,
        prop::collection::vec(line, 0..6),
        http1_body(),
        select(vec![0, 0, 1, 13, 500]),
    )
        .prop_map(|(method, target, host, mut lines, body, write_bytes)| {
            lines.insert(0, [b"host: ", host].concat());
            Call::Http1(Http1Call {
                method,
                target: target.into_bytes(),
                lines,
                body,
                write_bytes,
            })
        })
}

fn http1_body() -> impl Strategy<Value = Http1Body> {
    let chunked = (
        prop::collection::vec(bytes(), 0..4),
        select(vec!["", "", ";a=b", "; q=\"x;y\"", "  "]),
        select(vec![
            vec![],
            vec![],
            vec![&b"x-checksum: 7"[..]],
            vec![&b"X-Checksum: 7"[..], b"x-checksum: 8", b"x-empty:"],
            vec![&b"content-length: 3"[..]],
            vec![&b"x_under: 1"[..]],
        ]),
    );
    prop_oneof![
        3 => Just(Http1Body::Absent),
        4 => bytes().prop_map(Http1Body::Length),
        1 => bytes().prop_map(Http1Body::Expecting),
        3 => chunked.prop_map(|(chunks, extension, trailers)| Http1Body::Chunked { chunks, extension, trailers }),
    ]
}

fn http2() -> impl Strategy<Value = Call> {
    let field = prop_oneof![
        select(LINES.to_vec()).prop_map(<[u8]>::to_vec),
        any_line(),
        Just(b"te: trailers".to_vec()),
    ];
    let trailer = select(vec![&b"x-checksum: 7"[..], b"x-empty:", b"x-odd: \xff"]);
    let carried = target().prop_filter("the http crate has to carry it", |target| {
        let uri = format!("http://a{target}").parse::<http::Uri>();
        uri.is_ok_and(|uri| {
            uri.path_and_query()
                .is_some_and(|found| found.as_str() == target)
        })
    });
    (
        select(H2_METHODS.to_vec()),
        carried,
        select(AUTHORITIES.to_vec()),
        prop::collection::vec(field, 0..6),
        prop::collection::vec(bytes(), 0..4),
        prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(trailer, 1..3)],
    )
        .prop_map(
            |(method, target, authority, fields, mut frames, trailers)| {
                // Envoy ends the connection at the second of two empty frames, and the answer may come first or not.
                frames.dedup_by(|next, last| next.is_empty() && last.is_empty());
                Call::Http2(H2Request {
                    method: method.to_owned(),
                    target,
                    authority: Some(authority.to_owned()),
                    headers: fields.iter().map(|line| field_of(line)).collect(),
                    frames,
                    trailers: trailers.iter().map(|line| field_of(line)).collect(),
                })
            },
        )
}

/// A header line as HTTP/2 carries it: the name in lower case, no white space around the value.
fn field_of(line: &[u8]) -> (String, Vec<u8>) {
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = line.split_at(colon.unwrap_or(line.len()));
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    (
        name,
        value.get(1..).unwrap_or_default().trim_ascii().to_vec(),
    )
}

fn target() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(select(PIECES.to_vec()), 0..6);
    let odd = pieces.prop_map(|pieces| format!("/{}", pieces.concat()));
    let path = prop_oneof![5 => select(PLAIN_TARGETS.to_vec()).prop_map(str::to_owned), 3 => odd];
    let query = prop_oneof![3 => Just(""), 2 => select(QUERIES.to_vec())];
    (path, query).prop_map(|(path, query)| format!("{path}{query}"))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        1 => Just(Vec::new()),
        3 => Just(b"{\"amount\": 100}".to_vec()),
        3 => prop::collection::vec(any::<u8>(), 0..120),
        1 => (200_usize..330).prop_map(|length| vec![b'x'; length]),
        1 => (5_000_usize..20_000).prop_map(|length| vec![b'y'; length]),
    ]
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let name = "[xyXY][a-zA-Z0-9!#$%&'*+.^`|~-]{0,12}";
    let byte = prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff, Just(b'\t')];
    let value = prop::collection::vec(byte, 0..24);
    let spaces = select(vec!["", " ", "  \t"]);
    (name, spaces, value).prop_map(|(name, spaces, value)| {
        [name.as_bytes(), b":", spaces.as_bytes(), &value].concat()
    })
}

const PLAIN_HOST: &[u8] = b"billing.example";
const METHODS: [&str; 14] = [
    "GET", "GET", "POST", "POST", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PROPFIND",
    "TRACE", "BREW", "post",
];
const H2_METHODS: [&str; 11] = [
    "GET", "GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW", "post",
];
const AUTHORITIES: [&str; 5] = [
    "billing.example",
    "billing.example",
    "pay.example",
    "PAY.example:8080",
    "127.0.0.1:80",
];
const HOSTS: [&[u8]; 12] = [
    b"pay.example",
    b"PAY.Example",
    b"pay.example:8080",
    b"pay.example.",
    b"u@pay.example",
    b"pay.example,x",
    b"pay.example:99999",
    b"[::1]:80",
    b"127.0.0.1",
    b"",
    b" ",
    b"pay%2eexample",
];
const PLAIN_TARGETS: [&str; 12] = [
    "/payments/42",
    "/payments/42",
    "/payments/42",
    "/payments/dry-run",
    "/invoices/1",
    "/invoices/1",
    "/admin/users",
    "/",
    "/.well-known/hoop/approvals/0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1",
    "/.well-known/hoop/approvals/0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1",
    "/.well-known/hoop/",
    "http://pay.example/payments/42",
];
const PIECES: [&str; 30] = [
    "payments",
    "PAYMENTS",
    "%70ayments",
    "pay%6Dents",
    "invoices",
    "admin",
    "42",
    "x",
    ".well-known",
    "hoop",
    "/",
    "/",
    "/",
    "/",
    "//",
    "\\",
    "%2f",
    "%5C",
    "%252f",
    ".",
    "..",
    "%2e",
    "%2E%2e",
    ";",
    ";a=b",
    "caf%c3%a9",
    "%zz",
    "~",
    "a+b",
    "!$&'()*,=:@",
];
const QUERIES: [&str; 8] = [
    "?",
    "?a=1",
    "?a=1&a=2&b",
    "?access_token=s3cret&z=1",
    "?x=//../%2e",
    "?q=%zz&r=[]{}|^",
    "?a?b",
    "?%61pi_key=1",
];
/// Fields that pass through proxies, or that a proxy has its own mind about.
const LINES: [&[u8]; 47] = [
    b"x-plain: one",
    b"X-Mixed-Case: Two",
    b"x-twice: one",
    b"X-Twice: two",
    b"x-empty:",
    b"x-blank:    ",
    b"x-padded: \t padded \t ",
    b"x-not-utf-8: \xff\xfe\xe2\x82",
    b"x-tab: a\tb",
    b"x_under_score: 1",
    b"user-agent: curl/8",
    b"accept: */*",
    b"Accept: text/html, application/json;q=0.9",
    b"cookie: a=1",
    b"cookie: b=2; c=3",
    b"content-type: application/json",
    b"content-type: application/grpc",
    b"content-type: application/grpc-web+proto",
    b"content-type: multipart/form-data; boundary=x",
    b"content-encoding: gzip",
    b"authorization: Bearer of-the-agent",
    b"x-forwarded-for: 10.0.0.1",
    b"x-forwarded-for: 10.0.0.1, 10.0.0.2",
    b"x-forwarded-proto: https",
    b"x-forwarded-host: pay.example",
    b"x-forwarded-port: 443",
    b"x-forwarded-client-cert: By=x",
    b"x-request-id: chosen-by-the-client",
    b"x-envoy-retry-on: 5xx",
    b"x-envoy-internal: true",
    b"x-envoy-original-path: /invoices/1",
    b"x-envoy-upstream-rq-timeout-ms: 7000",
    b"x-envoy-expected-rq-timeout-ms: 7000",
    b"x-envoy-external-address: 10.9.9.9",
    b"x-envoy-force-trace: true",
    b"x-envoy-decorator-operation: a",
    b"x-envoy-ip-tags: a",
    b"x-hoop-approval-id: 0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1",
    b"x-http-method-override: GET",
    b"forwarded: host=pay.example",
    b"via: 1.1 other",
    b"grpc-timeout: 1S",
    b"range: bytes=0-3",
    b"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    b"if-none-match: \"a\"",
    b"max-forwards: 3",
    b"x-client-trace-id: chosen-by-the-client",
];
/// Fields that belong to one connection of HTTP/1.1 and that HTTP/2 forbids.
const LINES_OF_ONE_HOP: [&[u8]; 13] = [
    b"connection: close",
    b"Connection: Close",
    b"connection: keep-alive",
    b"connection: x-plain",
    b"connection: x-plain, close",
    b"connection: upgrade\r\nupgrade: websocket",
    b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__",
    b"upgrade: websocket",
    b"keep-alive: timeout=5",
    b"proxy-connection: keep-alive",
    b"te: trailers",
    b"te: gzip",
    b"trailer: x-checksum",
];
const BROKEN_LINES: [&[u8]; 22] = [
    b"host: other.example",
    b"no colon",
    b": no name",
    b"x-space : before the colon",
    b" x-fold: at the start",
    b"x-folded: a\r\n b",
    b"x-nul: a\0b",
    b"x-cr: a\rb",
    b"x-lf: a\nx-second: b",
    b"x-del: a\x7fb",
    b"x-bell: a\x07b",
    b"x y: name with a space",
    b"x\xff: name that is not ASCII",
    b"x(y): name with a delimiter",
    b"content-length: x",
    b"content-length: -1",
    b"content-length: +0",
    b"content-length: 0, 0",
    b"content-length: 99999999999999999999999",
    b"content-length: 0\r\ncontent-length: 0",
    b"content-length: 0\r\ncontent-length: 1",
    b"transfer-encoding: gzip",
];
const BROKEN_TARGETS: [&[u8]; 13] = [
    b"payments/42",
    b"*",
    b"\\payments\\42",
    b"/payments/\x0042",
    b"/payments/\t42",
    b"/payments/\xff",
    b"/payments/4 2",
    b"/payments/42#x",
    b"http://",
    b"http:///payments/42",
    b"ftp://billing.example/payments/42",
    b"//billing.example/payments/42",
    b"",
];
/// A header line, and the bytes behind the head.
const BROKEN_BODIES: [(&[u8], &[u8]); 13] = [
    (b"transfer-encoding: chunked", b"x\r\n"),
    (b"transfer-encoding: chunked", b"-1\r\nx\r\n0\r\n\r\n"),
    (b"transfer-encoding: chunked", b"1\r\nxx\r\n0\r\n\r\n"),
    (b"transfer-encoding: chunked", b"1\nx\n0\n\n"),
    (b"transfer-encoding: chunked", b"0x1\r\nx\r\n0\r\n\r\n"),
    (b"transfer-encoding: chunked", b"1 \r\nx\r\n0\r\n\r\n"),
    (
        b"transfer-encoding: chunked",
        b"fffffffffffffffff\r\nx\r\n0\r\n\r\n",
    ),
    (b"transfer-encoding: chunked", b"1;\x01\r\nx\r\n0\r\n\r\n"),
    (
        b"transfer-encoding: chunked",
        b"1\r\nx\r\n0\r\nno colon\r\n\r\n",
    ),
    (
        b"transfer-encoding: chunked\r\ncontent-length: 1",
        b"1\r\nx\r\n0\r\n\r\n",
    ),
    (
        b"transfer-encoding: chunked, chunked",
        b"1\r\nx\r\n0\r\n\r\n",
    ),
    (b"Transfer-Encoding: Chunked", b"1\r\nx\r\n0\r\n\r\n"),
    (b"transfer-encoding: identity", b""),
];
const BROKEN_METHODS: [&str; 6] = ["", "PO ST", "POST\t", "CONNECT", "PRI", "\u{e9}"];
