//! An approval request as text for a terminal. Pure: what the plane answered goes in, text that cannot move a cursor comes out.

use std::fmt::Write;

use serde::Deserialize;

use crate::output::printable;

/// What the plane's people's API answers; fields that are not named here are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Review {
    id: String,
    status: String,
    listener_name: String,
    approval_rule: String,
    created_at: String,
    decided_at: Option<String>,
    executed_at: Option<String>,
    settle_by: Option<String>,
    expires_at: Option<String>,
    rejection_reason: Option<String>,
    requester: Option<Requester>,
    statement: String,
    statement_bytes: u64,
    statement_sha256: String,
    ran_before: u64,
}

/// Who asked.
#[derive(Debug, Deserialize)]
struct Requester {
    subject: String,
    email: String,
    peer_addr: String,
    method: String,
}

impl Review {
    /// One line: id, status, and how the statement begins.
    pub(super) fn line(&self) -> String {
        printable(&format!("{} {} {}", self.id, self.status, self.summary()))
    }

    /// What happens next, after a decision; `None` when that needs no saying.
    pub(super) fn next(&self) -> Option<String> {
        match (self.status.as_str(), &self.expires_at) {
            ("APPROVED", Some(expires_at)) => Some(printable(&format!(
                "the identical call passes once, until {expires_at}"
            ))),
            ("APPROVED", None) => Some("the identical call passes once".to_owned()),
            _ => None,
        }
    }

    /// Every field, then the statement. Each of its lines begins with a bar, so that no statement can imitate a field.
    pub(super) fn page(&self) -> String {
        let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let fields = [
            ("id", self.id.clone()),
            ("status", self.status.clone()),
            ("listener", self.listener_name.clone()),
            ("approval rule", self.approval_rule.clone()),
            (
                "requester",
                self.requester
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), Requester::text),
            ),
            ("created", self.created_at.clone()),
            ("expires", or_dash(&self.expires_at)),
            ("decided", or_dash(&self.decided_at)),
            ("reason", or_dash(&self.rejection_reason)),
            ("executed", or_dash(&self.executed_at)),
            ("settles by", or_dash(&self.settle_by)),
            ("earlier runs", self.ran_before.to_string()),
            (
                "statement",
                format!(
                    "{} bytes, sha256 {}",
                    self.statement_bytes, self.statement_sha256
                ),
            ),
        ];
        let mut page = String::new();
        for (name, value) in fields {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "{name:<14}{}", printable(&value));
        }
        for line in self.statement.split('\n') {
            // A tab is shown as it is: it moves the cursor only forward.
            let shown: Vec<String> = line.split('\t').map(printable).collect();
            let _ = writeln!(page, "  | {}", shown.join("\t"));
        }
        page.truncate(page.trim_end_matches('\n').len());
        page
    }

    /// The first line of the statement; an ellipsis stands for whatever is left out.
    fn summary(&self) -> String {
        let first = self.statement.lines().next().unwrap_or_default();
        let mut summary: String = first.chars().take(SUMMARY_CHARS).collect();
        if summary.len() < self.statement.len() {
            summary.push_str(" ...");
        }
        summary
    }
}

impl Requester {
    fn text(&self) -> String {
        let names = [&self.subject, &self.email, &self.peer_addr].map(String::as_str);
        let known: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        format!("{} ({})", known.join(", "), self.method)
    }
}

/// A table with one line for each review, in the order given.
pub(super) fn table(reviews: &[Review]) -> String {
    let header = ["ID", "STATUS", "CREATED", "LISTENER", "RULE", "STATEMENT"].map(str::to_owned);
    let mut rows = vec![header];
    rows.extend(reviews.iter().map(|review| {
        let cells = [
            &review.id,
            &review.status,
            &review.created_at,
            &review.listener_name,
            &review.approval_rule,
            &review.summary(),
        ];
        cells.map(|cell| printable(cell))
    }));
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Long enough for a path that one can tell from another, short enough for a wide terminal.
const SUMMARY_CHARS: usize = 60;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn review(statement: &str) -> Review {
        let answer = json!({
            "id": "7d1c0b8e-5a3f-4c7e-9b1d-2f6a8c4e0d35", "status": "PENDING", "listener_name": "billing-api",
            "approval_rule": "billing-approvers", "created_at": "2026-11-30T07:00:00Z", "decided_at": null,
            "expires_at": "2026-11-30T07:30:00Z", "requester": {"subject": "", "email": "", "peer_addr": "127.0.0.1:5", "method": "peer_address"},
            "statement": statement, "statement_bytes": 9, "statement_sha256": "ab", "ran_before": 0,
        });
        Review::deserialize(&answer).expect("a review")
    }

    #[test]
    fn a_statement_cannot_imitate_a_field_or_move_the_cursor() {
        let page = review("POST /payments\n\nstatus        APPROVED\u{1b}[1A").page();
        assert!(page.contains("\nstatus        PENDING\n"), "{page}");
        assert!(
            page.ends_with("\n  | POST /payments\n  | \n  | status        APPROVED\\u{1b}[1A"),
            "{page}"
        );
    }

    #[test]
    fn a_table_has_one_line_for_each_review() {
        let table = table(&[review("POST /payments\n\n{}"), review("DELETE /payments/1")]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(
            lines[0].starts_with("ID ") && lines[0].ends_with("STATEMENT"),
            "{table}"
        );
        assert!(lines[1].ends_with("POST /payments ..."), "{table}");
        assert!(lines[2].ends_with("DELETE /payments/1"), "{table}");
    }
}
