//! A host function's view of the guest that called it: memory in and out, state, and the two ways to fail.

use wasmtime::{AsContext, AsContextMut, Caller, Memory};

use super::VmState;
use crate::abi::Status;

/// How a host function ends other than well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The guest gets this status.
    Status(Status),
    /// The guest stops here: a trap, with the reason in words.
    Stop(String),
}

impl Failure {
    /// The guest called `name` in a function that runs before the host is ready for it.
    pub(crate) fn too_early(name: &str, callback: &str) -> Failure {
        Failure::Stop(format!(
            "{name} cannot be called during {callback}: the host is not ready before it returns"
        ))
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::Status(status)
    }
}

/// What a host function returns.
pub(crate) type Answer = Result<(), Failure>;

/// The guest during one host function.
pub(crate) struct Guest<'a, 'b> {
    caller: &'a mut Caller<'b, VmState>,
    /// The arguments as the trace shows them, where the function says more than its numbers do.
    pub(crate) shown: Option<String>,
}

impl<'a, 'b> Guest<'a, 'b> {
    pub(crate) fn new(caller: &'a mut Caller<'b, VmState>) -> Guest<'a, 'b> {
        Guest {
            caller,
            shown: None,
        }
    }

    pub(crate) fn state(&self) -> &VmState {
        self.caller.data()
    }

    pub(crate) fn state_mut(&mut self) -> &mut VmState {
        self.caller.data_mut()
    }

    /// Tells the trace what the arguments mean.
    pub(crate) fn show(&mut self, arguments: impl FnOnce() -> String) {
        if self.state().trace.is_recording() {
            self.shown = Some(arguments());
        }
    }

    /// Copies bytes out of the guest's memory.
    pub(crate) fn read(&mut self, pointer: u32, size: u32) -> Result<Vec<u8>, Failure> {
        let memory = self.memory()?;
        let range = range(pointer, size);
        let bytes = range.and_then(|range| memory.data(self.caller.as_context()).get(range));
        Ok(bytes.ok_or(Status::InvalidMemoryAccess)?.to_vec())
    }

    /// Reads a text; bytes that are no UTF-8 are replaced, as only logs and names are read so.
    pub(crate) fn text(&mut self, pointer: u32, size: u32) -> Result<String, Failure> {
        let bytes = self.read(pointer, size)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Writes into memory that the guest owns.
    pub(crate) fn write(&mut self, pointer: u32, bytes: &[u8]) -> Result<(), Failure> {
        let memory = self.memory()?;
        let size = u32::try_from(bytes.len()).map_err(|_| Status::InvalidMemoryAccess)?;
        let range = range(pointer, size).ok_or(Status::InvalidMemoryAccess)?;
        let place = memory.data_mut(self.caller.as_context_mut()).get_mut(range);
        place
            .ok_or(Status::InvalidMemoryAccess)?
            .copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn write_u32(&mut self, pointer: u32, value: u32) -> Result<(), Failure> {
        self.write(pointer, &value.to_le_bytes())
    }

    pub(crate) fn write_u64(&mut self, pointer: u32, value: u64) -> Result<(), Failure> {
        self.write(pointer, &value.to_le_bytes())
    }

    /// Hands bytes over to the guest: memory from its own allocator, then pointer and size where it wants them. For no bytes the
    /// pointer is null and nothing is allocated.
    pub(crate) fn give(
        &mut self,
        bytes: &[u8],
        pointer_out: u32,
        size_out: u32,
    ) -> Result<(), Failure> {
        let size = u32::try_from(bytes.len()).map_err(|_| Status::InvalidMemoryAccess)?;
        let mut pointer = 0;
        if size > 0 {
            pointer = self.allocate(size)?;
            self.write(pointer, bytes)?;
        }
        self.write_u32(pointer_out, pointer)?;
        self.write_u32(size_out, size)
    }

    fn allocate(&mut self, size: u32) -> Result<u32, Failure> {
        let allocator = self.state().allocator().ok_or(Status::InternalFailure)?;
        let pointer = allocator.call(self.caller.as_context_mut(), size);
        let pointer = pointer.map_err(|error| {
            Failure::Stop(format!(
                "the guest's allocator failed for {size} bytes: {error:#}"
            ))
        })?;
        if pointer == 0 {
            return Err(Status::InvalidMemoryAccess.into());
        }
        Ok(pointer)
    }

    fn memory(&mut self) -> Result<Memory, Failure> {
        if let Some(memory) = self.state().memory {
            return Ok(memory);
        }
        // During instantiation itself.
        let export = self.caller.get_export("memory");
        let memory = export.and_then(wasmtime::Extern::into_memory);
        memory.ok_or_else(|| Failure::Stop("the module exports no memory".to_owned()))
    }
}

fn range(pointer: u32, size: u32) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(pointer).ok()?;
    Some(start..start.checked_add(usize::try_from(size).ok()?)?)
}
