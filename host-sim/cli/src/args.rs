//! The flags of `host-sim`: types and help texts only, no behaviour. Every address and path can also be set by a variable.

mod grpc;
mod proxy;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use grpc::{DescriptorsArguments, LEDGER, LedgerArguments, LedgerCommand};
pub use proxy::{
    ClusterArgument, EnvironmentArgument, FilterArguments, LevelArgument, Mode, PolicyArgument,
    ProtocolArgument, ProxyArguments, UPSTREAM,
};

/// A local Control Plane, the approval gate in one command, and a proxy that runs any proxy-wasm filter without Envoy.
#[derive(Debug, Parser)]
#[command(name = "host-sim", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the plane, two demo services and an Envoy (or simulator) with the filter before each; Ctrl-C stops all.
    Up(Box<UpArguments>),
    /// Run a proxy-wasm filter in front of an upstream as Envoy would, without Envoy.
    Proxy(Box<ProxyArguments>),
    /// Run the plane alone.
    Plane(PlaneArguments),
    /// List and decide approval requests.
    Approvals(ApprovalsArguments),
    /// Show which sidecars (gates) have reported to the plane, and whether they still do.
    Sidecars(SidecarsArguments),
    /// Check a file of protobuf descriptors and print it as the filter's configuration takes it.
    Descriptors(DescriptorsArguments),
    /// Call the demo gRPC service of `up`.
    Ledger(LedgerArguments),
    /// Become another program that the system ends together with `parent`; `up` starts Envoy through it.
    #[command(hide = true)]
    ExecChild(ExecChildArguments),
}

/// What `host-sim exec-child` becomes.
#[derive(Args, Debug)]
pub struct ExecChildArguments {
    /// The process that the child must not outlive.
    #[arg(long)]
    pub parent: u32,
    /// The program and its arguments.
    #[arg(required = true, last = true)]
    pub command: Vec<OsString>,
}

/// Flags of `host-sim up`.
#[derive(Args, Debug)]
pub struct UpArguments {
    /// What runs the filter.
    #[arg(long, value_enum, env = "HOST_SIM_HOST", default_value_t = HostArgument::Envoy)]
    pub host: HostArgument,
    /// Where Envoy listens for calls.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:18080"
    )]
    pub listen: SocketAddr,
    /// Where the plane listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_PLANE_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:8009"
    )]
    pub plane_listen: SocketAddr,
    /// Where the demo upstream listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_UPSTREAM_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:18090"
    )]
    pub upstream_listen: SocketAddr,
    /// Where Envoy's admin interface listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_ADMIN_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:9901"
    )]
    pub admin_listen: SocketAddr,
    /// Where the second Envoy listens for gRPC calls.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_GRPC_LISTEN", value_parser = known_address,
        default_value = LEDGER
    )]
    pub grpc_listen: SocketAddr,
    /// Where the demo gRPC service listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_LEDGER_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:18091"
    )]
    pub ledger_listen: SocketAddr,
    /// Where the second Envoy's admin interface listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_GRPC_ADMIN_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:9902"
    )]
    pub grpc_admin_listen: SocketAddr,
    /// Leave out the demo gRPC service and the second Envoy.
    #[arg(long)]
    pub without_grpc: bool,
    /// Where the third Envoy serves agents the approval tools, under /mcp.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_MCP_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:8765"
    )]
    pub mcp_listen: SocketAddr,
    /// Where the third Envoy's admin interface listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_MCP_ADMIN_LISTEN", value_parser = known_address,
        default_value = "127.0.0.1:9903"
    )]
    pub mcp_admin_listen: SocketAddr,
    /// Leave out the approval tools and the third Envoy; refusals then name no tool.
    #[arg(long)]
    pub without_mcp: bool,
    /// Where the plane keeps its database and tokens, and Envoy its log (envoy.log; those of the others are ledger/envoy.log and
    /// mcp/envoy.log).
    #[arg(long, value_name = "DIRECTORY", env = "HOST_SIM_DATA_DIR", default_value = DATA_DIR)]
    pub data_dir: PathBuf,
    /// The plane's configuration, with the listeners of both bootstraps [default: the demo's, see host-sim/cli/demo/plane.yaml].
    #[arg(long, value_name = "FILE", env = "HOST_SIM_PLANE_CONFIG")]
    pub plane_config: Option<PathBuf>,
    /// Envoy's bootstrap [default: envoy/envoy.yaml as built in]; addresses and the module's path are replaced.
    #[arg(long, value_name = "FILE", env = "HOST_SIM_ENVOY_CONFIG")]
    pub envoy_config: Option<PathBuf>,
    /// The second Envoy's bootstrap [default: envoy/grpc.yaml as built in]; addresses and the module's path are replaced, and the
    /// simulator runs it without the filter for gRPC-Web.
    #[arg(long, value_name = "FILE", env = "HOST_SIM_GRPC_CONFIG")]
    pub grpc_config: Option<PathBuf>,
    /// The third Envoy's bootstrap [default: envoy/mcp.yaml as built in]; addresses and the module's path are replaced.
    #[arg(long, value_name = "FILE", env = "HOST_SIM_MCP_CONFIG")]
    pub mcp_config: Option<PathBuf>,
    /// A JSON file that replaces the filter's configuration in the first bootstrap.
    #[arg(long, value_name = "FILE", env = "HOST_SIM_FILTER_CONFIG")]
    pub filter_config: Option<PathBuf>,
    /// The Envoy binary.
    #[arg(
        long,
        value_name = "FILE",
        env = "ENVOY",
        default_value = ".tools/envoy"
    )]
    pub envoy: PathBuf,
    /// The filter's module.
    #[arg(
        long,
        value_name = "FILE",
        env = "HOOP_FILTER_WASM",
        default_value = "target/wasm32-wasip1/release/hoop_filter.wasm"
    )]
    pub wasm: PathBuf,
}

