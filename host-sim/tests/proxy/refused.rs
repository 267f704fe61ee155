//! Requests that are refused before the filter: the guest is not shown them and logs them all the same. Seen on Envoy 1.40.

use std::sync::mpsc::channel;

use host_sim::proxy::{Proxy, Settings};
use host_sim::{Host, Plugin};

use crate::scene::{OK, PATIENCE, Scene, Upstream, guest, settings};

/// Logs the name of each callback of a stream, and in `proxy_on_log` the path, the status and why it was given.
fn logging_guest() -> Plugin {
    guest(
        r#"(data (i32.const 16) "shown")
        (data (i32.const 32) "done")
        (data (i32.const 48) "deleted")
        (data (i32.const 64) "response\00code_details")
        (data (i32.const 96) ":path")
        (data (i32.const 112) ":status")
        (func $say (param i32 i32) (drop (call $write (i32.const 4) (local.get 0) (local.get 1))))
        (func $say_found (param i32)
            (if (i32.eqz (local.get 0)) (then (call $say (i32.load (i32.const 0)) (i32.load (i32.const 4)))))
            (i32.store (i32.const 4) (i32.const 0)))
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (call $say (i32.const 16) (i32.const 5)) i32.const 0)
        (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32)
            (call $say (i32.const 16) (i32.const 5)) i32.const 0)
        (func (export "proxy_on_log") (param i32)
            (call $say_found (call $header (i32.const 0) (i32.const 96) (i32.const 5) (i32.const 0) (i32.const 4)))
            (call $say_found (call $header (i32.const 2) (i32.const 112) (i32.const 7) (i32.const 0) (i32.const 4)))
            (call $say_found (call $property (i32.const 64) (i32.const 21) (i32.const 0) (i32.const 4))))
        (func (export "proxy_on_done") (param i32) (result i32)
            (call $say (i32.const 32) (i32.const 4)) i32.const 1)
        (func (export "proxy_on_delete") (param i32) (call $say (i32.const 48) (i32.const 7)))"#,
    )
}

#[test]
fn a_guest_logs_what_was_refused_before_it() {
    let upstream = Upstream::answering(OK);
    let settings = Settings {
        workers: 1,
        ..settings(upstream.address, Some(logging_guest()))
    };
    let (sender, lines) = channel();
    let host = Host::real(move |line| {
        if line.from_guest {
            let _test_is_over = sender.send(line.message.clone());
        }
    });
    let proxy = Proxy::start(host, settings).expect("the proxy starts");
    let address = proxy.listener_addresses()[0].1;
    let scene = Scene { proxy, address };
    let rows: [(&str, &[&str]); 9] = [
        (
            "GET /x#y HTTP/1.1\r\nhost: a\r\n\r\n",
            &["/x#y", "400", "path_normalization_failed"],
        ),
        (
            "GET /x HTTP/1.1\r\n\r\n",
            &["/x", "400", "missing_host_header"],
        ),
        (
            "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n",
            &["*", "404", "absolute_path_rejected"],
        ),
        (
            "QUERY /x HTTP/1.1\r\nhost: a\r\n\r\n",
            &["/x", "400", "query_missing_content_type"],
        ),
        (
            "GET /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            &["/x", "403", "upgrade_failed"],
        ),
        (
            "BREW /x HTTP/1.1\r\nhost: a\r\n\r\n",
            &["400", "http1.codec_error"],
        ),
        (
            "GET /x HTTP/1.0\r\nhost: a\r\n\r\n",
            &["426", "low_version"],
        ),
        (
            "GET /x HTTP/1.1\r\nhost: a\r\nconnection: x-forwarded-for\r\n\r\n",
            &["400", "http1.connection_header_rejected"],
        ),
        ("\x16\x03\x01", &["400", "http1.codec_error"]),
    ];
    for (request, logged) in rows {
        scene.ask(request);
        for expected in logged.iter().chain(&["done", "deleted"]) {
            let line = lines.recv_timeout(PATIENCE);
            assert_eq!(line.as_deref(), Ok(*expected), "{request:?}");
        }
    }
}
