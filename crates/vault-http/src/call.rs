//! A request with its route and everything that its use cases need to know of it.

use crate::concurrency::Permit;
use crate::forwarded::client_address;
use crate::route::RequestPath;
use crate::trace::RequestSpans;
use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use ipnet::IpNet;
use std::cell::OnceCell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use uuid::Uuid;
use vault_core::audit::Origin;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::network::Network;

/// A request and its route.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) place: RequestPath<'a>,
    /// The client's network. `X-Forwarded-For` of trusted proxies is evaluated.
    pub(crate) network: Network,
    /// For the audit log.
    pub(crate) origin: Origin,
    spans: RequestSpans,
    permits: OnceCell<Arc<Permits>>,
}

/// Permits of the account and the organization that sent a request. They count it until its last use case has ended.
pub(crate) type Permits = (Permit<AccountId>, Permit<OrganizationId>);

impl<'a> Call<'a> {
    /// Creates the request with the ID `id`, which passed the proxies in `trusted`.
    pub(crate) fn new(
        request: &'a HttpRequest,
        place: RequestPath<'a>,
        id: Uuid,
        spans: RequestSpans,
        trusted: &[IpNet],
    ) -> Self {
        let network = network(request, trusted);
        // A Unix socket has no network.
        let origin = Origin { network: request.peer_addr().map(|_| network), request: Some(id) };
        Self { request, place, network, origin, spans, permits: OnceCell::new() }
    }

    /// Returns the headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// Returns the undecoded query.
    pub(crate) fn query(&self) -> Option<&str> {
        self.request.uri().query()
    }

    /// Returns the address of the peer: the client or a proxy.
    pub(crate) fn peer(&self) -> IpAddr {
        peer(self.request)
    }

    /// Counts the request with the result of `acquire`, unless it is already counted.
    pub(crate) fn count<E>(&self, acquire: impl FnOnce() -> Result<Permits, E>) -> Result<(), E> {
        if self.permits.get().is_none() {
            let permits = acquire()?;
            self.permits.get_or_init(|| Arc::new(permits));
        }
        Ok(())
    }

    /// Makes `use_case` a part of the request also after the client has disconnected: its log lines name the request, and
    /// it keeps the request counted.
    pub(crate) fn carry<F: Future>(&self, use_case: F) -> impl Future<Output = F::Output> + use<F> {
        let permits = self.permits.get().cloned();
        self.spans.carry(async move {
            let _permits = permits;
            use_case.await
        })
    }
}

fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip())
}

fn network(request: &HttpRequest, trusted: &[IpNet]) -> Network {
    let forwarded: Vec<_> = request.headers().get_all(header::X_FORWARDED_FOR).map(HeaderValue::as_bytes).collect();
    Network::of(client_address(peer(request), forwarded.into_iter(), trusted))
}
