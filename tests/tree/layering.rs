//! Who may import whom inside the filter (style.md part D): a line may use lines above it, never its own siblings.

use crate::files::{SourceFile, sources};

/// The filter's modules from the bottom up. `request`, `policy` and the like stand for their folders, too.
const LAYERS: [&[&str]; 11] = [
    &[
        "limits", "secret", "metrics", "table", "places", "glob", "json",
    ],
    &["request", "approval", "identity", "grpc"],
    &["config"],
    &["policy", "statement"],
    &["control_plane"],
    &["answer"],
    &["denial"],
    &["event", "effect", "listener"],
    &["approval_request", "poller"],
    &["gate", "reserved_path", "mcp"],
    &["stream"],
];

/// Modules that nothing imports.
const TOP: [&str; 2] = ["adapter", "playground"];

/// Imports between siblings that the style page grants, with its reason.
const GRANTED: [(&str, &str, &str); 3] = [
    (
        "identity",
        "request",
        "part D, layer 1: `identity` may use `request`",
    ),
    (
        "json",
        "table",
        "a container of the gate's own in the place of the standard library's",
    ),
    (
        "json",
        "limits",
        "part B, 7: each bound stands in `limits`, also those of layer 0",
    ),
];

#[test]
fn a_module_imports_only_from_the_layers_below_it() {
    let mut wrong = Vec::new();
    for file in sources(&["filter/src"]) {
        let module = module_of(&file);
        if module == "lib" || TOP.contains(&module.as_str()) {
            continue;
        }
        let Some(own) = layer_of(&module) else {
            wrong.push(format!("{}: {module} stands in no layer", file.path));
            continue;
        };
        for (line, imported) in imports(&file) {
            let granted = GRANTED
                .iter()
                .any(|(from, to, _)| *from == module && *to == imported);
            let fine = imported == module
                || granted
                || layer_of(&imported).is_some_and(|layer| layer < own);
            if !fine {
                wrong.push(format!("{}:{line}: {module} imports {imported}", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "against the import table: {wrong:#?}");
}

#[test]
fn only_the_adapter_knows_proxy_wasm_and_the_world_outside() {
    let mut wrong = Vec::new();
    for file in sources(&["filter/src"]) {
        if module_of(&file) == "adapter" {
            continue;
        }
        for (index, line) in file.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in OUTSIDE {
                if code.contains(word) {
                    wrong.push(format!("{}:{}: {word}", file.path, index + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "outside of adapter: {wrong:#?}");
}

#[test]
fn the_plane_shares_the_wire_with_the_filter_and_no_code() {
    let mut wrong = Vec::new();
    for file in sources(&["host-sim", "tests"]) {
        for (index, line) in file.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default().trim_start();
            let uses_filter = code.starts_with("use hoop_filter") || code.contains("hoop_filter::");
            let plane_uses_cli =
                file.path.starts_with("host-sim/plane/") && code.contains("host_sim_cli");
            if (uses_filter || plane_uses_cli) && !file.path.starts_with("tests/tree/") {
                wrong.push(format!("{}:{}: {code}", file.path, index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The library is a host for any module, so it has no word of this product. (Its examples may be about anything.)
#[test]
fn the_simulator_knows_nothing_of_approvals() {
    let mut found = Vec::new();
    for file in sources(&["host-sim/src", "host-sim/tests"]) {
        for (index, line) in file.text.lines().enumerate() {
            let line = line.to_ascii_lowercase();
            if PRODUCT.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", file.path, index + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Both drive `worker`; what one of them needs of the other moves down.
#[test]
fn the_test_driver_and_the_proxy_do_not_know_each_other() {
    let mut found = Vec::new();
    for (folder, other) in [
        ("host-sim/src/sim", "crate::proxy"),
        ("host-sim/src/proxy", "crate::sim"),
    ] {
        for file in sources(&[folder]) {
            if file.text.contains(other) {
                found.push(format!("{} uses {other}", file.path));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Sockets, threads and timers of the machine belong to the proxy; all else of the simulator is sans-IO.
#[test]
fn only_the_proxy_knows_sockets_and_tokio() {
    let mut found = Vec::new();
    for file in sources(&["host-sim/src"]) {
        if file.path.starts_with("host-sim/src/proxy") {
            continue;
        }
        for (index, line) in file.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let words = ["tokio", "hyper", "TcpStream", "TcpListener", "thread::"];
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {code}", file.path, index + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

const PRODUCT: [&str; 3] = ["approv", "hoop", "control plane"];

/// The top module that a file belongs to: `filter/src/request/path.rs` belongs to `request`.
fn module_of(file: &SourceFile) -> String {
    let inside = file.path.trim_start_matches("filter/src/");
    let first = inside.split('/').next().unwrap_or(inside);
    first.trim_end_matches(".rs").to_owned()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The top modules that a file names in `use crate::…` (also in a list of several) or in a path `crate::…`, outside its tests.
fn imports(file: &SourceFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let tests = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    if tests {
        return found;
    }
    let code = file
        .text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    for (index, line) in code.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for rest in code.split("crate::").skip(1) {
            let names = match rest.strip_prefix('{') {
                Some(list) => list.split(',').collect(),
                None => vec![rest],
            };
            for name in names {
                let name: String = name
                    .trim()
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    .collect();
                if !name.is_empty() {
                    found.push((index + 1, name));
                }
            }
        }
    }
    found
}

const OUTSIDE: [&str; 8] = [
    "proxy_wasm",
    "std::time::",
    "SystemTime",
    "Instant",
    "std::env",
    "HashMap",
    "HashSet",
    "std::net",
];
