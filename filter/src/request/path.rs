//! What a path may mean to whoever serves it. Rules match one canonical form; a path that servers could read in more
//! than one way is said to be ambiguous, with every reading, so that no spelling slips past a rule.

use std::collections::BTreeSet;

use crate::limits;

/// The readings of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathReading {
    /// Everybody reads it alike; this is its canonical form.
    Plain(Vec<u8>),
    /// Servers may differ. The raw form and every form that decoding, slash merging, dot segments, `\` as `/` or
    /// dropped `;params` can give it.
    Ambiguous(BTreeSet<Vec<u8>>),
    /// Ambiguous, and too long or too tangled to work out how.
    Unbounded,
}

/// Reads a path (no query).
#[must_use]
pub fn read(raw: &[u8]) -> PathReading {
    if is_plain(raw) {
        return PathReading::Plain(raw.to_vec());
    }
    if let Some(decoded) = decode(raw)
        && only_harmless_escapes(raw, &decoded)
    {
        return PathReading::Plain(decoded);
    }
    if raw.len() > limits::AMBIGUOUS_PATH_BYTES {
        return PathReading::Unbounded;
    }
    readings(raw).map_or(PathReading::Unbounded, PathReading::Ambiguous)
}

/// Whether any number of decodings could bring a word into the path. For paths whose readings are too many to work
/// out: none of the other clean-ups can put letters together.
#[must_use]
pub fn may_contain(raw: &[u8], word: &[u8]) -> bool {
    let mut path = raw.to_vec();
    for _ in 0..limits::DECODING_ROUNDS {
        let decoded = decode_leniently(&path);
        if decoded == path {
            return path.windows(word.len()).any(|window| window == word);
        }
        path = decoded;
    }
    true
}

/// Percent-decodes once, as Go's `URL.Path` does; `None` where an escape is malformed.
#[must_use]
pub fn decode(raw: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    loop {
        match rest {
            [] => return Some(decoded),
            [b'%', high, low, after @ ..] => {
                decoded.push(hex_pair(*high, *low)?);
                rest = after;
            }
            [b'%', ..] => return None,
            [byte, after @ ..] => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
}

/// Decodes what can be decoded and leaves malformed escapes as they are, as lenient servers do.
pub(crate) fn decode_leniently(raw: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, after @ ..] = rest {
        if let [b'%', high, low, behind @ ..] = rest
            && let Some(byte) = hex_pair(*high, *low)
        {
            decoded.push(byte);
            rest = behind;
        } else {
            decoded.push(*first);
            rest = after;
        }
    }
    decoded
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    digit(high)?.checked_mul(16)?.checked_add(digit(low)?)
}

/// No escape, and nothing that any server takes apart in its own way.
fn is_plain(path: &[u8]) -> bool {
    !path.contains(&b'%') && has_one_structure(path)
}

/// Whether the path's segments are the same to everybody: no empty or dot segment inside, no `\`, no `;`, nothing
/// that does not belong in a path.
fn has_one_structure(path: &[u8]) -> bool {
    let strange = |byte: &u8| matches!(byte, b'\\' | b';' | b'?' | b'#') || byte.is_ascii_control();
    if path.iter().any(strange) || std::str::from_utf8(path).is_err() {
        return false;
    }
    let Some(inner) = path.strip_prefix(b"/") else {
        return path == b"*";
    };
    let inner_segments = inner.strip_suffix(b"/").unwrap_or(inner);
    inner.is_empty()
        || inner_segments
            .split(|byte| *byte == b'/')
            .all(|segment| !matches!(segment, b"" | b"." | b".."))
}

/// Escapes are harmless when undoing them changes no structure and leaves nothing to undo again.
fn only_harmless_escapes(raw: &[u8], decoded: &[u8]) -> bool {
    let slashes = |path: &[u8]| path.iter().filter(|byte| **byte == b'/').count();
    let decodes_again = decoded.windows(3).any(|window| match window {
        [b'%', high, low] => hex_pair(*high, *low).is_some(),
        _ => false,
    });
    has_one_structure(decoded) && slashes(raw) == slashes(decoded) && !decodes_again
}

/// Every form that some server may see in the path: all that any sequence of clean-ups can give, since nobody knows
/// in which order the servers behind apply theirs. `None` where there are too many.
fn readings(raw: &[u8]) -> Option<BTreeSet<Vec<u8>>> {
    let mut forms = BTreeSet::from([raw.to_vec()]);
    let mut unvisited = vec![raw.to_vec()];
    while let Some(form) = unvisited.pop() {
        for clean_up in CLEAN_UPS {
            let cleaned = clean_up(&form);
            if !forms.contains(&cleaned) {
                forms.insert(cleaned.clone());
                unvisited.push(cleaned);
            }
        }
        if forms.len() > limits::PATH_READINGS {
            return None;
        }
    }
    Some(forms)
}

type CleanUp = fn(&[u8]) -> Vec<u8>;

/// What servers are known to do to a path before they serve it. None makes a path longer, so their closure is finite.
const CLEAN_UPS: [CleanUp; 7] = [
    decode_leniently,
    with_slashes,
    without_params,
    merged,
    without_dots,
    cut,
    behind_authority,
];

/// Ends the path where an escape stood for `?`, `#` or NUL.
fn cut(path: &[u8]) -> Vec<u8> {
    path.split(|byte| matches!(byte, b'?' | b'#' | 0))
        .next()
        .unwrap_or_default()
        .to_vec()
}

fn with_slashes(path: &[u8]) -> Vec<u8> {
    path.iter()
        .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
        .collect()
}

/// Drops `;params` of every segment, as servlet containers do.
fn without_params(path: &[u8]) -> Vec<u8> {
    let segments: Vec<&[u8]> = path
        .split(|byte| *byte == b'/')
        .map(|segment| {
            segment
                .split(|byte| *byte == b';')
                .next()
                .unwrap_or_default()
        })
        .collect();
    segments.join(&b'/')
}

fn merged(path: &[u8]) -> Vec<u8> {
    let mut merged = Vec::with_capacity(path.len());
    for byte in path {
        if *byte != b'/' || merged.last() != Some(&b'/') {
            merged.push(*byte);
        }
    }
    merged
}

/// Resolves `.` and `..` segments (RFC 3986, 5.2.4); a `..` above the root stays at the root.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let Some(inner) = path.strip_prefix(b"/") else {
        return path.to_vec();
    };
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_in_directory = false;
    for segment in inner.split(|byte| *byte == b'/') {
        ends_in_directory = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    let mut resolved = vec![b'/'];
    resolved.extend(kept.join(&b'/'));
    if ends_in_directory && !kept.is_empty() {
        resolved.push(b'/');
    }
    resolved
}

