//! Turns what the files of a set declare into the index: names become places, and features become shapes.

use super::super::order::order;
use super::read::{Declared, DeclaredField, DeclaredMessage};
use super::{
    DescriptorError, Descriptors, Field, Kind, Message, MethodEntry, Named, Refusal, Shape,
    WellKnown,
};

const REQUIRED: u64 = 2;
const REPEATED: u64 = 3;

/// Builds the index.
pub(super) fn resolve(declared: Declared<'_>) -> Result<Descriptors, Refusal> {
    let mut types = Vec::new();
    for (at, message) in declared.messages.iter().enumerate() {
        types.push((message.full_name.as_str(), message.file, Named::Message(at)));
    }
    for (at, found) in declared.enums.iter().enumerate() {
        types.push((found.full_name.as_str(), found.file, Named::Enum(at)));
    }
    let mut names = Vec::with_capacity(types.len());
    for at in in_order(types.len(), &|at| {
        types.get(at).map(|(name, file, _)| (*name, *file))
    })? {
        if let Some((name, _, named)) = types.get(at) {
            names.push(((*name).into(), *named));
        }
    }
    let context = Context {
        names: &names,
        declared: &declared,
    };
    let mut extensions = Vec::new();
    for (name, extension) in &declared.extensions {
        // Options are extended as well, and often by sets that do not hold descriptor.proto.
        if let Some(Named::Message(at)) = context.find(extension.extendee) {
            extensions.push((at, Some(name.as_str()), extension));
        }
    }
    let mut messages = Vec::with_capacity(declared.messages.len());
    for (at, message) in declared.messages.iter().enumerate() {
        let mut fields = Vec::with_capacity(message.fields.len());
        for field in &message.fields {
            fields.push((None, field));
        }
        for (extendee, name, extension) in &extensions {
            if *extendee == at {
                fields.push((*name, *extension));
            }
        }
        messages.push(context.message(message, &fields)?);
    }
    let mut methods = Vec::with_capacity(declared.methods.len());
    let path = |at: usize| {
        declared
            .methods
            .get(at)
            .map(|method| (&*method.path, method.file))
    };
    for at in in_order(declared.methods.len(), &path)? {
        let Some(method) = declared.methods.get(at) else {
            continue;
        };
        let entry = MethodEntry {
            input: context.message_named(method.input, method.file)?,
            output: context.message_named(method.output, method.file)?,
            client_streaming: method.client_streaming,
            server_streaming: method.server_streaming,
        };
        methods.push((method.path.as_str().into(), entry));
    }
    let mut enums = Vec::with_capacity(declared.enums.len());
    for found in declared.enums {
        enums.push(found.body);
    }
    Ok(Descriptors {
        messages,
        enums,
        names,
        methods,
    })
}

/// The order of things by their names, each of which may stand once; the file of each is told if it does not.
fn in_order<'n>(
    count: usize,
    name_and_file: &dyn Fn(usize) -> Option<(&'n str, &'n str)>,
) -> Result<Vec<usize>, Refusal> {
    let name = |at| name_and_file(at).map(|(name, _)| name);
    let order = order(count, &|left, right| name(left) < name(right));
    for pair in order.windows(2) {
        if let [left, right] = pair
            && let (Some(left), Some((name, file))) = (name(*left), name_and_file(*right))
            && left == name
        {
            return Err(Box::new(DescriptorError::DefinedTwice {
                file: file.to_owned(),
                name: name.to_owned(),
            }));
        }
    }
    Ok(order)
}

struct Context<'c> {
    names: &'c [(Box<str>, Named)],
    declared: &'c Declared<'c>,
}

