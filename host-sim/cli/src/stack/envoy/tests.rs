//! How a program that is no Envoy is told, and what its run leaves in the data directory.
//!
//! Programs of the system stand in Envoy's place. A script written here could not: a write handle that another test's child
//! still holds would keep the system from executing it.

use super::*;
use crate::commands::TestDir;
use crate::failure::Failure;

async fn end_of(binary: &str, dir: &TestDir) -> EnvoyError {
    let launch = EnvoyLaunch {
        binary: binary.into(),
        leading_arguments: Vec::new(),
        exec_child: None,
        directory: dir.path().to_owned(),
        environment: Vec::new(),
        concurrency: None,
        arguments: Vec::new(),
        log_level: "info".to_owned(),
    };
    let bootstrap = Bootstrap::shipped().expect("a bootstrap");
    let mut envoy = EnvoyProcess::spawn(&launch, &bootstrap).expect("started");
    envoy
        .wait_until_ready(Duration::from_secs(30))
        .await
        .expect_err("no Envoy")
}

fn mode(path: &Path) -> u32 {
    let found = std::fs::metadata(path).expect("a file");
    found.permissions().mode() & 0o777
}

#[tokio::test]
async fn a_run_adds_to_the_log_and_is_told_by_its_own_lines() {
    let dir = TestDir::new("envoy-log");
    std::fs::create_dir_all(dir.path()).expect("a directory");
    let log = dir.path().join("envoy.log");
    let earlier = "[2026-11-30 06:00:00.000][1][critical][main] [a.cc:1] an earlier run\n";
    std::fs::write(&log, earlier).expect("a log");

    let error = end_of("ls", &dir).await;

    let EnvoyError::NotEnvoy { lines, .. } = &error else {
        panic!("{error}")
    };
    let told = lines.join(" ");
    assert!(
        told.contains("ls: ") && !told.contains("an earlier run"),
        "{told}"
    );
    let text = std::fs::read_to_string(&log).expect("the log");
    assert!(
        text.starts_with(earlier) && text.len() > earlier.len(),
        "{text}"
    );
    for name in ["envoy.log", "envoy.json"] {
        assert_eq!(mode(&dir.path().join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_program_that_is_no_envoy_is_told_as_such_with_its_path() {
    let dir = TestDir::new("no-envoy");
    let failure = Failure::from(end_of("true", &dir).await);
    assert_eq!(
        failure.to_string(),
        "true does not behave like Envoy: it ended with exit status: 0: it said nothing; \
         hint: check the path after `--envoy` (variable ENVOY)"
    );
}
