//! The host names that a listener accepts. A foreign web page can point its own host name to this host (DNS rebinding),
//! and would then have the same origin as the console. The name in the request reveals this.

use crate::problem_response::ProblemResponse;
use crate::settings::ListenerSettings;
use crate::tls::Tls;
use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap};
use actix_web::http::uri::Authority;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use vault_api::ProblemCode;

const LOCALHOST: &str = "localhost";

/// The accepted names of a listener: IP addresses, localhost, the names in its certificate and those of the settings.
#[derive(Clone)]
pub(crate) struct HostNames {
    allowed: Arc<[String]>,
    tls: Option<Tls>,
}

impl HostNames {
    pub(crate) fn of(settings: &ListenerSettings) -> Self {
        let allowed = settings.allowed_hosts.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { allowed, tls: settings.tls.clone() }
    }

    /// Rejects a request for another host name. A request without one was not sent by a browser.
    pub(crate) fn check(&self, request: &HttpRequest) -> Result<(), ProblemResponse> {
        if request.peer_addr().is_none() {
            return Ok(()); // a Unix socket has no name
        }
        // An absolute-form target contains the host (RFC 9112, section 3.2.2).
        let (uri, sent) = (request.uri(), named(request.headers())?);
        let authority = if uri.scheme().is_some() { uri.authority().cloned() } else { sent };
        match authority {
            Some(authority) if !self.admits(host(&authority)) => {
                let detail = "The `Host` of the request is no name of this server. Use its IP address, or have its operator \
                              name the host with --public-url or --allowed-host.";
                Err(ProblemResponse::new(ProblemCode::MisdirectedRequest, detail))
            }
            _ => Ok(()),
        }
    }

    fn admits(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        host == LOCALHOST
            || host.parse::<IpAddr>().is_ok()
            || self.allowed.contains(&host)
            || self.tls.as_ref().is_some_and(|tls| ServerName::try_from(host).is_ok_and(|name| tls.names(&name)))
    }
}

/// Returns the host without brackets and port.
fn host(authority: &Authority) -> &str {
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.filter(|bare| bare.parse::<Ipv6Addr>().is_ok()).unwrap_or(host)
}

/// Returns the `Host` header, of which there must be at most one.
fn named(headers: &HeaderMap) -> Result<Option<Authority>, ProblemResponse> {
    let mut values = headers.get_all(header::HOST);
    let (first, second) = (values.next(), values.next());
    let malformed = || ProblemResponse::malformed("`Host` must be one host, with a port or without.").closing();
    match (first, second) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let authority = Authority::try_from(value.as_bytes()).map_err(|_| malformed())?;
            if authority.as_str().contains('@') { Err(malformed()) } else { Ok(Some(authority)) }
        }
        (Some(_), Some(_)) => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use std::net::SocketAddr;

    fn status(names: &HostNames, request: TestRequest) -> Option<u16> {
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let refused = names.check(&request.peer_addr(peer).to_http_request()).err();
        refused.map(|problem| problem.code().status())
    }

    fn names(allowed: &[&str]) -> HostNames {
        let mut settings = ListenerSettings::new(Vec::new());
        settings.allowed_hosts = allowed.iter().map(ToString::to_string).collect();
        HostNames::of(&settings)
    }

    #[test]
    fn names_that_were_not_given_are_refused() {
        let names = names(&["Vault.example.com"]);
        let host = |host: &str| status(&names, TestRequest::default().insert_header(("Host", host)));
        let own = ["127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "localhost", "LOCALHOST:1", "192.0.2.7", "localhost."];
        for own in own.into_iter().chain(["vault.example.com", "VAULT.example.com:443"]) {
            assert_eq!(host(own), None, "{own}");
        }
        let foreign =
            ["evil.example.com", "localhost.evil.example.com", "vault.example.com.evil.example", "127.0.0.1.nip.io"];
        for foreign in foreign.into_iter().chain(["127.1", "0x7f000001", "vault", "example.com", "2130706433:80"]) {
            assert_eq!(host(foreign), Some(421), "{foreign}");
        }
        for malformed in ["", "a b", "user@localhost", "[::1", "a/b"] {
            assert_eq!(host(malformed), Some(400), "{malformed}");
        }
    }

    #[test]
    fn one_host_is_looked_at_and_the_target_before_it() {
        let names = names(&[]);
        let two = TestRequest::default().insert_header(("Host", "localhost")).append_header(("Host", "evil.example"));
        assert_eq!(status(&names, two), Some(400));
        let target = TestRequest::with_uri("http://evil.example/livez").insert_header(("Host", "localhost"));
        assert_eq!(status(&names, target), Some(421));
        assert_eq!(status(&names, TestRequest::default()), None, "no browser sends none");
        let local = TestRequest::default().insert_header(("Host", "anything")).to_http_request();
        assert!(names.check(&local).is_ok(), "a Unix socket");
    }

    #[test]
    fn names_of_the_certificate_are_its_own() {
        let Ok(pair) = rcgen::generate_simple_self_signed(["vault.example.com".to_owned(), "*.vault.test".to_owned()])
        else {
            panic!("ring makes keys")
        };
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let mut settings = ListenerSettings::new(Vec::new());
        settings.tls = Tls::new(certificate.as_bytes(), key.as_bytes()).ok();
        let names = HostNames::of(&settings);
        for (host, admitted) in [
            ("vault.example.com", true),
            ("a.vault.test:8443", true),
            ("vault.test", false),
            ("a.b.vault.test", false),
            ("example.com", false),
        ] {
            let refused = status(&names, TestRequest::default().insert_header(("Host", host)));
            assert_eq!(refused.is_none(), admitted, "{host}");
        }
    }
}
