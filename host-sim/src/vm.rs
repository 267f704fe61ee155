//! One instance of a module: its memory, its exports, and what its host functions can reach.

mod exports;
pub(crate) mod guest;
pub(crate) mod wasi;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use wasmtime::{
    Instance, Memory, Store, StoreLimits, StoreLimitsBuilder, Trap, TypedFunc, WasmBacktrace,
};

use crate::callout::{Callouts, Delivery};
use crate::error::{GuestFailure, LoadError};
use crate::host::{Host, Inbox, LogLine, MetricIds};
use crate::module::Module;
use crate::output::Output;
use crate::plugin::Plugin;
use crate::stream::{Stream, StreamId};
use crate::trace::{Entry, Trace};
use exports::{Arguments, Callback, Exports, Returned};

/// A module's instance with its store.
pub(crate) struct Vm {
    pub(crate) store: Store<VmState>,
    exports: Exports,
}

/// What host functions reach: the host, the contexts, and the streams behind them.
pub(crate) struct VmState {
    pub(crate) host: Host,
    /// The plugin behind each root context.
    pub(crate) roots: BTreeMap<u32, Root>,
    /// The stream behind each stream context.
    pub(crate) contexts: HashMap<u32, StreamId>,
    pub(crate) streams: HashMap<StreamId, Stream>,
    /// The context that the running callback is for; 0 when none runs.
    pub(crate) current: u32,
    /// What `proxy_set_effective_context` asked for during this callback; 0 for nothing.
    pub(crate) effective: u32,
    /// The running callback.
    pub(crate) callback: &'static str,
    pub(crate) deferred: VecDeque<Deferred>,
    pub(crate) outbox: VecDeque<Output>,
    pub(crate) callouts: Callouts,
    /// What `proxy_get_status` answers: the last status that there was one of.
    pub(crate) status: u32,
    /// The answer to a callout that is being delivered.
    pub(crate) delivery: Delivery,
    /// The callback's result is overruled: it asked for a local reply or closed its stream.
    pub(crate) stop_iteration: bool,
    pub(crate) trace: Trace,
    pub(crate) inbox: Inbox,
    pub(crate) next_context: u32,
    pub(crate) metrics: MetricIds,
    /// Names that `declare_property` was called with.
    pub(crate) declared_properties: BTreeSet<Vec<u8>>,
    pub(crate) failure: Option<GuestFailure>,
    pub(crate) memory: Option<Memory>,
    allocate: Option<TypedFunc<u32, u32>>,
    limits: StoreLimits,
    /// The environment variables that WASI shows.
    pub(crate) environment: Vec<(String, String)>,
    /// The next call of this callback traps.
    pub(crate) trap_in: Option<String>,
    /// Only logging and WASI are there before the guest is initialised.
    pub(crate) starting: bool,
    /// What the guest has logged at warning and above while it was configured: the reason of a refusal.
    pub(crate) said: Vec<String>,
    /// The host function that stopped the guest.
    pub(crate) misused: Option<&'static str>,
}

/// A root context.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) tick_period: std::time::Duration,
    pub(crate) next_tick: Option<crate::clock::Moment>,
    /// It answered false to `proxy_on_done` and has not called `proxy_done` yet.
    pub(crate) lingering: bool,
}

/// What a guest asked for during a callback and gets once it is over.
#[derive(Debug)]
pub(crate) enum Deferred {
    /// Go on with a stream.
    Continue(StreamId, crate::abi::Direction),
    /// End one way of a stream.
    Close(StreamId, crate::abi::Direction),
    /// A gRPC callout could not be made.
    GrpcFailed(u32),
    /// Answer a stream.
    LocalReply(StreamId, crate::stream::LocalReply),
    /// A root context is done with what it had to finish.
    Done(u32),
}

/// The memory or the instance could not be had, or `_initialize` trapped.
pub(crate) fn start(host: &Host, plugin: &Arc<Plugin>) -> Result<Vm, LoadError> {
    let module = &plugin.module;
    let state = VmState::new(host, plugin.environment.clone(), plugin.memory_limit_bytes);
    let mut store = Store::new(crate::module::engine(), state);
    store.limiter(|state| &mut state.limits);
    let instance = module
        .pre()
        .instantiate(&mut store)
        .map_err(|error| start_failed(module, &store, "the start function", &error))?;
    let exports = Exports::find(&mut store, &instance, module, plugin)?;
    store.data_mut().memory = instance.get_memory(&mut store, "memory");
    store.data_mut().allocate = exports.allocate.clone();
    run_start_functions(&mut store, &instance, module)?;
    store.data_mut().starting = false;
    Ok(Vm { store, exports })
}

