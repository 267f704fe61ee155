//! The access log of a listener: each request once, in the format that was configured, with and without a filter.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use host_sim::Host;
use host_sim::proxy::{AccessLogFormat, Proxy};

use crate::scene::{GET, OK, PATIENCE, Scene, Upstream, settings};

#[test]
fn each_request_has_one_line_in_the_format_of_its_listener() {
    let upstream = Upstream::answering(OK);
    let mut settings = settings(upstream.address, None);
    let format = "%REQ(:METHOD)% %PATH% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %BYTES_SENT%;";
    settings.listeners[0].access_log = Some(AccessLogFormat::parse(format).expect("a format"));
    let (lines, told) = channel();
    let lines = Mutex::new(lines);
    let host = Host::real(move |line| {
        if line.prefix == "access" {
            let lines = lines.lock().expect("no holder panicked");
            lines.send(line.message.clone()).expect("a reader");
        }
    });
    let proxy = Proxy::start(host, settings).expect("the proxy starts");
    let address = proxy.listener_addresses()[0].1;
    let scene = Scene { proxy, address };
    for (request, line) in [
        (GET, "GET /x 200 via_upstream 2;"),
        ("no HTTP\r\n\r\n", "- - 400 http1.codec_error 11;"),
        (
            "GET /x#y HTTP/1.1\r\nhost: a.b\r\n\r\n",
            "GET /x#y 400 path_normalization_failed 0;",
        ),
    ] {
        scene.ask(request);
        assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok(line));
    }
    drop(scene);
    assert!(told.try_recv().is_err());
}
