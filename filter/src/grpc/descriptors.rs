//! What a serialized `FileDescriptorSet` says about messages, enums and methods, as far as their text needs it. Read once;
//! whatever does not resolve refuses the whole set, since a message that is read by half a description is misread.
//!
//! Source: descriptor.proto of protobuf; protobuf.dev, Feature Settings for Editions.

mod features;
mod read;
mod resolve;

use std::fmt;

use super::method::Method;

/// An immutable index of a descriptor set.
pub struct Descriptors {
    messages: Vec<Message>,
    enums: Vec<Enum>,
    /// In the order of the names.
    names: Vec<(Box<str>, Named)>,
    /// In the order of the paths.
    methods: Vec<(Box<str>, MethodEntry)>,
}

/// What a full name stands for.
#[derive(Clone, Copy)]
enum Named {
    Enum(usize),
    Message(usize),
}

struct MethodEntry {
    input: usize,
    output: usize,
    client_streaming: bool,
    server_streaming: bool,
}

/// A method of the set.
#[derive(Clone, Copy, Debug)]
pub struct MethodDescriptor<'d> {
    /// The request message.
    pub input: MessageDescriptor<'d>,
    /// The response message.
    pub output: MessageDescriptor<'d>,
    /// Whether a call has any number of request messages.
    pub client_streaming: bool,
    /// Whether a call has any number of response messages.
    pub server_streaming: bool,
}

/// A message type of the set.
#[derive(Clone, Copy)]
pub struct MessageDescriptor<'d> {
    pub(super) descriptors: &'d Descriptors,
    pub(super) message: &'d Message,
}

/// Why a descriptor set is refused. Each text says what is missing and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// A field's number, name or type makes no sense, or stands twice.
    #[error(
        "{file}: the field `{field}` of `{message}` is invalid or stands twice; hint: {COMPILE}"
    )]
    InvalidField {
        /// The file in the set.
        file: String,
        /// Full name of the message.
        message: String,
        /// Name of the field.
        field: String,
    },
    /// Two things have one full name.
    #[error("{file}: `{name}` is defined twice; hint: leave one of the two out of the set")]
    DefinedTwice {
        /// The file with the second definition.
        file: String,
        /// The full name.
        name: String,
    },
    /// The bytes are no descriptor set.
    #[error("this is no serialized FileDescriptorSet{}; hint: {COMPILE}", place(.file))]
    Malformed {
        /// The file in the set, where known.
        file: String,
    },
    /// The set has no file.
    #[error("the descriptor set is empty; hint: {COMPILE}")]
    NoFile,
    /// A file is written in an edition whose meaning is not known here.
    #[error(
        "{file}: edition {edition} is not known here; hint: use edition 2024, 2023 or a proto2 or proto3 syntax"
    )]
    UnknownEdition {
        /// The file in the set.
        file: String,
        /// Its edition or syntax.
        edition: String,
    },
    /// A type is named that is not in the set.
    #[error("{file}: the type `{name}` is not in the descriptor set; hint: {COMPILE}")]
    UnresolvedType {
        /// The file that names it.
        file: String,
        /// The full name.
        name: String,
    },
}

/// In a box, since what reads a set passes it on in many places.
type Refusal = Box<DescriptorError>;

const COMPILE: &str = "make the set with protoc --include_imports --descriptor_set_out=FILE";

fn place(file: &str) -> String {
    if file.is_empty() {
        String::new()
    } else {
        format!(" (in {file})")
    }
}

impl Descriptors {
    /// Reads a serialized `google.protobuf.FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` and
    /// `buf build` write it.
    ///
    /// # Errors
    ///
    /// When the bytes are no such set, or something in it does not resolve.
    pub fn parse(set: &[u8]) -> Result<Self, DescriptorError> {
        let read = read::read(set).and_then(resolve::resolve);
        read.map_err(|refusal| *refusal)
    }

