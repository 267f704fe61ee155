//! What a rule says of the request line: methods, hosts, paths and gRPC methods.

use serde_json::{Map, Value};

use super::check::{child, texts_of};
use super::error::{self, ConfigError};
use crate::glob::{PathGlob, WordGlob};

pub(super) fn methods(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<String>, ConfigError> {
    let place = child(place, "methods");
    texts_of(conditions, "methods")
        .into_iter()
        .enumerate()
        .map(|(at, method)| {
            let refuse = |problem: &str, hint: &str| {
                Err(ConfigError::new(
                    &format!("{place}/{at}"),
                    format!("found {method:?}, {problem}"),
                    hint,
                ))
            };
            let upper = method.to_ascii_uppercase();
            if http::Method::from_bytes(method.as_bytes()).is_err() {
                return refuse(
                    "which is no HTTP method",
                    "write a method such as \"POST\"; leave methods out to match every method",
                );
            }
            // A mistyped method would be a rule that meets nothing, and the call it was meant for would pass.
            if !METHODS.contains(&upper.as_str())
                && let Some(meant) = error::nearest(&upper, METHODS.into_iter())
            {
                return refuse(
                    "which is no registered HTTP method",
                    &format!("did you mean {meant:?}?"),
                );
            }
            Ok(upper)
        })
        .collect()
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
    let place = child(place, "hosts");
    texts_of(conditions, "hosts")
        .into_iter()
        .enumerate()
        .map(|(at, host)| {
            let has_port = !host.starts_with('[') && host.contains(':');
            if has_port || host.contains(['/', '@', ' ']) || !host.is_ascii() {
                return Err(ConfigError::new(
                    &format!("{place}/{at}"),
                    format!("found {host:?}, allowed is a host name or a glob such as \"*.example.com\""),
                    "write the host alone, without scheme, port or path (an internationalised name in its xn-- form)",
                ));
            }
            Ok(WordGlob::parse(host.trim_end_matches('.')))
        })
        .collect()
}

pub(super) fn paths(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<PathGlob>, ConfigError> {
    let place = child(place, "paths");
    texts_of(conditions, "paths")
        .into_iter()
        .enumerate()
        .map(|(at, pattern)| {
            PathGlob::parse(&pattern).map_err(|fault| {
                ConfigError::new(
                    &format!("{place}/{at}"),
                    format!("the glob {pattern:?} {fault}"),
                    "write the decoded path with * and **, such as \"/payments/**\"",
                )
            })
        })
        .collect()
}

/// Methods as `package.Service/Method`. A gRPC method is a path, so that a glob on methods is one on paths.
pub(super) fn grpc_methods(
    conditions: &Map<String, Value>,
    place: &str,
) -> Result<Vec<PathGlob>, ConfigError> {
    let place = child(place, "grpc");
    texts_of(conditions, "grpc")
        .into_iter()
        .enumerate()
        .map(|(at, pattern)| {
            grpc_method(&pattern).ok_or_else(|| {
                ConfigError::new(
                    &format!("{place}/{at}"),
                    format!("found {pattern:?}, allowed is a service and a method"),
                    "write package.Service/Method, such as \"ledger.v1.Ledger/Post*\" or \"admin.*/*\", without a slash in front",
                )
            })
        })
        .collect()
}

fn grpc_method(pattern: &str) -> Option<PathGlob> {
    let (service, method) = pattern.split_once('/')?;
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*');
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(in_name);
    let fits = service.split('.').all(is_word) && is_word(method) && !pattern.contains("**");
    fits.then(|| PathGlob::parse(&format!("/{pattern}")).ok())?
}
