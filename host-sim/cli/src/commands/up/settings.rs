//! What `up` needs before anything is started: tools and files, each checked, and the bootstraps adapted to the flags.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use host_sim_plane::PlaneConfig;

use super::lanes::Lane;
use crate::args::{HostArgument, UpArguments};
use crate::bootstrap::Bootstrap;
use crate::commands::plane;
use crate::failure::Failure;

/// Everything that can be known to be wrong before the first port is taken.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) program: Program,
    /// One for each lane, with the directory of its process.
    pub(super) bootstraps: Vec<(PathBuf, Bootstrap)>,
    pub(super) plane: PlaneConfig,
}

/// What runs the filter.
#[derive(Debug)]
pub(super) struct Program {
    /// Its file.
    pub(super) binary: PathBuf,
    /// Arguments in front of those that Envoy and the simulator share.
    pub(super) leading_arguments: Vec<String>,
}

impl Settings {
    /// Checks the tools, reads the files and writes the addresses of `lanes` into the bootstraps.
    pub(super) fn read(arguments: &UpArguments, lanes: &[Lane<'_>]) -> Result<Settings, Failure> {
        let program = program(arguments)?;
        let wasm = tool(
            &arguments.wasm,
            "the filter",
            "`--wasm FILE` (variable HOOP_FILTER_WASM)",
        )?;
        let plane = plane::read_configuration(arguments.plane_config.as_deref())?;
        let mut bootstraps = Vec::new();
        for lane in lanes {
            let bootstrap = lane.bootstrap(arguments, &wasm)?;
            bootstraps.push((lane.directory.clone(), bootstrap));
        }
        Ok(Settings {
            program,
            bootstraps,
            plane,
        })
    }
}

fn program(arguments: &UpArguments) -> Result<Program, Failure> {
    match arguments.host {
        HostArgument::Envoy => {
            let binary = tool(
                &arguments.envoy,
                "Envoy",
                "`--envoy FILE` (variable ENVOY), or run without it: `--host sim`",
            )?;
            check_executable(&binary)?;
            Ok(Program {
                binary,
                leading_arguments: Vec::new(),
            })
        }
        HostArgument::Sim => {
            let binary = std::env::current_exe().map_err(|error| {
                Failure::ours(format_args!(
                    "cannot find the program of this process: {error}"
                ))
            })?;
            Ok(Program {
                binary,
                leading_arguments: vec!["proxy".to_owned()],
            })
        }
    }
}

/// The absolute path of `file`. A bare name such as `envoy` is looked up in `PATH`, as a shell would.
fn tool(file: &Path, what: &str, flag: &str) -> Result<PathBuf, Failure> {
    let in_path = || {
        let bare = file.components().count() == 1 && !file.starts_with(".");
        let directories = std::env::var_os("PATH").filter(|_| bare)?;
        std::env::split_paths(&directories)
            .map(|directory| directory.join(file))
            .find(|file| file.is_file())
    };
    let found = if file.is_file() {
        Some(file.to_owned())
    } else {
        in_path()
    };
    found
        .and_then(|file| std::path::absolute(file).ok())
        .ok_or_else(|| {
            let hint = format!(
                "`make run` fetches and builds what is missing; or give the path with {flag}"
            );
            Failure::user(
                format_args!("{what} is missing: no file {}", file.display()),
                hint,
            )
        })
}

/// A file that nobody may execute is no program; found out here, it takes no port and starts no plane.
fn check_executable(envoy: &Path) -> Result<(), Failure> {
    // What cannot be asked is left to the start, which says why.
    let executable =
        std::fs::metadata(envoy).map_or(true, |found| found.permissions().mode() & 0o111 != 0);
    if executable {
        return Ok(());
    }
    Err(Failure::user(
        format_args!(
            "{} is no program: its mode lets nobody execute it",
            envoy.display()
        ),
        "check the path after `--envoy` (variable ENVOY); if the file is an Envoy, run `chmod +x` on it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::up::lanes::lanes;
    use crate::commands::up::up_arguments;

    fn settings(flags: &str) -> Result<Settings, Failure> {
        let arguments = up_arguments(flags);
        Settings::read(&arguments, &lanes(&arguments))
    }

    #[test]
    fn err_no_envoy() {
        let failure = settings("--envoy /nowhere/envoy")
            .expect_err("refused")
            .to_string();
        assert_eq!(
            failure,
            "Envoy is missing: no file /nowhere/envoy; hint: `make run` fetches and builds what is missing; \
             or give the path with `--envoy FILE` (variable ENVOY), or run without it: `--host sim`"
        );
    }

    #[test]
    fn err_no_program() {
        let file = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            settings(&format!("--envoy {file}"))
                .expect_err("refused")
                .to_string(),
            format!(
                "{file} is no program: its mode lets nobody execute it; hint: check the path after `--envoy` (variable \
                 ENVOY); if the file is an Envoy, run `chmod +x` on it"
            )
        );
    }

    #[test]
    fn err_no_module() {
        let failure = settings("--envoy sh --wasm /nowhere/gate.wasm")
            .expect_err("refused")
            .to_string();
        assert!(
            failure
                .starts_with("the filter is missing: no file /nowhere/gate.wasm; hint: `make run`"),
            "{failure}"
        );
    }

    #[test]
    fn the_simulator_needs_no_envoy_and_refuses_what_it_does_not_understand() {
        let module = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let flags = format!("--host sim --envoy /nowhere/envoy --wasm {module}");
        let understood = settings(&flags).expect("understood");
        assert_eq!(understood.program.leading_arguments, ["proxy"]);
        assert_eq!(understood.bootstraps.len(), 3);

        let dir = crate::commands::TestDir::new("up-sim");
        std::fs::create_dir_all(dir.path()).expect("a directory");
        let file = dir.path().join("envoy.yaml");
        let text = format!(
            "{}\nnode: {{id: x, locality: {{zone: z}}}}\n",
            crate::bootstrap::SHIPPED
        );
        std::fs::write(&file, text).expect("a file");
        let failure = settings(&format!("{flags} --envoy-config {}", file.display()))
            .expect_err("refused")
            .to_string();
        assert_eq!(
            failure,
            format!(
                "{}: /node/locality/zone: found \"z\", understood: `region`; hint: leave it out where your test does not \
                 depend on it, or run this file on Envoy",
                file.display()
            )
        );
    }
}
