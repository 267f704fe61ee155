//! The line of a stream that is over.

use std::time::{Duration, SystemTime};

use super::{AccessLogFormat, Names, Operator, PathSource, Piece};
use crate::header_map::HeaderMap;
use crate::proxy::manager;
use crate::stream::Stream;

/// A stream at its end.
#[derive(Clone, Copy)]
pub(in crate::proxy) struct Ended<'s> {
    pub(in crate::proxy) stream: &'s Stream,
    /// How long it took.
    pub(in crate::proxy) duration: Duration,
}

impl AccessLogFormat {
    /// The line, with the line break only where the text has one.
    pub(in crate::proxy) fn line(&self, ended: Ended<'_>) -> String {
        String::from_utf8_lossy(&self.bytes(ended)).into_owned()
    }

    /// What the text says of a stream, as bytes.
    pub(in crate::proxy) fn bytes(&self, ended: Ended<'_>) -> Vec<u8> {
        let mut line = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => line.extend_from_slice(text.as_bytes()),
                Piece::Value { operator, length } => {
                    let mut value = value(operator, ended).unwrap_or_else(|| b"-".to_vec());
                    value.truncate(length.unwrap_or(usize::MAX));
                    line.append(&mut value);
                }
            }
        }
        line
    }
}

/// `None` where there is no such thing.
fn value(operator: &Operator, ended: Ended<'_>) -> Option<Vec<u8>> {
    let Ended { stream, duration } = ended;
    let request = stream.request.headers.as_ref();
    let text = match operator {
        Operator::BytesReceived => stream.request.body_bytes.to_string(),
        Operator::BytesSent => stream.response.sent_bytes.to_string(),
        Operator::Duration => duration.as_millis().to_string(),
        Operator::FilterState(name) => return stream.own_properties.get(name.as_bytes()).cloned(),
        Operator::Path { query, source } => return path(request?, *query, *source),
        Operator::Protocol => stream.info.protocol.name().to_owned(),
        Operator::RemoteAddress => stream.info.source.to_string(),
        Operator::RemoteAddressWithoutPort => stream.info.source.ip().to_string(),
        Operator::RequestHeader(names) => return header(request?, names),
        Operator::ResponseCode => stream.code.unwrap_or_default().to_string(),
        // A filter's own answer has empty details, which Envoy prints so.
        Operator::ResponseCodeDetails => {
            let details = stream.details.as_ref()?;
            details.replace(char::is_whitespace, "_")
        }
        Operator::ResponseHeader(names) => return header(stream.response.headers.as_ref()?, names),
        Operator::StartTime => start_time(stream.started_wall_nanoseconds),
        Operator::UpstreamRequestAttemptCount => stream.attempts.to_string(),
    };
    Some(text.into_bytes())
}

fn header(headers: &HeaderMap, names: &Names) -> Option<Vec<u8>> {
    let alternative = names.alternative.as_ref();
    let value = headers.first(&names.name);
    let value = value.or_else(|| headers.first(alternative?));
    value.map(<[u8]>::to_vec)
}

fn path(headers: &HeaderMap, query: bool, source: PathSource) -> Option<Vec<u8>> {
    let original = headers.first("x-envoy-original-path");
    let path = headers.first(":path");
    let chosen = match source {
        PathSource::Original => original,
        PathSource::OriginalOrPath => original.or(path),
        PathSource::Path => path,
    };
    let chosen = chosen?;
    let end = chosen.iter().position(|byte| *byte == b'?' && !query);
    Some(chosen[..end.unwrap_or(chosen.len())].to_vec())
}

/// `2026-11-30T15:44:12.123Z`
fn start_time(nanoseconds: u64) -> String {
    let (seconds, milliseconds) = (nanoseconds / 1_000_000_000, nanoseconds / 1_000_000 % 1000);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    format!("{}.{milliseconds:03}Z", manager::iso_date(time))
}
