//! An ordinary HTTP client of a vault.

use crate::answer::Answer;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// A client of one listener. Clones share connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    origin: String,
}

impl Client {
    /// Creates a client of `http://<address>`.
    pub fn new(address: std::net::SocketAddr) -> Self {
        Self { agent: config().build().new_agent(), origin: format!("http://{address}") }
    }

    /// Creates a client of `http://<address>` with this timeout.
    pub fn impatient(address: std::net::SocketAddr, longest: Duration) -> Self {
        let agent = config().timeout_global(Some(longest)).build().new_agent();
        Self { agent, origin: format!("http://{address}") }
    }

    /// Creates a client of `https://<address>` that trusts only this PEM certificate.
    pub fn over_tls(address: std::net::SocketAddr, certificate: &str) -> Self {
        let trusted = Certificate::from_pem(certificate.as_bytes()).expect("a certificate");
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[trusted]))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config = config().tls_config(tls.build());
        Self { agent: config.build().new_agent(), origin: format!("https://{address}") }
    }

    /// Returns scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Creates a request.
    pub fn request(&self, method: &str, path: &str) -> Call<'_> {
        Call { client: self, method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: None }
    }

    /// Creates a `GET` request.
    pub fn get(&self, path: &str) -> Call<'_> {
        self.request("GET", path)
    }

    /// Sends a login with this body.
    #[track_caller]
    pub fn log_in(&self, body: &Value) -> Answer {
        self.request("POST", "/v1/login").json(body).send()
    }
}

fn config() -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .allow_non_standard_methods(true)
        .timeout_global(Some(Duration::from_secs(120)))
}

/// Requests of an invited user.
impl Client {
    /// Requests an enrolment.
    #[track_caller]
    pub fn enrol(&self, code: &str, password: &str) -> Answer {
        let body = serde_json::json!({"enrolment_code": code, "password": password});
        self.request("POST", "/v1/enrol").json(&body).send()
    }

    /// Confirms an enrolment.
    #[track_caller]
    pub fn confirm_enrolment(&self, code: &str, passcode: &str) -> Answer {
        let body = serde_json::json!({"enrolment_code": code, "passcode": passcode});
        self.request("POST", "/v1/enrol/confirm").json(&body).send()
    }
}

/// A request that is not sent yet.
#[must_use]
pub struct Call<'a> {
    client: &'a Client,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Call<'_> {
    /// Adds a header field and keeps others with the same name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an access token.
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sets the body without a content type.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Sets the text of a JSON body, which may be invalid.
    pub fn json_text(self, body: impl Into<Vec<u8>>) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// Sends the request and asserts that the response has the common headers.
    #[track_caller]
    pub fn send(self) -> Answer {
        let target = format!("{} {}", self.method, self.path);
        let answer = self.try_send().unwrap_or_else(|error| panic!("{target}: {error}"));
        answer.check_common();
        answer
    }

    /// Sends the request.
    ///
    /// # Errors
    /// The server is unreachable, or closed the connection without a response.
    pub fn try_send(self) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(&*self.method).uri(format!("{}{}", self.client.origin, self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = match self.body {
            Some(body) => self.client.agent.run(request.body(body)?)?,
            None => self.client.agent.run(request.body(())?)?,
        };
        let headers = response.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("").to_owned())).collect();
        let status = response.status().as_u16();
        let body = response.into_body().with_config().limit(64 << 20).read_to_vec()?;
        Ok(Answer { status, headers, body })
    }
}
