//! Queues between VMs. A message wakes the root context that registered the queue last, on that VM's own thread.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::abi::Status;
use crate::host::locked;

/// All queues of a host.
#[derive(Default)]
pub(crate) struct Queues {
    ids: BTreeMap<(String, Vec<u8>), u32>,
    queues: BTreeMap<u32, Queue>,
    last: u32,
}

struct Queue {
    messages: VecDeque<Vec<u8>>,
    reader: Inbox,
    context: u32,
}

/// Where a VM learns that one of its queues has a message: pairs of root context and queue id. Whoever drives the VM asks for
/// them, and may be woken for it.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Mutex<InboxContent>>);

#[derive(Default)]
struct InboxContent {
    ready: VecDeque<(u32, u32)>,
    wake: Option<Box<dyn Fn() + Send>>,
}

impl Inbox {
    /// Calls `wake` whenever something has come in.
    pub(crate) fn on_message(&self, wake: impl Fn() + Send + 'static) {
        locked(&self.0).wake = Some(Box::new(wake));
    }

    pub(crate) fn take(&self) -> Option<(u32, u32)> {
        locked(&self.0).ready.pop_front()
    }

    fn put(&self, context: u32, queue: u32) {
        let mut content = locked(&self.0);
        content.ready.push_back((context, queue));
        if let Some(wake) = &content.wake {
            wake();
        }
    }
}

impl Queues {
    pub(crate) fn register(
        &mut self,
        vm_id: &str,
        name: &[u8],
        context: u32,
        reader: Inbox,
    ) -> u32 {
        let key = (vm_id.to_owned(), name.to_vec());
        let id = *self.ids.entry(key).or_insert_with(|| {
            self.last += 1;
            self.last
        });
        let queue = self.queues.entry(id).or_insert_with(|| Queue {
            messages: VecDeque::new(),
            reader: reader.clone(),
            context,
        });
        queue.reader = reader;
        queue.context = context;
        id
    }

    pub(crate) fn resolve(&self, vm_id: &str, name: &[u8]) -> Result<u32, Status> {
        let key = (vm_id.to_owned(), name.to_vec());
        self.ids.get(&key).copied().ok_or(Status::NotFound)
    }

    pub(crate) fn enqueue(&mut self, id: u32, message: Vec<u8>) -> Result<(), Status> {
        let Some(queue) = self.queues.get_mut(&id) else {
            return Err(Status::NotFound);
        };
        queue.messages.push_back(message);
        queue.reader.put(queue.context, id);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, id: u32) -> Result<Vec<u8>, Status> {
        let queue = self.queues.get_mut(&id).ok_or(Status::NotFound)?;
        queue.messages.pop_front().ok_or(Status::Empty)
    }
}
