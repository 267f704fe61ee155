//! The glob language of the rules. Two kinds, because a path has segments and a host name is one word:
//!
//! - a [`PathGlob`] is matched segment by segment: `*` stands for any run of characters within a segment, `**` as a
//!   whole segment for any number of segments, none included. `/payments/**` therefore also meets `/payments`.
//! - a [`WordGlob`] knows `*` for any run of characters, dots included, as Envoy's virtual host domains do.
//!
//! Matching is iterative and needs no backtracking stack, so that a hostile path costs no more than its length times
//! the pattern's.

use std::cell::Cell;

/// The work that comparisons of texts may still take. Once it is used up nothing can be told of a text any more.
#[derive(Debug)]
pub struct Steps(Cell<usize>);

impl Steps {
    /// So many steps: about one for each byte that is looked at.
    #[must_use]
    pub const fn new(left: usize) -> Self {
        Self(Cell::new(left))
    }

    /// Takes some of them; `false` once there are not enough.
    pub fn take(&self, steps: usize) -> bool {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or_default());
        left.is_some()
    }

    /// How many are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.0.get()
    }
}

/// A glob over the segments of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGlob {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    AnyDepth,
    One(WordGlob),
}

/// Whether letters of different case are the same letter (ASCII only).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `/Payments` and `/payments` are the same.
    Insensitive,
    /// `/Payments` and `/payments` differ.
    Sensitive,
}

/// Why a text is no path glob. Each is the operator's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathGlobFault {
    /// `payments/**`
    #[error("does not begin with \"/\"")]
    NoLeadingSlash,
    /// `/payments/**.json`: the run of segments must stand alone.
    #[error("\"**\" must be a whole segment, as in \"/a/**/b\"")]
    PartialAnyDepth,
    /// `/a?b=c`
    #[error("holds \"?\" or \"#\", but a rule matches the path alone")]
    QueryOrFragment,
    /// `/café`: letter case and spelling of other letters than ASCII's differ between servers.
    #[error(
        "holds a letter outside ASCII, which servers spell and compare in different ways; use \"*\" for it"
    )]
    NotAscii,
    /// `/a//b`, `/./a`, `/a;v=1`, `/a%20b`: rules match the canonical path, which never looks so.
    #[error("is not in canonical form, so no path could ever match it")]
    NotCanonical,
}

impl PathGlob {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// When the pattern could not match any canonical path, or would match other paths than its author meant.
    pub fn parse(pattern: &str) -> Result<Self, PathGlobFault> {
        let Some(inner) = pattern.strip_prefix('/') else {
            return Err(PathGlobFault::NoLeadingSlash);
        };
        if pattern.contains(['?', '#']) {
            return Err(PathGlobFault::QueryOrFragment);
        }
        if !pattern.is_ascii() {
            return Err(PathGlobFault::NotAscii);
        }
        if pattern.contains(['%', '\\', ';']) || pattern.chars().any(char::is_control) {
            return Err(PathGlobFault::NotCanonical);
        }
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Ok(Self {
                segments: Vec::new(),
            });
        }
        let mut segments = Vec::new();
        for segment in inner.split('/') {
            segments.push(match segment {
                "**" => Segment::AnyDepth,
                "" | "." | ".." => return Err(PathGlobFault::NotCanonical),
                word if has_any_depth(word) => return Err(PathGlobFault::PartialAnyDepth),
                word => Segment::One(WordGlob::parse(word)),
            });
        }
        Ok(Self { segments })
    }

    /// The literal words of the pattern: each stands in every path that it meets.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.segments
            .iter()
            .filter_map(|segment| match segment {
                Segment::AnyDepth => None,
                Segment::One(glob) => Some(glob.pattern.split(|byte| *byte == b'*')),
            })
            .flatten()
            .filter(|word| !word.is_empty())
    }

    /// The literal segments with which every path begins that the pattern meets.
    pub fn leading_segments(&self) -> impl Iterator<Item = &[u8]> {
        self.segments.iter().map_while(|segment| match segment {
            Segment::AnyDepth => None,
            Segment::One(glob) => glob.literal(),
        })
    }

    /// Whether the pattern meets a path, given as its [`segments`].
    #[must_use]
    pub fn matches(&self, segments: &[&[u8]], case: Case) -> bool {
        wildcard_match(
            &self.segments,
            segments,
            |segment| *segment == Segment::AnyDepth,
            |segment, word| match segment {
                Segment::AnyDepth => true,
                Segment::One(glob) => glob.matches(word, case),
            },
        )
    }
}

