//! The descriptors that `envoy/grpc.yaml` carries are what `host-sim descriptors` prints of the demo service's own set.

use std::path::Path;
use std::process::Command;

use host_sim_cli::bootstrap::Bootstrap;
use serde_json::Value;

/// Set `UPDATE_DESCRIPTORS=1` to write the line anew after a change of the service.
#[test]
fn the_descriptors_in_the_bootstrap_for_grpc_are_current() {
    let set = std::env::temp_dir().join(format!("host-sim-ledger-{}.binpb", std::process::id()));
    std::fs::write(&set, host_sim_ledger::DESCRIPTORS).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_host-sim"))
        .arg("descriptors")
        .arg(&set)
        .output()
        .expect("host-sim starts");
    let json = Command::new(env!("CARGO_BIN_EXE_host-sim"))
        .args(["descriptors", "--json"])
        .arg(&set)
        .output()
        .expect("host-sim starts");
    std::fs::remove_file(&set).expect("the file");
    assert!(output.status.success(), "{output:?}");
    let current = String::from_utf8(output.stdout).expect("text");
    let current = current.trim_end();
    assert!(!current.contains('\n'));
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json.pointer("/grpc/descriptors"), Some(&current.into()));

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../envoy/grpc.yaml");
    let text = std::fs::read_to_string(&file).expect("envoy/grpc.yaml is there");
    let published = published(&text, &file);
    if std::env::var_os("UPDATE_DESCRIPTORS").is_some() {
        std::fs::write(&file, text.replace(&published, current)).expect("the file is written");
    } else {
        assert!(
            published == current,
            "envoy/grpc.yaml is stale: run UPDATE_DESCRIPTORS=1 cargo test -p host-sim-cli --test descriptors"
        );
    }
}

fn published(text: &str, file: &Path) -> String {
    let bootstrap = Bootstrap::parse(text, &file.display().to_string()).expect("a bootstrap");
    let configuration = bootstrap.plugin_configuration().expect("JSON");
    let descriptors = configuration.pointer("/grpc/descriptors");
    let descriptors = descriptors.and_then(Value::as_str).expect("descriptors");
    descriptors.to_owned()
}
