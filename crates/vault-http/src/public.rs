//! The public listener. It cannot decrypt a credential.

use crate::body;
use crate::caller::{Caller, IsOperator, peer};
use crate::limits::{ConcurrencyLimit, Limiter, Permit, STORAGE_REQUESTS, limited_network};
use crate::listener::{Common, Listener};
use crate::openapi;
use crate::parts::ServerParts;
use crate::problem::ProblemResponse;
use crate::readiness::Readiness;
use crate::routes::{Access, Endpoint, Route};
use crate::server::{self, BoundServer, serve};
use crate::settings::ServerSettings;
use crate::subject::console::{self, Console};
use crate::subject::credentials::{self, ParseData};
use crate::subject::probes::{self, Probed};
use crate::subject::{
    accounts, audit, enrolment, federation, integrations, namespaces, own_account, read, receivers, versions,
};
use crate::token::{UntrustedProxy, bearer_token};
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderMap};
use actix_web::{App, Error, HttpMessage as _, HttpRequest};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use std::io;
use std::sync::Arc;
use vault_api::ProblemCode;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::network::Network;
use vault_core::principal::{Principal, SessionPrincipal};

/// The state of the public listener.
pub(crate) struct PublicApi {
    pub(crate) common: Common,
    pub(crate) parse_data: ParseData,
    pub(crate) console: Console,
    pub(crate) openapi: Bytes,
    pub(crate) activation_url: Option<String>,
    pub(crate) parts: ServerParts,
    untrusted_proxy: UntrustedProxy,
    limiter: Option<Limiter<Network>>,
    verifying: ConcurrencyLimit<OrganizationId>,
    accounts: ConcurrencyLimit<AccountId>,
    organizations: ConcurrencyLimit<OrganizationId>,
}

/// Binds the public listener.
///
/// # Errors
/// An address or the socket cannot be bound, or there is none.
pub fn server(settings: &ServerSettings, parts: ServerParts) -> io::Result<BoundServer> {
    serve(&settings.listener, settings.unix.as_ref(), Arc::new(PublicApi::new(settings, parts)), endpoints)
}

/// Creates the app of the public listener.
pub(crate) fn app(
    api: Arc<PublicApi>,
) -> App<
    impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>,
> {
    server::app(api, endpoints)
}

/// Returns every route of the public listener, from the table that dispatches requests. Authorization tests use it to
/// detect new routes.
pub fn routes() -> impl Iterator<Item = Route> {
    endpoints().into_iter().map(|endpoint| endpoint.route)
}

fn endpoints() -> Vec<Endpoint> {
    let subjects = [
        own_account::endpoints(),
        credentials::endpoints(),
        versions::endpoints(),
        read::endpoints(),
        accounts::endpoints(),
        enrolment::endpoints(),
        integrations::endpoints(),
        receivers::endpoints(),
        namespaces::endpoints(),
        audit::endpoints(),
        federation::endpoints(),
        console::endpoints(),
        probes::endpoints::<PublicApi>(),
    ];
    subjects.into_iter().flatten().collect()
}

impl PublicApi {
    pub(crate) fn new(settings: &ServerSettings, parts: ServerParts) -> Self {
        Self {
            common: Common::new(&settings.listener, settings.base_path.clone(), &parts.runtime, &parts.ids),
            parse_data: credentials::parser(settings.example_keys),
            console: Console::new(&settings.base_path),
            openapi: openapi::document(&settings.base_path),
            activation_url: settings.activation_url.clone(),
            parts,
            untrusted_proxy: UntrustedProxy::default(),
            limiter: settings.rate.map(Limiter::new),
            verifying: ConcurrencyLimit::new(STORAGE_REQUESTS),
            accounts: ConcurrencyLimit::new(settings.requests_per_account),
            organizations: ConcurrencyLimit::new(settings.requests_per_organization),
        }
    }

    /// Counts a request of this organization to a storage provider, if it is to `verify` a credential.
    pub(crate) fn verifying(
        &self,
        verify: bool,
        organization: OrganizationId,
    ) -> Result<Option<Permit<OrganizationId>>, ProblemResponse> {
        let permit =
            verify.then(|| self.verifying.acquire(organization).ok_or_else(ProblemResponse::too_many_in_progress));
        permit.transpose()
    }

    fn admit(&self, route: Route, request: &HttpRequest) -> Result<(), ProblemResponse> {
        if request.headers().contains_key(header::X_FORWARDED_FOR) {
            self.untrusted_proxy.notice(peer(request), &self.common.trusted_proxies);
        }
        let anyone = Caller::anyone(&self.common, request);
        let operator: Option<IsOperator> = request.extensions().get().copied();
        match route.access {
            Access::Role(action) => {
                if let Some(IsOperator { organization }) = operator {
                    request.extensions_mut().insert(anyone.map(|()| Principal::Operator).of(organization));
                    return Ok(());
                }
                let caller = self.session(anyone, request.headers())?;
                if !caller.principal.role.permits(action) {
                    return Err(ProblemResponse::insufficient_role());
                }
                let organization = Some(caller.principal.organization);
                request.extensions_mut().insert(caller.map(Principal::Session).of(organization));
            }
            Access::Session => {
                let caller = self.session(anyone, request.headers())?;
                let organization = Some(caller.principal.organization);
                request.extensions_mut().insert(caller.of(organization));
            }
            Access::Limited => {
                self.limit(request.headers(), anyone.network)?;
                request.extensions_mut().insert(anyone);
            }
            Access::Probe | Access::Public => drop(request.extensions_mut().insert(anyone)),
            // It has no such routes.
            Access::Integration { .. } => return Err(ProblemResponse::internal()),
        }
        Ok(())
    }

    /// Authenticates the session, and counts the request for its account and organization.
    fn session(&self, anyone: Caller<()>, headers: &HeaderMap) -> Result<Caller<SessionPrincipal>, ProblemResponse> {
        let session = self.parts.accounts.authenticate(bearer_token(headers)?)?;
        let permits = self.accounts.acquire(session.account).zip(self.organizations.acquire(session.organization));
        Ok(anyone.counted(permits.ok_or_else(ProblemResponse::too_many_under_way)?).map(|()| session))
    }

    /// Limits the rate of expensive operations without a token, per client network. First rejects requests that another
    /// site's page can make a browser send, so that they do not count: forms, whose body is not JSON, and requests that
    /// the browser marks as cross-site (W3C Fetch Metadata).
    fn limit(&self, headers: &HeaderMap, network: Network) -> Result<(), ProblemResponse> {
        body::check_json(headers)?;
        if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") {
            let detail = "A page of another site may not send this. Use the console or a client of this server.";
            return Err(ProblemResponse::new(ProblemCode::CrossSite, detail));
        }
        match &self.limiter {
            Some(limiter) => limiter.check(limited_network(network)).map_err(ProblemResponse::too_many_requests),
            None => Ok(()),
        }
    }
}

impl Listener for PublicApi {
    fn common(&self) -> &Common {
        &self.common
    }

    fn authorize<'a>(
        &'a self,
        route: Route,
        request: &'a HttpRequest,
    ) -> LocalBoxFuture<'a, Result<(), ProblemResponse>> {
        Box::pin(async move { self.admit(route, request) })
    }
}

impl Probed for PublicApi {
    fn readiness(&self) -> &Readiness {
        &self.parts.readiness
    }
}
