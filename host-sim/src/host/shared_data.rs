//! Values that VMs share, each with a number that changes at every write.

use std::collections::BTreeMap;

use crate::abi::Status;

/// All shared values. They live in namespaces by VM id, so plugins with one id (the empty one too) see each other's.
#[derive(Debug, Default)]
pub(crate) struct SharedData {
    values: BTreeMap<(String, Vec<u8>), (Vec<u8>, u32)>,
    last_cas: u32,
    /// So many of the next writes meet a value that has just changed.
    lost_writes: u32,
}

impl SharedData {
    pub(crate) fn get(&self, vm_id: &str, key: &[u8]) -> Result<(Vec<u8>, u32), Status> {
        let found = self.values.get(&place(vm_id, key));
        found.cloned().ok_or(Status::NotFound)
    }

    pub(crate) fn value(&self, vm_id: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.get(vm_id, key).ok().map(|(value, _)| value)
    }

    /// Writes when `cas` is 0 or still the number of the value. On a missing key every number is right, as in Envoy.
    pub(crate) fn set(
        &mut self,
        vm_id: &str,
        key: &[u8],
        value: Vec<u8>,
        cas: u32,
    ) -> Result<(), Status> {
        if cas != 0 && self.lost_writes > 0 {
            self.lost_writes -= 1;
            return Err(Status::CasMismatch);
        }
        let place = place(vm_id, key);
        let found = self.values.get(&place).map(|(_, found)| *found);
        if cas != 0 && found.is_some_and(|found| found != cas) {
            return Err(Status::CasMismatch);
        }
        self.last_cas = self.last_cas.wrapping_add(1).max(1);
        self.values.insert(place, (value, self.last_cas));
        Ok(())
    }

    pub(crate) fn overwrite(&mut self, vm_id: &str, key: &[u8], value: &[u8]) {
        let _always_ok = self.set(vm_id, key, value.to_vec(), 0);
    }

    /// Lets the next `count` compare-and-swap writes fail, as if another VM had been faster each time.
    pub(crate) fn lose_writes(&mut self, count: u32) {
        self.lost_writes = count;
    }
}

fn place(vm_id: &str, key: &[u8]) -> (String, Vec<u8>) {
    (vm_id.to_owned(), key.to_vec())
}
