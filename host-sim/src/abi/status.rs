//! What a host function answers.

/// The result of a host function. Source: `proxy_wasm_common.h` of the C++ SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The key, map, queue or property is not there.
    NotFound = 1,
    /// An argument has no meaning, or none at this moment.
    BadArgument = 2,
    /// A value cannot be turned into bytes.
    SerializationFailure = 3,
    /// Bytes from the guest cannot be read as what they should be.
    ParseFailure = 4,
    /// A pointer or length leaves the guest's memory.
    InvalidMemoryAccess = 6,
    /// The queue is empty.
    Empty = 7,
    /// The value has changed since it was read.
    CasMismatch = 8,
    /// The host failed, or the module may not call this function.
    InternalFailure = 10,
    /// The host does not do this.
    Unimplemented = 12,
}

impl Status {
    /// Name of the status as the SDKs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "Ok",
            Status::NotFound => "NotFound",
            Status::BadArgument => "BadArgument",
            Status::SerializationFailure => "SerializationFailure",
            Status::ParseFailure => "ParseFailure",
            Status::InvalidMemoryAccess => "InvalidMemoryAccess",
            Status::Empty => "Empty",
            Status::CasMismatch => "CasMismatch",
            Status::InternalFailure => "InternalFailure",
            Status::Unimplemented => "Unimplemented",
        }
    }
}
