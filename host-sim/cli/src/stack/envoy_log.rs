//! Which lines of Envoy's log say why it does not run. Pure: text in, lines out.

/// The last error and critical messages of `log`, without time stamp and source place; the last lines when there are none.
///
/// When the filter itself said what is wrong, only its words count: Envoy's own follow from them and name no place. A message that spans several lines keeps them, joined to one: a filter's refusal of its configuration ends in a hint.
pub(super) fn decisive_lines(log: &str) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    let mut in_error = false;
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(ours) = line.strip_prefix(SIMULATOR) {
            in_error = true;
            errors.push(ours.to_owned());
        } else if is_start(line) {
            in_error = LEVELS.iter().any(|level| line.contains(level));
            // Of a crash, the line that names the signal; its frames say nothing to an operator.
            in_error &= !line.contains(BACKTRACE) || message(line).starts_with("Caught ");
            if in_error {
                errors.push(message(line).to_owned());
            }
        } else if in_error && let Some(last) = errors.last_mut() {
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    errors.dedup();
    if errors.iter().any(|error| error.starts_with(FILTER)) {
        errors.retain(|error| error.starts_with(FILTER));
    }
    if errors.is_empty() {
        errors = log
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| message(line).to_owned())
            .collect();
    }
    let first = errors.len().saturating_sub(MAX_LINES);
    errors.split_off(first)
}

/// Whether anything in `log` is of the form in which Envoy logs.
pub(super) fn is_envoys(log: &str) -> bool {
    log.lines().any(is_start)
}

/// Why the program never ran, when `log` is nothing but the word of `host-sim exec-child` about it.
pub(super) fn why_not_executed(log: &str) -> Option<&str> {
    let mut lines = log.lines().filter(|line| !line.trim().is_empty());
    let only = lines.next().filter(|_| lines.next().is_none())?;
    only.strip_prefix("error: ")?.strip_prefix(NOT_EXECUTED)
}

/// Envoy's own lines start with `[2026-11-30 06:46:50.757][9814][critical][main] `; the access log and traces do not.
fn is_start(line: &str) -> bool {
    line.starts_with("[20")
}

/// What stands behind the brackets in front of a line.
fn message(line: &str) -> &str {
    let mut rest = line;
    while let Some(inner) = rest.strip_prefix('[') {
        match inner.split_once(']') {
            Some((_, behind)) => rest = behind.trim_start(),
            None => break,
        }
    }
    rest
}

/// How `host-sim exec-child` begins the line that says why it could not become the program.
pub const NOT_EXECUTED: &str = "cannot become the program: ";

/// How `host-sim proxy` begins the line that says why it ended.
const SIMULATOR: &str = "error: ";
const LEVELS: [&str; 2] = ["][error][", "][critical]["];
/// The logger of a crash.
const BACKTRACE: &str = "][backtrace]";
/// How Envoy marks a line that a wasm filter wrote.
const FILTER: &str = "wasm log ";
const MAX_LINES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "[2026-11-30 06:46:50.749][9814][info][config] [source/server/configuration_impl.cc:148] loading 1 listener(s)\n";

    #[test]
    fn the_filters_own_words_win_and_keep_their_continuation() {
        let log = format!(
            "{START}[2026-11-30 06:46:50.750][9814][error][wasm] [source/x.cc:1] wasm log hoop: /rules/0: found 1\nhint: give an object\n\
             [2026-11-30 06:46:50.757][9814][critical][main] [source/server.cc:76] error initializing configuration\n\
             [2026-11-30 06:46:50.757][9814][info][main] [source/server.cc:99] exiting\n"
        );
        assert_eq!(
            decisive_lines(&log),
            ["wasm log hoop: /rules/0: found 1 hint: give an object"]
        );
    }

    #[test]
    fn the_simulators_last_word_is_told_unless_the_filter_has_said_why() {
        let word = "error: my.yaml: /node: found an object; hint: leave it out\n";
        assert_eq!(
            decisive_lines(&format!("{START}{word}")),
            ["my.yaml: /node: found an object; hint: leave it out"]
        );
        let filter = "[2026-11-30 06:46:50.750][9814][error][wasm] [source/x.cc:1] wasm log hoop: /rules: no; hint: give one\n";
        assert_eq!(
            decisive_lines(&format!("{filter}{word}")),
            ["wasm log hoop: /rules: no; hint: give one"]
        );
    }

    #[test]
    fn a_crash_is_told_without_its_frames() {
        let log = format!(
            "{START}[2026-11-30 07:09:50.757][1][critical][backtrace] [./source/server/backtrace.h:113] Caught Segmentation fault\n\
             [2026-11-30 07:09:50.757][1][critical][backtrace] [./source/server/backtrace.h:91] Envoy version: 9e55\n\
             [2026-11-30 07:09:50.757][1][critical][backtrace] [./source/server/backtrace.h:98] #0: [0x7fa0bb87024a]\n"
        );
        assert_eq!(decisive_lines(&log), ["Caught Segmentation fault"]);
    }

    #[test]
    fn without_an_error_the_last_lines_are_told() {
        assert_eq!(
            decisive_lines(&format!("{START}\nAborted\n")),
            ["loading 1 listener(s)", "Aborted"]
        );
        assert!(decisive_lines("").is_empty());
    }

    #[test]
    fn only_lines_in_envoys_form_are_envoys() {
        assert!(is_envoys(&format!("a warning of the loader\n{START}")));
        for log in ["", "usage: ls\n", "[main] started\n"] {
            assert!(!is_envoys(log), "{log:?}");
        }
    }

    #[test]
    fn a_program_that_never_ran_is_known_by_a_line_that_stands_alone() {
        let line = format!("error: {NOT_EXECUTED}Exec format error (os error 8)\n");
        assert_eq!(
            why_not_executed(&line),
            Some("Exec format error (os error 8)")
        );
        assert_eq!(why_not_executed(&format!("{START}{line}")), None);
        assert_eq!(why_not_executed(""), None);
    }

    #[test]
    fn a_repeated_error_is_told_once() {
        let line = "[2026-11-30 06:46:50.750][1][error][wasm] [source/x.cc:1] no\n";
        assert_eq!(decisive_lines(&line.repeat(5)), ["no"]);
    }
}
