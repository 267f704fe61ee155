//! The access log. The simulator writes one form of it, which never shows a query.

use super::node::Node;
use super::refusal::{Refusal, SAME_AS_SHIPPED};

/// Whether a line is to be written for each request.
pub(super) fn read(node: &Node<'_>) -> Result<bool, Refusal> {
    if node.list()?.is_empty() {
        return Ok(false);
    }
    let mut log = node.only("access log")?.message()?;
    log.text("name")?;
    let (_, mut stdout) = log.required("typed_config")?.any(&[STDOUT])?;
    log.end()?;
    let mut format = stdout.required("log_format")?.message()?;
    stdout.end()?;
    let mut source = format.required("text_format_source")?.message()?;
    format.end()?;
    let text = source.required("inline_string")?;
    source.end()?;
    if text.text()? == FORMAT {
        return Ok(true);
    }
    Err(text.refuse(
        format!("only the text {FORMAT:?}"),
        format!("{SAME_AS_SHIPPED}, or leave the access log out"),
    ))
}

const STDOUT: &str = "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog";
/// The form of envoy/envoy.yaml.
pub(super) const FORMAT: &str = "%START_TIME% %DOWNSTREAM_REMOTE_ADDRESS% %REQ(:METHOD)% %PATH(NQ:PATH)% %PROTOCOL% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% attempts=%UPSTREAM_REQUEST_ATTEMPT_COUNT% %DURATION%ms hoop=%FILTER_STATE(wasm.hoop_outcome:PLAIN)% rule=%FILTER_STATE(wasm.hoop_rule:PLAIN)% approval=%FILTER_STATE(wasm.hoop_approval_id:PLAIN)%\n";
