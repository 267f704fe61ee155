//! `envoy.filters.http.fault` and `envoy.filters.http.bandwidth_limit` behind the wasm filter: they let the body of a direct response
//! reach it bit by bit.
//!
//! Both are off for the listener and on for single routes. Anything else that they can do is refused: the simulator injects no faults, and
//! has no filter of its own that could share a limit between streams.

use host_sim::Pace;

use super::node::{Message, Node};
use super::refusal::{LEAVE_OUT, Refusal, listed};

/// The names of these filters in a listener, under which routes set them.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapers {
    pub(super) fault: Option<String>,
    pub(super) bandwidth: Option<String>,
}

/// The fault filter of a listener, which does nothing but where a route asks for it.
pub(super) fn read_fault(mut settings: Message<'_>) -> Result<(), Refusal> {
    let set = settings.entries();
    match set.iter().find(|(field, _)| *field != "@type") {
        Some((_, value)) => Err(value.refuse(
            "no field here",
            "set it for the routes with a `direct_response`, under `typed_per_filter_config`",
        )),
        None => Ok(()),
    }
}

/// The bandwidth filter of a listener, which does nothing but where a route asks for it.
pub(super) fn read_bandwidth(mut settings: Message<'_>) -> Result<(), Refusal> {
    settings.required("stat_prefix")?.text()?;
    settings.read("enable_mode", |node| {
        node.must_be(
            &"DISABLED".into(),
            "leave it out here, and turn it on for the route",
        )
    })?;
    settings.end()
}

/// `typed_per_filter_config` of a route.
pub(super) fn of_route(node: &Node<'_>, shapers: &Shapers) -> Result<Option<Pace>, Refusal> {
    let mut bytes_per_second = None;
    let mut trailers = None;
    for (name, settings) in node.message()?.entries() {
        if shapers.fault.as_deref() == Some(name) {
            bytes_per_second = Some(rate(settings.any(&[FAULT])?.1)?);
        } else if shapers.bandwidth.as_deref() == Some(name) {
            added_trailers(settings.any(&[BANDWIDTH])?.1)?;
            trailers = Some(settings);
        } else {
            let known = [&shapers.fault, &shapers.bandwidth].into_iter().flatten();
            let known: Vec<&str> = known.map(String::as_str).collect();
            let understood = match known.as_slice() {
                [] => "no filter, for the listener has none that takes something of a route"
                    .to_owned(),
                known => listed(known.iter().copied()),
            };
            return Err(settings.refuse(understood, LEAVE_OUT));
        }
    }
    match (bytes_per_second, trailers) {
        (Some(bytes_per_second), trailers) => Ok(Some(Pace {
            bytes_per_second,
            ends_with_trailers: trailers.is_some(),
        })),
        (None, Some(settings)) => Err(settings.refuse(
            "this filter together with a limit of `envoy.filters.http.fault` on the same route",
            LEAVE_OUT,
        )),
        (None, None) => Ok(None),
    }
}

/// `HTTPFault` with a fixed limit for all responses; the bytes of a second.
fn rate(mut fault: Message<'_>) -> Result<u32, Refusal> {
    let mut limit = fault.required("response_rate_limit")?.message()?;
    fault.end()?;
    let mut fixed = limit.required("fixed_limit")?.message()?;
    let mut percentage = limit.required("percentage")?.message()?;
    limit.end()?;
    let kilobytes = fixed.required("limit_kbps")?.number(1, u32::MAX / 1024)?;
    fixed.end()?;
    percentage
        .required("numerator")?
        .must_be(&100.into(), ALL_RESPONSES)?;
    percentage.read("denominator", |node| {
        node.must_be(&"HUNDRED".into(), ALL_RESPONSES)
    })?;
    percentage.end()?;
    Ok(kilobytes.saturating_mul(1024))
}

/// `BandwidthLimit` that does nothing but add trailers.
fn added_trailers(mut bandwidth: Message<'_>) -> Result<(), Refusal> {
    bandwidth.required("stat_prefix")?.text()?;
    bandwidth.required("enable_mode")?.must_be(
        &"RESPONSE".into(),
        "write `RESPONSE`: the filter is understood only as the one that adds trailers to the answer",
    )?;
    bandwidth
        .required("limit_kbps")?
        .number(UNLIMITED_KBPS, u32::MAX)?;
    bandwidth.required("enable_response_trailers")?.must_be(
        &true.into(),
        "write `true`: the filter is understood only as the one that adds trailers to the answer",
    )?;
    bandwidth.end()
}

pub(super) const FAULT: &str = "envoy.extensions.filters.http.fault.v3.HTTPFault";
pub(super) const BANDWIDTH: &str =
    "envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit";
const ALL_RESPONSES: &str = "write 100: the simulator limits all responses of a route or none";
/// So much that it never makes anybody wait, for the simulator has no limit that streams share.
const UNLIMITED_KBPS: u32 = 1_000_000;
