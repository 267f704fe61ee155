//! The lanes of `up`: each is a bootstrap, the ports that it is given, and the directory of the process that runs it. Knows which
//! there are, and starts nothing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::args::{HostArgument, UpArguments};
use crate::bootstrap::{Bootstrap, BootstrapError};
use crate::commands::ports::Port;
use crate::envoy_config::EnvoyConfig;
use crate::failure::Failure;

/// The cluster of the demo gRPC service.
pub(super) const LEDGER_CLUSTER: &str = "ledger_upstream";

/// One process with the gate, and the service behind it if there is one.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    /// Where calls come in.
    pub(super) listener: Port,
    /// Where the process tells of itself.
    pub(super) admin: Port,
    /// The service's name in the bootstrap, and where it listens.
    pub(super) upstream: Option<(&'static str, Port)>,
    /// The process's configuration, log and admin address.
    pub(super) directory: PathBuf,
    shipped: fn() -> Result<Bootstrap, BootstrapError>,
    shipped_as: &'static str,
    file: Option<&'a Path>,
    flag: &'static str,
    filter_config: Option<&'a Path>,
}

/// The lanes that `arguments` ask for: those of envoy/envoy.yaml, envoy/grpc.yaml and envoy/mcp.yaml, in this order.
pub(super) fn lanes(arguments: &UpArguments) -> Vec<Lane<'_>> {
    let mut lanes = vec![Lane {
        listener: Port {
            what: "the listener billing-api",
            flag: "--listen",
            address: arguments.listen,
        },
        admin: Port {
            what: "the admin interface",
            flag: "--admin-listen",
            address: arguments.admin_listen,
        },
        upstream: Some((
            "billing_upstream",
            Port {
                what: "the demo upstream",
                flag: "--upstream-listen",
                address: arguments.upstream_listen,
            },
        )),
        directory: arguments.data_dir.clone(),
        shipped: Bootstrap::shipped,
        shipped_as: "envoy/envoy.yaml",
        file: arguments.envoy_config.as_deref(),
        flag: "--envoy-config",
        filter_config: arguments.filter_config.as_deref(),
    }];
    if !arguments.without_grpc {
        lanes.push(Lane {
            listener: Port {
                what: "the listener ledger",
                flag: "--grpc-listen",
                address: arguments.grpc_listen,
            },
            admin: Port {
                what: "the admin interface of the listener ledger",
                flag: "--grpc-admin-listen",
                address: arguments.grpc_admin_listen,
            },
            upstream: Some((
                LEDGER_CLUSTER,
                Port {
                    what: "the demo gRPC service",
                    flag: "--ledger-listen",
                    address: arguments.ledger_listen,
                },
            )),
            directory: arguments.data_dir.join("ledger"),
            shipped: Bootstrap::shipped_grpc,
            shipped_as: "envoy/grpc.yaml",
            file: arguments.grpc_config.as_deref(),
            flag: "--grpc-config",
            filter_config: None,
        });
    }
    if !arguments.without_mcp {
        lanes.push(Lane {
            listener: Port {
                what: "the listener mcp",
                flag: "--mcp-listen",
                address: arguments.mcp_listen,
            },
            admin: Port {
                what: "the admin interface of the listener mcp",
                flag: "--mcp-admin-listen",
                address: arguments.mcp_admin_listen,
            },
            upstream: None,
            directory: arguments.data_dir.join("mcp"),
            shipped: Bootstrap::shipped_mcp,
            shipped_as: "envoy/mcp.yaml",
            file: arguments.mcp_config.as_deref(),
            flag: "--mcp-config",
            filter_config: None,
        });
    }
    lanes
}

impl Lane<'_> {
    /// The bootstrap with the ports of this lane, the plane's, and the module in it.
    pub(super) fn bootstrap(
        &self,
        arguments: &UpArguments,
        wasm: &Path,
    ) -> Result<Bootstrap, Failure> {
        let mut bootstrap = self.adapted(arguments, wasm).map_err(|error| {
            let hint = error.hint(self.flag);
            Failure::user(error, hint)
        })?;
        if let Some(file) = self.filter_config {
            let configuration = read_json(file)?;
            bootstrap
                .set_plugin_configuration(&configuration)
                .map_err(|error| Failure::internal(&error))?;
        }
        if arguments.host == HostArgument::Sim {
            // Refused here, the file is named as the user named it, and nothing was started.
            let file = self.file.map(|file| file.display().to_string());
            let origin = file.unwrap_or_else(|| self.shipped_as.to_owned());
            EnvoyConfig::parse(&bootstrap.to_json(), &origin)?;
        }
        Ok(bootstrap)
    }

    fn adapted(&self, arguments: &UpArguments, wasm: &Path) -> Result<Bootstrap, BootstrapError> {
        let mut bootstrap = match self.file {
            Some(file) => Bootstrap::load(file)?,
            None => (self.shipped)()?,
        };
        bootstrap
            .set_listener(self.listener.address)?
            .set_admin(self.admin.address)?
            .set_cluster("control_plane", arguments.plane_listen)?
            .set_wasm_module(wasm)?;
        if let Some((cluster, service)) = &self.upstream {
            bootstrap.set_cluster(cluster, service.address)?;
        }
        if arguments.host == HostArgument::Sim {
            bootstrap.leave_out_grpc_web()?;
        }
        if let Some(mut configuration) = bootstrap.plugin_configuration() {
            // The plane's Host header follows its port.
            if let Some(Value::Object(control_plane)) = configuration.get_mut("control_plane") {
                control_plane.insert(
                    "authority".to_owned(),
                    json!(arguments.plane_listen.to_string()),
                );
            }
            if arguments.without_mcp
                && let Some(entries) = configuration.as_object_mut()
            {
                // A refusal is not to name a tool that nobody serves.
                entries.remove("mcp");
            }
            bootstrap.set_plugin_configuration(&configuration)?;
        }
        Ok(bootstrap)
    }
}

