//! The flags of `host-sim proxy`: an Envoy configuration with Envoy's own flags, or one filter in front of one upstream.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

/// Flags of `host-sim proxy`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("what").required(true).args(["config", "wasm"])))]
pub struct ProxyArguments {
    /// An Envoy configuration, YAML or JSON: the file that `envoy -c` takes. What the simulator does not understand is refused.
    #[arg(short, long, visible_alias = "config-path", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Start to serve, or only check the configuration.
    #[arg(long, value_enum, default_value_t = Mode::Serve)]
    pub mode: Mode,
    /// Worker threads, each with a VM of its own [default: one for each core].
    #[arg(long, visible_alias = "workers", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: Option<u32>,
    /// What is logged, the filter's lines apart: trace, debug, info, warning, error, critical or off.
    #[arg(
        short,
        long,
        value_name = "LEVEL",
        default_value = "info",
        ignore_case = true
    )]
    pub log_level: LevelArgument,
    /// Other levels for parts, such as `wasm:debug` for the filter's lines.
    #[arg(long, value_name = "NAME:LEVEL,...", value_delimiter = ',', value_parser = component_level)]
    pub component_log_level: Vec<(String, LevelArgument)>,
    /// Write the address of the admin interface to this file once it listens.
    #[arg(long, value_name = "FILE")]
    pub admin_address_path: Option<PathBuf>,
    /// The id of the node, which a filter can read (`xds.node.id`).
    #[arg(long, value_name = "ID")]
    pub service_node: Option<String>,
    /// The cluster of the node, which a filter can read (`xds.node.cluster`).
    #[arg(long, value_name = "NAME")]
    pub service_cluster: Option<String>,
    /// Flags for one filter in front of one upstream.
    #[command(flatten)]
    pub filter: FilterArguments,
    /// Flags of Envoy that change nothing here.
    #[command(flatten)]
    pub without_effect: WithoutEffect,
}

/// One filter in front of one upstream, without a file.
#[derive(Args, Debug)]
#[command(next_help_heading = "One filter in front of one upstream")]
pub struct FilterArguments {
    /// The module, .wasm or .wat.
    #[arg(long, value_name = "FILE", requires_all = ["listen", "upstream"])]
    pub wasm: Option<PathBuf>,
    /// Where clients come in.
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "wasm",
        conflicts_with = "config"
    )]
    pub listen: Option<SocketAddr>,
    /// Where requests go: the cluster `upstream`.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port, requires = "wasm", conflicts_with = "config")]
    pub upstream: Option<String>,
    /// What the upstream speaks.
    #[arg(long, value_enum, default_value_t = ProtocolArgument::Http1, requires = "wasm", conflicts_with = "config")]
    pub upstream_protocol: ProtocolArgument,
    /// A file that holds the plugin configuration, handed over byte for byte.
    #[arg(
        long,
        value_name = "FILE",
        requires = "wasm", conflicts_with_all = ["config", "configuration_text"]
    )]
    pub configuration: Option<PathBuf>,
    /// The plugin configuration itself.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "wasm",
        conflicts_with = "config"
    )]
    pub configuration_text: Option<String>,
    /// A cluster that the filter can call; may be given several times.
    #[arg(long, value_name = "NAME=HOST:PORT[,http2]", requires = "wasm", conflicts_with = "config", value_parser = cluster)]
    pub cluster: Vec<ClusterArgument>,
    /// Which root context of the module is meant.
    #[arg(
        long,
        value_name = "ID",
        requires = "wasm",
        conflicts_with = "config",
        default_value = ""
    )]
    pub root_id: String,
    /// The namespace of shared data and queues.
    #[arg(
        long,
        value_name = "ID",
        requires = "wasm",
        conflicts_with = "config",
        default_value = ""
    )]
    pub vm_id: String,
    /// A variable that the module may see, of this process or with a value of its own; may be given several times. It sees no others.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "wasm", conflicts_with = "config", value_parser = environment)]
    pub environment: Vec<EnvironmentArgument>,
    /// Where the admin interface listens (/stats, /ready, /quitquitquit).
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "wasm",
        conflicts_with = "config"
    )]
    pub admin_listen: Option<SocketAddr>,
    /// What happens to requests after the module has crashed.
    #[arg(long, value_enum, requires = "wasm", conflicts_with = "config", default_value_t = PolicyArgument::FailClosed)]
    pub failure_policy: PolicyArgument,
    /// A pause at the headers leaves the body running (Envoy's setting of that name).
    #[arg(long, requires = "wasm", conflicts_with = "config")]
    pub allow_on_headers_stop_iteration: bool,
    /// What a paused body may hold before the answer is 413 [default: 1048576].
    #[arg(long, value_name = "BYTES", requires = "wasm", conflicts_with = "config", value_parser = clap::value_parser!(u32).range(1..))]
    pub buffer_limit_bytes: Option<u32>,
    /// TLS towards the clients: the certificate chain (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["wasm", "tls_key"], conflicts_with = "config")]
    pub tls_certificate: Option<PathBuf>,
    /// TLS towards the clients: the private key (PEM).
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        conflicts_with = "config"
    )]
    pub tls_key: Option<PathBuf>,
}

