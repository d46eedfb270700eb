//! Requests and responses.

use crate::base::BaseUrl;
use crate::error::transport;
use crate::trust;
use crate::unix::{NoResolver, UnixConnector};
use crate::{ClientError, Session};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use ureq::http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use ureq::{Agent, Body};
use vault_api::{LoginRequest, LoginResponse};

/// Default maximum duration of a request.
const DEADLINE: Duration = Duration::from_secs(60);
/// Maximum size of a response in bytes: a page of 1,000 credentials whose fields have their maximum length.
const MAX_ANSWER: u64 = 256 * 1024 * 1024;

/// Options of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// File with additional CA certificates (PEM) for the server, in addition to those of the operating system.
    pub ca_file: Option<PathBuf>,
    /// Maximum duration of a request, including its response. `None` means one minute.
    pub deadline: Option<Duration>,
    /// Unix socket of the server. Requests use it instead of the host and port of the base URL.
    pub socket: Option<ServerSocket>,
}

/// A Unix socket on which a server serves the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSocket {
    /// Path of the socket.
    pub path: PathBuf,
    /// Id of the user who runs the server. A socket of another user gets no request.
    pub server_user: u32,
}

/// Client of the HTTP API. It follows no redirects and uses no proxy, so that nothing is sent to another server. Cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    base: BaseUrl,
    /// Address for errors, because `base` does not identify a socket.
    address: Arc<str>,
}

/// Where requests go.
#[derive(Clone)]
enum Transport {
    Network(Agent),
    /// A function of this process.
    Process(Arc<InProcess>),
}

type InProcess = dyn Fn(Request<Vec<u8>>) -> Response<Vec<u8>> + Send + Sync;

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

impl Client {
    /// Creates a client of the API that `answer` serves in this process, below the default base path.
    pub fn in_process(answer: impl Fn(Request<Vec<u8>>) -> Response<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self { transport: Transport::Process(Arc::new(answer)), base: BaseUrl::local(), address: "this process".into() }
    }

    /// Creates a client of the API at `base_url`. With `https://`, a CA that the operating system trusts must have
    /// issued the server's certificate.
    ///
    /// # Errors
    /// [`ClientError::BaseUrl`] if the URL is invalid.
    pub fn new(base_url: &str) -> Result<Self, ClientError> {
        Self::with(base_url, &ClientSettings::default())
    }

