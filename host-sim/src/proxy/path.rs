//! What a connection manager does to a path when it is told to. Source: `PathUtil` and `PathTransformer` of Envoy's
//! `source/common/http/path_utility.cc`.

use super::settings::{EscapedSlashes, HttpOptions};

/// The path as the filter gets it, and whether the client is to be sent there instead. `None` = the request is refused.
pub(super) fn prepared(target: &[u8], options: &HttpOptions) -> Option<(Vec<u8>, bool)> {
    let end = target
        .iter()
        .position(|byte| *byte == b'?')
        .unwrap_or(target.len());
    let (path, query) = target.split_at(end);
    let mut path = path.to_vec();
    let mut redirect = false;
    let unescaped = unescape_slashes(&path);
    match options.escaped_slashes {
        EscapedSlashes::KeepUnchanged => {}
        EscapedSlashes::RejectRequest if unescaped != path => return None,
        EscapedSlashes::RejectRequest => {}
        EscapedSlashes::UnescapeAndForward => path = unescaped,
        EscapedSlashes::UnescapeAndRedirect => {
            redirect = unescaped != path;
            path = unescaped;
        }
    }
    if options.normalize_path {
        path = normalized(&path)?;
    }
    if options.merge_slashes {
        let only_slashes = path.len() > 1 && path.iter().all(|byte| *byte == b'/');
        path.dedup_by(|second, first| *second == b'/' && *first == b'/');
        // Envoy joins what stands between slashes, and keeps a last one: nothing at all comes out as two.
        if only_slashes {
            path.push(b'/');
        }
    }
    path.extend_from_slice(query);
    Some((path, redirect))
}

fn unescape_slashes(path: &[u8]) -> Vec<u8> {
    let mut unescaped = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        match after {
            [b'2', b'f' | b'F', tail @ ..] if *byte == b'%' => {
                unescaped.push(b'/');
                rest = tail;
            }
            [b'5', b'c' | b'C', tail @ ..] if *byte == b'%' => {
                unescaped.push(b'\\');
                rest = tail;
            }
            _ => {
                unescaped.push(*byte);
                rest = after;
            }
        }
    }
    unescaped
}

/// RFC 3986, section 6: unreserved bytes decoded, dot segments resolved, `\` taken for `/`. `None` where a NUL is hidden in it.
fn normalized(path: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match *byte {
            b'%' => {}
            b'\\' => {
                decoded.push(b'/');
                continue;
            }
            byte if b" \"<>^`{|}".contains(&byte) || !byte.is_ascii_graphic() => {
                decoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
                continue;
            }
            byte => {
                decoded.push(byte);
                continue;
            }
        }
        let escape = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(0) => return None,
            Some(value) if value.is_ascii_alphanumeric() || b"-._~".contains(&value) => {
                decoded.push(value);
                rest = &after[2..];
            }
            Some(_) | None => decoded.push(b'%'),
        }
    }
    Some(without_dots(&decoded))
}

fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_open = false;
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        ends_open = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    if ends_open || segments.is_empty() {
        segments.push(b"");
    }
    let mut whole = Vec::with_capacity(path.len());
    for segment in segments {
        whole.push(b'/');
        whole.extend_from_slice(segment);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut HttpOptions), target: &str) -> Option<(String, bool)> {
        let mut options = HttpOptions::default();
        change(&mut options);
        prepared(target.as_bytes(), &options)
            .map(|(path, redirect)| (String::from_utf8_lossy(&path).into_owned(), redirect))
    }

    #[test]
    fn nothing_changes_unless_it_was_asked_for() {
        let odd = "//a/../%2e/%2F\\b?x=%2f/..";
        assert_eq!(with(|_| {}, odd), Some((odd.to_owned(), false)));
    }

    #[test]
    fn normalizing_resolves_dots_and_decodes_letters_but_not_the_query() {
        let rows = [
            ("/./gate", "/gate"),
            ("/a/../gate", "/gate"),
            ("/a/%2e%2e/gate", "/gate"),
            ("/%67ate?q=%68/..", "/gate?q=%68/.."),
            ("/gate\\x", "/gate/x"),
            ("/a/..", "/"),
            ("/a/b/.", "/a/b/"),
            (
                "/x/%zz%7e%C3%A9%20\"<>|;a=b\\c",
                "/x/%zz~%C3%A9%20%22%3C%3E%7C;a=b/c",
            ),
            ("/x/%c3%2B%3a", "/x/%c3%2B%3a"),
        ];
        for (target, expected) in rows {
            assert_eq!(
                with(|options| options.normalize_path = true, target),
                Some((expected.to_owned(), false)),
                "{target}"
            );
        }
        assert_eq!(
            with(|options| options.normalize_path = true, "/a%00b"),
            None
        );
    }

    #[test]
    fn escaped_slashes_follow_their_setting() {
        let with_action = |action| with(|options| options.escaped_slashes = action, "/a%2fb%5Cc");
        assert_eq!(with_action(EscapedSlashes::RejectRequest), None);
        assert_eq!(
            with_action(EscapedSlashes::UnescapeAndForward),
            Some(("/a/b\\c".to_owned(), false))
        );
        assert_eq!(
            with_action(EscapedSlashes::UnescapeAndRedirect),
            Some(("/a/b\\c".to_owned(), true))
        );
        assert_eq!(
            with(|options| options.merge_slashes = true, "//a///b"),
            Some(("/a/b".to_owned(), false))
        );
    }
}
