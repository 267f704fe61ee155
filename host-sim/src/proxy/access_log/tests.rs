//! What of format texts is understood.

use proptest::prelude::*;

use super::*;

fn fault(text: &str) -> String {
    let fault = AccessLogFormat::parse(text).expect_err(text);
    format!("{fault}; {}", fault.understood())
}

#[test]
fn ok_formats_read_and_print_as_themselves() {
    for (text, printed) in [
        ("", ""),
        ("no operator\n", "no operator\n"),
        ("100%% %PROTOCOL%%%", "100%% %PROTOCOL%%%"),
        ("%START_TIME%%DURATION%ms", "%START_TIME%%DURATION%ms"),
        ("%REQ(:METHOD)%", "%REQ(:method)%"),
        ("%REQ(X-A?x-B):12%", "%REQ(x-a?x-b):12%"),
        ("%RESP(SERVER)%", "%RESP(server)%"),
        ("%PATH%", "%PATH(WQ:ORIG_OR_PATH)%"),
        ("%PATH(NQ)%", "%PATH(NQ:ORIG_OR_PATH)%"),
        ("%PATH(NQ:PATH):7%", "%PATH(NQ:PATH):7%"),
        ("%PATH(WQ:ORIG)%", "%PATH(WQ:ORIG)%"),
        (
            "%FILTER_STATE(wasm.a.b:PLAIN):3%",
            "%FILTER_STATE(wasm.a.b:PLAIN):3%",
        ),
    ] {
        let format = AccessLogFormat::parse(text).expect(text);
        assert_eq!(format.to_string(), printed);
    }
}

#[test]
fn err_a_sign_that_starts_no_operator_is_named_with_its_place() {
    let understood =
        "`%NAME%`, `%NAME(ARGUMENTS)%` or `%NAME(ARGUMENTS):LENGTH%`, and `%%` for the sign itself";
    for (text, at) in [
        ("100%", 3),
        ("ä%protocol%", 2),
        ("%PROTOCOL", 0),
        ("%PROTOCOL %", 0),
        ("%(x)%", 0),
        ("%REQ(x%", 0),
        ("%REQ(x):%%", 0),
        ("%REQ(x):99999999999999999999%", 0),
    ] {
        let expected = format!("`%` at byte {at}, which starts no operator; {understood}");
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn err_an_operator_that_is_not_known_is_named_with_those_that_are() {
    assert_eq!(
        fault("%DURATION% %RESPONSE_FLAGS%"),
        "the operator `RESPONSE_FLAGS` at byte 11; `BYTES_RECEIVED`, `BYTES_SENT`, `DOWNSTREAM_REMOTE_ADDRESS`, \
         `DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT`, `DURATION`, `FILTER_STATE`, `PATH`, `PROTOCOL`, `REQ`, `RESP`, \
         `RESPONSE_CODE`, `RESPONSE_CODE_DETAILS`, `START_TIME`, `UPSTREAM_REQUEST_ATTEMPT_COUNT`"
    );
}

#[test]
fn err_arguments_that_an_operator_does_not_take() {
    for (operator, form) in [
        ("PROTOCOL(x)", "PROTOCOL"),
        ("PROTOCOL:3", "PROTOCOL"),
        ("START_TIME(x)", "START_TIME"),
        ("REQ", "REQ(NAME?ALTERNATIVE):LENGTH"),
        ("REQ()", "REQ(NAME?ALTERNATIVE):LENGTH"),
        ("REQ(a?b?c)", "REQ(NAME?ALTERNATIVE):LENGTH"),
        ("REQ(a b)", "REQ(NAME?ALTERNATIVE):LENGTH"),
        ("RESP(?b)", "RESP(NAME?ALTERNATIVE):LENGTH"),
        ("PATH(QN)", "PATH(WQ|NQ:PATH|ORIG|ORIG_OR_PATH):LENGTH"),
        ("PATH(NQ:X)", "PATH(WQ|NQ:PATH|ORIG|ORIG_OR_PATH):LENGTH"),
        (
            "FILTER_STATE(wasm.x)",
            "FILTER_STATE(wasm.NAME:PLAIN):LENGTH",
        ),
        (
            "FILTER_STATE(x:PLAIN)",
            "FILTER_STATE(wasm.NAME:PLAIN):LENGTH",
        ),
    ] {
        assert_eq!(
            fault(&format!("at %{operator}%")),
            format!("`%{operator}` at byte 3 with something that it does not take; `%{form}%`"),
        );
    }
}

proptest! {
    #[test]
    fn what_reads_prints_as_a_text_that_reads_the_same(text in "([%():A-Z_a-z?0-9.]|%REQ\\(|%PATH|%DURATION%|wasm\\.|:PLAIN\\)%|\\)%){0,12}") {
        if let Ok(format) = AccessLogFormat::parse(&text) {
            prop_assert_eq!(AccessLogFormat::parse(&format.to_string()), Ok(format));
        }
    }

    #[test]
    fn a_text_without_a_per_cent_sign_is_printed_as_it_is(text in "[^%]{1,20}") {
        prop_assert_eq!(AccessLogFormat::parse(&text), Ok(AccessLogFormat(vec![Piece::Text(text.clone())])));
    }
}
