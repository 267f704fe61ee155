//! The proxy-wasm ABI as numbers and bytes: versions, statuses, kinds of maps and buffers, and how header pairs are packed.
//! Source: the proxy-wasm specification, `abi-versions/`, and what Envoy 1.40 makes of it.

pub mod pairs;
pub(crate) mod protobuf;
mod status;

pub use status::Status;

/// The version of the ABI that a module asks for by an export without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbiVersion {
    /// `proxy_abi_version_0_1_0`
    V0_1_0,
    /// `proxy_abi_version_0_2_0`
    V0_2_0,
    /// `proxy_abi_version_0_2_1`
    V0_2_1,
}

impl AbiVersion {
    /// The export that marks a module of this version.
    pub fn marker(self) -> &'static str {
        match self {
            AbiVersion::V0_1_0 => "proxy_abi_version_0_1_0",
            AbiVersion::V0_2_0 => "proxy_abi_version_0_2_0",
            AbiVersion::V0_2_1 => "proxy_abi_version_0_2_1",
        }
    }

    /// Every version, oldest first.
    pub const ALL: [AbiVersion; 3] = [AbiVersion::V0_1_0, AbiVersion::V0_2_0, AbiVersion::V0_2_1];
}

/// One of the two ways through a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the upstream (Envoy: decoding).
    Request,
    /// From the upstream to the client (Envoy: encoding).
    Response,
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl $name {
            /// The value behind a number of the ABI; `None` for a number that means nothing.
            pub fn from_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// What the header functions can be asked about.
    MapType {
        /// Headers of the request.
        RequestHeaders = 0,
        /// Trailers of the request.
        RequestTrailers = 1,
        /// Headers of the response.
        ResponseHeaders = 2,
        /// Trailers of the response.
        ResponseTrailers = 3,
        /// Initial metadata that a gRPC callout's peer has sent.
        GrpcInitialMetadata = 4,
        /// Trailing metadata that a gRPC callout's peer has sent.
        GrpcTrailingMetadata = 5,
        /// Headers of a callout's answer.
        HttpCallResponseHeaders = 6,
        /// Trailers of a callout's answer.
        HttpCallResponseTrailers = 7,
    }
}

numbered! {
    /// What the buffer functions can be asked about.
    BufferType {
        /// Body of the request.
        RequestBody = 0,
        /// Body of the response.
        ResponseBody = 1,
        /// Bytes of a TCP connection from downstream. No HTTP filter sees any.
        DownstreamData = 2,
        /// Bytes of a TCP connection from upstream. No HTTP filter sees any.
        UpstreamData = 3,
        /// Body of a callout's answer.
        HttpCallResponseBody = 4,
        /// A message of a gRPC callout.
        GrpcReceiveMessage = 5,
        /// Configuration of the VM.
        VmConfiguration = 6,
        /// Configuration of the plugin.
        PluginConfiguration = 7,
        /// Arguments of a foreign function call that the host makes.
        CallData = 8,
    }
}

numbered! {
    /// Kinds of metrics.
    MetricType {
        /// Only grows.
        Counter = 0,
        /// Goes up and down.
        Gauge = 1,
        /// Takes samples and cannot be read back by a filter.
        Histogram = 2,
    }
}

numbered! {
    /// Levels of log lines.
    LogLevel {
        /// Finest.
        Trace = 0,
        /// For developers.
        Debug = 1,
        /// Normal events.
        Info = 2,
        /// Something unexpected.
        Warn = 3,
        /// Something failed.
        Error = 4,
        /// The VM is about to fail.
        Critical = 5,
    }
}

impl LogLevel {
    /// The name that Envoy writes.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Trace => "trace",
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
        }
    }
}
