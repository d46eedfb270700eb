//! The operations of the public listener and, in `activation`, of the activation listener. Each one validates the
//! request, runs one use case and converts the result, in this order: token, role, query, headers, body. Unauthorized
//! callers therefore get no information about other errors.

mod accounts;
mod activation;
mod audit;
mod check_credential;
mod delete;
mod describe;
mod destroy_version;
mod document;
mod enrolment;
mod federation;
mod integrations;
mod list;
mod list_uses;
mod list_versions;
mod log_in;
mod log_out;
mod match_credential;
mod namespaces;
mod own;
mod precondition;
pub(crate) mod probe;
mod promote;
mod read;
mod receivers;
mod replace;
mod save;
mod show;
mod show_trust;
mod shown;
mod static_content;
mod table;

pub(crate) use activation::ACTIVATION;
pub(crate) use table::PUBLIC;
pub use table::{activation_routes, routes};

#[cfg(any(test, fuzzing))]
pub(crate) use {
    accounts::change::parse as parse_change, accounts::invite::parse as parse_invite,
    activation::begin::parse as parse_activation, activation::check::parse as parse_check,
    activation::renew::parse as parse_renewal, check_credential::parse as parse_credential_check,
    describe::parse as parse_description, document::parse as parse_whole,
    integrations::create::parse as parse_integration, integrations::rotate::parse as parse_rotation,
    log_in::parse as parse_login, promote::parse as parse_promotion, replace::parse as parse_replacement,
    save::parse as parse_save,
};

/// Conversions of objects to those of responses, for commands that print the same.
pub mod items {
    pub use super::accounts::item as account;
    pub use super::integrations::issued as issued_integration;
    pub use super::integrations::item as integration;
    pub use super::integrations::trusts::item as trust;
    pub use super::receivers::deliveries::item as delivery;
    pub use super::receivers::item as receiver;
}

pub(crate) use activation::ActivationApi;

pub(crate) use document::optional_time;

use crate::authorization::bearer_token;
use crate::body::Incoming;
use crate::call::Call;
use crate::completion::complete;
use crate::concurrency::{ConcurrencyLimit, Permit, STORAGE_REQUESTS};
use crate::console::Console;
use crate::content;
use crate::exchange::Api;
use crate::forwarded::UntrustedProxy;
use crate::limiter::{Limiter, limited_network};
use crate::openapi;
use crate::parts::ServerParts;
use crate::problem_response::ProblemResponse;
use crate::route::{Lookup, RequestPath, find};
use crate::settings::{BasePath, ServerSettings};
use crate::throttle::Throttle;
use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderName};
use bytes::Bytes;
use ipnet::IpNet;
use std::future::Future;
use std::sync::Arc;
use vault_api::ProblemCode;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::field::{FieldCode, FieldError, child};
use vault_core::id::{AccountId, CredentialId, OrganizationId};
use vault_core::json::Node;
use vault_core::network::Network;
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Action;

/// Header in which browsers describe the origin of a request (W3C Fetch Metadata).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The operations of the public listener.
#[derive(Clone)]
pub(crate) struct PublicApi(Arc<Inner>);

/// Parser of the data of a credential, whose position in the request is a pointer.
pub(crate) type ParseData = fn(CredentialType, Node, &str) -> Result<CredentialData, Vec<FieldError>>;

/// Parses data, and refuses example keys of the AWS documentation.
fn parse_data(kind: CredentialType, node: Node, pointer: &str) -> Result<CredentialData, Vec<FieldError>> {
    let data = CredentialData::parse(kind, node, pointer)?;
    let detail = "is an example key of the AWS documentation: enter the value itself";
    let violation = |field| FieldError::new(child(pointer, field), FieldCode::Placeholder, detail);
    let violations: Vec<_> = data.example_keys().into_iter().map(violation).collect();
    if violations.is_empty() { Ok(data) } else { Err(violations) }
}

/// Parses data for a vault that is tried out.
fn parse_data_on_trial(kind: CredentialType, node: Node, pointer: &str) -> Result<CredentialData, Vec<FieldError>> {
    let data = CredentialData::parse(kind, node, pointer)?;
    let fields = data.example_keys();
    if !fields.is_empty() {
        tracing::warn!(?fields, "accepted an example key of the AWS documentation. AWS rejects it");
    }
    Ok(data)
}

pub(crate) struct Inner {
    base: BasePath,
    parse_data: ParseData,
    console: Console,
    activation_url: Option<String>,
    trusted_proxies: Vec<IpNet>,
    untrusted_proxy: UntrustedProxy,
    limiter: Option<Limiter<Network>>,
    throttle: Throttle,
    verifying: ConcurrencyLimit<OrganizationId>,
    accounts: ConcurrencyLimit<AccountId>,
    organizations: ConcurrencyLimit<OrganizationId>,
    openapi: Bytes,
    parts: ServerParts,
}

