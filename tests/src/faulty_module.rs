//! The gate's own module with one fault built in, for what a host does when it crashes.

use wasm_encoder::{
    BlockType, CodeSection, ExportKind, ExportSection, Function, FunctionSection, Module,
    RawSection,
};
use wasmparser::{ExportSectionReader, ExternalKind, Parser, Payload, TypeRef};

/// `module` with a trap in `proxy_on_http_call_response` for answers whose body is `length` bytes long. All else is as it was.
pub fn trapping_on_answers_of(length: u32, module: &[u8]) -> Vec<u8> {
    let callback = Callback::of(module);
    let mut faulty = Module::new();
    let mut code = CodeSection::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.expect("a module");
        if let Payload::FunctionSection(section) = &payload {
            let mut functions = FunctionSection::new();
            for index in section.clone() {
                functions.function(index.expect("a type"));
            }
            functions.function(callback.type_index);
            faulty.section(&functions);
        } else if let Payload::ExportSection(section) = &payload {
            faulty.section(&callback.exports(section.clone()));
        } else if let Payload::CodeSectionEntry(body) = &payload {
            code.raw(&module[body.range()]);
            // That was the last one.
            if callback.imported + code.len() == callback.wrapper {
                code.function(&callback.trapping(length));
                faulty.section(&code);
            }
        } else if !matches!(payload, Payload::CodeSectionStart { .. })
            && let Some((id, range)) = payload.as_section()
        {
            let data = &module[range];
            faulty.section(&RawSection { id, data });
        }
    }
    faulty.finish()
}

/// The callback that traps. Indices count the imported functions first, as WebAssembly does.
struct Callback {
    function: u32,
    type_index: u32,
    imported: u32,
    /// Where the function that stands in front of it comes to stand: behind all others.
    wrapper: u32,
}

impl Callback {
    fn of(module: &[u8]) -> Callback {
        let (mut imported, mut types, mut function) = (0, Vec::new(), None);
        for payload in Parser::new(0).parse_all(module) {
            let payload = payload.expect("a module");
            if let Payload::ImportSection(imports) = payload {
                for import in imports.into_imports() {
                    let import = import.expect("an import");
                    imported += u32::from(matches!(import.ty, TypeRef::Func(_)));
                }
            } else if let Payload::FunctionSection(functions) = payload {
                let functions = functions.into_iter();
                types = functions.map(|index| index.expect("a type")).collect();
            } else if let Payload::ExportSection(exports) = payload {
                let mut exports = exports.into_iter().map(|export| export.expect("an export"));
                function = exports.find(|export| export.name == CALLBACK);
            }
        }
        let function = function.expect("the callback is exported").index;
        let defined = usize::try_from(function - imported).expect("a small index");
        Callback {
            function,
            type_index: types[defined],
            imported,
            wrapper: imported + u32::try_from(types.len()).expect("a small count"),
        }
    }

    /// All exports, with the wrapper in the callback's place.
    fn exports(&self, section: ExportSectionReader<'_>) -> ExportSection {
        let mut exports = ExportSection::new();
        for export in section {
            let export = export.expect("an export");
            let wrapped = export.name == CALLBACK;
            let index = if wrapped { self.wrapper } else { export.index };
            exports.export(export.name, kind(export.kind), index);
        }
        exports
    }

    fn trapping(&self, length: u32) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.local_get(BODY_SIZE).i32_const(length.cast_signed());
        code.i32_eq();
        code.if_(BlockType::Empty).unreachable().end();
        for argument in 0..ARGUMENTS {
            code.local_get(argument);
        }
        code.call(self.function).end();
        function
    }
}

fn kind(kind: ExternalKind) -> ExportKind {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => ExportKind::Func,
        ExternalKind::Table => ExportKind::Table,
        ExternalKind::Memory => ExportKind::Memory,
        ExternalKind::Global => ExportKind::Global,
        ExternalKind::Tag => ExportKind::Tag,
    }
}

const CALLBACK: &str = "proxy_on_http_call_response";
/// Its arguments: context, token, number of headers, size of the body, number of trailers.
const ARGUMENTS: u32 = 5;
const BODY_SIZE: u32 = 3;
