//! The `mcp` block: what is taken, and the full text of every refusal.

use super::*;
use crate::config::Config;

const PLANE: &str = r#""control_plane":{"cluster":"c","authority":"a"},"#;

fn parse(mcp: &str, more: &str) -> Result<Config, ConfigError> {
    Config::parse(format!(r#"{{"listener_name":"l",{more}"mcp":{mcp}}}"#).as_bytes())
}

fn ok(mcp: &str) -> McpConfig {
    parse(mcp, PLANE).expect(mcp).mcp
}

fn err(mcp: &str) -> String {
    refusal(mcp, PLANE)
}

fn refusal(mcp: &str, more: &str) -> String {
    let text = parse(mcp, more).expect_err(mcp).to_string();
    let text = text.strip_prefix("invalid plugin configuration at ");
    text.expect("a place").to_owned()
}

#[test]
fn ok_served_advertised_or_neither() {
    let served = |hosts: &[&str], max_streams| {
        McpConfig::Served(McpEndpoint {
            path: "/mcp".to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            max_streams,
        })
    };
    assert_eq!(ok(r#"{"path":"/mcp"}"#), served(&[], 1_000));
    assert_eq!(ok(r#"{"path":"/mcp","max_streams":0}"#), served(&[], 0));
    assert_eq!(
        ok(r#"{"path":"/mcp","max_streams":100000}"#),
        served(&[], 100_000)
    );
    let hosts = r#"{"path":"/mcp","hosts":["approvals.agents.svc","10.0.0.1","[::1]"]}"#;
    assert_eq!(
        ok(hosts),
        served(&["approvals.agents.svc", "10.0.0.1", "[::1]"], 1_000)
    );
    assert_eq!(ok(r#"{"advertise":true}"#), McpConfig::Advertised);
    let config = Config::parse(br#"{"listener_name":"l"}"#).expect("valid");
    assert_eq!(config.mcp, McpConfig::Absent);
}

#[test]
fn ok_plain_paths() {
    for path in [
        "/mcp",
        "/",
        "/agents/approvals",
        "/a.b~c_d-e",
        "/.well-known/mcp",
    ] {
        let McpConfig::Served(endpoint) = ok(&format!(r#"{{"path":"{path}"}}"#)) else {
            panic!("not served under {path}");
        };
        assert_eq!(endpoint.path, path);
    }
}

#[test]
fn ok_rules_where_the_tools_are_only_advertised() {
    let rules = format!(r#"{PLANE}"rules":[{{"action":"require_approval","approval_rule":"r"}}],"#);

    let config = parse(r#"{"advertise":true}"#, &rules).expect("valid");

    assert_eq!(config.mcp, McpConfig::Advertised);
}

#[test]
fn err_without_a_plane() {
    for mcp in [r#"{"path":"/mcp"}"#, r#"{"advertise":true}"#] {
        assert_eq!(
            refusal(mcp, ""),
            "/mcp: there are approval tools, but no Control Plane whose approvals they could tell of; hint: add control_plane, or remove mcp"
        );
    }
}

#[test]
fn err_neither_served_nor_advertised() {
    for mcp in ["{}", r#"{"advertise":false}"#] {
        assert_eq!(
            err(mcp),
            "/mcp: found neither path nor \"advertise\": true; hint: write path where the tools are served, \"advertise\": true on a listener whose agents find them elsewhere"
        );
    }
}

#[test]
fn err_keys_that_mean_nothing() {
    for (mcp, key) in [
        (r#"{"advertise":true,"hosts":["a"]}"#, "hosts"),
        (r#"{"max_streams":1}"#, "max_streams"),
    ] {
        assert_eq!(
            err(mcp),
            format!(
                "/mcp/{key}: this listener serves no approval tools, so the key means nothing; hint: add path, or remove this key"
            )
        );
    }
    for advertise in [true, false] {
        assert_eq!(
            err(&format!(r#"{{"path":"/mcp","advertise":{advertise}}}"#)),
            "/mcp/advertise: this listener serves the approval tools and refuses no calls that could name them; hint: remove advertise here, and set it on the listeners whose calls wait for approvals"
        );
    }
}

#[test]
fn err_rules_where_nothing_is_forwarded() {
    let rules = format!(r#"{PLANE}"rules":[{{"action":"allow"}}],"#);

    assert_eq!(
        refusal(r#"{"path":"/mcp"}"#, &rules),
        "/rules: a listener that serves the approval tools forwards nothing, so no rule could ever meet a call; hint: move the rules to the listener of the calls, and set \"mcp\": {\"advertise\": true} there"
    );
}

#[test]
fn err_paths_that_can_be_read_in_two_ways() {
    for path in [
        "mcp",
        "*",
        "/mcp?x=1",
        "/mcp#x",
        "/%6dcp",
        "/a/../mcp",
        "/./mcp",
        "//mcp",
        "/mcp;v=1",
        "/.well-known/hoop/mcp",
    ] {
        assert_eq!(
            err(&format!(r#"{{"path":"{path}"}}"#)),
            format!(
                "/mcp/path: found {path:?}, allowed is a plain path that does not begin with \"/.well-known/hoop/\"; hint: write a path such as \"/mcp\", without query, escapes or dot segments"
            )
        );
    }
}

#[test]
fn err_hosts_that_are_no_names() {
    for host in [
        "a:8765",
        "http://a",
        "a b",
        "a/b",
        "[::1]:80",
        "*.agents.svc",
        "a.",
    ] {
        assert_eq!(
            err(&format!(r#"{{"path":"/mcp","hosts":["ok","{host}"]}}"#)),
            format!(
                "/mcp/hosts/1: found {host:?}, which is no host name without port; hint: write a name such as \"approvals.agents.svc\" or an address"
            )
        );
    }
}

#[test]
fn err_types_bounds_and_unknown_keys() {
    let table = [
        (
            "true",
            "/mcp: found a boolean, allowed is an object; hint: correct the type of this value",
        ),
        (
            r#"{"path":7}"#,
            "/mcp/path: found a number, allowed is a text; hint: correct the type of this value",
        ),
        (
            r#"{"path":"/mcp","hosts":"a"}"#,
            "/mcp/hosts: found a text, allowed is a list; hint: correct the type of this value",
        ),
        (
            r#"{"advertise":"yes"}"#,
            "/mcp/advertise: found a text, allowed is true or false; hint: correct the type of this value",
        ),
        (
            r#"{"path":"/mcp","max_streams":-1}"#,
            "/mcp/max_streams: found -1, allowed is a whole number from 0 to 100000; hint: choose a number within these bounds",
        ),
        (
            r#"{"path":"/mcp","max_streams":100001}"#,
            "/mcp/max_streams: found 100001, allowed is a whole number from 0 to 100000; hint: choose a number within these bounds",
        ),
        (
            r#"{"path":"/mcp","listen":"0.0.0.0:8765"}"#,
            "/mcp/listen: the key \"listen\" is unknown, allowed are \"path\", \"hosts\", \"max_streams\", \"advertise\"; hint: remove it, or use one of the allowed ones",
        ),
    ];
    for (mcp, text) in table {
        assert_eq!(err(mcp), text, "{mcp}");
    }
}
