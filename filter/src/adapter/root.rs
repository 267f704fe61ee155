//! The root context: reads the configuration and the secrets it names, makes a context for each stream, and hands ticks and
//! answers to the [`Vm`].

use std::rc::Rc;

use proxy_wasm::hostcalls as sdk;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{BufferType, ContextType};

use super::hostcalls;
use super::stream::StreamAdapter;
use super::vm::Vm;
use crate::config::Config;
use crate::control_plane::Credential;
use crate::listener::{Listener, Secrets};
use crate::secret::Secret;

/// One VM's root context.
#[derive(Debug)]
pub(super) struct Root {
    id: u32,
    vm: Option<Rc<Vm>>,
}

impl Root {
    pub const fn new(id: u32) -> Self {
        Self { id, vm: None }
    }
}

impl Context for Root {
    fn on_http_call_response(
        &mut self,
        token: u32,
        _headers: usize,
        body_size: usize,
        _trailers: usize,
    ) {
        if let Some(vm) = &self.vm {
            vm.answered(token, hostcalls::plane_answer(body_size));
        }
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let text = sdk::get_buffer(BufferType::PluginConfiguration, 0, size)
            .ok()
            .flatten()
            .unwrap_or_default();
        match configured(&text) {
            Ok(listener) => {
                let vm = Rc::new(Vm::new(listener, self.id));
                vm.tick();
                self.vm = Some(vm);
                true
            }
            Err(refusal) => {
                log::error!("{refusal}");
                false
            }
        }
    }

    fn on_tick(&mut self) {
        if let Some(vm) = &self.vm {
            vm.ticked();
        }
    }

    fn create_http_context(&self, context_id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(StreamAdapter::new(self.vm.clone(), context_id)))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

fn configured(text: &[u8]) -> Result<Listener, String> {
    let config = Config::parse(text).map_err(|error| error.to_string())?;
    let mut secrets = Secrets::default();
    if let Some(name) = config
        .control_plane
        .as_ref()
        .and_then(|plane| plane.token_env.as_deref())
    {
        let token = variable(name, "/control_plane/token_env", "the sidecar token")?;
        let credential = Credential::parse(&token).map_err(|unfit| {
            refusal(
                "/control_plane/token_env",
                &format!("the value of {name} cannot be sent as a header: {unfit}"),
                "set the raw token that the Control Plane issued",
            )
        })?;
        secrets.credential = Some(credential);
    }
    if let Some(name) = config.redaction_key_env.as_deref() {
        let key = variable(name, "/redaction_key_env", "the redaction key")?;
        secrets.redaction_key = Some(Secret::new(key));
    }
    Ok(Listener::new(config, secrets))
}

/// Reads the one variable that the configuration names. Its value is never repeated.
#[expect(
    clippy::disallowed_methods,
    reason = "the adapter is where the environment is read"
)]
fn variable(name: &str, pointer: &str, what: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(value) if !value.trim().is_empty() => Ok(value),
        Ok(_) | Err(_) => Err(refusal(
            pointer,
            &format!("the VM has no environment variable {name:?} with {what}, or it is empty"),
            "set it for Envoy and list it under vm_config.environment_variables.host_env_keys",
        )),
    }
}

fn refusal(pointer: &str, problem: &str, hint: &str) -> String {
    format!("invalid plugin configuration at {pointer}: {problem}; hint: {hint}")
}