    /// The method of this path, if the set has it.
    #[must_use]
    pub fn method(&self, method: &Method) -> Option<MethodDescriptor<'_>> {
        let entry = find(&self.methods, method.path())?;
        Some(MethodDescriptor {
            input: self.at(entry.input)?,
            output: self.at(entry.output)?,
            client_streaming: entry.client_streaming,
            server_streaming: entry.server_streaming,
        })
    }

    /// The paths of all methods, `/package.Service/Method`, in order.
    pub fn method_paths(&self) -> impl Iterator<Item = &str> {
        self.methods.iter().map(|(path, _)| &**path)
    }

    /// The message type of this full name (without a leading dot), if the set has it.
    #[must_use]
    pub fn message(&self, full_name: &str) -> Option<MessageDescriptor<'_>> {
        match find(&self.names, full_name)? {
            Named::Message(at) => self.at(*at),
            Named::Enum(_) => None,
        }
    }

    pub(super) fn at(&self, message: usize) -> Option<MessageDescriptor<'_>> {
        Some(MessageDescriptor {
            descriptors: self,
            message: self.messages.get(message)?,
        })
    }

    pub(super) fn enum_at(&self, at: usize) -> Option<&Enum> {
        self.enums.get(at)
    }
}

/// Looks a name up in a list that is in the order of its names.
fn find<'l, T>(list: &'l [(Box<str>, T)], wanted: &str) -> Option<&'l T> {
    let at = list.partition_point(|(name, _)| **name < *wanted);
    let (name, found) = list.get(at)?;
    (**name == *wanted).then_some(found)
}

impl fmt::Debug for Descriptors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Descriptors")
            .field("messages", &self.messages.len())
            .field("methods", &self.methods.len())
            .finish_non_exhaustive()
    }
}

impl MessageDescriptor<'_> {
    /// Its full name, without a leading dot.
    #[must_use]
    pub fn full_name(&self) -> &str {
        &self.message.full_name
    }
}

impl fmt::Debug for MessageDescriptor<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.full_name())
    }
}

/// A message type.
pub(super) struct Message {
    full_name: Box<str>,
    pub well_known: Option<WellKnown>,
    /// Whether two fields share a JSON name. They then have their proto names, and which one a text means is unsure.
    pub has_shared_names: bool,
    /// In the order of their numbers.
    fields: Vec<Field>,
}

impl Message {
    pub fn field(&self, number: u32) -> Option<&Field> {
        let at = self.fields.partition_point(|field| field.number < number);
        self.fields.get(at).filter(|field| field.number == number)
    }

    pub fn has_json_name(&self, name: &str) -> bool {
        self.fields.iter().any(|field| &*field.json_name == name)
    }
}

/// A field of a message type.
pub(super) struct Field {
    pub number: u32,
    pub json_name: Box<str>,
    pub kind: Kind,
    pub shape: Shape,
    /// The group of fields of which at most one is set, by its number in the message.
    pub oneof: Option<u32>,
}

/// How often a field occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// At most once; absent and zero differ.
    Explicit,
    /// At most once; absent means zero.
    Implicit,
    /// Any number of times, and whether one record of bytes holds them all.
    List { is_packed: bool },
    /// Entries of key and value.
    Map,
}

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Bytes,
    Double,
    Enum(usize),
    Fixed32,
    Fixed64,
    Float,
    /// A message between group tags.
    Group(usize),
    Int32,
    Int64,
    /// A message in bytes.
    Message(usize),
    Sfixed32,
    Sfixed64,
    Sint32,
    Sint64,
    String,
    Uint32,
    Uint64,
}

/// An enum type.
pub(super) struct Enum {
    /// Whether numbers without a name are no values of it.
    pub is_closed: bool,
    /// `google.protobuf.NullValue`, which stands for JSON's null.
    pub is_null: bool,
    values: Vec<(i32, Box<str>)>,
}

impl Enum {
    /// The first name of a number.
    pub fn name(&self, number: i32) -> Option<&str> {
        let at = self.values.partition_point(|(value, _)| *value < number);
        let (value, name) = self.values.get(at)?;
        (*value == number).then_some(&**name)
    }
}

/// Types that JSON has a form of its own for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WellKnown {
    Any,
    Duration,
    Empty,
    FieldMask,
    ListValue,
    Struct,
    Timestamp,
    Value,
    Wrapper,
}

impl WellKnown {
    fn of(full_name: &str) -> Option<Self> {
        Some(match full_name.strip_prefix("google.protobuf.")? {
            "Any" => Self::Any,
            "Duration" => Self::Duration,
            "Empty" => Self::Empty,
            "FieldMask" => Self::FieldMask,
            "ListValue" => Self::ListValue,
            "Struct" => Self::Struct,
            "Timestamp" => Self::Timestamp,
            "Value" => Self::Value,
            "BoolValue" | "BytesValue" | "DoubleValue" | "FloatValue" | "Int32Value"
            | "Int64Value" | "StringValue" | "UInt32Value" | "UInt64Value" => Self::Wrapper,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
