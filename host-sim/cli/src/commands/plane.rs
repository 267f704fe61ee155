//! `host-sim plane`: the plane alone. Also how `up` reads its configuration and opens it.

use std::path::Path;

use host_sim_plane::{Plane, PlaneConfig, TokenKind};

use super::copyable;
use super::ports::{self, Port};
use super::signals::StopSignals;
use crate::args::PlaneArguments;
use crate::failure::Failure;
use crate::output;

/// Runs the plane until a signal asks it to stop.
pub(super) async fn run(arguments: &PlaneArguments) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    let configuration = read_configuration(arguments.config.as_deref())?;
    let listener = ports::bind(&Port {
        what: "the plane",
        flag: "--listen",
        address: arguments.listen,
    })
    .await?;
    let plane = open(&arguments.data_dir, configuration).await?;
    let address = listener.local_addr().unwrap_or(arguments.listen);
    output::data(format_args!(
        "plane  http://{address}  data in {}",
        arguments.data_dir.display()
    ));
    output::data(how_to_start_envoy(&arguments.data_dir));
    output::progress("Ctrl-C stops it.");
    let served = plane
        .serve(listener, async move { signals.received().await })
        .await;
    served.map_err(|error| Failure::internal(&error))
}

/// Where the token lies that an Envoy needs to speak with this plane, and how to hand it over. Never the token itself: what is
/// printed stays in scrollbacks and logs.
fn how_to_start_envoy(data_dir: &Path) -> String {
    let token = data_dir.join(TokenKind::Sidecar.file_name());
    let word = copyable::word(&token.display().to_string());
    format!(
        "sidecar token in {}; an Envoy with the gate is started with it:\n\
         \x20 HOOP_SIDECAR_TOKEN=\"$(cat {word})\" envoy -c envoy/envoy.yaml",
        token.display()
    )
}

/// Reads `file`, or the demo's configuration when there is none.
pub(super) fn read_configuration(file: Option<&Path>) -> Result<PlaneConfig, Failure> {
    let parsed = match file {
        None => PlaneConfig::parse(DEMO_CONFIGURATION, "host-sim/cli/demo/plane.yaml"),
        Some(file) => {
            let yaml = std::fs::read_to_string(file).map_err(|error| {
                let message = format!(
                    "{}: cannot read the plane's configuration: {error}",
                    file.display()
                );
                Failure::user(
                    message,
                    "give a readable file, or leave the flag out for the demo's configuration",
                )
            })?;
            PlaneConfig::parse(&yaml, &file.display().to_string())
        }
    };
    parsed.map_err(|error| Failure::told(&error))
}

/// Opens the plane on `data_dir`, which is made when missing.
pub(super) async fn open(data_dir: &Path, configuration: PlaneConfig) -> Result<Plane, Failure> {
    Plane::open(data_dir, configuration)
        .await
        .map_err(|error| Failure::told(&error))
}

const DEMO_CONFIGURATION: &str = include_str!("../../demo/plane.yaml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_configuration_is_accepted() {
        read_configuration(None).expect("accepted");
    }

    #[test]
    fn the_token_is_named_by_its_file_and_handed_over_by_the_shell() {
        assert_eq!(
            how_to_start_envoy(Path::new("my data")),
            "sidecar token in my data/sidecar-token; an Envoy with the gate is started with it:\n\
             \x20 HOOP_SIDECAR_TOKEN=\"$(cat 'my data/sidecar-token')\" envoy -c envoy/envoy.yaml"
        );
    }

    #[test]
    fn err_no_such_file() {
        let failure = read_configuration(Some(Path::new("/nowhere/plane.yaml")))
            .expect_err("refused")
            .to_string();
        assert_eq!(
            failure,
            "/nowhere/plane.yaml: cannot read the plane's configuration: No such file or directory (os error 2); \
             hint: give a readable file, or leave the flag out for the demo's configuration"
        );
    }
}