/// Whether there are two stars in a row.
pub fn has_any_depth(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair == b"**")
}

/// The segments of a path; `None` for what is no path, such as `*`. A trailing slash makes no difference: servers
/// rarely tell `/a/` from `/a`, and a rule that could be passed by adding one would be no rule.
#[must_use]
pub fn segments(path: &[u8]) -> Option<Vec<&[u8]>> {
    let inner = path.strip_prefix(b"/")?;
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    Some(if inner.is_empty() {
        Vec::new()
    } else {
        inner.split(|byte| *byte == b'/').collect()
    })
}

/// A glob over one word: a host name or one segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordGlob {
    pattern: Vec<u8>,
}

impl WordGlob {
    /// Reads a pattern; every text is one.
    #[must_use]
    pub fn parse(pattern: &str) -> Self {
        Self {
            pattern: pattern.as_bytes().to_vec(),
        }
    }

    /// The one word that the pattern meets; `None` with a wildcard.
    #[must_use]
    pub fn literal(&self) -> Option<&[u8]> {
        (!self.pattern.contains(&b'*')).then_some(self.pattern.as_slice())
    }

    /// Whether the pattern meets the whole word; `None` where the steps do not suffice to tell.
    #[must_use]
    pub fn matches_within(&self, word: &[u8], case: Case, steps: &Steps) -> Option<bool> {
        let mut suffice = steps.take(1);
        let meets = suffice
            && wildcard_match(
                &self.pattern,
                word,
                |byte| *byte == b'*',
                |pattern, byte| {
                    suffice = suffice && steps.take(1);
                    suffice
                        && match case {
                            Case::Insensitive => pattern.eq_ignore_ascii_case(byte),
                            Case::Sensitive => pattern == byte,
                        }
                },
            );
        suffice.then_some(meets)
    }

    /// Whether the pattern meets the whole word.
    #[must_use]
    pub fn matches(&self, word: &[u8], case: Case) -> bool {
        self.matches_within(word, case, &Steps::new(usize::MAX)) == Some(true)
    }
}

/// Matches a pattern whose wildcards stand for any run of items, none included. On a mismatch it goes back to the
/// last wildcard only: an earlier one can never help once a later one was reached.
fn wildcard_match<P, T>(
    pattern: &[P],
    items: &[T],
    is_wildcard: impl Fn(&P) -> bool,
    mut meets: impl FnMut(&P, &T) -> bool,
) -> bool {
    let mut at = 0_usize;
    let mut next = 0_usize;
    let mut retry: Option<(usize, usize)> = None;
    while let Some(item) = items.get(next) {
        match pattern.get(at) {
            Some(wanted) if is_wildcard(wanted) => {
                at = at.saturating_add(1);
                retry = Some((at, next));
            }
            Some(wanted) if meets(wanted, item) => {
                at = at.saturating_add(1);
                next = next.saturating_add(1);
            }
            _ => {
                let Some((after_wildcard, from)) = retry else {
                    return false;
                };
                let from = from.saturating_add(1);
                at = after_wildcard;
                next = from;
                retry = Some((after_wildcard, from));
            }
        }
    }
    pattern
        .get(at..)
        .is_none_or(|rest| rest.iter().all(is_wildcard))
}

#[cfg(test)]
mod tests;
