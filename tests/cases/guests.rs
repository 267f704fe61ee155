//! Guest modules that ask a host what it answers: each scenario must give the transcript that was recorded on Envoy.

use hoop_tests::guests::{Host, run_all, verdicts};
use hoop_tests::{binaries, differences};

#[test]
fn envoy_answers_guests_as_recorded() {
    run_all(&envoy(), &[]);
}

#[test]
fn the_simulator_answers_guests_as_envoy_does() {
    run_all(&simulator(), differences::GUESTS);
}

/// Modules that no SDK builds: old ABI versions, missing exports, unknown imports, traps at the start.
#[test]
fn both_hosts_serve_and_refuse_the_same_modules() {
    let on_envoy = verdicts(&envoy());
    assert!(on_envoy.iter().any(|(_, verdict)| verdict == "refuses"));
    assert!(on_envoy.iter().any(|(_, verdict)| verdict == "serves 200"));
    assert_eq!(verdicts(&simulator()), on_envoy);
}

fn envoy() -> Host {
    Host {
        program: binaries::envoy(),
        leading: Vec::new(),
    }
}

fn simulator() -> Host {
    Host {
        program: binaries::host_sim(),
        leading: vec!["proxy"],
    }
}
