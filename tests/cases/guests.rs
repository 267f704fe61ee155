//! Guest modules that ask a host what it answers: each scenario must give the transcript that was recorded on Envoy.

use hoop_tests::binaries;
use hoop_tests::guests::{Host, run_all};

#[test]
fn envoy_answers_guests_as_recorded() {
    run_all(&Host {
        program: binaries::envoy(),
        leading: Vec::new(),
    });
}

#[test]
fn the_simulator_answers_guests_as_envoy_does() {
    run_all(&Host {
        program: binaries::host_sim(),
        leading: vec!["proxy"],
    });
}
