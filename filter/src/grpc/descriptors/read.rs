//! Reads the bytes of a descriptor set into what its files declare, names still unresolved. Numbers of fields are those
//! of descriptor.proto.

use super::super::order::order;
use super::super::wire::{self, Malformed, Value};
use super::features::Features;
use super::{DescriptorError, Enum, Refusal};
use crate::limits;

/// Everything that the files of a set declare, borrowed from its bytes.
#[derive(Default)]
pub(super) struct Declared<'s> {
    pub messages: Vec<DeclaredMessage<'s>>,
    pub enums: Vec<DeclaredEnum<'s>>,
    /// With their full names.
    pub extensions: Vec<(String, DeclaredField<'s>)>,
    pub methods: Vec<DeclaredMethod<'s>>,
}

pub(super) struct DeclaredMessage<'s> {
    pub file: &'s str,
    pub full_name: String,
    pub fields: Vec<DeclaredField<'s>>,
    pub is_map_entry: bool,
}

pub(super) struct DeclaredEnum<'s> {
    pub file: &'s str,
    pub full_name: String,
    pub body: Enum,
}

pub(super) struct DeclaredMethod<'s> {
    pub file: &'s str,
    pub path: String,
    pub input: &'s str,
    pub output: &'s str,
    pub client_streaming: bool,
    pub server_streaming: bool,
}

pub(super) struct DeclaredField<'s> {
    pub file: &'s str,
    pub name: &'s str,
    pub json_name: &'s str,
    pub extendee: &'s str,
    pub number: u64,
    pub label: u64,
    pub type_code: u64,
    pub type_name: &'s str,
    pub oneof: Option<u32>,
    pub features: Features,
}

/// Where a declaration stands.
struct Scope<'s> {
    file: &'s str,
    name: String,
    features: Features,
    depth: usize,
}

impl<'s> Scope<'s> {
    fn full_name(&self, name: &str) -> String {
        if self.name.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.name)
        }
    }

    fn inside(&self, name: &str, features: Features) -> Result<Self, Malformed> {
        Ok(Self {
            file: self.file,
            name: self.full_name(name),
            features,
            depth: self.depth.checked_sub(1).ok_or(Malformed)?,
        })
    }

    /// Reads an options message: its features, and one flag of it.
    fn options(
        &self,
        bytes: &'s [u8],
        features_number: u32,
        flag_number: u32,
    ) -> Result<(Features, Option<bool>), Malformed> {
        let mut features = self.features;
        let mut flag = None;
        for (number, value) in fields(bytes)? {
            match value {
                Value::Bytes(set) if number == features_number => {
                    features = features.with(set)?;
                }
                Value::Varint(value) if number == flag_number => flag = Some(value != 0),
                Value::Bytes(_)
                | Value::Fixed32(_)
                | Value::Fixed64(_)
                | Value::Group(_)
                | Value::Varint(_) => {}
            }
        }
        Ok((features, flag))
    }
}

fn fields(message: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Malformed> {
    let mut fields = Vec::new();
    for field in wire::fields(message) {
        let field = field?;
        fields.push((field.number, field.value));
    }
    Ok(fields)
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed)
}

fn malformed(file: &str) -> Refusal {
    Box::new(DescriptorError::Malformed {
        file: file.to_owned(),
    })
}

/// Reads a serialized `FileDescriptorSet`.
pub(super) fn read(set: &[u8]) -> Result<Declared<'_>, Refusal> {
    let mut declared = Declared::default();
    let mut has_file = false;
    for field in wire::fields(set) {
        let field = field.map_err(|_| malformed(""))?;
        if let (1, Value::Bytes(file)) = (field.number, field.value) {
            has_file = true;
            declared.file(file)?;
        }
    }
    if has_file {
        Ok(declared)
    } else {
        Err(Box::new(DescriptorError::NoFile))
    }
}

/// What a file says of itself.
#[derive(Default)]
struct Head<'s> {
    name: &'s str,
    package: &'s str,
    syntax: &'s str,
    edition: u64,
    options: &'s [u8],
}

