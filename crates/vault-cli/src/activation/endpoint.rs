//! The local endpoint from which a command's tools get their credential. It implements AWS's container credential
//! provider ("AWS SDKs and Tools Reference Guide") and a token exchange for Google access tokens (RFC 8693). It always
//! responds with the latest renewed credential.
//!
//! It listens on 127.0.0.1 and an ephemeral port while `exec` runs. A request must contain the endpoint's token and its
//! address as `Host`.

use crate::failure::Failure;
use crate::form::EndpointAnswer;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use secrecy::{ExposeSecret, SecretString};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use url::form_urlencoded;
use vault_core::port::{Clock, Entropy};
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Host in the endpoint's URLs.
pub(super) const HOST_NAME: &str = "127.0.0.1";
const KEY_PATH: &str = "/credential";
const TOKEN_PATH: &str = "/token";
/// Maximum size of a token request's body in bytes.
const MAX_BODY: usize = 16 * 1024;
/// Maximum number of concurrent connections. Further connections are queued.
const CONNECTIONS: usize = 512;
const NOT_OURS: &str = "this endpoint serves one command, at its own address";
/// Time limit of a connection, from its request head to the response.
const DEADLINE: Duration = Duration::from_secs(5);
/// Number of random bytes in the token.
const TOKEN_BYTES: usize = 32;

/// A response and its expiry time.
pub(crate) struct Served {
    pub answer: EndpointAnswer,
    /// Time from which the credential is invalid.
    pub expires_at: Timestamp,
}

/// A listening endpoint.
pub(crate) struct Endpoint(Arc<Inner>);

struct Inner {
    address: SocketAddrV4,
    token: SecretString,
    served: Mutex<Option<Served>>,
    clock: Arc<dyn Clock>,
}

impl Endpoint {
    /// Opens the endpoint in a task of the current runtime. Before [`Endpoint::serve`], it has no credential.
    pub(crate) async fn open(entropy: &dyn Entropy, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let failed = |error| Failure::new(format!("cannot listen on 127.0.0.1 for the command's tools: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let SocketAddr::V4(address) = listener.local_addr().map_err(failed)? else {
            return Err(Failure::new("127.0.0.1 is not an IPv4 address of this host"));
        };
        let inner = Arc::new(Inner { address, token: token(entropy)?, served: Mutex::new(None), clock });
        tokio::spawn(accept(listener, Arc::clone(&inner)));
        Ok(Self(inner))
    }

    /// Returns the URL of the container credential provider.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{KEY_PATH}", self.0.address)
    }

    /// Returns the URL of the token exchange.
    pub(crate) fn token_url(&self) -> String {
        format!("http://{}{TOKEN_PATH}", self.0.address)
    }

    /// Returns the token that requests must contain.
    pub(crate) fn token(&self) -> &SecretString {
        &self.0.token
    }

    /// Replaces the response.
    pub(crate) fn serve(&self, served: Served) {
        *self.0.served.lock().unwrap_or_else(PoisonError::into_inner) = Some(served);
    }
}

fn token(entropy: &dyn Entropy) -> Result<SecretString, Failure> {
    let mut bytes = Zeroizing::new([0; TOKEN_BYTES]);
    entropy.fill(&mut *bytes)?;
    let mut text = String::with_capacity(2 * TOKEN_BYTES);
    for byte in bytes.iter() {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or_default());
        }
    }
    Ok(SecretString::from(text))
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // For example, too many open files. Other processes may close theirs.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let inner = Arc::clone(&inner);
        tokio::spawn(async move {
            let _slot = slot;
            let service = service_fn(|request: Request<Incoming>| async {
                let (head, body) = request.into_parts();
                let body = Limited::new(body, MAX_BODY).collect().await;
                let body = Zeroizing::new(body.map(|body| body.to_bytes().to_vec()).unwrap_or_default());
                Ok::<_, Infallible>(inner.answer(&head, &body))
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(DEADLINE)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(DEADLINE, connection).await; // the client may have disconnected
        });
    }
}

