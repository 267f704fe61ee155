//! What a frame is, and what is none.

use super::*;

fn refused(text: &str) -> (Option<String>, i32) {
    let Err(Unreadable { id, error }) = read(text.as_bytes()) else {
        panic!("taken: {text}");
    };
    (id.map(|id| id.token().to_owned()), error.code)
}

#[test]
fn ids_come_back_token_for_token() {
    for token in [
        "1.0",
        "3.5",
        "9223372036854775809",
        "-0",
        "1e3",
        r#""7""#,
        r#""\u0041""#,
        "0",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id": {token} ,"method":"ping"}}"#);

        let Ok(Frame::Request { id, .. }) = read(text.as_bytes()) else {
            panic!("no request: {text}");
        };
        assert_eq!(id.token(), token);
    }
}

#[test]
fn what_is_no_text_and_no_number_is_no_id() {
    for token in ["null", "true", "{}", "[1]"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"ping"}}"#);

        assert_eq!(refused(&text), (None, INVALID_REQUEST));
    }
}

#[test]
fn a_batch_is_refused_in_any_state() {
    for text in [
        "[]",
        "  [{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}]",
        "\n[{",
        "[",
    ] {
        assert_eq!(refused(text), (None, INVALID_REQUEST), "{text}");
    }
}

#[test]
fn members_that_can_be_taken_for_others_are_refused() {
    let known = Some("1".to_owned());
    for (text, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
            known.clone(),
            INVALID_REQUEST,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"param\u{17f}\":{}}",
            known.clone(),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"safe","Name":"danger"}}"#,
            known.clone(),
            INVALID_PARAMS,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"a"}"#,
            known,
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
            None,
            PARSE_ERROR,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","name":"b"}}"#,
            None,
            PARSE_ERROR,
        ),
    ] {
        assert_eq!(refused(text), (id, code), "{text}");
    }
}

#[test]
fn what_is_no_message_is_refused_with_what_is_known_of_it() {
    let known = Some("1".to_owned());
    for (text, id, code) in [
        ("", None, PARSE_ERROR),
        ("{", None, PARSE_ERROR),
        ("1", None, INVALID_REQUEST),
        ("\"a\"", None, INVALID_REQUEST),
        (r#"{"id":1,"method":"a"}"#, known.clone(), INVALID_REQUEST),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            known.clone(),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1}"#,
            known.clone(),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            known.clone(),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            known.clone(),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
            known,
            INVALID_PARAMS,
        ),
    ] {
        assert_eq!(refused(text), (id, code), "{text}");
    }
}

#[test]
fn what_a_reader_could_stumble_over_is_named() {
    let many: Vec<String> = (0..65).map(|number| format!("\"{number}\":0")).collect();
    let many = format!("{{{}}}", many.join(","));
    for text in [
        &many,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","__proto__":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"__proto__":{}}}}"#,
    ] {
        let Err(Unreadable { error, .. }) = read(text.as_bytes()) else {
            panic!("taken: {text}");
        };
        assert_eq!(
            error,
            RpcError::new(
                INVALID_REQUEST,
                "the message has more than 64 members, or one that is named __proto__"
            )
        );
    }
}

#[test]
fn an_error_has_an_id_only_where_it_is_known() {
    let fault = RpcError::new(PARSE_ERROR, "no \"JSON\"");

    assert_eq!(
        error(None, &fault),
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no \"JSON\""}}"#
    );
    let id = Id::parse("1.0");
    assert_eq!(
        error(id.as_ref(), &fault),
        r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-32700,"message":"no \"JSON\""}}"#
    );
}
