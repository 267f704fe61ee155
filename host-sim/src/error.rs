//! What a module did wrong, and where.

use std::fmt;
use std::path::PathBuf;

/// Why a module cannot be loaded, or its configuration cannot be used. Nothing of it runs afterwards.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file of the module cannot be read.
    #[error("cannot read the module {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are no WebAssembly, or not valid.
    #[error("{module} is no valid WebAssembly module: {reason}")]
    Invalid {
        /// The module.
        module: String,
        /// What the compiler said.
        reason: String,
    },
    /// No export tells the version of the ABI.
    #[error(
        "{module} exports none of proxy_abi_version_0_1_0, proxy_abi_version_0_2_0 and proxy_abi_version_0_2_1, so it is no \
         proxy-wasm module\nhint: in Rust, the crate must be a `cdylib` whose `proxy_wasm::main!` block is linked in"
    )]
    AbiVersionMissing {
        /// The module.
        module: String,
    },
    /// An import that no host of this ABI version has.
    #[error("{module} imports {import}, which hosts of ABI {abi} do not have\nhint: {hint}")]
    UnknownImport {
        /// The module.
        module: String,
        /// Module and name of the import.
        import: String,
        /// The version, such as `0.2.1`.
        abi: &'static str,
        /// What to do.
        hint: String,
    },
    /// An import or export with other parameters than the ABI says.
    #[error("{module}: {item} has the type {found}, and the ABI says {expected}")]
    WrongType {
        /// The module.
        module: String,
        /// `import env.proxy_log` or `export proxy_on_tick`.
        item: String,
        /// The type in the module.
        found: String,
        /// The type in the ABI.
        expected: String,
    },
    /// A necessary export is not there.
    #[error("{module} does not export {export}, {purpose}")]
    ExportMissing {
        /// The module.
        module: String,
        /// What should be there.
        export: &'static str,
        /// What the host needs it for.
        purpose: &'static str,
    },
    /// The guest trapped before it was ready.
    #[error("{module} failed while it was started\n{failure}")]
    StartFailed {
        /// The module.
        module: String,
        /// The trap.
        failure: GuestFailure,
    },
    /// `proxy_on_vm_start` or `proxy_on_configure` answered false.
    #[error(
        "{module} refused its configuration: {callback} returned false{}",
        reasons(said)
    )]
    ConfigurationRefused {
        /// The module.
        module: String,
        /// The export that said no.
        callback: &'static str,
        /// The lines that the guest logged at warning and above meanwhile.
        said: Vec<String>,
    },
}

fn reasons(lines: &[String]) -> String {
    if lines.is_empty() {
        return ", and it logged no reason".to_owned();
    }
    let lines: String = lines
        .iter()
        .map(|line| format!("\n  it logged: {line}"))
        .collect();
    lines
}

/// A guest that trapped. Its VM is lost and runs nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestFailure {
    /// The export in which it happened.
    pub callback: &'static str,
    /// The context that the callback was for.
    pub context: u32,
    /// The host function that was running, if it was one that the guest misused.
    pub hostcall: Option<&'static str>,
    /// What happened.
    pub reason: String,
    /// The guest's functions, innermost first. Names need a module that was not fully stripped.
    pub backtrace: Vec<String>,
}

impl fmt::Display for GuestFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "trap in {} of context {}",
            self.callback, self.context
        )?;
        if let Some(hostcall) = self.hostcall {
            write!(formatter, ", while it called {hostcall}")?;
        }
        write!(formatter, ": {}", self.reason)?;
        for function in &self.backtrace {
            write!(formatter, "\n    in {function}")?;
        }
        Ok(())
    }
}