impl Inner {
    fn answer(&self, request: &Parts, body: &[u8]) -> Response<Full<Bytes>> {
        let header = |name| only(request.headers.get_all(name).iter());
        // RFC 9112, section 3.2. A target with an authority is meant for a proxy, and this endpoint is not one.
        let Some(host) = header(HOST).filter(|_| request.uri.authority().is_none()) else {
            return refusal(
                StatusCode::BAD_REQUEST,
                "the request must have one Host line and a target that starts with /",
            );
        };
        if host.as_bytes() != self.address.to_string().as_bytes() {
            return refusal(StatusCode::FORBIDDEN, NOT_OURS);
        }
        let path = request.uri.path();
        let shown = match path {
            TOKEN_PATH => Zeroizing::new(subject_token(body)),
            _ => Zeroizing::new(header(AUTHORIZATION).map(|shown| shown.as_bytes().to_vec()).unwrap_or_default()),
        };
        // Used only for the comparison with the presented token.
        let is_shown = shown.ct_eq(self.token.expose_secret().as_bytes());
        if !bool::from(is_shown) {
            return refusal(StatusCode::UNAUTHORIZED, "the token is not that of this endpoint");
        }
        match path {
            KEY_PATH if request.method != Method::GET => {
                return refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported");
            }
            TOKEN_PATH if request.method != Method::POST => {
                return refusal(StatusCode::METHOD_NOT_ALLOWED, "only POST is supported");
            }
            KEY_PATH | TOKEN_PATH => {}
            _ => return refusal(StatusCode::NOT_FOUND, "nothing is here"),
        }
        let now = self.clock.now();
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        // The client presented the token, so it may get the credential.
        match served.as_ref().filter(|served| now < served.expires_at) {
            Some(Served { answer: EndpointAnswer::Key { has_session_token: false, .. }, .. })
                if path == KEY_PATH && requires_session_token(request) =>
            {
                let message = "this client requires a session token, and a saved key has none: run `orgvault exec` with \
                               --static, or with --vend short";
                refusal(StatusCode::BAD_REQUEST, message)
            }
            Some(Served { answer: EndpointAnswer::Key { document, .. }, .. }) if path == KEY_PATH => {
                response(StatusCode::OK, document.expose().to_owned())
            }
            Some(Served { answer: EndpointAnswer::AccessToken(token), expires_at }) if path == TOKEN_PATH => {
                let document = serde_json::json!({
                    "access_token": token.expose(),
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                    "token_type": "Bearer",
                    "expires_in": expires_at.millis_since(now) / 1_000,
                });
                response(StatusCode::OK, document.to_string())
            }
            Some(_) => refusal(StatusCode::NOT_FOUND, "the command's credential is of another type"),
            None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the credential has expired and could not be renewed yet"),
        }
    }
}

/// Returns whether the client cannot parse a key without a session token. The crate `object_store` sends an empty token as
/// a header, which stores may refuse.
fn requires_session_token(request: &Parts) -> bool {
    request.headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"object_store/"))
}

/// Returns the item if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

/// Returns the token to exchange from a token exchange request (RFC 8693, section 2.1).
fn subject_token(body: &[u8]) -> Vec<u8> {
    let mut fields = form_urlencoded::parse(body);
    fields.find(|(name, _)| name == "subject_token").map(|(_, token)| token.as_bytes().to_vec()).unwrap_or_default()
}

/// Creates an error in the provider's format.
fn refusal(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let code = status.canonical_reason().unwrap_or_default();
    response(status, serde_json::json!({ "code": code, "message": message }).to_string())
}

