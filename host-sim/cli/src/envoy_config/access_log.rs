//! The access log: to stdout, in a format whose operators the simulator knows.

use host_sim::proxy::AccessLogFormat;

use super::node::Node;
use super::refusal::Refusal;

/// What is to be written of each request; `None` = nothing.
pub(super) fn read(node: &Node<'_>) -> Result<Option<AccessLogFormat>, Refusal> {
    if node.list()?.is_empty() {
        return Ok(None);
    }
    let mut log = node.only("access log")?.message()?;
    log.text("name")?;
    let (_, mut stdout) = log.required("typed_config")?.any(&[STDOUT])?;
    log.end()?;
    let format = text_format(&stdout.required("log_format")?)?;
    stdout.end()?;
    Ok(Some(format))
}

/// `envoy.config.core.v3.SubstitutionFormatString` with a text.
pub(super) fn text_format(node: &Node<'_>) -> Result<AccessLogFormat, Refusal> {
    let mut format = node.message()?;
    let mut source = format.required("text_format_source")?.message()?;
    format.end()?;
    let text = source.required("inline_string")?;
    source.end()?;
    AccessLogFormat::parse(text.text()?).map_err(|fault| {
        Refusal::new(
            text.pointer(),
            fault.to_string(),
            fault.understood(),
            "write it as in envoy/envoy.yaml, leave the operator out, or run this file on Envoy",
        )
    })
}

const STDOUT: &str = "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog";
