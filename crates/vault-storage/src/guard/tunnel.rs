//! Tunnels through the outgoing proxy, with `CONNECT` (RFC 9110, 9.3.6).

use super::Proxy;
use super::client::{MAX_HEAD, Stream, connect_to_any};
use super::{Resolve, SystemResolver};
use crate::settings::Deadlines;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Request, StatusCode, upgrade};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use vault_core::check::CheckReason;

impl Proxy {
    /// Checks whether the proxy accepts connections, and its certificate if it is an `https` proxy. Opens no tunnel.
    ///
    /// # Errors
    /// [`CheckReason::ProxyUnreachable`].
    pub async fn check(&self) -> Result<(), CheckReason> {
        let Deadlines { connect: limit, exchange, .. } = Deadlines::default();
        let connected = timeout(exchange, connect(self, &SystemResolver::new(), limit)).await;
        connected.unwrap_or(Err(CheckReason::ProxyUnreachable)).map(drop)
    }
}

/// Connects to the proxy. `limit` applies to the connection to each of its addresses.
pub(super) async fn connect(
    proxy: &Proxy,
    resolver: &dyn Resolve,
    limit: Duration,
) -> Result<Box<dyn Stream>, CheckReason> {
    let found = match proxy.host().parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => resolver.resolve(proxy.host()).await.map_err(|_| CheckReason::ProxyUnreachable)?,
    };
    let found = found.into_iter().map(|address| SocketAddr::new(address, proxy.port()));
    let stream = connect_to_any(found, limit).await.ok_or(CheckReason::ProxyUnreachable)?;
    match proxy.tls() {
        None => Ok(Box::new(stream)),
        Some((name, tls)) => {
            let encrypted = TlsConnector::from(Arc::clone(tls)).connect(name.clone(), stream).await;
            Ok(Box::new(encrypted.map_err(|_| CheckReason::ProxyUnreachable)?))
        }
    }
}

/// Opens a tunnel to `target`, a host and a port, on a connection to the proxy.
pub(super) async fn open(proxy: &Proxy, stream: Box<dyn Stream>, target: &str) -> Result<Box<dyn Stream>, CheckReason> {
    let mut request = Request::connect(target).body(Empty::<Bytes>::new()).map_err(|_| CheckReason::Unexpected)?;
    let host = HeaderValue::from_str(target).map_err(|_| CheckReason::Unexpected)?;
    request.headers_mut().insert(HOST, host);
    if let Some(authorization) = proxy.authorization() {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| CheckReason::ProxyUnreachable)?;
    let mut opening = pin!(async {
        let response = sender.send_request(request).await.map_err(|error| failure(&error))?;
        match reason(response.status()) {
            Some(reason) => Err(reason),
            None => upgrade::on(response).await.map_err(|error| failure(&error)),
        }
    });
    let mut connection = pin!(connection.with_upgrades());
    let opened = tokio::select! {
        biased;
        opened = &mut opening => opened,
        // The connection is complete, but its response may still be unread.
        _ = &mut connection => opening.await,
    };
    Ok(Box::new(TokioIo::new(opened?)))
}

/// Returns why a response opens no tunnel, or `None` if it opens one.
fn reason(status: StatusCode) -> Option<CheckReason> {
    match status {
        status if status.is_success() => None,
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Some(CheckReason::ProxyCredentials),
        // The proxy cannot reach the destination.
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Some(CheckReason::Unreachable)
        }
        _ => Some(CheckReason::ProxyRefused),
    }
}

fn failure(error: &hyper::Error) -> CheckReason {
    if error.is_parse() { CheckReason::ProxyRefused } else { CheckReason::ProxyUnreachable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_reason() {
        for status in 100..=999 {
            let expected = match status {
                200..=299 => None,
                407 => Some(CheckReason::ProxyCredentials),
                502..=504 => Some(CheckReason::Unreachable),
                _ => Some(CheckReason::ProxyRefused),
            };
            assert_eq!(reason(StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }
}
