//! How the simulator is started: as `host-sim proxy`, which reads what Envoy reads.

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
