//! What `up` prints once everything is ready: one table of addresses and the three calls to try. Pure: text out.

use std::path::Path;

/// What the text has to know.
pub(super) struct Welcome<'a> {
    /// What runs the gate.
    pub(super) host: &'static str,
    pub(super) listener: String,
    pub(super) plane: String,
    pub(super) upstream: String,
    pub(super) admin: String,
    pub(super) data_dir: &'a Path,
    /// How this program was called, for the commands to copy.
    pub(super) program: String,
    /// Flags that `approvals` needs to find this plane; empty with the defaults.
    pub(super) approvals_flags: String,
}

impl Welcome<'_> {
    /// The whole text.
    pub(super) fn text(&self) -> String {
        let Welcome {
            host,
            listener,
            plane,
            upstream,
            admin,
            data_dir,
            program,
            approvals_flags,
        } = self;
        let log = data_dir.join("envoy.log");
        let post = format!(
            "curl -i -X POST http://{listener}/payments/42/refund -d '{{\"amount\": 120}}'"
        );
        format!(
            "\n\
             billing-api    http://{listener}   {host} with the gate: send calls here\n\
             plane          http://{plane}   keeps and answers approval requests\n\
             upstream       http://{upstream}   what the gate guards\n\
             admin          http://{admin}   statistics; log: {}\n\
             \n\
             1. Passes: the policy holds only POST, PUT, PATCH and DELETE under /payments/\n\
             \x20  curl -i http://{listener}/payments/42\n\
             2. Is held: 403 with the approval's id in X-Hoop-Approval-Id\n\
             \x20  {post}\n\
             \x20  Decide it, in another terminal:\n\
             \x20  {program} approvals{approvals_flags} list\n\
             \x20  {program} approvals{approvals_flags} approve ID\n\
             3. The identical call now passes, once; a further one needs a new approval\n\
             \x20  {post}\n\
             \n\
             Ctrl-C stops all of it. Below: each request that reached the upstream.\n",
            log.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_four_addresses_and_three_calls() {
        let welcome = Welcome {
            host: "Envoy",
            listener: "127.0.0.1:1".to_owned(),
            plane: "127.0.0.1:2".to_owned(),
            upstream: "127.0.0.1:3".to_owned(),
            admin: "127.0.0.1:4".to_owned(),
            data_dir: Path::new(".host-sim"),
            program: "host-sim".to_owned(),
            approvals_flags: " --plane http://127.0.0.1:2".to_owned(),
        };
        let text = welcome.text();
        assert_eq!(text.matches("curl -i").count(), 3, "{text}");
        for port in 1..=4 {
            assert!(
                text.contains(&format!("http://127.0.0.1:{port} ")),
                "{text}"
            );
        }
        assert!(
            text.contains("host-sim approvals --plane http://127.0.0.1:2 list"),
            "{text}"
        );
    }
}
