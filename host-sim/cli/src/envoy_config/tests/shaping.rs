//! Routes that a filter chooses by a header, whose direct responses are made for each request and go on bit by bit.

use host_sim::Pace;
use host_sim::proxy::{DirectBody, HeaderMatcher, RouteAction, WantedHeader};
use serde_json::json;

use super::*;

/// The shipped file with the filters behind the gate, and a route in front that uses them.
fn shaped() -> Value {
    changed([
        (
            "MANAGER/http_filters/1",
            filter("fault", "fault.v3.HTTPFault", json!({})),
        ),
        (
            "MANAGER/http_filters/2",
            filter(
                "ends",
                "bandwidth_limit.v3.BandwidthLimit",
                json!({"stat_prefix": "ends"}),
            ),
        ),
        (
            "HOST/routes/0",
            json!({
                "name": "stream",
                "match": {"prefix": "/", "headers": [
                    {"name": "X-Stream", "string_match": {"exact": "1"}},
                    {"name": "x-other", "present_match": false},
                ]},
                "direct_response": {
                    "status": 200,
                    "body_format": {"text_format_source": {"inline_string": "a%FILTER_STATE(wasm.pace:PLAIN)%"}},
                },
                "typed_per_filter_config": {
                    "fault": settings("fault.v3.HTTPFault", json!({
                        "response_rate_limit": {"fixed_limit": {"limit_kbps": 2}, "percentage": {"numerator": 100}},
                    })),
                    "ends": settings("bandwidth_limit.v3.BandwidthLimit", json!({
                        "stat_prefix": "ends",
                        "enable_mode": "RESPONSE",
                        "limit_kbps": 1_000_000,
                        "enable_response_trailers": true,
                    })),
                },
            }),
        ),
    ])
}

fn settings(kind: &str, mut fields: Value) -> Value {
    fields["@type"] = json!(format!(
        "type.googleapis.com/envoy.extensions.filters.http.{kind}"
    ));
    fields
}

fn filter(name: &str, kind: &str, fields: Value) -> Value {
    json!({"name": name, "typed_config": settings(kind, fields)})
}

#[test]
fn ok_a_direct_response_that_goes_on_slowly() {
    let config = EnvoyConfig::parse(&shaped().to_string(), "my.yaml").expect("understood");
    let route = &config.listeners[0].listener.virtual_hosts[0].routes[0];
    let matcher = |name: &str, wanted| HeaderMatcher {
        name: name.to_owned(),
        wanted,
    };
    assert_eq!(
        route.headers,
        [
            matcher("x-stream", WantedHeader::Exact("1".to_owned())),
            matcher("x-other", WantedHeader::Present(false)),
        ]
    );
    let RouteAction::DirectResponse {
        status: 200,
        body: DirectBody::Format(format),
        pace,
    } = &route.action
    else {
        panic!("{:?}", route.action)
    };
    assert_eq!(format.to_string(), "a%FILTER_STATE(wasm.pace:PLAIN)%");
    let expected = Pace {
        bytes_per_second: 2048,
        ends_with_trailers: true,
    };
    assert_eq!(*pace, Some(expected));
}

