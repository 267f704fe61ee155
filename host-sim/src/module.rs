//! A compiled module: checked against the ABI when it is loaded, and kept on disk so that the next start is fast.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use wasmtime::{Cache, CacheConfig, Config, Engine, ExternType, InstancePre, Linker};

use crate::abi::AbiVersion;
use crate::error::LoadError;
use crate::hostcalls;
use crate::vm::VmState;

/// A proxy-wasm module that is known to fit this host. Cheap to clone.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    name: String,
    abi: AbiVersion,
    pre: InstancePre<VmState>,
}

impl Module {
    /// Loads a `.wasm` file (or `.wat`, its text form).
    ///
    /// Fails when the file cannot be read or the module does not fit; see [`LoadError`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Module, LoadError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| LoadError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Module::from_bytes(&path.display().to_string(), &bytes)
    }

    /// Loads a module from its bytes, binary or text; `name` names it in messages.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Module, LoadError> {
        let engine = engine();
        let module = wasmtime::Module::new(engine, bytes).map_err(|error| LoadError::Invalid {
            module: name.to_owned(),
            reason: format!("{error:#}"),
        })?;
        let abi = abi_version(name, &module)?;
        check_exports(name, &module)?;
        let linker = hostcalls::linker(engine, abi);
        check_imports(name, abi, &module, &linker)?;
        let pre = linker
            .instantiate_pre(&module)
            .map_err(|error| LoadError::Invalid {
                module: name.to_owned(),
                reason: format!("{error:#}"),
            })?;
        let name = name.to_owned();
        Ok(Module(Arc::new(Inner { name, abi, pre })))
    }

    /// What the module is called in messages: its path, or the name that was given.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The version of the ABI that it was built for.
    pub fn abi(&self) -> AbiVersion {
        self.0.abi
    }

    pub(crate) fn pre(&self) -> &InstancePre<VmState> {
        &self.0.pre
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Module")
            .field("name", &self.0.name)
            .field("abi", &self.0.abi)
            .finish()
    }
}

fn abi_version(name: &str, module: &wasmtime::Module) -> Result<AbiVersion, LoadError> {
    let marked = |abi: &AbiVersion| module.get_export(abi.marker()).is_some();
    let found = AbiVersion::ALL.into_iter().rev().find(marked);
    found.ok_or_else(|| LoadError::AbiVersionMissing {
        module: name.to_owned(),
    })
}

fn check_exports(name: &str, module: &wasmtime::Module) -> Result<(), LoadError> {
    if !matches!(module.get_export("memory"), Some(ExternType::Memory(_))) {
        return Err(LoadError::ExportMissing {
            module: name.to_owned(),
            export: "memory",
            purpose: "where the host reads and writes",
        });
    }
    let allocators = ["proxy_on_memory_allocate", "malloc"];
    if !allocators
        .iter()
        .any(|export| module.get_export(export).is_some())
    {
        return Err(LoadError::ExportMissing {
            module: name.to_owned(),
            export: "proxy_on_memory_allocate or malloc",
            purpose: "with which the host makes room for what it hands over",
        });
    }
    Ok(())
}

fn check_imports(
    name: &str,
    abi: AbiVersion,
    module: &wasmtime::Module,
    linker: &Linker<VmState>,
) -> Result<(), LoadError> {
    let known = hostcalls::signatures(engine(), linker);
    for import in module.imports() {
        let place = format!("{}.{}", import.module(), import.name());
        let Some((_, expected)) = known.iter().find(|(known, _)| *known == place) else {
            return Err(LoadError::UnknownImport {
                module: name.to_owned(),
                import: place,
                abi: abi_number(abi),
                hint: import_hint(import.module(), import.name(), &known),
            });
        };
        let found = type_text(&import.ty());
        if found != *expected {
            return Err(LoadError::WrongType {
                module: name.to_owned(),
                item: format!("import {place}"),
                found,
                expected: expected.clone(),
            });
        }
    }
    Ok(())
}

fn import_hint(module: &str, name: &str, known: &[(String, String)]) -> String {
    let place = format!("{module}.{name}");
    let elsewhere = known
        .iter()
        .find(|(known, _)| known.ends_with(&format!(".{name}")));
    if let Some((elsewhere, _)) = elsewhere {
        return format!("it is called {elsewhere} here");
    }
    if module.starts_with("__wbindgen") {
        return "a dependency was built for the browser (wasm-bindgen); turn that feature off for this target".to_owned();
    }
    if module.starts_with("wasi") {
        return format!(
            "no proxy-wasm host gives a filter files, sockets or threads, so find what needs {place} and leave it out"
        );
    }
    "build the module for the ABI version whose marker it exports, or drop what imports it"
        .to_owned()
}

/// The parameters and results of a function as text, such as `(i32, i32) -> i32`.
pub(crate) fn type_text(ty: &ExternType) -> String {
    let ExternType::Func(function) = ty else {
        return "no function".to_owned();
    };
    let parameters: Vec<_> = function.params().map(|ty| ty.to_string()).collect();
    let results: Vec<_> = function.results().map(|ty| ty.to_string()).collect();
    format!("({}) -> ({})", parameters.join(", "), results.join(", "))
}

fn abi_number(abi: AbiVersion) -> &'static str {
    match abi {
        AbiVersion::V0_1_0 => "0.1.0",
        AbiVersion::V0_2_0 => "0.2.0",
        AbiVersion::V0_2_1 => "0.2.1",
    }
}

/// One engine for the process: modules of one engine share the compiled code of equal bytes.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut config = Config::new();
        config.cache(cache());
        Engine::new(&config).unwrap_or_default()
    })
}

/// Compiled code is kept here; without a place to write to, each start compiles anew.
fn cache() -> Option<Cache> {
    let mut config = CacheConfig::new();
    config.with_directory(cache_directory()?);
    Cache::new(config).ok()
}

fn cache_directory() -> Option<PathBuf> {
    if let Some(directory) = std::env::var_os("HOST_SIM_CACHE_DIR") {
        return Some(PathBuf::from(directory));
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    base.is_absolute().then(|| base.join("host-sim"))
}
