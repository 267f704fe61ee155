//! What a failed case prints: configuration, every exchange, what upstream and plane saw, and the logs.

use std::fmt::Write;

use crate::client::{Answer, describe};
use crate::http1::Message;

/// Everything that is known about a scene.
pub struct Report<'a> {
    /// The plugin configuration.
    pub policy: &'a str,
    /// Requests and answers.
    pub exchanges: &'a [(String, Answer)],
    /// Requests that reached the upstream.
    pub upstream: &'a [Message],
    /// Calls that reached a lying plane.
    pub plane: &'a [Message],
    /// The log of a real plane.
    pub plane_log: &'a str,
    /// The log of the host and the filter.
    pub host_log: &'a str,
}

impl std::fmt::Display for Report<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        section(&mut text, "plugin configuration", self.policy);
        for (request, answer) in self.exchanges {
            section(&mut text, "request", request);
            section(&mut text, "answer", &answer.to_string());
        }
        messages(&mut text, "the upstream got", self.upstream);
        messages(&mut text, "the plane was asked", self.plane);
        section(&mut text, "plane log", self.plane_log);
        section(&mut text, "log of the host (its end)", tail(self.host_log));
        out.write_str(&text)
    }
}

fn messages(text: &mut String, title: &str, messages: &[Message]) {
    for message in messages {
        section(text, title, &describe(&message.raw));
    }
    if messages.is_empty() {
        section(text, title, "nothing");
    }
}

fn section(text: &mut String, title: &str, content: &str) {
    let _infallible = writeln!(text, "--- {title}\n{}", content.trim_end());
}

fn tail(log: &str) -> &str {
    let mut ends = log.rmatch_indices('\n').skip(TAIL_LINES);
    ends.next().map_or(log, |(index, _)| &log[index + 1..])
}

const TAIL_LINES: usize = 120;
