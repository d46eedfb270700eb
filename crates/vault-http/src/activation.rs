//! The activation listener for integrations: `{base}/activations`. It is the only part of this crate that can decrypt
//! credentials, and is separate from the public listener.

use crate::body::{Body, ValueErrors};
use crate::caller::Caller;
use crate::extract::Id;
use crate::extract::NoEntityTag;
use crate::limits::Limiter;
use crate::limits::{ConcurrencyLimit, Permit, STORAGE_REQUESTS};
use crate::listener::{Common, Listener};
use crate::problem::{ProblemResponse, check_items};
use crate::query::{PageQuery, optional_time};
use crate::readiness::Readiness;
use crate::respond::{JsonResult, JsonStatusResult, NoContent, created, no_content, ok, page, time_text};
use crate::routes::{Access, Endpoint, Route, route};
use crate::server::{BoundServer, serve};
use crate::settings::ActivationSettings;
use crate::subject::probes::{self, Probed};
use crate::token::integration_token;
use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use futures_util::future::LocalBoxFuture;
use secrecy::SecretString;
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_api::{
    ActivateRequest, ActivationItem, BegunActivation, CheckRequest, CheckedNamespace, RenewRequest, VendedCredential,
    WireJson,
};
use vault_core::activation::{Activated, ActivatedCredential, Activation, ActivationTtl, Purpose, VendMode};
use vault_core::check::StorageOperation;
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::{ActivationId, IntegrationId};
use vault_core::integration::IntegrationPrincipal;
use vault_core::namespace::Namespace;
use vault_core::port::IdGenerator;
use vault_core::usecase::Activations;
use vault_core::usecase::activations::{ActivationRequest, CheckNamespaceRequest, CheckedCredential, RenewalRequest};

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
    let api = ActivationApi {
        common: Common::new(&settings.listener, settings.base_path.clone(), &parts.runtime, &parts.ids),
        limiter: settings.rate.map(Limiter::new),
        outside: ConcurrencyLimit::new(STORAGE_REQUESTS),
        parts,
    };
    serve(&settings.listener, settings.unix.as_ref(), Arc::new(api), endpoints)
}

/// Returns every route of the activation listener.
pub fn activation_routes() -> impl Iterator<Item = Route> {
    endpoints().into_iter().map(|endpoint| endpoint.route)
}

fn endpoints() -> Vec<Endpoint> {
    let access = |decrypts| Access::Integration { decrypts };
    let routes = vec![
        route("GET", "{base}/activations", "list-activations", access(false), list).with_query(),
        route("POST", "{base}/activations", "activate", access(true), begin),
        route("POST", "{base}/activations/check", "check-namespace", access(true), check),
        route("DELETE", "{base}/activations/{id}", "end-activation", access(false), end),
        route("POST", "{base}/activations/{id}/renew", "renew-activation", access(true), renew),
    ];
    routes.into_iter().chain(probes::endpoints::<ActivationApi>()).collect()
}

/// The state of the activation listener.
struct ActivationApi {
    common: Common,
    limiter: Option<Limiter<IntegrationId>>,
    outside: ConcurrencyLimit<IntegrationId>,
    parts: ActivationParts,
}

impl ActivationApi {
    /// Authenticates the integration and checks its rate limit.
    async fn admit(&self, route: Route, request: &HttpRequest) -> Result<(), ProblemResponse> {
        let anyone = Caller::anyone(&self.common, request);
        let Access::Integration { decrypts } = route.access else {
            return match route.access {
                Access::Probe => Ok(()),
                // It has no such routes.
                _ => Err(ProblemResponse::internal()),
            };
        };
        let token = integration_token(request.headers())?;
        let (activations, network) = (self.parts.activations.for_request(anyone.origin), anyone.origin.network);
        let principal = anyone.run(|()| async move { activations.authenticate(&token, network).await }).await?;
        if let Some(limiter) = self.limiter.as_ref().filter(|_| decrypts) {
            limiter.check(principal.integration).map_err(ProblemResponse::too_many_openings)?;
        }
        request.extensions_mut().insert(anyone.map(|()| principal));
        Ok(())
    }

    /// Permits `integration` a request to storage providers until the permit is dropped.
    fn ask_stores(&self, integration: &Integration) -> Result<Permit<IntegrationId>, ProblemResponse> {
        self.outside.acquire(integration.principal.integration).ok_or_else(ProblemResponse::too_many_in_progress)
    }
}

impl Listener for ActivationApi {
    fn common(&self) -> &Common {
        &self.common
    }

    fn authorize<'a>(
        &'a self,
        route: Route,
        request: &'a HttpRequest,
    ) -> LocalBoxFuture<'a, Result<(), ProblemResponse>> {
        Box::pin(self.admit(route, request))
    }
}

impl Probed for ActivationApi {
    fn readiness(&self) -> &Readiness {
        &self.parts.readiness
    }
}

type Integration = Caller<IntegrationPrincipal>;

async fn list(
    caller: Integration,
    api: Data<ActivationApi>,
    PageQuery(request): PageQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (activations, limit) = (api.parts.activations.for_request(caller.origin), request.limit);
    let listed = caller.run(|principal| async move { activations.list(&principal, request).await }).await?;
    page(&api.common.base.below("/activations"), &listed, limit, item)
}

fn item(activation: &Activation) -> ActivationItem {
    ActivationItem {
        id: activation.id.to_string(),
        namespace: activation.namespace.to_string(),
        vend: activation.vend.as_str().to_owned(),
        credential_count: activation.credentials,
        started_at: time_text(activation.started_at),
        expires_at: time_text(activation.expires_at),
    }
}

