//! The guest's callbacks, found once and checked against the ABI.

use std::fmt;

use wasmtime::{Instance, Store, TypedFunc, WasmParams, WasmResults};

use super::VmState;
use crate::abi::AbiVersion;
use crate::error::LoadError;
use crate::module::{Module, type_text};
use crate::plugin::Plugin;

/// One export that the host calls.
pub(crate) struct Callback<P, R> {
    pub(crate) name: &'static str,
    pub(crate) function: Option<TypedFunc<P, R>>,
}

/// The arguments of a callback as numbers, for the trace.
pub(crate) trait Arguments: WasmParams + Copy + fmt::Debug {
    /// How many there are.
    const COUNT: usize;

    fn numbers(&self) -> Vec<u64>;
}

/// The result of a callback as a number, for the trace.
pub(crate) trait Returned: WasmResults + Copy {
    /// Its type in WebAssembly's words.
    const TYPE: &'static str;

    fn number(&self) -> Option<u64>;
}

impl Returned for () {
    const TYPE: &'static str = "";

    fn number(&self) -> Option<u64> {
        None
    }
}

impl Returned for u32 {
    const TYPE: &'static str = "i32";

    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }
}

macro_rules! arguments {
    ($($($name:ident)*;)*) => {$(
        impl Arguments for ($(arguments!(@number $name),)*) {
            const COUNT: usize = [$(stringify!($name)),*].len();

            fn numbers(&self) -> Vec<u64> {
                let ($($name,)*) = *self;
                vec![$($name.into()),*]
            }
        }
    )*};
    (@number $name:ident) => { u32 };
}
arguments! { a; a b; a b c; a b c d e; }

macro_rules! exports {
    ($($field:ident: $name:literal ($($parameter:ty),*) -> $result:ty;)*) => {
        /// The callbacks of one instance.
        pub(crate) struct Exports {
            pub(crate) allocate: Option<TypedFunc<u32, u32>>,
            $(pub(crate) $field: Callback<($($parameter,)*), $result>,)*
        }

        impl Exports {
            pub(crate) fn find(
                store: &mut Store<VmState>,
                instance: &Instance,
                module: &Module,
                plugin: &Plugin,
            ) -> Result<Exports, LoadError> {
                let mut find = Find { store, instance, module, plugin };
                let allocate = find.allocator()?;
                Ok(Exports { allocate, $($field: find.callback($name)?,)* })
            }
        }
    };
}

exports! {
    on_context_create: "proxy_on_context_create" (u32, u32) -> ();
    on_vm_start: "proxy_on_vm_start" (u32, u32) -> u32;
    on_configure: "proxy_on_configure" (u32, u32) -> u32;
    on_tick: "proxy_on_tick" (u32) -> ();
    on_queue_ready: "proxy_on_queue_ready" (u32, u32) -> ();
    on_done: "proxy_on_done" (u32) -> u32;
    on_log: "proxy_on_log" (u32) -> ();
    on_delete: "proxy_on_delete" (u32) -> ();
    on_request_headers_0_1: "proxy_on_request_headers" (u32, u32) -> u32;
    on_request_headers: "proxy_on_request_headers" (u32, u32, u32) -> u32;
    on_request_body: "proxy_on_request_body" (u32, u32, u32) -> u32;
    on_request_trailers: "proxy_on_request_trailers" (u32, u32) -> u32;
    on_response_headers_0_1: "proxy_on_response_headers" (u32, u32) -> u32;
    on_response_headers: "proxy_on_response_headers" (u32, u32, u32) -> u32;
    on_response_body: "proxy_on_response_body" (u32, u32, u32) -> u32;
    on_response_trailers: "proxy_on_response_trailers" (u32, u32) -> u32;
    on_http_call_response: "proxy_on_http_call_response" (u32, u32, u32, u32, u32) -> ();
    on_grpc_receive_initial_metadata: "proxy_on_grpc_receive_initial_metadata" (u32, u32, u32) -> ();
    on_grpc_receive: "proxy_on_grpc_receive" (u32, u32, u32) -> ();
    on_grpc_receive_trailing_metadata: "proxy_on_grpc_receive_trailing_metadata" (u32, u32, u32) -> ();
    on_grpc_close: "proxy_on_grpc_close" (u32, u32, u32) -> ();
}

struct Find<'a> {
    store: &'a mut Store<VmState>,
    instance: &'a Instance,
    module: &'a Module,
    plugin: &'a Plugin,
}

impl Find<'_> {
    /// `malloc` comes first, as in Envoy.
    fn allocator(&mut self) -> Result<Option<TypedFunc<u32, u32>>, LoadError> {
        for name in ["malloc", "proxy_on_memory_allocate"] {
            if let Some(function) = self.function::<u32, u32>(name, "(i32) -> (i32)")? {
                return Ok(Some(function));
            }
        }
        Ok(None)
    }

    fn callback<P: Arguments, R: Returned>(
        &mut self,
        name: &'static str,
    ) -> Result<Callback<P, R>, LoadError> {
        let absent = Callback {
            name,
            function: None,
        };
        if !self.plugin.allows(name) {
            return Ok(absent);
        }
        // The headers callbacks have one parameter more from 0.2.0 on.
        if ["proxy_on_request_headers", "proxy_on_response_headers"].contains(&name) {
            let old = self.module.abi() == AbiVersion::V0_1_0;
            if old != (P::COUNT == 2) {
                return Ok(absent);
            }
        }
        let parameters = vec!["i32"; P::COUNT].join(", ");
        let result = R::TYPE;
        let function = self.function::<P, R>(name, &format!("({parameters}) -> ({result})"))?;
        Ok(Callback { name, function })
    }

    fn function<P: WasmParams, R: WasmResults>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<TypedFunc<P, R>>, LoadError> {
        let Some(function) = self.instance.get_func(&mut *self.store, name) else {
            return Ok(None);
        };
        match function.typed::<P, R>(&*self.store) {
            Ok(typed) => Ok(Some(typed)),
            Err(_) => Err(LoadError::WrongType {
                module: self.module.name().to_owned(),
                item: format!("export {name}"),
                found: type_text(&function.ty(&*self.store).into()),
                expected: expected.to_owned(),
            }),
        }
    }
}
