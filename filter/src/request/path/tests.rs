//! Tables of spellings, and servers of many kinds that must not read what the gate did not see.

use proptest::prelude::*;

use super::*;

/// Whether some server could serve `/payments/...` for this path.
fn may_be_payments(raw: &[u8]) -> bool {
    match read(raw) {
        PathReading::Plain(path) => path.to_ascii_lowercase().starts_with(b"/payments"),
        PathReading::Ambiguous(letters) => letters.may_hold(b"payments"),
        PathReading::Unknown => true,
    }
}

#[test]
fn a_path_that_everybody_reads_alike_is_plain() {
    let table = [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/", "/a/"),
        ("/a.b/..c/.d", "/a.b/..c/.d"),
        ("/%61/b", "/a/b"),
        ("/caf%C3%A9", "/café"),
        ("/%E6%97%A5", "/日"),
        ("/caf%65%CC%81", "/cafe\u{301}"),
        ("/%F0%9F%87%A9%F0%9F%87%AA", "/🇩🇪"),
        ("/a%20b", "/a b"),
        ("/100%25", "/100%"),
        ("/file%2etxt", "/file.txt"),
        ("/a[b]!$&'()*+,=:@~", "/a[b]!$&'()*+,=:@~"),
        ("*", "*"),
    ];
    for (raw, canonical) in table {
        assert_eq!(
            read(raw.as_bytes()),
            PathReading::Plain(canonical.as_bytes().to_vec()),
            "{raw}"
        );
    }
}

#[test]
fn no_spelling_of_a_path_hides_its_words() {
    let spellings = [
        "//payments/42",
        "/payments//42",
        "/./payments/42",
        "/payments/./42",
        "/x/../payments/42",
        "/%2e/payments/42",
        "/x/%2e%2e/payments/42",
        "/x/%2E./payments/42",
        "/payments%2f42",
        "/payments%252f42",
        "/payments%25252f42",
        "/%2570ayments/42",
        "/%25%37%30ayments/42",
        "/payments\\42",
        "\\payments\\42",
        "/payments%5c42",
        "/payments;v=1/42",
        "/payments/42;v=1",
        "/payments%3bv=1/42",
        "/x/..;/payments/42",
        "/x;/../payments/42",
        "/payments/42%00.png",
        "/payments/42%3fx",
        "/payments/42%23x",
        "//x/payments/42",
        "///x/payments/42",
        "/////x/payments/42",
        "/\\/x/payments/42",
        "/\\\\x/payments/42",
        "http://h/payments/42",
        "/../payments/42",
        "/%2e/payments/42/x%2f..%2f..%2f..%2fy",
        "/x/%2e%2e/payments/42%2f..%2f..%2f",
        "/payments%0a",
        "/payments%20",
        "/payments.",
        "/payments./42",
        "/pay%09ments/42",
        "/payments%c2%a0",
        "/%20payments/42",
        "/x/../%%0070ayments/42",
        "/payments%c0%af42",
        "/%u0070ayments/42",
        "/%25u0070ayments/42",
        "/payment%C5%BF/42",
        "/%ff%ffyment%e2%93%a2/42",
        "/%EF%BC%8Fpayments/42",
        "/PAYMENTS;/42",
        "/(S(x))/payments/42",
        "/(S(x))/pay/(S(x))ments/42",
        "/%uD835%uDC5Dayments/42",
        "/%uD835ayments/42",
        "/pay%C2%80ments/42",
        "/pay%EF%BF%BDments/42",
        "/payments+/42",
        "/+payments/42",
        "/%N0ayments/42",
        "/x/%EF%B8%B0/payments/42",
        "/payment%CB%A2/42",
        "/pa%CA%B8ments/42",
        "/payments%EF%BB%BF/42",
        "/%EF%BB%BFpayments/42",
        "/payments%CD%BEv/42",
        "/pay%C2%ADments/42",
        "/p%E2%81%A0ayments/42",
        "/paymen%EF%BD%94s/42",
        "/x%EF%BC%8Fpayments",
    ];
    for raw in spellings {
        assert!(
            !matches!(read(raw.as_bytes()), PathReading::Plain(_)),
            "{raw} is ambiguous"
        );
        assert!(may_be_payments(raw.as_bytes()), "{raw} may be /payments/42");
    }
}

#[test]
fn malformed_escapes_and_bytes_that_are_no_text_are_not_plain() {
    for raw in [
        &b"/a%zz"[..],
        b"/a%",
        b"/a%2",
        b"/a%ff",
        b"/%c0%af",
        b"/a\x01",
        b"//",
        b"",
        b"a",
        b"/a%0a",
    ] {
        assert!(
            !matches!(read(raw), PathReading::Plain(_)),
            "{}",
            raw.escape_ascii()
        );
    }
}

