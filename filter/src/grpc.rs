//! gRPC as a person reads it: a stream becomes messages, and a message a text that an approval binds. Pure functions of
//! bytes; what is held, and what becomes of a call, is decided elsewhere.

mod descriptors;
mod encoding;
mod field_tree;
mod framing;
mod method;
mod order;
mod output;
mod protojson;
mod text;
mod wire;

pub use descriptors::{DescriptorError, Descriptors, MessageDescriptor, MethodDescriptor};
pub use encoding::{Encoding, EncodingError};
pub use framing::{Deframer, Frame, FrameError};
pub use method::{ContentType, Method, timeout};
pub use text::{MessageText, TextTooLarge, json_text, message_text};