impl<'s> Head<'s> {
    fn read(&mut self, bytes: &'s [u8]) -> Result<(), Malformed> {
        for (number, value) in fields(bytes)? {
            match (number, value) {
                (1, Value::Bytes(name)) => self.name = text(name)?,
                (2, Value::Bytes(package)) => self.package = text(package)?,
                (8, Value::Bytes(options)) => self.options = options,
                (12, Value::Bytes(syntax)) => self.syntax = text(syntax)?,
                (14, Value::Varint(edition)) => self.edition = edition,
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'s> Declared<'s> {
    fn file(&mut self, bytes: &'s [u8]) -> Result<(), Refusal> {
        let mut head = Head::default();
        if head.read(bytes).is_err() {
            return Err(malformed(head.name));
        }
        let Some(features) = Features::of_file(head.syntax, head.edition) else {
            let edition = match head.edition {
                0 => head.syntax.to_owned(),
                number => number.to_string(),
            };
            return Err(Box::new(DescriptorError::UnknownEdition {
                file: head.name.to_owned(),
                edition,
            }));
        };
        let scope = Scope {
            file: head.name,
            name: head.package.to_owned(),
            features,
            depth: limits::GRPC_DEPTH,
        };
        self.contents(bytes, head.options, scope)
            .map_err(|_| malformed(head.name))
    }

    fn contents(
        &mut self,
        bytes: &'s [u8],
        options: &'s [u8],
        mut scope: Scope<'s>,
    ) -> Result<(), Malformed> {
        (scope.features, _) = scope.options(options, 50, 0)?;
        for (number, value) in fields(bytes)? {
            match (number, value) {
                (4, Value::Bytes(message)) => self.message(message, &scope)?,
                (5, Value::Bytes(body)) => self.enumeration(body, &scope)?,
                (6, Value::Bytes(service)) => self.service(service, &scope)?,
                (7, Value::Bytes(field)) => self.extension(field, &scope)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn extension(&mut self, bytes: &'s [u8], scope: &Scope<'s>) -> Result<(), Malformed> {
        let field = field_of(bytes, scope)?;
        self.extensions.push((scope.full_name(field.name), field));
        Ok(())
    }

    fn message(&mut self, bytes: &'s [u8], outer: &Scope<'s>) -> Result<(), Malformed> {
        let parts = fields(bytes)?;
        let (mut name, mut features, mut is_map_entry) = ("", outer.features, None);
        for (number, value) in &parts {
            match (number, *value) {
                (1, Value::Bytes(bytes)) => name = text(bytes)?,
                (7, Value::Bytes(bytes)) => {
                    (features, is_map_entry) = outer.options(bytes, 12, 7)?;
                }
                _ => {}
            }
        }
        let scope = outer.inside(name, features)?;
        let mut message = DeclaredMessage {
            file: scope.file,
            full_name: scope.name.clone(),
            fields: Vec::new(),
            is_map_entry: is_map_entry == Some(true),
        };
        for (number, value) in parts {
            match (number, value) {
                (2, Value::Bytes(field)) => message.fields.push(field_of(field, &scope)?),
                (3, Value::Bytes(nested)) => self.message(nested, &scope)?,
                (4, Value::Bytes(body)) => self.enumeration(body, &scope)?,
                (6, Value::Bytes(field)) => self.extension(field, &scope)?,
                _ => {}
            }
        }
        self.messages.push(message);
        Ok(())
    }

    fn enumeration(&mut self, bytes: &'s [u8], scope: &Scope<'s>) -> Result<(), Malformed> {
        let (mut name, mut features, mut values) = ("", scope.features, Vec::new());
        for (number, value) in fields(bytes)? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => name = text(bytes)?,
                (2, Value::Bytes(bytes)) => values.push(enum_value_of(bytes)?),
                (3, Value::Bytes(bytes)) => (features, _) = scope.options(bytes, 7, 0)?,
                _ => {}
            }
        }
        // Equal numbers stay in their order, so that the first of several names comes first.
        let number = |at: usize| values.get(at).map(|(number, _)| *number);
        let mut ordered: Vec<(i32, Box<str>)> = Vec::with_capacity(values.len());
        for at in order(values.len(), &|left, right| number(left) < number(right)) {
            if let Some((number, name)) = values.get(at) {
                ordered.push((*number, (*name).into()));
            }
        }
        let full_name = scope.full_name(name);
        self.enums.push(DeclaredEnum {
            file: scope.file,
            body: Enum {
                is_closed: features.is_closed,
                is_null: full_name == "google.protobuf.NullValue",
                values: ordered,
            },
            full_name,
        });
        Ok(())
    }

    fn service(&mut self, bytes: &'s [u8], scope: &Scope<'s>) -> Result<(), Malformed> {
        let mut service = "";
        let parts = fields(bytes)?;
        for (number, value) in &parts {
            if let (1, Value::Bytes(name)) = (number, value) {
                service = text(name)?;
            }
        }
        for (number, value) in parts {
            let (2, Value::Bytes(bytes)) = (number, value) else {
                continue;
            };
            let mut name = "";
            let mut method = DeclaredMethod {
                file: scope.file,
                path: String::new(),
                input: "",
                output: "",
                client_streaming: false,
                server_streaming: false,
            };
            for (number, value) in fields(bytes)? {
                match (number, value) {
                    (1, Value::Bytes(bytes)) => name = text(bytes)?,
                    (2, Value::Bytes(bytes)) => method.input = text(bytes)?,
                    (3, Value::Bytes(bytes)) => method.output = text(bytes)?,
                    (5, Value::Varint(flag)) => method.client_streaming = flag != 0,
                    (6, Value::Varint(flag)) => method.server_streaming = flag != 0,
                    _ => {}
                }
            }
            method.path = format!("/{}/{name}", scope.full_name(service));
            self.methods.push(method);
        }
        Ok(())
    }
}

fn enum_value_of(bytes: &[u8]) -> Result<(i32, &str), Malformed> {
    let (mut name, mut value) = ("", 0);
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Value::Bytes(bytes)) => name = text(bytes)?,
            (2, Value::Varint(bits)) => {
                value = i32::try_from(bits.cast_signed()).map_err(|_| Malformed)?;
            }
            _ => {}
        }
    }
    Ok((value, name))
}

fn field_of<'s>(bytes: &'s [u8], scope: &Scope<'s>) -> Result<DeclaredField<'s>, Malformed> {
    let mut field = DeclaredField {
        file: scope.file,
        name: "",
        json_name: "",
        extendee: "",
        number: 0,
        label: 0,
        type_code: 0,
        type_name: "",
        oneof: None,
        features: scope.features,
    };
    let mut is_packed = None;
    let mut is_optional_of_proto3 = false;
    for (number, value) in fields(bytes)? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => field.name = text(bytes)?,
            (2, Value::Bytes(bytes)) => field.extendee = text(bytes)?,
            (3, Value::Varint(number)) => field.number = number,
            (4, Value::Varint(label)) => field.label = label,
            (5, Value::Varint(code)) => field.type_code = code,
            (6, Value::Bytes(bytes)) => field.type_name = text(bytes)?,
            (8, Value::Bytes(bytes)) => {
                (field.features, is_packed) = scope.options(bytes, 21, 2)?
            }
            (9, Value::Varint(oneof)) => {
                field.oneof = Some(u32::try_from(oneof).map_err(|_| Malformed)?);
            }
            (10, Value::Bytes(bytes)) => field.json_name = text(bytes)?,
            (17, Value::Varint(flag)) => is_optional_of_proto3 = flag != 0,
            _ => {}
        }
    }
    if let Some(is_packed) = is_packed {
        field.features.is_packed = is_packed;
    }
    if is_optional_of_proto3 {
        field.features.has_presence = true;
    }
    Ok(field)
}
