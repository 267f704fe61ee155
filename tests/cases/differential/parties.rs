//! What plane and upstream do in an exchange: honest answers, wrong ones, slow ones and none.

use hoop_tests::lying_plane::Reply;
use hoop_tests::upstream::Reaction;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::calls::Named;

/// Any reply of the plane.
pub(super) fn plane() -> impl Strategy<Value = Named<Reply>> {
    let named = |(name, value)| Named { name, value };
    let honest: Vec<_> = honest().into_iter().map(named).collect();
    let wrong: Vec<_> = wrong().into_iter().map(named).collect();
    // Each of these costs the time-out of the policy.
    let silent = vec![
        Named {
            name: "hangs",
            value: Reply::Hang,
        },
        Named {
            name: "begins an answer and hangs",
            value: raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"),
        },
    ];
    prop_oneof![60 => select(honest), 38 => select(wrong), 1 => select(silent)]
}

/// A plane that releases whatever is filed.
pub(super) fn releases() -> Named<Reply> {
    let value = Reply::review(200, true, ID, "EXECUTED");
    Named {
        name: "releases",
        value,
    }
}

/// Any reaction of the upstream.
pub(super) fn upstream() -> impl Strategy<Value = Named<Reaction>> {
    let others: Vec<_> = REACTIONS
        .into_iter()
        .map(|(name, value)| Named { name, value })
        .collect();
    prop_oneof![2 => Just(answers()), 3 => select(others)]
}

/// An upstream that answers as ever.
pub(super) fn answers() -> Named<Reaction> {
    Named {
        name: "answers",
        value: Reaction::Answer,
    }
}

fn honest() -> Vec<(&'static str, Reply)> {
    vec![
        ("files", Reply::review(201, false, ID, "PENDING")),
        ("has it on file", Reply::review(200, false, ID, "PENDING")),
        ("releases", Reply::review(200, true, ID, "EXECUTED")),
        (
            "releases under 201",
            Reply::review(201, true, ID, "EXECUTED"),
        ),
        ("says rejected", Reply::review(200, false, ID, "REJECTED")),
        ("says expired", Reply::review(200, false, ID, "EXPIRED")),
        ("reads pending", Reply::read(ID, "PENDING", "billing-api")),
        ("reads approved", Reply::read(ID, "APPROVED", "billing-api")),
        (
            "knows no such row",
            Reply::json(404, &json!({"message": "review not found"})),
        ),
        (
            "refuses the rule",
            Reply::json(422, &json!({"message": "not configured"})),
        ),
    ]
}

