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
    pub(super) grpc: Option<Grpc>,
    pub(super) mcp: Option<Mcp>,
    pub(super) data_dir: &'a Path,
    /// How this program was called, for the commands to copy.
    pub(super) program: String,
    /// Flags that `approvals` needs to find this plane; empty with the defaults.
    pub(super) approvals_flags: String,
}

/// The second listener.
pub(super) struct Grpc {
    pub(super) listener: String,
    pub(super) upstream: String,
    pub(super) admin: String,
    /// The flag that `ledger` needs to find the listener; empty with the default.
    pub(super) address_flag: String,
}

/// The approval tools.
pub(super) struct Mcp {
    pub(super) listener: String,
    pub(super) admin: String,
}

impl Welcome<'_> {
    /// The whole text.
    pub(super) fn text(&self) -> String {
        let mut table = self.table();
        let mut calls = self.calls();
        if let Some(grpc) = &self.grpc {
            table.push_str(&self.grpc_table(grpc));
            calls.push_str(&self.grpc_calls(grpc));
        }
        if let Some(mcp) = &self.mcp {
            table.push_str(&self.mcp_table(mcp));
            calls.push_str(&format!(
                "An agent reads and awaits decisions over MCP:\n\
                 \x20  claude mcp add --transport http hoop-approvals http://{}/mcp\n",
                mcp.listener
            ));
        }
        format!(
            "\n{table}\n{calls}\n\
             Ctrl-C stops all of it. Below: each request that reached an upstream.\n"
        )
    }

    fn table(&self) -> String {
        let Welcome {
            host,
            listener,
            plane,
            upstream,
            admin,
            ..
        } = self;
        let log = self.data_dir.join("envoy.log");
        format!(
            "billing-api    http://{listener}   {host} with the gate: send calls here\n\
             plane          http://{plane}   keeps and answers approval requests\n\
             upstream       http://{upstream}   what the gate guards\n\
             admin          http://{admin}   statistics; log: {}\n",
            log.display()
        )
    }

    fn grpc_table(&self, grpc: &Grpc) -> String {
        let Grpc {
            listener,
            upstream,
            admin,
            ..
        } = grpc;
        let log = self.data_dir.join("ledger/envoy.log");
        format!(
            "ledger         http://{listener}   the same for gRPC: a second gate, in a process of its own\n\
             gRPC service   http://{upstream}   what that one guards\n\
             gRPC admin     http://{admin}   statistics; log: {}\n",
            log.display()
        )
    }

    fn mcp_table(&self, mcp: &Mcp) -> String {
        let Mcp { listener, admin } = mcp;
        let log = self.data_dir.join("mcp/envoy.log");
        format!(
            "mcp            http://{listener}/mcp   approval tools for agents: a third gate, with nothing behind it\n\
             mcp admin      http://{admin}   statistics; log: {}\n",
            log.display()
        )
    }

    fn calls(&self) -> String {
        let Welcome {
            listener,
            program,
            approvals_flags,
            ..
        } = self;
        let post = format!(
            "curl -i -X POST http://{listener}/payments/42/refund -d '{{\"amount\": 120}}'"
        );
        format!(
            "1. Passes: the policy holds only POST, PUT, PATCH and DELETE under /payments/\n\
             \x20  curl -i http://{listener}/payments/42\n\
             2. Is held: 403 with the approval's id in X-Hoop-Approval-Id\n\
             \x20  {post}\n\
             \x20  Decide it, in another terminal:\n\
             \x20  {program} approvals{approvals_flags} list\n\
             \x20  {program} approvals{approvals_flags} approve ID\n\
             3. The identical call now passes, once; a further one needs a new approval\n\
             \x20  {post}\n"
        )
    }

    fn grpc_calls(&self, grpc: &Grpc) -> String {
        let Welcome { program, .. } = self;
        let Grpc { address_flag, .. } = grpc;
        format!(
            "4. The same with gRPC: a balance passes, a posting needs a person\n\
             \x20  {program} ledger{address_flag} balance demo/cash\n\
             \x20  {program} ledger{address_flag} post --account demo/cash --amount 120.00\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(grpc: Option<Grpc>, mcp: Option<Mcp>) -> Welcome<'static> {
        Welcome {
            host: "Envoy",
            listener: "127.0.0.1:1".to_owned(),
            plane: "127.0.0.1:2".to_owned(),
            upstream: "127.0.0.1:3".to_owned(),
            admin: "127.0.0.1:4".to_owned(),
            grpc,
            mcp,
            data_dir: Path::new(".host-sim"),
            program: "host-sim".to_owned(),
            approvals_flags: " --plane http://127.0.0.1:2".to_owned(),
        }
    }

    #[test]
    fn the_text_has_all_addresses_and_calls() {
        let grpc = Grpc {
            listener: "127.0.0.1:5".to_owned(),
            upstream: "127.0.0.1:6".to_owned(),
            admin: "127.0.0.1:7".to_owned(),
            address_flag: " --address 127.0.0.1:5".to_owned(),
        };
        let mcp = Mcp {
            listener: "127.0.0.1:8".to_owned(),
            admin: "127.0.0.1:9".to_owned(),
        };
        let text = welcome(Some(grpc), Some(mcp)).text();
        assert_eq!(text.matches("curl -i").count(), 3, "{text}");
        for port in [1, 2, 3, 4, 5, 6, 7, 9] {
            assert!(
                text.contains(&format!("http://127.0.0.1:{port} ")),
                "{text}"
            );
        }
        for command in [
            "host-sim approvals --plane http://127.0.0.1:2 list",
            "host-sim ledger --address 127.0.0.1:5 post ",
            "hoop-approvals http://127.0.0.1:8/mcp",
        ] {
            assert!(text.contains(command), "{text}");
        }
    }

    #[test]
    fn no_word_is_lost_on_what_was_left_out() {
        let text = welcome(None, None).text();
        for word in ["ledger", "gRPC", "mcp"] {
            assert!(!text.contains(word), "{text}");
        }
    }
}