async fn begin(
    caller: Integration,
    api: Data<ActivationApi>,
    Body(body): Body<ActivateRequest>,
) -> JsonStatusResult<BegunActivation> {
    let request = activation(body)?;
    let activations = api.parts.activations.for_request(caller.origin);
    let asks_stores = request.vend != VendMode::Raw;
    let permit = asks_stores.then(|| api.ask_stores(&caller)).transpose()?;
    let activating = |principal| async move {
        let _permit = permit;
        activations.activate(&principal, request).await
    };
    created(started(&caller.run(activating).await?)?)
}

fn activation(
    ActivateRequest { namespace, purpose, ttl, vend }: ActivateRequest,
) -> Result<ActivationRequest, ProblemResponse> {
    let mut errors = ValueErrors::default();
    let namespace = errors.check(Namespace::parse(&namespace, "/namespace"));
    let purpose = errors.check(purpose.map(|text| Purpose::parse(&text, "/purpose")).transpose());
    let ttl = errors.check(ActivationTtl::parse(ttl));
    let vend = errors.check(parse_vend(vend));
    let request = namespace.zip(purpose).zip(ttl).zip(vend);
    errors.finish(request.map(|(((namespace, purpose), ttl), vend)| ActivationRequest {
        namespace,
        purpose,
        ttl,
        vend,
    }))
}

fn parse_vend(text: Option<String>) -> Result<VendMode, FieldError> {
    let unknown = || FieldError::new("/vend", FieldCode::OutOfRange, "must be raw, short or prefer-short");
    text.map_or(Ok(VendMode::default()), |text| VendMode::parse(&text).ok_or_else(unknown))
}

async fn check(
    caller: Integration,
    api: Data<ActivationApi>,
    Body(body): Body<CheckRequest>,
) -> JsonResult<CheckedNamespace> {
    let request = namespace_check(body)?;
    let activations = api.parts.activations.for_request(caller.origin);
    let namespace = request.namespace.to_string();
    let permit = api.ask_stores(&caller)?;
    let checking = |principal| async move {
        let _permit = permit;
        activations.check(&principal, request).await
    };
    let credentials: Vec<_> = caller.run(checking).await?.iter().map(checked).collect();
    let usable = credentials.iter().all(|credential| credential.usable);
    ok(CheckedNamespace { namespace, usable, credentials })
}

fn namespace_check(
    CheckRequest { namespace, operations, until, vend }: CheckRequest,
) -> Result<CheckNamespaceRequest, ProblemResponse> {
    let mut errors = ValueErrors::default();
    let namespace = errors.check(Namespace::parse(&namespace, "/namespace"));
    let operations = errors.check_all(StorageOperation::parse_all(&operations, "/operations"));
    let until = errors.check(optional_time(until.as_deref(), "/until"));
    let vend = errors.check(parse_vend(vend));
    let request = namespace.zip(operations).zip(until).zip(vend);
    errors.finish(request.map(|(((namespace, operations), until), vend)| CheckNamespaceRequest {
        namespace,
        operations,
        until,
        vend,
    }))
}

fn checked(checked: &CheckedCredential) -> vault_api::CheckedCredential {
    vault_api::CheckedCredential {
        id: checked.id.to_string(),
        kind: checked.kind.as_str().to_owned(),
        usable: checked.report.is_usable(),
        form: checked.form.map(|form| form.as_str().to_owned()),
        checks: check_items(&checked.report),
    }
}

async fn end(caller: Integration, api: Data<ActivationApi>, Id(id): Id<ActivationId>, _: NoEntityTag) -> NoContent {
    let activations = api.parts.activations.for_request(caller.origin);
    caller.run(|principal| async move { activations.end(&principal, id).await }).await.map(no_content)
}

async fn renew(
    caller: Integration,
    api: Data<ActivationApi>,
    Id(activation): Id<ActivationId>,
    Body(body): Body<RenewRequest>,
) -> JsonResult<BegunActivation> {
    let ttl = ActivationTtl::parse(body.ttl)?;
    let activations = api.parts.activations.for_request(caller.origin);
    // Only the activation's row shows whether the renewal needs a storage provider, so acquire the permit in any case.
    let permit = api.ask_stores(&caller)?;
    let renewing = |principal| async move {
        let _permit = permit;
        activations.renew(&principal, RenewalRequest { activation, ttl }).await
    };
    ok(started(&caller.run(renewing).await?)?)
}

fn started(activated: &Activated) -> Result<BegunActivation, ProblemResponse> {
    Ok(BegunActivation {
        id: activated.id.to_string(),
        namespace: activated.namespace.to_string(),
        expires_at: time_text(activated.expires_at),
        credentials: activated.credentials.iter().map(vended).collect::<Result<_, _>>()?,
    })
}

fn vended(credential: &ActivatedCredential) -> Result<VendedCredential, ProblemResponse> {
    let data = credential.data();
    // This response is the purpose of the activation.
    let data =
        str::from_utf8(data.expose()).map_err(|_| ProblemResponse::internal().caused_by("data that is not UTF-8"))?;
    Ok(VendedCredential {
        id: credential.id.to_string(),
        kind: credential.kind.as_str().to_owned(),
        version: credential.version,
        form: credential.vended.form().as_str().to_owned(),
        data: WireJson::from(SecretString::from(data)),
        expires_at: credential.vended.expires_at().map(time_text),
    })
}