#[test]
fn an_ambiguous_path_without_the_word_cannot_be_it() {
    for raw in [
        "/orders;v=1",
        "/x/../orders",
        "/projects/a%2Fb",
        "//pay/ments",
        "/caf%e9",
        "/%E6%97%A5%E6%9C%AC;v=1",
        "/pay%ff",
        "/x%u0070",
        "/x+",
        "/100%zz",
        "/files/%E5%A0%B1%E5%91%8A%E6%9B%B8%EF%BC%88%E6%9C%80%E7%B5%82%EF%BC%89.pdf",
        "/%E2%9D%A4%EF%B8%8F",
    ] {
        assert!(!may_be_payments(raw.as_bytes()), "{raw}");
    }
}

#[test]
fn a_letter_that_folds_into_two_is_seen() {
    for raw in [
        "/acce%C3%9F/x",
        "/acce%E1%BA%9E/x",
        "/a;/acce%u00DF/x",
        "/acce%DF/x",
    ] {
        let seen = matches!(read(raw.as_bytes()), PathReading::Ambiguous(letters) if letters.may_hold(b"access"));
        assert!(seen, "{raw}");
    }
    let dotted = read("/adm%C4%B0n/x".as_bytes());
    assert!(!matches!(dotted, PathReading::Plain(_)));
}

#[test]
fn a_path_too_long_or_nested_too_deeply_could_be_anything() {
    let tangled = format!("/%{}70ayments", "25".repeat(limits::DECODING_ROUNDS + 1));

    let long = "/a;".repeat(limits::AMBIGUOUS_PATH_BYTES);

    assert_eq!(read(tangled.as_bytes()), PathReading::Unknown);
    assert_eq!(read(long.as_bytes()), PathReading::Unknown);
}

/// What servers are known to do to a path, each in its own way. Independent of the reader, which knows none of them.
const STEPS: [fn(Vec<u8>) -> Vec<u8>; 9] = [
    |path| decode_leniently(&path),
    decode_unreserved,
    |path| {
        path.iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect()
    },
    |path| {
        segments(&path, |segment| {
            segment
                .split(|byte| *byte == b';')
                .next()
                .unwrap_or_default()
                .to_vec()
        })
    },
    merge,
    resolve,
    |path| {
        path.split(|byte| matches!(byte, b'?' | b'#' | 0))
            .next()
            .unwrap_or_default()
            .to_vec()
    },
    behind_host,
    |path| {
        segments(&path, |segment| {
            segment
                .trim_ascii_end()
                .strip_suffix(b".")
                .unwrap_or(segment)
                .to_vec()
        })
    },
];

fn segments(path: &[u8], change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    path.split(|byte| *byte == b'/')
        .map(change)
        .collect::<Vec<_>>()
        .join(&b'/')
}

/// RFC 3986, 6.2.2.2: escapes of unreserved characters alone are undone.
fn decode_unreserved(path: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = path.as_slice();
    while let [first, after @ ..] = rest {
        if let [b'%', high, low, behind @ ..] = rest
            && let Some(byte) = hex_pair(*high, *low)
            && (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        {
            out.push(byte);
            rest = behind;
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

fn merge(path: Vec<u8>) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    for byte in path {
        if byte != b'/' || out.last() != Some(&b'/') {
            out.push(byte);
        }
    }
    out
}

fn resolve(path: Vec<u8>) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    [b"/".to_vec(), kept.join(&b'/')].concat()
}

/// The WHATWG URL parser: any run of slashes at the start is followed by a host.
fn behind_host(path: Vec<u8>) -> Vec<u8> {
    let run = path
        .iter()
        .take_while(|byte| matches!(byte, b'/' | b'\\'))
        .count();
    if run < 2 {
        return path;
    }
    path[run..]
        .iter()
        .position(|byte| *byte == b'/')
        .map_or_else(|| b"/".to_vec(), |at| path[run..][at..].to_vec())
}

proptest! {
    /// Whatever servers do behind the gate, in whatever order: who ends up at the payments was seen as going there.
    #[test]
    fn no_server_reads_what_the_gate_did_not_see(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("payments"), Just("Payments"), Just("%70ayments"), Just("pay%256dents"), Just("/"), Just("//"), Just("\\"),
                Just("%2f"), Just("%5c"), Just(".."), Just("."), Just("%2e"), Just("%252e"), Just(";"), Just("%3b"), Just("x"),
                Just("%00"), Just("%20"), Just("%"), Just("?"),
            ],
            0..9,
        ),
        order in proptest::collection::vec(0_usize..STEPS.len(), 0..10),
    ) {
        let raw = format!("/{}", pieces.concat());
        let served = order.iter().fold(raw.as_bytes().to_vec(), |path, at| STEPS[*at](path)).to_ascii_lowercase();

        if served == b"/payments" || served.starts_with(b"/payments/") {
            prop_assert!(may_be_payments(raw.as_bytes()), "{raw} is served as {}", served.escape_ascii());
        }
    }

    #[test]
    fn what_is_plain_reads_as_itself_again(raw in "[/a.%2;\\\\e5Ff]{0,24}") {
        if let PathReading::Plain(canonical) = read(raw.as_bytes()) && !canonical.contains(&b'%') {
            prop_assert_eq!(read(&canonical), PathReading::Plain(canonical.clone()));
        }
    }

    #[test]
    fn any_bytes_are_read(raw in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = read(&raw);
    }
}
