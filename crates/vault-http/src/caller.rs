//! Who calls a route: the result of the authorization. A use case runs to its end, even if the client disconnects.

use crate::limits::Permit;
use crate::listener::Common;
use crate::problem::ProblemResponse;
use crate::telemetry::RequestSpans;
use crate::token::client_address;
use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use ipnet::IpNet;
use std::future::{Future, Ready, ready};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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

/// Runs `use_case` on the thread that asks for it, in the context of `runtime`: a thread that waits for another one to run it
/// would be woken once more for each request. If the client disconnects, it continues on `runtime`.
pub(crate) fn complete<T: Send + 'static>(
    runtime: &Handle,
    use_case: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> {
    let use_case: UseCase<T> = Box::pin(use_case);
    Completion { use_case: Some(use_case), runtime: runtime.clone() }
}

type UseCase<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A use case that continues on `runtime` if this future is dropped before it ends.
struct Completion<T: Send + 'static> {
    /// `None` once it has ended, or panicked.
    use_case: Option<UseCase<T>>,
    runtime: Handle,
}

impl<T: Send + 'static> Future for Completion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // A use case that panics is dropped: it could not continue.
        let Some(mut use_case) = self.use_case.take() else { return Poll::Pending };
        // What it starts, such as a connection to the database, must outlive the thread of this request.
        let entered = self.runtime.enter();
        let polled = use_case.as_mut().poll(context);
        drop(entered);
        if polled.is_pending() {
            self.use_case = Some(use_case);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Completion<T> {
    fn drop(&mut self) {
        if let Some(use_case) = self.use_case.take() {
            self.runtime.spawn(use_case);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    #[test]
    fn use_case_continues_without_its_client_and_starts_tasks_on_its_runtime() {
        let main = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (go, gone) = oneshot::channel::<()>();
        let (reply, started_on) = oneshot::channel();
        let use_case = async move {
            let runtime = Handle::current().id();
            gone.await.unwrap();
            tokio::spawn(async move { reply.send(runtime).unwrap() });
        };
        // Polled once by a client on another runtime, which then disconnects.
        let handle = main.handle().clone();
        let client = Builder::new_current_thread().build().unwrap();
        client.block_on(async { assert!(complete(&handle, use_case).now_or_never().is_none()) });
        drop(client);
        go.send(()).unwrap();
        assert_eq!(main.block_on(started_on).unwrap(), handle.id());
    }

    #[test]
    fn finished_or_panicked_use_case_is_not_rerun() {
        let main = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = main.handle().clone();
        assert_eq!(complete(&handle, async { 7 }).now_or_never(), Some(7));
        let panics = async { panic!("a use case") };
        let caught = std::panic::AssertUnwindSafe(complete(&handle, panics)).catch_unwind().now_or_never();
        assert!(caught.unwrap().is_err());
        assert_eq!(main.metrics().num_alive_tasks(), 0);
    }
}