/// A reactor has `_initialize`, and `main` behind it; a command has `_start`. Source: `WasmBase::startVm` of proxy-wasm-cpp-host.
fn run_start_functions(
    store: &mut Store<VmState>,
    instance: &Instance,
    module: &Module,
) -> Result<(), LoadError> {
    if let Ok(initialize) = instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
        store.data_mut().callback = "_initialize";
        let started = initialize.call(&mut *store, ());
        started.map_err(|error| start_failed(module, store, "_initialize", &error))?;
        if let Ok(main) = instance.get_typed_func::<(u32, u32), u32>(&mut *store, "main") {
            store.data_mut().callback = "main";
            let started = main.call(&mut *store, (0, 0));
            started.map_err(|error| start_failed(module, store, "main", &error))?;
        }
    } else if let Ok(start) = instance.get_typed_func::<(), ()>(&mut *store, "_start") {
        store.data_mut().callback = "_start";
        let started = start.call(&mut *store, ());
        started.map_err(|error| start_failed(module, store, "_start", &error))?;
    }
    store.data_mut().callback = "";
    Ok(())
}

fn start_failed(
    module: &Module,
    store: &Store<VmState>,
    function: &'static str,
    error: &wasmtime::Error,
) -> LoadError {
    LoadError::StartFailed {
        module: module.name().to_owned(),
        failure: describe(store.data(), function, 0, error),
    }
}

impl VmState {
    pub(crate) fn new(
        host: &Host,
        environment: Vec<(String, String)>,
        memory_limit_bytes: usize,
    ) -> VmState {
        let limits = StoreLimitsBuilder::new()
            .memory_size(memory_limit_bytes)
            .build();
        VmState {
            host: host.clone(),
            roots: BTreeMap::new(),
            contexts: HashMap::new(),
            streams: HashMap::new(),
            current: 0,
            effective: 0,
            callback: "",
            deferred: VecDeque::new(),
            outbox: VecDeque::new(),
            callouts: Callouts::default(),
            status: 0,
            delivery: Delivery::default(),
            stop_iteration: false,
            trace: Trace::default(),
            inbox: Inbox::default(),
            next_context: 1,
            metrics: MetricIds::default(),
            declared_properties: BTreeSet::new(),
            failure: None,
            memory: None,
            allocate: None,
            limits,
            environment,
            trap_in: None,
            starting: true,
            said: Vec::new(),
            misused: None,
        }
    }

    /// The context that a host function acts for.
    pub(crate) fn acting(&self) -> u32 {
        if self.effective == 0 {
            self.current
        } else {
            self.effective
        }
    }

    /// The stream that a host function acts for, if it acts for one.
    pub(crate) fn acting_stream(&mut self) -> Option<&mut Stream> {
        let stream = self.contexts.get(&self.acting())?;
        self.streams.get_mut(stream)
    }

    /// The root context that belongs to the acting context.
    pub(crate) fn acting_root(&self) -> u32 {
        let acting = self.acting();
        let stream = self
            .contexts
            .get(&acting)
            .and_then(|stream| self.streams.get(stream));
        stream.map_or(acting, |stream| stream.root)
    }

    /// The plugin of the acting context.
    pub(crate) fn plugin(&self) -> Option<&Arc<Plugin>> {
        self.roots.get(&self.acting_root()).map(|root| &root.plugin)
    }

    /// Writes a line in the guest's name.
    pub(crate) fn log(&mut self, level: crate::abi::LogLevel, message: &str) {
        let acting = self.acting();
        let plugin = self.plugin();
        let part = |pick: fn(&Plugin) -> &str| plugin.map_or("", |plugin| pick(plugin));
        // Envoy writes the plugin's name for streams only.
        let name = if self.contexts.contains_key(&acting) {
            part(|plugin| &plugin.name)
        } else {
            ""
        };
        let words = [
            name,
            part(|plugin| &plugin.root_id),
            part(|plugin| &plugin.vm_id),
        ];
        let prefix: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let line = LogLine {
            level,
            from_guest: true,
            prefix: prefix.join(" "),
            message: message.to_owned(),
        };
        let starting = ["proxy_on_vm_start", "proxy_on_configure"].contains(&self.callback);
        if starting && level >= crate::abi::LogLevel::Warn {
            self.said.push(line.message.clone());
        }
        self.host.0.log(&line);
    }

