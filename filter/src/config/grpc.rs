//! What the configuration says of gRPC calls.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::check::{text_of, whole_of};
use super::error::ConfigError;
use crate::grpc::Descriptors;

/// How gRPC calls are shown and taken.
#[derive(Clone, Debug, Default)]
pub struct GrpcConfig {
    /// The names of fields and the kinds of methods; `None` shows fields by number and learns the kind from the stream.
    pub descriptors: Option<Arc<Descriptors>>,
    /// What becomes of calls in which the client sends more than one message.
    pub streaming: Streaming,
}

/// What becomes of held calls in which the client sends more than one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// They are refused.
    Deny,
    /// Each message waits for an approval of its own.
    #[default]
    PerMessage,
}

/// Reads the `grpc` block; the number beside it is its `max_payload_bytes`.
pub(super) fn grpc(entries: &Map<String, Value>) -> Result<(GrpcConfig, Option<u64>), ConfigError> {
    let Some(block) = entries.get("grpc").and_then(Value::as_object) else {
        return Ok((GrpcConfig::default(), None));
    };
    let descriptors = text_of(block, "descriptors").map(descriptors).transpose()?;
    let streaming = match text_of(block, "streaming") {
        Some("deny") => Streaming::Deny,
        _ => Streaming::PerMessage,
    };
    let config = GrpcConfig {
        descriptors,
        streaming,
    };
    Ok((config, whole_of(block, "max_payload_bytes")))
}

fn descriptors(base64: &str) -> Result<Arc<Descriptors>, ConfigError> {
    let refuse = |problem: String| {
        ConfigError::new(
            "/grpc/descriptors",
            problem,
            "write what `host-sim descriptors FILE` prints; FILE comes from `protoc --include_imports --descriptor_set_out=FILE` or `buf build -o FILE.binpb`",
        )
    };
    let bytes = STANDARD
        .decode(base64)
        .map_err(|fault| refuse(format!("this is not base64: {fault}")))?;
    Descriptors::parse(&bytes)
        .map(Arc::new)
        .map_err(|fault| refuse(fault.to_string()))
}
