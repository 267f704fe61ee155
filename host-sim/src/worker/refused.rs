//! Requests that the host refuses before any filter. Envoy makes a context for them all the same, once they are over, so that the
//! guest can log them: it is created, logs, and is deleted.

use super::{Worker, flags};
use crate::header_map::HeaderMap;
use crate::stream::StreamInfo;

/// A request that was refused, and its answer.
pub(crate) struct RefusedRequest {
    pub(crate) info: StreamInfo,
    /// As far as it was read; `None` where it is no HTTP.
    pub(crate) request: Option<HeaderMap>,
    pub(crate) response: HeaderMap,
    /// `response.code_details`
    pub(crate) details: &'static str,
    /// It breaks the protocol, which `response.flags` show.
    pub(crate) malformed: bool,
}

impl Worker {
    /// Lets the guest log a request that it was not shown.
    pub(crate) fn refused(&mut self, refused: RefusedRequest) {
        self.reload_if_due();
        let id = self.add_stream(refused.info, self.limits);
        let filter = self.new_filter(id);
        if let Some(stream) = self.stream_mut(id) {
            stream.filter = filter;
            stream.code = refused
                .response
                .text(":status")
                .and_then(|status| status.parse().ok());
            stream.details = Some(refused.details.to_owned());
            if refused.malformed {
                stream.flags |= flags::DOWNSTREAM_PROTOCOL_ERROR;
            }
            stream.request.headers = refused.request;
            let length = refused.response.text("content-length");
            let length = length.and_then(|length| length.parse().ok());
            stream.response.sent_bytes = length.unwrap_or_default();
            stream.response.headers = Some(refused.response);
        }
        self.finish(id);
    }
}