    pub(crate) fn allocator(&self) -> Option<TypedFunc<u32, u32>> {
        self.allocate.clone()
    }

    pub(crate) fn take_context_id(&mut self) -> u32 {
        let id = self.next_context;
        self.next_context += 1;
        id
    }
}

/// What came of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called<R> {
    /// The guest has no such export, or may not have it called.
    Absent,
    /// The VM has failed, now or before.
    Failed,
    /// It returned.
    Returned(R),
}

impl Vm {
    pub(crate) fn state(&self) -> &VmState {
        self.store.data()
    }

    pub(crate) fn state_mut(&mut self) -> &mut VmState {
        self.store.data_mut()
    }

    /// Bytes of the guest's memory now.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.state()
            .memory
            .map_or(0, |memory| memory.data_size(&self.store))
    }

    /// Calls the guest for `context`. What it asked for meanwhile lies in `deferred`.
    pub(crate) fn call<P: Arguments, R: Returned>(
        &mut self,
        pick: impl Fn(&Exports) -> &Callback<P, R>,
        context: u32,
        arguments: P,
    ) -> Called<R> {
        self.store.data_mut().stop_iteration = false;
        if self.state().failure.is_some() {
            return Called::Failed;
        }
        let callback = pick(&self.exports);
        let name = callback.name;
        let Some(function) = callback.function.clone() else {
            return Called::Absent;
        };
        let state = self.store.data_mut();
        let outer = (state.current, state.effective, state.callback);
        (state.current, state.effective, state.callback) = (context, 0, name);
        if state.trace.is_recording() {
            let arguments = arguments.numbers();
            state.trace.push(Entry::Callback { name, arguments });
        }
        let outcome = if state.trap_in.as_deref() == Some(name) {
            state.trap_in = None;
            Err(wasmtime::Error::msg("a trap that the test asked for"))
        } else {
            function.call(&mut self.store, arguments)
        };
        let state = self.store.data_mut();
        (state.current, state.effective, state.callback) = outer;
        match outcome {
            Ok(value) => {
                let shown = value.number();
                state.trace.push(Entry::Returned { name, value: shown });
                Called::Returned(value)
            }
            Err(error) => {
                let failure = describe(state, name, context, &error);
                state.trace.push(Entry::Trapped { name });
                state.host.0.log(&LogLine {
                    level: crate::abi::LogLevel::Error,
                    from_guest: false,
                    prefix: String::new(),
                    message: format!("Function: {name} failed: {}", envoys_words(&error)),
                });
                state.host.0.log(&LogLine {
                    level: crate::abi::LogLevel::Critical,
                    from_guest: false,
                    prefix: String::new(),
                    message: format!("wasm vm failed: {failure}"),
                });
                state.failure = Some(failure);
                state.deferred.clear();
                Called::Failed
            }
        }
    }
}

fn describe(
    state: &VmState,
    callback: &'static str,
    context: u32,
    error: &wasmtime::Error,
) -> GuestFailure {
    let trap = error.downcast_ref::<Trap>().map(Trap::to_string);
    let backtrace = error.downcast_ref::<WasmBacktrace>();
    let frames = backtrace.map(|backtrace| {
        let frames = backtrace.frames().iter();
        frames
            .map(|frame| {
                let name = frame.func_name().map(demangled);
                name.unwrap_or_else(|| format!("function {}", frame.func_index()))
            })
            .collect()
    });
    GuestFailure {
        callback,
        context,
        hostcall: state.misused,
        reason: trap.unwrap_or_else(|| error.root_cause().to_string()),
        backtrace: frames.unwrap_or_default(),
    }
}

/// The reason as Envoy's engine words it, for those who search logs for it.
fn envoys_words(error: &wasmtime::Error) -> String {
    let words = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => "unreachable",
        Some(Trap::MemoryOutOfBounds) => "memory access out of bounds",
        Some(Trap::IntegerDivisionByZero) => "divide by zero",
        Some(Trap::IntegerOverflow) => "divide result unrepresentable",
        Some(Trap::BadConversionToInteger) => "float unrepresentable in integer range",
        Some(Trap::TableOutOfBounds) => "table index is out of bounds",
        Some(Trap::IndirectCallToNull | Trap::BadSignature) => {
            "null function or function signature mismatch"
        }
        _ => return error.root_cause().to_string(),
    };
    format!("Uncaught RuntimeError: {words}")
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