    /// Creates a client of the API at `base_url` with the options `settings`.
    ///
    /// # Errors
    /// [`ClientError::BaseUrl`] if the URL is invalid. [`ClientError::CaFile`] if the file cannot be used.
    pub fn with(base_url: &str, settings: &ClientSettings) -> Result<Self, ClientError> {
        let base: BaseUrl = base_url.parse()?;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(settings.deadline.unwrap_or(DEADLINE)));
        if let Some(ServerSocket { path, server_user }) = &settings.socket {
            let connector = UnixConnector::new(path, Some(*server_user));
            let agent = Agent::with_parts(config.build(), connector, NoResolver);
            return Ok(Self::of(agent, base.on_socket(), format!("unix:{}", path.display())));
        }
        if base.is_https() {
            config = config.tls_config(trust::tls(settings.ca_file.as_deref(), None)?);
        }
        let address = base.to_string();
        Ok(Self::of(config.build().new_agent(), base, address))
    }

    /// Creates a client that uses `agent`, and whose errors contain `address`.
    pub(crate) fn of(agent: Agent, base: BaseUrl, address: String) -> Self {
        Self { transport: Transport::Network(agent), base, address: address.into() }
    }

    /// Logs in.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if address, password or passcode is wrong.
    pub fn log_in(&self, request: &LoginRequest) -> Result<Session, ClientError> {
        let answer = self.send(self.request(Method::POST, "/login"), Some(&json(request)?))?;
        let response: LoginResponse = answer.json()?;
        Ok(Session::new(self.clone(), response.access_token.into_secret(), Some(response.expires_at)))
    }

    /// Continues a session with the token of an earlier login.
    pub fn resume(&self, token: SecretString) -> Session {
        Session::new(self.clone(), token, None)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestParts {
        RequestParts { method, url: self.base.join(path), headers: HeaderMap::new() }
    }

    pub(crate) fn send(&self, parts: RequestParts, body: Option<&[u8]>) -> Result<Answer, ClientError> {
        let mut builder = Request::builder().method(parts.method).uri(parts.url);
        if let Some(headers) = builder.headers_mut() {
            headers.extend(parts.headers);
        }
        if let (Some(_), Some(headers)) = (body, builder.headers_mut()) {
            headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        let request = builder.body(body).map_err(ureq::Error::from);
        let response = request.and_then(|request| match (&self.transport, body) {
            (Transport::Network(agent), Some(body)) => agent.run(request.map(|_| body)),
            (Transport::Network(agent), None) => agent.run(request.map(drop)),
            (Transport::Process(answer), _) => {
                let request = request.map(|body| body.unwrap_or_default().to_vec());
                Ok(answer(request).map(|body| Body::builder().data(body)))
            }
        });
        Answer::read(response.map_err(|error| transport(&self.address, error))?, &self.address)
    }
}

/// Serializes `value` as JSON, in memory that is wiped.
pub(crate) fn json(value: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, ClientError> {
    // Serialize twice instead of growing the buffer, which would leave copies of secrets in memory.
    let mut length = Count(0);
    let not_json = |_| ClientError::Request("the data is not valid JSON");
    serde_json::to_writer(&mut length, value).map_err(not_json)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *bytes, value).map_err(not_json)?;
    Ok(bytes)
}

struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A request without its body.
pub(crate) struct RequestParts {
    method: Method,
    url: String,
    headers: HeaderMap,
}

impl RequestParts {
    /// Adds a token.
    pub(crate) fn bearer(mut self, token: &SecretString) -> Result<Self, ClientError> {
        // Sent over the wire in this header.
        let value = Zeroizing::new(["Bearer ", token.expose_secret()].concat());
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| ClientError::Request("the token has characters that a header cannot contain"))?;
        value.set_sensitive(true);
        self.headers.insert(header::AUTHORIZATION, value);
        Ok(self)
    }

    /// Adds the header `name`.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(value).map_err(|_| ClientError::Request("a header cannot contain this"))?;
        self.headers.insert(name, value);
        Ok(self)
    }
}

/// A response with a success status.
pub(crate) struct Answer {
    address: Arc<str>,
    status: u16,
    headers: HeaderMap,
    body: Zeroizing<Vec<u8>>,
}

impl Answer {
    fn read(mut response: Response<Body>, address: &Arc<str>) -> Result<Self, ClientError> {
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        let body = Zeroizing::new(body.map_err(|error| transport(address, error))?);
        if (200..300).contains(&status) {
            let address = Arc::clone(address);
            return Ok(Self { address, status, headers: response.into_parts().0.headers, body });
        }
        // A date, which the header may contain too, is that of a clock other than this one.
        let retry_after =
            response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = retry_after.map(Duration::from_secs);
        match serde_json::from_slice(&body) {
            Ok(problem) if status >= 400 => Err(ClientError::Problem { problem: Box::new(problem), retry_after }),
            _ => Err(ClientError::Unexpected { address: address.to_string(), status, retry_after }),
        }
    }

    /// Parses the body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|_| ClientError::Unexpected {
            address: self.address.to_string(),
            status: self.status,
            retry_after: None,
        })
    }

    /// Returns the server's time in the header `Date`, if the response has one, in seconds since the epoch.
    pub(crate) fn date(&self) -> Option<i64> {
        let text = self.header(header::DATE).next()?;
        OffsetDateTime::parse(text, &Rfc2822).ok().map(OffsetDateTime::unix_timestamp)
    }

    /// Returns the values of the header `name`.
    pub(crate) fn header(&self, name: header::HeaderName) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }
}
