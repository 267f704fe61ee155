//! What the parameters of a query may mean to whoever reads them. A parameter is plain when every server reads the same
//! name and value; a rule on any other cannot tell.

use std::collections::BTreeMap;

use super::parameters;
use crate::request::RequestHead;
use crate::request::path::{JOKER, decode, decode_leniently, plainest};

/// A parameter's name as a rule writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterName {
    written: Vec<u8>,
    common: Vec<u8>,
}

impl ParameterName {
    /// Takes a name; `None` for one that no query could spell plainly.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"%+&=;#?".contains(&byte);
        let common = common_form(name.as_bytes())?;
        (!name.is_empty() && name.bytes().all(fits)).then(|| Self {
            written: name.as_bytes().to_vec(),
            common,
        })
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.written).unwrap_or_default()
    }
}

/// What a query says of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'q> {
    /// No reader finds it.
    Absent,
    /// Readers may differ.
    Doubtful {
        /// Whether each of them finds at least one parameter of the name.
        surely_there: bool,
    },
    /// Every reader finds this value, and no other.
    Plain(&'q [u8]),
}

/// The parameters of a request's query, read once for all rules.
#[derive(Debug)]
pub struct QueryReading {
    /// By the form that all spellings of a name share.
    by_name: BTreeMap<Vec<u8>, Vec<Occurrence>>,
    /// Whether some reader could find any parameter at all.
    could_hold_any: bool,
}

#[derive(Clone, Debug)]
struct Occurrence {
    /// The name as spelled, where nobody would cut or decode it in another way.
    plain_name: Option<Vec<u8>>,
    /// The value, where everybody reads the same.
    plain_value: Option<Vec<u8>>,
}

impl QueryReading {
    /// Reads the query of a request.
    #[must_use]
    pub fn of(head: &RequestHead) -> Self {
        // `%3F` may begin a query for a server that decodes first.
        let path = head.path().unwrap_or_default();
        let path_may_end_early = path.contains(&b'%')
            && plainest(path).is_none_or(|path| path.contains(&b'?') || path.contains(&JOKER));
        let mut reading = Self {
            by_name: BTreeMap::new(),
            could_hold_any: path_may_end_early,
        };
        let query = head.query().unwrap_or_default();
        let is_cut = query.contains(&b'#');
        let mut before = None;
        for (parameter, behind) in parameters(query) {
            let is_alone = !is_cut && before != Some(b';') && behind != Some(b';');
            before = behind;
            let Some(common) = common_form(parameter.name) else {
                reading.could_hold_any = true;
                continue;
            };
            let occurrence = Occurrence {
                plain_name: is_alone.then(|| parameter.name.to_vec()),
                plain_value: plain_value(parameter.value.unwrap_or_default()),
            };
            // `amount[]` and `amount[x]` are `amount` to some, and `x%26amount`, `?amount` and `amount%3D1` to whoever decodes first
            // or cuts at each `?`.
            let bracket = common.iter().position(|byte| *byte == b'[');
            let base = bracket.and_then(|at| common.get(..at));
            let holds_several = common.iter().any(is_separator);
            let pieces = common.split(is_separator).filter(|_| holds_several);
            for also in base.into_iter().chain(pieces) {
                let doubtful = Occurrence {
                    plain_name: None,
                    plain_value: None,
                };
                let name = also.trim_ascii().to_vec();
                reading.by_name.entry(name).or_default().push(doubtful);
            }
            reading.by_name.entry(common).or_default().push(occurrence);
        }
        reading
    }

    /// What the query says of a parameter.
    #[must_use]
    pub fn said(&self, name: &ParameterName) -> Said<'_> {
        let occurrences = self
            .by_name
            .get(&name.common)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_plain = |occurrence: &Occurrence| {
            occurrence
                .plain_name
                .as_ref()
                .is_some_and(|spelled| *spelled == name.written)
        };
        match occurrences {
            [] if !self.could_hold_any => Said::Absent,
            [
                only @ Occurrence {
                    plain_value: Some(value),
                    ..
                },
            ] if !self.could_hold_any && is_plain(only) => Said::Plain(value),
            several => Said::Doubtful {
                surely_there: several.iter().any(is_plain),
            },
        }
    }
}

