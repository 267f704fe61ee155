//! Owns who may call which API: the sidecar by its own header, a person by a bearer token, and never one in the other's
//! place. The API calls it first on each route. It must not know what the call wants.

use axum::http::{HeaderMap, HeaderName, header::AUTHORIZATION};

use crate::tokens::TokenDigest;

/// Lets a sidecar in (contract 1.1).
///
/// A wrong yes would let anyone on the network spend approvals; a wrong no only holds requests up.
pub(crate) fn sidecar(headers: &HeaderMap, expected: &TokenDigest) -> Result<(), Denied> {
    let token = sole(headers, &SIDECAR_TOKEN);
    let identity = sole(headers, &SIDECAR_IDENTITY);
    match (token, identity) {
        (Sent::Nothing, Sent::Nothing) => Err(Denied::NoCredential),
        (Sent::Nothing, Sent::Once(_) | Sent::Repeated) => Err(Denied::IdentityNotServed),
        (Sent::Once(_) | Sent::Repeated, Sent::Once(_) | Sent::Repeated) => {
            Err(Denied::TwoCredentials)
        }
        (Sent::Repeated, Sent::Nothing) => Err(Denied::NoCredential),
        (Sent::Once(token), Sent::Nothing) => check(token, expected),
    }
}

/// Lets a person in.
///
/// A wrong yes would let an agent approve its own requests, which is all that this product prevents.
pub(crate) fn approver(headers: &HeaderMap, expected: &TokenDigest) -> Result<(), Denied> {
    let Sent::Once(value) = sole(headers, &AUTHORIZATION) else {
        return Err(Denied::NoCredential);
    };
    let Some((scheme, token)) = value
        .iter()
        .position(|b| *b == b' ')
        .map(|at| value.split_at(at))
    else {
        return Err(Denied::NoCredential);
    };
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(Denied::NoCredential);
    }
    check(token.trim_ascii_start(), expected)
}

/// Why a caller may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// A workload's identity, which this plane does not check.
    IdentityNotServed,
    /// None, more than one, or an unknown one.
    NoCredential,
    /// Both kinds of a sidecar's credential.
    TwoCredentials,
}

fn check(presented: &[u8], expected: &TokenDigest) -> Result<(), Denied> {
    if TokenDigest::of(presented).matches(expected) {
        Ok(())
    } else {
        Err(Denied::NoCredential)
    }
}

/// What the caller sent under one header. An empty value counts as not sent, as in the gateway's own reading.
enum Sent<'a> {
    Nothing,
    Once(&'a [u8]),
    Repeated,
}

fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Sent<'a> {
    let mut values = headers
        .get_all(name)
        .iter()
        .filter(|value| !value.is_empty());
    match (values.next(), values.next()) {
        (None, _) => Sent::Nothing,
        (Some(value), None) => Sent::Once(value.as_bytes()),
        (Some(_), Some(_)) => Sent::Repeated,
    }
}

const SIDECAR_TOKEN: HeaderName = HeaderName::from_static("hoop-sidecar-token");
const SIDECAR_IDENTITY: HeaderName = HeaderName::from_static("hoop-sidecar-identity");
