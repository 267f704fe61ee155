//! An Envoy bootstrap as a document: a file or a text, YAML or JSON, before anybody asks what it means.

use std::path::Path;

use serde_json::Value;

/// Why there is no document. Each is the operator's to mend, in the file that the message names.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("{origin}: cannot read the Envoy configuration: {source}")]
    Unreadable {
        /// The file.
        origin: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is neither YAML nor JSON.
    #[error("{origin}: not valid YAML: {reason}")]
    NotYaml {
        /// The file.
        origin: String,
        /// The parser's message, one line.
        reason: String,
    },
}

impl DocumentError {
    /// What the operator can do about it; `flag` is the one that names the file.
    pub fn hint(&self, flag: &str) -> String {
        match self {
            DocumentError::Unreadable { .. } => format!("check the path after `{flag}`"),
            DocumentError::NotYaml { .. } => "compare the file with envoy/envoy.yaml".to_owned(),
        }
    }
}

/// Reads the file at `path`, and gives what names it in messages too.
pub(crate) fn load(path: &Path) -> Result<(Value, String), DocumentError> {
    let origin = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((parse(&text, &origin)?, origin)),
        Err(source) => Err(DocumentError::Unreadable { origin, source }),
    }
}

/// Reads `text`, which `origin` names in messages. JSON is YAML too.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Value, DocumentError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let reason = error.to_string();
        DocumentError::NotYaml {
            origin: origin.to_owned(),
            reason: reason.lines().next().unwrap_or_default().to_owned(),
        }
    })
}