fn read_json(file: &Path) -> Result<Value, Failure> {
    let unusable = |reason: String| {
        let message = format!(
            "{}: cannot use the filter's configuration: {reason}",
            file.display()
        );
        Failure::user(
            message,
            "give a JSON file, or leave `--filter-config` out for the demo's policy",
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::up::up_arguments as up;

    fn bootstraps(flags: &str) -> Vec<Bootstrap> {
        let arguments = up(flags);
        let lanes = lanes(&arguments);
        let bootstraps = lanes
            .iter()
            .map(|lane| lane.bootstrap(&arguments, Path::new("/tmp/gate.wasm")));
        bootstraps.map(|it| it.expect("a bootstrap")).collect()
    }

    #[test]
    fn the_flags_reach_the_bootstraps() {
        let bootstraps = bootstraps(
            "--plane-listen 127.0.0.1:1 --upstream-listen 127.0.0.1:2 --ledger-listen 127.0.0.1:3 --grpc-listen 127.0.0.1:4 --mcp-listen 127.0.0.1:5",
        );
        assert_eq!(bootstraps.len(), 3);
        for (bootstrap, ports) in bootstraps.iter().zip([[2, 18080], [3, 4], [5, 9903]]) {
            let configuration = bootstrap.plugin_configuration().expect("JSON");
            assert_eq!(
                configuration.pointer("/control_plane/authority"),
                Some(&json!("127.0.0.1:1"))
            );
            let text = bootstrap.to_json();
            assert!(text.contains("/tmp/gate.wasm"));
            for port in ports {
                assert!(
                    text.contains(&format!("\"port_value\": {port}\n")),
                    "{port}"
                );
            }
        }
    }

    #[test]
    fn without_the_approval_tools_no_refusal_names_one() {
        for (flags, count, names) in [("", 3, true), ("--without-mcp", 2, false)] {
            let bootstraps = bootstraps(flags);

            assert_eq!(bootstraps.len(), count, "{flags}");
            for bootstrap in &bootstraps[..2] {
                let configuration = bootstrap.plugin_configuration().expect("JSON");
                assert_eq!(configuration.get("mcp").is_some(), names, "{flags}");
            }
        }
    }

    #[test]
    fn all_but_the_first_can_be_left_out() {
        let arguments = up("--without-grpc --without-mcp --data-dir d");
        let lanes = lanes(&arguments);
        assert_eq!(lanes.len(), 1);
        assert_eq!(lanes[0].directory, Path::new("d"));
    }

    #[test]
    fn the_processes_share_no_directory_and_no_memory() {
        let arguments = up("--data-dir d");
        let directories: Vec<_> = lanes(&arguments)
            .into_iter()
            .map(|lane| lane.directory)
            .collect();
        let expected = ["d", "d/ledger", "d/mcp"].map(PathBuf::from);
        assert_eq!(directories, expected);
        let texts: Vec<String> = bootstraps("").iter().map(Bootstrap::to_json).collect();
        for (text, vm_id) in texts.iter().zip(["billing-api", "ledger", "mcp"]) {
            assert!(text.contains(&format!("\"hoop-{vm_id}\"")), "{vm_id}");
        }
    }

    #[test]
    fn only_the_simulator_goes_without_grpc_web() {
        for (flags, expected) in [("", true), ("--host sim", false)] {
            let text = bootstraps(flags)[1].to_json();
            assert_eq!(text.contains("grpc_web"), expected, "{flags}");
        }
    }

    #[test]
    fn err_a_file_is_told_with_its_flag() {
        for flag in ["--envoy-config", "--grpc-config", "--mcp-config"] {
            let arguments = up(&format!("{flag} /nowhere/e.yaml"));
            let lanes = lanes(&arguments);
            let outcomes = lanes
                .iter()
                .map(|lane| lane.bootstrap(&arguments, Path::new("/tmp/gate.wasm")));
            let failures: Vec<_> = outcomes.filter_map(Result::err).collect();
            assert_eq!(failures.len(), 1);
            assert_eq!(
                failures[0].to_string(),
                format!(
                    "/nowhere/e.yaml: cannot read the Envoy configuration: No such file or directory (os error 2); hint: \
                     check the path after `{flag}`"
                )
            );
        }
    }
}