/// Envoy needs these where several of it run on one machine, and for its log files. The simulator takes them so that what
/// starts an Envoy can start it.
#[derive(Args, Debug)]
pub struct WithoutEffect {
    #[arg(long, hide = true)]
    use_dynamic_base_id: bool,
    #[arg(long, hide = true, value_name = "NUMBER")]
    base_id: Option<u32>,
    #[arg(long, hide = true)]
    disable_hot_restart: bool,
    #[arg(long, hide = true, value_name = "SECONDS")]
    drain_time_s: Option<u32>,
    #[arg(long, hide = true, value_name = "MILLISECONDS")]
    file_flush_interval_msec: Option<u32>,
    #[arg(long, hide = true, value_name = "SECONDS")]
    parent_shutdown_time_s: Option<u32>,
}

/// What `proxy` is started for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Mode {
    /// Serve until a signal or `/quitquitquit`.
    Serve,
    /// Read the configuration, configure the module once, and end.
    Validate,
}

/// What is logged: this and everything graver.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub enum LevelArgument {
    /// Everything.
    Trace,
    /// What helps a developer.
    Debug,
    /// What happens.
    Info,
    /// What may go wrong.
    #[value(alias = "warn")]
    Warning,
    /// What went wrong.
    Error,
    /// What cannot go on.
    Critical,
    /// Nothing.
    Off,
}

/// The version of HTTP towards a cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ProtocolArgument {
    /// HTTP/1.1
    Http1,
    /// HTTP/2 with prior knowledge, as gRPC needs it.
    Http2,
}

/// What happens to requests after a crash.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum PolicyArgument {
    /// 503 from then on.
    FailClosed,
    /// The filter is skipped.
    FailOpen,
    /// 503, then a new VM.
    FailReload,
}

/// A cluster as `--cluster` names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterArgument {
    /// The name that the filter calls.
    pub name: String,
    /// `HOST:PORT`
    pub endpoint: String,
    /// What it speaks.
    pub protocol: ProtocolArgument,
}

/// A variable as `--environment` names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EnvironmentArgument {
    /// The one of this process, if it has one of that name.
    OfHost(String),
    /// One with a value of its own.
    Set(String, String),
}

fn environment(text: &str) -> Result<EnvironmentArgument, String> {
    let argument = match text.split_once('=') {
        Some(("", _)) => None,
        Some((name, value)) => Some(EnvironmentArgument::Set(name.to_owned(), value.to_owned())),
        None if text.is_empty() => None,
        None => Some(EnvironmentArgument::OfHost(text.to_owned())),
    };
    argument.ok_or_else(|| "need a name, such as TOKEN or TOKEN=value".to_owned())
}

fn host_and_port(text: &str) -> Result<String, String> {
    let valid = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && !bare_ipv6 && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if valid {
        Ok(text.to_owned())
    } else {
        Err("need a host and a port, such as 127.0.0.1:9000 or [::1]:9000".to_owned())
    }
}

fn cluster(text: &str) -> Result<ClusterArgument, String> {
    let wanted = || {
        "need NAME=HOST:PORT, with `,http2` behind it where the cluster speaks HTTP/2".to_owned()
    };
    let (name, rest) = text.split_once('=').ok_or_else(wanted)?;
    let (endpoint, protocol) = match rest.split_once(',') {
        None | Some((_, "http1")) => (
            rest.split(',').next().unwrap_or(rest),
            ProtocolArgument::Http1,
        ),
        Some((endpoint, "http2")) => (endpoint, ProtocolArgument::Http2),
        Some(_) => return Err(wanted()),
    };
    if name.is_empty() || name == UPSTREAM {
        return Err(format!(
            "need a name other than `{UPSTREAM}`, which `--upstream` has"
        ));
    }
    Ok(ClusterArgument {
        name: name.to_owned(),
        endpoint: host_and_port(endpoint)?,
        protocol,
    })
}