/// What runs the filter in `up`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum HostArgument {
    /// A real Envoy.
    Envoy,
    /// The simulator, `host-sim proxy`, which needs no Envoy.
    Sim,
}

/// Flags of `host-sim plane`.
#[derive(Args, Debug)]
pub struct PlaneArguments {
    /// Where the plane listens.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOST_SIM_PLANE_LISTEN",
        default_value = "127.0.0.1:8009"
    )]
    pub listen: SocketAddr,
    /// Where the plane keeps its database and tokens.
    #[arg(long, value_name = "DIRECTORY", env = "HOST_SIM_DATA_DIR", default_value = DATA_DIR)]
    pub data_dir: PathBuf,
    /// The plane's configuration [default: the demo's, see host-sim/cli/demo/plane.yaml].
    #[arg(long, value_name = "FILE", env = "HOST_SIM_PLANE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// Flags of `host-sim approvals`.
#[derive(Args, Debug)]
pub struct ApprovalsArguments {
    /// The plane's base URL.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "HOST_SIM_PLANE",
        default_value = PLANE
    )]
    pub plane: String,
    /// The plane's data directory, which holds the approver token.
    #[arg(long, global = true, value_name = "DIRECTORY", env = "HOST_SIM_DATA_DIR", default_value = DATA_DIR)]
    pub data_dir: PathBuf,
    /// What to do with them.
    #[command(subcommand)]
    pub command: ApprovalsCommand,
}

/// Flags of `host-sim sidecars`.
#[derive(Args, Debug)]
pub struct SidecarsArguments {
    /// The plane's base URL.
    #[arg(
        long,
        value_name = "URL",
        env = "HOST_SIM_PLANE",
        default_value = PLANE
    )]
    pub plane: String,
    /// The plane's data directory, which holds the approver token.
    #[arg(long, value_name = "DIRECTORY", env = "HOST_SIM_DATA_DIR", default_value = DATA_DIR)]
    pub data_dir: PathBuf,
    /// Print the plane's JSON.
    #[arg(long)]
    pub json: bool,
}

