//! All printing: data on stdout, everything else on stderr. Nothing else in this crate writes to either.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Fault};

/// Prints data to stdout, a line at a time.
///
/// A reader that has gone away (`host-sim approvals list | head -1`) is no failure of ours.
pub fn data(line: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Prints data to stdout as it is, in one piece and at once.
pub fn raw(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Tells on stderr what is going on.
pub fn progress(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes finished log lines to stderr in one piece, so that lines of several threads and of a child with the same file stay whole.
pub fn log(lines: &str) {
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

/// Prints a failure to stderr and gives its exit code: 1 = the user can mend it, 2 = it should not happen.
pub fn failure(failure: &Failure) -> ExitCode {
    progress(format_args!("error: {failure}"));
    match failure.fault() {
        Fault::User => ExitCode::from(1),
        Fault::Ours => ExitCode::from(2),
    }
}

/// Prints what the argument parser has to say: help and version to stdout with exit code 0, a mistake to stderr with 1.
pub fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}

/// Sends the log of plane and command to stderr: warnings, or what `HOST_SIM_LOG` asks for.
pub fn start_log() {
    let filter = EnvFilter::try_from_env("HOST_SIM_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(is_coloured())
        .with_target(false)
        .init();
}

/// Colour helps the eye and breaks a search in a file, so only a terminal gets it, and none whose user asked for no colour
/// (<https://no-color.org>).
fn is_coloured() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !unwanted
}

/// `text` with everything escaped that a terminal could act on or that hides what is there: control characters, and the
/// invisible and reordering ones of Unicode. Line breaks are escaped too.
///
/// A wrong pass lets an agent's statement move the cursor over the line that a person decides on.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceiving(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Unicode's control, format, separator and private-use characters, as far as they change what is seen.
fn is_deceiving(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        for (text, shown) in [
            ("POST /payments/é", "POST /payments/é"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\r\nb\t", "a\\r\\nb\\t"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{9b}", "a\\u{200b}b\\u{9b}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
