//! What a rule says of the request line: methods, hosts, paths and gRPC methods.

use serde_json::{Map, Value};

use super::check::{child, is_token, texts_of};
use super::error::{self, ConfigError};
use crate::glob::{PathGlob, WordGlob, has_any_depth};

/// Reads each text under a key; the reader is told where it stands.
fn each<T>(
    conditions: &Map<String, Value>,
    key: &str,
    place: &str,
    read: fn(&str, &str) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    let place = child(place, key);
    let mut targets = Vec::new();
    for (at, text) in texts_of(conditions, key).into_iter().enumerate() {
        targets.push(read(text, &format!("{place}/{at}"))?);
    }
    Ok(targets)
}

pub(super) fn methods(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<String>, ConfigError> {
    each(conditions, "methods", place, method)
}

fn method(method: &str, place: &str) -> Result<String, ConfigError> {
    let refuse = |problem: &str, hint: &str| {
        let problem = format!("found {method:?}, {problem}");
        Err(ConfigError::new(place, problem, hint))
    };
    let upper = method.to_ascii_uppercase();
    if !is_token(method) {
        return refuse(
            "which is no HTTP method",
            "write a method such as \"POST\"; leave methods out to match every method",
        );
    }
    // A mistyped method would be a rule that meets nothing, and the call it was meant for would pass.
    if !METHODS.contains(&upper.as_str())
        && let Some(meant) = error::nearest(&upper, &METHODS)
    {
        return refuse(
            "which is no registered HTTP method",
            &format!("did you mean {meant:?}?"),
        );
    }
    Ok(upper)
}

/// Methods of the IANA registry that clients use. Others are taken as they are, unless they look like one of these.
const METHODS: [&str; 23] = [
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LINK",
    "LOCK",
    "MERGE",
    "MKCALENDAR",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "QUERY",
    "REPORT",
    "SEARCH",
    "TRACE",
    "UNLOCK",
];

pub(super) fn hosts(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<WordGlob>, ConfigError> {
    each(conditions, "hosts", place, host)
}

fn host(host: &str, place: &str) -> Result<WordGlob, ConfigError> {
    let has_port = !host.starts_with('[') && host.contains(':');
    if has_port || host.contains(['/', '@', ' ']) || !host.is_ascii() {
        return Err(ConfigError::new(
            place,
            format!("found {host:?}, allowed is a host name or a glob such as \"*.example.com\""),
            "write the host alone, without scheme, port or path (an internationalised name in its xn-- form)",
        ));
    }
    Ok(WordGlob::parse(host.trim_end_matches('.')))
}

pub(super) fn paths(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<PathGlob>, ConfigError> {
    each(conditions, "paths", place, path)
}

fn path(pattern: &str, place: &str) -> Result<PathGlob, ConfigError> {
    PathGlob::parse(pattern).map_err(|fault| {
        ConfigError::new(
            place,
            format!("the glob {pattern:?} {fault}"),
            "write the decoded path with * and **, such as \"/payments/**\"",
        )
    })
}

pub(super) fn grpc_methods(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<PathGlob>, ConfigError> {
    each(conditions, "grpc", place, grpc_method)
}

/// A method as `package.Service/Method`. A gRPC method is a path, so that a glob on methods is one on paths.
fn grpc_method(pattern: &str, place: &str) -> Result<PathGlob, ConfigError> {
    grpc_glob(pattern).ok_or_else(|| {
        ConfigError::new(
            place,
            format!("found {pattern:?}, allowed is a service and a method"),
            "write package.Service/Method, such as \"ledger.v1.Ledger/Post*\" or \"admin.*/*\", without a slash in front",
        )
    })
}

fn grpc_glob(pattern: &str) -> Option<PathGlob> {
    let (service, method) = pattern.split_once('/')?;
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*');
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(in_name);
    let fits = service.split('.').all(is_word) && is_word(method) && !has_any_depth(pattern);
    fits.then(|| PathGlob::parse(&format!("/{pattern}")).ok())?
}
