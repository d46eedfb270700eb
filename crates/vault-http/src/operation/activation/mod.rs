//! The operations of the activation listener. Each one validates the request, runs one use case and converts the
//! result, in this order: token, rate, query, headers, body.

pub(super) mod begin;
pub(super) mod check;
mod end;
mod list;
pub(super) mod renew;

use super::probe;
use crate::activation::ActivationParts;
use crate::authorization::integration_token;
use crate::body::Incoming;
use crate::call::Call;
use crate::completion::complete;
use crate::concurrency::{ConcurrencyLimit, Permit, STORAGE_REQUESTS};
use crate::endpoint::{Endpoint, delete, get, handler, post};
use crate::exchange::Api;
use crate::limiter::Limiter;
use crate::problem_response::ProblemResponse;
use crate::route::{Lookup, find};
use crate::settings::{ActivationSettings, BasePath};
use actix_web::HttpResponse;
use actix_web::http::Method;
use ipnet::IpNet;
use std::future::Future;
use std::sync::Arc;
use vault_core::id::IntegrationId;
use vault_core::integration::IntegrationPrincipal;

/// The routes of the activation listener.
pub(crate) static ACTIVATION: [Endpoint<Inner>; 7] = [
    get("{base}/activations", "list-activations", handler!(list::run)),
    post("{base}/activations", "activate", handler!(begin::run)).decrypting(),
    // Must precede the next route, which matches the same path.
    post("{base}/activations/check", "check-namespace", handler!(check::run)).decrypting(),
    delete("{base}/activations/{id}", "end-activation", handler!(end::run)),
    post("{base}/activations/{id}/renew", "renew-activation", handler!(renew::run)).decrypting(),
    get("/livez", "live", handler!(live)).probe(),
    get("/readyz", "ready", handler!(ready)).probe(),
];

/// The operations of the activation listener.
#[derive(Clone)]
pub(crate) struct ActivationApi(Arc<Inner>);

pub(crate) struct Inner {
    base: BasePath,
    trusted_proxies: Vec<IpNet>,
    limiter: Option<Limiter<IntegrationId>>,
    outside: ConcurrencyLimit<IntegrationId>,
    parts: ActivationParts,
}

impl ActivationApi {
    pub(crate) fn new(settings: &ActivationSettings, parts: ActivationParts) -> Self {
        let limiter = settings.rate.map(Limiter::new);
        let base = settings.base_path.clone();
        let trusted_proxies = settings.listener.trusted_proxies.clone();
        Self(Arc::new(Inner {
            base,
            trusted_proxies,
            limiter,
            outside: ConcurrencyLimit::new(STORAGE_REQUESTS),
            parts,
        }))
    }
}

impl Api for ActivationApi {
    fn find<'a>(&self, path: &'a str, method: &Method) -> Lookup<'a> {
        find(&ACTIVATION, &self.0.base, path, method)
    }

    fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    async fn run(&self, call: Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
        (ACTIVATION[call.place.row()].handler)(&self.0, &call, body).await
    }
}

impl Inner {
    /// Authenticates the integration and checks its rate limit.
    async fn integration(&self, call: &Call<'_>) -> Result<IntegrationPrincipal, ProblemResponse> {
        let token = integration_token(call.headers())?;
        let (activations, network) = (self.parts.activations.for_request(call.origin), call.origin.network);
        let principal = self.complete(call, async move { activations.authenticate(&token, network).await }).await?;
        match &self.limiter {
            Some(limiter) if call.place.route().decrypts => {
                limiter.check(principal.integration).map_err(ProblemResponse::too_many_openings)?;
            }
            _ => {}
        }
        Ok(principal)
    }

    /// Permits `principal` a request to storage providers until the permit is dropped.
    fn ask_stores(&self, principal: &IntegrationPrincipal) -> Result<Permit<IntegrationId>, ProblemResponse> {
        self.outside.acquire(principal.integration).ok_or_else(ProblemResponse::too_many_in_progress)
    }

    /// Runs `use_case` to its end and returns its result.
    async fn complete<T, E>(
        &self,
        call: &Call<'_>,
        use_case: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, ProblemResponse>
    where
        T: Send + 'static,
        E: Send + 'static,
        ProblemResponse: From<E>,
    {
        Ok(complete(&self.parts.runtime, call.carry(use_case)).await?)
    }
}

async fn live(_: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    probe::live()
}

async fn ready(api: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    probe::ready(&api.parts.runtime, &api.parts.readiness).await
}