fn response(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use vault_core::credential::SecretText;
    use vault_crypto::OsEntropy;

    struct At(Mutex<i64>);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(*self.0.lock().expect("a time"))
        }
    }

    fn ask(address: SocketAddrV4, line: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(stream, "{line} HTTP/1.1\r\n{headers}\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn endpoint_requires_token_and_unexpired_credential() {
        let clock = Arc::new(At(Mutex::new(0)));
        let endpoint = Endpoint::open(&OsEntropy, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("an endpoint");
        let address = endpoint.0.address;
        let (host, token) = (address.to_string(), endpoint.token().expose_secret().to_owned());
        assert_eq!((token.len(), endpoint.url()), (64, format!("http://{host}/credential")));
        let get = "GET /credential";
        let right = [("Host", &*host), ("Authorization", &*token)];
        assert_eq!(ask(address, get, &right).0, 503);
        let expires_at = Timestamp::from_millis(1_000);
        let serve = |has_session_token| {
            let document = SecretText::from(r#"{"Token":null}"#);
            let answer = EndpointAnswer::Key { document, has_session_token };
            endpoint.serve(Served { answer, expires_at });
        };
        let object_store = [right[0], right[1], ("User-Agent", "object_store/0.14.2")];
        serve(true);
        assert_eq!(ask(address, get, &object_store).0, 200);
        serve(false);
        let (status, body) = ask(address, get, &object_store);
        assert!(status == 400 && body.contains("--static"), "{status} {body}");
        assert_eq!(ask(address, get, &right), (200, r#"{"Token":null}"#.to_owned()));
        let bearer = format!("Bearer {token}");
        for (line, headers, status) in [
            (get, &[("Host", &*host)][..], 401),
            (get, &[("Host", &*host), ("Authorization", "")], 401),
            (get, &[("Host", &*host), ("Authorization", &token[1..])], 401),
            (get, &[("Host", &*host), ("Authorization", &bearer)], 401),
            (get, &[("Host", &*host), ("Authorization", &token), ("Authorization", &token)], 401),
            (get, &[("Host", &*host), ("Host", "attacker.example"), ("Authorization", &token)], 400),
            (get, &[("Host", &*host), ("Host", &*host), ("Authorization", &token)], 400),
            ("GET http://attacker.example/credential", &right, 400),
            (&format!("GET http://{host}/credential"), &right, 400),
            (get, &[("Host", "localhost"), ("Authorization", &token)], 403),
            (get, &[("Host", "attacker.example"), ("Authorization", &token)], 403),
            (get, &[("Authorization", &token)], 400),
            ("POST /credential", &right, 405),
            ("GET /", &right, 404),
            ("GET /credential/", &right, 404),
        ] {
            let (found, body) = ask(address, line, headers);
            assert_eq!(found, status, "{line} {headers:?}: {body}");
            assert!(!body.contains(&token), "{body}");
        }
        *clock.0.lock().expect("a time") = 1_000;
        assert_eq!(ask(address, get, &right).0, 503);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn endpoint_exchanges_its_token_for_access_token() {
        let clock = Arc::new(At(Mutex::new(500)));
        let endpoint = Endpoint::open(&OsEntropy, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("an endpoint");
        let (address, token) = (endpoint.0.address, endpoint.token().expose_secret().to_owned());
        assert_eq!(endpoint.token_url(), format!("http://{address}/token"));
        let exchange = |line: &str, body: &str| {
            let mut stream = TcpStream::connect(address).expect("a connection");
            let length = body.len();
            write!(stream, "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}")
                .expect("sent");
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer); // unread data may cause a reset
            let status: u16 = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
        };
        let right =
            format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token={token}");
        assert_eq!(exchange("POST /token", &right).0, 503);
        let (answer, expires_at) =
            (EndpointAnswer::AccessToken(SecretText::from("ya29.x")), Timestamp::from_millis(60_500));
        endpoint.serve(Served { answer, expires_at });
        let (status, answer) = exchange("POST /token", &right);
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("a document");
        assert_eq!((status, &answer["access_token"], &answer["expires_in"]), (200, &"ya29.x".into(), &60.into()));
        let too_long = format!("a={}&subject_token={token}", "x".repeat(MAX_BODY));
        for (line, body, status) in [
            ("POST /token", "", 401),
            ("POST /token", "subject_token=", 401),
            ("POST /token", "subject_token=x&subject_token=y", 401),
            ("POST /token", &*too_long, 401),
            ("PUT /token", &right, 405),
            ("POST /tokens", &right, 401),
        ] {
            assert_eq!(exchange(line, body).0, status, "{line}");
        }
        let headers = [("Host", &*address.to_string()), ("Authorization", &*token)];
        assert_eq!(ask(address, "GET /credential", &headers).0, 404);
    }

    /// A job that starts many workers at the same time.
    #[tokio::test(flavor = "multi_thread")]
    async fn endpoint_serves_200_concurrent_clients() {
        let endpoint = Endpoint::open(&OsEntropy, Arc::new(At(Mutex::new(0)))).await.expect("an endpoint");
        let address = endpoint.0.address;
        let clients: Vec<_> = (0..200)
            .map(|_| std::thread::spawn(move || ask(address, "GET /", &[("Host", &address.to_string())]).0))
            .collect();
        assert!(clients.into_iter().all(|client| client.join().expect("an answer") == 401));
    }
}