fn wrong() -> Vec<(&'static str, Reply)> {
    let release = json!({"forward": true, "review": {"id": ID, "status": "EXECUTED"}}).to_string();
    let length = release.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let with_length = format!("{head}content-length: {length}\r\n\r\n{release}");
    let half = with_length.len() / 2;
    let chunks = format!(
        "5\r\n{}\r\n{:x}\r\n{}\r\n0\r\n",
        &release[..5],
        length - 5,
        &release[5..]
    );
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}");
    vec![
        ("fails", Reply::json(500, &json!({"message": "at 10.0.0.7"}))),
        ("fails in HTML", Reply::typed(503, "text/html", "<html>")),
        ("answers 204", raw("HTTP/1.1 204 No Content\r\n\r\n")),
        ("answers 304", raw("HTTP/1.1 304 Not Modified\r\n\r\n")),
        ("redirects", Reply::with_headers(302, &[("location", "/elsewhere")], "")),
        ("says nothing", Reply::typed(200, "application/json", "")),
        ("releases in chunks", raw(&format!("{chunked}\r\n"))),
        ("releases in chunks with trailers", raw(&format!("{chunked}x-checksum: 7\r\n\r\n"))),
        ("releases in pieces", Reply::Slow(vec![
            with_length.as_bytes()[..9].to_vec(),
            with_length.as_bytes()[9..half].to_vec(),
            with_length.as_bytes()[half..].to_vec(),
        ])),
        ("releases after a 100", raw(&format!("HTTP/1.1 100 Continue\r\n\r\n{with_length}"))),
        ("releases after a 103", raw(&format!("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n{with_length}"))),
        ("releases and says close", Reply::Truncated(with_length.replace("content-length", "connection: close\r\ncontent-length").into_bytes())),
        ("releases and closes", Reply::Truncated(with_length.clone().into_bytes())),
        ("releases until it closes", Reply::Truncated(format!("{head}\r\n{release}").into_bytes())),
        ("releases as HTTP/1.0", Reply::Truncated(format!("HTTP/1.0{}", &with_length[8..]).into_bytes())),
        ("releases with odd fields", raw(&with_length.replace(
            "content-length",
            "X-Odd: \u{e9}\r\nx-empty:\r\nx-twice: 1\r\nx-twice: 2\r\nset-cookie: a\r\ncontent-length",
        ))),
        ("releases with a control byte in a field", raw(&with_length.replace("content-length", "x-odd: a\u{1}b\r\ncontent-length"))),
        ("releases with two lengths", raw(&with_length.replace("content-length", "content-length: 3\r\ncontent-length"))),
        ("releases with two types", raw(&with_length.replace("content-length", "content-type: text/html\r\ncontent-length"))),
        ("releases with length and chunks", raw(&chunked.replace("transfer", "content-length: 5\r\ntransfer").replace("0\r\n", "0\r\n\r\n"))),
        ("releases with line feeds alone", raw(&with_length.replace("\r\n", "\n"))),
        ("releases with a gzip that is none", raw(&with_length.replace("content-length", "content-encoding: gzip\r\ncontent-length"))),
        ("releases in bad chunks", Reply::Truncated(chunked.replace("\r\n5\r\n", "\r\nzz\r\n").into_bytes())),
        ("ends in its body", Reply::Truncated(with_length.as_bytes()[..with_length.len() - 3].to_vec())),
        ("ends in its head", Reply::Truncated(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec())),
        ("closes", Reply::Truncated(Vec::new())),
        ("speaks no HTTP", Reply::Truncated(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
        ("sends a long field", raw(&with_length.replace("content-length", &format!("x-long: {}\r\ncontent-length", "l".repeat(50_000))))),
        ("sends too long a field", Reply::Truncated(with_length.replace("content-length", &format!("x-long: {}\r\ncontent-length", "l".repeat(100_000))).into_bytes())),
        ("sends 200 fields", raw(&with_length.replace("content-length", &format!("{}content-length", "x-many: 1\r\n".repeat(200))))),
        ("sends two MiB", Reply::typed(200, "application/json", format!("{release}{}", " ".repeat(2 * 1024 * 1024)))),
        ("switches protocols", Reply::Truncated(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_vec())),
    ]
}

fn raw(text: &str) -> Reply {
    Reply::Raw(text.as_bytes().to_vec())
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";
const REACTIONS: [(&str, Reaction); 18] = [
    ("fails", Reaction::Fail),
    ("hangs up", Reaction::Hangup),
    ("answers in chunks", Reaction::Raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")),
    ("answers in chunks with trailers", Reaction::Raw(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\nX-Sum: 2\r\n\r\n",
    )),
    ("answers 204", Reaction::Raw(b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n")),
    ("answers 304", Reaction::Raw(b"HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n")),
    ("answers 599 in its own words", Reaction::Raw(b"HTTP/1.1 599 Own Words\r\ncontent-length: 1\r\n\r\nx")),
    ("answers with odd fields", Reaction::Raw(
        b"HTTP/1.1 200 OK\r\nX-Mixed-Case: A\r\nx-empty:\r\nx-odd: \xff\tb\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nx_under: 1\r\ncontent-length: 0\r\n\r\n",
    )),
    ("answers with fields of a proxy", Reaction::Raw(
        b"HTTP/1.1 200 OK\r\nserver: own\r\ndate: never\r\nvia: 1.1 x\r\nx-envoy-upstream-service-time: 9999\r\nx-envoy-immediate-health-check-fail: 1\r\nx-request-id: r\r\ncontent-length: 0\r\n\r\n",
    )),
    ("answers with fields of the gate", Reaction::Raw(
        b"HTTP/1.1 200 OK\r\nx-hoop-denied: review\r\nx-hoop-approval-id: x\r\ncontent-length: 0\r\n\r\n",
    )),
    ("answers with fields of one hop", Reaction::Raw(
        b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\nproxy-connection: keep-alive\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n",
    )),
    ("answers after a 103", Reaction::Raw(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")),
    ("answers and says close", Reaction::RawAndClose(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx")),
    ("answers until it closes", Reaction::RawAndClose(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")),
    ("answers as HTTP/1.0", Reaction::RawAndClose(b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx")),
    ("ends in its head", Reaction::RawAndClose(b"HTTP/1.1 200 OK\r\nx-a")),
    ("speaks no HTTP", Reaction::RawAndClose(b"SSH-2.0-OpenSSH_9.2\r\n")),
    ("answers with a control byte in a field", Reaction::RawAndClose(b"HTTP/1.1 200 OK\r\nx-odd: a\x01b\r\ncontent-length: 0\r\n\r\n")),
];
