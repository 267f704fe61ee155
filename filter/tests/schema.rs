//! The published JSON Schema is the one that the table of keys gives.

use std::path::Path;

/// Set `UPDATE_SCHEMA=1` to write the file anew after a change of the keys.
#[test]
fn the_published_schema_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/schema.json");
    let mut current =
        serde_json::to_string_pretty(&hoop_filter::config::json_schema()).expect("a schema prints");
    current.push('\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&file, &current).expect("the schema is written");
    }

    let published = std::fs::read_to_string(&file).expect("envoy/schema.json is there");

    assert!(
        published == current,
        "envoy/schema.json is stale: run UPDATE_SCHEMA=1 cargo test -p hoop-filter --test schema"
    );
}
