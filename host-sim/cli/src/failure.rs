//! Why a command failed: one line that says what is wrong and what helps, and whose fault it is.

use std::error::Error;
use std::fmt;

use crate::stack::EnvoyError;

/// A command's failure, printed as one line.
#[derive(Debug)]
pub struct Failure {
    fault: Fault,
    message: String,
    hint: Option<String>,
}

/// Whose fault it is; decides the exit code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// Something that the user can mend: exit code 1.
    User,
    /// Something that should not happen: exit code 2.
    Ours,
}

impl Failure {
    /// Something that the user mends as `hint` says.
    pub fn user(message: impl fmt::Display, hint: impl fmt::Display) -> Failure {
        Failure {
            fault: Fault::User,
            message: one_line(&message),
            hint: Some(one_line(&hint)),
        }
    }

    /// Something that the user mends; the error's text ends in its own `hint:` line, as the plane's messages do. The causes
    /// go in front of it.
    pub fn told(error: &dyn Error) -> Failure {
        let text = error.to_string();
        let (message, hint) = match text.split_once("\nhint: ") {
            Some((message, hint)) => (message, Some(one_line(&hint))),
            None => (text.as_str(), None),
        };
        let message = format!("{message}{}", causes(error));
        Failure {
            fault: Fault::User,
            message: one_line(&message),
            hint,
        }
    }

    /// As [`told`](Failure::told), with `hint` where the error's text has no remedy of its own.
    pub fn told_or(error: &dyn Error, hint: &str) -> Failure {
        let mut failure = Failure::told(error);
        if !failure.message.contains("hint: ") {
            failure.hint.get_or_insert_with(|| one_line(&hint));
        }
        failure
    }

    /// Something that should not happen.
    pub fn ours(message: impl fmt::Display) -> Failure {
        Failure {
            fault: Fault::Ours,
            message: one_line(&message),
            hint: None,
        }
    }

    /// An error that should not happen, with its causes.
    pub fn internal(error: &dyn Error) -> Failure {
        Failure::ours(format_args!("{error}{}", causes(error)))
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "; hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<EnvoyError> for Failure {
    fn from(error: EnvoyError) -> Failure {
        match &error {
            EnvoyError::Directory { .. } => Failure::user(
                error,
                "give a directory that you may write to with `--data-dir`",
            ),
            EnvoyError::NotExecuted { .. } | EnvoyError::NotStarted { .. } => Failure::user(
                error,
                "give an Envoy that runs on this machine with `--envoy FILE` (variable ENVOY)",
            ),
            EnvoyError::NotEnvoy { .. } => {
                Failure::user(error, "check the path after `--envoy` (variable ENVOY)")
            }
            EnvoyError::Died { .. } | EnvoyError::NotReady { .. } => {
                Failure::user(error, "mend what the message names; the log has the rest")
            }
            EnvoyError::ListenerUnknown { .. } | EnvoyError::Lost { .. } => Failure::ours(error),
        }
    }
}

/// `: cause` for each cause of `error`.
fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// Messages may come from files and from the plane, and a line break in one would make two messages of it. Where a line does not
/// announce the next one, a semicolon stands between them.
fn one_line(text: &impl fmt::Display) -> String {
    let text = text.to_string();
    let mut joined = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !joined.is_empty() {
            let open = joined.ends_with([':', ',', ';', '.']);
            joined.push_str(if open { " " } else { "; " });
        }
        joined.push_str(line);
    }
    crate::output::printable(&joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_with_its_remedy() {
        let failure = Failure::user("a.yaml: /rules:\n  found 1\u{1b}[2J", "give an array");
        assert_eq!(
            failure.to_string(),
            "a.yaml: /rules: found 1\\u{1b}[2J; hint: give an array"
        );
        assert_eq!(failure.fault(), Fault::User);
    }

    #[test]
    fn lines_that_are_folded_into_one_stay_apart() {
        let failure = Failure::ours("it returned false\n  it logged: a\n  it logged: b,\nc\n\n");
        assert_eq!(
            failure.to_string(),
            "it returned false; it logged: a; it logged: b, c"
        );
    }

    #[derive(Debug, thiserror::Error)]
    #[error("plane.yaml: name is \"\"\nhint: write a plain name")]
    struct Told(#[source] std::io::Error);

    #[test]
    fn a_hint_is_added_only_where_there_is_none() {
        for (text, expected) in [
            ("it refused", "it refused; hint: mend it"),
            (
                "it logged: no; hint: write a name",
                "it logged: no; hint: write a name",
            ),
        ] {
            let failure = Failure::told_or(&std::io::Error::other(text), "mend it");
            assert_eq!(failure.to_string(), expected);
        }
    }

    #[test]
    fn a_told_failure_keeps_its_own_hint_behind_its_cause() {
        let failure = Failure::told(&Told(std::io::Error::other("disk full")));
        assert_eq!(
            failure.to_string(),
            "plane.yaml: name is \"\": disk full; hint: write a plain name"
        );
    }
}