#[test]
fn err_what_shapes_answers_otherwise() {
    const FAULT: &str = "HOST/routes/0/typed_per_filter_config/fault";
    const ENDS: &str = "HOST/routes/0/typed_per_filter_config/ends";
    let cases = [
        (
            "MANAGER/http_filters/1/typed_config/response_rate_limit",
            json!({}),
            "MANAGER/http_filters/1/typed_config/response_rate_limit: found an object, understood: no field here; hint: set it for \
             the routes with a `direct_response`, under `typed_per_filter_config`",
        ),
        (
            "MANAGER/http_filters/2/typed_config/enable_mode",
            json!("RESPONSE"),
            "MANAGER/http_filters/2/typed_config/enable_mode: found \"RESPONSE\", understood: only \"DISABLED\"; hint: leave it out \
             here, and turn it on for the route",
        ),
        (
            "FAULT/delay",
            json!({}),
            "FAULT/delay: found an object, understood: `response_rate_limit`; hint: LEAVE OUT",
        ),
        (
            "FAULT/response_rate_limit/header_limit",
            json!({}),
            "FAULT/response_rate_limit/header_limit: found an object, understood: `fixed_limit`, `percentage`; hint: LEAVE OUT",
        ),
        (
            "FAULT/response_rate_limit/percentage/numerator",
            json!(50),
            "FAULT/response_rate_limit/percentage/numerator: found 50, understood: only 100; hint: write 100: the simulator limits \
             all responses of a route or none",
        ),
        (
            "FAULT/response_rate_limit/fixed_limit/limit_kbps",
            json!(0),
            "FAULT/response_rate_limit/fixed_limit/limit_kbps: found 0, understood: a whole number from 1 to 4194303; hint: SEE ENVOY",
        ),
        (
            "ENDS/limit_kbps",
            json!(500),
            "ENDS/limit_kbps: found 500, understood: a whole number from 1000000 to 4294967295; hint: SEE ENVOY",
        ),
        (
            "ENDS/enable_response_trailers",
            json!(false),
            "ENDS/enable_response_trailers: found false, understood: only true; hint: write `true`: the filter is understood only as \
             the one that adds trailers to the answer",
        ),
        (
            "HOST/routes/0/typed_per_filter_config/cors",
            json!({}),
            "HOST/routes/0/typed_per_filter_config/cors: found an object, understood: `fault`, `ends`; hint: LEAVE OUT",
        ),
        (
            "HOST/routes/0/typed_per_filter_config",
            json!({"ends": shaped().pointer(&long(ENDS))}),
            "ENDS: found an object, understood: this filter together with a limit of `envoy.filters.http.fault` on the same route; \
             hint: LEAVE OUT",
        ),
        (
            "HOST/routes/1/typed_per_filter_config",
            json!({"fault": shaped().pointer(&long(FAULT))}),
            "HOST/routes/1/typed_per_filter_config: found an object, understood: filters that shape answers on routes with a \
             `direct_response` only; hint: LEAVE OUT",
        ),
        (
            "HOST/routes/0/direct_response/body",
            json!({"inline_string": "b"}),
            "HOST/routes/0/direct_response/body_format: found an object, understood: only one of `body`, `body_format`; hint: LEAVE \
             OUT",
        ),
        (
            "HOST/routes/0/direct_response/body_format/text_format_source/inline_string",
            json!("%RESPONSE_CODE%"),
            "HOST/routes/0/direct_response/body_format: found an object, understood: a text with no operator but \
             `%FILTER_STATE(wasm.NAME:PLAIN)%`; hint: LEAVE OUT",
        ),
        (
            "HOST/routes/0/match/headers/0/string_match",
            json!({"prefix": "1"}),
            "HOST/routes/0/match/headers/0/string_match/prefix: found \"1\", understood: `exact`; hint: LEAVE OUT",
        ),
        (
            "HOST/routes/0/match/headers/0/invert_match",
            json!(true),
            "HOST/routes/0/match/headers/0/invert_match: found true, understood: `name`, `string_match`, `present_match`; hint: \
             LEAVE OUT",
        ),
        (
            "MANAGER/http_filters/0",
            filter("fault", "fault.v3.HTTPFault", json!({})),
            "MANAGER/http_filters/1: found one filter too many, or one in another order, understood: CHAIN OF FILTERS; hint: test \
             each filter on its own, or run this file on Envoy",
        ),
    ];
    let places = |text: &str| long(&text.replace("FAULT", FAULT).replace("ENDS", ENDS));
    for (place, value, expected) in cases {
        let mut document = shaped();
        set(&mut document, &places(place), value);
        let error = EnvoyConfig::parse(&document.to_string(), "my.yaml").expect_err("refused");
        let message = Failure::from(error).to_string();
        assert_eq!(message, format!("my.yaml: {}", places(expected)), "{place}");
    }
}
