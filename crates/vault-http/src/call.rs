//! A request that has found its operation.

use crate::forwarded::client_address;
use crate::route::{Operation, RequestPath};
use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};
use uuid::Uuid;
use vault_core::audit::Origin;
use vault_core::network::Network;

/// A request, where it goes and what it does there.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) place: RequestPath<'a>,
    pub(crate) operation: Operation,
    pub(crate) id: Uuid,
}

impl Call<'_> {
    /// The request's headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The request's query, as it was sent.
    pub(crate) fn query(&self) -> Option<&str> {
        self.request.uri().query()
    }

    /// The client's network, if the request came over one and not over a socket in the file system.
    pub(crate) fn caller(&self, trusted: &[IpNet]) -> Option<Network> {
        self.request.peer_addr().map(|_| self.network(trusted))
    }

    /// Where the request came from, for the audit.
    pub(crate) fn origin(&self, trusted: &[IpNet]) -> Origin {
        Origin { network: self.caller(trusted), request: Some(self.id) }
    }

    /// The address of whoever connected: the client or a proxy.
    pub(crate) fn peer(&self) -> IpAddr {
        self.request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip())
    }

    /// The client's network, as far as proxies in `trusted` tell it.
    pub(crate) fn network(&self, trusted: &[IpNet]) -> Network {
        let forwarded: Vec<_> = self.headers().get_all(header::X_FORWARDED_FOR).map(HeaderValue::as_bytes).collect();
        Network::of(client_address(self.peer(), forwarded.into_iter(), trusted))
    }
}
