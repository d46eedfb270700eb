//! A request with its route.

use crate::forwarded::client_address;
use crate::route::RequestPath;
use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};
use uuid::Uuid;
use vault_core::audit::Origin;
use vault_core::network::Network;

/// A request and its route.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) place: RequestPath<'a>,
    pub(crate) id: Uuid,
}

impl Call<'_> {
    /// Returns the headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// Returns the undecoded query.
    pub(crate) fn query(&self) -> Option<&str> {
        self.request.uri().query()
    }

    /// Returns the client's network, or `None` for a Unix socket.
    pub(crate) fn caller(&self, trusted: &[IpNet]) -> Option<Network> {
        self.request.peer_addr().map(|_| self.network(trusted))
    }

    /// Returns the origin of the request for the audit log.
    pub(crate) fn origin(&self, trusted: &[IpNet]) -> Origin {
        Origin { network: self.caller(trusted), request: Some(self.id) }
    }

    /// Returns the address of the peer: the client or a proxy.
    pub(crate) fn peer(&self) -> IpAddr {
        self.request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip())
    }

    /// Returns the client's network. Evaluates `X-Forwarded-For` of the proxies in `trusted`.
    pub(crate) fn network(&self, trusted: &[IpNet]) -> Network {
        let forwarded: Vec<_> = self.headers().get_all(header::X_FORWARDED_FOR).map(HeaderValue::as_bytes).collect();
        Network::of(client_address(self.peer(), forwarded.into_iter(), trusted))
    }
}
