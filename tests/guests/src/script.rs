//! What a guest is told to do, as text: sections named after callbacks, each with operations.
//!
//! The plugin configuration holds sections for all contexts, one operation a line:
//!
//! ```text
//! [configure]
//! tick 100
//! [request_headers]
//! pairs reqh
//! return 1
//! ```
//!
//! The request header `x-do` adds sections for its own stream: `request_headers: pairs reqh; return 1 | log: prop response.code`.
//! `request_body#2` is the second call of that callback of a context. Words are separated by blanks and read by
//! [`text::bytes`](crate::text::bytes).

/// Operations by callback, in the order written.
#[derive(Clone, Default)]
pub struct Script {
    sections: Vec<(String, Vec<String>)>,
}

impl Script {
    /// Reads the form with one operation a line.
    pub fn from_lines(text: &str) -> Script {
        let mut script = Script::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'))
            {
                script.sections.push((name.to_owned(), Vec::new()));
            } else if let Some((_, operations)) = script.sections.last_mut() {
                operations.push(line.to_owned());
            }
        }
        script
    }

    /// Adds sections in the form of one header value.
    pub fn extend_from_header(&mut self, text: &str) {
        for section in text.split(" | ") {
            let Some((name, operations)) = section.split_once(": ") else {
                continue;
            };
            let operations = operations.split(';').map(|one| one.trim().to_owned());
            self.sections
                .push((name.trim().to_owned(), operations.collect()));
        }
    }

    /// What to do in the `turn`th call of `callback`.
    pub fn operations(&self, callback: &str, turn: u32) -> Vec<String> {
        let numbered = format!("{callback}#{turn}");
        let matching = self.sections.iter();
        let matching = matching.filter(|(name, _)| name == callback || *name == numbered);
        matching
            .flat_map(|(_, operations)| operations.clone())
            .collect()
    }
}
