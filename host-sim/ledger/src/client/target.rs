//! Owns where a call goes and with what: address, metadata, deadline, compression, checked before anything is sent. The
//! client drives it. It must not know any method.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use tonic::{metadata::MetadataMap, transport::Endpoint};

use super::CallError;
use crate::limits::CONNECT_TIMEOUT;

/// Where a call goes, and with what.
#[derive(Clone, Debug)]
pub struct Target {
    /// `host:port` or `http://host:port`.
    pub address: String,
    /// What the caller sends along, in order; a name may stand several times. Values under names in `-bin` are base64.
    pub metadata: Vec<(String, String)>,
    /// How long the whole call may take. The server is told, too.
    pub deadline: Option<Duration>,
    /// Compress what is sent, and accept compressed answers.
    pub gzip: bool,
}

impl Target {
    /// This address, without metadata, deadline or compression.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            metadata: Vec::new(),
            deadline: None,
            gzip: false,
        }
    }

    pub(super) fn endpoint(&self) -> Result<Endpoint, CallError> {
        let wrong = |problem: String| CallError::Address {
            found: self.address.clone(),
            problem,
        };
        let url = if self.address.contains("://") {
            self.address.clone()
        } else {
            format!("http://{}", self.address)
        };
        let uri: Uri = url.parse().map_err(|cause| wrong(format!("{cause}")))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("the scheme is not http".to_owned()));
        }
        if uri.port_u16().is_none() {
            return Err(wrong("the port is missing".to_owned()));
        }
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(wrong("there is a path behind the port".to_owned()));
        }
        let endpoint = Endpoint::new(uri)
            .and_then(|endpoint| endpoint.user_agent(USER_AGENT))
            .map_err(|cause| wrong(cause.to_string()))?;
        Ok(endpoint.connect_timeout(CONNECT_TIMEOUT))
    }

    pub(super) fn metadata_map(&self) -> Result<MetadataMap, CallError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.metadata {
            let wrong = |problem: &str| CallError::Metadata {
                name: name.clone(),
                problem: problem.to_owned(),
            };
            let key = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| wrong("the name has characters that no name has"))?;
            if key.as_str().starts_with("grpc-") || RESERVED.contains(&key.as_str()) {
                return Err(wrong("the name is gRPC's or HTTP's own"));
            }
            let value = HeaderValue::from_str(value)
                .map_err(|_| wrong("the value is not visible ASCII"))?;
            headers.append(key, value);
        }
        Ok(MetadataMap::from_headers(headers))
    }
}

const USER_AGENT: &str = concat!("host-sim-ledger/", env!("CARGO_PKG_VERSION"));

/// Names that HTTP/2 (RFC 9113, section 8.2.2) or gRPC sets or forbids; tonic would drop them or break the call.
const RESERVED: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
