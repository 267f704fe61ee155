//! Tables of queries and what they say of a parameter; and, for any query, agreement with models of the readers that servers have.

#[expect(
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    reason = "models as short as what they model; a wrong cut fails the test"
)]
mod readers;

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
        ("/a?env_x=1&env=2&x_env=3&env-x=4&env.x=5", "2"),
        ("/a?env=1&next=%2Fi%3Fenv%3D2%26a%3D1", "1"),
        ("/a?env=1&next=/i?env=2", "1"),
        ("/a?env=1&x%25=2", "1"),
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
        "/a?x%5Benv%5D=1",
        "/a?env_[]=1",
        "/a?next=%2Fi%3Fenv%3D1%26a%3D1",
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
        // Rack drops brackets at either end, qs takes them apart.
        ("/a?[env]=1", false),
        ("/a?%5Benv%5D=1", false),
        ("/a?env]=1", false),
        ("/a?[[env]=1", false),
        ("/a?[]env=1", false),
        ("/a?env=1&[env]=2", true),
        ("/a?env=1&env]=2", true),
        ("/a?x%26[env]=1", false),
        // qs ends the name at `]=`.
        ("/a?env=[x]=1", false),
        ("/a?env=[x%5d=1", false),
        // PHP ends a name at a NUL.
        ("/a?env%00x=1", false),
        ("/a?env%2500x=1", false),
        ("/a?env=1&env%00x=2", true),
        // Some of the letters cannot be told.
        ("/a?%5Tnv=1", false),
        ("/a?%C1%A5nv=1", false),
        ("/a?%c3nv=1", false),
        ("/a?x%=1", false),
        ("/a?env=1&%5Tnv=2", true),
        // The prototype of all objects.
        ("/a?__proto__[env]=1", false),
        ("/a?x[__proto__][env]=1", false),
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
    for (target, written, surely_there) in [
        ("/a?user[id=1", "user_id", false),
        ("/a?user%5Bid=1", "user_id", false),
        ("/a?user_id=1&user[id=2", "user_id", true),
        ("/a?filter[kind]junk=1", "filter[kind]", false),
        ("/a?filter[kind][]=1", "filter[kind]", false),
        ("/a?filter[kind][x]=1", "filter[kind]", false),
        ("/a?[filter][kind]=1", "filter[kind]", false),
        ("/a?filter[+kind]=1", "filter[kind]", false),
        ("/a?filter[kind=1", "filter[kind]", false),
        ("/a?filter]kind=1", "filter[kind]", false),
        ("/a?filter.kind=1", "filter[kind]", false),
        ("/a?filter[kind]=1", "filter.kind", false),
        ("/a?filter[a]junk[kind]=1", "filter[a][kind]", false),
        ("/a?FILTER[kind]=1", "filter[kind]", false),
        ("/a?filter[kind]=1&filter[kind]x=2", "filter[kind]", true),
        // The later one replaces the earlier for some.
        ("/a?filter[kind]=1&filter=2", "filter[kind]", false),
        ("/a?env=1", "env[]", false),
    ] {
        assert_eq!(
            reading(target.as_bytes()).said(&name(written)),
            Said::Doubtful { surely_there },
            "{target} {written}"
        );
    }
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

/// The names of one list are told apart up to a bound, as by servers, and a query with more could hold any.
#[test]
fn a_query_with_more_parameters_than_servers_read_is_doubtful() {
    let many = |count: usize| format!("/a?{}env=1", "x&".repeat(count));

    assert_eq!(
        reading(many(limits::QUERY_PARAMETERS - 1).as_bytes()).said(&name("env")),
        Said::Plain(b"1")
    );
    assert_eq!(
        reading(many(limits::QUERY_PARAMETERS).as_bytes()).said(&name("env")),
        Said::Doubtful {
            surely_there: false
        }
    );
    let deep = format!("/a?a{}=1", "[a]".repeat(20_000));
    let reading = reading(deep.as_bytes());
    assert!(reading.own.keys() + reading.held.keys() <= 2 * limits::NAME_LEVELS);
    assert_eq!(
        reading.said(&name("a")),
        Said::Doubtful {
            surely_there: false
        }
    );
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

    /// Whatever the spelling: no reader that takes names apart in a way of its own contradicts what is said.
    #[test]
    fn no_reader_contradicts_what_is_plain_or_absent(query in QUERY) {
        let reading = reading(format!("/x?{query}").as_bytes());
        for (written, path) in [("a", &["a"][..]), ("a_b", &["a_b"]), ("a[b]", &["a", "b"]), ("a[a][b]", &["a", "a", "b"])] {
            let said = reading.said(&name(written));
            for (reader, parse) in readers::ALL {
                let Some(found) = readers::found(parse(&query), if reader == readers::PLAIN { std::slice::from_ref(&written) } else { path }) else {
                    continue;
                };
                match said {
                    Said::Absent => prop_assert_eq!(found, readers::Found::Nothing, "{} {} {}", reader, written, query),
                    Said::Plain(value) => prop_assert_eq!(found, readers::Found::Value(value.to_vec()), "{} {} {}", reader, written, query),
                    Said::Doubtful { surely_there } => {
                        prop_assert!(!surely_there || found != readers::Found::Nothing, "{} {} {}", reader, written, query);
                    }
                }
            }
        }
    }
}

/// Names of few letters with brackets, NULs and separators, more often whole than by chance.
const QUERY: &str = r"(a|b|_|\.|\+|\[|\]|\[a\]|\[b\]|\[\]|%00|%5B|%5D|%5b|%61|%2561|=|=1|=2&|&|&a|&a\[b\]=|&a_b=|;){0,10}";
