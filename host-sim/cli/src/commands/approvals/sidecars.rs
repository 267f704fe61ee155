//! `host-sim sidecars`: which gates have reported to the plane. Pure but for the one call: text that cannot move a cursor
//! comes out.

use std::fmt::Write;

use serde::Deserialize;

use super::client::Client;
use crate::args::SidecarsArguments;
use crate::failure::Failure;
use crate::output::{self, printable};

/// Runs the command.
pub(in crate::commands) async fn run(arguments: &SidecarsArguments) -> Result<(), Failure> {
    let client = Client::new(&arguments.plane, &arguments.data_dir)?;
    let answer = client.sidecars().await?;
    let sidecars: Vec<Sidecar> = client.read(&answer)?;
    if arguments.json {
        output::data(format_args!("{answer:#}"));
    } else {
        let pages: Vec<String> = sidecars.iter().map(Sidecar::page).collect();
        output::data(pages.join("\n\n"));
    }
    Ok(())
}

/// What the plane's people's API answers; fields that are not named here are ignored.
#[derive(Debug, Deserialize)]
struct Sidecar {
    name: String,
    connected: bool,
    last_seen: Option<String>,
    version: Option<String>,
    last_outcome: Option<String>,
    last_error: Option<String>,
    capabilities: Vec<String>,
}

impl Sidecar {
    /// A line for each field.
    fn page(&self) -> String {
        let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let connected = match (self.connected, &self.last_seen) {
            (true, _) => "yes",
            (false, Some(_)) => "no",
            (false, None) => "no, it never reported (approvals do not need that)",
        };
        let fields = [
            ("sidecar", self.name.clone()),
            ("connected", connected.to_owned()),
            ("last seen", or_dash(&self.last_seen)),
            ("version", or_dash(&self.version)),
            ("last outcome", or_dash(&self.last_outcome)),
            ("last error", or_dash(&self.last_error)),
            ("capabilities", self.capabilities.join(", ")),
        ];
        let mut page = String::new();
        for (name, value) in fields {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "{name:<14}{}", printable(&value));
        }
        page.truncate(page.trim_end().len());
        page
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sidecar_cannot_imitate_a_field_or_move_the_cursor() {
        let answer = json!({
            "id": "x", "name": "sidecar", "connected": false, "last_seen": "2026-11-30T07:00:00Z", "version": "1",
            "applied_revision": null, "last_outcome": null, "last_error": "a\nconnected     yes\u{1b}[1A",
            "capabilities": ["hold", "return"],
        });
        let page = Sidecar::deserialize(&answer).expect("a sidecar").page();
        assert_eq!(
            page,
            "sidecar       sidecar\nconnected     no\nlast seen     2026-11-30T07:00:00Z\nversion       1\n\
             last outcome  -\nlast error    a\\nconnected     yes\\u{1b}[1A\ncapabilities  hold, return"
        );
    }
}
