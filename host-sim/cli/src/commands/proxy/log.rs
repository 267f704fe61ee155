//! Log lines in Envoy's form, so that what reads Envoy's log reads this one. Pure: levels and lines in, text out.
//!
//! `[2026-11-30 06:46:50.750][4711][info][wasm] [source/extensions/common/wasm/context.cc:1184] wasm log NAME: message`

use host_sim::{LogLevel, LogLine};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use crate::args::{LevelArgument, ProxyArguments};

/// Which lines are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    /// The filter's lines and what happens to its VMs.
    wasm: LevelArgument,
    /// The rest.
    main: LevelArgument,
}

impl Levels {
    pub(super) fn new(arguments: &ProxyArguments) -> Levels {
        let component = |name: &str| {
            let levels = arguments.component_log_level.iter().rev();
            let mut named = levels.filter(|(component, _)| component == name);
            named
                .next()
                .map_or(arguments.log_level, |(_, level)| *level)
        };
        Levels {
            wasm: component("wasm"),
            main: component("main"),
        }
    }

    /// The least level that a guest need log at; it can ask for it.
    pub(super) fn guest(self) -> LogLevel {
        match self.wasm {
            LevelArgument::Trace => LogLevel::Trace,
            LevelArgument::Debug => LogLevel::Debug,
            LevelArgument::Info => LogLevel::Info,
            LevelArgument::Warning => LogLevel::Warn,
            LevelArgument::Error => LogLevel::Error,
            LevelArgument::Critical | LevelArgument::Off => LogLevel::Critical,
        }
    }

    /// What to write of a line about wasm, if anything.
    pub(super) fn wasm_line(self, line: &LogLine, now: OffsetDateTime) -> Option<String> {
        if argument(line.level) < self.wasm {
            return None;
        }
        let message = match (line.from_guest, line.prefix.as_str()) {
            (false, _) => line.message.clone(),
            (true, "") => format!("wasm log: {}", line.message),
            (true, prefix) => format!("wasm log {prefix}: {}", line.message),
        };
        let source = if line.from_guest { GUEST_LINE } else { VM_LINE };
        Some(text(now, line.level, "wasm", source, &message))
    }

    /// What to write of our own event, if anything.
    pub(super) fn main_line(
        self,
        level: LogLevel,
        message: &str,
        now: OffsetDateTime,
    ) -> Option<String> {
        (argument(level) >= self.main).then(|| text(now, level, "main", MAIN_LINE, message))
    }
}

/// Whether `line` tells of a request that is over. Such lines have a form of their own and belong on stdout.
pub(super) fn is_access(line: &LogLine) -> bool {
    !line.from_guest && line.prefix == ACCESS_LOG
}

fn text(
    now: OffsetDateTime,
    level: LogLevel,
    component: &str,
    source: &str,
    message: &str,
) -> String {
    // The format has no part that a time could lack.
    let time = now.format(TIME).unwrap_or_default();
    let id = std::process::id();
    let level = level.name();
    format!("[{time}][{id}][{level}][{component}] [{source}] {message}\n")
}

fn argument(level: LogLevel) -> LevelArgument {
    match level {
        LogLevel::Trace => LevelArgument::Trace,
        LogLevel::Debug => LevelArgument::Debug,
        LogLevel::Info => LevelArgument::Info,
        LogLevel::Warn => LevelArgument::Warning,
        LogLevel::Error => LevelArgument::Error,
        LogLevel::Critical => LevelArgument::Critical,
    }
}

const TIME: &[BorrowedFormatItem<'_>] = format_description!(
    version = 2,
    "[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3]"
);
/// Where Envoy 1.40 writes a guest's lines.
const GUEST_LINE: &str = "source/extensions/common/wasm/context.cc:1184";
const VM_LINE: &str = "host-sim/src/vm.rs";
/// How `host_sim::proxy` marks the lines of the access log.
const ACCESS_LOG: &str = "access";
const MAIN_LINE: &str = "host-sim/cli/src/commands/proxy.rs";

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-30 06:46:50.7509 UTC);

    fn levels(main: LevelArgument, wasm: LevelArgument) -> Levels {
        Levels { wasm, main }
    }

    fn line(level: LogLevel, from_guest: bool) -> LogLine {
        LogLine {
            level,
            from_guest,
            prefix: "hoop hoop_filter vm-1".to_owned(),
            message: "said\nso".to_owned(),
        }
    }

    #[test]
    fn a_line_of_the_filter_looks_as_in_envoy() {
        let levels = levels(LevelArgument::Warning, LevelArgument::Debug);
        let id = std::process::id();
        assert_eq!(
            levels.wasm_line(&line(LogLevel::Warn, true), NOW),
            Some(format!(
                "[2026-11-30 06:46:50.750][{id}][warning][wasm] [source/extensions/common/wasm/context.cc:1184] \
                 wasm log hoop hoop_filter vm-1: said\nso\n"
            ))
        );
        assert_eq!(
            levels.wasm_line(&line(LogLevel::Critical, false), NOW),
            Some(format!(
                "[2026-11-30 06:46:50.750][{id}][critical][wasm] [host-sim/src/vm.rs] said\nso\n"
            ))
        );
    }

    #[test]
    fn the_filters_level_is_its_own() {
        let levels = levels(LevelArgument::Warning, LevelArgument::Debug);
        assert_eq!(levels.guest(), LogLevel::Debug);
        assert!(
            levels
                .wasm_line(&line(LogLevel::Debug, true), NOW)
                .is_some()
        );
        assert!(
            levels
                .wasm_line(&line(LogLevel::Trace, true), NOW)
                .is_none()
        );
        assert!(levels.main_line(LogLevel::Info, "", NOW).is_none());
        assert!(levels.main_line(LogLevel::Warn, "", NOW).is_some());
    }

    #[test]
    fn off_is_silent() {
        let levels = levels(LevelArgument::Off, LevelArgument::Off);
        assert!(
            levels
                .wasm_line(&line(LogLevel::Critical, false), NOW)
                .is_none()
        );
        assert!(levels.main_line(LogLevel::Critical, "", NOW).is_none());
    }
}
