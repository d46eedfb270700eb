//! The activation listener for integrations. It is the only part of this crate that can decrypt credentials, and is
//! separate from the public listener.

use crate::operation::ActivationApi;
use crate::readiness::Readiness;
use crate::server::{BoundServer, serve};
use crate::settings::ActivationSettings;
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;
use vault_core::usecase::Activations;

/// The parts of the activation listener.
#[derive(Clone)]
pub struct ActivationParts {
    /// Runtime for use cases. It continues when a client disconnects.
    pub runtime: Handle,
    /// Use cases of integrations.
    pub activations: Activations,
    /// Generator of request IDs.
    pub ids: Arc<dyn IdGenerator>,
    /// State for `/readyz`.
    pub readiness: Readiness,
}

/// Binds the activation listener.
///
/// # Errors
/// An address or the socket cannot be bound, or there is none.
pub fn activation_server(settings: &ActivationSettings, parts: ActivationParts) -> io::Result<BoundServer> {
    let runtime = parts.runtime.clone();
    let ids = Arc::clone(&parts.ids);
    let api = ActivationApi::new(settings, parts);
    serve(&settings.listener, settings.unix.as_ref(), &runtime, ids, api)
}
