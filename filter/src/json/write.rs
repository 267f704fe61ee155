//! Writes JSON: texts, and objects member by member. The few that the gate sends are flat and their shape is known, so that no
//! serialiser is needed; that of serde cost the module six kilobytes.

/// A text as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    // Writing a text to memory cannot fail; should it ever, a place without a value is no JSON, which nobody takes for another.
    serde_json::to_string(text).unwrap_or_default()
}

/// An object that is being written. Names must need no escapes.
#[derive(Debug, Default)]
pub struct Object(String);

impl Object {
    /// An object without members.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Adds a member that is JSON already.
    pub fn json(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        for piece in ["\"", name, "\":", value] {
            self.0.push_str(piece);
        }
    }

    /// Adds a text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.json(name, &quoted(value));
    }

    /// Adds a text where there is one.
    pub fn known_text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// The object as JSON.
    #[must_use]
    pub fn written(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn members_stand_in_the_order_in_which_they_came() {
        let mut object = Object::new();
        object.text("b", "1");
        object.known_text("c", None);
        object.json("a", "null");

        assert_eq!(object.written(), r#"{"b":"1","a":null}"#);
        assert_eq!(Object::new().written(), "{}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_back(text in any::<String>()) {
            let mut object = Object::new();
            object.text("text", &text);

            prop_assert_eq!(read(&object.written()), json!({"text": text}));
        }
    }
}
