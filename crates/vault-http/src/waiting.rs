//! Listeners of a server that cannot serve yet. Every request gets status 503 with `Retry-After`.

use crate::body::Incoming;
use crate::call::Call;
use crate::exchange::Api;
use crate::operation::{ACTIVATION, PUBLIC, probe};
use crate::problem_response::ProblemResponse;
use crate::readiness::Readiness;
use crate::route::{Lookup, find};
use crate::server::{BoundServer, serve};
use crate::settings::{ActivationSettings, BasePath, ServerSettings};
use actix_web::HttpResponse;
use actix_web::http::Method;
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;

/// Value of `Retry-After` in seconds.
const RETRY: u32 = 5;

/// The parts of a listener that cannot serve yet.
#[derive(Clone)]
pub struct WaitingParts {
    /// Runtime for readiness checks.
    pub runtime: Handle,
    /// State for `/readyz`.
    pub readiness: Readiness,
    /// Generator of request IDs.
    pub ids: Arc<dyn IdGenerator>,
}

/// Binds the public listener of a server that cannot serve yet.
///
/// # Errors
/// An address cannot be bound, or there is none.
pub fn waiting_server(settings: &ServerSettings, parts: WaitingParts) -> io::Result<BoundServer> {
    let (runtime, ids) = (parts.runtime.clone(), Arc::clone(&parts.ids));
    let api = WaitingApi { parts, base: settings.base_path.clone(), is_public: true };
    serve(&settings.listener, None, &runtime, ids, api)
}

/// Binds the activation listener of a server that cannot serve yet.
///
/// # Errors
/// An address or the socket cannot be bound, or there is none.
pub fn waiting_activation_server(settings: &ActivationSettings, parts: WaitingParts) -> io::Result<BoundServer> {
    let (runtime, ids) = (parts.runtime.clone(), Arc::clone(&parts.ids));
    let api = WaitingApi { parts, base: settings.base_path.clone(), is_public: false };
    serve(&settings.listener, settings.unix.as_ref(), &runtime, ids, api)
}

#[derive(Clone)]
struct WaitingApi {
    parts: WaitingParts,
    base: BasePath,
    is_public: bool,
}

impl Api for WaitingApi {
    fn find<'a>(&self, path: &'a str, method: &Method) -> Lookup<'a> {
        match self.is_public {
            true => find(&PUBLIC, &self.base, path, method),
            false => find(&ACTIVATION, &self.base, path, method),
        }
    }

    async fn run(&self, call: Call<'_>, _: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
        match call.place.route().operation {
            "live" => probe::live(),
            "ready" => probe::ready(&self.parts.runtime, &self.parts.readiness).await,
            _ => Err(ProblemResponse::unavailable(RETRY)),
        }
    }
}
