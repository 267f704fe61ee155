//! Guest modules that ask a host what it answers: each scenario must give the transcript that was recorded on Envoy.

use hoop_tests::guests::{Host, run_all};
use hoop_tests::{binaries, differences};

#[test]
fn envoy_answers_guests_as_recorded() {
    let envoy = Host {
        program: binaries::envoy(),
        leading: Vec::new(),
    };
    run_all(&envoy, &[]);
}

#[test]
fn the_simulator_answers_guests_as_envoy_does() {
    let simulator = Host {
        program: binaries::host_sim(),
        leading: vec!["proxy"],
    };
    run_all(&simulator, differences::GUESTS);
}