impl PublicApi {
    pub(crate) fn new(settings: &ServerSettings, parts: ServerParts) -> Self {
        Self(Arc::new(Inner {
            base: settings.base_path.clone(),
            parse_data: if settings.example_keys { parse_data_on_trial } else { parse_data },
            console: Console::new(&settings.base_path),
            activation_url: settings.activation_url.clone(),
            trusted_proxies: settings.listener.trusted_proxies.clone(),
            untrusted_proxy: UntrustedProxy::default(),
            limiter: settings.rate.map(Limiter::new),
            throttle: Throttle::default(),
            verifying: ConcurrencyLimit::new(STORAGE_REQUESTS),
            accounts: ConcurrencyLimit::new(settings.requests_per_account),
            organizations: ConcurrencyLimit::new(settings.requests_per_organization),
            openapi: openapi::document(&settings.base_path),
            parts,
        }))
    }
}

impl Api for PublicApi {
    fn find<'a>(&self, path: &'a str, method: &Method) -> Lookup<'a> {
        find(&PUBLIC, &self.0.base, path, method)
    }

    fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    async fn run(&self, call: Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
        let api = &*self.0;
        if call.headers().contains_key(header::X_FORWARDED_FOR) {
            api.untrusted_proxy.notice(call.peer(), &api.trusted_proxies);
        }
        let outcome = match api.limit(&call) {
            Ok(()) => {
                let handler = PUBLIC[call.place.row()].handler;
                handler(api, &call, body).await
            }
            Err(problem_response) => Err(problem_response),
        };
        if call.place.route().is_open && outcome.as_ref().is_err_and(ProblemResponse::asks_to_wait) {
            api.throttle.delay().await;
        }
        outcome
    }
}

impl Inner {
    /// Limits the rate of expensive operations without a token, per client network. First rejects requests that another
    /// site's page can make a browser send, so that they do not count: forms, whose body is not JSON, and requests that
    /// the browser marks as cross-site.
    fn limit(&self, call: &Call<'_>) -> Result<(), ProblemResponse> {
        if call.place.route().is_open {
            content::check(call.headers())?;
            if call.headers().get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site") {
                let detail = "A page of another site may not send this. Use the console or a client of this server.";
                return Err(ProblemResponse::new(ProblemCode::CrossSite, detail));
            }
        }
        match &self.limiter {
            Some(limiter) if call.place.route().is_open => {
                let network = limited_network(call.network);
                limiter.check(network).map_err(ProblemResponse::too_many_requests)
            }
            _ => Ok(()),
        }
    }

    /// Authenticates the session and counts the request for its account and organization.
    fn session(&self, call: &Call<'_>) -> Result<SessionPrincipal, ProblemResponse> {
        let token = bearer_token(call.headers())?;
        let session = self.parts.accounts.authenticate(token).map_err(ProblemResponse::from)?;
        call.count(|| {
            let account = self.accounts.acquire(session.account);
            let organization = self.organizations.acquire(session.organization);
            account.zip(organization).ok_or_else(ProblemResponse::too_many_under_way)
        })?;
        Ok(session)
    }

    /// Authenticates the session and checks that its role permits `action`.
    fn session_for(&self, call: &Call<'_>, action: Action) -> Result<SessionPrincipal, ProblemResponse> {
        let session = self.session(call)?;
        if session.role.permits(action) { Ok(session) } else { Err(ProblemResponse::insufficient_role()) }
    }

    /// Same as `session_for`, for operations that accept other principals too.
    fn principal(&self, call: &Call<'_>, action: Action) -> Result<Principal, ProblemResponse> {
        self.session_for(call, action).map(Principal::Session)
    }

    /// Counts a request of this organization to a storage provider, if it is to `verify` a credential.
    fn verifying(
        &self,
        verify: bool,
        organization: OrganizationId,
    ) -> Result<Option<Permit<OrganizationId>>, ProblemResponse> {
        let permit =
            verify.then(|| self.verifying.acquire(organization).ok_or_else(ProblemResponse::too_many_in_progress));
        permit.transpose()
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

/// Returns the credential ID in the path. An invalid ID is handled like that of a credential that does not exist, so
/// that both get the same response after the same steps.
fn credential_id(place: RequestPath<'_>) -> CredentialId {
    place.id().parse().unwrap_or(CredentialId::from_bytes(NO_ID))
}

/// Returns the version number in the path, in canonical form. Other text is handled like a version that does not exist.
fn version_number(place: RequestPath<'_>) -> i64 {
    let text = place.version();
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().unwrap_or(NO_VERSION) } else { NO_VERSION }
}

/// Versions start at 1.
const NO_VERSION: i64 = 0;

/// The nil UUID. IDs have version 4 or 7, so no object has it.
const NO_ID: [u8; 16] = [0; 16];