/// The commands of `host-sim approvals`.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List approval requests, newest first.
    List {
        /// Only those in this status.
        #[arg(long, value_enum, ignore_case = true)]
        status: Option<StatusArgument>,
        /// At most this many.
        #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
        limit: u16,
        /// Print the plane's JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Show one approval request with its statement.
    Show {
        /// The approval's id.
        id: String,
        /// Print the plane's JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let the identical call through, once.
    Approve {
        /// The approval's id.
        id: String,
    },
    /// Refuse the call.
    Reject {
        /// The approval's id.
        id: String,
        /// Why; the plane keeps it with the decision.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Take back an approval that was not used yet.
    Revoke {
        /// The approval's id.
        id: String,
    },
}

/// The statuses of the contract, in the order of an approval's life.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "lower")]
pub enum StatusArgument {
    /// Waits for a person.
    Pending,
    /// Decided with yes, not used yet.
    Approved,
    /// Decided with no.
    Rejected,
    /// Approved and taken back.
    Revoked,
    /// A call is using it right now.
    Processing,
    /// Used.
    Executed,
    /// Not decided or not used in time.
    Expired,
}

impl StatusArgument {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusArgument::Pending => "PENDING",
            StatusArgument::Approved => "APPROVED",
            StatusArgument::Rejected => "REJECTED",
            StatusArgument::Revoked => "REVOKED",
            StatusArgument::Processing => "PROCESSING",
            StatusArgument::Executed => "EXECUTED",
            StatusArgument::Expired => "EXPIRED",
        }
    }
}

/// An address that others can be told before anybody listens on it, so its port is not left to the system.
fn known_address(text: &str) -> Result<SocketAddr, String> {
    let wanted = "need an IP address and a port from 1 to 65535, such as 127.0.0.1:18080";
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        Ok(_) | Err(_) => Err(wanted.to_owned()),
    }
}

/// Where `up`, `plane`, `approvals` and `sidecars` meet unless told otherwise.
pub const DATA_DIR: &str = ".host-sim";

/// Where `approvals` and `sidecars` look for the plane unless told otherwise.
pub const PLANE: &str = "http://127.0.0.1:8009";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_flags_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn up_has_the_documented_ports() {
        let Command::Up(up) = parse("host-sim up").expect("parses").command else {
            panic!("another command")
        };
        let ports = [
            up.listen,
            up.plane_listen,
            up.upstream_listen,
            up.admin_listen,
            up.grpc_listen,
            up.ledger_listen,
            up.grpc_admin_listen,
            up.mcp_listen,
            up.mcp_admin_listen,
        ];
        assert_eq!(
            ports.map(|address| address.port()),
            [18080, 8009, 18090, 9901, 18081, 18091, 9902, 8765, 9903]
        );
        assert!(ports.iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn an_address_needs_a_port_of_its_own() {
        for address in ["127.0.0.1:0", "127.0.0.1", "localhost:80", "1"] {
            let message = parse(&format!("host-sim up --listen {address}"))
                .expect_err("refused")
                .to_string();
            let expected = format!(
                "error: invalid value '{address}' for '--listen <ADDRESS>': need an IP address and a port"
            );
            assert!(message.starts_with(&expected), "{message}");
        }
    }

    #[test]
    fn a_rejection_needs_a_reason() {
        let message = parse("host-sim approvals reject 1")
            .expect_err("refused")
            .to_string();
        assert!(message.contains("--reason <TEXT>"), "{message}");
    }

    #[test]
    fn the_plane_may_stand_before_or_behind_the_command() {
        for line in [
            "host-sim approvals --plane http://h:1 list",
            "host-sim approvals list --plane http://h:1",
        ] {
            let Command::Approvals(approvals) = parse(line).expect("parses").command else {
                panic!("another command")
            };
            assert_eq!(approvals.plane, "http://h:1", "{line}");
        }
    }

    #[test]
    fn sidecars_are_asked_of_the_same_plane_as_approvals() {
        let Command::Sidecars(sidecars) = parse("host-sim sidecars").expect("parses").command
        else {
            panic!("another command")
        };
        assert_eq!(sidecars.plane, PLANE);
        assert_eq!(sidecars.data_dir, PathBuf::from(DATA_DIR));
    }

    #[test]
    fn a_status_is_read_in_any_case() {
        for word in ["pending", "PENDING", "Pending"] {
            parse(&format!("host-sim approvals list --status {word}")).expect("parses");
        }
        let message = parse("host-sim approvals list --status done")
            .expect_err("refused")
            .to_string();
        assert!(message.contains("pending, approved, rejected"), "{message}");
    }
}