impl Context<'_> {
    /// Finds a type by the absolute name that compilers write: a dot, then the full name.
    fn find(&self, type_name: &str) -> Option<Named> {
        super::find(self.names, type_name.strip_prefix('.')?).copied()
    }

    fn is_map_entry(&self, message: usize) -> bool {
        let found = self.declared.messages.get(message);
        found.is_some_and(|found| found.is_map_entry)
    }

    fn named(&self, type_name: &str, file: &str) -> Result<Named, Refusal> {
        self.find(type_name)
            .ok_or_else(|| unresolved(type_name, file))
    }

    fn message_named(&self, type_name: &str, file: &str) -> Result<usize, Refusal> {
        match self.named(type_name, file)? {
            Named::Message(at) => Ok(at),
            Named::Enum(_) => Err(unresolved(type_name, file)),
        }
    }

    /// The message of these fields, its extensions among them.
    fn message(
        &self,
        message: &DeclaredMessage<'_>,
        declared: &[(Option<&str>, &DeclaredField<'_>)],
    ) -> Result<Message, Refusal> {
        let number = |at: usize| declared.get(at).map(|(_, field)| field.number);
        let places = order(declared.len(), &|left, right| number(left) < number(right));
        let mut fields: Vec<Field> = Vec::with_capacity(declared.len());
        for at in &places {
            let Some((extension, found)) = declared.get(*at) else {
                continue;
            };
            let field = self.field(found, *extension, message)?;
            if fields
                .last()
                .is_some_and(|last| last.number == field.number)
            {
                return Err(invalid(found.file, &message.full_name, found.name));
            }
            fields.push(field);
        }
        let name = |at: usize| fields.get(at).map(|field| &*field.json_name);
        let mut shared = Vec::new();
        for pair in order(fields.len(), &|left, right| name(left) < name(right)).windows(2) {
            if let [left, right] = pair
                && name(*left) == name(*right)
            {
                shared.extend([*left, *right]);
            }
        }
        for at in &shared {
            let found = places.get(*at).and_then(|place| declared.get(*place));
            if let (Some(field), Some((_, found))) = (fields.get_mut(*at), found) {
                field.json_name = found.name.into();
            }
        }
        // A map's reader asks for both, and for nothing else.
        let has = |number| fields.iter().any(|field| field.number == number);
        if message.is_map_entry && !(has(1) && has(2)) {
            return Err(invalid(message.file, &message.full_name, "key or value"));
        }
        Ok(Message {
            full_name: message.full_name.as_str().into(),
            well_known: WellKnown::of(&message.full_name),
            has_shared_names: !shared.is_empty(),
            fields,
        })
    }

    fn field(
        &self,
        declared: &DeclaredField<'_>,
        extension: Option<&str>,
        message: &DeclaredMessage<'_>,
    ) -> Result<Field, Refusal> {
        let invalid = || invalid(declared.file, &message.full_name, declared.name);
        let number = u32::try_from(declared.number).map_err(|_| invalid())?;
        if number == 0 || number >= 1 << 29 || declared.name.is_empty() {
            return Err(invalid());
        }
        let kind = self
            .kind(declared, message.is_map_entry)?
            .ok_or_else(invalid)?;
        let is_map = matches!(kind, Kind::Message(at) if self.is_map_entry(at));
        let is_message = matches!(kind, Kind::Group(_) | Kind::Message(_));
        let shape = if is_map {
            Shape::Map
        } else if declared.label == REPEATED {
            Shape::List {
                is_packed: declared.features.is_packed && is_packable(kind),
            }
        } else if declared.features.has_presence
            || declared.oneof.is_some()
            || declared.label == REQUIRED
            || extension.is_some()
            || is_message
        {
            Shape::Explicit
        } else {
            Shape::Implicit
        };
        let json_name = match (extension, declared.json_name) {
            (Some(full_name), _) => format!("[{full_name}]"),
            (None, "") => camel_case(declared.name),
            (None, name) => name.to_owned(),
        };
        Ok(Field {
            number,
            json_name: json_name.into(),
            kind,
            shape,
            oneof: declared.oneof,
        })
    }

    /// The type of a field by its number in descriptor.proto; `None` if there is no such.
    fn kind(
        &self,
        declared: &DeclaredField<'_>,
        in_map_entry: bool,
    ) -> Result<Option<Kind>, Refusal> {
        if !declared.type_name.is_empty() {
            let named = self.named(declared.type_name, declared.file)?;
            return Ok(match (named, declared.type_code) {
                (Named::Enum(at), 0 | 14) => Some(Kind::Enum(at)),
                (Named::Message(at), 10) => Some(Kind::Group(at)),
                (Named::Message(at), 0 | 11) => {
                    // Maps and their entries are never between group tags, whatever the file says.
                    let is_map = self.is_map_entry(at);
                    let is_group = declared.features.is_delimited && !is_map && !in_map_entry;
                    Some(if is_group {
                        Kind::Group(at)
                    } else {
                        Kind::Message(at)
                    })
                }
                (Named::Enum(_) | Named::Message(_), _) => None,
            });
        }
        Ok(match declared.type_code {
            1 => Some(Kind::Double),
            2 => Some(Kind::Float),
            3 => Some(Kind::Int64),
            4 => Some(Kind::Uint64),
            5 => Some(Kind::Int32),
            6 => Some(Kind::Fixed64),
            7 => Some(Kind::Fixed32),
            8 => Some(Kind::Bool),
            9 => Some(Kind::String),
            12 => Some(Kind::Bytes),
            13 => Some(Kind::Uint32),
            15 => Some(Kind::Sfixed32),
            16 => Some(Kind::Sfixed64),
            17 => Some(Kind::Sint32),
            18 => Some(Kind::Sint64),
            _ => None,
        })
    }
}

fn invalid(file: &str, message: &str, field: &str) -> Refusal {
    Box::new(DescriptorError::InvalidField {
        file: file.to_owned(),
        message: message.to_owned(),
        field: field.to_owned(),
    })
}

fn unresolved(type_name: &str, file: &str) -> Refusal {
    Box::new(DescriptorError::UnresolvedType {
        file: file.to_owned(),
        name: type_name.trim_start_matches('.').to_owned(),
    })
}

const fn is_packable(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Bytes | Kind::Group(_) | Kind::Message(_) | Kind::String
    )
}

/// The JSON name of a field whose descriptor has none (protobuf.dev, ProtoJSON Format).
fn camel_case(name: &str) -> String {
    let mut camel = String::new();
    let mut is_after_underscore = false;
    for letter in name.chars() {
        if letter == '_' {
            is_after_underscore = true;
        } else if is_after_underscore {
            camel.push(letter.to_ascii_uppercase());
            is_after_underscore = false;
        } else {
            camel.push(letter);
        }
    }
    camel
}
