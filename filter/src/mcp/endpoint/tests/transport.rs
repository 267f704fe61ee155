//! What is refused before anything is read.

use super::*;

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

#[test]
fn each_refusal_of_the_transport_has_its_status() {
    let post = || Request::post(PING);
    let table = [
        (post(), 200),
        (
            Request {
                target: "/",
                ..post()
            },
            404,
        ),
        (
            Request {
                target: "/mcp/",
                ..post()
            },
            404,
        ),
        (
            Request {
                target: "/MCP",
                ..post()
            },
            404,
        ),
        (
            Request {
                target: "/x/../mcp",
                ..post()
            },
            404,
        ),
        (
            Request {
                target: "/mcp?session=1",
                ..post()
            },
            200,
        ),
        (
            Request {
                authority: "evil.example.com",
                ..post()
            },
            403,
        ),
        (post().with("origin", "http://evil.example.com"), 403),
        (post().with("origin", "null"), 403),
        (post().with("origin", "http://127.0.0.1:8765"), 200),
        (post().with("sec-fetch-site", "cross-site"), 403),
        (post().with("sec-fetch-site", "same-site"), 403),
        (post().with("sec-fetch-site", "same-origin"), 200),
        (post().with("sec-fetch-site", "none"), 200),
        (
            Request {
                method: "GET",
                ..post()
            },
            405,
        ),
        (
            Request {
                method: "DELETE",
                ..post()
            },
            405,
        ),
        (
            Request {
                method: "PUT",
                ..post()
            },
            405,
        ),
        (
            Request {
                method: "OPTIONS",
                ..post()
            },
            405,
        ),
        (
            Request {
                method: "post",
                ..post()
            },
            405,
        ),
        (post().with("accept", "text/html"), 406),
        (post().with("accept", "application/json;q=0"), 406),
        (post().with("accept", "*/*"), 200),
        (post().without("accept"), 200),
        (post().with("content-type", "text/plain"), 415),
        (post().with("content-type", "application/json-rpc"), 415),
        (
            post().with("content-type", "Application/JSON ; charset=utf-8"),
            200,
        ),
        (post().and("content-type", "application/json"), 415),
        (post().without("content-type"), 415),
        (post().with("content-encoding", "gzip"), 415),
        (post().with("content-encoding", "Identity"), 200),
        (post().with("content-length", "601"), 413),
        (post().with("content-length", "600"), 200),
    ];
    for (request, status) in table {
        let told = request.answered();

        assert_eq!(told.status, status, "{request:?}");
        if status != 200 {
            assert_eq!(told.code().1, -32_600);
            assert_eq!(told.message.get("id"), None, "an id that nobody sent");
        }
    }
}

#[test]
fn a_refusal_comes_before_the_body_and_is_logged_without_what_was_sent() {
    let request = Request::post(PING).with("origin", "http://evil.example.com");

    let (endpoint, effects) = request.open(&listener(), false);

    assert!(endpoint.is_none());
    assert_eq!(counts(&effects, Counter::McpRefused), 1);
    assert!(effects.contains(&Effect::Log {
        level: log::Level::Info,
        line: "mcp=refused listener=\"agents\" why=origin status=403".to_owned(),
    }));
}

#[test]
fn a_405_says_what_is_allowed() {
    let request = Request {
        method: "GET",
        ..Request::post("")
    };

    let (_, effects) = request.open(&listener(), true);

    assert_eq!(answer(&effects).header("allow"), Some("POST"));
}

#[test]
fn a_body_is_taken_up_to_its_bound_in_any_pieces() {
    let listener = listener();
    for (length, chunk, status) in [
        (600, 600, 400),
        (600, 7, 400),
        (601, 601, 413),
        (601, 1, 413),
        (5_000, 599, 413),
    ] {
        let body = vec![b'x'; length];
        let (mut endpoint, mut effects) = Request::post("").open(&listener, false);
        let mut chunks = body.chunks(chunk).peekable();
        while let Some(chunk) = chunks.next() {
            let Some(open) = endpoint else { break };
            assert!(!open.may_continue() && open.body_room() > 0);
            let event = Event::RequestBody {
                chunk: chunk.to_vec(),
                end_of_stream: chunks.peek().is_none(),
            };
            (endpoint, effects) = open.handle(&listener, event);
        }

        assert_eq!(Told::of(&effects).status, status, "{length} by {chunk}");
    }
}

#[test]
fn trailers_end_the_body() {
    let listener = listener();
    let (endpoint, _) = Request::post("").open(&listener, false);
    let chunk = Event::RequestBody {
        chunk: PING.into(),
        end_of_stream: false,
    };
    let (endpoint, effects) = endpoint.expect("open").handle(&listener, chunk);
    assert_eq!(effects, []);

    let (_, effects) = endpoint
        .expect("open")
        .handle(&listener, Event::RequestTrailers);

    assert_eq!(*Told::of(&effects).result(), json!({}));
}

#[test]
fn a_body_that_is_none_or_cannot_be_read_is_an_error() {
    let listener = listener();
    let (_, effects) = Request::post("").open(&listener, true);
    assert_eq!(Told::of(&effects).code(), (400, -32_700));
    assert_eq!(Request::post(" \n").answered().code(), (400, -32_700));

    let (endpoint, _) = Request::post("").open(&listener, false);
    let (_, effects) = endpoint
        .expect("open")
        .handle(&listener, Event::RequestBodyUnreadable);

    assert_eq!(Told::of(&effects).code(), (500, -32_603));
    assert_eq!(counts(&effects, Counter::Internal), 1);
}

#[test]
fn what_is_no_message_is_refused() {
    for (body, code) in [
        ("{", -32_700),
        ("\u{feff}{}", -32_700),
        ("[]", -32_600),
        ("[", -32_600),
        (r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32_600),
        ("1", -32_600),
        (r#"{"id":1,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#,
            -32_700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"Id":1,"method":"ping"}"#,
            -32_600,
        ),
    ] {
        assert_eq!(Request::post(body).answered().code(), (400, code), "{body}");
    }
}

#[test]
fn a_client_that_takes_only_events_gets_its_answer_as_one() {
    let request = Request::post(PING).with("accept", "text/event-stream");

    let (_, effects) = request.send(&listener());

    let answer = answer(&effects);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(
        answer.body,
        b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n"
    );
    let error = Request::post("[]")
        .with("accept", "text/event-stream")
        .answered();
    assert_eq!(
        error.code(),
        (400, -32_600),
        "an error that has a status is JSON"
    );
}

#[test]
fn sessions_of_others_do_not_matter() {
    let request = Request::legacy("ping", &json!({}))
        .with("mcp-session-id", "x")
        .with("last-event-id", "3");

    assert_eq!(*request.answered().result(), json!({}));
}