/// `//host/path` and `scheme://host/path`, read as a URL that names its host: what is left is the path behind it.
fn behind_authority(path: &[u8]) -> Vec<u8> {
    let behind = path
        .windows(2)
        .position(|window| window == b"//")
        .and_then(|at| {
            let behind = path.get(at.saturating_add(2)..)?;
            let slash = behind.iter().position(|byte| *byte == b'/')?;
            behind.get(slash..)
        });
    behind.unwrap_or(path).to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn may_be(raw: &str, path: &str) -> bool {
        match read(raw.as_bytes()) {
            PathReading::Plain(plain) => plain == path.as_bytes(),
            PathReading::Ambiguous(forms) => forms.contains(path.as_bytes()),
            PathReading::Unbounded => true,
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
    fn every_spelling_of_a_path_has_the_path_among_its_readings() {
        let spellings = [
            "//payments/42",
            "/payments//42",
            "/./payments/42",
            "/payments/./42",
            "/x/../payments/42",
            "/x//../payments/42",
            "/%2e/payments/42",
            "/x/%2e%2e/payments/42",
            "/x/%2E./payments/42",
            "/payments%2f42",
            "/payments%2F42",
            "/payments%252f42",
            "/payments%25252f42",
            "/%2570ayments/42",
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
            "http://h/payments/42",
            "/..//payments/42",
            "/../payments/42",
        ];
        for raw in spellings {
            assert!(
                matches!(read(raw.as_bytes()), PathReading::Ambiguous(_)),
                "{raw} is ambiguous"
            );
            assert!(
                may_be(raw, "/payments/42"),
                "{raw} may be /payments/42: {:?}",
                read(raw.as_bytes())
            );
        }
    }

    #[test]
    fn malformed_escapes_and_bytes_that_are_no_text_are_ambiguous() {
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
            assert!(matches!(read(raw), PathReading::Ambiguous(_)), "{raw:?}");
        }
    }

    #[test]
    fn a_long_ambiguous_path_could_be_anything() {
        let long = "/a;".repeat(limits::AMBIGUOUS_PATH_BYTES);
        let tangled = format!("/a%{}2f", "25".repeat(1_000));

        assert_eq!(read(long.as_bytes()), PathReading::Unbounded);
        assert_eq!(read(tangled.as_bytes()), PathReading::Unbounded);
    }

    #[test]
    fn a_word_is_seen_behind_any_decoding() {
        assert!(may_contain(b"/;hoop", b"hoop"));
        assert!(may_contain(b"/%2568oop", b"hoop"));
        assert!(may_contain(
            format!("/%{}", "25".repeat(40)).as_bytes(),
            b"hoop"
        ));
        assert!(!may_contain(b"/;hop%2520x", b"hoop"));
    }

    proptest! {
        #[test]
        fn what_is_plain_reads_as_itself_again(raw in "[/a.%2;\\\\e5Ff]{0,24}") {
            if let PathReading::Plain(canonical) = read(raw.as_bytes()) && !canonical.contains(&b'%') {
                prop_assert_eq!(read(&canonical), PathReading::Plain(canonical.clone()));
            }
        }

        /// Whatever servers do behind the gate, in whatever order, what they end up with was among the readings.
        #[test]
        fn no_order_of_clean_ups_leads_out_of_the_readings(
            raw in "/[/a.%2;\\\\e5Fp]{0,16}",
            order in proptest::collection::vec(0_usize..CLEAN_UPS.len(), 0..10),
        ) {
            let end = order.iter().fold(raw.as_bytes().to_vec(), |path, at| CLEAN_UPS[*at](&path));
            match read(raw.as_bytes()) {
                PathReading::Ambiguous(forms) => prop_assert!(forms.contains(&end)),
                // Harmless escapes may be undone or left; nothing else can change.
                PathReading::Plain(canonical) => {
                    prop_assert!(end == canonical || decode_leniently(&end) == canonical, "{end:?} {canonical:?}");
                }
                PathReading::Unbounded => {}
            }
        }

        #[test]
        fn an_ambiguous_path_keeps_its_raw_form(raw in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let PathReading::Ambiguous(forms) = read(&raw) {
                prop_assert!(forms.contains(&raw));
            }
        }
    }
}
