//! The activation listener: what integrations ask for. The one place of this crate from which a credential can be
//! opened; never on the public listener.

use crate::operation::ActivationApi;
use crate::readiness::Readiness;
use crate::server::{BoundServer, serve};
use crate::settings::ActivationSettings;
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;
use vault_core::usecase::Activations;

/// What the activation listener is made of.
#[derive(Clone)]
pub struct ActivationParts {
    /// The runtime on which use cases run: one that goes on when a client goes away.
    pub runtime: Handle,
    /// What integrations do.
    pub activations: Activations,
    /// Request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// For `/readyz`.
    pub readiness: Readiness,
}

/// The activation listener.
///
/// # Errors
/// An address or the socket cannot be listened on, or there is none.
pub fn activation_server(settings: &ActivationSettings, parts: ActivationParts) -> io::Result<BoundServer> {
    let runtime = parts.runtime.clone();
    let ids = Arc::clone(&parts.ids);
    let api = ActivationApi::new(settings, parts);
    serve(&settings.listener, settings.unix.as_ref(), &runtime, ids, api)
}
