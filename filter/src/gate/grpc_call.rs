//! A held gRPC call as its head tells it: which method, how its messages are packed, how long its client waits.
//!
//! Source: gRPC over HTTP/2 (PROTOCOL-HTTP2), Requests; contract 2.2.

use core::time::Duration;
use std::sync::Arc;

use crate::config::GrpcConfig;
use crate::denial::{Form, Reason};
use crate::grpc::{
    ContentType, Deframer, Descriptors, Encoding, EncodingError, Frame, FrameError, Method,
    json_text, message_text, timeout,
};
use crate::request::RequestHead;
use crate::statement::Statement;

/// A gRPC call.
#[derive(Debug)]
pub(super) struct GrpcCall {
    method: Method,
    is_json: bool,
    /// Where it is not plainly protobuf.
    content_type: Option<String>,
    encoding: Encoding,
    descriptors: Option<Arc<Descriptors>>,
    /// How many messages its client sends.
    pub messages: Messages,
    /// How long its client waits, in milliseconds.
    pub deadline_ms: Option<u64>,
    max_message_bytes: usize,
}

/// How many messages the client of a call sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Messages {
    /// Any number.
    Many,
    /// One: a unary call, or one that only its server streams.
    One,
    /// No descriptor says so.
    Unknown,
}

/// In which form a request is refused: as Envoy tells gRPC by the content type, whatever else the request is.
pub(super) fn form_of(head: &RequestHead) -> Form {
    match content_type(head) {
        ContentType::Json | ContentType::Other | ContentType::Proto | ContentType::Unclear => {
            Form::Grpc
        }
        ContentType::NotGrpc | ContentType::Web => Form::Http,
    }
}

/// Of a content type that stands twice, the one that looks most like gRPC counts, and as an unclear one.
fn content_type(head: &RequestHead) -> ContentType {
    match head.header("content-type") {
        [] => ContentType::NotGrpc,
        [only] => ContentType::parse(only),
        several => {
            let is_grpc = |value: &Vec<u8>| ContentType::parse(value) != ContentType::NotGrpc;
            if several.iter().any(is_grpc) {
                ContentType::Unclear
            } else {
                ContentType::NotGrpc
            }
        }
    }
}

impl GrpcCall {
    /// Reads the head of a request that is held. `None` where it is no gRPC, or gRPC-Web that nobody unpacked: then it is held as
    /// any other request, by its bytes.
    ///
    /// # Errors
    ///
    /// Why it has to be refused: it says that it is gRPC, and no server would take it so, or not all would.
    pub fn of(
        head: &RequestHead,
        config: &GrpcConfig,
        max_message_bytes: usize,
    ) -> Result<Option<Self>, Reason> {
        let kind = content_type(head);
        match kind {
            ContentType::NotGrpc | ContentType::Web => return Ok(None),
            ContentType::Json | ContentType::Other | ContentType::Proto => {}
            ContentType::Unclear => return Err(Reason::MalformedCall),
        }
        let spelled = head.header("content-type").first();
        let spelled = spelled.map(Vec::as_slice).unwrap_or_default();
        let spelled = String::from_utf8_lossy(spelled).to_ascii_lowercase();
        let target = head.target.as_deref().unwrap_or_default();
        let method = Method::parse(target).filter(|_| head.method == b"POST");
        let method = method.ok_or(Reason::MalformedCall)?;
        let encoding = match head.header("grpc-encoding") {
            [] => Encoding::parse(None),
            [only] => Encoding::parse(Some(only)),
            _ => Err(EncodingError::Unsupported),
        };
        let descriptor = config.descriptors.as_ref();
        let descriptor = descriptor.and_then(|descriptors| descriptors.method(&method));
        let messages = match descriptor.map(|descriptor| descriptor.client_streaming) {
            Some(true) => Messages::Many,
            Some(false) => Messages::One,
            None => Messages::Unknown,
        };
        let waits = head.header("grpc-timeout").iter();
        let waits = waits.filter_map(|value| timeout(value)).map(in_ms);
        Ok(Some(Self {
            is_json: kind == ContentType::Json,
            content_type: (kind != ContentType::Proto).then_some(spelled),
            encoding: encoding.map_err(|_| Reason::MessageUnreadable)?,
            descriptors: config.descriptors.clone(),
            messages,
            deadline_ms: waits.min(),
            max_message_bytes,
            method,
        }))
    }

    /// A reader for the call's messages.
    pub const fn deframer(&self) -> Deframer {
        Deframer::new(self.max_message_bytes)
    }

    /// What a person is shown of one message: the method's path, and the message as text. A call without a message is shown by its
    /// path alone.
    ///
    /// # Errors
    ///
    /// Why the call has to be refused: nobody could read the message, or not all of it.
    pub fn statement(&self, frame: Option<Frame>) -> Result<Statement, Reason> {
        let path = self.method.path();
        let Some(frame) = frame else {
            return Ok(Statement::grpc(path, None, None));
        };
        let most = self.max_message_bytes;
        let message = self.encoding.message(frame, most).map_err(why_encoding)?;
        let text = if self.is_json {
            json_text(&message, most)
        } else {
            let descriptors = self.descriptors.as_ref();
            let method = descriptors.and_then(|descriptors| descriptors.method(&self.method));
            message_text(&message, method.map(|method| method.input), most)
        };
        let text = text.map_err(|_| Reason::MessageTooLarge)?;
        let content_type = self.content_type.as_deref();
        Ok(Statement::grpc(path, content_type, Some(&text.text)))
    }

    /// [`GrpcCall::statement`] for the whole body of a call that has one message.
    ///
    /// # Errors
    ///
    /// As there, and where the body is not one message.
    pub fn statement_of(&self, body: &[u8]) -> Result<Statement, Reason> {
        let mut deframer = self.deframer();
        let mut rest = body;
        let first = deframer.read(&mut rest).map_err(why_frame)?;
        if deframer.read(&mut rest).map_err(why_frame)?.is_some() {
            return Err(Reason::StreamingDenied);
        }
        deframer.end().map_err(why_frame)?;
        self.statement(first)
    }
}

/// Why a stream that cannot be taken apart is refused.
pub(super) const fn why_frame(fault: FrameError) -> Reason {
    match fault {
        FrameError::TooLarge { .. } => Reason::MessageTooLarge,
        FrameError::CompressedFlag(_) | FrameError::EndInsideMessage => Reason::MessageUnreadable,
    }
}

const fn why_encoding(fault: EncodingError) -> Reason {
    match fault {
        EncodingError::TooLarge(_) => Reason::MessageTooLarge,
        EncodingError::CompressedIdentity
        | EncodingError::Malformed(_)
        | EncodingError::Unsupported => Reason::MessageUnreadable,
    }
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
