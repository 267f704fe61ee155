//! How the simulator is started: as `host-sim proxy`, which reads what Envoy reads.

use host_sim_cli::bootstrap::Bootstrap;

use super::Program;
use crate::binaries;

pub(super) fn program() -> Program {
    Program {
        binary: binaries::host_sim(),
        leading_arguments: vec!["proxy".to_owned()],
    }
}

pub(super) fn up_flags() -> Vec<String> {
    vec!["--host".to_owned(), "sim".to_owned()]
}

/// `host-sim up` does the same.
pub(super) fn adapt(bootstrap: &mut Bootstrap) {
    let adapted = bootstrap.leave_out_grpc_web();
    adapted.expect("the gate's place");
}
