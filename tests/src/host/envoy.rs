//! How real Envoy is started.

use super::Program;
use crate::binaries;

pub(super) fn program() -> Program {
    Program {
        binary: binaries::envoy(),
        leading_arguments: Vec::new(),
    }
}

pub(super) fn up_flags() -> Vec<String> {
    let binary = binaries::envoy().display().to_string();
    vec!["--envoy".to_owned(), binary]
}