/// One form for all spellings that some server may take for one name: decoded to the end, without letter case, and with
/// the signs that PHP makes an underscore of. `None` where it is nested deeper than anybody decodes.
fn common_form(name: &[u8]) -> Option<Vec<u8>> {
    let spaced: Vec<u8> = plainest(name)?
        .into_iter()
        .filter(|byte| *byte != JOKER)
        .map(|byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    let underscored = spaced.trim_ascii().iter().map(|byte| match byte {
        b'.' | b' ' => b'_',
        _ => *byte,
    });
    Some(underscored.collect())
}

/// What separates parameters from each other, from their values or from the path.
fn is_separator(byte: &u8) -> bool {
    matches!(byte, b'&' | b';' | b'=' | b'?' | b'#')
}

/// The value decoded once, `+` as a space; `None` where an escape is malformed, a second decoding would give something else, or
/// a reader in C would end it at a NUL.
fn plain_value(spelled: &[u8]) -> Option<Vec<u8>> {
    let spaced: Vec<u8> = spelled
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    let value = decode(&spaced)?;
    (decode_leniently(&value) == value && !value.contains(&0)).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::HeaderNames;

    fn reading(target: &[u8]) -> QueryReading {
        let headers = [(":method", &b"GET"[..]), (":path", target)];
        let head = RequestHead::parse(headers.into_iter(), &HeaderNames::default());
        QueryReading::of(&head.expect("readable"))
    }

    fn name(written: &str) -> ParameterName {
        ParameterName::parse(written).expect(written)
    }

    #[test]
    fn ok_plain_parameters() {
        for (target, value) in [
            ("/a?env=prod", "prod"),
            ("/a?x=1&env=prod&y=2", "prod"),
            ("/a?env=a+b%21%2f", "a b!/"),
            ("/a?env=", ""),
            ("/a?env", ""),
            ("/a?env=a=b", "a=b"),
            ("/a?env=50%25", "50%"),
            ("/a?a;b&env=1&c;d", "1"),
            ("/a%20b?env=1", "1"),
        ] {
            assert_eq!(
                reading(target.as_bytes()).said(&name("env")),
                Said::Plain(value.as_bytes()),
                "{target}"
            );
        }
        assert_eq!(
            reading(b"/a?env=%ff").said(&name("env")),
            Said::Plain(b"\xff")
        );
        assert_eq!(
            reading(b"/a?user[id]=1&user[x]=2").said(&name("user[id]")),
            Said::Plain(b"1")
        );
        assert_eq!(reading(b"/a?a.b=1").said(&name("a.b")), Said::Plain(b"1"));
    }

    #[test]
    fn ok_absent_parameters() {
        for target in [
            "/a",
            "/a?",
            "/a?&&",
            "/a?environment=1",
            "/a?x=env",
            "/env=1",
            "/a?x[env]=1",
            "/a%2fb?x=1",
        ] {
            assert_eq!(
                reading(target.as_bytes()).said(&name("env")),
                Said::Absent,
                "{target}"
            );
        }
    }

    #[test]
    fn a_parameter_with_more_than_one_reading_is_doubtful() {
        for (target, surely_there) in [
            ("/a?env=1&env=2", true),
            ("/a?env=1&ENV=2", true),
            ("/a?env=1&%65nv=2", true),
            ("/a?env=%2531", true),
            ("/a?env=%zz", true),
            ("/a?env=1&env[]=2", true),
            ("/a?env=prod%00", true),
            ("/a?env=prod%00x", true),
            ("/a?env=1&x%26env=2", true),
            ("/a?%65nv=1", false),
            ("/a?e%256ev=1", false),
            ("/a?Env=1", false),
            ("/a?env+=1", false),
            ("/a?+env=1", false),
            ("/a?env%00=1", false),
            ("/a?e%ffnv=1", false),
            ("/a?%u0065nv=1", false),
            ("/a?%EF%BD%85nv=1", false),
            ("/a??env=1", false),
            ("/a??x=1&?env=1", false),
            ("/a?x%26env=1", false),
            ("/a?x%2526env=1", false),
            ("/a?x%3Benv=1", false),
            ("/a?x%23env=1", false),
            ("/a?env%3D1", false),
            ("/a?x=1&env%3d1=2", false),
            ("/a?env[]=1", false),
            ("/a?env[x]=1", false),
            ("/a?env%5B%5D=1", false),
            ("/a?x=1;env=2", false),
            ("/a?env=1;x=2", false),
            ("/a?x=1#&env=2", false),
            ("/a%3Fenv=1", false),
            ("/a%253Fenv=1", false),
        ] {
            assert_eq!(
                reading(target.as_bytes()).said(&name("env")),
                Said::Doubtful { surely_there },
                "{target}"
            );
        }
        assert_eq!(
            reading(b"/a?a_b=1").said(&name("a.b")),
            Said::Doubtful {
                surely_there: false
            }
        );
        let nested = format!("/a?%{}65nv=1", "25".repeat(20));
        assert_eq!(
            reading(nested.as_bytes()).said(&name("x")),
            Said::Doubtful {
                surely_there: false
            }
        );
    }

    #[test]
    fn err_names_that_no_query_spells_plainly() {
        for written in [
            "", "a b", "a%20b", "a+b", "a=b", "a&b", "a;b", "a#b", "a?b", "é", "a\tb",
        ] {
            assert_eq!(ParameterName::parse(written), None, "{written}");
        }
    }

    proptest! {
        /// Whatever the spelling: a reader that decodes names and values once and takes the first or the last finds no
        /// other value than the plain one, and nothing where the parameter is absent.
        #[test]
        fn a_plain_or_absent_parameter_is_so_to_a_reader_that_decodes_once(query in "([&;=+ab%6125]|%61|a=|%2561){0,10}") {
            let reading = reading(format!("/x?{query}").as_bytes());
            let values: Vec<Vec<u8>> = query
                .split('&')
                .filter(|piece| !piece.is_empty())
                .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
                .filter(|(name, _)| decode_leniently(name.replace('+', " ").as_bytes()) == b"a")
                .map(|(_, value)| decode_leniently(value.replace('+', " ").as_bytes()))
                .collect();
            match reading.said(&name("a")) {
                Said::Absent => prop_assert!(values.is_empty(), "{query}"),
                Said::Plain(value) => prop_assert_eq!(values, [value.to_vec()], "{}", query),
                Said::Doubtful { surely_there } => prop_assert!(!surely_there || !values.is_empty(), "{query}"),
            }
        }
    }
}
