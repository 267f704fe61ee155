//! Where the programs under test lie. `make test` builds them and sets the variables; a missing one says so.

use std::path::{Path, PathBuf};

/// The Envoy binary: `ENVOY`, else the one that the Makefile installs, as a link or inside its wheel.
pub fn envoy() -> PathBuf {
    let wheel = || {
        let lib = workspace().join(".tools/venv/lib");
        let mut pythons: Vec<PathBuf> = std::fs::read_dir(lib)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("site-packages/envoy/_bin/envoy"))
            .filter(|binary| binary.is_file())
            .collect();
        pythons.sort();
        pythons
            .pop()
            .unwrap_or_else(|| workspace().join(".tools/venv"))
    };
    let link = workspace().join(".tools/envoy");
    existing("ENVOY", if link.is_file() { link } else { wheel() })
}

/// The filter's module: `HOOP_FILTER_WASM`, else cargo's release build.
pub fn filter_module() -> PathBuf {
    existing(
        "HOOP_FILTER_WASM",
        workspace().join("target/wasm32-wasip1/release/hoop_filter.wasm"),
    )
}

/// The `host-sim` command: `HOST_SIM`, else cargo's debug build.
pub fn host_sim() -> PathBuf {
    existing("HOST_SIM", workspace().join("target/debug/host-sim"))
}

/// A Python with grpcio: `GRPCIO_PYTHON`, else the one that the Makefile installs.
pub fn python() -> PathBuf {
    existing("GRPCIO_PYTHON", workspace().join(".tools/venv/bin/python"))
}

/// A Node.js: `NODE`, else the one that the Makefile finds or installs.
pub fn node() -> PathBuf {
    existing("NODE", workspace().join(".tools/node"))
}

/// The folder with both majors of the MCP SDK for Python, `1` and `2`: `MCP_PYTHON`, else where the Makefile installs them.
pub fn mcp_python() -> PathBuf {
    existing_folder("MCP_PYTHON", workspace().join(".tools/mcp-python"))
}

/// The packages of npm that the MCP cases need: `MCP_NODE_MODULES`, else where the Makefile installs them.
pub fn mcp_node_modules() -> PathBuf {
    existing_folder(
        "MCP_NODE_MODULES",
        workspace().join(".tools/mcp-node/node_modules"),
    )
}

/// The MCP client in Rust: `MCP_RUST`, else cargo's debug build.
pub fn mcp_rust() -> PathBuf {
    existing(
        "MCP_RUST",
        workspace().join("target/mcp-rust/debug/mcp-rust"),
    )
}

/// The root of the checkout.
pub fn workspace() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

fn existing(variable: &str, default: PathBuf) -> PathBuf {
    let path = std::env::var_os(variable).map_or(default, PathBuf::from);
    assert!(
        path.is_file(),
        "{variable}: no file {}\n{HINT}",
        path.display()
    );
    path
}

fn existing_folder(variable: &str, default: PathBuf) -> PathBuf {
    let path = std::env::var_os(variable).map_or(default, PathBuf::from);
    assert!(
        path.is_dir(),
        "{variable}: no folder {}\n{HINT}",
        path.display()
    );
    path
}

const HINT: &str = "hint: run `make test`, which builds and installs what the cases need";
