//! Tables of patterns and what they meet, and a slow reference that the matcher must agree with.

use proptest::prelude::*;

use super::*;

fn meets(pattern: &str, path: &str) -> bool {
    PathGlob::parse(pattern)
        .expect("a valid pattern")
        .matches_path(path.as_bytes(), Case::Sensitive)
}

impl PathGlob {
    fn matches_path(&self, path: &[u8], case: Case) -> bool {
        segments(path).is_some_and(|segments| self.matches(&segments, case))
    }
}

#[test]
fn a_path_glob_meets_the_paths_below_it_and_itself() {
    for path in [
        "/payments",
        "/payments/",
        "/payments/42",
        "/payments/42/",
        "/payments/a/b/c",
    ] {
        assert!(meets("/payments/**", path), "{path}");
    }
    for path in [
        "/",
        "/payment",
        "/paymentsx",
        "/x/payments",
        "payments/1",
        "*",
        "",
    ] {
        assert!(!meets("/payments/**", path), "{path}");
    }
}

#[test]
fn a_star_stays_within_its_segment() {
    assert!(meets("/users/*/keys", "/users/7/keys"));
    assert!(meets("/v*/users", "/v12/users"));
    assert!(!meets("/users/*/keys", "/users/7/x/keys"));
    assert!(!meets("/users/*", "/users"));
}

#[test]
fn any_depth_stands_for_none_or_many_in_the_middle() {
    for path in ["/a/b", "/a/x/b", "/a/x/y/b", "/a/b/b"] {
        assert!(meets("/a/**/b", path), "{path}");
    }
    assert!(!meets("/a/**/b", "/a/b/c"));
    assert!(meets("/**", "/"));
    assert!(meets("/**", "/x/y"));
    assert!(meets("/", "/"));
    assert!(!meets("/", "/x"));
}

#[test]
fn letter_case_counts_only_when_asked() {
    let glob = PathGlob::parse("/Payments/**").expect("valid");

    assert!(glob.matches_path(b"/PAYMENTS/x", Case::Insensitive));
    assert!(!glob.matches_path(b"/payments/x", Case::Sensitive));
}

#[test]
fn a_pattern_that_could_not_match_is_refused_with_its_reason() {
    let cases = [
        ("payments/**", PathGlobFault::NoLeadingSlash),
        ("", PathGlobFault::NoLeadingSlash),
        ("/a/**.json", PathGlobFault::PartialAnyDepth),
        ("/a/***", PathGlobFault::PartialAnyDepth),
        ("/a?b", PathGlobFault::QueryOrFragment),
        ("/a#b", PathGlobFault::QueryOrFragment),
        ("/café", PathGlobFault::NotAscii),
        ("/a//b", PathGlobFault::NotCanonical),
        ("/a/./b", PathGlobFault::NotCanonical),
        ("/a/../b", PathGlobFault::NotCanonical),
        ("/a%20b", PathGlobFault::NotCanonical),
        ("/a;b", PathGlobFault::NotCanonical),
        ("/a\\b", PathGlobFault::NotCanonical),
    ];
    for (pattern, fault) in cases {
        assert_eq!(PathGlob::parse(pattern), Err(fault), "{pattern}");
    }
}

#[test]
fn a_host_glob_spans_dots() {
    let glob = WordGlob::parse("*.example.com");

    assert!(glob.matches(b"a.b.EXAMPLE.com", Case::Insensitive));
    assert!(!glob.matches(b"example.com", Case::Insensitive));
    assert!(!glob.matches(b"a.example.com.evil", Case::Insensitive));
}

/// What a word glob means, said as plainly as possible.
fn reference(pattern: &[u8], word: &[u8]) -> bool {
    match (pattern.split_first(), word.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            reference(rest, word)
                || word
                    .split_first()
                    .is_some_and(|(_, shorter)| reference(pattern, shorter))
        }
        (Some((wanted, rest)), Some((found, shorter))) => {
            wanted == found && reference(rest, shorter)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

proptest! {
    #[test]
    fn the_matcher_agrees_with_its_reference(pattern in "[ab*]{0,8}", word in "[ab]{0,10}") {
        prop_assert_eq!(
            WordGlob::parse(&pattern).matches(word.as_bytes(), Case::Sensitive),
            reference(pattern.as_bytes(), word.as_bytes())
        );
    }
}
