//! Who calls a route: the result of the authorization.

use crate::complete::complete;
use crate::concurrency::Permit;
use crate::forwarded::client_address;
use crate::listener::Common;
use crate::problem_response::ProblemResponse;
use crate::trace::RequestSpans;
use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use ipnet::IpNet;
use std::future::{Future, Ready, ready};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::runtime::Handle;
use uuid::Uuid;
use vault_core::audit::Origin;
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::network::Network;
use vault_core::principal::{Principal, Scope};

/// ID of a request. The middleware adds it to each.
#[derive(Clone, Copy)]
pub(crate) struct RequestId(pub(crate) Uuid);

/// The operator of this host. Only [`crate::local`] adds it to a request.
#[derive(Clone, Copy)]
pub(crate) struct IsOperator {
    /// The organization that a command names.
    pub(crate) organization: Option<OrganizationId>,
}

/// The caller of a route whose access permits a `P`. A handler with another `P` than its route gets no caller and
/// responds with status 500.
#[derive(Clone)]
pub(crate) struct Caller<P = Principal> {
    pub(crate) principal: P,
    /// For the audit log.
    pub(crate) origin: Origin,
    /// The client's network. `X-Forwarded-For` of trusted proxies is evaluated.
    pub(crate) network: Network,
    organization: Option<OrganizationId>,
    /// Count the request until its last use case has ended.
    permits: Option<Arc<Permits>>,
    spans: Option<RequestSpans>,
    runtime: Handle,
}

type Permits = (Permit<AccountId>, Permit<OrganizationId>);

impl Caller<()> {
    /// Returns the caller of a request without a token.
    pub(crate) fn anyone(common: &Common, request: &HttpRequest) -> Self {
        let network = network(request, &common.trusted_proxies);
        let (id, spans) = {
            let extensions = request.extensions();
            (extensions.get::<RequestId>().map(|id| id.0), extensions.get::<RequestSpans>().cloned())
        };
        // A Unix socket has no network.
        let origin = Origin { network: request.peer_addr().map(|_| network), request: id };
        let runtime = common.runtime.clone();
        Self { principal: (), origin, network, organization: None, permits: None, spans, runtime }
    }
}

impl<P> Caller<P> {
    /// Replaces the principal.
    pub(crate) fn map<Q>(self, principal: impl FnOnce(P) -> Q) -> Caller<Q> {
        let Self { principal: from, origin, network, organization, permits, spans, runtime } = self;
        Caller { principal: principal(from), origin, network, organization, permits, spans, runtime }
    }

    /// Sets the organization in which the operation happens.
    pub(crate) fn of(self, organization: Option<OrganizationId>) -> Self {
        Self { organization, ..self }
    }

    /// Counts the request.
    pub(crate) fn counted(self, permits: Permits) -> Self {
        Self { permits: Some(Arc::new(permits)), ..self }
    }

    /// Returns the organization in which the operation happens.
    pub(crate) fn organization(&self) -> Result<OrganizationId, ProblemResponse> {
        let missing = || FieldError::new("/organization", FieldCode::Required, "is required");
        self.organization.ok_or_else(|| missing().into())
    }

    /// Runs `use_case` to its end, even if the client disconnects. The request stays counted, and log lines of the use
    /// case contain its ID.
    pub(crate) async fn run<T, E, R>(&self, use_case: impl FnOnce(P) -> R) -> Result<T, ProblemResponse>
    where
        P: Clone,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
        ProblemResponse: From<E>,
    {
        let permits = self.permits.clone();
        let running = use_case(self.principal.clone());
        let counted = async move {
            let _permits = permits;
            running.await
        };
        let spans = self.spans.as_ref().ok_or_else(ProblemResponse::internal)?;
        Ok(complete(&self.runtime, spans.carry(counted)).await?)
    }
}

impl Caller {
    /// Returns the organization whose objects a list shows. Without one, the operator lists those of all.
    pub(crate) fn scope(&self) -> Scope {
        self.organization.map_or_else(|| self.principal.scope(), Scope::One)
    }
}

impl<P: 'static> FromRequest for Caller<P> {
    type Error = ProblemResponse;
    type Future = Ready<Result<Self, ProblemResponse>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(request.extensions_mut().remove::<Self>().ok_or_else(ProblemResponse::internal))
    }
}

/// Returns the address of the peer: the client or a proxy.
pub(crate) fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(NO_ADDRESS, |peer| peer.ip())
}

/// The address of a peer without one.
pub(crate) const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

fn network(request: &HttpRequest, trusted: &[IpNet]) -> Network {
    let forwarded: Vec<_> = request.headers().get_all(header::X_FORWARDED_FOR).map(HeaderValue::as_bytes).collect();
    Network::of(client_address(peer(request), forwarded.into_iter(), trusted))
}
