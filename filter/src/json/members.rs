//! The members of one JSON object, each value in the letters in which it came: an id must be given back token for token, and a
//! number must not lose a digit.

use super::pointer::folded;
use super::select::{self, NotStrict};

/// The members of an object, in their order.
#[derive(Debug)]
pub struct Members<'t>(Vec<(String, &'t str)>);

impl<'t> Members<'t> {
    /// Takes an object apart.
    ///
    /// # Errors
    ///
    /// When the text is no strict JSON object, or has more members than [`crate::limits::JSON_MEMBERS`].
    pub fn of(text: &'t str) -> Result<Self, NotStrict> {
        select::members(text).map(Self)
    }

    /// The value under a name, as it is spelled.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'t str> {
        let mut all = self.0.iter();
        all.find(|(found, _)| found == name).map(|(_, text)| *text)
    }

    /// A name that a careless reader takes for another: one that differs from a known name, or from another member's, in letter
    /// case or in letters that fold to the same.
    #[must_use]
    pub fn look_alike(&self, known: &[&str]) -> Option<&str> {
        let mut seen = Vec::new();
        for name in known {
            seen.push(folded(name));
        }
        for (name, _) in &self.0 {
            if known.contains(&name.as_str()) {
                continue;
            }
            let name_folded = folded(name);
            if seen.contains(&name_folded) {
                return Some(name);
            }
            seen.push(name_folded);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_letters() {
        let members =
            Members::of(r#" {"a": 1.0 ,"b":"\u0041", "c": [ 1, {} ]} "#).expect("members");

        let values = ["a", "b", "c", "d"].map(|name| members.get(name));
        assert_eq!(
            values,
            [Some("1.0"), Some(r#""\u0041""#), Some("[ 1, {} ]"), None]
        );
    }

    #[test]
    fn names_that_look_like_others_are_found() {
        let table = [
            (r#"{"name":1,"other":2}"#, None),
            (r#"{"name":1,"Name":2}"#, Some("Name")),
            (r#"{"NAME":1}"#, Some("NAME")),
            ("{\"param\u{17f}\":1}", Some("param\u{17f}")),
            (r#"{"x":1,"X":2}"#, Some("X")),
        ];
        for (text, doubtful) in table {
            let members = Members::of(text).expect("members");

            assert_eq!(members.look_alike(&["name", "params"]), doubtful, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in [
            "",
            "[]",
            "1",
            "{",
            r#"{"a":1} x"#,
            r#"{"a":1,"a":2}"#,
            r#"{"__proto__":1}"#,
            r#"{"\u005f_proto__":1}"#,
        ] {
            assert!(Members::of(text).is_err(), "{text}");
        }
    }
}