fn component_level(text: &str) -> Result<(String, LevelArgument), String> {
    let (name, level) = text
        .split_once(':')
        .ok_or("need NAME:LEVEL, such as wasm:debug")?;
    Ok((name.to_owned(), LevelArgument::from_str(level, true)?))
}

/// The cluster behind `--upstream`.
pub const UPSTREAM: &str = "upstream";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn parse(line: &str) -> Result<ProxyArguments, String> {
        let words = ["host-sim", "proxy"]
            .into_iter()
            .chain(line.split_whitespace());
        match Arguments::try_parse_from(words)
            .map_err(|error| error.to_string())?
            .command
        {
            Command::Proxy(arguments) => Ok(*arguments),
            Command::Approvals(_)
            | Command::Descriptors(_)
            | Command::ExecChild(_)
            | Command::Ledger(_)
            | Command::Plane(_)
            | Command::Sidecars(_)
            | Command::Up(_) => {
                panic!("another command")
            }
        }
    }

    #[test]
    fn envoys_own_flags_are_taken() {
        for line in [
            "-c envoy.yaml",
            "--config-path envoy.yaml --admin-address-path a --use-dynamic-base-id --log-level warning \
             --file-flush-interval-msec 500 --component-log-level wasm:debug --concurrency 2",
            "--config envoy.yaml --mode validate --base-id 7 -l warn --component-log-level wasm:trace,http:off",
        ] {
            let arguments = parse(line).expect(line);
            assert!(arguments.config.is_some(), "{line}");
        }
    }

    #[test]
    fn one_filter_needs_three_flags() {
        let arguments = parse(
            "--wasm f.wasm --listen 127.0.0.1:10000 --upstream localhost:9000 --cluster plane=[::1]:1,http2 --workers 1",
        )
        .expect("parses");
        let plane = ClusterArgument {
            name: "plane".to_owned(),
            endpoint: "[::1]:1".to_owned(),
            protocol: ProtocolArgument::Http2,
        };
        assert_eq!(arguments.filter.cluster, [plane]);
        assert_eq!(arguments.concurrency, Some(1));
    }

    #[test]
    fn a_variable_is_of_this_process_or_has_a_value_of_its_own() {
        let arguments = parse(
            "--wasm f.wasm --listen 127.0.0.1:1 --upstream h:1 --environment A --environment B=c=d --environment E=",
        )
        .expect("parses");
        let set =
            |name: &str, value: &str| EnvironmentArgument::Set(name.to_owned(), value.to_owned());
        assert_eq!(
            arguments.filter.environment,
            [
                EnvironmentArgument::OfHost("A".to_owned()),
                set("B", "c=d"),
                set("E", "")
            ]
        );
    }

    #[test]
    fn err_flags_that_do_not_fit() {
        for (line, expected) in [
            ("", "<--config <FILE>|--wasm <FILE>>"),
            ("--wasm f.wasm", "--listen <ADDRESS>"),
            (
                "-c a.yaml --wasm f.wasm --listen 127.0.0.1:1 --upstream h:1",
                "cannot be used with",
            ),
            (
                "-c a.yaml --root-id x",
                "'--config <FILE>' cannot be used with '--root-id <ID>'",
            ),
            (
                "-c a.yaml --listen 127.0.0.1:1",
                "'--config <FILE>' cannot be used with '--listen <ADDRESS>'",
            ),
            ("--listen 127.0.0.1:1", "--wasm <FILE>"),
            (
                "--wasm f.wasm --listen 127.0.0.1:1 --upstream h:1 --environment =b",
                "need a name, such as TOKEN or TOKEN=value",
            ),
            (
                "--wasm f.wasm --listen 127.0.0.1:1 --upstream h",
                "need a host and a port, such as 127.0.0.1:9000",
            ),
            (
                "--wasm f.wasm --listen 127.0.0.1:1 --upstream ::1:2",
                "need a host and a port",
            ),
            (
                "--wasm f.wasm --listen 127.0.0.1:1 --upstream h:1 --cluster a",
                "need NAME=HOST:PORT",
            ),
            (
                "--wasm f.wasm --listen 127.0.0.1:1 --upstream h:1 --cluster a=h:1,http3",
                "need NAME=HOST:PORT",
            ),
            (
                "--wasm f.wasm --listen 127.0.0.1:1 --upstream h:1 --cluster upstream=h:1",
                "need a name other than `upstream`",
            ),
            ("-c a.yaml --component-log-level wasm", "need NAME:LEVEL"),
            ("-c a.yaml --concurrency 0", "0 is not in 1..=1024"),
        ] {
            let message = parse(line).expect_err(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
